"""What clipping and a link do to outcomes, as a line in f and what is left over.

If y ~ N(m, s^2), then clip(y) = centre + slope (y - m) + e, where slope = Pr[a < y < b] (Stein), centre is
the clipped mean, and e has mean 0 and is uncorrelated with y. The e's of two outcomes with correlation r
are correlated through f, by Mehler's series

    Cov(e, e') = sum over k >= 2 of g_k g'_k r^k / k!,
    g_k = s (He_{k-2}(alpha) phi(alpha) - He_{k-2}(beta) phi(beta)),

with alpha and beta the window's standardised edges. Where an edge is the bound itself, the outcome to
predict is the clipped one, and nothing is clipped on that side.

If f ~ N(m, s^2) and h(f) is the mean of a (clipped) outcome given f, then h(f) = centre + slope (f - m) + e
likewise. With c_k = E[h(f) He_k((f - m) / s)], slope = c_1 / s, and the series has c_k in place of g_k. All
by Gauss-Hermite quadrature, the same for every link.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander

from cloakgp.core.checks import FloatArray
from cloakgp.model.outcome import Link, Outcome

_FAR = 40.0  # standard deviations: beyond them nothing is clipped
_CLIPPED, _LINKED = 8, 4
"""Terms of Mehler's series. Clipping's last has r^9 / 9!; with a link f is known well where it matters, and
the rest is counted as each input's own."""

Window = tuple[FloatArray, FloatArray]
"""(U,) lower and upper edges."""


@dataclass(frozen=True, eq=False)
class Clipping:
    """The line through clip(y) at each of U inputs, and what it leaves."""

    slope: FloatArray
    centre: FloatArray
    """E clip(y)."""
    left: FloatArray
    """Variance of e."""
    std: FloatArray
    """Of y; of f, where there is a link."""
    terms: FloatArray
    """(k, U) g_k / sqrt(k!)."""

    def of_sums(
        self, covariance: FloatArray, counts: FloatArray, scatter: FloatArray | None = None
    ) -> FloatArray:
        """(U, U) covariance of the sums of e over the rows at each input, given f's there.

        `scatter` is the variance of a sum of what is each row's own, in units of one row's, if not `counts`.
        """
        r = covariance / self.std[:, None] / self.std
        power, shared = r, np.zeros_like(r)
        for term in self.terms:
            power = power * r
            shared += term[:, None] * power * term
        own = np.maximum(self.left - np.diag(shared), 0.0)
        sums: FloatArray = shared * counts[:, None] * counts
        sums[np.diag_indices_from(sums)] += (counts if scatter is None else scatter) * own
        return sums


@dataclass(frozen=True)
class Law(ABC):
    """How outcomes within bounds hang on f, which is counted from its middle."""

    bounds: tuple[float, float]
    middle: float

    exact: ClassVar[bool]
    """Whether lines hold wherever f is, and not only about what is known of it."""

    @property
    @abstractmethod
    def width(self) -> float:
        """Of where f is expected."""

    @property
    @abstractmethod
    def origin(self) -> float:
        """What outcomes are counted from."""

    @property
    def centred(self) -> tuple[float, float]:
        """The bounds, less that."""
        return self.bounds[0] - self.origin, self.bounds[1] - self.origin

    @abstractmethod
    def moments(
        self, mean: FloatArray, variance: FloatArray, noise: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, float | FloatArray]:
        """Mean of y given f ~ N(mean, variance), the variance of E[y | f], and the mean of Var[y | f]."""

    @abstractmethod
    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        """E min(|y - centre|, limit) for an outcome with this mean and variance."""

    @abstractmethod
    def linearise(
        self, mean: FloatArray, variance: FloatArray, noise: float, window: Window
    ) -> tuple[Clipping, FloatArray | None]:
        """The line for outcomes given f ~ N(mean, variance), clipped to the window; and their scatter.

        The scatter is the variance of one outcome given f, on average, where `left` has that in it, too; None
        where it is the noise, and not in `left`.
        """


