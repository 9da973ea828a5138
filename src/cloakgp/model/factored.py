"""Outcomes whose prior covariance is F'F + diag(d), F having few rows: those of a GP with inducing inputs.

Products with it are made a piece of columns at a time, in threads, the same to the last bit for any number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.arrays import column_dots
from cloakgp.model.smoothers import Rows
from cloakgp.rows.chunks import evenly, in_threads

_AT_ONCE = 2**11  # rows that a thread multiplies with
_DIRECTIONS = 64  # in which cells are told apart
_SEEN = 8  # points, for each cell

Piece = tuple[FloatArray, FloatArray]


class Factored:
    """As much of a smoother as designs ask for.

    Parameters
    ----------
    n_rows : int
    at : callable
        From a slice of rows to their columns of F (r, n), and d (n,).
    star : (r, P) array
        f(X*) in terms of what F is in terms of, so that its covariance with y is F' star.
    information : (r, r) array
        F diag(1/d) F'; of other rows, if those are what predictions are made from.
    """

    def __init__(
        self, n_rows: int, at: Callable[[slice | Rows], Piece], star: FloatArray, information: FloatArray
    ) -> None:
        self.n_rows, self.n_outputs, self.at = n_rows, star.shape[1], at
        self.star, self.information = star, information
        T = np.linalg.solve(np.eye(len(star)) + information, star).T
        self.T: FloatArray = np.asarray(T, dtype=np.float64)  # (P, r)

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C."""
        F, d = self.at(rows)
        columns: FloatArray = self.T @ (F / d)
        return columns

    def measured(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B F', and B diag(d) B'."""

        def part(rows: slice) -> Piece:
            (F, d), some = self.at(rows), B[:, rows]
            return some @ F.T, (some * d) @ some.T

        parts = in_threads(part, self.pieces)
        return sum(one for one, _ in parts), sum(own for _, own in parts)  # type: ignore[return-value]

    def back(self, M: FloatArray, L: FloatArray, B: FloatArray) -> FloatArray:
        """M F - L B diag(d)."""
        result = np.empty((len(M), self.n_rows))

        def work(rows: slice) -> None:
            F, d = self.at(rows)
            result[:, rows] = M @ F
            result[:, rows] -= L @ (B[:, rows] * d)

        in_threads(work, self.pieces)
        return result

    @property
    def reach(self) -> FloatArray:
        """(P,) at least the squared sum of each output's absolute covariances with y (Cauchy-Schwarz)."""
        total = sum(float(self.at(rows)[1].sum()) for rows in self.pieces)
        reach: FloatArray = total * column_dots(self.star, self.information @ self.star)
        return reach

    @property
    def pieces(self) -> list[slice]:
        """Of rows, in order."""
        return [slice(start, min(start + _AT_ONCE, self.n_rows)) for start in range(0, self.n_rows, _AT_ONCE)]

    def in_units(self, units: FloatArray) -> Factored:
        """Of outcomes that are each measured in a unit of its own."""

        def at(rows: slice | Rows) -> Piece:
            (F, d), u = self.at(rows), units[rows]
            return F / u, d / u**2

        return Factored(self.n_rows, at, self.star, self.information)

    def in_cells(self, n: int) -> tuple[Factored, Rows]:
        """The sums over about `n` cells of rows that are much the same, at most; and every row's cell."""
        directions = np.linalg.eigh(self.information)[1][:, -_DIRECTIONS:].T

        def seen(rows: slice) -> FloatArray:
            F, d = self.at(rows)
            result: FloatArray = (directions @ (F / d)).T
            return result

        label = cells(np.vstack(in_threads(seen, self.pieces)), n)
        order = np.argsort(label, kind="stable")

        def part(rows: slice) -> tuple[Rows, FloatArray, FloatArray]:
            some = order[rows]
            (F, d), own = self.at(some), label[some]
            first = np.flatnonzero(np.diff(own, prepend=-1))
            return own[first], np.add.reduceat(F, first, axis=1), np.add.reduceat(d, first)

        F, d = np.zeros((len(self.star), label.max() + 1)), np.zeros(label.max() + 1)
        for which, some_F, some_d in in_threads(part, self.pieces):
            F[:, which] += some_F
            d[which] += some_d
        return Factored(len(d), lambda rows: (F[:, rows], d[rows]), self.star, self.information), label


def cells(points: FloatArray, n: int) -> Rows:
    """Which cell each point is in: points are halved again and again where they are widest.

    Where that is, and where the middle, is seen from some of them.
    """
    some = points[evenly(len(points), _SEEN * n)]
    label, first = np.zeros(len(points), dtype=np.intp), np.zeros(1, dtype=np.intp)
    while 2 * len(first) <= min(n, len(some)):
        sizes = np.diff(first, append=len(some))
        widest = (np.maximum.reduceat(some, first) - np.minimum.reduceat(some, first)).argmax(axis=1)
        cell = np.repeat(np.arange(len(first)), sizes)
        some = some[np.lexsort((some[np.arange(len(some)), widest[cell]], cell))]
        second = first + sizes // 2
        middle = (some[second - 1, widest] + some[second, widest]) / 2
        label = 2 * label + (points[np.arange(len(points)), widest[label]] > middle[label])
        first = np.stack([first, second], axis=1).ravel()
    found: Rows = np.unique(label, return_inverse=True)[1]  # of equal points none may be left for a half
    return found
