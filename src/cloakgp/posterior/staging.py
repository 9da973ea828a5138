"""How a staged release goes from one stage to the next: by public rules, from public numbers."""

from __future__ import annotations

import numpy as np

from cloakgp import designs
from cloakgp.checks import FloatArray
from cloakgp.model.given_smoother import FactoredGP, GivenGP
from cloakgp.model.smoothers import Smoother
from cloakgp.posterior.clipping import Clipping, linearise
from cloakgp.posterior.mixture import Reading, State

STAGES, GROWTH = 7, 1.3
KAPPA = 1.5
"""Half a window's width, in standard deviations of what is expected of an outcome."""
FLOOR = 0.01
"""Least width of a window, as a share of the bounds' width."""
SCALE_SHARE = 0.1
"""Of a stage's mu^2, for the noise level; none in the first."""
_SCALE_LIMIT = 2.5  # standard deviations up to which distances are told apart
_GAP = 0.05
_IDLE = 0.02  # of the noise variance: directions with less signal are not measured


def schedule(stages: int = STAGES) -> FloatArray:
    """(stages,) shares of mu^2, fixed beforehand: they grow, since windows close in."""
    shares = GROWTH ** np.arange(stages)
    result: FloatArray = shares / shares.sum()
    return result


def windows(state: State, bounds: tuple[float, float], kappa: float = KAPPA) -> tuple[FloatArray, FloatArray]:
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
            _SCALE_LIMIT * np.sqrt(np.average(state.variance + state.noise, weights=state.counts)),
            width,
        )
    )


class Stage:
    """One stage to come: its windows, how they bend outcomes, and what to measure."""

    def __init__(
        self, state: State, window: tuple[FloatArray, FloatArray], bounds: tuple[float, float], mu: float
    ) -> None:
        self.state, self.window, self.mu = state, window, mu
        self.clip: Clipping = linearise(state.mean, state.variance + state.noise, window, bounds)

    def smoother(self) -> Smoother:
        """Of the sums of clipped outcomes, each over its window's width."""
        state, n = self.state, self.state.counts
        width = self.window[1] - self.window[0]
        factor, P = n * self.clip.slope / width, state.support.P
        noise = n * self.clip.slope**2 * (state.noise + state.rest)
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
        smoother, noise = self.smoother(), 1 / self.mu**2
        solution = designs.solve("posterior", smoother, np.ones(smoother.n_outputs), _GAP, noise)
        assert solution.matrix is not None
        B = np.asarray(solution.matrix)
        values, turn = np.linalg.eigh(smoother.times_covariance(B) @ B.T)
        B = turn[:, values > min(_IDLE * noise, 0.1 * values[-1])].T @ B
        rows: FloatArray = B / np.linalg.norm(B, axis=0).max() / (self.window[1] - self.window[0])
        return rows

    def reading(self, rows: FloatArray, value: FloatArray, noise: float) -> Reading:
        """What was measured, as a line through f."""
        return Reading(rows, value, noise, self.state.mean, self.clip, self._extra(rows))

    def _extra(self, rows: FloatArray) -> FloatArray:
        state, n, P = self.state, self.state.counts, self.state.support.P
        if P is None:
            return np.asarray(rows @ self.clip.of_sums(state.covariance, n) @ rows.T)
        std = np.sqrt(np.diag(state.covariance) + state.noise + state.rest)
        r = state.covariance / std[:, None] / std
        total, power, own = np.zeros((len(rows), len(rows))), r, self.clip.left
        share = (state.variance - state.rest) / self.clip.std**2
        for k, term in enumerate(self.clip.terms, start=2):
            power = power * r
            moved = (rows * (n * term)) @ P
            total += moved @ power @ moved.T
            own = own - term**2 * share**k
        return total + (rows * (n * np.maximum(own, 0.0))) @ rows.T
