"""One stage of a release that is made in several: what it measures, and the walk from one to the next.

A stage is planned from what the stages before it made public, and from nothing else: windows close in on
where outcomes are expected, and the measurement is designed for what is still unknown. So all of this file is
public, and anybody who holds the answers can walk again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from cloakgp.calibration import total_delta
from cloakgp.checks import FloatArray, frozen
from cloakgp.files import container
from cloakgp.files.container import Array
from cloakgp.measurements.lattice import IntArray, Limits, Measurement, Part, to_integers
from cloakgp.measurements.spread import Spread, make_spread
from cloakgp.measurements.whole_rows import Counts, RowSums
from cloakgp.model.hyperprior import Hyperprior, Known
from cloakgp.model.outcome import CLASSES, LINKS, REAL, Label
from cloakgp.posterior import staging
from cloakgp.posterior.classes import ClassMixture, ClassState, together
from cloakgp.posterior.conditioning import Line
from cloakgp.posterior.linking import Linked
from cloakgp.posterior.mixture import Mixture, Reading, SpreadReading, State
from cloakgp.rows.cells import Cells
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import TableRows
from cloakgp.rows.merging import Groups, Inputs
from cloakgp.rows.people import People, distinct_rows, times_noise

_ROUNDING = 1e-13  # far above the rounding errors in a dozen shares, far below what noise could show


@dataclass(frozen=True, eq=False)
class StagePlan:
    """What a stage will measure: public, and fixed before y is read."""

    measurement: Measurement
    spread: Spread | None
    """One more number, for the noise level; not in a first stage."""
    line: Line | None
    """What its windows do to outcomes; None where they are the bounds."""

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """What is measured, in the order of the answer."""
        return (self.measurement,) if self.spread is None else (self.measurement, self.spread)

    @property
    def n_measurements(self) -> int:
        return sum(part.n_measurements for part in self.parts)

    @property
    def mu_squared(self) -> float:
        """What it spends."""
        return sum(part.mu() ** 2 for part in self.parts)

    def described(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """As words and arrays."""
        m, s = self.measurement, self.spread
        arrays: dict[str, Any] = {"matrix": m.matrix}
        if isinstance(m, RowSums) and not isinstance(m, Counts):
            arrays["counts"] = m.estimated
        if self.line is not None:
            arrays |= {"lower": m.lower, "upper": m.upper}
            arrays |= {"slope": self.line.slope, "shift": self.line.shift, "extra": self.line.extra}
        words: dict[str, Any] = {**_lattice_words(m), "windows": self.line is not None, "spread": None}
        if s is not None:
            words["spread"] = {**_lattice_words(s), "limit": s.limit}
            arrays["centre"] = s.centre
        return words, {name: np.asarray(array) for name, array in arrays.items()}

    def to_bytes(self) -> bytes:
        """For a ledger, which keeps it until the stage is answered."""
        return container.pack(*self.described())

    @classmethod
    def from_bytes(cls, contents: bytes, rule: Rule, number: int) -> StagePlan:
        """What :meth:`to_bytes` wrote."""
        words, arrays, _ = container.unpack(contents)
        return rule.stage_plan(words, arrays, number)

    @classmethod
    def from_described(
        cls,
        words: dict[str, Any],
        arrays: dict[str, Array],
        promise: Promise,
        bounds: tuple[float, float],
        groups: Groups | None,
        number: int,
        people: People | None = None,
        *,
        unknown: bool = False,
        classes: int = 1,
    ) -> StagePlan:
        """What :meth:`described` gave; whatever it says, the private room checks the integers.

        Where a file holds only the people's digest (`unknown`), the sensitivity is the one that is claimed.
        """
        shares = promise.shares_of(number, words["spread"] is not None)
        low, high = bounds
        kept: dict[str, Any] = {"epsilon": promise.epsilon, "delta": promise.delta, "groups": groups}
        kept["people"] = people
        line = None
        if "slope" in arrays:
            line = Line(arrays["slope"], arrays["shift"], arrays["extra"])
        measurement = Measurement(
            matrix=arrays["matrix"],
            lower=arrays.get("lower", low),
            upper=arrays.get("upper", high),
            part=Part(shares[0], promise.most),
            declared=words["sensitivity_steps"] if unknown else 0,
            classes=classes,
            **lattice_of(words),
            **kept,
        )
        spread = None
        if words["spread"] is not None:
            spread = Spread(
                matrix=_equal_columns(words["spread"], len(arrays["centre"])),
                lower=low,
                upper=high,
                part=Part(shares[1], promise.most),
                declared=words["spread"]["sensitivity_steps"] if unknown else 0,
                centre=arrays["centre"],
                limit=words["spread"]["limit"],
                **lattice_of(words["spread"]),
                **kept,
            )
        return cls(measurement, spread, line)


def _lattice_words(m: Measurement) -> dict[str, Any]:
    names = ("y_bits", "matrix_bits", "sigma")
    return {name: getattr(m, name) for name in names} | {"sensitivity_steps": m.sensitivity()}


def lattice_of(words: dict[str, Any]) -> dict[str, Any]:
    """A lattice's numbers, out of words."""
    return {name: words[name] for name in ("y_bits", "matrix_bits", "sigma")}


