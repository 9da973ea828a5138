"""`posterior` for many rows and inducing inputs: sought for cells of alike rows first.

Measurements that are the same for all rows of a cell are measurements of the cell's sum, so a search over
cells takes as long for many rows as for few. It ends with columns B_c, and from these follow all rows': at
the best, column i of Y E is v_i B_i, which is

    (v_i + d_i L) B_i = M F_i,     L = Y Y',

with one M for all rows, and v_i such that |B_i| = 1. That law is fitted to the cells, and a row's column is
what the law says of the row, plus what the column of its cell has beyond what the law says of the cell.

A search goes on from there over all rows, or, where these are very many, over many small cells. What all rows
measure, B F' and B diag(d) B', then is a little more or less than what cells do. That difference is added to
the cells', which hardly changes any more, until bounds that hold for all rows are within the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.designs.posterior import (
    Aim,
    Anchor,
    Point,
    Search,
    best_bound,
    filled,
    preconditioned,
    solution,
    used,
)
from cloakgp.designs.seen import Cells
from cloakgp.designs.solution import Solution
from cloakgp.designs.solve import mse
from cloakgp.model.arrays import Array, column_dots, times_wide
from cloakgp.model.factored import Factored
from cloakgp.model.smoothers import Rows, Smoother
from cloakgp.rows.chunks import in_threads

LARGE = 2**11
"""Cells that a search begins with."""
SMALL = 2**13
"""Cells that it goes on with, where rows are several times as many."""
_SEVERAL = 4
_ROUGH = 0.2  # gap of the `mse` design of large cells
_BEGUN = 0.3  # share of the gap to search over large cells to
_EVALUATIONS = 60  # at most, of a search over small cells
_FIRST = 250  # over large ones, which take a quarter of the time
_EASY = 30  # evaluations of a search over large cells
_INNER = 0.8  # share of the gap to search over small cells to
_ROUNDS = 8  # of such searches, each with a look at all rows
_OFF = 0.3  # share of the gap by which all rows may leave more unknown than cells; or another law is tried
_SLOW, _PATIENCE = (
    0.95,
    2,
)  # share of the excess that is left, if rounds are no use; how many such there may be
_LARGEST = 2**22  # entries of measurements that all rows are searched for by themselves, if cells do not do
_SHORT = 0.125  # first step from about the best
_RIDGE = 1e-9  # of the features' mean variance
_NEWTON = 8
_LONG = 1e-3  # error of a squared length
_FLOOR = 1e-6  # of the mean multiplier
_NOTHING = 1e-300  # rows far from all inducing inputs have columns of length 0

Part = Callable[[FloatArray, FloatArray, FloatArray], Any]


class CellAnchor(NamedTuple):
    """Measurements of small cells for about the noise to come, and how a search goes on from them."""

    B: Array  # (q, cells)
    scale: Array  # (q, cells): of steps
    left: float
    evaluations: int
    cells: Cells
    law: _Law
    n: int


class InCells:
    """Designs from the measurements of the mse design of cells."""

    def __init__(self, aim: Aim) -> None:
        assert aim.factored is not None
        self.aim, self.rows = aim, aim.factored
        self.small, self.label = self.rows, None
        if self.rows.n_rows >= _SEVERAL * SMALL:
            self.small, self.label = self.rows.in_cells(SMALL)
        self.large, self.large_label = self.small.in_cells(LARGE)
        self.start = mse(cast("Smoother", self.large), aim.weights, _ROUGH, 1.0).reduce
        information = self.rows.information
        self._told = np.linalg.solve(np.eye(len(information)) + information, information)  # F K^-1 F'

    def anchor(self, gap: float, s: float) -> Anchor | CellAnchor:
        """For noise of variance `s`."""
        aim = self.aim
        first = _Search(aim, s, _BEGUN * gap, aim.left(self.start, s), Cells(self.large, aim.turn))
        first.most = _FIRST
        first.run(first.signal(self.start))
        B = np.empty((len(first.best.B), self.small.n_rows))
        _spread(_Law(self.large, first.best), first.best, self.large_label, self.small, B)
        if self.label is None:
            search = Search(aim, s, gap, first.best.value)
            if first.evaluations <= _EASY:
                B = filled(times_wide(used(first.best, gap).T, B))  # without the room that it did not need
        else:
            search = _Search(aim, s, gap, first.best.value, Cells(self.small, aim.turn))
        search.best, search.scale = preconditioned(search.at(B), s)
        search.climb(_SHORT)
        best, evaluations = search.best, first.evaluations + search.evaluations
        if not isinstance(search, _Search):
            return Anchor(best.B, search.scale, best.value, evaluations)
        law = _Law(self.small, best)
        cells = self._looked(search, law).cells
        return CellAnchor(best.B, search.scale, best.value, evaluations + 1, cells, law, search.n)

    def posterior(self, start: CellAnchor, gap: float, s: float) -> Solution:
        """Search from an anchor."""
        B, cells, law, evaluations = start.B, start.cells, start.law, start.evaluations
        best, lower, excess, slow = None, 0.0, np.inf, 0
        for _ in range(_ROUNDS):
            search = _Search(self.aim, s, _INNER * gap, start.left, cells, start.n)
            search.go_on(B, start.scale, _SHORT)
            before, evaluations = excess, evaluations + search.evaluations
            laws = [_Law(self.small, search.best), law]
            looked: list[_Looked] = []
            while laws and all(each.point.value > search.best.value * (1 + _OFF * gap) for each in looked):
                looked.append(self._looked(search, laws.pop(0)))
                lower, evaluations = max(lower, looked[-1].bound * self.aim.unit), evaluations + 1
            found = min(looked, key=lambda each: each.point.value)
            B, cells, law = search.best.B, found.cells, found.law
            if best is None or found.point.value < best.value:
                best = found.point
            excess = best.value * self.aim.unit / lower - 1
            slow = slow + 1 if excess > _SLOW * before else 0
            if excess <= gap or slow == _PATIENCE:
                break
        assert best is not None
        best = best.turned(used(best, gap))
        if excess > gap and best.B.size <= _LARGEST:
            over_all = Search(self.aim, s, gap, best.value)
            over_all.lower = max(over_all.lower, lower)
            over_all.best, over_all.scale = preconditioned(over_all.at(filled(best.B)), s)
            over_all.climb(_SHORT)
            best, lower, evaluations = over_all.best, over_all.lower, evaluations + over_all.evaluations
        return solution(self.aim, best, lower, gap, s, evaluations)

    def _looked(self, search: _Search, law: _Law) -> _Looked:
        """All rows, measured like the cells of a search: what is left unknown, and a bound.

        E (lower_bound) is (A' - Y'Z) F - Y'B diag(d), which belongs to no measurements if Z, what cells
        measure, is not B F'. With R = Y'(B F' - Z) it is (C - Y'B) K + R F, whence E C' and E K^-1 E'.
        """
        assert self.label is not None
        best, s, A = search.best, search.s, search.cells.A
        Y, Z = best.Y, best.BK
        gram, total = search.multipliers(best)
        rest, floor = A.T - Y.T @ Z, max(_FLOOR * total / self.rows.n_rows, _NOTHING)

        def part(columns: FloatArray, F: FloatArray, d: FloatArray) -> tuple[FloatArray, ...]:
            own = columns * d
            E = rest @ F - Y.T @ own
            pull = Y @ E
            v = np.maximum(np.sqrt(column_dots(pull, pull)), floor)
            return columns @ F.T, own @ columns.T, (E / v) @ E.T, v.sum()

        B = np.empty((len(Y), self.rows.n_rows))
        parts = _spread(law, best, self.label, self.rows, B, part)
        BF, own, all_gram, all_total = (sum(each[i] for each in parts) for i in range(4))
        covariance, H = BF @ BF.T + own, BF @ A
        new = np.linalg.solve(covariance + s * np.eye(len(H)), H)
        point = Point(B, BF, covariance, H, new, B[:, :0], search.known_share - float((H * new).sum()))
        R, left = Y.T @ (BF - Z), search.prior - Y.T @ H
        cross = (A.T @ self._told - Y.T @ BF) @ R.T
        EKE = left - H.T @ Y + Y.T @ covariance @ Y + cross + cross.T + R @ self._told @ R.T
        bound = best_bound(all_gram / s, float(all_total), left + R @ self._told @ A, EKE)
        cells = Cells(self.small, self.aim.turn)
        cells_BF, cells_own = self.small.measured(best.B)
        cells.BF, cells.own = BF - cells_BF, own - cells_own
        cells.gram, cells.total = all_gram - gram, float(all_total) - total
        return _Looked(law, point, bound, cells)


class _Looked(NamedTuple):
    law: _Law
    point: Point
    bound: float
    cells: Cells


class _Law:
    """How a row's column of B follows from its features, fitted to cells."""

    def __init__(self, cells: Factored, point: Point) -> None:
        own, self._turn = np.linalg.eigh(point.Y @ point.Y.T)
        self._own, B = np.maximum(own, 0.0)[:, None], self._turn.T @ point.B
        F, d = cells.at(slice(None))
        v = np.maximum(column_dots(point.B, point.pull), 0.0)
        sides = B * (v + self._own * d)
        weighted = F / (v + self._own.mean() * d)
        gram = weighted @ F.T
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
        self._M = np.linalg.solve(gram, weighted @ sides.T).T
        self.of_cells = self.columns(F, d)

    def columns(self, F: FloatArray, d: FloatArray) -> FloatArray:
        """Of rows with these features and noise."""
        side, own = self._M @ F, self._own * d
        v = np.maximum(np.sqrt(column_dots(side, side)), _NOTHING)
        for _ in range(_NEWTON):  # for |B_i| = 1, from above
            columns = side / (v + own)
            squared = column_dots(columns, columns)
            if np.abs(squared - 1).max() < _LONG:
                break
            slope = np.maximum(column_dots(columns, columns / (v + own)), _NOTHING)
            v = np.maximum(v + (np.sqrt(squared) - 1) * squared / slope, 0.01 * v)
        moved: FloatArray = self._turn @ columns
        return moved


