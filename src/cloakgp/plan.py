"""A plan: public. Everything about a release that can be known before y is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks, designs, testing
from cloakgp.accounting import Gaussian
from cloakgp.certificate import Certificate, certify
from cloakgp.charging import Account, Charge, as_ledger, charged
from cloakgp.checks import FloatArray, frozen
from cloakgp.designs.posterior import denoising_gain
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

    @property
    def cost(self) -> Gaussian:
        """What a release will spend, for :mod:`cloakgp.accounting` and a ledger."""
        return Gaussian(self.measurement.mu(), self.measurement.n_measurements)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""
        from cloakgp import files

        return files.digest(self)

    def release(
        self,
        y: Any,
        *,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> Release:
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
        ledger : Ledger or its URL, optional
            Pays for the release: refused before y is read if it does not fit, and on record, answer
            included, before this returns. See :class:`cloakgp.Ledger`.
        dataset : str
            Which of the ledger's data sets pays.
        why : str
            For the record.
        request : str, optional
            A name for this request, unlike any other of the data set's. Asked again after a crash, the
            ledger gives the same answer for nothing.
        """
        from cloakgp.measure import measure

        with charged(self, Account(ledger, dataset, why, request)) as charge:
            if charge.answer is None:
                charge.answer = measure(self.measurement, y, missing)
        return self._released(charge)

    def recover(self, ledger: Any, entry: int) -> Release:
        """The release that an entry of the ledger paid for, once more and for nothing; y is not needed.

        For when a program died after the charge: ``ledger.entries(dataset)`` shows the number.
        """
        return self._released(as_ledger(ledger).fetch(entry, self))

    def _released(self, charge: Charge) -> Release:
        from cloakgp.release import Release

        assert charge.answer is not None
        insecure = testing.insecure_generator() is not None
        plan = replace(self, certificate=replace(self.certificate, insecure=insecure))
        return Release(plan, frozen(charge.answer), charge.receipt)

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
    epsilon, delta = calibrate.promise(epsilon, delta)
    gap = checks.positive(gap, "gap")
    checks.choice(design, "design", designs.DESIGNS)
    calibrate.calibrate(epsilon, delta, calibration)  # refuse a bad promise before the heavy work
    X = checks.matrix(X, "X")
    X_star = checks.matrix(X_star, "X_star", columns=X.shape[1])
    gp.check_rows(len(X))
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
    expected_mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(X_star))
    expected_variance = ((gp.bounds[1] - gp.bounds[0]) / expected_mu) ** 2
    solution = designs.solve(design, smoother, relative_weights(weights), gap, expected_variance)
    B = np.hstack([solution.columns(smoother, block) for block in blocks(len(X))])
    mu = calibrate.calibrate(epsilon, delta, calibration, n_measurements=len(B))
    measurement = to_integers(B, gp.bounds, epsilon, delta, mu)
    reconstruction = frozen(
        solution.reconstruction
        if solution.unbiased
        else denoising_gain(smoother, measurement.real_matrix(), measurement.noise_scale**2)
    )
    noise_variance = measurement.noise_scale**2
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
        X=X,
        X_star=X_star,
        weights=weights,
        measurement=measurement,
        reconstruction=reconstruction,
        offset=frozen(offset(gp, measurement, reconstruction)),
        gp_std=frozen(np.sqrt(smoother.posterior_variance)),
        certificate=certificate,
    )


def relative_weights(weights: FloatArray) -> FloatArray:
    """Weights with mean 1."""
    scaled = weights / weights.max()
    if scaled.min() < 1e-12:
        raise ValueError(
            "weights must be within a factor of 1e12 of each other. To ignore a test point, leave it "
            "out of X_star."
        )
    result: FloatArray = scaled / scaled.mean()
    return result


def offset(gp: GP, measurement: Measurement, reconstruction: FloatArray) -> FloatArray:
    """The prediction if every y were the middle of the bounds and no noise were added."""
    influence = reconstruction @ measurement.real_matrix().sum(axis=1)
    result: FloatArray = gp.mean + influence * (middle(gp.bounds) - gp.mean)
    return result


def middle(bounds: tuple[float, float]) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) / 2


def largest_bias(smoother: Smoother, measurement: Measurement, reconstruction: FloatArray) -> float:
    """The largest error of the mean, noise aside, for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut (or, for
    `posterior`, up to what denoising shrinks away), on y - midpoint, at most half the range; and y
    itself is rounded to half a lattice step.
    """
    width = measurement.upper - measurement.lower
    error = np.zeros(smoother.n_outputs)
    for block in blocks(smoother.n_rows):
        C = smoother.columns(block)
        error += np.abs(reconstruction @ measurement.real_matrix(block) - C).sum(axis=1) * width / 2
        error += np.abs(C).sum(axis=1) * width * 2.0 ** -(measurement.y_bits + 1)
    return float(error.max())
