"""Several releases read together: of the same data, of different people's, or given to a plan.

Given f, what one custodian measured does not depend on what another did. So their rows stand side by side:
each measurement has its columns for its custodian's rows and zeros for all others, sets hang together through
f alone, and noise belongs to one set. Nothing here sees any y: ``docs/proofs.md``, theorem 18.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.cells import Cells
from cloakgp.data.columns import common
from cloakgp.data.merging import Groups, Inputs
from cloakgp.measure.measurement import Measurement
from cloakgp.measure.statistics import Limits
from cloakgp.measure.unit import Unit
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.model.outcome import Outcome
from cloakgp.model.windows import RowMeans
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.support import support_points
from cloakgp.release.plan import Plan
from cloakgp.release.reader import conditioned, learned_from, posterior_of
from cloakgp.release.readouts import DENOISED
from cloakgp.release.release import Release
from cloakgp.release.stages import Given, Rule, Stage, unlabelled

LARGEST = 2**27
"""Entries of the matrix of all that is read together."""
LEARN = "learn"
_GIVE = "Give model= a GP that all are conditioned on, or 'learn'."


def combine(
    releases: Iterable[Any],
    *,
    same_data: bool = True,
    model: GaussianProcess | Hyperprior | str | None = None,
) -> Posterior | Learned:
    """Condition one model on several releases: free, like all post-processing.

    Parameters
    ----------
    releases : iterable of releases
        Of the same y at the same X, under the same model, and not in stages (a plan takes ``given=`` for
        that). What they spent adds up as it does anyway. With ``same_data=False``, of any kinds.
    same_data : bool
        False if each is of other people's outcomes, all about one f: see ``docs/custodians.md``. Inputs,
        bounds, promises and models may differ then.
    model : GaussianProcess, Hyperprior or "learn", optional
        With ``same_data=False``, what all are conditioned on; with a hyperprior, a model is learned from all
        of them. If absent, the model that all have; learned, if one of them is.

    Returns
    -------
    Posterior or Learned
        With `predict`, `uncertainty` and `sample`. A mixture if the model is learned.
    """
    releases = as_list(releases, "releases")
    if not same_data:
        return _of_different_people(releases, model)
    if model is not None:
        remedy = "Releases of the same data have one model; or say same_data=False."
        raise ArgumentError("model", "is for releases of different data sets", remedy=remedy)
    if not releases:
        raise ArgumentError("releases", "must hold at least one release")
    for i, release in enumerate(releases):
        name = f"releases[{i}]"
        _check_release(release, name)
        plan, first = release.plan, releases[0].plan
        if not plan.alone:
            remedy = (
                "Those in stages cannot be combined if they are of the same data: plan another one with "
                "given=. If each is about other people, say same_data=False."
            )
            raise ArgumentTypeError(name, "must be of one stage that stands alone", remedy=remedy)
        if any(_same(release.stages, other.stages) for other in releases[:i]):
            raise ArgumentError("releases", "must be different; one is given twice, and would count twice")
        if not _alike(_rows_of(plan), _rows_of(first)):
            raise ArgumentError("releases", "must all be of the same data; these have different inputs X")
        if (plan.unit, plan.partition) != (first.unit, first.partition):
            expected = "must all protect the same: each row, or the same people with the same rows"
            raise ArgumentError("releases", expected)
        if not _alike(_model_of(plan), _model_of(first)):
            expected = "must all have the same kernel, noise, mean, bounds and inducing inputs"
            raise ArgumentError("releases", expected)
    rule = replace(first, columns=common(release.plan.columns for release in releases))
    stages = [release.stages[0] for release in releases]
    return posterior_of(first.gp, rule, stages, first.inputs)


def _rows_of(plan: Plan) -> tuple[Any, ...]:
    """What tells rows: X itself, or the cells that they are in."""
    return (plan.X, None) if plan.cells is None else (plan.cells.digest, plan.cells.centres)


def _model_of(plan: Plan) -> tuple[Any, ...]:
    gp, windows = plan.gp, plan.gp.windows  # which has bounds and mean where they differ from row to row
    limits = (*gp.limits, gp.level) if windows is None else windows
    return gp.kernel, gp.noise, gp.inducing, gp.approximation, limits


def _alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether words, numbers and arrays are the same."""
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True))


