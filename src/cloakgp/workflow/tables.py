"""Read public columns of CSV and Parquet files, and write tables. Only the columns asked for are decoded.

Errors name the column and the row, and may quote a cell: these columns are public. What is wrong
elsewhere in the file is not quoted, since it may stand in a private column.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.files import atomic
from cloakgp.rows import file_cells
from cloakgp.rows.file_cells import check_lines as check_lines
from cloakgp.rows.file_cells import irregular
from cloakgp.rows.formats import csv_options, is_parquet, separator
from cloakgp.rows.parquet import files_of

PathLike = str | os.PathLike[str]
_NAMED = 5  # bad rows that an error names
_LONGEST_HEADER = 2**20  # bytes


def columns_of(path: PathLike) -> list[str]:
    """The names of a table's columns, from its header alone."""
    _exists(path)
    if is_parquet(path):
        return list(_parquet(path).schema_arrow.names)
    pyarrow = _pyarrow()
    try:
        with pyarrow.input_stream(str(path), compression="detect") as stream:
            # The first line and no more: what follows is data, and must not decide what is said here.
            line = io.BufferedReader(stream).readline(_LONGEST_HEADER).decode("utf-8-sig")
            header = next(csv.reader([line], delimiter=separator(path), strict=True), [])
    except (OSError, ValueError, csv.Error):
        raise InputError(f"{_name(path)}: cannot be read as a table in UTF-8 with a header.") from None
    if not any(name.strip() for name in header):
        raise InputError(f"{_name(path)}: there is no header. The first line must name the columns.")
    if not all(_is_name(name) for name in header):
        raise InputError(
            f"{_name(path)}: the first line must name the columns. It is not shown, since it may be data. A "
            "name begins with a letter or _, is no number, and has at most 100 characters on one line. If "
            "the table is separated by semicolons, save it with commas."
        )
    return header


def _is_name(text: str) -> bool:
    """Whether the first line's cell can be shown: a cell of data would be somebody's."""
    text = text.strip()
    plain = text.isprintable() and len(text) <= 100 and not any(mark in text for mark in ";\t|")
    if not plain or not (text[:1].isalpha() or text[:1] == "_"):
        return False
    try:
        float(text)  # nan, inf
    except ValueError:
        return True
    return False


def check_columns(path: PathLike, wanted: Sequence[str]) -> None:
    """Raise unless a table has these columns, each once."""
    header = columns_of(path)
    counted = Counter(header)
    for name in wanted:
        if counted[name] == 1:
            continue
        if counted[name]:
            raise InputError(f"{_name(path)}: column {name!r} is there {counted[name]} times. Rename one.")
        there = ", ".join(map(repr, header[:20])) + (", ..." if len(header) > 20 else "")
        raise InputError(f"{_name(path)}: there is no column {name!r}. There: {there}.")
    if len(set(wanted)) < len(wanted):
        raise InputError(f"a column is asked for twice: {', '.join(wanted)}.")


def read_columns(path: PathLike, columns: Sequence[str]) -> FloatArray:
    """(rows, columns) of numbers, in the order asked for; every one finite, or an error by row number."""
    check_columns(path, columns)
    table = _read_parquet(path, columns) if is_parquet(path) else _read_csv(path, columns)
    matrix = np.empty((table.num_rows, len(columns)))
    for place, column in enumerate(columns):
        matrix[:, place] = _numbers(table.column(column))
        _complete(path, column, matrix[:, place])
    if not len(matrix):
        raise InputError(f"{_name(path)}: there are no rows below the header.")
    return matrix


def read_ids(path: PathLike, column: str) -> FloatArray:
    """One number per row of a public column: the same for the same id. See :mod:`rows.file_cells`."""
    _pyarrow()
    for file in files_of(Path(path)):
        check_columns(file, [column])
    ids = file_cells.read_ids(path, column)
    missing = np.flatnonzero(np.isnan(ids))
    if len(missing):
        raise InputError(
            f"{_name(path)}: column {column!r} must name someone in every row; "
            f"{_rows(missing[: _NAMED + 1].tolist())} not. Rows of an unknown person cannot be protected "
            "together: leave them out, or give them an id."
        )
    if not len(ids):
        raise InputError(f"{_name(path)}: there are no rows below the header.")
    return ids