def _spread(
    law: _Law, point: Point, label: Rows, rows: Factored, B: FloatArray, then: Part | None = None
) -> list[Any]:
    """Fill B (q, N) with the columns of rows in the cells of a point; and what is then made of each piece."""
    beyond = point.B - law.of_cells

    def part(some: slice) -> Any:
        F, d = rows.at(some)
        columns = law.columns(F, d) + beyond[:, label[some]]
        columns /= np.sqrt(np.maximum(column_dots(columns, columns), _NOTHING))
        B[:, some] = columns
        return None if then is None else then(columns, F, d)

    return in_threads(part, rows.pieces)


class _Search(Search):
    """Over cells."""

    memory = 7
    most = _EVALUATIONS

    @property
    def cells(self) -> Cells:
        assert isinstance(self.rows, Cells)
        return self.rows

    def multipliers(self, point: Point) -> tuple[FloatArray, float]:
        """E diag(1/v) E' and sum(v), of cells alone."""
        v = np.sqrt(column_dots(point.pull, point.pull))
        v = np.maximum(v, max(_FLOOR * float(v.mean()), _NOTHING))
        E = self.cells.rest(point.Y, point.B, point.BK)
        return (E / v) @ E.T, float(v.sum())

    def bound(self, point: Point) -> float:
        """About the bound for all rows."""
        gram, total = self.multipliers(point)
        left = self.prior - point.Y.T @ point.H
        gram, total = (gram + self.cells.gram) / self.s, total + self.cells.total
        return best_bound(gram, total, left, left - self.s * point.Y.T @ point.Y)

    def _done(self, last: bool = False) -> bool:
        return super()._done(last) or self.evaluations >= self.most
