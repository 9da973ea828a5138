"""What a link does to a Gaussian f, as a line and what is left over: as clipping does, and together with it.

If f ~ N(m, s^2) and h(f) is the mean of a (clipped) outcome given f, then h(f) = centre + slope (f - m) + e,
where e has mean 0 and is uncorrelated with f. With c_k = E[h(f) He_k((f - m) / s)], slope = c_1 / s, and the
e's of two inputs whose f's have correlation r have covariance sum over k >= 2 of c_k c'_k r^k / k! (Mehler).
All by Gauss-Hermite quadrature, the same for every link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.outcome import Link
from cloakgp.posterior.clipping import Clipping

_NODES = 32
_TERMS = 4  # of Mehler's series: f is known well by then, and the rest is counted as each input's own
_LEAST = 1e-8  # variance of f: with less, differences of probabilities would be lost in rounding
_STEEP = 1e-9  # least slope, in standard deviations of outcomes: where nothing is told of f


@cache
def nodes() -> tuple[FloatArray, FloatArray]:
    """Points and weights for the mean of a function of a standard normal."""
    x, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return x, weights / weights.sum()


@dataclass(frozen=True)
class Linked:
    """A link for outcomes within bounds. Here f is less what it is counted from."""

    link: Link
    bounds: tuple[float, float]
    middle: float
    """What f is counted from."""

    def mean(self, f: FloatArray) -> FloatArray:
        """E[y | f]."""
        return self.link.mean(f + self.middle, self.bounds)

    def moments(
        self, mean: FloatArray, variance: FloatArray, noise: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of y given f ~ N(mean, variance), the variance of E[y | f], and the mean of Var[y | f]."""
        x, weights = nodes()
        given_f = self.mean(mean[..., None] + np.sqrt(variance)[..., None] * x)
        centre = given_f @ weights
        scatter = self.link.variance(given_f, np.asarray(noise)[..., None]) @ weights
        return centre, ((given_f - centre[..., None]) ** 2) @ weights, scatter

    def linearise(
        self,
        mean: FloatArray,
        variance: FloatArray,
        noise: float,
        window: tuple[FloatArray, FloatArray],
    ) -> tuple[Clipping, FloatArray]:
        """The line for outcomes given f ~ N(mean, variance), clipped to the window, and their scatter.

        The scatter is the variance of one outcome given f, on average; `left` has that in it, too. Where an
        edge of the window is the bound itself, nothing is clipped on that side.
        """
        x, weights = nodes()
        s = np.sqrt(np.maximum(variance, _LEAST))
        given_f = self.mean(mean[:, None] + s[:, None] * x)
        low, high = self.bounds
        lower = np.where(window[0] <= low, -np.inf, window[0])[:, None]
        upper = np.where(window[1] >= high, np.inf, window[1])[:, None]
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            h, scatter = self.link.clipped(given_f, noise, lower, upper)
        else:
            h, scatter = given_f, self.link.variance(given_f, noise)
        own, centre = scatter @ weights, h @ weights
        terms = np.array([h @ (weights * each) for each in _hermite()])
        bent = np.maximum(((h - centre[:, None]) ** 2) @ weights - terms[0] ** 2, 0.0)
        slope = np.maximum(terms[0] / s, _STEEP * np.sqrt(own))
        return Clipping(slope, centre, own + bent, s, terms[1:]), own


@cache
def _hermite() -> FloatArray:
    """(k, n) He_k / sqrt(k!) at the nodes, from k = 1."""
    x = nodes()[0]
    values = [np.ones_like(x), x]
    for k in range(1, _TERMS + 1):
        values.append(x * values[k] - k * values[k - 1])
    return np.array([values[k] / math.sqrt(math.factorial(k)) for k in range(1, _TERMS + 2)])
