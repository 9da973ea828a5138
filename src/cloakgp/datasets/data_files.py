"""Data files: given by the user, or downloaded once; and the numbers in them.

Downloads go through pooch (extra ``datasets``) into a cache folder, from which they are taken later. A file
whose checksum is known beforehand is checked against it at each use.

Numbers are read from CSV text: plain, gzipped, or a member of a zip archive, even one within another.
Archives are read as a stream. Only the members asked for are unpacked, and none to disk but for an inner
archive, for as long as it is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO, Any, TextIO, cast

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, missing_extra
from cloakgp.datasets.dataset import DatasetError

DATA, CACHE = "CLOAKGP_DATA", "CLOAKGP_CACHE"

_MISSING = {"", "null", "\\n", "na", "nan"}
_DAMAGE = (csv.Error, UnicodeDecodeError, EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile)

PathLike = str | os.PathLike[str]
Choose = Callable[[Sequence[str]], Sequence[str]]  # of an archive's members, those to read
When = tuple[Sequence[str], Callable[[str], bool]]  # a column's headers, and which of its cells will do
Box = Sequence[tuple[float, float]]

# Where a file is


def given(path: PathLike | None) -> Path | None:
    """The file or folder that the user names, by argument or environment; None to download."""
    place = path if path is not None else os.environ.get(DATA) or None
    if place is None:
        return None
    found = Path(place).expanduser()
    if not found.exists():
        by = "path" if path is not None else DATA
        raise FileNotFoundError(f"{by} must name a file or folder that exists; got {str(place)!r}.")
    return found


def local(path: PathLike | None, names: Sequence[str]) -> Path | None:
    """The given file, or in the given folder the first of `names` that is there; None to download."""
    place = given(path)
    return place if place is None or place.is_file() else inside(place, names)


def inside(folder: Path, names: Sequence[str], instead: Sequence[str] = ()) -> Path:
    """The first of `names` that the folder holds, in capitals or not; `instead` would do as well."""
    there = {entry.name.lower(): entry for entry in sorted(folder.iterdir()) if entry.is_file()}
    found = next((there[name.lower()] for name in names if name.lower() in there), None)
    if found is None:
        raise FileNotFoundError(
            f"{str(folder)!r} holds none of {', '.join([*instead, *names])}. Put one there, or give neither "
            f"path nor {DATA} to download."
        )
    return found


def download(url: str, name: str, sha256: str | None = None) -> Path:
    """The file at `url`, from the cache if it is there; checked, where its checksum is known."""
    try:
        import pooch
        from requests.exceptions import RequestException
    except ImportError:
        raise missing_extra(f"downloading {name}", "pooch", "datasets") from None
    folder = Path(os.environ.get(CACHE) or pooch.os_cache("cloakgp")).expanduser()
    try:
        return Path(pooch.retrieve(url, sha256 and f"sha256:{sha256}", fname=name, path=folder))
    except RequestException as error:
        raise ConnectionError(
            f"{url} could not be had: {error}. The publisher may have moved it, if there is a network. Give "
            f"{name} as path, or set {DATA} to the folder that holds it."
        ) from error
    except ValueError as error:
        if "hash" not in str(error):
            raise
        raise DatasetError(f"{url} has not the sha256 known, {sha256}. Do not use it.") from error


# What is in it


def tables(path: Path, choose: Choose) -> Iterator[tuple[str, TextIO]]:
    """Name and text of each CSV in the file; of an archive, of the members chosen."""
    with path.open("rb") as file:
        yield from _tables(file, str(path), choose)


def _tables(file: IO[bytes], label: str, choose: Choose) -> Iterator[tuple[str, TextIO]]:
    file.seek(0)
    start = file.read(2)
    file.seek(0)
    if start == b"\x1f\x8b":
        with gzip.open(file) as unpacked:
            yield label, _text(cast(IO[bytes], unpacked))
        return
    if start != b"PK":
        yield label, _text(file)
        return
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise DatasetError(f"{label} is a damaged zip archive: {error}.") from error
    with archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
        chosen = choose(names)
        if not chosen:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise DatasetError(f"{label} is a wrong file: it does not hold what is asked for, but {some}.")
        for name in chosen:
            with archive.open(name) as packed, tempfile.TemporaryFile() as copy:
                if not name.lower().endswith(".zip"):
                    yield f"{label}/{name}", _text(packed)
                    continue
                shutil.copyfileobj(packed, copy)
                yield from _tables(copy, f"{label}/{name}", choose)


def _text(file: IO[bytes]) -> TextIO:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def single(names: Sequence[str]) -> Sequence[str]:
    """The one CSV of an archive; nothing if there are none or several."""
    found = [name for name in names if name.lower().endswith(".csv")]
    return found if len(found) == 1 else []


def base(name: str) -> str:
    """A member's name without its folders, in lower case."""
    return PurePosixPath(name).name.lower()


def rows(label: str, text: TextIO) -> Iterator[list[str]]:
    """The records of a CSV, by commas or semicolons as its first line has it."""
    try:
        first = text.readline(2**16)
        if len(first) == 2**16:
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
    found = array("d")
    for label, text in tables(path, choose):
        records = rows(label, text)
        header = [_plain(name) for name in next(records, [])]
        pick = itemgetter(*(_position(label, header, names) for names in columns))
        at, accept = (0, None) if when is None else (_position(label, header, when[0]), when[1])
        for count, record in enumerate(records, start=2):
            try:
                if not record or (accept is not None and not accept(record[at])):
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
        raise DatasetError(f"{path}: some numbers are not finite.")
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


def within(table: FloatArray, box: Box) -> FloatArray:
    """The rows whose first columns lie in the box, ends included."""
    low, high = np.array(box, dtype=float).T
    place = table[:, : len(box)]
    return np.asarray(table[((place >= low) & (place <= high)).all(axis=1)])


def as_box(box: Any) -> list[tuple[float, float]]:
    """Two intervals."""
    try:
        (a, b), (c, d) = box
        intervals = [(float(a), float(b)), (float(c), float(d))]
    except (TypeError, ValueError):
        intervals = []
    if not intervals or not all(low < high for low, high in intervals):
        raise ArgumentError("box", "must be two intervals, ((low, high), (low, high))", repr(box))
    return intervals
