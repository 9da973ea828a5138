"""How many rows each cell of a grid has, from noisy sums of them: free, and never exact.

Counts are n = level (1 + Phi w) + rough, with Phi the cosines of the grid (levels of a category have
contrasts), w ~ N(0, v) falling off faster for smoother densities, and a rough part of its own in each cell.
A few public settings of smoothness, size and roughness are weighted by their evidence. Whatever the counts
are wrong by moves the sums of outcomes, so their covariance is handed on: :class:`CountErrors`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from cloakgp import designs
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.data.grid import Grid
from cloakgp.model.smoothers import GivenGP

MOST_WAVES = 160
MOST_WANTED = 512
"""Counts that are designed for, at most: of single cells, or of blocks of cells where there are more."""
_LENGTHS = (1 / 20, 1 / 10, 1 / 5, 2 / 5)  # lengthscales, as shares of each range
_SIZES = (0.5, 1.0, 2.0, 4.0)  # std of the smooth part, in mean counts
_ROUGH = (0.03, 0.3, 1.0)  # std of the rough part, in mean counts, beyond chance


@dataclass(frozen=True, eq=False)
class DensityPrior:
    """What is believed of the counts beforehand: public, from the grid and the population alone.

    Parameters
    ----------
    grid : Grid
    total, spread : float
        How many rows there are, and the std of that; 0 if it is public.
    """

    grid: Grid
    total: float
    spread: float

    @property
    def level(self) -> float:
        """Rows of a cell, on average."""
        return self.total / len(self.grid)

    @cached_property
    def _waves(self) -> tuple[FloatArray, FloatArray]:
        """(M, r) waves of mean square 1, and (settings of length, r) their variances, which add up to 1."""
        each = [_axis_waves(axis.cells, axis.category) for axis in self.grid.axes]
        chosen = _largest([weights[0] for _, weights in each])
        waves = np.ones((len(self.grid), len(chosen)))
        places = np.unravel_index(np.arange(len(self.grid)), self.grid.shape)
        weights = np.ones((len(_LENGTHS), len(chosen)))
        for column, ((own, falls), place) in enumerate(zip(each, places, strict=True)):
            waves *= own[place][:, chosen[:, column]]
            weights *= falls[:, chosen[:, column]]
        return waves, weights / weights.sum(axis=1, keepdims=True)

    @cached_property
    def factors(self) -> FloatArray:
        """(M, 1 + r) how counts move with the total and the waves."""
        return self.level * np.column_stack([np.ones(len(self.grid)), self._waves[0]])

    def settings(self) -> list[tuple[FloatArray, float]]:
        """Variances of the factors, and of the rough part."""
        level, total = self.level, (self.spread / self.total) ** 2
        return [
            (np.concatenate([[total], size**2 * weights]), level + (rough * level) ** 2)
            for weights, size, rough in product(self._waves[1], _SIZES, _ROUGH)
        ]

    def design(self, noise: float) -> FloatArray:
        """(q, M) what to measure of counts, with columns of norm 1 at most, for noise of this variance.

        What is wanted are the counts themselves; of blocks of cells, where there are many.
        """
        settings, blocks = self.settings(), _blocks(self.grid)
        v = np.mean([variances for variances, _ in settings], axis=0)
        own = float(np.mean([rough for _, rough in settings]))
        summed = np.zeros((int(blocks.max()) + 1, len(v)))
        np.add.at(summed, blocks, self.factors)
        K = (summed * v) @ summed.T + np.diag(own * np.bincount(blocks))
        smoother = GivenGP(K, K, np.diag(K))
        solution = designs.solve("posterior", smoother, np.ones(len(K)), 0.05, noise)
        assert solution.matrix is not None
        B = np.asarray(solution.matrix)
        rows: FloatArray = (B / np.linalg.norm(B, axis=0).max())[:, blocks]
        return rows


def _blocks(grid: Grid) -> NDArray[np.intp]:
    """(M,) which block each cell is in: one of its own, unless there are many; then neighbours share one."""
    shape = list(grid.shape)
    ranges = [place for place, axis in enumerate(grid.axes) if not axis.category]
    while math.prod(shape) > MOST_WANTED and any(shape[place] > 1 for place in ranges):
        largest = max(ranges, key=lambda place: shape[place])
        shape[largest] = -(-shape[largest] // 2)
    places = np.unravel_index(np.arange(len(grid)), grid.shape)
    coarse = [place * new // old for place, new, old in zip(places, shape, grid.shape, strict=True)]
    blocks = np.ravel_multi_index(coarse, shape)
    n = math.prod(shape)
    return np.asarray(blocks if n <= MOST_WANTED else blocks * MOST_WANTED // n)


def _axis_waves(cells: int, category: bool) -> tuple[FloatArray, FloatArray]:
    """(cells, r) waves along one input, the first constant, and how they fall off for each lengthscale."""
    r = min(cells, MOST_WAVES)
    if category:
        turned, _ = np.linalg.qr(np.column_stack([np.ones(cells), np.eye(cells)[:, 1:]]))
        # Half of the smooth part's variance is how much levels differ.
        falls = np.full((len(_LENGTHS), cells), 0.5 / (cells - 1))
        falls[:, 0] = 1.0
        return turned * (np.sign(turned[0, 0]) * np.sqrt(cells)), falls
    order = np.arange(r)
    waves = np.cos(np.pi * (np.arange(cells)[:, None] + 0.5) * order / cells)
    waves[:, 1:] *= np.sqrt(2)
    return waves, np.exp(-((np.pi * np.outer(_LENGTHS, order)) ** 2) / 2)


def _largest(falls: list[FloatArray]) -> NDArray[np.intp]:
    """(r, D) which waves of each input are multiplied: those with most variance, without the constant."""
    total, index = falls[0], np.arange(len(falls[0]))[:, None]
    for fall in falls[1:]:
        total = np.outer(total, fall).ravel()
        left, right = np.divmod(np.arange(len(total)), len(fall))
        index = np.column_stack([index[left], right])
        best = np.argsort(-total, kind="stable")[: 4 * MOST_WAVES]
        total, index = total[best], index[best]
    chosen: NDArray[np.intp] = index[np.argsort(-total, kind="stable")]
    chosen = chosen[chosen.any(axis=1)][:MOST_WAVES]
    return chosen if len(chosen) else np.zeros((1, len(falls)), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Density:
    """How many rows each cell has, as far as was measured."""

    counts: FloatArray
    """(M,) estimates, above 0; they add up to the number of rows where that is public."""
    errors: CountErrors

    def __repr__(self) -> str:
        total, std = self.counts.sum(), self.std
        return (
            f"<Density: about {total:.0f} rows in {len(self.counts)} cells, std {std.min():.3g} to "
            f"{std.max():.3g} a cell; .counts, .std, .along(grid, place)>"
        )

    @property
    def std(self) -> FloatArray:
        """(M,) of what the estimates are wrong by."""
        return np.sqrt(self.errors.variance)

    def along(self, grid: Grid, place: int) -> tuple[FloatArray, FloatArray]:
        """Along one of the grid's inputs, summed over the others: estimates and the std of their errors."""
        labels = np.unravel_index(np.arange(len(grid)), grid.shape)[place]
        counts: FloatArray = np.bincount(labels, self.counts).astype(np.float64)
        summed = np.zeros((len(counts), self.errors.G.shape[1]))
        np.add.at(summed, labels, self.errors.G)
        variance = np.einsum("ij,ij->i", summed @ self.errors.S, summed)
        return counts, np.sqrt(np.maximum(variance + self.errors.rough * np.bincount(labels), 0.0))