class Direct(Law):
    """Outcomes are f and noise."""

    exact = True

    @property
    def width(self) -> float:
        return self.bounds[1] - self.bounds[0]

    @property
    def origin(self) -> float:
        return self.middle

    def moments(
        self, mean: FloatArray, variance: FloatArray, noise: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, float | FloatArray]:
        return mean, variance, noise

    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        return folded(np.sqrt(variance + (mean - centre) ** 2), limit)

    def linearise(
        self, mean: FloatArray, variance: FloatArray, noise: float, window: Window
    ) -> tuple[Clipping, None]:
        from scipy.special import ndtr  # here: slow to import

        s, bounds = np.sqrt(np.maximum(variance + noise, 1e-300)), self.centred
        alpha = np.clip((window[0] - mean) / s, -_FAR, _FAR)
        beta = np.clip((window[1] - mean) / s, -_FAR, _FAR)
        alpha = np.where(window[0] <= bounds[0], -_FAR, alpha)
        beta = np.where(window[1] >= bounds[1], _FAR, beta)
        below, above = ndtr(alpha), ndtr(-beta)
        at_a, at_b = (np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) for x in (alpha, beta))
        slope = np.maximum(1 - below - above, 0.0)
        shift = alpha * below + beta * above + at_a - at_b
        second = alpha**2 * below + beta**2 * above + slope + alpha * at_a - beta * at_b
        left = s**2 * np.maximum(second - shift**2 - slope**2, 0.0)
        each = (hermevander(x, _CLIPPED - 1).T for x in (alpha, beta))
        coefficients = s * (next(each) * at_a - next(each) * at_b)
        scale = np.sqrt([math.factorial(k) for k in range(2, 2 + _CLIPPED)])[:, None]
        return Clipping(slope, mean + s * shift, left, s, coefficients / scale), None


@dataclass(frozen=True)
class Linked(Law):
    """Outcomes with a mean that is a function of f."""

    link: Link

    exact = False
    origin = 0.0

    @property
    def width(self) -> float:
        low, high = self.link.latent(self.bounds)
        return high - low

    def mean(self, f: FloatArray) -> FloatArray:
        """E[y | f]."""
        return self.link.mean(f + self.middle, self.bounds)

    def moments(
        self, mean: FloatArray, variance: FloatArray, noise: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        x, weights = _nodes()[:2]
        given_f = self.mean(mean[..., None] + np.sqrt(variance)[..., None] * x)
        centre = given_f @ weights
        scatter = self.link.variance(given_f, np.asarray(noise)[..., None]) @ weights
        return centre, ((given_f - centre[..., None]) ** 2) @ weights, scatter

    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        return self.link.distance(mean, variance, centre, limit)

    def linearise(
        self, mean: FloatArray, variance: FloatArray, noise: float, window: Window
    ) -> tuple[Clipping, FloatArray]:
        x, weights, hermite = _nodes()
        s = np.sqrt(np.maximum(variance, 1e-8))  # with less, differences would be lost in rounding
        given_f = self.mean(mean[:, None] + s[:, None] * x)
        low, high = self.bounds
        lower = np.where(window[0] <= low, -np.inf, window[0])[:, None]
        upper = np.where(window[1] >= high, np.inf, window[1])[:, None]
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            h, scatter = self.link.clipped(given_f, noise, lower, upper)
        else:
            h, scatter = given_f, self.link.variance(given_f, noise)
        own, centre = scatter @ weights, h @ weights
        terms = np.array([h @ (weights * each) for each in hermite])
        bent = np.maximum(((h - centre[:, None]) ** 2) @ weights - terms[0] ** 2, 0.0)
        slope = np.maximum(terms[0] / s, 1e-9 * np.sqrt(own))  # not 0, where nothing is told of f
        return Clipping(slope, centre, own + bent, s, terms[1:]), own


def law_of(outcome: Outcome, bounds: tuple[float, float], middle: float) -> Law:
    """How outcomes hang on f."""
    return Direct(bounds, middle) if outcome.link is None else Linked(bounds, middle, outcome.link)


@cache
def _nodes() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points and weights for means over a standard normal; and He_k / sqrt(k!) there, from k = 1."""
    x, weights = hermegauss(32)
    scale = np.sqrt([math.factorial(k) for k in range(1, _LINKED + 2)])
    return x, weights / weights.sum(), hermevander(x, _LINKED + 1).T[1:] / scale[:, None]


def folded(std: FloatArray, limit: float) -> FloatArray:
    """E min(|r|, limit), r ~ N(0, std^2)."""
    from scipy.special import ndtr  # here: slow to import

    at = limit / std
    result: FloatArray = std * np.sqrt(2 / np.pi) * -np.expm1(-(at**2) / 2) + 2 * limit * ndtr(-at)
    return result
