"""Predict from releases of several custodians, who hold outcomes of different people, all about one f.

Given f, what one custodian measured does not depend on what another did. So their rows stand side by side:
each measurement has its columns for its custodian's rows and zeros for all others, sets hang together through
f alone, and noise belongs to one set. Nothing here sees any y: ``docs/proofs.md``, theorem 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.measurements.lattice import Limits
from cloakgp.measurements.whole_rows import RowSums
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known
from cloakgp.model.windows import RowMeans
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.predictions import Release
from cloakgp.plans.remodelling import LARGEST, written_out
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.stages import Stage, StagePlan
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.posterior.conditioning import Line, Posterior
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.mixture import Mixture, SpreadReading
from cloakgp.posterior.support import support_points
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.columns import Columns, common
from cloakgp.rows.merging import Groups, Inputs, take
from cloakgp.rows.people import times_noise

AnyRelease = Release | FunctionRelease | StagedRelease
LEARN = "learn"
_GIVE = "Give model= a GP that all are conditioned on, or 'learn'."


@one_blas_thread()
def pooled(releases: Sequence[AnyRelease], model: Any = None) -> Posterior | Learned:
    """The model given releases of disjoint data sets: see :func:`cloakgp.combine`."""
    if len(releases) < 2:
        raise ArgumentError("releases", "must hold at least two releases, of different data sets")
    sets = [_as_set(release, f"releases[{i}]") for i, release in enumerate(releases)]
    _check_boxes(releases)
    _check_apart(sets)
    columns = common(release.plan.columns for release in releases)
    model = _chosen(model, releases)
    joint = _Joint(sets, columns)
    return joint.given(joint.model(model)) if isinstance(model, GP) else joint.learned(model)


@dataclass(frozen=True, eq=False)
class _Set:
    """What one custodian published: where rows are, and what was measured of them."""

    X: FloatArray  # (U, D)
    counts: FloatArray  # (U,): rows at each; estimates, where whole rows are private
    bounds: tuple[float, float]
    stages: tuple[Stage, ...]
    factor: FloatArray
    """(U,) what the noise variance is multiplied by, as people with several rows count."""
    datasets: frozenset[str]
    """Those of a ledger that paid, as far as they are known."""


def _as_set(release: Any, name: str) -> _Set:
    if not isinstance(release, AnyRelease):
        raise ArgumentTypeError(name, "must be a release", type(release).__name__)
    if release.certificate.insecure:
        raise ArgumentError(
            name,
            "must be a private release",
            "an INSECURE one",
            "Its noise came from a seed, so that what follows from it would not be private either.",
        )
    paid = frozenset() if release.receipt is None else frozenset({release.receipt.dataset})
    if isinstance(release, StagedRelease):
        rule = release.rule
        if rule.link is not None:
            remedy = "Predict from each, and weigh the predictions by their std."
            raise ArgumentError(name, "must be of real outcomes to be combined", rule.outcome, remedy)
        counts = rule.inputs.counts
        paid |= {given.dataset for given in rule.given if given.dataset is not None}
        stages = tuple(rule.all_stages(release.stages))
        factor = rule.factor * np.ones(len(counts))
        return _Set(np.asarray(rule.inputs.X, dtype=np.float64), counts, rule.bounds, stages, factor, paid)
    if release.plan.X is None:
        raise ArgumentError(
            name,
            "must show its inputs X, which say where its rows are",
            "a release that hides them" if release.plan.hides_inputs else "a file that holds their digest",
            "Ask its custodian for one that shows them, or for one in stages (AutoGP), which holds enough of "
            "them whatever its size.",
        )
    X, m = written_out(release.plan)
    inputs = take(X, 0.0, m.groups)
    stage = Stage(StagePlan(m, None, None), release.z)
    factor, people = np.ones(len(inputs)), m.people
    if people is not None:
        own = people.own if m.groups is None else people.own[m.groups.first]
        factor = times_noise(own, release.plan.within or 0.0)
    return _Set(inputs.X, inputs.counts, release.plan.gp.limits, (stage,), factor, paid)


def _check_boxes(releases: Sequence[AnyRelease]) -> None:
    """Raise where boxes over private inputs differ in names, levels or dates: a column would be two."""
    columns = [
        [(axis.name, axis.levels, axis.origin) for axis in release.plan.grid.axes]
        for release in releases
        if isinstance(release, RowsRelease)
    ]
    if any(other != columns[0] for other in columns):
        raise ArgumentError(
            "releases",
            "must have grids with the same inputs, and the same levels, in one order",
            remedy="Ranges and cells may differ. Ask a custodian to plan again with the others' names.",
        )


def _check_apart(sets: Sequence[_Set]) -> None:
    """Raise where two sets are seen to be the same people's, or cannot be about one f."""
    for (i, one), (j, other) in combinations(enumerate(sets), 2):
        names = f"releases[{i}] and releases[{j}]"
        if one.X.shape[1] != other.X.shape[1]:
            raise ArgumentError(
                "releases",
                "must all have the same columns of X",
                f"{one.X.shape[1]} columns in releases[{i}] and {other.X.shape[1]} in releases[{j}]",
            )
        if any(_same(a, b) for a in one.stages for b in other.stages):
            raise ArgumentError("releases", "must be different", f"one twice: {names} hold the same answer")
        if shared := one.datasets & other.datasets:
            raise ArgumentError(
                "releases",
                "must be of data sets that share nobody",
                f"{names}, which the ledger's data set {sorted(shared)[0]!r} paid for both",
                "For several releases of one data set, leave same_data=False out, or plan the later one with "
                "given=.",
            )


