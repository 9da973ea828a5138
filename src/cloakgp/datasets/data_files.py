"""Data files: given by the user, or downloaded once and checked ever after; and the numbers in them.

Downloads go through pooch (extra ``datasets``) into a cache folder. A file whose checksum is known
beforehand is checked against it. Of any other, the checksum is recorded at the first download, in
``sha256.json`` beside it, and checked at each later use.

Numbers are read from CSV text: plain, gzipped, or a member of a zip archive, even one within another.
Archives are read as a stream. Only the members asked for are unpacked, and none to disk but for an inner
archive, for as long as it is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO, Any, TextIO, cast

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.datasets.dataset import DatasetError
from cloakgp.files import atomic

DATA, CACHE = "CLOAKGP_DATA", "CLOAKGP_CACHE"
RECORD = "sha256.json"

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
    """The file at `url`, from the cache if it is there as it was: by its checksum, known or recorded."""
    try:
        import pooch
        from requests import exceptions
    except ImportError:
        raise ImportError(
            f"downloading {name} needs pooch: install the extra cloakgp[datasets] (in a clone: pip install "
            f"'.[datasets]'). Or give a copy as path, or in the folder that {DATA} names."
        ) from None
    folder = Path(os.environ.get(CACHE) or pooch.os_cache("cloakgp")).expanduser()
    recorded = _recorded(folder / RECORD)
    expected = sha256 or recorded.get(name, {}).get("sha256")
    try:
        file = Path(pooch.retrieve(url, expected and f"sha256:{expected}", fname=name, path=folder))
    except exceptions.RequestException as error:
        kind = DatasetError if isinstance(error, exceptions.HTTPError) else ConnectionError
        raise kind(
            f"{url} could not be had: {error}. The publisher may have moved it, if there is a network. Give "
            f"{name} as path, or set {DATA} to the folder that holds it."
        ) from error
    except ValueError as error:
        if "hash" not in str(error):
            raise
        first, remedy = "known", "Do not use it."
        if sha256 is None:
            first = "recorded at the first download"
            remedy = "The publisher may have revised it. To accept what is there now, delete "
            remedy += f"{name!r} from {folder / RECORD}."
        raise DatasetError(f"{url} has not the sha256 {first}, {expected}. {remedy}") from error
    if not expected:
        actual, day = pooch.file_hash(str(file), alg="sha256"), datetime.now(UTC).date().isoformat()
        entries = recorded | {name: {"url": url, "sha256": actual, "on": day}}
        atomic.write(folder / RECORD, f"{json.dumps(entries, indent=1)}\n".encode())
    return file


def _recorded(record: Path) -> dict[str, dict[str, str]]:
    """What is known of the files in the cache."""
    try:
        entries = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        return {str(name): {"sha256": str(entry["sha256"]), **entry} for name, entry in entries.items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise DatasetError(
            f"{record} cannot be read. Delete it to trust the files beside it as they are."
        ) from None


# What is in it


def tables(path: Path, choose: Choose, largest: int = 4 * 2**30) -> Iterator[tuple[str, TextIO]]:
    """Name and text of each CSV in the file; of an archive, of the members chosen.

    None may have more than `largest` bytes, ten times a month of trips or a year of sales.
    """
    with path.open("rb") as file:
        yield from _tables(file, str(path), choose, largest)


def _tables(
    file: IO[bytes], label: str, choose: Choose, largest: int, inner: bool = False
) -> Iterator[tuple[str, TextIO]]:
    start = file.read(4)
    file.seek(0)
    if start[:2] == b"\x1f\x8b":
        with gzip.open(file) as unpacked:
            yield label, _text(cast(IO[bytes], unpacked))
        return
    if start[:2] != b"PK":
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
            member = f"{label}/{name}"
            if archive.getinfo(name).file_size > largest:
                raise DatasetError(f"{member} would unpack to more than {largest} bytes; it is not read.")
            if inner and name.lower().endswith(".zip"):
                raise DatasetError(f"{member} is an archive in an archive in an archive; it is not read.")
            with archive.open(name) as packed:
                if not name.lower().endswith(".zip"):
                    yield member, _text(packed)
                    continue
                with tempfile.TemporaryFile() as copy:
                    shutil.copyfileobj(packed, copy)
                    copy.seek(0)
                    yield from _tables(copy, member, choose, largest, inner=True)


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
    kept: FloatArray = table[((place >= low) & (place <= high)).all(axis=1)]
    return kept


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
