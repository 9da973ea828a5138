"""How y is read: a chunk of rows at a time, made numeric, clipped to the public bounds, and made integer.

Whatever goes wrong becomes one of a few sentences, which quote nothing. Nothing outside of this folder may
import this file: y that has been read exists in the private room only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import IntArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.chunks import is_dask
from cloakgp.data.file_cells import read_answers, read_numbers, read_texts
from cloakgp.data.formats import Format, is_parquet
from cloakgp.data.inputs import TableRows
from cloakgp.data.parquet import ParquetColumns
from cloakgp.data.passes import as_array
from cloakgp.measure.statistics import PLACES, Bin, Distance, Inside, OneOf, Outside, Present, Statistic

EXPECTED_NUMBERS = (
    "y must be a vector of real numbers (dtype bool, int or float). Convert it first, for example "
    "with y.astype(float), writing missing values as NaN or None. Nothing was spent."
)
INCOMPLETE = (
    "y must be finite; it has missing or infinite entries, or such as are none of the classes, which for yes "
    "and no are 1 and 0. Do not drop rows because of their y: that would leak. Use missing='midpoint', which "
    "protects missingness too. Nothing was spent."
)
OTHER_LABELS = (
    "y must have the labels of X's rows, in the same order; its index is another one. Use "
    "y = y.loc[X.index]; or, if its rows are in the order of X's all the same, y = y.to_numpy(). Nothing was "
    "spent."
)
DROPPED_ON_DASK = (
    "y is a Dask array, of which no rows can be left out here. Leave out those with missing inputs of X and "
    "y alike, by X alone. Nothing was spent."
)


def numeric(y: Any) -> checks.FloatArray:
    """Rows of y as float64, or an error that tells nothing of their values."""
    masked = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else False
    array = _numbers(lambda: np.asarray(y))
    with np.errstate(all="ignore"):
        return np.where(masked, np.nan, array.astype(np.float64))


def answers(y: Any) -> checks.FloatArray:
    """Rows of y that are 1 or 0; what is neither is missing: of 1 and 2, clipped, each would be a yes."""
    values = numeric(y)
    return np.where((values == 0) | (values == 1), values, np.nan)


def integers_of(statistic: Statistic, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """(n, p) what a statistic makes of rows of y, and whether each row has an outcome.

    Where there is none, numbers are in the middle of their range or window, and no class is named.
    """
    return _READ[type(statistic)](statistic, y)


def _inside(s: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    return _rounded(s, y, partial(_share_of_window, s))


def _outside(s: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """How far y within the bounds is beyond its window, in shares of 2^b; nothing where it is missing."""
    finite, (low, high) = np.isfinite(y), s.bounds
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        below, within = s.below, np.clip(np.where(finite, y, s.lower), low, high)
        beyond = (within - np.clip(within, s.lower, s.upper)) / s.worth
        rounded = np.rint(np.clip(beyond, -1.0, 1.0) * s.largest).astype(np.int64)
    integers = np.where(finite, np.clip(rounded, -below, s.largest - below), 0)
    return np.asarray(integers[:, None], dtype=np.int64), finite


def _distance(s: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    return _rounded(s, y, lambda clipped: np.asarray(np.abs(clipped - s.centre) / s.limit))


def _share_of_window(s: Any, clipped: checks.FloatArray) -> checks.FloatArray:
    return np.asarray((clipped - s.lower) / (s.upper - s.lower))


def _rounded(
    statistic: Statistic, y: checks.FloatArray, share: Callable[[checks.FloatArray], checks.FloatArray]
) -> tuple[IntArray, NDArray[np.bool_]]:
    """A share of 2^b, rounded, of y within the bounds; where the statistic is centred, less the middle."""
    top = statistic.largest
    steps, finite = _steps(statistic, y, share, top)
    integers = np.where(finite, steps, top // 2) - statistic.centred * (top // 2)
    return np.asarray(integers[:, None], dtype=np.int64), finite


def _steps(
    statistic: Statistic,
    y: checks.FloatArray,
    share: Callable[[checks.FloatArray], checks.FloatArray],
    top: int,
) -> tuple[IntArray, NDArray[np.bool_]]:
    """(n,) a share of y within the bounds, in whole steps from 0 to `top`; and where there is an outcome."""
    finite = np.isfinite(y)
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        clipped = np.clip(np.where(finite, y, statistic.lower), statistic.lower, statistic.upper)
        rounded = np.rint(np.minimum(share(clipped), 1.0) * top).astype(np.int64)
    return np.asarray(np.clip(rounded, 0, top)), finite


def _one_of(statistic: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    one_hot = np.equal.outer(y, np.arange(statistic.classes)).astype(np.int64) * statistic.largest
    named = one_hot.sum(axis=1, keepdims=True) > 0
    return one_hot - statistic.share * named, named[:, 0]


def _present(statistic: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    return np.ones((len(y), 1), dtype=np.int64), np.isfinite(y)


def _bin(s: Any, y: checks.FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
    place, finite = _steps(s, y, partial(_share_of_window, s), PLACES)
    above = np.count_nonzero(place[:, None] >= s.edges, axis=1)
    alone = np.equal.outer(above, np.arange(s.width)) * np.int64(s.largest)
    at_lower, at_upper = s.shares
    found = np.where(place[:, None] == 0, at_lower, np.where(place[:, None] == PLACES, at_upper, alone))
    return found * finite[:, None], finite


_READ = {
    Inside: _inside,
    Outside: _outside,
    Distance: _distance,
    OneOf: _one_of,
    Present: _present,
    Bin: _bin,
}


def parsed(source: Any) -> Any:
    """y as numbers, if it is in memory: what is read again for each stage is what is not."""
    array = source.y if isinstance(source, Answers) else source
    held = isinstance(array, np.ndarray) and not isinstance(array, np.memmap)
    return checks.frozen(numeric(source[:])) if held else source


def kept(y: Any, n_rows: int) -> Any:
    """y where it is kept, in a form that gives slices of rows. No file is read for it but CSV."""
    if is_dask(y):
        array = as_array(y)
    elif isinstance(y, Answers):
        array = Answers(kept(y.y, n_rows))
    elif isinstance(y, ParquetColumns):
        array = _ParquetRows(y)
    elif isinstance(y, PrivateColumn) and is_parquet(y.place[0]):
        array = _ParquetRows(_numbers(lambda: ParquetColumns(*y.place)))
    else:
        array = _numbers(lambda: _without_none(_vector(y)))  # memory maps and masks stay what they are
    if tuple(array.shape) != (n_rows,):
        raise ValueError(
            f"y must have shape ({n_rows},), one outcome per row of X; got shape {array.shape}. "
            "Nothing was spent."
        )
    return array


def column(values: Any, texts: bool = False) -> Any:
    """As an array; what pandas has for a missing entry becomes None, which equals nothing."""
    if texts and isinstance(values, PrivateColumn):
        return read_texts(*values.source)
    if hasattr(values, "iloc") and getattr(getattr(values, "dtype", None), "kind", "O") not in "biuf":
        return _vector(values, values.to_numpy(dtype=object, na_value=None))
    return _vector(values)  # masks stay what they are


def _vector(y: Any, array: Any = None) -> Any:
    """y as an array; that of a table's only column is a vector."""
    array = np.asanyarray(y) if array is None else array
    return array[:, 0] if hasattr(y, "columns") and array.shape[1:] == (1,) else array


