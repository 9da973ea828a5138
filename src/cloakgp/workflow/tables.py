"""Read public columns of CSV and Parquet files, and write tables. Only the columns asked for are decoded.

Errors name the column and the row, and may quote a cell: these columns are public. What is wrong
elsewhere in the file is not quoted, since it may stand in a private column.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import InputError, Message, Phrase, missing_extra
from cloakgp.files import atomic
from cloakgp.rows import file_cells
from cloakgp.rows.file_cells import irregular, read_csv
from cloakgp.rows.formats import Format, are_names, csv_options, detected, header, is_parquet, separator
from cloakgp.rows.parquet import files_of
from cloakgp.rows.people import ALIKE

PathLike = str | os.PathLike[str]
_NAMED = 5  # bad rows that an error names
_COMMA = r"^\s*[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?\s*$"  # a number with a decimal comma, or none
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that spreadsheets run
_THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})*\s*$"  # which may be one with a comma between thousands


def columns_of(path: PathLike) -> list[str]:
    """The names of a table's columns, from its header alone."""
    _exists(path)
    if is_parquet(path):
        return list(open_parquet(path).schema_arrow.names)
    _pyarrow()
    names, form = header(path)
    if not any(name.strip() for name in names):
        raise InputError(f"{name_of(path)}: there is no header. The first line must name the columns.")
    if not are_names(names, form.delimiter):
        raise InputError(
            f"{name_of(path)}: the first line must name the columns. It is not shown, since it may be data. "
            "A name begins with a letter or _, is no number, and has at most 100 characters on one line."
        )
    return names if names[0].strip() else names[1:]  # row labels, which have no name


def check_columns(path: PathLike, wanted: Sequence[str]) -> None:
    """Raise unless a table has these columns, each once."""
    there_are = columns_of(path)
    counted = Counter(there_are)
    for name in wanted:
        if counted[name] == 1:
            continue
        if counted[name]:
            raise InputError(f"{name_of(path)}: column {name!r} is there {counted[name]} times. Rename one.")
        there = ", ".join(map(repr, there_are[:20])) + (", ..." if len(there_are) > 20 else "")
        raise InputError(f"{name_of(path)}: there is no column {name!r}. There: {there}.")
    if len(set(wanted)) < len(wanted):
        raise InputError(f"a column is asked for twice: {', '.join(wanted)}.")


def reading(
    path: PathLike, public: Sequence[str], decimal: str | None = None, encoding: str | None = None
) -> Format:
    """How a table is written, by its header and these public columns alone; whatever is said is so.

    The private column is read the same way, so nothing of it decides this.
    """
    if is_parquet(path):
        return Format()
    check_columns(path, public)
    form = detected(path)
    if encoding is not None:
        form = replace(form, encoding=encoding)
    if decimal is not None:
        form = replace(form, decimal=decimal)
    if not public or _plain(path, public, form) is not None:
        return form
    if encoding is None and form.encoding == "utf-8" and not _is_utf8(path, public, form):
        form = replace(form, encoding="latin-1")
    if decimal is None:
        words = read_words(path, public, form)
        if any(_has_decimal_comma(words.column(name), form) for name in public):
            form = replace(form, decimal=",")
    return form


def _plain(path: PathLike, columns: Sequence[str], form: Format) -> Any:
    """These columns as numbers, or None if something else is in them."""
    return read_csv(path, form, csv_options(form, columns, _pyarrow().float64()))


def are_numbers(path: PathLike, columns: Sequence[str], form: Format | None = None) -> bool:
    """Whether public columns hold numbers, and nothing else."""
    if is_parquet(path):
        schema = open_parquet(path).schema_arrow
        return all(_is_numeric(schema.field(column).type) for column in columns)
    return _plain(path, columns, reading(path, columns) if form is None else form) is not None


def read_words(path: PathLike, columns: Sequence[str], form: Format) -> Any:
    """Public columns of a CSV file as texts, null where a cell is empty: a table of pyarrow's."""
    table = read_csv(path, form, csv_options(form, columns, _pyarrow().string()))
    if table is None:
        raise irregular(path)
    return table


