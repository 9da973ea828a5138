"""The shape of an outcome's scatter: a histogram of where outcomes fell in the laws expected of them.

For one new outcome the shape of the scatter matters, not only its size. After the last sums, every row
counts in one of ten bins by u = F(y), where F is the law of its outcome given all answers so far: normal,
for each noise level that was learned, about what is known of f there, and clipped to the bounds. If all of
that is right, u is uniform. What it is instead, as far as it was measured, is taken to be so for new
outcomes, and quantiles of their laws are read through it: intervals become skewed where outcomes are, and
hold what they say.

F is the law of an outcome that is in the answers itself: these know a little of its own scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.measure.statistics import BIN_ENDS, PLACES, WHOLE
from cloakgp.posterior.states import Reading, Stacked, State, lower_solve, root

NOMINAL: FloatArray = frozen(np.diff([0.0, *BIN_ENDS, 1.0]))
"""What is expected in each bin."""
_HALF = (0.0156, 0.0212, 0.0632, 0.1362, 0.2638)
BELIEVED: FloatArray = frozen(np.array([*_HALF, *_HALF[::-1]]))
"""What is believed beforehand of outcomes: not that they are normal, but that they have Student's law with
five degrees of freedom, and the same mean distance, as stages measure that."""
PRIOR_ROWS = 50.0
"""Rows that count as much as the belief that bins hold what is expected."""
_LEVELS = 8  # noise levels that stand for all
_ROUNDS = 30  # towards the fixed point
_LEAST = 0.02  # of what is expected: no bin is surely empty
_HALVINGS = 50
_BINS = np.arange(len(BIN_ENDS) + 1)
_PLACES = {
    "far from": np.isin(_BINS, (0, 1, 8, 9)) - 0.05,
    "far below": (_BINS < 2) - 0.025,
    "far above": (_BINS > 7) - 0.025,
    "below": (_BINS < 5) - 0.5,
    "above": (_BINS > 4) - 0.5,
}
"""What may differ: bins that hold more or fewer than their share."""


@dataclass(frozen=True, eq=False)
class Scattered:
    """Laws of outcomes: mixtures of normals that share a mean."""

    mean: FloatArray  # (n,)
    stds: FloatArray  # (S, n)
    weights: FloatArray  # (S,)

    def below(self, place: FloatArray) -> FloatArray:
        """(n,) probability of an outcome below this."""
        from scipy.special import ndtr  # here: slow to import

        return np.asarray(self.weights @ ndtr((place - self.mean) / self.stds))

    def quantile(self, u: float) -> FloatArray:
        """(n,) by halving: between the quantiles of the narrowest and the widest."""
        from scipy.special import ndtri  # here: slow to import

        ends = self.mean + ndtri(u) * self.stds
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(_HALVINGS if len(self.weights) > 1 else 0):
            middle = (low + high) / 2
            under = self.below(middle) < u
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return np.asarray((low + high) / 2)

    def edges(self, lower: float, upper: float) -> tuple[IntArray, IntArray]:
        """(n, 9) edges of the bins, in steps of the bounds' width; and (n, 2) probabilities at the bounds."""
        each = np.column_stack([(self.quantile(u) - lower) / (upper - lower) for u in BIN_ENDS])
        places = np.rint(np.clip(each, 0.0, 1.0) * PLACES).astype(np.int64)
        at = np.column_stack(
            [self.below(np.full(len(self.mean), lower)), 1 - self.below(np.full(len(self.mean), upper))]
        )
        return places, np.clip(np.rint(at * WHOLE), 1, WHOLE).astype(np.int64)


def of_training_outcomes(state: State, readings: Sequence[Reading]) -> Scattered:
    """The law of one outcome at each input, of those that the readings are of; numbers are less f's middle.

    With e an outcome's own scatter, y = f + e, and sums G f + A e + noise: what the sums tell of e moves its
    mean, and makes it vary less.
    """
    data = Stacked(state.counts, state.scatter, state.support, readings)
    A = np.vstack([r.rows * r.slope for r in readings]) * (state.scatter / state.counts)
    S, P = state.covariance, state.support.P
    factor = root(data.noise(state.noise, state.rest))
    left = data.z - data.G @ state.support_mean[: len(S)]
    white = lower_solve(factor, np.column_stack([A, data.G, left]))
    n = A.shape[1]
    own, sums, surprise = white[:, :n], white[:, n:-1], white[:, -1]
    mean = state.mean + state.noise * surprise @ own
    with_f = np.einsum("ij,ij->j", own, sums @ (S if P is None else S @ P.T))
    told = sums.T @ own
    known = np.einsum("ij,ij->j", own, own) - np.einsum("ij,ij->j", told, S @ told)
    variance = state.variance - 2 * state.noise * with_f - state.noise**2 * known
    levels, weights = _levels(np.array([one.noise for one in state.settings]), state.weights)
    stds = np.sqrt(np.maximum(variance + levels[:, None], 0.1 * levels[:, None]))
    return Scattered(mean, stds, weights)