def _without_none(array: Any) -> Any:
    """Objects as the numbers they are, None as NaN: lists have it for a missing outcome."""
    if array.dtype != object or array.ndim != 1:
        return array
    nothing: Any = None
    missing = np.ma.getmaskarray(array) | np.equal(np.ma.getdata(array), nothing)
    return np.array(np.where(missing, np.nan, np.ma.getdata(array)).tolist())


def column_name(y: Any) -> str | None:
    """What a header calls y, which is public; None if it has no name. No value is looked at.

    Of a Series, of a table's only column and of a column of a file. Columns that are numbered have no name:
    the first of any table is 0.
    """
    y = y._y if isinstance(y, PrivateLabels) else y
    if isinstance(y, PrivateColumn):
        return y.place[1]
    columns: Any = getattr(y, "column_names", getattr(y, "columns", ()))  # pyarrow's columns have no names
    named = not is_dask(y) or hasattr(y, "to_frame")  # a Dask array's name is that of its task
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None) if named else None
    return name if isinstance(name, str) and name else None


def check_name(y: Any, names: Collection[str]) -> None:
    """Raise if y has the name of a column that the plan has as an input."""
    if column_name(y) in names:
        remedy = "Plan again without it, and show nobody this plan: it may hold outcomes. Nothing was spent."
        raise ArgumentError("y", "must not be one of the inputs, and its name is that of one", remedy=remedy)


