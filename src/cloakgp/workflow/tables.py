"""Read public columns of CSV and Parquet files, and write tables. Only the columns asked for are decoded.

A column is told by what it holds: numbers, texts, yes or no, dates. They become numbers by the rules of
:mod:`cloakgp.data.columns`, which a plan and its release keep. Errors name the column and the row, and may
quote a cell: these columns are public. What is wrong elsewhere in the file is not quoted, since it may stand
in a private column.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import Argument, InputError, Message, Phrase, missing_extra
from cloakgp.data import file_cells, frames
from cloakgp.data.columns import Column, Columns
from cloakgp.data.file_cells import irregular, read_csv
from cloakgp.data.formats import Format, are_names, csv_options, detect, header, is_parquet, separator
from cloakgp.data.frames import Cells, Table
from cloakgp.data.parquet import files_of, open_parquet
from cloakgp.data.people import ALIKE
from cloakgp.files import atomic

PathLike = str | os.PathLike[str]
_COMMA = r"^\s*[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?\s*$"  # a number with a decimal comma, or none
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_AS_NUMBER = rf"{_NUMBER}|^[+-]?(inf(inity)?|nan)$"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that spreadsheets run
_THOUSANDS = r"^\s*[+-]?\d{1,3}(,\d{3})*\s*$"  # which may be one with a comma between thousands


def columns_of(path: PathLike) -> list[str]:
    """The names of a table's columns, from its header alone."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file.")
    if is_parquet(path):
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
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
    there = columns_of(path)
    for name in wanted:
        if there.count(name) > 1:
            raise InputError(
                f"{name_of(path)}: column {name!r} is there {there.count(name)} times. Rename one."
            )
        if name not in there:
            shown = ", ".join([*map(repr, there[:20]), *["..."] * (len(there) > 20)])
            raise InputError(f"{name_of(path)}: there is no column {name!r}. There: {shown}.")
    if len(set(wanted)) < len(wanted):
        raise InputError(f"a column is asked for twice: {', '.join(wanted)}.")


def reading(
    path: PathLike, public: Sequence[str], decimal: str | None = None, encoding: str | None = None
) -> Format:
    """How a table is written, by its header and these public columns alone; whatever is said is so.

    The private column is read the same way, so nothing of it decides this. Parquet, and folders of it, are as
    they are.
    """
    if Path(path).is_dir() or is_parquet(path):
        return Format()
    check_columns(path, public)
    form = detect(path)
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
    """These columns as numbers: a table of pyarrow's, or None if something else is in them."""
    if is_parquet(path):
        return _parquet(path, columns) if _are_numeric(path, columns) else None
    return read_csv(path, form, csv_options(form, columns, _pyarrow().float64()))


def _parquet(path: PathLike, columns: Sequence[str]) -> Any:
    with open_parquet(path) as file:
        return file.read(columns=list(columns))


def _are_numeric(path: PathLike, columns: Sequence[str]) -> bool:
    """Whether a Parquet file's schema says that these are numbers."""
    with open_parquet(path) as file:
        schema, types = file.schema_arrow, _pyarrow().types
    are = (types.is_integer, types.is_floating, types.is_decimal)
    return all(any(kind(schema.field(column).type) for kind in are) for column in columns)


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


def _has_decimal_comma(words: Any, form: Format) -> bool:
    """Whether a public column's numbers are written so; 1,234 between commas may be a thousand."""
    from pyarrow import compute

    def all_are(pattern: str) -> bool:
        return bool(compute.all(compute.match_substring_regex(words, pattern), min_count=0).as_py())

    some = bool(compute.any(compute.match_substring(words, ","), min_count=0).as_py())
    return some and all_are(_COMMA) and not (form.delimiter == "," and all_are(_THOUSANDS))


def read_columns(
    path: PathLike,
    columns: Sequence[str],
    form: Format | None = None,
    complete: bool = True,
    known: Columns | None = None,
    new_levels: bool = True,
) -> FloatArray:
    """(rows, columns) of numbers, in the order asked for; every one finite, or an error by row number.

    They are public: how a CSV file is written is found out from them and the header, unless it is said.
    Levels and dates become numbers as is `known` of them.
    """
    if known is None:
        check_columns(path, columns)
        known = Columns(tuple(map(Column, columns)))
    return as_numbers(path, known, read_points(path, known, form), complete, new_levels)


def _checked(path: PathLike, columns: Sequence[str], numbers: FloatArray, complete: bool) -> FloatArray:
    """These numbers; raises if there are none, or, if all are to be known, where one is missing."""
    if not len(numbers):
        raise InputError(f"{name_of(path)}: there are no rows below the header.")
    for name, column in zip(columns, numbers.T, strict=True):
        if complete:
            check_complete(path, name, column)
    return numbers