def _same(one: Stage, other: Stage) -> bool:
    a, b = one.plan.measurement.matrix, other.plan.measurement.matrix
    return np.array_equal(one.answer, other.answer) and np.array_equal(a, b)


def _chosen(model: Any, releases: Sequence[AnyRelease]) -> GP | Hyperprior:
    """The model that is asked for; or the one that all releases have."""
    believed = [_believed(release) for release in releases]
    open_ones = [one for one in believed if isinstance(one, Hyperprior)]
    if isinstance(model, Hyperprior):
        return model
    learn = isinstance(model, str) and model == LEARN
    if learn and not open_ones:
        columns = releases[0].plan.columns
        return Hyperprior(categories=() if columns is None else columns.categories)
    if learn or (model is None and open_ones):
        if any(one != open_ones[0] for one in open_ones):
            raise ArgumentError(
                "model",
                "must be given",
                "releases that learned from different hyperpriors",
                "Give model=cloakgp.Hyperprior(...) to learn from all of them.",
            )
        return open_ones[0]
    if model is None:
        return _common([one for one in believed if isinstance(one, GP)])
    if not isinstance(model, GP):
        raise ArgumentTypeError(
            "model",
            "must be a cloakgp.GP, a cloakgp.Hyperprior or 'learn'",
            repr(model) if isinstance(model, str) else type(model).__name__,
        )
    per_row = isinstance(model.mean, RowMeans) and model.mean.function is None
    arrays = (model.noise, model.mean, *model.bounds)
    if (
        per_row
        or model.downweight is not None
        or any(isinstance(one, np.ndarray) for one in arrays)
        or callable(model.noise)
    ):
        raise ArgumentError(
            "model",
            "must have one noise variance and a mean and bounds that are numbers or functions of X",
            "something per row, or a downweight",
            "The rows of all sets together are no X that a number per row could belong to.",
        )
    return model


def _believed(release: AnyRelease) -> GP | Hyperprior:
    if not isinstance(release, StagedRelease):
        return release.plan.gp
    prior = release.plan.rule.prior
    return prior.gp if isinstance(prior, Known) else prior


def _common(models: Sequence[GP]) -> GP:
    """The one model of all; with inducing inputs, on those of all."""
    first = models[0]
    for name in ("noise", "mean"):
        if not all(isinstance(getattr(gp, name), float) for gp in models):
            raise ArgumentError("model", "must be given", f"releases with a {name} for each row", _GIVE)
    for name in ("kernel", "noise", "mean", "approximation"):
        if any(getattr(gp, name) != getattr(first, name) for gp in models):
            raise ArgumentError("model", "must be given", f"releases whose models differ in {name}", _GIVE)
    if len({gp.inducing is None for gp in models}) > 1:
        raise ArgumentError("model", "must be given", "releases with and without inducing inputs", _GIVE)
    limits = min(gp.limits[0] for gp in models), max(gp.limits[1] for gp in models)
    if first.inducing is None:
        return replace(first, bounds=limits)
    inducing = np.unique(np.vstack([np.asarray(gp.inducing) for gp in models]), axis=0)
    return replace(first, bounds=limits, inducing=frozen(inducing))