def _is_utf8(path: PathLike, columns: Sequence[str], form: Format) -> bool:
    """Whether public columns are; what is in others is not decoded."""
    pyarrow = _pyarrow()
    table = read_csv(path, form, csv_options(form, columns, pyarrow.binary()))
    try:
        return table is not None and bool(
            table.cast(pyarrow.schema([(c, pyarrow.string()) for c in columns]))
        )
    except pyarrow.ArrowInvalid:
        return False
    return True


def _has_decimal_comma(words: Any, form: Format) -> bool:
    """Whether a public column's numbers are written so; 1,234 between commas may be a thousand."""
    from pyarrow import compute

    def all_are(pattern: str) -> bool:
        return bool(compute.all(compute.match_substring_regex(words, pattern), min_count=0).as_py())

    some = bool(compute.any(compute.match_substring(words, ","), min_count=0).as_py())
    return some and all_are(_COMMA) and not (form.delimiter == "," and all_are(_THOUSANDS))


def read_columns(
    path: PathLike, columns: Sequence[str], form: Format | None = None, complete: bool = True
) -> FloatArray:
    """(rows, columns) of numbers, in the order asked for; every one finite, or an error by row number.

    They are public: how a CSV file is written is found out from them and the header, unless it is said.
    """
    check_columns(path, columns)
    table = _read_parquet(path, columns) if is_parquet(path) else _read_csv(path, columns, form)
    matrix = np.empty((table.num_rows, len(columns)))
    for place, column in enumerate(columns):
        matrix[:, place] = _numbers(table.column(column))
        if complete:
            check_complete(path, column, matrix[:, place])
    if not len(matrix):
        raise InputError(f"{name_of(path)}: there are no rows below the header.")
    return matrix


def read_ids(path: PathLike, column: str, form: Format | None = None, how: str = ALIKE) -> FloatArray:
    """One number per row of a public column: the same for the same id. See :mod:`rows.file_cells`."""
    _pyarrow()
    for file in files_of(Path(path)):
        check_columns(file, [column])
    ids = file_cells.read_ids(path, column, form, how)
    missing = np.flatnonzero(np.isnan(ids))
    if len(missing):
        raise InputError(
            f"{name_of(path)}: column {column!r} must name someone in every row; "
            f"{_rows(missing[: _NAMED + 1].tolist())} not. Rows of an unknown person cannot be protected "
            "together: leave them out, or give them an id."
        )
    if not len(ids):
        raise InputError(f"{name_of(path)}: there are no rows below the header.")
    return ids


def write_columns(path: PathLike, columns: Mapping[str, Any]) -> None:
    """Write a CSV, TSV or Parquet file, whole or not at all."""
    atomic.write(path, encoded(columns, is_parquet(path), separator(path)))


def encoded(columns: Mapping[str, Any], parquet: bool = False, between: str = ",") -> bytes:
    """The bytes of a table: what people download, and what commands write for them.

    In CSV, texts that a spreadsheet would run as formulas have an apostrophe before them.
    """
    pyarrow = _pyarrow()
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    if not parquet:
        arrays = {name: _no_formulas(values) for name, values in arrays.items()}
    table = pyarrow.table({name: _cells(values) for name, values in arrays.items()})
    out = io.BytesIO()
    if parquet:
        from pyarrow import parquet as writer

        writer.write_table(table, out)
    else:
        from pyarrow import csv as writer

        names = io.StringIO()
        csv.writer(names, delimiter=between, lineterminator="\n").writerow(map(_no_formula, columns))
        out.write(names.getvalue().encode())
        plain = writer.WriteOptions(include_header=False, delimiter=between, quoting_style="needed")
        writer.write_csv(table, out, plain)
    return out.getvalue()


def _no_formula(cell: Any) -> Any:
    """The cell; if it is a text that begins like a formula and is no number, with an apostrophe."""
    risky = isinstance(cell, str) and cell.startswith(_FORMULA) and not re.fullmatch(_NUMBER, cell)
    return f"'{cell}" if risky else cell


def _no_formulas(values: Any) -> Any:
    """The same of a column; only texts are looked at."""
    if values.dtype.kind not in "OU":
        return values
    return np.array([_no_formula(cell) for cell in values.tolist()], dtype=object)


