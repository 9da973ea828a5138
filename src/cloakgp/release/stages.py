"""Stages: what is measured at once, how it is read, and how one stage follows from those before it.

A stage is planned from what the stages before it made public, and from nothing else: windows close in on
where outcomes are expected, and the measurement is designed for what is still unknown. So all of this file is
public, and anybody who holds the answers can go through it again.

Where whole rows are private, the first stage counts how many rows each cell of a public grid has. Once that
is estimated, cells are what equal rows are elsewhere; what the counts may be wrong by is counted as noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from cloakgp.core.calibration import total_delta
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.data.cells import Cells
from cloakgp.data.columns import Columns
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import TableRows
from cloakgp.data.merging import Groups, Inputs
from cloakgp.data.people import People, times_noise
from cloakgp.files import container
from cloakgp.files.container import Array
from cloakgp.measure.certificate import Certificate
from cloakgp.measure.measurement import Measurement, Part, measurement_of
from cloakgp.measure.statistics import Bin, Distance, Limits, Outside, Present, Statistic, for_outcomes
from cloakgp.measure.unit import Population
from cloakgp.model.hyperprior import Candidate, Prior
from cloakgp.model.outcome import REAL, Outcome
from cloakgp.posterior import shape, skew, staging
from cloakgp.posterior.clipping import Law, Window, law_of
from cloakgp.posterior.conditioning import Line
from cloakgp.posterior.density import Density, DensityPrior, estimate
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.states import Reading, Readings, SpreadReading, State
from cloakgp.release.readouts import DENOISED, Readout, readout_of

MOST_OUTSIDE = 8
"""At most so many numbers of a stage are of what its windows cut off."""
_ROUNDING = 1e-13  # far above the rounding errors in a dozen shares, far below what noise could show
_TWICE = 4.0  # a row leaves one cell and enters another: twice the noise std, for a design


@dataclass(frozen=True, eq=False)
class Stage:
    """What a stage measures: public, and fixed before y is read. Once it is answered, what came out, too."""

    measurement: Measurement
    spread: Measurement | None = None
    """One more number, for the noise level; not in a first stage."""
    line: Line | None = None
    """What its windows do to outcomes; None where they are the bounds. Of sums inside and then outside."""
    outside: Measurement | None = None
    """Of what its windows cut off, if that is measured, too."""
    readout: Readout = DENOISED
    """How it is read beside the model, if it stands alone."""
    answer: IntArray | None = None
    """Noisy integers: all that this stage left behind of y."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """What is measured, in the order of the answer."""
        return tuple(part for part in (self.measurement, self.outside, self.spread) if part is not None)

    @property
    def counts_bins(self) -> bool:
        """Whether it counts where outcomes fell, and so says nothing of f."""
        return isinstance(self.measurement.statistic, Bin)

    @property
    def mu(self) -> float:
        """What it spends."""
        return math.sqrt(sum(part.mu() ** 2 for part in self.parts))

    @property
    def z(self) -> IntArray:
        """(q,) noisy measurements."""
        assert self.answer is not None
        return self.answer[: self.measurement.n_measurements]

    @property
    def sums(self) -> tuple[Measurement, ...]:
        """What it measures of outcomes: inside of its windows, and outside."""
        return (self.measurement,) if self.outside is None else (self.measurement, self.outside)

    @property
    def share(self) -> float:
        """Of mu squared, for these sums."""
        return math.fsum(m.part.share for m in self.sums if m.part is not None)

    @property
    def rows(self) -> FloatArray:
        """(s, U) what the line is of, as real numbers: what is outside is missing inside."""
        return np.vstack([sign * m.real_matrix() for m, sign in zip(self.sums, (1.0, -1.0), strict=False)])

    @property
    def sloped(self) -> FloatArray:
        """(s, U) how far outcomes move these sums."""
        slope = self.bent.slope
        each = zip(self.sums, (slope, 1.0 - slope), strict=False)
        return np.vstack([m.real_matrix() * own for m, own in each])

    @property
    def noise(self) -> FloatArray:
        """(s,) variances of the noise on them."""
        return np.concatenate([np.full(m.n_measurements, m.noise_scale**2) for m in self.sums])

    def answers(self) -> list[tuple[Measurement, IntArray, Line | None]]:
        """What came out of each, with a line of its own; what hangs together in both is left out of these."""
        if self.outside is None or self.line is None:
            return [(self.measurement, self.z, self.line)]
        assert self.answer is not None
        line, q, s = self.line, self.measurement.n_measurements, len(self.line.shift)
        inside = Line(line.slope, line.shift[:q], line.extra[:q, :q])
        outside = Line(1.0 - line.slope, line.shift[q:], line.extra[q:, q:])
        return [(self.measurement, self.z, inside), (self.outside, self.answer[q:s], outside)]

    @property
    def curves(self) -> IntArray:
        """(K, q) those of each class, where outcomes are one of several; else one row."""
        return self.z.reshape(self.measurement.statistic.width, -1)

    @property
    def lower(self) -> Limits:
        """Lower edges of the windows, one for each distinct row of X; the bound in a first stage."""
        return self.measurement.lower

    @property
    def upper(self) -> Limits:
        """Upper edges of the windows."""
        return self.measurement.upper

    @property
    def bent(self) -> Line:
        """The line; where windows are the bounds, one that changes nothing."""
        q, U = self.measurement.matrix.shape
        return self.line or Line(np.ones(U), np.zeros(q), np.zeros((q, q)))

    def reading(self, middle: float) -> Reading:
        """What it says of f less the middle of the bounds."""
        line, rows, values = self.bent, self.sloped, []
        for m, z, own in self.answers():
            slope, shift = (line.slope, line.shift) if own is None else (own.slope, own.shift)
            value = (z - m.midpoint).astype(np.float64) * m.step - shift
            values.append(value + m.real_matrix() @ (m.counts * (m.statistic.origin - slope * middle)))
        return Reading(rows, np.ones(rows.shape[1]), np.concatenate(values), np.diag(self.noise) + line.extra)

    def misjudged(self, features: FloatArray, noise: float) -> FloatArray:
        """(s, r) how its sums move with what its windows misjudge of outcomes with this noise."""
        if self.line is None:  # bounds misjudge nothing
            return np.zeros((self.measurement.n_measurements, features.shape[1]))
        moved = features * skew.scale(noise, np.asarray(self.upper - self.lower))[:, None]
        return np.asarray(self.rows @ (self.measurement.counts[:, None] * moved))

    def spread_reading(self, middle: float) -> SpreadReading | None:
        """What it says of the noise level: the outcomes' mean distance from what was expected, with noise."""
        s = self.spread
        if s is None or self.answer is None:
            return None
        distance = float(self.answer[-1]) * s.step / float(s.counts.sum())
        assert isinstance(s.statistic, Distance)
        assert s.statistic.centre is not None
        std = s.noise_scale / float(s.counts.sum())
        return SpreadReading(s.statistic.centre - middle, s.statistic.limit, distance, std**2, s.counts)

    def described(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """As words and arrays."""
        m, s = self.measurement, self.spread
        readout, own = self.readout.described()
        arrays: dict[str, Any] = {**own}
        words: dict[str, Any] = {**_lattice_words(m), "windows": self.line is not None, "readout": readout}
        words |= {"spread": None, "outside": None, "bins": self.counts_bins}
        if isinstance(m.statistic, Bin):
            arrays |= {"edges": m.statistic.edges, "atoms": m.statistic.atoms}
        if m.matrix.size:
            arrays["matrix"] = m.matrix
        if m.population is not None and m.groups is not None:
            arrays["counts"] = m.counts
        if self.line is not None:
            arrays |= {"lower": m.lower, "upper": m.upper, **vars(self.line)}
        if self.outside is not None:
            assert self.outside.part is not None
            words["outside"] = {**_lattice_words(self.outside), "share": self.outside.part.share}
            arrays["outside"] = self.outside.matrix
        if s is not None:
            assert isinstance(s.statistic, Distance)
            words["spread"] = {**_lattice_words(s), "limit": s.statistic.limit}
            arrays["centre"] = s.statistic.centre
        if self.answer is not None:
            arrays["z"] = self.answer
        return words, {name: np.asarray(array) for name, array in arrays.items()}

    def to_bytes(self) -> bytes:
        """For a ledger, which keeps it until the stage is answered."""
        return container.pack(*self.described())

    @classmethod
    def from_described(
        cls,
        words: dict[str, Any],
        arrays: dict[str, Array],
        rule: Rule,
        number: int,
        earlier: Given | None = None,
    ) -> Stage:
        """What :meth:`described` gave; whatever it says, the private room checks the integers.

        The sensitivity is at least the one that is claimed: a file may hold only the digest of people.
        `earlier` is the release that it is a stage of, if that is not the rule's own.
        """
        promise, limits = (rule.certificate, rule.limits) if earlier is None else (earlier, earlier.bounds)
        share, spread_share = rule.shares_of(number, words["spread"] is not None, promise.shares)
        beyond = words["outside"]
        share -= 0.0 if beyond is None else beyond["share"]
        whole = rule.population
        groups = rule.inputs.groups if whole is None else None
        if "counts" in arrays:
            groups = unlabelled(arrays["counts"])

        def measured(
            told: dict[str, Any], matrix: IntArray, statistic: Statistic, share: float
        ) -> Measurement:
            return Measurement(
                matrix=matrix,
                statistic=statistic.with_bits(told["y_bits"]),
                matrix_bits=told["matrix_bits"],
                sigma=told["sigma"],
                declared=told["sensitivity_steps"],
                part=Part(share, promise.n_measurements),
                epsilon=promise.epsilon,
                delta=promise.delta,
                groups=groups,
                people=rule.people,
                population=whole,
            )

        statistic: Statistic = Present()
        if whole is None or number:
            statistic = rule.statistic(arrays.get("lower", limits[0]), arrays.get("upper", limits[1]))
        if words["bins"]:
            statistic = Bin(*rule.bounds, edges=arrays["edges"], atoms=arrays["atoms"])
        matrix = arrays.get("matrix")
        if matrix is None:
            matrix = np.zeros((arrays["reconstruction"].shape[1], 0), dtype=np.int64)
        spread, outside, told, line = None, None, words["spread"], None
        if "slope" in arrays:
            line = Line(arrays["slope"], arrays["shift"], arrays["extra"])
        if beyond is not None:
            bounds = rule.bounds if earlier is None else earlier.bounds
            cut_off = Outside(arrays["lower"], arrays["upper"], bounds=bounds)
            outside = measured(beyond, arrays["outside"], cut_off, beyond["share"])
        if told is not None:
            centre = arrays["centre"]
            ones = frozen(np.full((1, len(centre)), 2 ** told["matrix_bits"], dtype=np.int64))
            distance = Distance(*rule.bounds, centre=centre, limit=told["limit"])
            spread = measured(told, ones, distance, spread_share)
        return cls(
            measured(words, matrix, statistic, share),
            spread,
            line,
            outside,
            readout_of(words["readout"], arrays, rule.prior.gp, rule.X_star),
            arrays.get("z"),
        )


def _lattice_words(m: Measurement) -> dict[str, Any]:
    names = ("y_bits", "matrix_bits", "sigma")
    return {name: getattr(m, name) for name in names} | {"sensitivity_steps": m.sensitivity()}


@dataclass(frozen=True, eq=False)
class Given:
    """An earlier release of the same outcomes: what it promised on its own, and what it answered."""

    epsilon: float
    delta: float
    mu: float
    n_measurements: int
    shares: tuple[float, ...]
    bounds: tuple[float, float]
    stages: tuple[Stage, ...] = ()
    dataset: str | None = None
    """Which of a ledger's data sets paid for it, if that is known."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rule:
    """All that decides how stages follow from each other: public, and fixed before the first."""

    certificate: Certificate
    """What all stages together promise, and each one's share of it."""
    prior: Prior
    bounds: tuple[float, float]
    X: Any
    """(N, D) public inputs: an array, or what gives slices of one; None if only the digest is known."""
    inputs: Inputs
    """X without its repetitions, or the cells that its rows belong to; none where X is not shown.

    A model that is learned has one noise variance: where people have several rows, how many these have is in
    its place.
    """
    X_star: FloatArray
    """(P, D) test points; of a function, where its kernels stand."""
    weights: FloatArray
    """(P,) how much the error at each test point matters, 1 on average."""
    support: FloatArray | None = None
    """Inputs that stand for all, where there are many; None where each stands for itself."""
    kappa: float | None = None
    """A window's half width, in standard deviations of what is expected there; None for the bounds."""
    given: tuple[Given, ...] = ()
    cells: Cells | None = None
    """For many rows: those of a cell are treated alike."""
    version: int = staging.RULE
    """Which rule for windows and weights it was made by."""
    people: People | None = None
    """Who has which rows, if the promise is to people; None if to rows, or if only the digest is known."""
    within: float = 1.0
    """Correlation of the noise within a person."""
    partition: str = ""
    """SHA-256 of who has which rows; empty where the promise is to each row."""
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None = None
    """Which rows of the table count."""
    outcome: Outcome = REAL
    """What outcomes are."""
    population: Population | None = None
    """Whose whole rows are private, if they are: then a grid is all that is known of inputs."""

    @property
    def grid(self) -> Grid | None:
        """The public box and its cells, if whole rows are private; else None."""
        return None if self.population is None else self.population.grid

    def density(self, counted: Stage) -> Density:
        """How many rows each cell has, by the answer of the stage that counts them."""
        assert self.population is not None
        m = counted.measurement
        value = counted.z.astype(np.float64) * m.step
        return estimate(density_prior(self.population), m.real_matrix(), value, m.noise_scale**2)

    def with_counts(self, counts: FloatArray) -> Self:
        """The same with so many rows in each of the grid's cells."""
        return replace(self, inputs=replace(self.inputs, groups=unlabelled(counts)))

    def counted(self, stages: Sequence[Stage]) -> Self:
        """The same with the counts that these stages were made with, where rows are counted."""
        if self.population is None:
            return self
        counted = self.density(stages[0]) if len(stages) == 1 else stages[1].measurement
        return self.with_counts(counted.counts)

    @cached_property
    def law(self) -> Law:
        """How outcomes hang on f."""
        return law_of(self.outcome, self.bounds, self.middle)

    def features(self, best: Candidate) -> FloatArray:
        """(U, r) of what windows misjudge, if this is the best model."""
        spans = self.prior.spans(self.inputs.X)
        usual = self.prior.reference(spans, self.law.width, skew.REACH * max(1, len(spans)) ** 0.5)
        return skew.features(usual, best, self.inputs.X)

    def misjudged(
        self, stages: Sequence[Stage], settings: Sequence[Candidate], weights: FloatArray
    ) -> FloatArray | None:
        """(Q, Q) covariance of what windows misjudge in sums of these stages, in units that models learn."""
        if not self.skews:
            return None
        features = self.features(settings[0])
        noise = float(weights @ [one.noise for one in settings])
        return skew.covariance([stage.misjudged(features, noise) for stage in stages])

    @property
    def rows_each(self) -> FloatArray | None:
        """(U,) how many rows the people have whose rows are at each input; None if everybody has one."""
        if self.cells is not None or self.people is None:
            return None if self.cells is None else self.cells.own
        return self.people.rows_at(self.inputs.groups)

    @property
    def factor(self) -> FloatArray | float:
        """(U,) what the noise variance is multiplied by at each input, as people count."""
        if self.population is not None:
            each = float(self.inputs.counts.sum()) / self.population.size
            return float(times_noise(max(each, 1.0), self.within))
        return 1.0 if self.rows_each is None else times_noise(self.rows_each, self.within)

    @property
    def limits(self) -> tuple[Limits, Limits]:
        """The bounds: two numbers, or one pair for each distinct row."""
        gp = None if self.inputs.windows is None else self.prior.gp
        return self.bounds if gp is None else gp.limits_of(self.inputs)

    @property
    def middle(self) -> float:
        """What f is counted from: a known model's mean, or the middle of where it is expected."""
        if self.prior.gp is not None:
            return self.prior.gp.level
        low, high = self.latent
        return low + (high - low) / 2

    @property
    def latent(self) -> tuple[float, float]:
        """Between which values f is expected: the bounds, if outcomes are f and noise."""
        return self.outcome.latent(self.bounds)

    @property
    def shares(self) -> tuple[float, ...]:
        """The schedule: each stage's share of mu squared."""
        return self.certificate.shares

    def shares_of(self, number: int, spread: bool, shares: Sequence[float]) -> tuple[float, float]:
        """A stage's shares of mu squared: for its measurements, and for the noise level."""
        part = shares[number] * staging.SCALE_SHARE if spread else 0.0
        return shares[number] - part, part

    def statistic(self, lower: Limits, upper: Limits) -> Statistic:
        """What stages measure of outcomes within these limits."""
        return for_outcomes((lower, upper), self.outcome.curves, self.population is not None)

    def all_stages(self, own: Sequence[Stage]) -> list[Stage]:
        """Those of the earlier releases, and then these that measure sums of outcomes: that tell of f."""
        own = own if self.population is None else own[1:]
        sums = [stage for stage in own if not stage.counts_bins]
        return [*(stage for given in self.given for stage in given.stages), *sums]

    def shape(self, own: Sequence[Stage]) -> shape.Shape | None:
        """Where outcomes fell, if the last of these stages counts that."""
        if not (own and own[-1].counts_bins):
            return None
        m, rows = own[-1].measurement, float(own[-1].measurement.counts.sum())
        clustered = float(np.sum(m.counts * self.factor)) / rows
        counts = own[-1].z.astype(np.float64) * m.step
        return shape.Shape(counts, m.noise_scale**2, rows, clustered)

    def session(self, start: State | None = None) -> Session:
        """From stage to stage by this rule."""
        return Session(self, start)

    def has_windows(self, number: int) -> bool:
        """Whether a stage's outcomes are clipped more narrowly than to the bounds."""
        if self.measures_bins(number):
            return False
        if self.population is not None:
            return number > 0
        return self.kappa is not None and (number > 0 or bool(self.given))

    @property
    def skews(self) -> bool:
        """Whether outcomes may be others than its windows take them for."""
        return self.prior.gp is None and self.law.exact and self.population is None

    def measures_noise(self, number: int) -> bool:
        """Whether a stage measures the noise level, for which something must be known of the mean."""
        learns = self.prior.gp is None and self.outcome.scattered and not self.measures_bins(number)
        return learns and (number > (self.population is not None) or bool(self.given))

    @property
    def measures_shape(self) -> bool:
        """Whether the last stage counts where outcomes fell."""
        return self.prior.gp is None and self.outcome.shaped

    def measures_bins(self, number: int) -> bool:
        """Whether this is that stage."""
        return self.measures_shape and number == len(self.shares) - 1

    @property
    def sum_shares(self) -> tuple[float, ...]:
        """The shares of stages that measure sums of outcomes."""
        return self.shares[self.population is not None : len(self.shares) - self.measures_shape]

    def check(self, stages: Sequence[Stage]) -> None:
        """Raise unless these stages, exactly, and those to come keep the promise: theorem 17.

        That each has the noise that it says, the private room checks.
        """
        c, parts = self.certificate, [part for stage in stages for part in stage.parts]
        if not sum(part.n_measurements for part in parts) <= c.n_measurements:
            raise AssertionError("stages release more numbers than were counted")
        # "not <=" rather than ">": it must fail for NaN too.
        if not (min(c.shares) > 0 and math.fsum(c.shares) <= 1 + _ROUNDING):
            raise AssertionError("stages have more than all of the promise between them")
        if not total_delta(c.mu, c.epsilon, c.delta, c.n_measurements) <= c.delta:
            raise AssertionError("noise of all stages is too small for (epsilon, delta)")
        if not sum(Fraction(part.mu()) ** 2 for part in parts) <= Fraction(c.mu) ** 2:
            raise AssertionError("stages spend more than was promised")


def unlabelled(counts: FloatArray) -> Groups:
    """Rows of which only estimated counts are known."""
    return Groups(np.empty(0, dtype=np.intp), counts)  # type: ignore[arg-type]


def density_prior(population: Population) -> DensityPrior:
    """What is believed beforehand of how many rows the cells of a public grid have."""
    people, k = population.size, population.each
    # Everyone has a row, and no more than k: a number anywhere between.
    return DensityPrior(population.grid, people * (1 + k) / 2, people * (k - 1) / np.sqrt(12))


def grid_inputs(population: Population) -> Inputs:
    """The cells of a public grid, before rows are counted: each has as many as the others."""
    counts = np.full(len(population.grid), density_prior(population).level)
    return Inputs(population.grid.centres, 0.0, unlabelled(counts))


class Session:
    """From stage to stage."""

    def __init__(self, rule: Rule, start: State | None = None) -> None:
        self.rule = rule
        self.mixture = self._mixture()
        # What was given changes which models the mixture still holds, and so is always taken anew.
        self.state: State = self.mixture.start() if start is None or rule.given else start
        self.answered: list[Stage] = []
        self.density: Density | None = None
        """Of the rows, once they are counted, where that is done."""
        self.spreads: list[SpreadReading] = []
        self.learn(*rule.all_stages(()))

    def _mixture(self) -> Mixture:
        rule, inputs = self.rule, self.rule.inputs
        given = rule.X_star, rule.law, rule.support, rule.factor, rule.rows_each, rule.outcome.curves
        return Mixture(rule.prior, inputs.X, inputs.counts, *given)

    def readings(self, state: State) -> Readings:
        """What all stages that were answered say of each f, about a state of what is known."""
        if self.rule.law.exact:
            each = [stage.reading(self.rule.middle) for stage in self.answered]
            if not self.rule.skews:
                return [each]
            features = self.features(state)
            moved = (stage.misjudged(features, state.noise) for stage in self.answered)
            return [[replace(one, skew=own) for one, own in zip(each, moved, strict=True)]]
        return [
            [self._linked(one, stage.measurement, stage.curves[place]) for stage in self.answered]
            for place, one in enumerate(state.each)
        ]

    def features(self, state: State) -> FloatArray:
        """(U, r) of what windows misjudge, by the best model so far."""
        settings = state.settings or self.mixture.believed()[0]
        return self.rule.features(settings[0])

    def _linked(self, state: State, m: Measurement, z: IntArray) -> Reading:
        same = np.ones(len(self.mixture.counts))
        stage = self.stage(m.lower * same, m.upper * same, 1.0, state)
        rows = m.real_matrix()
        value = (z - m.midpoint).astype(np.float64) * m.step
        value = value + rows @ (m.counts * m.statistic.origin)
        return stage.reading(rows, value, m.noise_scale**2 * np.eye(len(rows)))

    def windows(self) -> Window:
        """(U,) lower and upper edges for the next stage, if it has windows, in y's unit.

        Of private rows, the bounds, while nothing is known of outcomes.
        """
        if self.rule.kappa is None or (self.rule.population is not None and not self.answered):
            same = np.ones(len(self.rule.inputs))
            return frozen(self.rule.bounds[0] * same), frozen(self.rule.bounds[1] * same)
        law, (low, high) = self.rule.law, self.rule.bounds
        a, b = staging.windows(self.state, law, self.rule.kappa)
        lower = np.where(a <= law.centred[0], low, law.origin + a)
        upper = np.where(b >= law.centred[1], high, law.origin + b)
        return frozen(lower), frozen(upper)

    def stage(self, lower: Limits, upper: Limits, mu: float, state: State | None = None) -> staging.Stage:
        """What can be said of the next stage, with these windows, before its measurement is known."""
        law, same = self.rule.law, np.ones(len(self.mixture.counts))
        window = (lower - law.origin) * same, (upper - law.origin) * same
        state = self.state if state is None else state
        # A label that changes moves the sums of two classes: lemma 22.
        mu = mu / math.sqrt(2) if self.rule.outcome.curves > 1 else mu
        stage = staging.Stage(state, window, law, mu, self.rule.weights)
        stage.errors = None if self.density is None else self.density.errors
        if self.rule.population is not None and self.rule.outcome.curves > 1:
            stage.origin = np.full(
                len(stage.origin), 1 / self.rule.outcome.curves
            )  # as near as integers allow
        return stage

    def line(self, stage: staging.Stage, rows: FloatArray) -> Line:
        """What the stage's windows do to sums with these rows; where these are negative, outside."""
        clip, middle, n = stage.clip, self.rule.law.origin, self.mixture.counts
        shift = rows @ (n * (clip.centre - clip.slope * self.state.mean + middle * (1 - clip.slope)))
        return Line(frozen(clip.slope), frozen(shift), frozen(stage.extra(rows)))

    def tails(self, number: int, stage: staging.Stage, outside: Outside) -> FloatArray:
        """(o, U) what to measure of what a stage's windows cut off, over what that is worth; or no rows."""
        rule, none = self.rule, np.zeros((0, len(stage.unit)))
        if not (rule.skews and rule.has_windows(number)):
            return none
        rows = stage.tails(self.features(self.state), outside.full)[:MOST_OUTSIDE]
        rows = np.where(outside.nothing, 0.0, rows)
        return rows if rows.any() else none

    def distances(self) -> tuple[FloatArray, float]:
        """From where distances of outcomes are measured, for the noise level, and up to how far."""
        law = self.rule.law
        mean = staging.foreseen(self.state, law)[0]
        return law.origin + mean, staging.scale_limit(self.state, law)

    def bins(self) -> Bin:
        """In which bins outcomes fall, by what was answered so far."""
        law = shape.of_training_outcomes(self.state, self.readings(self.state)[0])
        low, high = self.rule.bounds
        edges, atoms = law.edges(low - self.rule.law.origin, high - self.rule.law.origin)
        return Bin(low, high, edges=frozen(edges), atoms=frozen(atoms))

    def next_stage(self, number: int) -> Stage:
        """The plan of a stage, from all that was answered before it."""
        rule, population = self.rule, self.rule.population
        share, spread_share = rule.shares_of(number, rule.measures_noise(number), rule.shares)
        mu, each = self._mu_of(share), 1 if population is None else population.each
        if population is not None and number == 0:
            B = density_prior(population).design(_TWICE * each**2 / mu**2)
            return Stage(self._measured(B, Present(), share))
        if rule.measures_bins(number):
            return Stage(self._measured(np.ones((1, len(rule.inputs))), self.bins(), share))
        narrow = rule.has_windows(number)
        limits: tuple[Limits, Limits] = self.windows() if narrow else rule.bounds
        stage = self.stage(*limits, mu / each)
        rows, outside = stage.rows(), None
        cut_off = Outside(*limits, bounds=rule.bounds)
        tails = self.tails(number, stage, cut_off)
        if len(tails):
            part = share * stage.outside_share(rows, tails, self.features(self.state))
            share -= part
            outside = self._measured(tails * cut_off.worth, cut_off, part)
        m = self._measured(rows * (stage.window[1] - stage.window[0]), rule.statistic(*limits), share)
        made = Stage(m, outside=outside)
        if narrow:
            made = replace(made, line=self.line(stage, made.rows))
        if not spread_share:
            return made
        centre, limit = self.distances()
        distance = Distance(*rule.bounds, centre=frozen(centre), limit=limit)
        return replace(made, spread=self._measured(np.ones((1, len(centre))), distance, spread_share))

    def _mu_of(self, share: float) -> float:
        """What a part may spend: a hair less than its share, so that no rounding adds up to more than all."""
        return self.rule.certificate.mu * math.sqrt(share) * (1 - _ROUNDING)

    def _measured(self, B: FloatArray, statistic: Statistic, share: float) -> Measurement:
        """Columns and a statistic in integers, with noise for this share of the promise."""
        rule, c = self.rule, self.rule.certificate
        return measurement_of(
            B,
            statistic,
            c.epsilon,
            c.delta,
            self._mu_of(share),
            # Which row is in which cell of a grid is private, and how many are in each, until it is counted.
            groups=rule.inputs.groups if rule.population is None or self.density is not None else None,
            people=rule.people,
            population=rule.population,
            part=Part(share, c.n_measurements),
            any_near=True,
        )

    def learn(self, *stages: Stage) -> None:
        """Learn from the answers of stages, of all together."""
        before = len(self.answered)
        for stage in stages:
            self.note(stage)
        if len(self.answered) > before:
            self.state = self.mixture.follow(self.readings, self.spreads, self.state)

    def note(self, stage: Stage) -> None:
        """Keep a stage's answer, to learn from it later; of counts of rows there is no later."""
        if self.rule.population is not None and self.density is None:
            self.density = self.rule.density(stage)
            self.rule = self.rule.with_counts(self.density.counts)
            self.mixture = self._mixture()
            self.state = self.mixture.start()
            return
        if stage.counts_bins:
            return
        self.answered.append(stage)
        spread = stage.spread_reading(self.rule.law.origin)
        if spread is not None and spread.counts[self.mixture.support.sampled].any():
            self.spreads.append(spread)
