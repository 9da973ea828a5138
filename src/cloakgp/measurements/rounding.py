"""How far another machine's columns of a recipe may be from those made here: ``docs/proofs.md``, lemma 14."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray

LARGEST_ERROR = 2**20  # units: beyond it, a column is mostly rounding
_KERNEL_ERROR = 128  # units in the last place by which two machines' kernel values may differ
_LONGEST_AT_ONCE = 8  # rows of a recipe whose rounding errors are looked at together


class Rounding:
    """How far rounding can take the entries of ``scaled @ K.T / D`` from what they are, in units.

    A sum of m products, each of relative error u, is off by at most (m + c) u times the sum of their
    absolute values. With "fitc" (W is given) the divisor D holds -|phi|^2, phi = W K', and its error counts
    in proportion. Absolute values are bounded by norms (Cauchy and Schwarz), and summed themselves only where
    that is more than `enough`, an error that costs next to nothing.
    """

    def __init__(
        self,
        scaled: FloatArray,
        W: FloatArray | None,
        terms: int,
        enough: float = 0.5,
        highest: float = math.inf,
    ) -> None:
        self._enough = enough
        self._longest = highest * math.sqrt(scaled.shape[1])  # |k| where no kernel value is above the highest
        self._unit = (terms + _KERNEL_ERROR) * 2.0**-52
        self._W = None if W is None else np.abs(W)
        self._W_norm = 0.0 if W is None else float(np.linalg.norm(W))
        sizes = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        order = np.argsort(-sizes, kind="stable")
        self._sizes, self._longest_first = sizes[order], np.abs(scaled[order])

    def largest(self, K: FloatArray, phi: FloatArray, D: Any, known: float = 0.0) -> float:
        """At least the error of any entry, however a machine adds, and at least what is known of others."""
        scale = self._unit / D
        if self._W is None:
            coarsest = float(np.max(scale) * self._longest * self._sizes[0])
            if coarsest < self._enough:
                return max(coarsest, known)
        length = np.sqrt(np.einsum("ij,ij->i", K, K))
        if self._W is not None:
            squared = np.einsum("ij,ij->j", phi, phi)
            scale = scale * (1 + (squared + 2 * np.sqrt(squared) * self._W_norm * length) / D)
        coarse = float((scale * length).max() * self._sizes[0])
        if coarse < self._enough or coarse <= known:  # not so for NaN
            return float(np.maximum(coarse, known))
        K = np.abs(K)
        if self._W is not None:
            off = squared + 2 * np.einsum("ij,ij->j", np.abs(phi), self._W @ K.T)
            scale = self._unit * (1 + off / D) / D
        # A few rows of the recipe at a time, the longest first, until the others are too short for more.
        reach, largest = (1 + 1e-9) * float((scale * length).max()), known
        for start in range(0, len(self._sizes), _LONGEST_AT_ONCE):
            some = slice(start, start + _LONGEST_AT_ONCE)
            longer = ~(self._sizes[some] * reach <= largest)  # so for NaN
            if not longer.any():
                break
            sums = self._longest_first[some][longer] @ K.T
            largest = float(np.maximum(largest, (sums.max(axis=0) * scale).max()))  # NaN stays NaN
        return largest


def units_apart(error: float) -> int:
    """How far two machines' integers may be apart, if each is off by at most `error` before it is rounded."""
    return math.floor(2 * error) + 1


def small_error(n_measurements: int, matrix_bits: int) -> float:
    """One whose :func:`allowance` is at most about 1/8,000 of the longest column, or that needs none."""
    return max(0.5, 2.0 ** (matrix_bits - 15) / math.sqrt(n_measurements))


def allowance(error: float, n_measurements: int, y_bits: int) -> int:
    """What is added to a sensitivity with a recipe's margin, in lattice steps, where entries err by more."""
    apart = units_apart(error)
    if apart == 1:
        return 0
    return 2 * apart * (math.isqrt(n_measurements - 1) + 1) << y_bits  # twice: found apart, and allowed for
