"""How a staged release goes from one stage to the next: by public rules, from public numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloakgp import designs
from cloakgp.core.checks import FloatArray
from cloakgp.model.outcome import Outcome
from cloakgp.model.smoothers import FactoredGP, GivenGP, Smoother
from cloakgp.posterior import skew
from cloakgp.posterior.clipping import Clipping, Direct, Law, Window
from cloakgp.posterior.density import CountErrors
from cloakgp.posterior.states import Reading, State

RULE = 2
"""Which rule this is: windows of a release made by another cannot be worked out again by this one."""
FLOOR = 1e-4
"""Least width of a window, as a share of the bounds' width."""
SCALE_SHARE = 0.1
"""Of a stage's mu^2, for the noise level; none in the first."""
_SURER = 1.5
"""How much wider windows are for what is not known of f, where models are learned: if that is off, outcomes
miss their windows all together."""
BIN_SHARE = 0.04
"""Of mu^2, for the histogram of where outcomes fell, where there is one: after all sums."""
OUTSIDE = (0.05, 0.15, 0.35, 0.6)
"""Shares of what a stage spends on sums that may go to what windows cut off."""
_TAILS = 4  # directions in which that is measured
_DIRECTIONS = 32  # in which f may vary together with errors of the counts; in others on its own


class Schedule(NamedTuple):
    """How a release in stages goes: public, and fixed before the first."""

    shares: tuple[float, ...]
    """Of mu squared, one for each stage; they add up to 1."""
    kappa: float | None
    """A window's half width, in standard deviations of what is expected there; None for no windows."""


def schedule(outcome: Outcome, stages: int | None = None) -> Schedule:
    """The public rule for sums: shares grow, since windows close in."""
    sizes = 1.3 ** np.arange(outcome.stages if stages is None else stages)
    return Schedule(tuple((sizes / sizes.sum()).tolist()), outcome.kappa)


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
    window, weights = (np.zeros(len(n)), np.ones(len(n))), np.ones(len(before))
    known = Stage(state, window, Direct((0.0, 1.0), 0.0), 1.0, weights).smoother().posterior_variance
    return np.maximum(left, 0.0), np.maximum(known, 0.0)


def foreseen(state: State, law: Law) -> tuple[FloatArray, FloatArray]:
    """(U,) mean and variance of an outcome at each input."""
    mean, apart, scatter = law.moments(state.mean, state.variance, state.noise)
    return mean, apart + scatter


def windows(state: State, law: Law, kappa: float) -> Window:
    """Edges about what is expected, within the bounds and never too narrow, and counted as outcomes are."""
    lo, hi = law.centred
    least = FLOOR * (hi - lo)
    mean, apart, scatter = law.moments(state.mean, state.variance, state.noise)
    surer = 1.0 if state.settings and state.settings[0].known else _SURER
    half = np.clip(kappa * np.sqrt(surer**2 * apart + scatter), least / 2, (hi - lo) / 2)
    middle = np.clip(mean, lo, hi)
    a, b = np.maximum(middle - half, lo), np.minimum(middle + half, hi)
    a = np.where(b - a < least, np.clip(middle - least / 2, lo, hi - least), a)
    return a, np.maximum(b, a + least)


def scale_limit(state: State, law: Law) -> float:
    """T, for the noise level's measurement."""
    variance = np.average(foreseen(state, law)[1], weights=state.counts)
    # Distances are told apart up to 2.5 standard deviations.
    return float(min(2.5 * np.sqrt(variance), law.bounds[1] - law.bounds[0]))