def _same(one: Sequence[Stage], other: Sequence[Stage]) -> bool:
    """Whether these are the very same answers, not only of the same data."""
    return len(one) == len(other) and all(
        np.array_equal(a.z, b.z) and np.array_equal(a.measurement.matrix, b.measurement.matrix)
        for a, b in zip(one, other, strict=True)
    )


def as_list(releases: Any, name: str) -> list[Any]:
    """Several releases, in a list or the like."""
    one = isinstance(releases, (Release, str)) or getattr(releases, "ndim", 1) == 0
    if one or not isinstance(releases, Iterable):
        raise ArgumentTypeError(name, "must be a list of releases", type(releases).__name__)
    return list(releases)


def _check_release(release: Any, name: str, private: bool = False) -> None:
    if not isinstance(release, Release):
        raise ArgumentTypeError(name, "must be a release", type(release).__name__)
    if not len(release.plan.inputs):
        expected = "must show its inputs X, which say where its rows are"
        remedy = "Ask its custodian for one that does, or for one in stages (AutoGP), which holds enough."
        raise ArgumentError(name, expected, "a release that hides them", remedy)
    if private and release.certificate.insecure:
        remedy = "Its noise came from a seed, so that what follows from it would not be private either."
        raise ArgumentError(name, "must be a private release", "an INSECURE one", remedy)


# ------------------------------------------------------------------------------- given to a plan


def earlier_releases(
    releases: Any, X: FloatArray, groups: Groups | None, unit: Unit, partition: str, outcome: Outcome
) -> tuple[Given, ...]:
    """What each release promised and answered; or an error that says why it cannot be taken into account."""
    found: list[Given] = []
    for number, release in enumerate(as_list(releases, "given")):
        name = f"given[{number}]"
        _check_release(release, name, private=True)
        plan = release.plan
        if plan.function is not None:
            raise ArgumentError(name, "must be a release of predictions", "one of a whole function")
        if plan.unit != unit.name:
            raise ArgumentError(name, f"must protect the same unit, {unit.name}", plan.unit)
        if plan.outcome.name != outcome.name:  # what its windows do to outcomes is told in units of another f
            raise ArgumentError(name, f"must be of {outcome.plural}, as the plan is", plan.outcome.name)
        if release.classes != outcome.labels:
            raise ArgumentError(name, f"must be of {outcome.labels}, as the plan is", f"{release.classes}")
        if plan.partition != partition:
            raise ArgumentError(name, "must be of the same people, with the same rows each; its are others")
        if plan.X is None or not np.array_equal(np.asarray(plan.X), np.asarray(X)):
            raise ArgumentError(name, "must be of the same rows; its X is another one, or not shown")
        dataset = None if release.receipt is None else release.receipt.dataset
        answered = tuple(_as_earlier(stage) for stage in release.stages if not stage.counts_bins)
        c = plan.certificate
        promise = c.epsilon, c.delta, c.mu, c.n_measurements, c.shares
        one = [*plan.given, Given(*promise, plan.bounds, answered, dataset)]
        if any(_same(one[-1].stages, other.stages) for other in found):
            raise ArgumentError("given", "must hold different releases; one is there twice")
        if not all(_same_rows(stage.measurement.groups, groups) for given in one for stage in given.stages):
            raise ArgumentError(
                name,
                "must treat the same rows alike",
                "a release that does not",
                "Those with equal inputs are, and of very many those in one cell, by AutoGP alone.",
            )
        found += [given for given in one if not any(_same(given.stages, other.stages) for other in found)]
    if len({given.dataset for given in found if given.dataset is not None}) > 1:
        raise ArgumentError("given", "must be of one data set; different ones paid for these")
    return tuple(found)


def _as_earlier(stage: Stage) -> Stage:
    """A stage as a model reads it, however else it could be."""
    # Outcomes are taken to lie within given windows.
    line = stage.bent if isinstance(stage.lower, np.ndarray) else stage.line
    return replace(stage, line=line, readout=DENOISED)


def _same_rows(one: Groups | None, other: Groups | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one.labels, other.labels)


