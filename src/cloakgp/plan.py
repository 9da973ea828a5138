"""A plan: public. Everything about a release that can be known before y is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks, designs, testing
from cloakgp.certificate import NEIGHBOURS, SPEND, UNIT, Certificate
from cloakgp.checks import FloatArray, frozen
from cloakgp.lattice import Measurement, to_integers
from cloakgp.smoothers import ExactGP, Smoother, blocks

if TYPE_CHECKING:
    from cloakgp.gp import GP
    from cloakgp.release import Release


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What will be measured, and the noise that it will have. Made by :meth:`GP.plan`.

    A plan never saw y, so it can be printed, plotted, published and compared with others at no
    cost. Only :meth:`release` spends.
    """

    gp: GP
    X: FloatArray
    X_star: FloatArray
    weights: FloatArray
    measurement: Measurement
    reconstruction: FloatArray  # (P, q): predictions from measurements
    offset: FloatArray  # (P,): the prediction if every y were the middle of the bounds
    gp_std: FloatArray
    """(P,) posterior std of the GP itself at X*, as if there were no privacy noise."""
    certificate: Certificate

    @property
    def noise_std(self) -> FloatArray:
        """(P,) std of the privacy noise at each test point."""
        std: FloatArray = self.measurement.noise_scale * np.linalg.norm(self.reconstruction, axis=1)
        return std

    @property
    def noise_cov(self) -> FloatArray:
        """(P, P) covariance of the privacy noise over the test points."""
        scaled = self.measurement.noise_scale * self.reconstruction
        cov: FloatArray = scaled @ scaled.T
        return cov

    def release(self, y: Any, *, missing: str = "error") -> Release:
        """Release predictions from the private outcomes: the one private step.

        Each call draws fresh noise and is a new spend of the certificate's (epsilon, delta), also
        when called twice on the same plan with the same y.

        Parameters
        ----------
        y : (N,) array
            Private outcomes, in the order of X's rows. Values outside the bounds are clipped;
            how many is not told, since that would leak.
        missing : {"error", "midpoint"}
            NaN and infinities are refused before anything is spent, or replaced row by row by the
            middle of the bounds, which protects missingness too.
        """
        from cloakgp.measure import measure
        from cloakgp.release import Release

        z = measure(self.measurement, y, missing)
        insecure = testing.insecure_generator() is not None
        return Release(replace(self, certificate=replace(self.certificate, insecure=insecure)), frozen(z))

    def __repr__(self) -> str:
        std, c = self.noise_std, self.certificate
        return (
            f"<Plan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.design} design, "
            f"{c.n_rows} rows, {len(std)} test points, noise std {std.min():.3g} to {std.max():.3g}>"
        )


def make_plan(
    gp: GP,
    X: Any,
    X_star: Any,
    *,
    epsilon: float,
    delta: float,
    design: str,
    calibration: str,
    weights: Any,
    gap: float,
) -> Plan:
    """See :meth:`GP.plan`."""
    epsilon = checks.positive(epsilon, "epsilon")
    delta = checks.number(delta, "delta", above=0.0, below=1.0)
    gap = checks.positive(gap, "gap")
    checks.choice(design, "design", designs.DESIGNS)
    calibrate.calibrate(epsilon, delta, calibration)  # refuse a bad promise before the heavy work
    X = checks.matrix(X, "X")
    X_star = checks.matrix(X_star, "X_star", columns=X.shape[1])
    if not isinstance(gp.noise, float) and len(gp.noise) != len(X):
        raise ValueError(
            f"noise must be one number or one per row of X ({len(X)}); got {len(gp.noise)} entries."
        )
    if weights is None:
        weights = np.ones(len(X_star))
    weights = checks.vector(
        weights,
        "weights",
        len(X_star),
        positive=True,
        remedy="To ignore a test point, leave it out of X_star.",
    )

    smoother = ExactGP(gp.kernel, gp.noise, X, X_star)
    solution = designs.solve(design, smoother, weights / weights.mean(), gap)
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(solution.reduce))
    measurement = to_integers(solution.reduce, smoother, gp.bounds, epsilon, delta, mu)
    reconstruction = frozen(solution.reconstruction)
    influence, bias = influence_and_bias(smoother, measurement, reconstruction)
    middle = gp.bounds[0] + (gp.bounds[1] - gp.bounds[0]) / 2
    noise_variance = measurement.noise_scale**2
    # The design's objective is for measurements before rounding to integers; scale it to what is drawn.
    certificate = Certificate(
        epsilon=epsilon,
        delta=delta,
        unit=UNIT,
        neighbours=NEIGHBOURS,
        spend=SPEND,
        insecure=False,
        calibration=calibration,
        mu=measurement.mu(),
        sensitivity=measurement.sensitivity() * measurement.step,
        noise_scale=measurement.noise_scale,
        delta_slack=calibrate.delta_slack(measurement.mu(), epsilon, delta, measurement.n_measurements),
        n_rows=len(X),
        n_measurements=measurement.n_measurements,
        design=design,
        objective=solution.objective * noise_variance,
        lower_bound=solution.lower_bound * noise_variance,
        gap=solution.gap,
        iterations=solution.iterations,
        status=solution.status,
        y_bits=measurement.y_bits,
        matrix_bits=measurement.matrix_bits,
        sigma=measurement.sigma,
        sensitivity_steps=measurement.sensitivity(),
        jitter=smoother.jitter,
        bias=bias,
    )
    return Plan(
        gp=gp,
        X=X,
        X_star=X_star,
        weights=weights,
        measurement=measurement,
        reconstruction=reconstruction,
        offset=frozen(gp.mean + influence * (middle - gp.mean)),
        gp_std=frozen(np.sqrt(smoother.posterior_variance)),
        certificate=certificate,
    )


def influence_and_bias(
    smoother: Smoother, measurement: Measurement, reconstruction: FloatArray
) -> tuple[FloatArray, float]:
    """Row sums of C, and the largest error of the mean (noise aside) for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut, on
    y - midpoint, at most half the range; and y itself is rounded to half a lattice step.
    """
    width = measurement.upper - measurement.lower
    influence = np.zeros(smoother.n_outputs)
    error = np.zeros(smoother.n_outputs)
    for block in blocks(smoother.n_rows):
        C = smoother.columns(block)
        B = np.ldexp(measurement.matrix[:, block].astype(np.float64), -measurement.matrix_bits)
        influence += C.sum(axis=1)
        error += np.abs(reconstruction @ B - C).sum(axis=1) * width / 2
        error += np.abs(C).sum(axis=1) * width * 2.0 ** -(measurement.y_bits + 1)
    return influence, float(error.max())
