"""Whole columns of a CSV or Parquet file: public ones, and private ones when the private room asks.

Errors quote no cell. In CSV, where any cell may hold anything, one that cannot be read is missing, whatever
is in it: whether a private column is refused must not depend on what it was that could not be read.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import InputError
from cloakgp.data.formats import Format, csv_options, detect, is_parquet, opened
from cloakgp.data.parquet import files_of, open_parquet
from cloakgp.data.people import ALIKE, decoded, names_nobody, same_id

_POINT_NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
_COMMA_NUMBER = _POINT_NUMBER.replace(r"\.", ",")
_MORE = r"[\x80-\xBF]"  # a byte that goes on with a letter
_UTF_8 = (  # RFC 3629, section 4
    rf"^([\x00-\x7F]|[\xC2-\xDF]{_MORE}|\xE0[\xA0-\xBF]{_MORE}|[\xE1-\xEC\xEE\xEF]{_MORE}{{2}}"
    rf"|\xED[\x80-\x9F]{_MORE}|\xF0[\x90-\xBF]{_MORE}{{2}}|[\xF1-\xF3]{_MORE}{{3}}|\xF4[\x80-\x8F]{_MORE}{{2}})*$"
)
PathLike = str | os.PathLike[str]


def read_numbers(path: PathLike, column: str, form: Format | None = None) -> FloatArray:
    """A column of numbers, NaN where one is missing; in CSV, also where a cell is none."""
    import pyarrow

    cells = _parquet(path, column) if is_parquet(path) else _csv_numbers(path, column, form or detect(path))
    if not (pyarrow.types.is_boolean(cells.type) or pyarrow.types.is_primitive(cells.type)):
        raise irregular(path)
    return np.asarray(cells.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False))


def read_texts(path: PathLike, column: str, form: Format | None = None) -> Any:
    """(rows,) texts of a column, None where a cell is empty."""
    return np.asarray(_texts(path, column, form).to_pylist(), dtype=object)


YES = ("yes", "true", "1", "1.0", "y", "t")
NO = ("no", "false", "0", "0.0", "n", "f")
"""How answers are written, in small letters or large ones: whatever a column holds."""


def read_answers(path: PathLike, column: str, form: Format | None = None) -> FloatArray:
    """(rows,) 1 where a cell says yes, 0 where it says no, NaN where it says neither."""
    import pyarrow
    from pyarrow import compute

    texts = compute.utf8_lower(_texts(path, column, form))
    says = [compute.is_in(texts, value_set=pyarrow.array(words)) for words in (YES, NO)]
    return np.select([cells.to_numpy(zero_copy_only=False) for cells in says], [1.0, 0.0], np.nan)


def read_ids(path: PathLike, column: str, form: Format | None = None, how: str = ALIKE) -> FloatArray:
    """(rows,) numbers, the same where a column's cells are the same id; NaN where one names nobody.

    `how` ids are compared is said in :mod:`cloakgp.data.people`. `path` may be a folder of Parquet files.
    """
    import pyarrow

    def texts(file: Path) -> Any:
        return _id_texts(_parquet(file, column) if is_parquet(file) else _csv_ids(file, column, form))

    encoded = pyarrow.concat_arrays([texts(file) for file in files_of(Path(path))]).dictionary_encode()
    known: dict[Any, int] = {}
    found = np.full(len(encoded.dictionary) + 1, np.nan)  # the last is for empty cells
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        own = same_id(text)
        if not names_nobody(own):
            found[code] = known.setdefault(own if how == ALIKE else text, len(known))
    return np.asarray(found[encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)])


def _csv_ids(path: PathLike, column: str, form: Format | None) -> Any:
    """Ids in UTF-8 wherever they are that, whatever is said of the table.

    Else whoever writes settings could split people: "é" and "É" that are read as Latin-1 do not look alike.
    """
    import pyarrow

    form = form or detect(path)
    if form.encoding == "latin-1":
        cells = _csv(path, column, pyarrow.binary(), replace(form, encoding="utf-8"))
        try:
            return cells.cast(pyarrow.string())
        except pyarrow.ArrowInvalid:
            pass
    return _csv(path, column, pyarrow.string(), form)


def n_rows(path: PathLike) -> int:
    """How many rows a table has. No cell is decoded."""
    if is_parquet(path):
        from pyarrow import parquet

        return int(parquet.read_metadata(str(path)).num_rows)
    return _n_rows(path, detect(path))


def irregular(path: PathLike) -> InputError:
    """What is said of a table that cannot be read."""
    return InputError(
        f"{Path(path).name}: cannot be read as a regular table. Every row must have as many cells as the "
        "header, text with separators or line breaks in it needs quotes, and quotes must be closed. "
        "Where lines within quotes look like rows themselves, take these line breaks out."
    )


def _n_rows(path: PathLike, form: Format) -> int:
    """How many rows there are below the header: one a line, unless a quote is still open at a line's end."""
    import pyarrow

    lines = left_open = 0
    try:
        with pyarrow.input_stream(opened(path, form), compression="detect") as stream:
            for line in io.BufferedReader(stream, 2**20):
                lines += bool(line.strip(b"\r\n"))
                left_open += line.count(b'"') % 2
        if not left_open:
            return lines - 1
        with pyarrow.input_stream(opened(path, form), compression="detect") as stream:
            text = io.TextIOWrapper(io.BufferedReader(stream, 2**20), "utf-8", "replace", newline="")
            return sum(1 for row in _quoted(text, form.delimiter) if row) - 1
    except (OSError, ValueError, csv.Error):
        raise irregular(path) from None