def write_columns(path: PathLike, columns: Mapping[str, Any]) -> None:
    """Write a CSV, TSV or Parquet file, whole or not at all."""
    atomic.write(path, encoded(columns, is_parquet(path), separator(path)))


def encoded(columns: Mapping[str, Any], parquet: bool = False, between: str = ",") -> bytes:
    """The bytes of a table."""
    pyarrow = _pyarrow()
    table = pyarrow.table({name: np.asarray(values) for name, values in columns.items()})
    out = io.BytesIO()
    if parquet:
        from pyarrow import parquet as writer

        writer.write_table(table, out)
    else:
        from pyarrow import csv as writer

        names = io.StringIO()
        csv.writer(names, delimiter=between, lineterminator="\n").writerow(columns)
        out.write(names.getvalue().encode())
        plain = writer.WriteOptions(include_header=False, delimiter=between, quoting_style="needed")
        writer.write_csv(table, out, plain)
    return out.getvalue()


def _read_csv(path: PathLike, columns: Sequence[str]) -> Any:
    pyarrow = _pyarrow()
    from pyarrow import csv as reader

    for kind in (pyarrow.float64(), pyarrow.string()):
        try:
            table = reader.read_csv(str(path), **csv_options(path, columns, kind))
        except (pyarrow.ArrowException, OSError, ValueError):
            continue  # its message may quote a whole line, private cells included
        check_lines(path, table.num_rows)
        if kind == pyarrow.float64():
            return table
        for column in columns:
            _all_numbers(path, column, table.column(column))
    raise irregular(path)


def _all_numbers(path: PathLike, column: str, words: Any) -> None:
    """Raise, with row numbers, if a cell of a public column is not a number."""
    import pyarrow
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(words).combine_chunks()

    def bad_from(start: int, stop: int) -> int | None:
        """The first row in [start, stop) that is not a number, by halving."""
        try:
            compute.cast(trimmed.slice(start, stop - start), pyarrow.float64())
        except pyarrow.ArrowInvalid:
            if stop - start == 1:
                return start
            middle = (start + stop) // 2
            first = bad_from(start, middle)
            return bad_from(middle, stop) if first is None else first
        return None

    bad: list[int] = []
    while len(bad) <= _NAMED:
        row = bad_from(bad[-1] + 1 if bad else 0, len(trimmed))
        if row is None:
            break
        bad.append(row)
    if bad:
        raise InputError(
            f"{_name(path)}: column {column!r} must hold numbers; {_rows(bad)} not. "
            "Encode dates and categories as numbers first."
        )


def _complete(path: PathLike, column: str, values: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"{_name(path)}: column {column!r} must hold a finite number in every row; "
            f"{_rows(bad[: _NAMED + 1].tolist())} not. Fill or remove such rows by public knowledge only, "
            "never by their outcome."
        )


def _rows(rows: Sequence[int]) -> str:
    """ "rows 3 and 7 do" and the like, counted from 1 below the header."""
    shown = [str(row + 1) for row in rows[:_NAMED]]
    if len(rows) > _NAMED:
        return f"rows {', '.join(shown)} and others do"
    if len(shown) == 1:
        return f"row {shown[0]} does"
    return f"rows {', '.join(shown[:-1])} and {shown[-1]} do"


def _read_parquet(path: PathLike, columns: Sequence[str]) -> Any:
    pyarrow = _pyarrow()
    file = _parquet(path)
    for column in columns:
        kind = file.schema_arrow.field(column).type
        types = pyarrow.types
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
            raise InputError(
                f"{_name(path)}: column {column!r} must hold numbers; it holds {kind}. Encode dates and "
                "categories as numbers first."
            )
    try:
        return file.read(columns=list(columns))
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{_name(path)}: cannot be read as Parquet; it may be damaged.") from None


def _parquet(path: PathLike) -> Any:
    pyarrow = _pyarrow()
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(str(path))
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{_name(path)}: cannot be read as Parquet; it may be damaged.") from None


def _numbers(column: Any) -> FloatArray:
    """A column of pyarrow's as float64, with NaN for what is missing."""
    import pyarrow

    cast = column.cast(pyarrow.float64(), safe=False)
    values: FloatArray = cast.to_numpy()
    return values


def _exists(path: PathLike) -> None:
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file.")


def _name(path: PathLike) -> str:
    return Path(path).name


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "tables are read with pyarrow: install the extra cloakgp[cli] (in a clone: pip install '.[cli]')."
        ) from None
    return pyarrow