def check_labels(values: Any, index: Any, said: str = OTHER_LABELS) -> None:
    """Raise if labels are not those of X's rows, where both have labels: each row would get another's value.

    Labels are part of what is private here as values are: all that is told is whether they are the same.
    """
    own: Any = getattr(values, "index", None)
    labelled = hasattr(own, "equals") and hasattr(index, "equals") and not is_dask(values)
    if labelled and len(own) == len(index) and not own.equals(index):
        raise ValueError(said)


def own_rows(y: Any, rows: TableRows | None) -> Any:
    """y of the rows that count, which public numbers name, if its labels are those of X's rows."""
    if rows is None:
        return y
    check_labels(y, rows.index)
    if rows.kept is None:
        return y
    if is_dask(y):
        raise ValueError(DROPPED_ON_DASK)
    return kept(y, rows.size)[:][rows.kept]


def _numbers(read: Callable[[], Any]) -> Any:
    """What is read, if it holds numbers; else an error that tells nothing of it."""
    try:
        result = read()
    except Exception:  # whatever it says might quote values, so it is not even kept as the cause
        result = None
    if result is None or result.dtype.kind not in "biuf":
        raise TypeError(EXPECTED_NUMBERS)
    return result


class PrivateColumn:
    """One column of a CSV or Parquet file, to be given as y, as people or in X: unread until a door asks.

    Whatever goes wrong while it is read becomes the one message that :func:`numeric` has. A ledger's
    refusal comes before that, so a request that does not fit leaves the column unread.
    """

    __slots__ = ("name", "place", "source")

    def __init__(self, path: str, column: str, form: Format | None = None) -> None:
        self.name, self.place = column, (path, column)
        self.source = (path, column, form)  # and how the file is written, which is public

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> checks.FloatArray:
        return read_numbers(*self.source)  # NaN where one is missing

    def __repr__(self) -> str:
        return "<PrivateColumn, unread>"


class PrivateLabels:
    """Outcomes that are one of some public classes, as numbers from 0: unread until one of the doors asks.

    What is none of them is missing. Every outcome is compared with every class, whatever it is. Without
    classes, y is a column of a file that says yes or no, by words that are the same whatever it holds.
    """

    __slots__ = ("_classes", "_y", "index", "name")

    def __init__(self, y: Any, classes: tuple[Any, ...] = ()) -> None:
        self._y, self._classes = y, classes
        self.index = getattr(y, "index", None)  # labels of its rows, for own_rows
        self.name = getattr(y, "name", None)  # for check_name

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> checks.FloatArray:
        """As float64, NaN where it is no class; called by :func:`kept` alone."""
        if not self._classes:
            return read_answers(*self._y.source)
        labels = column(self._y, any(isinstance(one, str) for one in self._classes))
        values, numbers = np.asarray(labels, dtype=object), np.full(labels.shape, np.nan)
        for number, one in enumerate(self._classes):
            numbers = np.where(np.equal(values, one, dtype=object).astype(bool), number, numbers)
        return np.where(np.ma.getmaskarray(labels), np.nan, numbers)

    def __repr__(self) -> str:
        return "<PrivateLabels, unread>"


class Answers:
    """Outcomes that are 1 and 0, or truth values: unread until one of the doors asks for a slice."""

    def __init__(self, y: Any) -> None:
        self.y, self.shape = y, getattr(y, "shape", ())
        self.index = getattr(y, "index", None)  # labels of its rows, for own_rows

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice) -> Any:
        return answers(self.y[rows])


class _ParquetRows:
    """A column of Parquet files in slices; whatever goes wrong becomes the one message."""

    def __init__(self, columns: ParquetColumns) -> None:
        self._columns = columns
        self.shape = columns.shape if len(columns.columns) > 1 else columns.shape[:1]

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, rows: slice) -> Any:
        return _numbers(lambda: self._columns[rows][:, 0])