# ---------------------------------------------------------------------------- of different people


@one_blas_thread()
def _of_different_people(releases: Sequence[Release], model: Any) -> Posterior | Learned:
    """The model given releases of disjoint data sets."""
    if len(releases) < 2:
        raise ArgumentError("releases", "must hold at least two releases, of different data sets")
    sets = [_as_set(release, f"releases[{i}]") for i, release in enumerate(releases)]
    _check_apart(sets)
    columns = common(release.plan.columns for release in releases)
    model = _chosen(model, releases)
    joint, stages = _joint(sets, replace(releases[0].rule, columns=columns))
    if isinstance(model, GaussianProcess):
        return conditioned(_for_rows(model, joint.inputs), joint, stages)
    support = support_points(joint.inputs.X, None, model.categories)
    session = replace(joint, prior=model, support=support).session()
    session.learn(*stages)
    return learned_from(session.rule, stages, session.state.settings, frozen(session.state.weights))


class _Set(NamedTuple):
    """What one custodian published: where rows are, and what was measured of them."""

    inputs: Inputs
    """With what the noise variance is multiplied by in place of it, as people with several rows count."""
    bounds: tuple[float, float]
    stages: Sequence[Stage]
    datasets: set[str]
    """Those of a ledger that paid, as far as they are known."""


def _as_set(release: Any, name: str) -> _Set:
    _check_release(release, name, private=True)
    rule = release.rule
    if rule.outcome.link is not None:
        remedy = "Predict from each, and weigh the predictions by their std."
        raise ArgumentError(name, "must be of real outcomes to be combined", rule.outcome.name, remedy)
    paid = {given.dataset for given in rule.given if given.dataset is not None}
    paid |= set() if release.receipt is None else {release.receipt.dataset}
    inputs = replace(rule.inputs, noise=rule.factor * np.ones(len(rule.inputs)), windows=None)
    return _Set(inputs, rule.bounds, rule.all_stages(release.stages), paid)


def _check_apart(sets: Sequence[_Set]) -> None:
    """Raise where two sets are seen to be the same people's, or cannot be about one f."""
    for (i, one), (j, other) in combinations(enumerate(sets), 2):
        names = f"releases[{i}] and releases[{j}]"
        columns, others = one.inputs.X.shape[1], other.inputs.X.shape[1]
        if columns != others:
            got = f"{columns} columns in releases[{i}] and {others} in releases[{j}]"
            raise ArgumentError("releases", "must all have the same columns of X", got)
        if any(_same([a], [b]) for a in one.stages for b in other.stages):
            raise ArgumentError("releases", "must be different", f"one twice: {names} hold the same answer")
        if shared := one.datasets & other.datasets:
            raise ArgumentError(
                "releases",
                "must be of data sets that share nobody",
                f"{names}, which the ledger's data set {sorted(shared)[0]!r} paid for both",
                "For several releases of one data set, leave same_data=False out, or plan the later one with "
                "given=.",
            )


def _chosen(model: Any, releases: Sequence[Release]) -> GaussianProcess | Hyperprior:
    """The model that is asked for; or the one that all releases have."""
    priors = [release.plan.prior for release in releases]
    learned = [prior for prior in priors if prior.gp is None]
    if model is None and not learned:
        return _common([prior.gp for prior in priors if prior.gp is not None])
    if model is None or (isinstance(model, str) and model == LEARN):
        if any(one != learned[0] for one in learned):
            raise ArgumentError(
                "model",
                "must be given",
                "releases that learned from different hyperpriors",
                "Give model=cloakgp.Hyperprior(...) to learn from all of them.",
            )
        columns = releases[0].plan.columns
        return learned[0] if learned else Hyperprior(categories=() if columns is None else columns.categories)
    if isinstance(model, Hyperprior):
        return model
    if not isinstance(model, GaussianProcess):
        raise ArgumentTypeError(
            "model",
            "must be a cloakgp.GP, a cloakgp.Hyperprior or 'learn'",
            repr(model) if isinstance(model, str) else type(model).__name__,
        )
    mean = model.mean.function or model.mean.rows if isinstance(model.mean, RowMeans) else model.mean
    by_row = any(isinstance(one, np.ndarray) for one in (mean, *model.bounds))
    if by_row or not isinstance(model.noise, float) or model.downweight is not None:
        raise ArgumentError(
            "model",
            "must have one noise variance and a mean and bounds that are numbers or functions of X",
            "something per row, or a downweight",
            "The rows of all sets together are no X that a number per row could belong to.",
        )
    return model


