"""How whole rows are read: each becomes the number of a cell of a public grid, by the same rules as for y.

No branch, early exit, message or warning depends on what an input is. Nothing outside of this folder may
import this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.private.outcomes import PrivateColumn, numeric
from cloakgp.rows.chunks import is_dask
from cloakgp.rows.file_cells import read_ids, read_numbers, read_texts
from cloakgp.rows.grid import Axis, Grid
from cloakgp.rows.people import as_people

EXPECTED_ROWS = (
    "X and y must be a table with the grid's columns, or an array with as many, and one outcome for each of "
    "its rows: numbers for a range, the grid's texts or whole numbers for levels. Nothing was spent."
)
EXPECTED_SIZE = (
    "X and y must have as many rows as the plan was made for: that number is public. Nothing was spent."
)
EXPECTED_PEOPLE = (
    "people must hold one id for each row, none missing, of as many people as the plan was made for: that "
    "number is public. Nothing was spent."
)
INCOMPLETE_ROWS = (
    "X and y must be complete: something is missing, infinite, or a level that the grid does not name. Do not "
    "drop rows because of it: that would leak. Use missing='midpoint', which protects missingness too. "
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


def columns_of(grid: Grid, X: Any) -> list[Any]:
    """Each input's column, unread, in the grid's order; or an error that tells nothing of it."""
    try:
        found = _columns(grid, X)
    except Exception:  # whatever it says might quote values, so it is not even kept as the cause
        found = None
    if found is None or len({len(column) for column in found}) != 1 or any(column.ndim != 1 for column in found):
        raise TypeError(EXPECTED_ROWS)
    return found


def _columns(grid: Grid, X: Any) -> list[Any] | None:
    if is_dask(X):
        return None
    if isinstance(X, PrivateColumns):
        return [_from_file(X._path, axis) for axis in grid.axes] if X._columns == grid.names else None
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return [_column(X[name]) for name in grid.names]
    array = _column(X)
    array = array[:, None] if array.ndim == 1 else array
    return [array[:, place] for place in range(array.shape[1])] if array.shape[1] == len(grid.axes) else None


def _from_file(path: str, axis: Axis) -> Any:
    texts = any(isinstance(level, str) for level in axis.levels)
    return (read_texts if texts else read_numbers)(path, axis.name)


def _column(values: Any) -> Any:
    """As an array; what pandas has for a missing entry becomes None, which equals nothing."""
    if hasattr(values, "to_numpy") and getattr(values.dtype, "kind", "O") not in "biuf":
        return values.to_numpy(dtype=object, na_value=None)
    return np.asanyarray(values)  # masks stay what they are


def cells_of(grid: Grid, columns: list[Any], rows: slice) -> tuple[Cells, NDArray[np.bool_]]:
    """The cell of each row of a chunk, and whether all of its inputs are known; the spare cell if not."""
    try:
        found = [_places(axis, column[rows]) for axis, column in zip(grid.axes, columns, strict=True)]
    except Exception:
        found = None
    if found is None:
        raise TypeError(EXPECTED_ROWS)
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


def _ids(ids: Any) -> Any:
    if not isinstance(ids, PrivateColumn):
        return ids
    found = read_ids(ids._path, ids._column)
    return np.where(found < 0, np.nan, found)  # which names nobody


def kept_rows(ids: Any, cells: Cells, people: int, most: int) -> NDArray[np.int64]:
    """(N,) 1 for a row that counts, 0 for one that does not: at most `most` of each person.

    A person's rows are put in the order of their cells, and as many as may count are taken from them at even
    distances. That looks at no one else's rows, and at no outcome.
    """
    try:
        labels: Any = as_people(_ids(ids), len(cells)).labels
    except Exception:
        labels = None
    if labels is None or len(np.bincount(labels)) != people:
        raise ValueError(EXPECTED_PEOPLE)
    order = np.lexsort((cells, labels))  # stable: rows of a cell stay as they came
    own = np.bincount(labels)
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - np.repeat(np.cumsum(own) - own, own)
    n, k = own[labels], np.minimum(own, most)[labels]
    return ((rank + 1) * k // n - rank * k // n).astype(np.int64)
