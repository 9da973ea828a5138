"""What clipping does to a Gaussian outcome, as a line and what is left over.

If y ~ N(m, s^2), then clip(y) = centre + slope (y - m) + e, where slope = Pr[a < y < b] (Stein), centre is
the clipped mean, and e has mean 0 and is uncorrelated with y. The e's of two outcomes with correlation r
are correlated through f, by Mehler's series

    Cov(e, e') = sum over k >= 2 of g_k g'_k r^k / k!,
    g_k = s (He_{k-2}(alpha) phi(alpha) - He_{k-2}(beta) phi(beta)),

with alpha and beta the window's standardised edges. Where an edge is the bound itself, the outcome to
predict is the clipped one, and nothing is clipped on that side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloakgp.checks import FloatArray

_TERMS = 8  # of Mehler's series: the last has r^9 / 9!
_FAR = 40.0  # standard deviations: beyond them nothing is clipped


@dataclass(frozen=True, eq=False)
class Clipping:
    """The line through clip(y) at each of U inputs, and what it leaves."""

    slope: FloatArray
    centre: FloatArray
    """E clip(y)."""
    left: FloatArray
    """Variance of e."""
    std: FloatArray
    """Of y."""
    terms: FloatArray
    """(k, U) g_k / sqrt(k!)."""

    def shared(self, covariance: FloatArray) -> FloatArray:
        """(U, U) Cov(e, e') of two outcomes, given f's covariance at the inputs."""
        r = covariance / self.std[:, None] / self.std
        power, total = r, np.zeros_like(r)
        for term in self.terms:
            power = power * r
            total += term[:, None] * power * term
        return total

    def of_sums(
        self, covariance: FloatArray, counts: FloatArray, scatter: FloatArray | None = None
    ) -> FloatArray:
        """(U, U) covariance of the sums of e over the rows at each input.

        `scatter` is the variance of a sum of what is each row's own, in units of one row's, if not `counts`.
        """
        shared = self.shared(covariance)
        own = np.maximum(self.left - np.diag(shared), 0.0)
        sums: FloatArray = shared * counts[:, None] * counts
        sums[np.diag_indices_from(sums)] += (counts if scatter is None else scatter) * own
        return sums


def linearise(
    mean: FloatArray,
    variance: FloatArray,
    window: tuple[FloatArray, FloatArray],
    bounds: tuple[float, float],
) -> Clipping:
    """The line for outcomes with this mean and variance (noise included), clipped to the window.

    `bounds` are the outer ones, in the unit of the rest.
    """
    from scipy.special import ndtr  # here: slow to import

    s = np.sqrt(np.maximum(variance, 1e-300))
    alpha = np.clip((window[0] - mean) / s, -_FAR, _FAR)
    beta = np.clip((window[1] - mean) / s, -_FAR, _FAR)
    alpha = np.where(window[0] <= bounds[0], -_FAR, alpha)
    beta = np.where(window[1] >= bounds[1], _FAR, beta)
    below, above, at_a, at_b = ndtr(alpha), ndtr(-beta), _density(alpha), _density(beta)
    slope = np.maximum(1 - below - above, 0.0)
    shift = alpha * below + beta * above + at_a - at_b
    second = alpha**2 * below + beta**2 * above + slope + alpha * at_a - beta * at_b
    left = s**2 * np.maximum(second - shift**2 - slope**2, 0.0)
    coefficients = s * (_hermite(alpha) * at_a - _hermite(beta) * at_b)
    scale = np.sqrt([math.factorial(k) for k in range(2, 2 + _TERMS)])[:, None]
    return Clipping(slope, mean + s * shift, left, s, coefficients / scale)


def _hermite(x: FloatArray) -> FloatArray:
    """(k, U) He_0 to He_{k-1} at x."""
    values = [np.ones_like(x), x]
    for k in range(1, _TERMS - 1):
        values.append(x * values[k] - k * values[k - 1])
    return np.array(values)


def _density(x: FloatArray) -> FloatArray:
    result: FloatArray = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return result
