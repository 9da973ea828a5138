"""How far another machine's columns of a recipe may be from those made here: ``docs/proofs.md``, lemma 14."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray

LARGEST_ERROR = 2**20  # units: beyond it, a column is mostly rounding
_KERNEL_ERROR = 128  # units in the last place by which two machines' kernel values may differ
_AT_ONCE = 8  # rows of a recipe, or of X, whose rounding errors are looked at together


class Rounding:
    """How far rounding can take the entries of ``scaled @ K.T / D`` from what they are, in units.

    A sum of m products, each of relative error u, is off by at most (m + c) u times the sum of their
    absolute values. With "fitc" (W is given) the divisor D holds -|phi|^2, phi = W K', and its error counts
    in proportion. First the largest factor of each inducing input stands for all of them: only for rows of X
    for which that is too coarse, absolute values are summed for every row of the recipe that may count.
    Kernel values are within the `span`.
    """

    def __init__(
        self,
        scaled: FloatArray,
        W: FloatArray | None,
        terms: int,
        span: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        self._signed, highest = span[0] < 0, max(span[1], -span[0])
        self._unit = (terms + _KERNEL_ERROR) * 2.0**-52
        self._W = None if W is None else np.abs(W)
        self._W_norm = 0.0 if W is None else float(np.linalg.norm(W))
        sizes = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        order = np.argsort(-sizes, kind="stable")
        self._sizes, self._longest_first = sizes[order], np.abs(scaled[order])
        self._ceiling = self._longest_first.max(axis=0)
        self._most = highest * float(self._longest_first.sum(axis=1).max())

    def largest(self, K: FloatArray, phi: FloatArray, D: Any, known: float = 0.0) -> float:
        """At least the error of any entry, however a machine adds, and at least what is known of others."""
        scale = self._unit / D
        if self._W is None:
            coarsest = float(np.max(scale) * self._most)
            if coarsest < 0.5:
                return max(coarsest, known)
        K, D = np.abs(K) if self._signed else K, np.broadcast_to(D, len(K))
        if self._W is not None:
            squared, length = np.einsum("ij,ij->j", phi, phi), np.sqrt(np.einsum("ij,ij->i", K, K))
            scale = scale * (1 + (squared + 2 * np.sqrt(squared) * self._W_norm * length) / D)
        coarse = scale * (K @ self._ceiling)
        if coarse.max() < 0.5 or coarse.max() <= known:  # not so for NaN
            return float(np.maximum(coarse.max(), known))
        # What the seemingly worst rows have leaves few others to look at.
        worst = np.argpartition(-coarse, min(_AT_ONCE, len(coarse) - 1))[:_AT_ONCE]
        known = self._summed(K[worst], phi[:, worst], D[worst], known)
        some = ~(coarse <= known)  # so for NaN
        return self._summed(K[some], phi[:, some], D[some], known) if some.any() else known

    def _summed(self, K: FloatArray, phi: FloatArray, D: FloatArray, known: float) -> float:
        """At least the error of any entry, by its terms; or what is known, where that is larger."""
        scale, length = self._unit / D, np.sqrt(np.einsum("ij,ij->i", K, K))
        if self._W is not None:
            off = np.einsum("ij,ij->j", phi, phi)
            off += 2 * np.einsum("ij,ij->j", np.abs(phi), self._W @ K.T)
            scale = scale * (1 + off / D)
        # A few rows of the recipe at a time, the longest first, until the others are too short for more.
        reach, largest = (1 + 1e-9) * float((scale * length).max()), known
        for start in range(0, len(self._sizes), _AT_ONCE):
            few = slice(start, start + _AT_ONCE)
            longer = ~(self._sizes[few] * reach <= largest)  # so for NaN
            if not longer.any():
                break
            sums = self._longest_first[few][longer] @ K.T
            largest = float(np.maximum(largest, (sums.max(axis=0) * scale).max()))  # NaN stays NaN
        return largest


def units_apart(error: float) -> int:
    """How far two machines' integers may be apart, if each is off by at most `error` before it is rounded."""
    return math.floor(2 * error) + 1


def allowance(error: float, n_measurements: int, y_bits: int) -> int:
    """What is added to a sensitivity with a recipe's margin, in lattice steps, where entries err by more."""
    apart = units_apart(error)
    if apart == 1:
        return 0
    return 2 * apart * (math.isqrt(n_measurements - 1) + 1) << y_bits  # twice: found apart, and allowed for
