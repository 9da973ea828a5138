"""Public input columns of any size: as an array, or left in their file and read a chunk at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.files import container
from cloakgp.plans import encoding
from cloakgp.rows.columns import Columns
from cloakgp.rows.formats import Format, is_parquet
from cloakgp.rows.parquet import ParquetColumns, files_of
from cloakgp.rows.passes import sweep
from cloakgp.rows.people import ALIKE
from cloakgp.workflow import tables
from cloakgp.workflow.cluster import dask_array
from cloakgp.workflow.table_cells import as_numbers, is_coded, read_points


def check_columns(
    path: Path, inputs: Sequence[str], output: str, dask: bool, people: str | None = None
) -> None:
    """Raise unless a table has these columns; for a cluster it may also be a folder of Parquet files."""
    others = [output] if people is None or people in inputs else [output, people]
    if not dask:
        tables.check_columns(path, [*inputs, *others])
        return
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    if not path.is_dir() and not is_parquet(path):
        raise InputError(
            f"{path.name}: with --dask the table must be Parquet, which workers can read in parts. "
            "Convert it first."
        )
    ParquetColumns(path, inputs)  # raises, by column, unless every part has them
    for file in files_of(path):
        tables.check_columns(file, [*inputs, *others])


def open_inputs(
    path: Path,
    inputs: Sequence[str],
    inducing: bool,
    dask: bool,
    columns: Columns | None = None,
    form: Format | None = None,
    missing: str = "error",
) -> Any:
    """(rows, columns) of numbers: an array if it is small or the model needs all of it, else a source.

    Levels and dates become numbers as `columns` says. What is missing is NaN, if `missing` is "drop".
    """
    coded = columns is not None and is_coded(columns)
    if dask:
        if coded or missing == "drop":
            raise InputError("--dask reads columns of numbers, of which none is missing. Leave it out.")
        return dask_inputs(path, inputs)
    if columns is not None and coded:
        table = read_points(path, columns, form)
        if missing == "drop":
            return columns.numbers(table, path.name, new_levels=False)
        return as_numbers(path, columns, table, new_levels=False)
    if missing == "drop":
        return tables.read_columns(path, inputs, form, complete=False)
    if inducing and is_parquet(path):
        tables.check_columns(path, inputs)
        X = ParquetColumns(path, inputs)
        if not is_small(X):
            return X
    return tables.read_columns(path, inputs, form)


def complete_rows(X: Any, people: Any, missing: str) -> tuple[Any, Any]:
    """The rows of inputs, and the ids of their people, of which nothing is missing."""
    if missing == "error":
        return X, people
    kept = ~np.isnan(X).any(axis=1)
    return X[kept], None if people is None else people[kept]


def protected(X: Any, people: Any, missing: str) -> int:
    """To how many a promise is made about the rows that count: people, if there are ids, else rows."""
    X, people = complete_rows(X, people, missing)
    return len(X) if people is None else len(np.unique(people))


def open_ids(path: Path, column: str | None, form: Format | None = None, how: str = ALIKE) -> Any:
    """(rows,) whose row each is, as whole numbers; None if no column of people was named. Public."""
    return None if column is None else tables.read_ids(path, column, form, how)


def dask_inputs(path: Path, columns: Sequence[str]) -> Any:
    """The same as a Dask array, whose blocks are row groups of Parquet files, read by the workers."""
    whole = path.resolve()
    X = ParquetColumns(whole, columns)
    sizes = tuple(np.diff(X.ends, prepend=0).tolist())
    return dask_array().map_blocks(
        _block,
        str(whole),
        tuple(columns),
        chunks=(sizes, (len(columns),)),
        dtype=np.float64,
        meta=np.empty((0, len(columns))),
        name=f"inputs-{uuid4().hex}",  # a cluster would give what it remembers of a name, though files change
    )


def _block(path: str, columns: tuple[str, ...], block_id: tuple[int, ...] = (0, 0)) -> FloatArray:
    """On a worker: one row group."""
    rows: FloatArray = ParquetColumns(path, columns).load(block_id[0])
    return rows


def is_small(X: Any) -> bool:
    """Whether a release file holds these inputs as they are, and not only their digest."""
    return 8 * len(X) * int(X.shape[1]) <= encoding.LARGEST_INPUTS


def digest_of(X: Any) -> str:
    """SHA-256 of inputs, wherever they are: as a release file holds them; of their chunks', if large."""
    if is_small(X):
        return container.digest(np.asarray(X))
    whole = hashlib.sha256()
    for part in sweep(_digest, X, label="reading X"):
        whole.update(part)
    return whole.hexdigest()


def _digest(X: FloatArray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes()).digest()


def ranges(X: Any) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number of each column."""
    if isinstance(X, np.ndarray):
        return X.min(axis=0), X.max(axis=0)
    found = np.array(list(sweep(_range, X, label="reading X")))
    if not np.isfinite(found).all():
        raise InputError(
            "the input columns must hold a finite number in every row. Fill or remove such rows by public "
            "knowledge only, never by their outcome."
        )
    return found[:, 0].min(axis=0), found[:, 1].max(axis=0)


def _range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return X.min(axis=0), X.max(axis=0)
