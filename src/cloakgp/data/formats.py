"""Which files are read, and how: the same rows must come out whichever column is asked for.

How a file is written is found out from its header's bytes alone, and nothing else of it is looked at here.
It says what pyarrow is to do, for public columns (:mod:`cloakgp.workflow.tables`) and for the private one
alike.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cloakgp.core import checks
from cloakgp.core.errors import InputError

PARQUET = (".parquet", ".pq")
SAVE_AS = (
    "a spreadsheet is not read. Open it there and save the sheet as CSV: in Excel, File, Save As, CSV UTF-8 "
    "(.csv)."
)
_CODECS = {"utf-8": "utf-8-sig", "latin-1": "cp1252", "utf-16-le": "utf-16-le", "utf-16-be": "utf-16-be"}
DECIMALS = (".", ",")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""Characters between cells, and what they are called."""


@dataclass(frozen=True)
class Format:
    """How a CSV file is written. Public: found out from its header and from public columns."""

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    """Of numbers, in every column."""

    def __post_init__(self) -> None:
        checks.choice(self.delimiter, "delimiter", DELIMITERS)
        checks.choice(self.encoding, "encoding", _CODECS)
        checks.choice(self.decimal, "decimal", DECIMALS)

    def __str__(self) -> str:
        decimal = "decimal comma" if self.decimal == "," else "decimal point"
        return f"separated by {DELIMITERS[self.delimiter]}, {self.encoding.upper()}, {decimal}"

    def words(self) -> dict[str, str]:
        """For files."""
        return asdict(self)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its name; CSV and TSV are the others, perhaps compressed (.gz)."""
    name = Path(path).name
    if name.lower().endswith(PARQUET):
        return True
    if is_spreadsheet(name):
        raise InputError(f"{name}: {SAVE_AS}")
    if not name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".txt")):
        raise InputError(
            f"{name}: the name of a table must end in .csv, .tsv, .txt, .csv.gz, .parquet or .pq."
        )
    return False


def is_spreadsheet(name: str) -> bool:
    """Whether a file is one, by its name."""
    return name.lower().endswith((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"))


def separator(path: str | os.PathLike[str]) -> str:
    """What stands between two cells of a CSV or TSV file that is written."""
    return "\t" if ".tsv" in [suffix.lower() for suffix in Path(path).suffixes] else ","


def detect(path: str | os.PathLike[str]) -> Format:
    """How a file is written, by the bytes of its header alone. Parquet is as it is."""
    return Format() if is_parquet(path) else header(path)[1]


def header(path: str | os.PathLike[str]) -> tuple[list[str], Format]:
    """The cells of a CSV file's first line, and how it is written."""
    import pyarrow

    name = Path(path).name
    try:
        with pyarrow.input_stream(str(path), compression="detect") as stream:
            start = stream.read(2**20)  # a longer header is none
    except (OSError, ValueError):
        start = None
    if start is None:
        raise InputError(f"{name}: cannot be read.")
    if start[:4] in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"):
        raise InputError(f"{name}: {SAVE_AS}")
    encoding = _encoding(start)
    # The first line and no more: what follows is data, and must not decide what is said here.
    line = start.decode(_CODECS[encoding], "replace").partition("\n")[0].lstrip("\ufeff").rstrip("\r")
    read = {between: _split(line, between) for between in (separator(path), *DELIMITERS)}
    possible = {between: cells for between, cells in read.items() if cells is not None}
    if not possible:
        raise InputError(f"{name}: cannot be read as a table with a header: a quote in it is not closed.")
    named = {between: cells for between, cells in possible.items() if are_names(cells, between)}
    delimiter = max(named or possible, key=lambda between: len(possible[between]))
    return possible[delimiter], Format(delimiter, encoding)


def _encoding(start: bytes) -> str:
    """Of a file that begins like this: by its mark, or by the bytes of its first line."""
    if start[:2] == b"\xff\xfe" or start[1:4:2] == b"\0\0":
        return "utf-16-le"
    if start[:2] == b"\xfe\xff" or start[0:3:2] == b"\0\0":
        return "utf-16-be"
    try:
        start.partition(b"\n")[0].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _split(line: str, between: str) -> list[str] | None:
    try:
        return next(csv.reader([line], delimiter=between, strict=True), [])
    except csv.Error:
        return None


def are_names(cells: Sequence[str], delimiter: str) -> bool:
    """Whether a first line's cells can be shown: cells of data would be somebody's.

    The first may be empty, as pandas and R write the column of row labels. Between semicolons or tabs a name
    may have commas, if what is between these could be names, too: it might be a line of data after all.
    """
    own = list(cells[1:] if len(cells) > 1 and not cells[0].strip() else cells)
    if delimiter != ",":
        own = [part for cell in own for part in cell.split(",")]
    return bool(own) and all(_is_name(cell) for cell in own)


def _is_name(text: str) -> bool:
    text = text.strip()
    plain = text.isprintable() and len(text) <= 100 and not any(mark in text for mark in ";\t|\ufffd")
    if not plain or not (text[:1].isalpha() or text[:1] == "_"):
        return False
    try:
        float(text)  # nan, inf
    except ValueError:
        return True
    return False


def opened(path: str | os.PathLike[str], form: Format) -> Any:
    """What pyarrow reads: the file, or its text in UTF-8. A byte that is no text never decides anything."""
    import pyarrow

    if form.encoding == "utf-8":
        return str(path)
    with pyarrow.input_stream(str(path), compression="detect") as stream:
        text = stream.read().decode(_CODECS[form.encoding], "replace")
    return io.BytesIO(text.lstrip("\ufeff").encode("utf-8", "replace"))


def csv_options(form: Format, columns: Sequence[str], kind: Any) -> dict[str, Any]:
    """Arguments for ``pyarrow.csv.read_csv``: these columns alone are decoded, as this kind of value."""
    from pyarrow import csv

    return {
        "parse_options": csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, kind),
            strings_can_be_null=True,
            decimal_point=form.decimal,
        ),
    }
