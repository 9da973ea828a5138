"""Numbers out of CSV text: plain, gzipped, or a member of a zip archive, even one within another.

Archives are read as a stream. Only the members asked for are unpacked, and none to disk but for an inner
archive, for as long as it is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO, TextIO, cast

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.datasets.dataset import DatasetError
from cloakgp.errors import ArgumentError

LARGEST = 4 * 2**30  # bytes of one member: ten times a month of trips or a year of sales
LONGEST = 2**16  # characters of a first line

_MISSING = {"", "null", "\\n", "na", "nan"}
_DAMAGE = (csv.Error, UnicodeDecodeError, EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile)

Choose = Callable[[Sequence[str]], Sequence[str]]  # of an archive's members, those to read
When = tuple[Sequence[str], Callable[[str], bool]]  # a column's headers, and which of its cells will do


def tables(path: Path, choose: Choose) -> Iterator[tuple[str, TextIO]]:
    """Name and text of each CSV in the file; of an archive, of the members chosen."""
    with path.open("rb") as file:
        yield from _tables(file, str(path), choose, inner=False)


def _tables(file: IO[bytes], label: str, choose: Choose, *, inner: bool) -> Iterator[tuple[str, TextIO]]:
    start = file.read(4)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        with gzip.open(file) as unpacked:
            yield label, _text(cast(IO[bytes], unpacked))
    elif start[:2] == b"PK":
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise DatasetError(f"{label} is a damaged zip archive: {error}.") from error
        with archive:
            yield from _members(archive, label, choose, inner=inner)
    else:
        yield label, _text(file)


def _members(
    archive: zipfile.ZipFile, label: str, choose: Choose, *, inner: bool
) -> Iterator[tuple[str, TextIO]]:
    names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
    chosen = choose(names)
    if not chosen:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise DatasetError(f"{label} is a wrong file: it does not hold what is asked for, but {some}.")
    for name in chosen:
        member = f"{label}/{name}"
        if archive.getinfo(name).file_size > LARGEST:
            raise DatasetError(f"{member} would unpack to more than {LARGEST} bytes; it is not read.")
        if not name.lower().endswith(".zip"):
            with archive.open(name) as unpacked:
                yield member, _text(unpacked)
        elif inner:
            raise DatasetError(f"{member} is an archive in an archive in an archive; it is not read.")
        else:
            with tempfile.TemporaryFile() as copy:
                with archive.open(name) as packed:
                    shutil.copyfileobj(packed, copy)
                copy.seek(0)
                yield from _tables(copy, member, choose, inner=True)


def single(names: Sequence[str]) -> Sequence[str]:
    """The one CSV of an archive; nothing if there are none or several."""
    found = [name for name in names if name.lower().endswith(".csv")]
    return found if len(found) == 1 else []


def base(name: str) -> str:
    """A member's name without its folders, in lower case."""
    return PurePosixPath(name).name.lower()


def _text(file: IO[bytes]) -> TextIO:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def rows(label: str, text: TextIO) -> Iterator[list[str]]:
    """The records of a CSV, by commas or semicolons as its first line has it."""
    try:
        first = text.readline(LONGEST)
        if len(first) == LONGEST:
            raise DatasetError(f"{label} is no table: its first line never ends.")
        delimiter = ";" if first.count(";") > first.count(",") else ","
        yield from csv.reader(chain([first], text), delimiter=delimiter)
    except _DAMAGE as error:
        raise DatasetError(f"{label} is damaged, or no CSV text: {error}.") from error


def numbers(
    path: Path,
    columns: Sequence[Sequence[str]],
    when: When | None = None,
    *,
    choose: Choose = single,
    gaps: bool = False,
) -> FloatArray:
    """Some columns of a file's tables, which have headers, as numbers: (rows, columns).

    Parameters
    ----------
    path : path
        The file.
    columns : sequence of sequences of str
        For each column, the headers that it may have; capitals, spaces and underscores do not count.
    when : (headers, function), optional
        Keep the rows for which the function accepts this column's text.
    choose : function
        Of an archive's members, those to read; one after another.
    gaps : bool
        Leave out rows that lack a number, rather than refuse the file.
    """
    parts = [_numbers(label, text, columns, when, gaps=gaps) for label, text in tables(path, choose)]
    return np.concatenate(parts)


def _numbers(
    label: str, text: TextIO, columns: Sequence[Sequence[str]], when: When | None, *, gaps: bool
) -> FloatArray:
    records = rows(label, text)
    header = [_plain(name) for name in next(records, [])]
    wanted = [_position(label, header, names) for names in columns]
    at, accept = (None, None) if when is None else (_position(label, header, when[0]), when[1])
    pick = itemgetter(*wanted)
    found = array("d")
    for count, record in enumerate(records, start=2):
        if not record:
            continue
        try:
            if accept is not None and at is not None and not accept(record[at]):
                continue
            cells = pick(record)
        except (IndexError, ValueError):
            raise DatasetError(f"{label}, row {count}: cannot be read, {record}.") from None
        try:
            found.extend([float(cell) for cell in cells])
        except ValueError:
            if gaps and any(cell.strip().lower() in _MISSING for cell in cells):
                continue
            raise DatasetError(f"{label}, row {count}: expected numbers, got {cells}.") from None
    table: FloatArray = np.frombuffer(found, dtype=float).reshape(-1, len(columns)).copy()
    finite = np.isfinite(table).all(axis=1)
    if not gaps and not finite.all():
        raise DatasetError(f"{label}: some numbers are not finite.")
    return table[finite]


def _position(label: str, header: list[str], names: Sequence[str]) -> int:
    for name in names:
        if _plain(name) in header:
            return header.index(_plain(name))
    raise DatasetError(
        f"{label} has no column {names[0]!r}; its columns are {', '.join(header)}. Is it the right file?"
    )


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "").replace("_", "")


def within(table: FloatArray, box: Sequence[tuple[float, float]]) -> FloatArray:
    """The rows whose first columns lie in the box, ends included."""
    low, high = np.array(box, dtype=float).T
    place = table[:, : len(box)]
    kept: FloatArray = table[((place >= low) & (place <= high)).all(axis=1)]
    return kept


def checked_box(box: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Two intervals."""
    try:
        (a, b), (c, d) = box
        intervals = [(float(a), float(b)), (float(c), float(d))]
    except (TypeError, ValueError):
        intervals = []
    if not intervals or not all(low < high for low, high in intervals):
        raise ArgumentError("box", "must be two intervals, ((low, high), (low, high))", repr(box))
    return intervals
