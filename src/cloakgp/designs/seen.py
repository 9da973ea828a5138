"""What measurements B of y see: products with y's covariance K, by a smoother or by its factors."""

from __future__ import annotations

from copy import copy
from typing import Protocol

import numpy as np

from cloakgp.model.arrays import Array, column_dots, times_wide, wide_dots
from cloakgp.model.factored import Factored
from cloakgp.model.smoothers import Smoother
from cloakgp.rows.chunks import in_threads

_RIDGE = 1e-6  # of the features' mean variance
_NEWTON = 3
_NOTHING = 1e-300  # rows far from all inducing inputs have columns of length 0


class Seen(Protocol):
    """B K in some form, and what follows from it; predictions are in a few coordinates."""

    @property
    def C(self) -> Array:
        """(P, N) how y becomes predictions."""
        ...

    def first(self, n: int) -> Seen:
        """The same for the first `n` coordinates of predictions."""
        ...

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B K in some form with as many rows; B K B'; and H (q, n), covariances with the coordinates."""
        ...

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """(q, N) Y E, without making E."""
        ...

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """(n, N) E: the covariance of predictions and y, given the measurements."""
        ...


class BySmoother:
    """For any smoother."""

    def __init__(self, C: Array, smoother: Smoother, turn: Array) -> None:
        self.C, self._smoother = C, smoother
        self._cross = times_wide(turn.T, smoother.cross.T)  # (n, N)

    def first(self, n: int) -> BySmoother:
        """The same for fewer coordinates."""
        result = copy(self)
        result._cross = self._cross[:n]
        return result

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B K, B K B' and H."""
        BK = self._smoother.times_covariance(B)
        return BK, wide_dots(BK, B), wide_dots(B, self._cross)

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """Y E."""
        pull = times_wide(Y, self._cross)
        pull -= times_wide(Y @ Y.T, BK)
        return pull

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """E."""
        return self._cross - times_wide(Y.T, BK)


class ByFactors:
    """For K = F'F + diag(d): B F' is all that is needed of B K."""

    def __init__(self, factored: Factored, turn: Array) -> None:
        self.factored, self._A = factored, factored.star @ turn  # (r, n)

    @property
    def C(self) -> Array:
        return self.factored.columns(slice(None))

    def first(self, n: int) -> ByFactors:
        """The same for fewer coordinates."""
        result = copy(self)
        result._A = self._A[:, :n]
        return result

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B F', B K B' and H."""
        BF, own = self.factored.measured(B)
        return BF, BF @ BF.T + own, BF @ self._A

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """Y E."""
        L = Y @ Y.T
        return self.factored.back(Y @ self._A.T - L @ BK, L, B)

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """E."""
        return self.factored.back(self._A.T - Y.T @ BK, Y.T, B)


def carried_over(B: Array, pull: Array, Y: Array, cells: Factored, rows: Factored) -> Array:
    """Measurements of all rows, from about the best ones of cells, turned so that Y Y' is diagonal.

    At the best, column i of Y E is v_i B_i, v_i being a multiplier: (v_i + d_i Y Y') B_i = M F_i, with one M
    for all. That is fitted to the cells, and solved for columns of norm 1, or shorter ones where v_i is 0.
    """
    eigenvalues = column_dots(Y.T, Y.T)
    F, d = cells.at(slice(None))
    sides = B * (column_dots(B, pull) + eigenvalues[:, None] * d)
    gram = (F / d) @ F.T
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    M = np.linalg.solve(gram, (F / d) @ sides.T).T
    result = np.empty((len(B), rows.n_rows))

    def work(some: slice) -> None:
        F, d = rows.at(some)
        side, own = M @ F, eigenvalues[:, None] * d
        v = np.sqrt(column_dots(side, side))
        for _ in range(_NEWTON):  # for |B_i| = 1, from above
            columns = side / (v + own)
            squared = column_dots(columns, columns)
            slope = np.maximum(column_dots(columns, columns / (v + own)), _NOTHING)
            v = np.maximum(v + (np.sqrt(squared) - 1) * squared / slope, 0.01 * v)
        result[:, some] = side / (v + own)

    in_threads(work, rows.pieces)
    return result