def _quoted(lines: Iterable[str], between: str) -> Iterator[list[str]]:
    """Rows whose cells may hold line breaks within quotes; an error if rows were swallowed by such quotes.

    Where each of the lines would be a row by itself, a quote that opens in one and closes in another is
    taken for two slips of the pen.
    """
    own: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            own.append(line)
            yield line

    for row in csv.reader(remembered(), delimiter=between, strict=True):
        alone = [next(csv.reader([line], delimiter=between)) for line in own if len(own) > 1]
        if alone and all(len(cells) == len(row) for cells in alone):
            raise csv.Error
        own.clear()
        yield row


def read_csv(path: PathLike, form: Format, options: dict[str, Any]) -> Any:
    """The table that pyarrow makes of it; None if it makes none."""
    import pyarrow
    from pyarrow.csv import read_csv as read

    try:
        table = read(opened(path, form), **options)
    except (pyarrow.ArrowException, OSError, ValueError):  # its message may quote a whole line
        return None
    # A quote that is not closed, in any column, would swallow rows: which rows there are must not depend on
    # what a private cell holds.
    if _n_rows(path, form) != table.num_rows:
        raise irregular(path)
    return table


def _csv_numbers(path: PathLike, column: str, form: Format) -> Any:
    """Cells as numbers; those that are none are missing. The same is done whatever they hold."""
    import pyarrow
    from pyarrow import compute

    comma = form.decimal == ","
    texts = _matching(_csv(path, column, pyarrow.binary(), form), _COMMA_NUMBER if comma else _POINT_NUMBER)
    if comma:
        texts = compute.replace_substring(texts, ",", ".")
    return compute.utf8_trim_whitespace(texts).cast(pyarrow.float64())


def _matching(cells: Any, pattern: str) -> Any:
    """Cells of bytes as texts, null where they do not match."""
    import pyarrow
    from pyarrow import compute

    fine = compute.match_substring_regex(cells, pattern)
    return compute.if_else(fine, cells, pyarrow.scalar(None, cells.type)).cast(pyarrow.string())


def _csv(path: PathLike, column: str, kind: Any, form: Format, missing: Any = None) -> Any:
    """A column as this kind of value; `missing` is how a missing one is written."""
    options = csv_options(form, [column], kind)
    if missing is not None:
        options["convert_options"].null_values = missing
    table = read_csv(path, form, options)
    if table is None:
        raise irregular(path)
    return table.column(column).combine_chunks()


def _parquet(path: PathLike, column: str) -> Any:
    import pyarrow

    with open_parquet(path) as file:
        table = file.read(columns=[column])
    if table.column_names != [column]:
        raise irregular(path)
    cells = table.column(column).combine_chunks()
    if pyarrow.types.is_dictionary(cells.type):
        return cells.dictionary_decode()
    if pyarrow.types.is_nested(cells.type):
        raise InputError(f"{Path(path).name}: column {column!r} must hold one value in each row.")
    return cells


def _texts(path: PathLike, column: str, form: Format | None) -> Any:
    """A column as texts, without the spaces around them; in CSV, missing where a cell's bytes are no text."""
    import pyarrow
    from pyarrow import compute

    if is_parquet(path):
        cells = _parquet(path, column)
    else:
        cells = _matching(_csv(path, column, pyarrow.binary(), form or detect(path), [""]), _UTF_8)
    return compute.utf8_trim_whitespace(_whole_texts(cells))


def _whole_texts(cells: Any) -> Any:
    """Cells as texts, with the spaces around them."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_floating(cells.type):
        cells = compute.if_else(compute.is_nan(cells), None, cells)
    return cells.cast(pyarrow.string())


def _id_texts(cells: Any) -> Any:
    """Cells as texts; so are bytes, whatever they are."""
    import pyarrow

    kinds = pyarrow.types
    if any(kind(cells.type) for kind in (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary)):
        texts = [None if one is None else decoded(one) for one in cells.to_pylist()]
        return pyarrow.array(texts, pyarrow.string())
    return _whole_texts(cells)