def _common(models: Sequence[GaussianProcess]) -> GaussianProcess:
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


def _joint(sets: Sequence[_Set], first: Rule) -> tuple[Rule, list[Stage]]:
    """The rows of all sets, one set after the other, and all that was measured of them."""
    X = np.vstack([one.inputs.X for one in sets])
    counts = np.concatenate([one.inputs.counts for one in sets])
    numbers = sum(m.n_measurements for one in sets for stage in one.stages for m in stage.sums)
    if numbers * len(X) > LARGEST:
        raise ArgumentError(
            "releases",
            "must be few enough for one matrix of all that they measured",
            f"{numbers} numbers about {len(X)} distinct rows",
        )
    # Rows with one label are next to each other: which row of y is which does not matter any more. Where
    # whole rows are private, counts are estimates, and there are no labels.
    whole = counts.astype(np.int64)
    labels = np.repeat(np.arange(len(X)), whole if np.array_equal(whole, counts) else 0)
    groups = Groups(labels, whole if len(labels) else counts)
    stages: list[Stage] = []
    start = 0
    for one in sets:
        place = slice(start, start + len(one.inputs))
        stages += [_placed(stage, place, groups) for stage in one.stages]
        start = place.stop
    own = np.concatenate([one.inputs.variances for one in sets])
    rule = Rule(
        certificate=first.certificate,
        prior=first.prior,
        bounds=(min(one.bounds[0] for one in sets), max(one.bounds[1] for one in sets)),
        X=None,
        inputs=Inputs(X, own, groups),
        X_star=X[:1],
        weights=np.ones(1),
        # A person's rows multiply the noise by as much as so many rows that count as one.
        cells=Cells(X, np.ones(X.shape[1]), groups.counts, X, np.zeros(X.shape), groups.labels, "", own),
        columns=first.columns,
    )
    return rule, stages


def _placed(stage: Stage, own: slice, groups: Groups) -> Stage:
    """The same with zero columns for the rows of other sets."""
    n = len(groups.counts)

    def wide(value: Limits) -> Limits:
        """One for each row of all sets; what other sets' rows get is multiplied by zero."""
        if not isinstance(value, np.ndarray):
            return value
        full = np.full(n, value[0])
        full[own] = value
        return full

    def moved(m: Measurement, groups: Groups) -> Measurement:
        matrix = np.zeros((len(m.matrix), n), dtype=np.int64)
        matrix[:, own] = m.matrix
        names = ("lower", "upper", *(["centre"] if m is stage.spread else []))
        edges: Any = {name: wide(getattr(m.statistic, name)) for name in names}
        known: Any = {"groups": groups, "people": None, "population": None}
        return replace(m, matrix=matrix, statistic=replace(m.statistic, **edges), **known)

    line, spread, outside = stage.line, stage.spread, stage.outside
    if line is not None:
        line = replace(line, slope=np.asarray(wide(line.slope)))
    if spread is not None:  # of its own set's rows only
        counts = np.zeros(n)
        counts[own] = groups.counts[own]
        spread = moved(spread, unlabelled(counts))
    outside = None if outside is None else moved(outside, groups)
    return Stage(moved(stage.measurement, groups), spread, line, outside, answer=stage.answer)


def _for_rows(gp: GaussianProcess, inputs: Inputs) -> GaussianProcess:
    """The same model for these rows."""
    gp = gp.with_inducing(inputs.X)
    if any(callable(one) for one in (gp.mean, *gp.bounds)):
        assert inputs.groups is not None
        if not len(inputs.groups.labels):
            said = "must have a mean and bounds that are numbers, where whole rows are protected"
            raise ArgumentError("model", said, "a function of X")
        return gp.at_rows(inputs.X[inputs.groups.labels])
    return gp
