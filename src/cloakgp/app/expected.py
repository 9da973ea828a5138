"""What to expect of a plan: its error and its noise at the test points, and how a preview tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cloakgp.app import models
from cloakgp.app.asked_model import is_staged
from cloakgp.app.errors import bad_input, public_work
from cloakgp.calibration import calibrate, delta_slack
from cloakgp.checks import FloatArray
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.planner import Planner
from cloakgp.plans.predictions import Plan
from cloakgp.plans.preview import Foreseen, noise_for
from cloakgp.plans.staged import StagedPlan
from cloakgp.plots import plane, will_be_unknown
from cloakgp.plots.labels import numeric_inputs
from cloakgp.workflow import words


class Expected(NamedTuple):
    """What to expect of a release at its test points: stds in the outcome's unit."""

    noise: FloatArray
    """Of the privacy noise."""
    error: FloatArray
    """Of what a reader will be off by: privacy and model together."""
    own: FloatArray
    """Of what the model itself leaves unknown."""


def is_for(plan: AnyPlan, asked: models.Settings) -> bool:
    """Whether a plan keeps the very promise that is asked for."""
    c = plan.certificate
    return (c.epsilon, c.delta) == (asked.epsilon, asked.delta)


def expected_of(plan: Plan | StagedPlan) -> Expected:
    """What to expect of a plan that has test points of its own."""
    with public_work():
        return _finite(Expected(plan.noise_std, plan.expected_error, plan.gp_std))


def expected_of_function(
    asked: models.Settings, plan: FunctionPlan, planner: Planner, foreseen: Foreseen
) -> Expected:
    """What to expect of a function at the test points, from a plan that may be for another promise."""
    assert asked.delta is not None
    scale = noise_for(plan, asked.epsilon, asked.delta)
    noise = plan.released_noise(planner.X_star) * (scale / plan.measurement.noise_scale)
    own = np.sqrt(planner.smoother.posterior_variance)
    return _finite(Expected(noise, foreseen.error(foreseen.gain(scale)), own))


def _finite(expected: Expected) -> Expected:
    if not all(np.isfinite(each).all() for each in expected):
        raise bad_input("with these settings the noise is not a finite number.")
    return expected


def preview_of(
    asked: models.Settings,
    plan: AnyPlan,
    where: FloatArray,
    expected: Expected,
    exact: bool = True,
    rough: bool = False,
) -> dict[str, Any]:
    """A preview, as it is sent; `plan` may be for another promise, and its certificate is then left out."""
    expected, bounds, c = _finite(expected), (asked.bounds[0], asked.bounds[1]), plan.certificate
    own, assumed = is_for(plan, asked) and not rough and (exact or is_staged(asked)), c
    if not is_for(plan, asked):
        assert asked.delta is not None
        mu = calibrate(asked.epsilon, asked.delta, "analytic", c.n_measurements)
        slack = delta_slack(mu, asked.epsilon, asked.delta, c.n_measurements)
        assumed = replace(c, epsilon=asked.epsilon, delta=asked.delta, mu=mu, delta_slack=slack)
    with public_work():
        unknown = will_be_unknown(plan, where, expected.error)
    return {
        "points": where.tolist(),
        "noise_std": expected.noise.tolist(),
        "gp_std": expected.own.tolist(),
        "expected_error": expected.error.tolist(),
        "unknown": unknown.tolist(),
        "summary": words.noise_summary(expected.noise, bounds),
        "error_summary": words.noise_summary(expected.error, bounds),
        "certificate": c.to_dict() if own else None,
        "promise": [] if is_staged(asked) and rough else words.promise(assumed),
        "plane": _plane(asked, plan, where),
        "exact": exact,
        "rough": rough,
    }


def _plane(asked: models.Settings, plan: AnyPlan, where: FloatArray) -> dict[str, Any] | None:
    """Which of two inputs that are numbers is across a map, which is up, and how long a unit of that is."""
    numeric = numeric_inputs(plan)
    if len(asked.inputs) != 2 or len(numeric) != 2:
        return None
    axes = plane(asked.inputs, numeric)
    up = where[:, axes.up]
    return {"places": [axes.across, axes.up], "aspect": axes.aspect(float(up.min()), float(up.max()))}


def scaled(plan: Plan, epsilon: float, calibration: str) -> float:
    """How the noise of an unbiased design changes with the promise: as 1/mu, and in nothing else."""
    c = plan.certificate
    return c.mu / calibrate(epsilon, c.delta, calibration, n_measurements=c.n_measurements)


def rms(noise: FloatArray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(noise**2)))