def _equal_columns(words: dict[str, Any], n: int) -> IntArray:
    return frozen(np.full((1, n), 2 ** words["matrix_bits"], dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage that was answered: what it measured, in which windows, and what came out."""

    plan: StagePlan
    answer: IntArray
    """Noisy integers: all that this stage left behind of y."""

    @property
    def z(self) -> IntArray:
        """(q,) noisy measurements."""
        return self.answer[: self.plan.measurement.n_measurements]

    @property
    def curves(self) -> IntArray:
        """(K, q) those of each class, where outcomes are one of several; else one row."""
        return self.z.reshape(self.plan.measurement.classes, -1)

    @property
    def lower(self) -> float | FloatArray:
        """Lower edges of the windows, one for each distinct row of X; the bound in a first stage."""
        return self.plan.measurement.lower

    @property
    def upper(self) -> float | FloatArray:
        """Upper edges of the windows."""
        return self.plan.measurement.upper

    @property
    def mu(self) -> float:
        """What it spent."""
        return math.sqrt(self.plan.mu_squared)

    @property
    def distance(self) -> float | None:
        """Mean distance of outcomes from what was expected, with noise, if this stage measured it."""
        spread = self.plan.spread
        return None if spread is None else spread.mean_distance(self.answer[-1:])

    def reading(self, middle: float) -> Reading:
        """What it says of f less the middle of the bounds."""
        m, line = self.plan.measurement, self.plan.line
        rows, n = m.real_matrix(), m.counts
        edge = m.lower + (m.upper - m.lower) / 2
        value = (self.z - m.midpoint).astype(np.float64) * m.step
        covariance = m.noise_scale**2 * np.eye(len(rows))
        if line is None:
            return Reading(rows, np.ones(len(n)), value + rows @ (n * (edge - middle)), covariance)
        value = value - line.shift + rows @ (n * (edge - line.slope * middle))
        return Reading(rows, line.slope, value, covariance + line.extra)

    def spread_reading(self, middle: float) -> SpreadReading | None:
        """What it says of the noise level."""
        s, distance = self.plan.spread, self.distance
        if s is None or distance is None:
            return None
        return SpreadReading(s.centre - middle, s.limit, distance, s.std**2)


@dataclass(frozen=True)
class Promise:
    """What several stages keep together: Gaussian DP adds mu squared."""

    epsilon: float
    delta: float
    mu: float
    most: int
    """At most how many numbers will be released."""
    shares: tuple[float, ...]
    """Each stage's share of mu squared; they add up to 1."""

    def shares_of(self, number: int, spread: bool) -> tuple[float, float]:
        """A stage's shares of mu squared: for its measurements, and for the noise level."""
        share = self.shares[number]
        part = share * staging.SCALE_SHARE if spread else 0.0
        return share - part, part

    def mu_of(self, share: float) -> float:
        """What a part may spend: a hair less than its share, so that no rounding adds up to more than all."""
        return self.mu * math.sqrt(share) * (1 - _ROUNDING)

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise unless these stages, exactly, and those to come keep the promise: theorem 17.

        That each has the noise that it says, the private room checks.
        """
        parts = [part for stage in stages for part in stage.parts]
        if not sum(part.n_measurements for part in parts) <= self.most:
            raise AssertionError("stages release more numbers than were counted")
        # "not <=" rather than ">": it must fail for NaN too.
        if not (min(self.shares) > 0 and math.fsum(self.shares) <= 1 + _ROUNDING):
            raise AssertionError("stages have more than all of the promise between them")
        if not total_delta(self.mu, self.epsilon, self.delta, self.most) <= self.delta:
            raise AssertionError("noise of all stages is too small for (epsilon, delta)")
        if not sum(Fraction(part.mu()) ** 2 for part in parts) <= Fraction(self.mu) ** 2:
            raise AssertionError("stages spend more than was promised")


@dataclass(frozen=True, eq=False)
class Given:
    """An earlier release of the same outcomes: what it promised on its own, and what it answered."""

    promise: Promise
    bounds: tuple[float, float]
    stages: tuple[Stage, ...]
    dataset: str | None = None
    """Which of a ledger's data sets paid for it, if that is known."""


@dataclass(frozen=True, eq=False)
class Rule:
    """All that decides how stages follow from each other: public, and fixed before the first."""

    prior: Hyperprior | Known
    bounds: tuple[float, float]
    X: Any
    """(N, D) public inputs: an array, or what gives slices of one; None if only the digest is known."""
    X_star: FloatArray
    weights: FloatArray
    support: FloatArray | None
    """Inputs that stand for all, where there are many; None where each stands for itself."""
    promise: Promise
    kappa: float | None
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
    """The digest of who has which rows, if the promise is to people."""
    columns: Columns | None = None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None = None
    """Which rows of the table count."""
    outcome: str = REAL
    """What outcomes are."""
    classes: tuple[Label, ...] = ()
    """Of which classes, if these are named."""

    @property
    def n_curves(self) -> int:
        """How many functions there are: one for each of several classes."""
        return len(self.classes) if self.outcome == CLASSES else 1

    @cached_property
    def link(self) -> Linked | None:
        """How outcomes hang on f; None if they are f and noise."""
        return Linked(LINKS[self.outcome], self.bounds, self.middle) if self.outcome in LINKS else None

    @cached_property
    def inputs(self) -> Inputs:
        """X without its repetitions, or the cells that its rows belong to."""
        # A model's noise is one number here. What stands in its place is how many rows people have.
        return distinct_rows(self.X, self.people) if self.cells is None else self.cells.inputs

    @cached_property
    def rows_each(self) -> FloatArray | None:
        """(U,) how many rows the people have whose rows are at each input; None if everybody has one."""
        own = self.inputs.noise
        return own if isinstance(own, np.ndarray) else None

    @property
    def factor(self) -> FloatArray | float:
        """(U,) what the noise variance is multiplied by at each input, as people count."""
        return 1.0 if self.rows_each is None else times_noise(self.rows_each, self.within)

    def stage_plan(self, words: dict[str, Any], arrays: dict[str, Array], number: int) -> StagePlan:
        """What a stage's plan describes itself as."""
        kept = self.promise, self.bounds, self.inputs.groups, number, self.people
        unknown = bool(self.partition) and self.people is None
        return StagePlan.from_described(words, arrays, *kept, unknown=unknown, classes=self.n_curves)

    @property
    def middle(self) -> float:
        """What f is counted from: a known model's mean, or the middle of where it is expected."""
        if isinstance(self.prior, Known):
            return self.prior.gp.level
        low, high = self.latent
        return low + (high - low) / 2

    @property
    def latent(self) -> tuple[float, float]:
        """Between which values f is expected: the bounds, if outcomes are f and noise."""
        return LINKS[self.outcome].latent(self.bounds) if self.outcome in LINKS else self.bounds

    @property
    def n_stages(self) -> int:
        return len(self.promise.shares)

    def all_stages(self, own: Sequence[Stage]) -> list[Stage]:
        """Those of the earlier releases, and then these."""
        return [*(stage for given in self.given for stage in given.stages), *own]

    def walk(self, start: State | None = None) -> Walk:
        """From stage to stage by this rule."""
        return Walk(self, start)

    def has_windows(self, number: int) -> bool:
        """Whether a stage's outcomes are clipped more narrowly than to the bounds."""
        return self.kappa is not None and (number > 0 or bool(self.given))

    def measures_noise(self, number: int) -> bool:
        """Whether a stage measures the noise level, for which something must be known of the mean."""
        learns = not isinstance(self.prior, Known) and (self.link is None or self.link.link.windows)
        return learns and (number > 0 or bool(self.given))


class Walk:
    """From stage to stage."""

    def __init__(self, rule: Rule, start: State | None = None) -> None:
        self.rule = rule
        self.mixture = self._mixture()
        # What was given changes which models the mixture still holds, and so is always taken anew.
        self.state: State = self.mixture.start() if start is None or rule.given else start
        self.taken: list[Stage] = []
        self.spreads: list[SpreadReading] = []
        for stage in rule.all_stages(()):
            self.note(stage)
        if rule.given:
            self._learn()

    def _mixture(self) -> Mixture:
        rule, inputs = self.rule, self.rule.inputs
        width = rule.latent[1] - rule.latent[0]
        given = rule.X_star, width, rule.support, rule.factor, rule.rows_each, rule.link
        if rule.n_curves > 1:
            return ClassMixture(rule.n_curves, rule.prior, inputs.X, inputs.counts, *given)
        return Mixture(rule.prior, inputs.X, inputs.counts, *given)

    def readings(self, state: State) -> list[Reading]:
        """What all stages that were answered say of f, about a state of what is known."""
        if self.rule.link is None:
            return [stage.reading(self.rule.middle) for stage in self.taken]
        if not isinstance(state, ClassState):
            return [self._linked(state, stage.plan.measurement, stage.z) for stage in self.taken]
        return [
            together(
                [self._linked(*own) for own in zip(state.each, repeat(stage.plan.measurement), stage.curves)]
            )
            for stage in self.taken
        ]

    def _linked(self, state: State, m: Measurement, z: IntArray) -> Reading:
        same = np.ones(len(self.mixture.counts))
        stage = self.stage(m.lower * same, m.upper * same, 1.0, state)
        rows = m.real_matrix()
        value = (z - m.midpoint).astype(np.float64) * m.step
        origin = m.origin if isinstance(m, RowSums) else m.lower + (m.upper - m.lower) / 2
        value = value + rows @ (m.counts * origin)
        return stage.reading(rows, value, m.noise_scale**2 * np.eye(len(rows)))

    @property
    def _centred(self) -> tuple[float, float]:
        """The bounds, less what outcomes are counted from."""
        return self.rule.bounds[0] - self._from, self.rule.bounds[1] - self._from

    @property
    def _from(self) -> float:
        """What outcomes are counted from: as f is, if they are f and noise."""
        return self.rule.middle if self.rule.link is None else 0.0

    def windows(self) -> tuple[FloatArray, FloatArray]:
        """(U,) lower and upper edges for the next stage, if it has windows, in y's unit."""
        (low, high), middle, centred = self.rule.bounds, self._from, self._centred
        assert self.rule.kappa is not None
        a, b = staging.windows(self.state, centred, self.rule.kappa, self.rule.link)
        lower, upper = np.where(a <= centred[0], low, middle + a), np.where(b >= centred[1], high, middle + b)
        return frozen(lower), frozen(upper)

    def stage(self, lower: Limits, upper: Limits, mu: float, state: State | None = None) -> staging.Stage:
        """What can be said of the next stage, with these windows, before its measurement is known."""
        middle, same = self._from, np.ones(len(self.mixture.counts))
        window = (lower - middle) * same, (upper - middle) * same
        state = self.state if state is None else state
        # A label that changes moves the sums of two classes: lemma 22.
        mu = mu / math.sqrt(2) if self.rule.n_curves > 1 else mu
        return staging.Stage(state, window, self._centred, mu, self.rule.weights, self.rule.link)

    def line(self, stage: staging.Stage, m: Measurement) -> Line:
        """What the stage's windows do to its measurement."""
        rows, clip, middle = m.real_matrix(), stage.clip, self._from
        shift = rows @ (m.counts * (clip.centre - clip.slope * self.state.mean + middle * (1 - clip.slope)))
        return Line(frozen(clip.slope), frozen(shift), frozen(stage.extra(rows)))

    def distances(self) -> tuple[FloatArray, float]:
        """From where distances of outcomes are measured, for the noise level, and up to how far."""
        low, high = self.rule.bounds
        mean = staging.foreseen(self.state, self.rule.link)[0]
        return self._from + mean, staging.scale_limit(self.state, high - low, self.rule.link)

    def next_stage(self, number: int) -> StagePlan:
        """The plan of a stage, from all that was answered before it."""
        rule, promise, groups = self.rule, self.rule.promise, self.rule.inputs.groups
        narrow = rule.has_windows(number)
        share, spread_share = promise.shares_of(number, rule.measures_noise(number))
        mu = promise.mu_of(share)
        limits: tuple[Limits, Limits] = self.windows() if narrow else rule.bounds
        stage = self.stage(*limits, mu)
        B = stage.rows() * (stage.window[1] - stage.window[0])
        kept, part = (promise.epsilon, promise.delta), Part(share, promise.most)
        more: Any = {"part": part, "people": rule.people, "classes": rule.n_curves, "any_near": True}
        m = to_integers(B, limits, *kept, mu, groups=groups, **more)
        line = self.line(stage, m) if narrow else None
        if not spread_share:
            return StagePlan(m, None, line)
        spread_mu, part = promise.mu_of(spread_share), Part(spread_share, promise.most)
        spread = make_spread(*self.distances(), rule.bounds, groups, *kept, spread_mu, part, rule.people)
        return StagePlan(m, spread, line)

    def take(self, stage: Stage) -> None:
        """Learn from a stage's answer."""
        self.note(stage)
        self._learn()

    def _learn(self) -> None:
        if self.rule.link is None:
            self.state = self.mixture.fit(self.readings(self.state), self.spreads)
        else:
            self.state = self.mixture.follow(self.readings, self.spreads, self.state)

    def note(self, stage: Stage) -> None:
        """Keep a stage's answer, to learn from it later."""
        self.taken.append(stage)
        spread = stage.spread_reading(self._from)
        if spread is not None:
            self.spreads.append(spread)
