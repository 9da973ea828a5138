"""What stages say of f, and what is known of it after them.

Numbers are less the middle of the bounds; the prior mean is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from cloakgp.core.checks import FloatArray
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior import skew
from cloakgp.posterior.support import Support

MANY = 48
"""Numbers, beyond which only directions that tell of f are looked at."""
_MEMORY, _BOLD = 4, 20.0  # of the acceleration: steps, and the largest sum of shares


@dataclass(frozen=True, eq=False)
class Reading:
    """Noisy sums: value = rows @ (sums over each input's rows of slope y) + noise."""

    rows: FloatArray  # (q, U)
    slope: FloatArray  # (U,)
    """How far an outcome moves what was measured of it: less than 1 where it may be clipped."""
    value: FloatArray  # (q,)
    covariance: FloatArray  # (q, q)
    """Of the noise, and of what clipping adds to it."""
    own: FloatArray | None = None
    """(U,) variance of one outcome about f, as measured, in units of the noise; slope squared if absent."""
    skew: FloatArray | None = None
    """(q, r) sums of the features of what windows misjudge: see :mod:`cloakgp.posterior.skew`."""


Readings = Sequence[Sequence[Reading]]
"""What all stages say of each curve."""


@dataclass(frozen=True, eq=False)
class SpreadReading:
    """Noisy mean over all rows of min(|y - centre|, limit)."""

    centre: FloatArray  # (U,)
    limit: float
    value: float
    variance: float
    counts: FloatArray
    """(U,) how many rows at each input it is of."""


@dataclass(frozen=True, eq=False)
class State:
    """What is known of f after some stages."""

    counts: FloatArray  # (U,): rows at each input
    scatter: FloatArray
    """(U,) variance of a sum over them of outcomes about f, in units of one outcome's."""
    limits: FloatArray
    """(U,) how many times shorter than others columns are to be there."""
    support: Support
    settings: tuple[Candidate, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    support_mean: FloatArray  # (m + P,): at support points, then at test points
    support_covariance: FloatArray  # (m + P, m + P)
    noise: float
    """Variance of one outcome about f."""
    rest: float
    """Variance of f at an input that the support points do not tell of."""
    skew: float = 0.0
    """Variance of what windows misjudge, in units of an outcome's."""
    doubt: FloatArray | None = None
    """(m + P, m + P) covariance of what counts as noise, but may be a signal yet; None for nothing."""
    several: tuple[State, ...] = ()
    """Where there are several curves, what is known of each; else none. By itself a state has their average,
    for which the next stage is designed."""

    @property
    def doubted(self) -> State:
        """What is known of f if some of the noise is a signal: what to measure next is designed for this.

        Else a curve that the first stages missed, and that counts as noise from then on, stays missed.
        """
        if self.doubt is None:
            return self
        return replace(self, support_covariance=self.support_covariance + self.doubt)

    @property
    def each(self) -> tuple[State, ...]:
        """What is known of each curve."""
        return self.several or (self,)

    @cached_property
    def mean(self) -> FloatArray:
        """(U,) of f at the inputs."""
        at, P = self.support_mean[: len(self.support.Z)], self.support.P
        return at if P is None else np.asarray(P @ at)

    @cached_property
    def variance(self) -> FloatArray:
        """(U,) of f at the inputs."""
        m, P = len(self.support.Z), self.support.P
        S = self.support_covariance[:m, :m]
        own: FloatArray = np.diag(S) if P is None else np.einsum("ij,ij->i", P @ S, P)
        return np.maximum(own, 0.0) + self.rest

    @property
    def covariance(self) -> FloatArray:
        """(m, m) of f at the support points."""
        m = len(self.support.Z)
        return self.support_covariance[:m, :m]

    @property
    def cross(self) -> FloatArray:
        """(m, P) of f at support and test points."""
        m = len(self.support.Z)
        return self.support_covariance[:m, m:]

    def moved_from(self, other: State) -> float:
        """How far the mean of any f is from another state's, at most."""
        pairs = zip(self.each, other.each, strict=True)
        return max(float(np.max(np.abs(one.support_mean - old.support_mean))) for one, old in pairs)

    @property
    def at_test_points(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f at X*."""
        m = len(self.support.Z)
        return self.support_mean[m:], np.maximum(np.diag(self.support_covariance)[m:], 0.0)


def averaged(each: Sequence[State]) -> State:
    """One state for those of all curves."""
    if len(each) == 1:
        return each[0]
    mean = np.mean([one.support_mean for one in each], axis=0)
    covariance = np.mean([one.support_covariance for one in each], axis=0)
    return replace(each[0], support_mean=mean, support_covariance=covariance, several=tuple(each))


class Stacked:
    """Readings of all stages as one linear Gaussian measurement of f at the support points."""

    def __init__(
        self, n: FloatArray, scatter: FloatArray, support: Support, readings: Sequence[Reading]
    ) -> None:
        sloped = [r.rows * (n * r.slope) for r in readings]
        rows = np.vstack(sloped)
        each = [r.rows * np.sqrt(scatter * (r.slope**2 if r.own is None else r.own)) for r in readings]
        own = np.vstack(each)
        self.G = rows if support.P is None else rows @ support.P
        self.z = np.concatenate([r.value for r in readings])
        self.total = self.G.sum(axis=1)
        self.blurred: FloatArray = (rows / n * (scatter / n)) @ rows.T
        self.own: FloatArray = self.blurred if all(r.own is None for r in readings) else own @ own.T
        self.rest: FloatArray = block_diag(*(r.covariance for r in readings))
        self.skewed: FloatArray = np.zeros_like(self.rest)
        if any(r.skew is not None for r in readings):
            width = next(r.skew.shape[1] for r in readings if r.skew is not None)
            none = [np.zeros((len(r.value), width)) if r.skew is None else r.skew for r in readings]
            self.skewed = skew.covariance(none)

    def reduce(self, covariance: FloatArray, noise: float) -> None:
        """Keep the directions in which f, with this covariance, or skew shows beside this noise."""
        factor = root(self.noise(noise, 0.0))
        white = lower_solve(factor, self.G)
        skewed = lower_solve(factor, lower_solve(factor, self.skewed).T)
        values, turn = np.linalg.eigh(white @ covariance @ white.T + skewed)
        kept = np.argsort(-values)[:MANY]
        # With a thousandth of the noise's variance a direction tells nothing.
        kept = kept[values[kept] > 1e-3]
        T = lower_solve(factor, np.eye(len(factor))).T @ turn[:, kept]
        self.G, self.z, self.total = T.T @ self.G, T.T @ self.z, T.T @ self.total
        self.own, self.blurred = T.T @ self.own @ T, T.T @ self.blurred @ T
        self.rest, self.skewed = T.T @ self.rest @ T, T.T @ self.skewed @ T

    def noise(self, variance: float, left_out: float, skew: float = 0.0) -> FloatArray:
        """Covariance of all that is not f, or is left out of it."""
        return np.asarray(variance * self.own + left_out * self.blurred + self.rest + skew**2 * self.skewed)


class Acceleration:
    """Anderson's: the next guess at a fixed point from the last few, by what they were wrong by."""

    def __init__(self) -> None:
        self._steps: list[tuple[FloatArray, FloatArray, FloatArray]] = []

    def next(self, old: State, new: State) -> State:
        wrong = np.concatenate(
            [
                new.support_mean - old.support_mean,
                np.diag(new.support_covariance) - np.diag(old.support_covariance),
            ]
        )
        self._steps = [*self._steps[-_MEMORY:], (wrong, new.support_mean, new.support_covariance)]
        wrongs = np.array([step[0] for step in self._steps])
        shares = np.zeros(len(wrongs))
        shares[-1] = 1.0
        if len(wrongs) > 1:
            apart = np.diff(wrongs, axis=0)
            found = np.linalg.lstsq(apart.T, wrong, rcond=1e-8)[0]
            shares[1:] -= found
            shares[:-1] += found
        mean = sum(share * step[1] for share, step in zip(shares, self._steps, strict=True))
        covariance = sum(share * step[2] for share, step in zip(shares, self._steps, strict=True))
        least = np.diag(new.support_covariance) / _BOLD
        guess = replace(new, support_mean=np.asarray(mean), support_covariance=np.asarray(covariance))
        sound = (np.diag(covariance) >= least).all() and (guess.variance >= new.variance / _BOLD).all()
        # "not sound" for NaN, too; and no guess too far beyond what was seen.
        return guess if sound and np.abs(shares).sum() <= _BOLD else new


def root(D: FloatArray) -> FloatArray:
    return np.asarray(roots(D[None])[0])


def roots(D: FloatArray) -> FloatArray:
    """Cholesky factors of (S, q, q), with a little on the diagonal where rounding needs it."""
    D = (D + np.swapaxes(D, 1, 2)) / 2
    try:
        return np.asarray(np.linalg.cholesky(D))
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(D)
    values = np.maximum(values, 1e-12 * values[:, -1:])
    _, R = np.linalg.qr(np.sqrt(values)[:, :, None] * np.swapaxes(vectors, 1, 2))
    signs = np.sign(np.einsum("sii->si", R))
    result: FloatArray = np.swapaxes(R * np.where(signs == 0, 1.0, signs)[:, :, None], 1, 2)
    return result


def lower_solve(L: FloatArray, right: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular

    result: FloatArray = solve_triangular(L, right, lower=True, check_finite=False)
    return result
