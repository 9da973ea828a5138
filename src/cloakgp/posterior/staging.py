"""How a staged release goes from one stage to the next: by public rules, from public numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloakgp import designs
from cloakgp.checks import FloatArray
from cloakgp.model.given_smoother import FactoredGP, GivenGP
from cloakgp.model.smoothers import Smoother
from cloakgp.posterior.clipping import Clipping, linearise
from cloakgp.posterior.mixture import State

FLOOR = 0.01
"""Least width of a window, as a share of the bounds' width."""
SCALE_SHARE = 0.1
"""Of a stage's mu^2, for the noise level; none in the first."""
_SCALE_LIMIT = 2.5  # standard deviations up to which distances are told apart
_GAP = 0.05


class Schedule(NamedTuple):
    """How a release in stages goes: public, and fixed before the first."""

    shares: tuple[float, ...]
    """Of mu squared, one for each stage; they add up to 1."""
    kappa: float
    """A window's half width, in standard deviations of what is expected there."""


def schedule(mu: float, n_rows: int, stages: int | None = None) -> Schedule:
    """The public rule: more stages where there is more noise."""
    n = stages or (5 if mu > 0.2 else 7)
    sizes = 1.4 ** np.arange(n)
    return Schedule(tuple((sizes / sizes.sum()).tolist()), 1.2)


def expected(
    state: State, rows: FloatArray, slope: FloatArray | float, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(P,) variances of f(X*): given noisy sums of outcomes, and given the outcomes.

    `rest` is the covariance of all in the sums that is neither f nor an outcome's scatter about it.
    """
    n, P = state.mixture.counts, state.mixture.P
    rows = rows * slope
    G = rows * n if P is None else (rows * n) @ P
    H = G @ state.cross
    D = G @ state.covariance @ G.T + state.noise * (rows * n) @ rows.T + rest
    before = state.at_test_points[1]
    left = before - np.einsum("ij,ij->j", H, np.linalg.solve(D, H))
    window = np.zeros(len(n)), np.ones(len(n))
    known = Stage(state, window, (0.0, 1.0), 1.0, np.ones(len(before))).smoother().posterior_variance
    return np.maximum(left, 0.0), np.maximum(known, 0.0)


def windows(state: State, bounds: tuple[float, float], kappa: float) -> tuple[FloatArray, FloatArray]:
    """(U,) lower and upper edges about what is expected, within the bounds and never too narrow."""
    lo, hi = bounds
    least = FLOOR * (hi - lo)
    half = np.clip(kappa * np.sqrt(state.variance + state.noise), least / 2, (hi - lo) / 2)
    middle = np.clip(state.mean, lo, hi)
    a, b = np.maximum(middle - half, lo), np.minimum(middle + half, hi)
    a = np.where(b - a < least, np.clip(middle - least / 2, lo, hi - least), a)
    return a, np.maximum(b, a + least)


def scale_limit(state: State, width: float) -> float:
    """T, for the noise level's measurement."""
    return float(
        min(
            _SCALE_LIMIT * np.sqrt(np.average(state.variance + state.noise, weights=state.mixture.counts)),
            width,
        )
    )


class Stage:
    """One stage to come: its windows, how they bend outcomes, and what to measure."""

    def __init__(
        self,
        state: State,
        window: tuple[FloatArray, FloatArray],
        bounds: tuple[float, float],
        mu: float,
        weights: FloatArray,
    ) -> None:
        self.state, self.window, self.mu, self.weights = state, window, mu, weights
        self.clip: Clipping = linearise(state.mean, state.variance + state.noise, window, bounds)

    def smoother(self) -> Smoother:
        """Of the sums of clipped outcomes, each over its window's width."""
        state, n = self.state, self.state.mixture.counts
        width = self.window[1] - self.window[0]
        factor, P = n * self.clip.slope / width, state.mixture.P
        noise = n * self.clip.slope**2 * state.noise
        variance = state.at_test_points[1]
        if P is None:
            K = state.covariance * factor[:, None] * factor
            K += self.clip.of_sums(state.covariance, n) / width[:, None] / width
            K[np.diag_indices_from(K)] += noise / width**2
            return GivenGP(K, state.cross * factor[:, None], variance)
        own = (noise + n * self.clip.left) / width**2
        own = np.maximum(own, 1e-9 * own.max())
        return FactoredGP(P * factor[:, None], state.covariance, state.cross, own, variance)

    def rows(self) -> FloatArray:
        """(q, U) what to measure of the sums of clipped outcomes: columns have norm 1 / width at most."""
        smoother = self.smoother()
        solution = designs.solve("posterior", smoother, self.weights, _GAP, 1 / self.mu**2)
        assert solution.matrix is not None
        B: FloatArray = np.asarray(solution.matrix) / (self.window[1] - self.window[0])
        return B

    def extra(self, rows: FloatArray) -> FloatArray:
        """(q, q) covariance of what the line leaves over, in these sums."""
        state, n, P = self.state, self.state.mixture.counts, self.state.mixture.P
        if P is None:
            return np.asarray(rows @ self.clip.of_sums(state.covariance, n) @ rows.T)
        std = np.sqrt(np.diag(state.covariance) + state.noise)
        r = state.covariance / std[:, None] / std
        total, power, own = np.zeros((len(rows), len(rows))), r, self.clip.left
        share = state.variance / self.clip.std**2
        for k, term in enumerate(self.clip.terms, start=2):
            power = power * r
            moved = (rows * (n * term)) @ P
            total += moved @ power @ moved.T
            own = own - term**2 * share**k
        return total + (rows * (n * np.maximum(own, 0.0))) @ rows.T