def _levels(noise: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A few variances with weights, in place of many: means of neighbours that have equal weight together."""
    order = np.argsort(noise, kind="stable")
    noise, weights = noise[order], weights[order]
    middle = np.cumsum(weights) - weights / 2
    group = np.minimum((middle * _LEVELS).astype(int), _LEVELS - 1)
    total = np.bincount(group, weights)
    held = total > 0
    levels: FloatArray = np.bincount(group, weights * noise)[held] / total[held]
    return levels, np.asarray(total[held], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Shape:
    """How many rows fell in each bin, with noise; and what that says of u = F(y) for a new outcome."""

    counts: FloatArray  # (10,)
    noise: float
    """Variance of the noise on each."""
    rows: float
    """How many there are, about."""
    clustered: float
    """By how much people's rows, which go together, make counts vary more than as many separate ones."""

    def _sampled(self, masses: FloatArray, rows: float) -> FloatArray:
        """(10, 10) covariance of the shares of so many rows."""
        return np.asarray((np.diag(masses) - np.outer(masses, masses)) / rows)

    def _measured(self, masses: FloatArray) -> FloatArray:
        """(10, 10) covariance of the measured shares: sampling, and noise.

        How many rows have no outcome is not known, so the total is left open.
        """
        noise = self.noise / self.rows**2 * np.eye(len(masses)) + np.outer(masses, masses)
        return self._sampled(masses, self.rows / self.clustered) + noise

    @cached_property
    def masses(self) -> FloatArray:
        """(10,) probabilities of the bins.

        From what is believed, as if that had been seen in a few rows, and from what was measured: weighted
        by how much both scatter about the answer, which is a fixed point, therefore.
        """
        surprise, masses = self.counts / self.rows - BELIEVED, BELIEVED
        for _ in range(_ROUNDS):
            prior = self._sampled(masses, PRIOR_ROWS)
            found = BELIEVED + prior @ np.linalg.solve(prior + self._measured(masses), surprise)
            found = np.maximum(found, _LEAST * NOMINAL)
            masses = found / found.sum()
        return frozen(masses)

    def surprise(self, level: float, noise: float) -> tuple[float, str]:
        """A p-value of what was counted, if outcomes fall as the model expects; and what differs most, in
        words.

        `level` is the variance of what all outcomes may be off by together, `noise` that of the logarithm of
        their std: both in units of one outcome's.
        """
        from scipy.special import chdtrc, ndtri  # here: slow to import

        ends = ndtri(BIN_ENDS)
        density = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
        moved, scaled = (np.diff([0.0, *each, 0.0]) for each in (density, ends * density))
        covariance = (
            self._measured(NOMINAL) + level * np.outer(moved, moved) + noise * np.outer(scaled, scaled)
        )
        found = self.counts / self.rows - NOMINAL
        found = found - NOMINAL * found.sum()  # the total is left open
        p_value = float(chdtrc(len(found) - 1, found @ np.linalg.solve(covariance, found)))
        scores = {words: found @ some / np.sqrt(some @ covariance @ some) for words, some in _PLACES.items()}
        where = max(scores, key=lambda words: abs(scores[words]))
        more = "More" if scores[where] > 0 else "Fewer"
        return p_value, f"{more} outcomes lie {where} what is expected than the model says"

    def quantile(self, p: float) -> float:
        """Where in the expected law a new outcome is below with probability `p`.

        On a line between bins, if both laws are drawn as normal scores; beyond the last end, with the slope
        from the middle to there: as if scatter was misjudged by a factor.
        """
        from scipy.special import ndtr, ndtri  # here: slow to import

        at, x = ndtri(np.cumsum(self.masses)[:-1]), float(ndtri(p))
        ends = ndtri(BIN_ENDS)
        outer = 0 if x < at[0] else -1
        if at[0] <= x <= at[-1]:
            return float(ndtr(np.interp(x, at, ends)))
        middle = len(ends) // 2
        slope = (ends[outer] - ends[middle]) / (at[outer] - at[middle])
        return float(ndtr(ends[outer] + slope * (x - at[outer])))
