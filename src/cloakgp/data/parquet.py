"""Rows that are kept in blocks elsewhere and read as they are asked for: the columns of Parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, InputError
from cloakgp.data.formats import PARQUET


class Blocks:
    """Rows in blocks, the last few of which are kept. Any thread may ask for some."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.ends = np.cumsum(np.asarray(sizes, dtype=np.intp), dtype=np.intp)
        self._kept: dict[int, Any] = {}
        self._loading = [Lock() for _ in sizes]

    def load(self, block: int) -> Any:
        """The rows of one block."""
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                stop = max(start, stop)
                parts = [self._block(block)[part] for block, part in spans(self.ends, start, stop)]
                return joined(parts or [self._block(0)[:0]])
            rows = np.arange(start, stop, step)
        index = np.asarray(rows)
        if index.dtype.kind not in "iu" and index.size:
            raise IndexError("rows must be a slice, a whole number or an array of whole numbers.")
        if index.ndim == 0:
            return self._at(index[None])[0]
        return self._at(index)

    def _at(self, index: Any) -> Any:
        """Rows anywhere: each block is visited once."""
        index = index.astype(np.intp)
        if ((index < -len(self)) | (index >= len(self))).any():
            raise IndexError(f"rows must be below {len(self)}.")
        index = np.where(index < 0, index + len(self), index)
        if not len(index):
            return self[:0]
        which, starts = np.searchsorted(self.ends, index, side="right"), np.concatenate([[0], self.ends])
        parts = [
            self._block(block)[index[which == block] - starts[block]] for block in np.unique(which).tolist()
        ]
        return joined(parts)[np.argsort(np.argsort(which, kind="stable"))]

    def _block(self, block: int) -> Any:
        with self._loading[block]:  # rows are read a little at a time, by several threads
            found = self._kept.get(block)
            if found is None:
                found = self._kept[block] = self.load(block)
                for old in list(self._kept)[:-8]:
                    self._kept.pop(old, None)
        return found


def spans(ends: Any, start: int, stop: int) -> Iterator[tuple[int, slice]]:
    """Blocks, which end at `ends`, and the parts of them that hold the rows from `start` to `stop`."""
    for block in range(int(np.searchsorted(ends, start, side="right")), len(ends)):
        begin = int(ends[block - 1]) if block else 0
        if begin >= stop:
            return
        if begin < ends[block]:
            yield block, slice(max(start - begin, 0), min(stop, int(ends[block])) - begin)


def joined(parts: Sequence[Any]) -> Any:
    """One array of parts, in the one layout that all arithmetic here is done in; masks are kept."""
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        return np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    whole = np.asarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)
    return np.require(whole, requirements=["C", "A"])


class ParquetColumns(Blocks):
    """Columns of numbers in a Parquet file, or in a folder of them, of which only parts are read at a time.

    To be given as X where it does not fit into memory. Missing values are NaN.

    Parameters
    ----------
    path : path
        A file, or a folder whose ``.parquet`` and ``.pq`` files hold the rows, in the order of their names:
        ``part.2`` comes before ``part.10``. Names that begin with a dot or an underscore are left out.
    columns : sequence of str
        Names of the columns, in the order wanted.

    Examples
    --------
    >>> import os, tempfile, pyarrow
    >>> from pyarrow import parquet
    >>> table = pyarrow.table({"age": [31, 45, None], "height": [1.6, 1.8, 1.7]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> for part in range(2):
    ...     parquet.write_table(table, os.path.join(folder.name, f"part.{part}.parquet"))

    One file, of which rows are read when asked for:

    >>> X = ParquetColumns(os.path.join(folder.name, "part.0.parquet"), ["height", "age"])
    >>> X.shape
    (3, 2)
    >>> X[1:]
    array([[ 1.8, 45. ],
           [ 1.7,  nan]])

    A folder, as one table with the rows of all its files:

    >>> X = ParquetColumns(folder.name, ["height"])
    >>> len(X), X[[5, 0]].ravel().tolist()
    (6, [1.7, 1.6])
    >>> folder.cleanup()
    """

    dtype = np.dtype(np.float64)
    ndim = 2
    streamed = True
    """Read a chunk of rows at a time, never as a whole."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self.path = Path(path)
        self.columns = [columns] if isinstance(columns, str) else list(columns)
        if not self.columns:
            raise ArgumentError("columns", "must name at least one column")
        self._groups: list[tuple[Path, Any, int]] = []  # file, what it says of itself, row group
        sizes = []
        for file in files_of(self.path):
            metadata = _checked(file, self.columns)
            groups = range(metadata.num_row_groups)
            self._groups += [(file, metadata, group) for group in groups]
            sizes += [metadata.row_group(group).num_rows for group in groups]
        super().__init__(sizes)
        if not len(self):
            raise ValueError(f"{self.path.name}: has no rows.")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.columns)

    def load(self, block: int) -> FloatArray:
        """The rows of one row group. Opened anew for each: threads may not share a reader."""
        import pyarrow
        from pyarrow import parquet

        path, metadata, group = self._groups[block]
        with parquet.ParquetFile(str(path), metadata=metadata) as file:
            table = file.read_row_group(group, columns=self.columns)
        rows = np.empty((table.num_rows, len(self.columns)))
        for place, column in enumerate(self.columns):
            rows[:, place] = table.column(column).cast(pyarrow.float64(), safe=False).to_numpy()
        rows.setflags(write=False)  # several may be looking at it
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[:], dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetColumns, (self.path, self.columns)

    def __repr__(self) -> str:
        return f"<ParquetColumns: {self.path.name}, {len(self)} rows, {', '.join(self.columns)}>"


@contextmanager
def open_parquet(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A Parquet file, of which nothing but the schema was read."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(str(path)) as file:
            yield file
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{Path(path).name}: cannot be read as Parquet; it may be damaged.") from None


def files_of(path: Path) -> list[Path]:
    """A file, or a folder's Parquet files in the order of their rows."""
    if not path.is_dir():
        return [path]
    found = [file for file in path.iterdir() if file.suffix.lower() in PARQUET and file.name[0] not in "._"]
    if not found:
        raise ValueError(f"{path.name}: there is no .parquet or .pq file in this folder.")
    return sorted(found, key=_by_name)


def _by_name(path: Path) -> list[Any]:
    """Digits count as numbers, as Dask has it."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _checked(path: Path, columns: Sequence[str]) -> Any:
    """What a file says of itself, if each of the columns is there once and holds numbers."""
    from pyarrow import types

    with open_parquet(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    numeric = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    for column in columns:
        if schema.names.count(column) != 1:
            raise ValueError(f"{path.name}: there must be one column {column!r}; found {schema.names}.")
        kind = schema.field(column).type
        if not any(is_a(kind) for is_a in numeric):
            raise ValueError(
                f"{path.name}: column {column!r} must hold numbers; it holds {kind}. Encode dates and "
                "categories as numbers first."
            )
    return metadata