def read_ids(path: PathLike, column: str, form: Format | None = None, how: str = ALIKE) -> FloatArray:
    """One number per row of a public column: the same for the same id. See :mod:`rows.file_cells`."""
    _pyarrow()
    for file in files_of(Path(path)):
        check_columns(file, [column])
    ids = file_cells.read_ids(path, column, form, how)
    remedy = "Rows of an unknown person cannot be protected together: leave them out, or give them an id."
    _refuse(path, column, "must name someone in every row", np.isnan(ids), remedy)
    return _checked(path, [column], ids[:, None], complete=False)[:, 0]


def write_columns(path: PathLike, columns: Mapping[str, Any]) -> None:
    """Write a CSV, TSV or Parquet file, whole or not at all."""
    atomic.write(path, encoded(columns, is_parquet(path), separator(path)))


def encoded(columns: Mapping[str, Any], parquet: bool = False, between: str = ",") -> bytes:
    """The bytes of a table: what people download, and what commands write for them.

    In CSV, texts that a spreadsheet would run as formulas have an apostrophe before them.
    """
    pyarrow, arrays = _pyarrow(), {}
    for name, values in columns.items():
        column = np.asarray(values)
        if not parquet and column.dtype.kind in "OU":  # only texts are looked at
            column = np.array([_no_formula(cell) for cell in column.tolist()], dtype=object)
        arrays[name] = _cells(column)
    table = pyarrow.table(arrays)
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


def _cells(values: Any) -> Any:
    """A column of pyarrow's; numbers are handed over as they stand in memory, see :func:`_numbers`."""
    pyarrow = _pyarrow()
    if values.dtype != np.float64 or values.ndim != 1:
        return values
    memory = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(pyarrow.float64(), len(values), [None, memory])


def numbers_in(words: Any, form: Format) -> FloatArray | None:
    """Cells as numbers, NaN where one is missing; None if one is something else."""
    import pyarrow

    try:
        return _numbers(_with_points(words, form))
    except pyarrow.ArrowInvalid:
        return None


def _some_numbers(words: Any, form: Format) -> bool:
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


def _checked_numbers(
    path: PathLike, column: str, words: Any, form: Format, remedy: str = "Encode dates and categories first."
) -> FloatArray:
    """A public column's cells as numbers; raises, with row numbers, if one is something else."""
    if (numbers := numbers_in(words, form)) is not None:
        return numbers
    from pyarrow import compute

    fine = compute.match_substring_regex(_with_points(words, form), _AS_NUMBER, ignore_case=True)
    _refuse(path, column, "must hold numbers", ~fine.fill_null(True).to_numpy(zero_copy_only=False), remedy)
    raise irregular(path)


def check_complete(path: PathLike, column: str, values: FloatArray) -> None:
    """Raise, with row numbers, if a public column lacks a number."""
    left_out = "Leave such rows out (for a plan, with ", Phrase.DROP_INPUTS
    filled = "), or fill them in by public knowledge only, never by their outcome."
    _refuse(path, column, "must hold a finite number in every row", ~np.isfinite(values), *left_out, filled)


def _refuse(path: PathLike, column: str, must: str, wrong: Any, *remedy: str) -> None:
    """Raise if some rows are wrong: "rows 3 and 7 do not" and the like, counted from 1 below the header."""
    most = 5  # rows that are named
    rows = [str(row + 1) for row in np.flatnonzero(wrong)[: most + 1]]
    if not rows:
        return
    shown = f"rows {', '.join(rows[:-1])} and {rows[-1] if len(rows) <= most else 'others'} do"
    shown = f"row {rows[0]} does" if len(rows) == 1 else shown
    raise InputError(Message(f"{name_of(path)}: column {column!r} {must}; {shown} not. ", *remedy))


def _numbers(column: Any) -> FloatArray:
    """A column of pyarrow's as float64, with NaN for what is missing."""
    import pyarrow

    wanted = pyarrow.float64()
    cast = column if column.type == wanted else column.cast(wanted, safe=False)  # which loads all functions
    cast = cast.combine_chunks() if isinstance(cast, pyarrow.ChunkedArray) else cast
    if cast.null_count or not len(cast):
        return np.asarray(cast.to_numpy(zero_copy_only=False))
    # As it stands in memory: pyarrow's way would import pandas, which takes longer than all else.
    return np.frombuffer(cast.buffers()[1], np.float64, len(cast), 8 * cast.offset).copy()


def name_of(path: PathLike) -> str:
    """Of a file, in messages."""
    return Path(path).name


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise missing_extra("reading tables", "pyarrow", "cli") from None
    return pyarrow


# What columns hold


