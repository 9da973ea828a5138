"""The models of a release whose outcomes are yes or no, or counts, each conditioned on what was measured.

What was measured is a line in f only about what is known of f. The lines are drawn where the models that were
learned, with their weights, say it all together: a fixed point, which every reader of a file finds again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloakgp.checks import FloatArray, frozen
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Candidate
from cloakgp.plans.stages import Rule, Stage, Walk
from cloakgp.posterior.classes import ClassState, apart
from cloakgp.posterior.conditioning import Line, Posterior
from cloakgp.posterior.mixture import Reading, State


def linked_posteriors(
    rule: Rule,
    own: Sequence[Stage],
    settings: tuple[Candidate, ...],
    weights: FloatArray,
    models: Sequence[GP],
) -> list[tuple[Posterior, ...]]:
    """Each model, given what all stages measured; of each class, where outcomes are one of several."""
    assert rule.link is not None
    walk = rule.walk()
    for stage in own:
        walk.note(stage)
    state = walk.mixture.settled(walk.readings, settings, weights, walk.state)
    readings = walk.readings(state)
    stages = rule.all_stages(own)
    if not isinstance(state, ClassState):
        released = [(stage.plan.measurement, stage.z) for stage in stages]
        return [_posteriors(walk, state, readings, released, models)]
    found = []
    for place, (one, told) in enumerate(zip(state.each, apart(readings), strict=True)):
        # Of one class alone, what was measured is as of yes and no.
        released = [(replace(stage.plan.measurement, classes=1), stage.curves[place]) for stage in stages]
        found.append(_posteriors(walk, one, told, released, models))
    return found


def _posteriors(
    walk: Walk,
    state: State,
    readings: Sequence[Reading],
    released: list[tuple[Measurement, IntArray]],
    models: Sequence[GP],
) -> tuple[Posterior, ...]:
    """Each model, given measurements that are lines about a state of what is known."""
    rule = walk.rule
    # In units of the noise, at inputs themselves: what an outcome would tell of f.
    whole = walk.stage(*rule.bounds, 1.0, state)
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
            apart = model.noise * state.scatter * (reading.own - slope**2 * each)
            extra = reading.covariance - m.noise_scale**2 * np.eye(len(rows)) + (rows * apart) @ rows.T
            lines.append(Line(frozen(slope), frozen(shift), frozen((extra + extra.T) / 2)))
        inputs = replace(rule.inputs, noise=model.noise * each * rule.factor)
        X = rule.inputs.X if rule.X is None else rule.X
        found.append(Posterior(model, X, released, lines, inputs))
    return tuple(found)
