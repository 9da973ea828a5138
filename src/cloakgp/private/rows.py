"""How whole rows are read: each becomes the number of a cell of a public grid, by the same rules as for y.

No branch, early exit, message or warning depends on what an input is, or on whose a row is. Whatever goes
wrong becomes one of a few sentences, which quote nothing. Nothing outside of this folder may import this
file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import IntArray
from cloakgp.core.errors import OtherSize
from cloakgp.data.chunks import chunks, is_dask
from cloakgp.data.dates import days_of
from cloakgp.data.file_cells import read_ids, read_texts
from cloakgp.data.grid import Axis, Grid
from cloakgp.data.people import ALIKE, as_people
from cloakgp.measure.unit import Population
from cloakgp.private.outcomes import PrivateColumn, check_labels, column, kept, numeric

EXPECTED_ROWS = (
    "X, y and people must be as the plan says: X a table with the grid's columns, or an array with as many, "
    "of numbers or dates for ranges and the grid's own levels; y one outcome per row; and ids of people, if "
    "it is for them, and only then, none of them missing. Nothing was spent."
)
INCOMPLETE_ROWS = (
    "X and y must be complete: something is missing, infinite, or a level unknown to the grid. Do not drop "
    "such rows: that would leak. Use missing='midpoint', which protects missingness too. Nothing was spent."
)
OTHER_IDS = (
    "people must have the labels of X's rows, in the same order; its index is another one. Use "
    "people.loc[X.index]; or, if its rows are in the order of X's all the same, people.to_numpy(). Nothing "
    "was spent."
)
_PLAN_AGAIN = "It is public: plan again with the right one. Nothing was spent."
Cells = NDArray[np.intp]


class PrivateRows:
    """Whole rows, to be given as y: unread until the room asks."""

    __slots__ = ("X", "ids", "people", "y")

    def __init__(self, X: Any, y: Any, people: Any, ids: str = ALIKE) -> None:
        self.X, self.y, self.people, self.ids = X, y, people, ids


def rows_of(population: Population, table: PrivateRows) -> tuple[Cells, NDArray[np.bool_], IntArray, Any]:
    """Each row's cell, whether its inputs are known and whether it counts (1 or 0); and y, still unread."""
    columns = _tried(lambda: _columns_of(population.grid, table.X) or None)
    n_rows, people = _tried(lambda: len(columns[0])), table.people
    _expect(all(column.shape == (n_rows,) for column in columns) and not is_dask(table.y))
    _expect((people is None) == (population.max_rows is None))
    index = None if is_dask(table.X) else getattr(table.X, "index", None)
    check_labels(table.y, index)
    check_labels(people, index, OTHER_IDS)
    size = population.size
    if people is None and n_rows != size:
        raise OtherSize(f"the plan is for {size} rows, and here is another number. {_PLAN_AGAIN}")
    source = _tried(lambda: kept(table.y, n_rows))
    parts = _tried(lambda: [_cells_of(population.grid, columns, rows) for rows in chunks(n_rows)])
    cells, known = (np.concatenate(both) for both in zip(*parts, strict=True))
    counted = np.ones(n_rows, dtype=np.int64)
    if people is not None:
        ids = _tried(
            lambda: read_ids(*people.source, table.ids) if isinstance(people, PrivateColumn) else people
        )
        labels = _tried(lambda: as_people(ids, n_rows, table.ids).labels)
        if len(np.bincount(labels)) != size:
            raise OtherSize(f"the plan is for {size} people, and here is another number. {_PLAN_AGAIN}")
        counted = evenly_kept(labels, cells, population.each)
    return cells, known, counted, source


def _tried(read: Callable[[], Any]) -> Any:
    """What is read; if that fails, nothing of why: it might quote values."""
    try:
        result = read()
    except Exception:
        result = None
    _expect(result is not None)
    return result


def _expect(fine: bool) -> None:
    if not fine:
        raise ValueError(EXPECTED_ROWS)


def _columns_of(grid: Grid, X: Any) -> list[Any]:
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return [
            _days(X[axis.name]) if axis.origin else column(X[axis.name], axis.has_texts) for axis in grid.axes
        ]
    array = column(X).reshape(len(X), -1)
    return [array[:, place] for place in range(array.shape[1]) if array.shape[1] == len(grid.axes)]


def _days(values: Any) -> Any:
    """Dates in days; what is no date is missing. Numbers are days already."""
    own = read_texts(*values.source) if isinstance(values, PrivateColumn) else np.asanyarray(values)
    if own.dtype.kind in "biuf" or own.ndim != 1:
        return own
    return np.where(np.ma.getmaskarray(own), np.nan, days_of(np.ma.getdata(own)))


def _cells_of(grid: Grid, columns: list[Any], rows: slice) -> tuple[Cells, NDArray[np.bool_]]:
    """The cell of each row of a chunk, and whether all of its inputs are known; the spare cell if not."""
    found = [_places(axis, column[rows]) for axis, column in zip(grid.axes, columns, strict=True)]
    places = np.ravel_multi_index(tuple(np.maximum(place, 0) for place in found), grid.shape)
    known = np.logical_and.reduce([place >= 0 for place in found])
    return np.where(known, places, grid.spare), known


def _places(axis: Axis, column: Any) -> Cells:
    """Which of an input's cells each row is in; -1 where that is not known."""
    if axis.category:
        values, place = np.asarray(column, dtype=object), np.full(len(column), -1, dtype=np.intp)
        for code, level in enumerate(axis.levels):
            place = np.where(values == level, code, place)
        return np.where(np.ma.getmaskarray(column), -1, place)
    values = numeric(column.astype(np.float64) if column.dtype.kind == "O" else column)
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        inside = np.clip(np.where(finite, values, axis.low), axis.low, axis.high)
        share = (inside - axis.low) / (axis.high - axis.low)
        place = np.minimum(np.floor(share * axis.cells), axis.cells - 1).astype(np.intp)
    return np.where(finite, place, -1)


def evenly_kept(labels: Cells, cells: Cells, most: int) -> IntArray:
    """(N,) 1 for a row that counts, 0 for one that does not: at most `most` of each person.

    They are taken at even distances from the person's rows in the order of their cells: that looks at no one
    else's rows, and at no outcome.
    """
    own, order = np.bincount(labels), np.lexsort((cells, labels))  # stable: rows of a cell stay as they came
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - np.repeat(np.cumsum(own) - own, own)
    n, k = own[labels], np.minimum(own, most)[labels]
    return np.asarray((rank + 1) * k // n - rank * k // n, dtype=np.int64)