def _cells(values: Any) -> Any:
    """A column of pyarrow's; numbers are handed over as they stand in memory, see :func:`_numbers`."""
    pyarrow = _pyarrow()
    if values.dtype != np.float64 or values.ndim != 1:
        return values
    memory = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(pyarrow.float64(), len(values), [None, memory])


def _read_csv(path: PathLike, columns: Sequence[str], form: Format | None) -> Any:
    form = reading(path, columns) if form is None else form
    table = _plain(path, columns, form)
    if table is None:
        words = read_words(path, columns, form)
        for column in columns:
            check_numbers(path, column, words.column(column), form)
        raise irregular(path)
    return table


def numbers_in(words: Any, form: Format) -> FloatArray | None:
    """Cells as numbers, NaN where one is missing; None if one is something else."""
    import pyarrow

    try:
        return _numbers(_with_points(words, form))
    except pyarrow.ArrowInvalid:
        return None


def some_numbers(words: Any, form: Format) -> bool:
    """Whether a cell is a number."""
    from pyarrow import compute

    found = compute.match_substring_regex(_with_points(words, form), _NUMBER)
    return bool(compute.any(found, min_count=0).as_py())


def _with_points(words: Any, form: Format) -> Any:
    """Cells as numbers are written with a decimal point."""
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(words).combine_chunks()
    if form.decimal == ",":  # then a point is no part of a number
        trimmed = compute.replace_substring(compute.replace_substring(trimmed, ".", "x"), ",", ".")
    return trimmed


def check_numbers(
    path: PathLike, column: str, words: Any, form: Format, remedy: str = "Encode dates and categories first."
) -> None:
    """Raise, with row numbers, if a cell of a public column is not a number."""
    import pyarrow
    from pyarrow import compute

    trimmed = _with_points(words, form)

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
        said = f"{name_of(path)}: column {column!r} must hold numbers; {_rows(bad)} not. "
        raise InputError(Message(said, remedy))


def check_complete(path: PathLike, column: str, values: FloatArray) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            Message(
                f"{name_of(path)}: column {column!r} must hold a finite number in every row; "
                f"{_rows(bad[: _NAMED + 1].tolist())} not. Leave such rows out (for a plan, with ",
                Phrase.DROP_INPUTS,
                "), or fill them in by public knowledge only, never by their outcome.",
            )
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
    file = open_parquet(path)
    for column in columns:
        kind = file.schema_arrow.field(column).type
        if not _is_numeric(kind):
            raise InputError(
                f"{name_of(path)}: column {column!r} must hold numbers; it holds {kind}. Encode dates and "
                "categories as numbers first."
            )
    try:
        return file.read(columns=list(columns))
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{name_of(path)}: cannot be read as Parquet; it may be damaged.") from None


def _is_numeric(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def open_parquet(path: PathLike) -> Any:
    """A Parquet file, of which nothing but the schema was read."""
    pyarrow = _pyarrow()
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(str(path))
    except (pyarrow.ArrowException, OSError):
        raise InputError(f"{name_of(path)}: cannot be read as Parquet; it may be damaged.") from None


def _numbers(column: Any) -> FloatArray:
    """A column of pyarrow's as float64, with NaN for what is missing."""
    import pyarrow

    wanted = pyarrow.float64()
    cast = column if column.type == wanted else column.cast(wanted, safe=False)  # which loads all functions
    cast = cast.combine_chunks() if isinstance(cast, pyarrow.ChunkedArray) else cast
    if cast.null_count or not len(cast):
        values: FloatArray = cast.to_numpy(zero_copy_only=False)
        return values
    # As it stands in memory: pyarrow's way would import pandas, which takes longer than all else.
    return np.frombuffer(cast.buffers()[1], np.float64, len(cast), 8 * cast.offset).copy()


def _exists(path: PathLike) -> None:
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file.")


def name_of(path: PathLike) -> str:
    """Of a file, in messages."""
    return Path(path).name


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise missing_extra("reading tables", "pyarrow", "cli") from None
    return pyarrow
