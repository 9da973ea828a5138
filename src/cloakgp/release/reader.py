"""The models of a release, each conditioned on all answers: what readers make of it, free of charge.

Where outcomes are yes or no, classes or counts, what was measured is a line in f only about what is known of
f. The lines are drawn where the models that were learned, with their weights, say it all together: a fixed
point, which every reader of a file finds again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.data.blas import one_blas_thread
from cloakgp.measure.measurement import Measurement
from cloakgp.measure.statistics import for_outcomes
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.clipping import Linked
from cloakgp.posterior.conditioning import Line, Posterior
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.probabilities import ClassLearned, LinkedLearned
from cloakgp.posterior.states import Reading, State
from cloakgp.release.stages import Rule, Session, Stage


@one_blas_thread()
def learned_from(
    rule: Rule, own: Sequence[Stage], settings: tuple[Candidate, ...], weights: FloatArray
) -> Learned:
    """The mixture of these models, each conditioned on all stages, those of earlier releases included."""
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
        released = [(stage.measurement, stage.z) for stage in stages]
        posterior = Posterior(gp, rule.X, released, inputs=rule.inputs, columns=rule.columns)
        return Learned(settings, weights, odds, (posterior,), rule.columns)
    inducing = () if rule.support is None else (rule.support, "fitc")
    models = [GaussianProcess(one.kernel, one.noise, rule.latent, rule.middle, *inducing) for one in settings]
    law = rule.law
    if not isinstance(law, Linked):
        posteriors = tuple(conditioned(model, rule, stages) for model in models)
        return Learned(settings, weights, odds, posteriors, rule.columns)
    each = tuple(
        LinkedLearned(settings, weights, odds, posteriors, rule.columns, law)
        for posteriors in _linked(rule, own, settings, weights, models)
    )
    if len(each) == 1:
        return each[0]
    return ClassLearned(settings, weights, odds, each[0].posteriors, rule.columns, law, each)


def conditioned(gp: GaussianProcess, rule: Rule, stages: Sequence[Stage]) -> Posterior:
    """A GP with one noise variance, given what all stages measured."""
    released = [(stage.measurement, stage.z) for stage in stages]
    lines, inputs = [stage.line for stage in stages], None
    if rule.cells is not None or rule.rows_each is not None or rule.X is None:
        inputs = replace(rule.inputs, noise=gp.noise * rule.factor)
    X = rule.inputs.X if rule.X is None else rule.X
    return Posterior(gp, X, released, lines, inputs, rule.columns)


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
        X = rule.inputs.X if rule.X is None else rule.X
        found.append(Posterior(model, X, released, lines, inputs))
    return tuple(found)