def find_columns(
    path: PathLike,
    inputs: Sequence[str],
    output: str,
    people: str | None = None,
    categories: Sequence[str] = (),
    form: Format | None = None,
) -> Columns:
    """What the public inputs of a table are; `categories` hold levels, whatever they look like."""
    for name in categories:
        if name not in inputs:
            raise InputError(f"--categories: {name!r} is not among the inputs: {', '.join(inputs)}.")
    if not categories and is_parquet(path) and _are_numeric(path, inputs):  # which may be very many rows
        return numbers_named(inputs, output, people)
    table = _read_table(path, inputs, form, categories=categories)
    found = Columns.of(table, levels={name: _levels(table[name]) for name in categories})
    return _with_roles(found, output, people)


def numbers_named(inputs: Sequence[str], output: str, people: str | None = None) -> Columns:
    """The columns of a table of numbers."""
    return _with_roles(Columns(tuple(map(Column, inputs))), output, people)


def _with_roles(columns: Columns, output: str, people: str | None) -> Columns:
    return replace(columns, response=output, people="" if people in columns.names else people or "")


def is_coded(columns: Columns | None) -> bool:
    """Whether some column is not of plain numbers."""
    return columns is not None and any(one.levels or one.origin for one in columns.inputs)


def read_points(path: PathLike, columns: Columns, form: Format | None = None) -> Table:
    """The columns of a public table that a plan's were like: each is read as the plan's was."""
    return _read_table(path, columns.names, form, columns)


def as_numbers(
    path: PathLike, columns: Columns, table: Table, complete: bool = True, new_levels: bool = True
) -> FloatArray:
    """(rows, columns) a table's cells as numbers, all of them known; or an error by row number."""
    numbers = columns.numbers(table, name_of(path), new_levels=new_levels)
    return _checked(path, columns.names, numbers, complete)


def _read_table(
    path: PathLike,
    names: Sequence[str],
    form: Format | None,
    known: Columns | None = None,
    categories: Sequence[str] = (),
) -> Table:
    """Public columns, each by what it holds, or as it is known."""
    check_columns(path, names)
    form = reading(path, names) if form is None else form
    plain = None if categories or is_coded(known) else _plain(path, names, form)
    if plain is not None:
        return Table({name: Cells(_numbers(plain.column(name))) for name in names})
    if is_parquet(path):
        table = frames.read(_parquet(path, names))
        assert table is not None  # it has names
        return table
    words = read_words(path, names, form)
    columns = [None] * len(names) if known is None else known.inputs
    return Table(
        {
            name: _found(path, name, words.column(name), form, name in categories)
            if column is None
            else _as_known(path, column, words.column(name), form)
            for name, column in zip(names, columns, strict=True)
        }
    )


def _found(path: PathLike, name: str, words: Any, form: Format, category: bool) -> Cells:
    """A column by its cells, which are not all numbers; or one of a category, which may be whole numbers."""
    if category:
        numbers = numbers_in(words, form)
        if numbers is not None and (np.isnan(numbers) | (numbers == np.rint(numbers))).all():
            return Cells(numbers)
        return _texts(words)
    if _some_numbers(words, form):  # a slip of the pen makes no category
        remedy = Message("If it is a category all the same, say ", Argument("categories"), f" {name}.")
        return Cells(_checked_numbers(path, name, words, form, remedy))
    return _booleans(_texts(words))


def _as_known(path: PathLike, column: Column, words: Any, form: Format) -> Cells:
    """A column as one that is known."""
    first = column.levels[0] if column.levels else None
    if isinstance(first, str) or column.origin:
        return _texts(words)
    if isinstance(first, bool):
        found = _booleans(_texts(words))
        if not any(isinstance(one, str) for one in found.values):
            return found
    return Cells(_checked_numbers(path, column.name, words, form))


def _texts(words: Any) -> Cells:
    from pyarrow import compute

    return Cells(frames.objects(compute.utf8_trim_whitespace(words).to_pylist()))


def _booleans(texts: Cells) -> Cells:
    """Yes or no, if all of these say so; else texts."""
    small = [None if text is None else text.lower() for text in texts.values]
    if not {*small} <= {None, "true", "false"}:
        return texts
    return Cells(frames.objects(None if one is None else one == "true" for one in small))


def _levels(cells: Cells) -> list[Any]:
    """Those that are there, sorted; whole numbers as such."""
    if cells.levels is not None:
        return list(cells.levels)
    if cells.values.dtype.kind == "f":
        known = np.unique(cells.values[~np.isnan(cells.values)])
        if (known != np.rint(known)).any():
            raise InputError("--categories: levels must be texts or whole numbers.")
        return [int(level) for level in known]
    return sorted({one for one in cells.values.tolist() if one is not None})
