"""Many plans over the same inputs and test points: what does not depend on the promise is done once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks, designs
from cloakgp.certificate import certify
from cloakgp.checks import frozen
from cloakgp.designs.posterior import denoising_gain
from cloakgp.designs.solution import Solution
from cloakgp.lattice import to_integers
from cloakgp.plan import Plan, largest_bias, offset, relative_weights
from cloakgp.smoothers import ExactGP, blocks

if TYPE_CHECKING:
    from cloakgp.gp import GP


class Planner:
    """Plans for one model, X and X*, for any promise and design. Made by :meth:`GP.planner`.

    The covariances and their factor are computed once and kept (N^2 numbers), and so are the noise
    designs that do not depend on the promise.
    """

    def __init__(self, gp: GP, X: Any, X_star: Any, weights: Any = None) -> None:
        self.gp = gp
        self.X = checks.matrix(X, "X")
        self.X_star = checks.matrix(X_star, "X_star", columns=self.X.shape[1])
        gp.check_rows(len(self.X))
        if weights is None:
            weights = np.ones(len(self.X_star))
        self.weights = checks.vector(
            weights,
            "weights",
            len(self.X_star),
            positive=True,
            remedy="To ignore a test point, leave it out of X_star.",
        )
        self._solved: dict[tuple[str, float], Solution] = {}

    @cached_property
    def smoother(self) -> ExactGP:
        """How y becomes predictions."""
        return ExactGP(self.gp.kernel, self.gp.noise, self.X, self.X_star)

    def plan(
        self,
        *,
        epsilon: float,
        delta: float,
        design: str = "mse",
        calibration: str = "analytic",
        gap: float = 0.01,
    ) -> Plan:
        """A plan, as :meth:`GP.plan` makes it."""
        epsilon, delta = calibrate.promise(epsilon, delta)
        gap = checks.positive(gap, "gap")
        checks.choice(design, "design", designs.DESIGNS)
        # Refuses a bad promise before the heavy work.
        expected_mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(self.X_star))
        gp, smoother = self.gp, self.smoother
        solution = self._solution(design, gap, ((gp.bounds[1] - gp.bounds[0]) / expected_mu) ** 2)
        B = np.hstack([solution.columns(smoother, block) for block in blocks(len(self.X))])
        mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
        measurement = to_integers(B, gp.bounds, epsilon, delta, mu)
        noise_variance = measurement.noise_scale**2
        reconstruction = frozen(
            solution.reconstruction
            if solution.unbiased
            else denoising_gain(smoother, measurement.real_matrix(), noise_variance)
        )
        certificate = certify(
            measurement,
            calibration,
            design=design,
            bound="exact",
            objective=solution.objective * noise_variance,
            lower_bound=solution.lower_bound * noise_variance,
            gap=solution.gap,
            iterations=solution.iterations,
            status=solution.status,
            jitter=smoother.jitter,
            bias=largest_bias(smoother, measurement, reconstruction),
            unbiased=solution.unbiased,
        )
        return Plan(
            gp=gp,
            X=self.X,
            X_star=self.X_star,
            weights=self.weights,
            measurement=measurement,
            reconstruction=reconstruction,
            offset=frozen(offset(gp, measurement, reconstruction)),
            gp_std=frozen(np.sqrt(smoother.posterior_variance)),
            certificate=certificate,
        )

    def _solution(self, design: str, gap: float, noise_variance: float) -> Solution:
        """The design; only `posterior` depends on the noise to come."""
        weights = relative_weights(self.weights)
        if design == "posterior":
            return designs.solve(design, self.smoother, weights, gap, noise_variance)
        if (design, gap) not in self._solved:
            self._solved[design, gap] = designs.solve(design, self.smoother, weights, gap, noise_variance)
        return self._solved[design, gap]

    def __repr__(self) -> str:
        return f"<Planner: {self.gp!r}, {len(self.X)} rows, {len(self.X_star)} test points>"
