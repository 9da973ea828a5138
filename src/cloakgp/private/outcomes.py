"""How y is read: made numeric, clipped to the public bounds, and rounded to integers.

Whatever goes wrong becomes one of two sentences, which quote nothing. Nothing outside of this folder may
import this file: y that has been read exists in the private room only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from cloakgp import checks
from cloakgp.measurements.lattice import IntArray
from cloakgp.rows.chunks import is_dask
from cloakgp.rows.parquet import ParquetColumns


class Lattice(Protocol):
    """The public bounds, and how finely y is rounded within them."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def y_bits(self) -> int: ...


def numeric(y: Any, n_rows: int) -> checks.FloatArray:
    """y as float64, or an error that tells nothing of its values."""
    masked = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else False
    try:
        array = np.asarray(y)
    except Exception:  # whatever it says might quote values, so it is not even kept as the cause
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise TypeError(EXPECTED_NUMBERS)
    if array.shape != (n_rows,):
        raise ValueError(
            f"y must have shape ({n_rows},), one outcome per row of X; got shape {array.shape}. "
            "Nothing was spent."
        )
    with np.errstate(all="ignore"):
        result: checks.FloatArray = np.where(masked, np.nan, array.astype(np.float64))
    return result


class PrivateColumn:
    """One column of a CSV or Parquet file, to be given as y: unread until one of the room's doors asks.

    Whatever goes wrong while it is read becomes the one message that :func:`numeric` has. A ledger's
    refusal comes before that, so a request that does not fit leaves the column unread.
    """

    __slots__ = ("_column", "_path")

    def __init__(self, path: str, column: str) -> None:
        self._path, self._column = path, column

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> checks.FloatArray:
        """The column as float64, NaN where it is missing; called by :func:`numeric` alone."""
        import pyarrow
        from pyarrow import csv, parquet

        from cloakgp.rows.formats import csv_options, is_parquet

        numbers = pyarrow.float64()
        if is_parquet(self._path):
            table = parquet.ParquetFile(self._path).read(columns=[self._column])
        else:
            table = csv.read_csv(self._path, **csv_options(self._path, [self._column], numbers))
        values: checks.FloatArray = table.column(self._column).cast(numbers, safe=False).to_numpy()
        return values

    @property
    def is_parquet(self) -> bool:
        from cloakgp.rows.formats import is_parquet

        return is_parquet(self._path)

    def __repr__(self) -> str:
        return "<PrivateColumn, unread>"


class _ParquetRows:
    """A column of a Parquet file in slices; whatever goes wrong becomes the one message."""

    def __init__(self, column: PrivateColumn | ParquetColumns) -> None:
        self._rows: ParquetColumns = (
            _quietly(lambda: ParquetColumns(column._path, [column._column]))
            if isinstance(column, PrivateColumn)
            else column
        )
        shape = self._rows.shape
        self.shape = shape if shape[1] > 1 else shape[:1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        return _quietly(lambda: self._rows[rows][:, 0])


def _quietly(read: Callable[[], Any]) -> Any:
    """What is read, or an error that tells nothing of it."""
    try:
        result = read()
    except Exception:  # whatever it says might quote values
        result = None
    if result is None:
        raise TypeError(EXPECTED_NUMBERS)
    return result


def private_dask_column(path: str, column: str) -> Any:
    """A column of Parquet files as a Dask array, to be given as y: read by the workers, unread until then."""
    import dask.array

    sizes = tuple(np.diff(ParquetColumns(path, [column]).ends, prepend=0).tolist())  # from metadata
    return dask.array.map_blocks(
        _private_block,
        path,
        column,
        chunks=(sizes,),
        dtype=np.float64,
        meta=np.empty(0),
        name=f"private-{uuid4().hex}",  # for a known name, a cluster would give what it remembers
    )


def _private_block(path: str, column: str, block_id: tuple[int, ...] = (0,)) -> Any:
    """On a worker: one row group."""
    try:
        return ParquetColumns(path, [column]).load(block_id[0])[:, 0]
    except Exception:  # whatever it says might quote values, and a worker would log it
        return np.array([None])  # which is refused by the one message


EXPECTED_NUMBERS = (
    "y must be a vector of real numbers (dtype bool, int or float). Convert it first, for example "
    "with y.astype(float), writing missing values as NaN. Nothing was spent."
)


INCOMPLETE = (
    "y must be finite; it has missing or infinite entries. Do not drop rows because of their y: that would "
    "leak. Use missing='midpoint', which protects missingness too. Nothing was spent."
)


def to_integers(y: checks.FloatArray, lattice: Lattice, missing: str) -> IntArray:
    """y clipped to the bounds and rounded to integers in [0, 2^y_bits]."""
    finite = np.isfinite(y)
    if missing == "error" and np.count_nonzero(finite) < len(y):
        raise ValueError(INCOMPLETE)
    top = 2**lattice.y_bits
    lower, upper = lattice.lower, lattice.upper
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        clipped = np.clip(np.where(finite, y, lower), lower, upper)
        rounded = np.rint((clipped - lower) / (upper - lower) * top).astype(np.int64)
    integers: IntArray = np.where(finite, np.clip(rounded, 0, top), top // 2)
    return integers


def is_elsewhere(y: Any) -> bool:
    """Whether y is not in memory: what is computed from it is then computed where it is, chunk by chunk."""
    if isinstance(y, PrivateColumn):
        return y.is_parquet
    return is_dask(y) or isinstance(y, (np.memmap, ParquetColumns))


def sliced(y: Any, n_rows: int) -> Any:
    """y in a form that gives slices of rows: as it is if it is kept elsewhere, else as numbers."""
    if not is_elsewhere(y):
        return numeric(y, n_rows)
    if is_dask(y):
        from cloakgp.rows.on_dask import as_array

        y = as_array(y)
    elif not isinstance(y, np.memmap):
        y = _ParquetRows(y)
    if tuple(y.shape) != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), one outcome per row of X. Nothing was spent.")
    return y
