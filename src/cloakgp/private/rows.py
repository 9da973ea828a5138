"""How whole rows are read: each becomes the number of a cell of a public grid, by the same rules as for y.

No branch, early exit, message or warning depends on what an input is, or on whose a row is. Whatever goes
wrong becomes one of two sentences, which quote nothing. Nothing outside of this folder may import this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.measurements.lattice import IntArray
from cloakgp.measurements.whole_rows import RowSums
from cloakgp.private.outcomes import PrivateColumn, kept, numeric
from cloakgp.rows.chunks import chunks, is_dask
from cloakgp.rows.file_cells import read_ids, read_numbers, read_texts
from cloakgp.rows.grid import Axis, Grid
from cloakgp.rows.people import as_people

EXPECTED_ROWS = (
    "X, y and people must be as the plan says: X a table with the grid's columns, or an array with as many, "
    "of numbers for ranges and the grid's own texts or whole numbers for levels; y one outcome for each of "
    "its rows. There must be as many rows as the plan is for; or, if it protects people, one id in people for "
    "each row, none missing, of as many people: these numbers are public. Nothing was spent."
)
INCOMPLETE_ROWS = (
    "X and y must be complete: something is missing, infinite, or a level that the grid does not name. Do "
    "not drop rows because of it: that would leak. Use missing='midpoint', which protects missingness too. "
    "Nothing was spent."
)
Cells = NDArray[np.intp]


class PrivateColumns:
    """Columns of a CSV or Parquet file, to be given as X: unread until one of the room's doors asks."""

    __slots__ = ("_columns", "_path")

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        self._path, self._columns = path, tuple(columns)

    def __repr__(self) -> str:
        return "<PrivateColumns, unread>"


class PrivateRows:
    """Whole rows, to be given as y: unread until the room asks."""

    __slots__ = ("X", "people", "y")

    def __init__(self, X: Any, y: Any, people: Any) -> None:
        self.X, self.y, self.people = X, y, people

    def __repr__(self) -> str:
        return "<PrivateRows, unread>"


class Rows(NamedTuple):
    """Rows as the room sees them; outcomes are still where they were."""

    cells: Cells
    known: NDArray[np.bool_]  # whether all inputs of a row are
    counted: IntArray  # 1 for a row that counts, 0 for one too many of its person
    y: Any


def rows_of(m: RowSums, table: PrivateRows) -> Rows:
    """The cell of each row, and which of them count; or an error that tells nothing of them."""
    columns = _tried(lambda: _columns_of(m.grid, table.X))
    _expect(len(columns) == len(m.grid.axes))
    n_rows, people = len(columns[0]), table.people
    _expect(all(column.shape == (n_rows,) for column in columns) and not is_dask(table.y))
    _expect(n_rows == m.population.size if m.population.max_rows is None else people is not None)
    _expect(people is None or m.population.max_rows is not None)
    source = _tried(lambda: kept(table.y, n_rows))
    parts = [_tried(lambda rows=rows: _cells_of(m.grid, columns, rows)) for rows in chunks(n_rows)]
    cells, known = (np.concatenate(both) for both in zip(*parts, strict=True))
    counted = np.ones(n_rows, dtype=np.int64)
    if people is not None:
        labels = _tried(lambda: as_people(_ids(people), n_rows).labels)
        _expect(len(np.bincount(labels)) == m.population.size)
        counted = evenly_kept(labels, cells, m.population.each)
    return Rows(cells, known, counted, source)


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
    """Each input's column, in the grid's order."""
    if isinstance(X, PrivateColumns):
        return [_from_file(X._path, axis) for axis in grid.axes if X._columns == grid.names]
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return [_column(X[name]) for name in grid.names]
    array = _column(X)
    array = array.reshape(len(array), -1)
    return [array[:, place] for place in range(array.shape[1]) if array.shape[1] == len(grid.axes)]


def _from_file(path: str, axis: Axis) -> Any:
    texts = any(isinstance(level, str) for level in axis.levels)
    return (read_texts if texts else read_numbers)(path, axis.name)


def _ids(people: Any) -> Any:
    if not isinstance(people, PrivateColumn):
        return people
    found = read_ids(people._path, people._column)
    return np.where(found < 0, np.nan, found)  # which names nobody


def _column(values: Any) -> Any:
    """As an array; what pandas has for a missing entry becomes None, which equals nothing."""
    if hasattr(values, "to_numpy") and getattr(values, "dtype", np.dtype(float)).kind not in "biuf":
        return values.to_numpy(dtype=object, na_value=None)
    return np.asanyarray(values)  # masks stay what they are


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
        return place
    values = numeric(column)
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        inside = np.clip(np.where(finite, values, axis.low), axis.low, axis.high)
        share = (inside - axis.low) / (axis.high - axis.low)
        place = np.minimum(np.floor(share * axis.cells), axis.cells - 1).astype(np.intp)
    return np.where(finite, place, -1)


def evenly_kept(labels: Cells, cells: Cells, most: int) -> IntArray:
    """(N,) 1 for a row that counts, 0 for one that does not: at most `most` of each person.

    A person's rows are put in the order of their cells, and as many as may count are taken from them at even
    distances. That looks at no one else's rows, and at no outcome.
    """
    own, order = np.bincount(labels), np.lexsort((cells, labels))  # stable: rows of a cell stay as they came
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - np.repeat(np.cumsum(own) - own, own)
    n, k = own[labels], np.minimum(own, most)[labels]
    return np.asarray((rank + 1) * k // n - rank * k // n, dtype=np.int64)