class _Joint:
    """The rows of all sets, one set after the other, and all that was measured of them."""

    def __init__(self, sets: Sequence[_Set], columns: Columns | None = None) -> None:
        self.columns = columns
        self.X = np.vstack([one.X for one in sets])
        self.counts = np.concatenate([one.counts for one in sets])
        self.factor = np.concatenate([one.factor for one in sets])
        self.bounds = min(one.bounds[0] for one in sets), max(one.bounds[1] for one in sets)
        numbers = sum(stage.plan.measurement.n_measurements for one in sets for stage in one.stages)
        if numbers * len(self.X) > LARGEST:
            raise ArgumentError(
                "releases",
                "must be few enough for one matrix of all that they measured",
                f"{numbers} numbers about {len(self.X)} distinct rows",
            )
        # Rows with one label are next to each other: which row of y is which does not matter any more. Where
        # whole rows are private, counts are estimates, and there are no labels.
        whole = self.counts.astype(np.int64)
        labels = np.repeat(np.arange(len(self.X)), whole if np.array_equal(whole, self.counts) else 0)
        self.groups = Groups(labels, whole if len(labels) else self.counts)
        self.stages: list[Stage] = []
        self._spreads: list[tuple[Stage, slice]] = []
        start = 0
        for one in sets:
            own = slice(start, start + len(one.X))
            self.stages += [self._placed(stage, own) for stage in one.stages]
            self._spreads += [(stage, own) for stage in one.stages if stage.plan.spread is not None]
            start = own.stop

    def _placed(self, stage: Stage, own: slice) -> Stage:
        """The same with zero columns for the rows of other sets."""
        m, line = stage.plan.measurement, stage.plan.line
        matrix = np.zeros((len(m.matrix), len(self.X)), dtype=np.int64)
        matrix[:, own] = m.matrix
        lower, upper = self._wide(m.lower, own), self._wide(m.upper, own)
        m = replace(m, matrix=matrix, groups=self.groups, lower=lower, upper=upper, people=None)
        if isinstance(m, RowSums):
            m = replace(m, estimated=self.counts)
        if line is not None:
            slope = self._wide(line.slope, own)
            assert isinstance(slope, np.ndarray)
            line = Line(slope, line.shift, line.extra)
        return Stage(StagePlan(m, None, line), stage.z)

    def _wide(self, value: Limits, own: slice) -> Limits:
        """One for each row of all sets; what other sets' rows get is multiplied by zero."""
        if not isinstance(value, np.ndarray):
            return value
        wide = np.full(len(self.X), value[0])
        wide[own] = value
        return wide

    def model(self, gp: GP) -> GP:
        """The same model for these rows."""
        gp = gp.with_inducing(self.X)
        if any(callable(one) for one in (gp.mean, *gp.bounds)):
            if not len(self.groups.labels):
                said = "must have a mean and bounds that are numbers, where whole rows are protected"
                raise ArgumentError("model", said, "a function of X")
            return gp.at_rows(self.X[self.groups.labels])
        return gp

    def given(self, gp: GP) -> Posterior:
        """A GP given all that was measured."""
        released = [(stage.plan.measurement, stage.z) for stage in self.stages]
        lines = [stage.plan.line for stage in self.stages]
        inputs = Inputs(self.X, gp.noise * self.factor, self.groups)
        return Posterior(gp, self.X, released, lines, inputs, self.columns)

    def learned(self, prior: Hyperprior) -> Learned:
        """The mixture over a hyperprior's models, each given all that was measured."""
        low, high = self.bounds
        middle, counts = low + (high - low) / 2, self.counts
        support = support_points(self.X, None, prior.categories)
        mixture = Mixture(prior, self.X, counts, self.X[:1], high - low, support, self.factor)
        readings = [stage.reading(middle) for stage in self.stages]
        looked_at = mixture.support.looked_at
        spreads = [self._spread_reading(stage, own, middle) for stage, own in self._spreads]
        spreads = [one for one in spreads if one.counts is not None and one.counts[looked_at].any()]
        state = mixture.fit(readings, spreads)
        inducing = () if support is None else (support, "fitc")
        settings: tuple[Candidate, ...] = state.settings
        models = [GP(one.kernel, one.noise, self.bounds, middle, *inducing) for one in settings]
        with np.errstate(divide="ignore"):
            odds = np.log(state.weights / state.weights[0])
        weights, posteriors = frozen(state.weights), tuple(map(self.given, models))
        return Learned(settings, weights, frozen(odds), posteriors, self.columns)

    def _spread_reading(self, stage: Stage, own: slice, middle: float) -> SpreadReading:
        """What a stage says of the noise level, of its own set's rows only."""
        reading = stage.spread_reading(middle)
        assert reading is not None
        centre, counts = np.zeros(len(self.X)), np.zeros(len(self.X))
        centre[own], counts[own] = reading.centre, self.counts[own]
        return replace(reading, centre=centre, counts=counts)