class Stage:
    """One stage to come: its windows, how they bend outcomes, and what to measure."""

    def __init__(
        self,
        state: State,
        window: Window,
        law: Law,
        mu: float,
        weights: FloatArray,
    ) -> None:
        self.state, self.window, self.mu, self.weights = state, window, mu, weights
        self.clip: Clipping
        self.own: FloatArray | None
        """(U,) variance of one outcome about the line, where a link tells."""
        self.clip, self.own = law.linearise(state.mean, state.variance, state.noise, window)
        self.noise = state.noise if self.own is None else 0.0
        """Variance of an outcome about f; nothing where a link has it in what its line leaves over."""
        self.unit: FloatArray = (window[1] - window[0]) * state.limits
        self.errors: CountErrors | None = None
        """Of the counts, where these are estimates."""
        self.origin: FloatArray = (window[0] + window[1]) / 2
        """(U,) what outcomes are counted from, where counts are estimates."""

    def smoother(self) -> Smoother:
        """Of the sums of clipped outcomes, each over its window's width and how many rows its person has."""
        state, n = self.state.doubted, self.state.counts
        width = self.unit
        factor, P = n * self.clip.slope / width, state.support.P
        noise = state.scatter * self.clip.slope**2 * (self.noise + state.rest)
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
        solution = designs.solve("posterior", smoother, self.weights, 0.05, noise)
        assert solution.matrix is not None
        B = np.asarray(solution.matrix)
        values, turn = np.linalg.eigh(smoother.times_covariance(B) @ B.T)
        # Directions with next to no signal are not measured.
        B = turn[:, values > min(0.02 * noise, 0.1 * values[-1])].T @ B
        rows: FloatArray = B / np.linalg.norm(B, axis=0).max() / self.unit
        return rows

    def extra(self, rows: FloatArray) -> FloatArray:
        """(q, q) covariance of what the line leaves over, in these sums; and of what counts are wrong by."""
        if self.errors is None:
            return self._bent(rows)
        return self._bent(rows) + self.errors.in_rows(rows, *self._clipped())

    def tails(self, features: FloatArray, width: float) -> FloatArray:
        """(o, U) what to measure of what windows cut off: columns have norm 1 over what bounds have beyond.

        The leading directions of what is believed of it: what windows misjudge, and f beyond them.
        """
        state, n, P = self.state, self.state.counts, self.state.support.P
        values, vectors = np.linalg.eigh(state.covariance)
        largest = vectors[:, -_DIRECTIONS:] * np.sqrt(np.maximum(values[-_DIRECTIONS:], 0.0))
        curves = (1 - self.clip.slope)[:, None] * (largest if P is None else P @ largest)
        root = np.column_stack([np.sqrt(state.skew) * self._misjudged(features), curves])
        weighted = root * np.sqrt(n)[:, None]
        sizes, turn = np.linalg.eigh(weighted.T @ weighted)
        sizes, turn = sizes[: -_TAILS - 1 : -1], turn[:, : -_TAILS - 1 : -1]
        # Squares of rows go with their directions' stds, which makes the sum of squared errors least.
        rows = (root @ turn).T / np.maximum(sizes, 1e-12 * sizes[0])[:, None] ** 0.25
        beyond = width - (self.window[1] - self.window[0])
        there = beyond > 1e-6 * width
        norms = np.linalg.norm(rows, axis=0)
        return np.asarray(np.where(there, rows / np.maximum(norms * beyond * state.limits, 1e-300), 0.0))

    def _misjudged(self, features: FloatArray) -> FloatArray:
        return features * skew.scale(self.noise, self.window[1] - self.window[0])[:, None]

    def outside_share(self, rows: FloatArray, tails: FloatArray, features: FloatArray) -> float:
        """Which share of mu squared the outside is worth: that of the least error to be expected of f(X*)."""
        state, n, P, clip = self.state, self.state.counts, self.state.support.P, self.clip
        sums, signs = np.vstack([rows * clip.slope, tails * (1 - clip.slope)]), np.vstack([rows, -tails])
        G = sums * n if P is None else (sums * n) @ P
        H, skewed = G @ state.cross, (signs * n) @ self._misjudged(features)
        D = G @ state.covariance @ G.T + (self.noise + state.rest) * (sums * state.scatter) @ sums.T
        D += self._bent(signs) + state.skew * skewed @ skewed.T
        found = []
        for share in OUTSIDE:
            noise = np.r_[np.full(len(rows), 1 / (1 - share)), np.full(len(tails), 1 / share)] / self.mu**2
            W = np.linalg.solve(D + np.diag(noise), H)
            found.append(float(self.weights @ np.einsum("qp,qp->p", H, W)))
        return OUTSIDE[int(np.argmax(found))]

    def reading(self, rows: FloatArray, value: FloatArray, covariance: FloatArray) -> Reading:
        """What noisy sums of clipped outcomes say of f, where a link tells: `value` with this noise."""
        state, clip, n = self.state, self.clip, self.state.counts
        assert self.own is not None
        value = value - rows @ (n * (clip.centre - clip.slope * state.mean))
        # What is an outcome's own is counted for each model by its noise.
        extra = self.extra(rows) - (rows * (state.scatter * self.own)) @ rows.T
        return Reading(rows, clip.slope, value, covariance + extra, self.own / state.noise)

    def _clipped(self) -> tuple[FloatArray, FloatArray]:
        """Second moment of a cell's clipped mean about what is 0 in sums: L L' + diag(rest)."""
        state, slope, P = self.state, self.clip.slope, self.state.support.P
        values, vectors = np.linalg.eigh(state.covariance)
        largest = vectors[:, -_DIRECTIONS:] * np.sqrt(np.maximum(values[-_DIRECTIONS:], 0.0))
        curves = slope[:, None] * (largest if P is None else P @ largest)
        rest = np.maximum(slope**2 * state.variance - np.einsum("ij,ij->i", curves, curves), 0.0)
        offset = self.clip.centre - self.origin
        return np.column_stack([offset, curves]), rest

    def _bent(self, rows: FloatArray) -> FloatArray:
        """What clipping leaves."""
        state, n, P = self.state, self.state.counts, self.state.support.P
        if P is None:
            return np.asarray(rows @ self.clip.of_sums(state.covariance, n, state.scatter) @ rows.T)
        std = np.sqrt(np.diag(state.covariance) + self.noise + state.rest)
        r = state.covariance / std[:, None] / std
        total, power, own = np.zeros((len(rows), len(rows))), r, self.clip.left
        share = (state.variance - state.rest) / self.clip.std**2
        for k, term in enumerate(self.clip.terms, start=2):
            power = power * r
            moved = (rows * (n * term)) @ P
            total += moved @ power @ moved.T
            own = own - term**2 * share**k
        return total + (rows * (state.scatter * np.maximum(own, 0.0))) @ rows.T