@dataclass(frozen=True, eq=False)
class CountErrors:
    """Covariance of what estimated counts are wrong by: G S G' + rough I."""

    G: FloatArray  # (M, r)
    S: FloatArray  # (r, r)
    rough: float

    @cached_property
    def variance(self) -> FloatArray:
        """(M,) of each."""
        own = np.einsum("ij,ij->i", self.G @ self.S, self.G) + self.rough
        return np.asarray(np.maximum(own, 0.0))

    @cached_property
    def _dense(self) -> FloatArray:
        """(M, M) the covariance itself."""
        return np.asarray(self.G @ self.S @ self.G.T + self.rough * np.eye(len(self.G)))

    def times(self, factors: FloatArray, rest: FloatArray) -> FloatArray:
        """(M, M) covariance of errors times numbers, of second moment factors factors' + diag(rest)."""
        covariance = self._dense * (factors @ factors.T)
        covariance[np.diag_indices_from(covariance)] += rest * self.variance
        return covariance

    def in_rows(self, rows: FloatArray, factors: FloatArray, rest: FloatArray) -> FloatArray:
        """(q, q) the same of sums of them."""
        if len(self.G) <= self.G.shape[1]:
            total = rows @ self.times(factors, rest) @ rows.T
            return np.asarray((total + total.T) / 2)
        total = (rows * (rest * self.variance)) @ rows.T
        for factor in factors.T:
            moved = rows * factor
            summed = moved @ self.G
            total += summed @ self.S @ summed.T + self.rough * moved @ moved.T
        return np.asarray((total + total.T) / 2)


def estimate(prior: DensityPrior, rows: FloatArray, value: FloatArray, variance: float) -> Density:
    """The counts, given noisy sums: value = rows @ counts + noise."""
    M, noise = len(prior.grid), np.full(len(rows), variance)
    if prior.spread == 0:  # the total is known: as good as measured without noise
        rows = np.vstack([rows, np.full((1, M), 1 / np.sqrt(M))])
        value = np.append(value, prior.total / np.sqrt(M))
        noise = np.append(noise, 1e-6 * prior.level)  # none but for rounding
    surprise = value - prior.level * rows.sum(axis=1)
    measured, own = rows @ prior.factors, rows @ rows.T
    found = []
    for v, rough in prior.settings():
        D = (measured * v) @ measured.T + rough * own + np.diag(noise)
        factor = cho_factor((D + D.T) / 2, lower=True)
        alpha = cho_solve(factor, surprise)
        evidence = -surprise @ alpha / 2 - np.log(np.diag(factor[0])).sum()
        found.append((float(evidence), v, rough, factor, alpha))
    best = max(one[0] for one in found)
    found = [one for one in found if np.exp(one[0] - best) > 1e-9]
    weights = np.exp(np.array([one[0] for one in found]) - best)
    weights /= weights.sum()
    moved, S = [], np.zeros((len(prior.factors.T) + len(rows),) * 2)
    for weight, (_, v, rough, factor, alpha) in zip(weights, found, strict=True):
        T = np.vstack([v[:, None] * measured.T, rough * np.eye(len(rows))])
        moved.append(T @ alpha)
        S -= weight * (T @ cho_solve(factor, T.T))
        S[np.diag_indices(len(v))] += weight * v
    mean = weights @ np.array(moved)
    apart = np.array(moved) - mean
    S += apart.T @ (apart * weights[:, None])
    rough = float(weights @ [one[2] for one in found])
    G = np.column_stack([prior.factors, rows.T])
    counts = np.maximum(prior.level + G @ mean, 0.02 * prior.level)  # no cell is surely empty
    if prior.spread == 0:
        counts = counts * (prior.total / counts.sum())
    return Density(frozen(counts), CountErrors(G, S, rough))
