"""How a staged release goes from one stage to the next: by public rules, from public numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloakgp import designs
from cloakgp.checks import FloatArray
from cloakgp.model.given_smoother import FactoredGP, GivenGP
from cloakgp.model.smoothers import Smoother
from cloakgp.posterior.clipping import Clipping, linearise
from cloakgp.posterior.density import CountErrors
from cloakgp.posterior.mixture import State

RULE = 1
"""Which rule this is: windows of a release made by another cannot be worked out again by this one."""
STAGES, GROWTH = 7, 1.3
KAPPA = 1.5
"""Half a window's width, in standard deviations of what is expected of an outcome."""
FLOOR = 0.01
"""Least width of a window, as a share of the bounds' width."""
SCALE_SHARE = 0.1
"""Of a stage's mu^2, for the noise level; none in the first."""
_SCALE_LIMIT = 2.5  # standard deviations up to which distances are told apart
_GAP = 0.05
_DIRECTIONS = 32  # in which f may vary together with errors of the counts; in others on its own
_IDLE = 0.02  # of the noise variance: directions with less signal are not measured


class Schedule(NamedTuple):
    """How a release in stages goes: public, and fixed before the first."""

    shares: tuple[float, ...]
    """Of mu squared, one for each stage; they add up to 1."""
    kappa: float
    """A window's half width, in standard deviations of what is expected there."""


def schedule(stages: int | None = None) -> Schedule:
    """The public rule: shares grow, since windows close in."""
    sizes = GROWTH ** np.arange(STAGES if stages is None else stages)
    return Schedule(tuple((sizes / sizes.sum()).tolist()), KAPPA)


def expected(
    state: State, rows: FloatArray, slope: FloatArray | float, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(P,) variances of f(X*): given noisy sums of outcomes, and given the outcomes.

    `rest` is the covariance of all in the sums that is neither f nor an outcome's scatter about it.
    """
    n, P = state.counts, state.support.P
    rows = rows * slope
    G = rows * n if P is None else (rows * n) @ P
    H = G @ state.cross
    D = G @ state.covariance @ G.T + (state.noise + state.rest) * (rows * state.scatter) @ rows.T + rest
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
            _SCALE_LIMIT * np.sqrt(np.average(state.variance + state.noise, weights=state.counts)),
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
        self.unit: FloatArray = (window[1] - window[0]) * state.limits
        self.errors: CountErrors | None = None
        """Of the counts, where these are estimates."""

    def smoother(self) -> Smoother:
        """Of the sums of clipped outcomes, each over its window's width and how many rows its person has."""
        state, n = self.state, self.state.counts
        width = self.unit
        factor, P = n * self.clip.slope / width, state.support.P
        noise = state.scatter * self.clip.slope**2 * (state.noise + state.rest)
        variance = state.at_test_points[1]
        if P is None:
            K = state.covariance * factor[:, None] * factor
            K += self.clip.of_sums(state.covariance, n, state.scatter) / width[:, None] / width
            K[np.diag_indices_from(K)] += noise / width**2
            if self.errors is not None:
                K += self.errors.times(*self._clipped()) / width[:, None] / width
            return GivenGP(K, state.cross * factor[:, None], variance)
        own = (noise + state.scatter * self.clip.left) / width**2
        if self.errors is not None:
            factors, rest = self._clipped()
            own = own + self.errors.variance * (np.einsum("ij,ij->i", factors, factors) + rest) / width**2
        own = np.maximum(own, 1e-9 * own.max())
        return FactoredGP(P * factor[:, None], state.covariance, state.cross, own, variance)

    def rows(self) -> FloatArray:
        """(q, U) what to measure of the sums of clipped outcomes: columns have norm 1 / unit at most."""
        smoother, noise = self.smoother(), 1 / self.mu**2
        solution = designs.solve("posterior", smoother, self.weights, _GAP, noise)
        assert solution.matrix is not None
        B = np.asarray(solution.matrix)
        values, turn = np.linalg.eigh(smoother.times_covariance(B) @ B.T)
        B = turn[:, values > min(_IDLE * noise, 0.1 * values[-1])].T @ B
        rows: FloatArray = B / np.linalg.norm(B, axis=0).max() / self.unit
        return rows

    def extra(self, rows: FloatArray) -> FloatArray:
        """(q, q) covariance of what the line leaves over, in these sums; and of what counts are wrong by."""
        if self.errors is None:
            return self._bent(rows)
        return self._bent(rows) + self.errors.in_rows(rows, *self._clipped())

    def _clipped(self) -> tuple[FloatArray, FloatArray]:
        """Second moment of a cell's clipped mean about the middle of its window: L L' + diag(rest)."""
        state, slope, P = self.state, self.clip.slope, self.state.support.P
        values, vectors = np.linalg.eigh(state.covariance)
        largest = vectors[:, -_DIRECTIONS:] * np.sqrt(np.maximum(values[-_DIRECTIONS:], 0.0))
        curves = slope[:, None] * (largest if P is None else P @ largest)
        rest = np.maximum(slope**2 * state.variance - np.einsum("ij,ij->i", curves, curves), 0.0)
        offset = self.clip.centre - (self.window[0] + self.window[1]) / 2
        return np.column_stack([offset, curves]), rest

    def _bent(self, rows: FloatArray) -> FloatArray:
        """What clipping leaves."""
        state, n, P = self.state, self.state.counts, self.state.support.P
        if P is None:
            return np.asarray(rows @ self.clip.of_sums(state.covariance, n, state.scatter) @ rows.T)
        std = np.sqrt(np.diag(state.covariance) + state.noise + state.rest)
        r = state.covariance / std[:, None] / std
        total, power, own = np.zeros((len(rows), len(rows))), r, self.clip.left
        share = (state.variance - state.rest) / self.clip.std**2
        for k, term in enumerate(self.clip.terms, start=2):
            power = power * r
            moved = (rows * (n * term)) @ P
            total += moved @ power @ moved.T
            own = own - term**2 * share**k
        return total + (rows * (state.scatter * np.maximum(own, 0.0))) @ rows.T
