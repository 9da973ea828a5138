"""What a plan for another promise would have: its noise and its expected error, without making it.

For a slider: what does not depend on epsilon is kept by the planner, and what does follows from the last
design that was made. A preview has no integers, so nothing can be released from it; and no plan starts from
one, so that a plan is the same whatever was looked at before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloakgp import designs
from cloakgp.core import calibration as calibrate
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.posterior.conditioning import links

if TYPE_CHECKING:
    from cloakgp.release.plan import Plan
    from cloakgp.release.planner import Planner


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


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What the error of a plan's reader is made of, whatever the promise: all but the size of the noise."""

    known: FloatArray
    """(P,) prior variances at X*."""
    covariance: FloatArray
    """(q, q) of the measurements, without noise."""
    cross: FloatArray
    """(P, q) of f(X*) with the measurements."""

    @classmethod
    def of(cls, plan: Plan, X_star: FloatArray) -> Foreseen:
        """Of a plan's measurements."""
        found = links(plan.gp, plan.X, [plan.measurement], inputs=plan.inputs)
        return cls(plan.gp.kernel.diag(X_star), found.covariance, found.at(X_star))

    def gain(self, scale: float) -> FloatArray:
        """(q, P) how a reader weighs measurements with noise of this std."""
        noisy = self.covariance + scale**2 * np.eye(len(self.covariance))
        return np.asarray(np.linalg.solve(noisy, self.cross.T))

    def error(self, gain: FloatArray) -> FloatArray:
        """(P,) std of what is left unknown."""
        left = self.known - np.einsum("ij,ji->i", self.cross, gain)
        return frozen(np.sqrt(np.maximum(left, 0.0)))


def noise_for(plan: Plan, epsilon: float, delta: float, calibration: str = "analytic") -> float:
    """Std of the noise that the plan's measurements would need for another promise."""
    m = plan.measurement
    wanted = calibrate.calibrate(epsilon, delta, calibration, m.n_measurements)
    return float(m.noise_scale * m.mu() / wanted)


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
    of, foreseen = planner.foreseen.get(design, (None, None))
    if of is not plan or foreseen is None:
        foreseen = Foreseen.of(plan, plan.X_star)
        planner.foreseen[design] = plan, foreseen
    scale = noise_for(plan, epsilon, delta, calibration)
    gain = foreseen.gain(scale)
    released = plan.reconstruction if plan.certificate.unbiased else gain.T
    noise = frozen(scale * np.linalg.norm(released, axis=1))
    return Preview(epsilon, delta, design, noise, foreseen.error(gain), plan.gp_std)
