"""What a plan for another promise would have: its noise and its expected error, without making it.

For a slider: what does not depend on epsilon is kept by the planner, and what does follows from the last
design that was made. A preview has no integers, so nothing can be released from it; and no plan starts from
one, so that a plan is the same whatever was looked at before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks, designs
from cloakgp.checks import FloatArray, frozen
from cloakgp.model.smoothers import diagonal
from cloakgp.posterior.links import links

if TYPE_CHECKING:
    from cloakgp.plans.planner import Planner
    from cloakgp.plans.predictions import Plan


@dataclass(frozen=True, eq=False)
class Preview:
    """What to expect of a plan, about: its own numbers differ by what rounding to integers does."""

    epsilon: float
    delta: float
    design: str
    noise_std: FloatArray
    """(P,) std of the privacy noise in what is released at each test point."""
    expected_error: FloatArray
    """(P,) std of what a reader's predictions will be off by."""
    gp_std: FloatArray
    """(P,) the GP's own std."""


def preview(planner: Planner, epsilon: float, delta: float | None, design: str, calibration: str) -> Preview:
    """From the last plan of this design, with noise for another promise.

    `mse`, `max` and `volume` are the same measurements for every promise. For `posterior` those of the last
    plan are taken, which are near the best for a promise near the last: a plan's own leave no more unknown.
    """
    checks.choice(design, "design", designs.DESIGNS)
    n = len(planner.X) if planner.people is None else planner.people.n_people
    epsilon, delta = calibrate.promise(epsilon, delta, n)
    plan = planner.last.get(design)
    if plan is None:
        plan = planner.plan(epsilon=epsilon, delta=delta, design=design, calibration=calibration)
    if design not in planner.linked:
        planner.linked[design] = _linked(plan)
    known, covariance, H = planner.linked[design]
    m = plan.measurement
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=m.n_measurements)
    scale = m.noise_scale * m.mu() / mu
    gain = np.linalg.solve(covariance + scale**2 * np.eye(len(covariance)), H.T)
    released = plan.reconstruction if plan.certificate.unbiased else gain.T
    variance = known - np.einsum("ij,ji->i", H, gain)
    return Preview(
        epsilon,
        delta,
        design,
        frozen(scale * np.linalg.norm(released, axis=1)),
        frozen(np.sqrt(np.maximum(variance, 0.0))),
        plan.gp_std,
    )


def _linked(plan: Plan) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Prior variances at X*, the measurements' covariance, and both together: what an error is made of."""
    found = links(plan.gp, plan.X, [plan.measurement])
    return diagonal(plan.gp.kernel, plan.X_star), found.covariance, found.at(plan.X_star)
