"""The models of a release, or others, conditioned on all answers: what readers make of it, free of charge.

Where outcomes are yes or no, classes or counts, what was measured is a line in f only about what is known of
f. The lines are drawn where the models that were learned, with their weights, say it all together: a fixed
point, which every reader of a file finds again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.merging import Inputs
from cloakgp.measure.measurement import Measurement
from cloakgp.measure.statistics import for_outcomes
from cloakgp.model.auto_gp import LearnedGP
from cloakgp.model.gp import GaussianProcess, downweighted
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known
from cloakgp.model.windows import RowMeans
from cloakgp.posterior.clipping import Linked
from cloakgp.posterior.conditioning import Line, Posterior
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.probabilities import ClassLearned, LinkedLearned
from cloakgp.posterior.states import Reading, State
from cloakgp.posterior.support import support_points
from cloakgp.release.stages import Rule, Session, Stage

_COMPARED = 2**25
"""Entries of the kernel matrix up to which a model check has other models to compare with."""


@one_blas_thread()
def learned_from(
    rule: Rule,
    own: Sequence[Stage],
    settings: tuple[Candidate, ...],
    weights: FloatArray,
    mean: Any = None,
) -> Learned:
    """The mixture of these models, each conditioned on all stages, those of earlier releases included.

    Their prior mean is `mean`, or else the middle of where f is.
    """
    stages = rule.all_stages(own)
    if not stages:
        raise ValueError(
            "this release holds how many rows there are, and nothing of their outcomes: no such stage was "
            "answered. See density; or answer the others, which are paid for: recover(ledger, entry, X, y)."
        )
    with np.errstate(divide="ignore"):
        odds = frozen(np.log(weights / weights[0]))
    gp = rule.prior.gp
    if gp is not None and own and own[0].readout.alone:
        return Learned(settings, weights, odds, (posterior_of(gp, rule, stages, rule.inputs),), rule.columns)
    inducing = () if rule.support is None else (rule.support, "fitc")
    about = rule.middle if mean is None else mean
    models = [GaussianProcess(one.kernel, one.noise, rule.latent, about, *inducing) for one in settings]
    law = rule.law
    if not isinstance(law, Linked):
        skewed = rule.misjudged(stages, settings, weights)
        each = (None if skewed is None else one.skew**2 * skewed for one in settings)
        pairs = zip(models, each, strict=True)
        posteriors = tuple(conditioned(model, rule, stages, own) for model, own in pairs)
        known: Any = {"shape": rule.shape(own), "bounds": rule.bounds}
        return Learned(settings, weights, odds, posteriors, rule.columns, **known)
    curves = tuple(
        LinkedLearned(settings, weights, odds, posteriors, rule.columns, law)
        for posteriors in _linked(rule, own, settings, weights, models)
    )
    if len(curves) == 1:
        return curves[0]
    return ClassLearned(settings, weights, odds, curves[0].posteriors, rule.columns, law, curves)


def posterior_of(
    gp: GaussianProcess,
    rule: Rule,
    stages: Sequence[Stage],
    inputs: Inputs,
    skewed: FloatArray | None = None,
) -> Posterior:
    """A GP given what these stages measured of the rows of a rule, which it sees as these inputs.

    `skewed` is the covariance of what their windows misjudge in what they measured.
    """
    answers = [one for stage in stages for one in stage.answers()]
    released, lines, extra = [(m, z) for m, z, _ in answers], [line for _, _, line in answers], None
    if skewed is not None or len(answers) > len(stages):  # inside and outside of windows hang together
        extra = block_diag(*(stage.bent.extra for stage in stages)) + (0.0 if skewed is None else skewed)
    return Posterior(gp, released, lines, inputs, rule.columns, extra)


def conditioned(
    gp: GaussianProcess, rule: Rule, stages: Sequence[Stage], skewed: FloatArray | None = None
) -> Posterior:
    """A GP with one noise variance, given what all stages measured."""
    return posterior_of(gp, rule, stages, replace(rule.inputs, noise=gp.noise * rule.factor), skewed)


def _linked(
    rule: Rule,
    own: Sequence[Stage],
    settings: tuple[Candidate, ...],
    weights: FloatArray,
    models: Sequence[GaussianProcess],
) -> list[tuple[Posterior, ...]]:
    """Each model, given what all stages measured; of each class, where outcomes are one of several."""
    session = rule.session()
    for stage in own:
        session.note(stage)
    state = session.mixture.weighed(session.readings, settings, weights, session.state)
    found, stages = [], rule.all_stages(own)
    for place, (one, told) in enumerate(zip(state.each, session.readings(state), strict=True)):
        released = [(_of_one(stage.measurement), stage.curves[place]) for stage in stages]
        found.append(_posteriors(session, one, told, released, models))
    return found


def _of_one(m: Measurement) -> Measurement:
    """The same of one class where there are several: 1 for it, and 0 for any other."""
    return replace(m, statistic=for_outcomes((m.lower, m.upper), 1, m.statistic.centred).with_bits(m.y_bits))


def _posteriors(
    session: Session,
    state: State,
    readings: Sequence[Reading],
    released: list[tuple[Measurement, IntArray]],
    models: Sequence[GaussianProcess],
) -> tuple[Posterior, ...]:
    """Each model, given measurements that are lines about a state of what is known."""
    rule = session.rule
    # In units of the noise, at inputs themselves: what an outcome would tell of f.
    whole = session.stage(*rule.bounds, 1.0, state)
    assert whole.own is not None
    each = whole.own / state.noise / whole.clip.slope**2
    for reading in readings:  # clipping may leave less of it: what stages share is not more than each has
        assert reading.own is not None
        each = np.minimum(each, reading.own / np.maximum(reading.slope**2, 1e-300))
    found = []
    for model in models:
        lines = []
        for (m, z), reading in zip(released, readings, strict=True):
            rows, slope = reading.rows, reading.slope
            assert reading.own is not None
            assert isinstance(model.noise, float)
            edge = m.lower + (m.upper - m.lower) / 2
            value = (z - m.midpoint).astype(np.float64) * m.step
            shift = value + rows @ (m.counts * (edge - slope * rule.middle)) - reading.value
            scattered = model.noise * state.scatter * (reading.own - slope**2 * each)
            extra = reading.covariance - m.noise_scale**2 * np.eye(len(rows)) + (rows * scattered) @ rows.T
            lines.append(Line(frozen(slope), frozen(shift), frozen((extra + extra.T) / 2)))
        inputs = replace(rule.inputs, noise=model.noise * each * rule.factor)
        found.append(Posterior(model, released, lines, inputs))
    return tuple(found)


def alternatives(release: Any) -> Callable[[GaussianProcess], Posterior] | None:
    """What gives the posterior of another model, where that is not too much work."""
    plan, gp, inputs = release.plan, release.plan.gp, release.plan.inputs
    wide = len(inputs) * (len(inputs) if gp.inducing is None else len(gp.inducing))
    if not 0 < wide <= _COMPARED:
        return None
    return lambda other: posterior_of(
        other, plan, release.stages, replace(inputs, noise=other.noise_of(inputs.groups))
    )


@one_blas_thread()
def remodelled(release: Any, gp: Any) -> Posterior | Learned:
    """Another GP given what was released: see :meth:`Release.remodel`."""
    if not isinstance(gp, GaussianProcess):
        raise ArgumentTypeError("gp", "must be a cloakgp.GP", type(gp).__name__)
    rule, outcome = release.rule, release.rule.outcome
    check_shown(rule)
    if gp.outcome != outcome.name:
        raise ArgumentError("gp", f"must be of {outcome.plural}, as the release is", gp.outcome)
    if gp.classes and gp.classes != outcome.classes:
        expected = f"must have the classes of the release, {outcome.classes}"
        raise ArgumentError("gp", expected, f"{gp.classes}")
    if gp.downweight is not None and not release.plan.alone:
        raise ArgumentError("gp", "must have no downweight", remedy="It is for releases of one stage.")
    stages = rule.all_stages(release.stages)
    given = gp.noise, *gp.bounds, gp.mean.rows if isinstance(gp.mean, RowMeans) else gp.mean
    if any(isinstance(one, np.ndarray) for one in given):
        rule, stages = _by_row(release)
    X = rule.inputs.X
    gp.check_rows(len(X))
    gp = gp.for_columns(rule.columns).with_inducing(X).at_rows(X)
    if outcome.link is not None:
        known = replace(rule, prior=Known(gp))
        return learned_from(known, release.stages, (Known(gp),), np.ones(1))
    inputs = replace(rule.inputs, noise=gp.noise * rule.factor)
    if gp.downweight is not None:
        inputs = replace(inputs, noise=downweighted(gp, inputs).noise_of(inputs.groups))
    return posterior_of(gp, rule, stages, inputs)


def _by_row(release: Any) -> tuple[Rule, list[Stage]]:
    """Its rule and its stage with a column for each row of y, of which a model may say something."""
    rule, (stage, *_), m = release.rule, release.stages, release.plan.measurement
    if not release.plan.alone or rule.cells is not None:
        expected = "must have numbers or functions of X, since rows of the release are read together"
        raise ArgumentError("gp", expected, "something for each row")
    statistic = m.statistic.at(m.labels)
    m = replace(m, matrix=m.matrix[:, m.labels], statistic=statistic, groups=None)
    return replace(rule, inputs=Inputs(rule.X, 1.0, None)), [replace(stage, measurement=m)]


def learned_anew(release: Any, prior: Hyperprior | None) -> Learned:
    """What another hyperprior learns from what was released: see :meth:`Release.learn`."""
    plan, outcome = release.plan, release.plan.outcome
    check_shown(plan)
    support = plan.support
    if prior is None:
        prior = Hyperprior(categories=() if plan.columns is None else plan.columns.categories)
    elif not isinstance(prior, Hyperprior):
        raise ArgumentTypeError("prior", "must be a cloakgp.Hyperprior", type(prior).__name__)
    if outcome.link is not None:
        prior = LearnedGP(plan.bounds, outcome=outcome.name, classes=outcome.classes, prior=prior).prior
    if plan.alone:  # from bounds and the inputs' ranges alone, whatever the model that was known
        support = support_points(plan.inputs.X, None, prior.category_columns(plan.inputs.X.shape[1]))
    rule, stages, mean = replace(plan, prior=prior, support=support), release.stages, None
    if plan.alone and not isinstance(plan.gp.mean, float):
        # Learned is how outcomes differ from the mean. Less it, outcomes in windows that are less it, too,
        # are the same integers.
        m, windows, mean = plan.measurement, rule.inputs.windows, plan.gp.mean
        lower, upper = (frozen(windows[:, edge] - windows[:, 2]) for edge in (0, 1))
        less = replace(m, statistic=replace(m.statistic, lower=lower, upper=upper))
        rule = replace(rule, bounds=(float(lower.min()), float(upper.max())))
        stages = (replace(stages[0], measurement=less),)
    session = rule.session()
    for stage in stages:
        session.learn(stage)
    sums = [stage for stage in release.stages if not stage.counts_bins]  # bins are of other models' laws
    return learned_from(session.rule, sums, session.state.settings, session.state.weights, mean)


def check_shown(plan: Rule) -> None:
    """Raise if a release does not show what models see of its rows."""
    if not len(plan.inputs):
        raise ValueError("a model needs the inputs X, which this release does not show. Use query.")
