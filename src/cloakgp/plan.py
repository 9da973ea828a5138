"""A plan: public. Everything about a release that can be known before y is touched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import testing
from cloakgp.accounting import Gaussian
from cloakgp.certificate import Certificate
from cloakgp.charging import Account, Charge, as_ledger, charged
from cloakgp.checks import FloatArray, frozen
from cloakgp.factored import FactoredMeasurement
from cloakgp.lattice import Measured, Measurement
from cloakgp.smoothers import Smoother, blocks

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
    X: Any
    """(N, D) public inputs: an array, or what gives slices of one; None if a file holds only its digest."""
    X_star: FloatArray
    weights: FloatArray
    """(P,) how much the noise at each test point matters, 1 on average."""
    measurement: Measurement | FactoredMeasurement
    reconstruction: FloatArray  # (P, q): predictions from measurements
    offset: FloatArray  # (P,): the prediction if every y were the middle of the bounds
    gp_std: FloatArray
    """(P,) posterior std of the GP itself at X*, without privacy noise; to four digits in a file."""
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
        insecure = charge.receipt is None and testing.insecure_generator() is not None
        plan = replace(self, certificate=replace(self.certificate, insecure=insecure))
        return Release(plan, frozen(charge.answer), charge.receipt)

    def __repr__(self) -> str:
        std, c = self.noise_std, self.certificate
        return (
            f"<Plan: ({c.epsilon:g}, {c.delta:g})-DP, unit {c.unit}, {c.design} design, "
            f"{c.n_rows} rows, {len(std)} test points, noise std {std.min():.3g} to {std.max():.3g}>"
        )


def relative_weights(weights: FloatArray) -> FloatArray:
    """Weights with mean 1, the same for weights that differ by a factor."""
    scaled = weights / weights.max()
    if scaled.min() < 1e-12:
        raise ValueError(
            "weights must be within a factor of 1e12 of each other. To ignore a test point, leave it "
            "out of X_star."
        )
    result: FloatArray = scaled / scaled.mean()
    return result


def noise_objective(
    design: str, weights: FloatArray, reconstruction: FloatArray, noise_scale: float
) -> float:
    """What `mse`, `max` and `volume` minimise, for the measurements that will be released."""
    if design == "volume":
        spread = np.linalg.svd(reconstruction, compute_uv=False)
        return float(np.exp(2 * np.mean(np.log(spread * noise_scale))))
    weighted = weights * noise_scale**2 * np.einsum("ij,ij->i", reconstruction, reconstruction)
    return float(weighted.mean() if design == "mse" else weighted.max())


def offset(gp: GP, measurement: Measured, reconstruction: FloatArray) -> FloatArray:
    """The prediction if every y were the middle of the bounds and no noise were added."""
    # Sums that are rounded once are the same on every machine, to the last bit.
    products = np.multiply(reconstruction, measurement.total)
    influence = np.array([math.fsum(row) for row in products.tolist()])
    result: FloatArray = gp.mean + influence * (middle(gp.bounds) - gp.mean)
    return result


def middle(bounds: tuple[float, float]) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) / 2


def largest_bias(gp: GP, smoother: Smoother, measurement: Measurement, reconstruction: FloatArray) -> float:
    """The largest error of the mean, noise aside, for any y within the bounds.

    Two errors add up: the measurements reconstruct C only up to rounding and the rank cut (or, for
    `posterior`, up to what denoising shrinks away), which multiplies y less the prior mean; and y
    itself is rounded to half a lattice step.
    """
    width, counts = measurement.upper - measurement.lower, measurement.counts
    error = np.zeros(smoother.n_outputs)
    for block in blocks(smoother.n_rows):
        C = smoother.columns(block)
        error += np.abs(reconstruction @ measurement.real_matrix(block) - C) @ counts[block] * gp.farthest
        error += np.abs(C) @ counts[block] * width * 2.0 ** -(measurement.y_bits + 1)
    return float(error.max())
