"""Tables that were uploaded: their names, columns and rows; and their public inputs and people as numbers.

A table may be called anything, and is kept under a name that leads nowhere else. How it is written is found
out from its header and public inputs, or said; nothing else decides it.

The output column is not read here. To count rows no cell is decoded, and to read inputs only theirs are.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cloakgp.app import folder as stored
from cloakgp.app.accounts import new_id
from cloakgp.app.errors import Problem, bad_input, conflict, not_found, public_work
from cloakgp.app.folder import UPLOAD_NAME, Folder
from cloakgp.app.limits import Most
from cloakgp.app.settings import Encoding, Written
from cloakgp.app.work import Cache
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import InputError
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.columns import Columns
from cloakgp.data.file_cells import n_rows
from cloakgp.data.formats import SAVE_AS, Format, is_parquet, is_spreadsheet
from cloakgp.data.people import ALIKE, People, as_people
from cloakgp.files import atomic
from cloakgp.workflow import tables
from cloakgp.workflow.inputs import looks_like_ids, open_inputs

log = logging.getLogger("cloakgp.app")
_KNOWN = re.compile(r"\.(csv|tsv|txt|parquet|pq)$", re.IGNORECASE)


class TableInputs(NamedTuple):
    """The inputs of a table."""

    X: FloatArray
    """NaN where something is missing, if such rows are to be left out."""
    columns: Columns
    form: Format | None
    """How the table is written; None of Parquet."""


class Uploads:
    """The tables in the data folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._lock = folder, threading.Lock()
        known = stored.read_json(folder.names) or {}
        # What tables were called that are kept under other names.
        self._called = {name: shown for name, shown in known.items() if isinstance(shown, str)}
        self._facts: Cache[dict[str, Any]] = Cache(64)
        self._inputs: Cache[TableInputs] = Cache(4)
        self._people: Cache[People] = Cache(4)

    def everything(self) -> list[dict[str, Any]]:
        """What is shown of all tables that can be read; what was put there under no name of ours is none."""
        shown = []
        for path in sorted(self._folder.uploads.iterdir()):
            if not path.is_file() or not re.fullmatch(UPLOAD_NAME, path.name):
                continue
            try:
                shown.append(self.facts(path))
            except Problem:
                log.warning("table %s cannot be read, or was removed just now", path.name)
        return shown

    def path(self, name: str) -> Path:
        """Of one table, which must be there."""
        with public_work():
            path = self._folder.upload(name)
        if not path.is_file():
            raise not_found("table")
        return path

    def facts(self, path: Path) -> dict[str, Any]:
        """What the app shows of a table before roles are given: names and counts."""

        def look() -> dict[str, Any]:
            with public_work():
                columns, rows = columns_of(path), rows_of(path)
            who = [column for column in columns if looks_like_ids(column)]
            told = {"name": path.name, "shown": self._shown(path), "columns": columns, "rows": rows}
            return {**told, "bytes": path.stat().st_size, "who": who}

        return self._facts.get(version(path), look)

    def keep(self, part: Path, shown: str) -> dict[str, Any]:
        """Take in a table that has arrived as `part`, whatever it is called; never in place of another."""
        with open(part, "rb") as file:
            start = file.read(4)
        name = safe_name(shown, start)
        with public_work():
            if is_spreadsheet(shown):
                raise InputError(SAVE_AS)
            if start[:2] == b"\x1f\x8b":  # what is packed may be of any size
                raise InputError("the file is packed. Unpack it, and upload what is in it.")
            path = self._folder.upload(name)
            # Looked at under its own name, which says what kind of file it is, before it is there for all.
            with self._alone(part, name) as alone:
                columns_of(alone)
                rows_of(alone)
        try:
            os.link(part, path)
        except FileExistsError:
            raise conflict(
                "there is a table of this name already. Remove it first, or take another name."
            ) from None
        atomic.sync_folder(path.parent)
        with self._lock:
            if printable(shown) != self._shown(path):
                self._called = {**self._called, name: printable(shown)}
                stored.write_json(self._folder.names, self._called)
        return self.facts(path)

    def _shown(self, path: Path) -> str:
        """What the table that is kept under this name was called."""
        return self._called.get(path.name, path.name)

    def inputs(self, path: Path, columns: list[str], most: int, written: Written) -> TableInputs:
        """The input columns of a table that has at most so many rows."""
        self.rows(path, most)
        said = written.model_dump_json(include=set(Written.model_fields))
        with self._named_as_before(path):
            key = (*version(path), tuple(columns), said)
            return self._inputs.get(key, lambda: read_inputs(path, columns, written))

    def rows(self, path: Path, most: int) -> int:
        """How many rows a table has, if that is at most so many."""
        rows = int(self.facts(path)["rows"])
        if rows > most:
            remedy = f"With inducing inputs, or a model that is learned, it can be {Most.rows}. "
            raise bad_input(
                f"{self._shown(path)} has {rows} rows, and the app does this for at most {most}. "
                f"{remedy if most == Most.exact_rows else ''}"
                "Take a sample by public knowledge only, or use the library on a larger machine."
            )
        return rows

    def people(self, path: Path, column: str, encoding: Encoding | None = None, how: str = ALIKE) -> People:
        """Who has which rows of a table, by a public column."""

        def read() -> People:
            with public_work():
                form = form_of(path, [column], Written(encoding=encoding))
                ids = tables.read_ids(path, column, form, how)
                return as_people(ids, len(ids), how)

        with self._named_as_before(path):
            return self._people.get((*version(path), column, encoding, how), read)

    @contextmanager
    def _named_as_before(self, path: Path) -> Iterator[None]:
        """What is said of a table is said of it by the name that it had."""
        try:
            yield
        except Problem as problem:
            problem.detail = str(problem.detail).replace(path.name, self._shown(path))
            raise

    def snapshot(self, name: str) -> AbstractContextManager[Path]:
        """A second name for a table, so that nobody can put another in its place meanwhile."""
        return self._alone(self.path(name), name)

    @contextmanager
    def _alone(self, path: Path, name: str) -> Iterator[Path]:
        room = self._folder.working / new_id()
        room.mkdir(mode=0o700)
        try:
            os.link(path, room / name)
            yield room / name
        finally:
            shutil.rmtree(room, ignore_errors=True)


def columns_of(path: Path) -> list[str]:
    """The names of the columns; a first line of data is refused, and not shown."""
    columns = tables.columns_of(path)
    if not columns or len(columns) > 2000 or any(len(name) > 200 for name in columns):
        raise InputError("a table must have from 1 to 2000 columns, with names of at most 200 characters.")
    return columns


def rows_of(path: Path) -> int:
    """How many rows a table has; no cell is decoded for it."""
    rows = n_rows(path)
    if rows < 1:
        raise InputError("a table must have a row at least, below the names of its columns.")
    return rows


def form_of(path: Path, public: Sequence[str], written: Written) -> Format | None:
    """How a table is written, by its header and these public columns, or as somebody said."""
    return None if is_parquet(path) else tables.reading(path, public, written.decimal, written.encoding)


def read_inputs(path: Path, inputs: Sequence[str], written: Written) -> TableInputs:
    """The inputs of a table; what is missing is told by row number, unless it is to be left out."""
    with public_work():
        form = form_of(path, inputs, written)
        columns = tables.find_columns(path, inputs, "", None, written.categories or (), form)
        X = open_inputs(path, inputs, False, False, columns, form, "drop")
    lacking = np.isnan(X).any(axis=1)
    if lacking.any() and written.missing_inputs == "error":
        try:
            for place, name in enumerate(columns.names):
                tables.check_complete(path, name, X[:, place])
        except InputError as error:  # a page offers to leave such rows out
            many = f"{int(lacking.sum())} of {len(X)} rows that lack an input."
            raise Problem(422, "missing_inputs", f"{error} Or leave out the {many}") from None
    if lacking.all():
        raise bad_input("there is no row of which no input is missing.")
    return TableInputs(X, columns, form)


def facts_of_inputs(found: TableInputs) -> dict[str, Any]:
    """What the app shows of public inputs: what they are, ranges, and a sample."""
    X, columns, form = found.X[~np.isnan(found.X).any(axis=1)], found.columns, found.form
    low, high = X.min(axis=0), X.max(axis=0)
    # Where there may be commas, only fractions tell how decimals are written.
    open_to_both = form is not None and form.delimiter != "," and form.decimal == "."
    return {
        "rows": len(X),
        "dropped": len(found.X) - len(X),
        "columns": columns.inputs,
        "written": None if form is None else str(form),
        "decimals_unseen": open_to_both and bool((np.rint(X) == X).all()),
        "ranges": {name: [float(a), float(b)] for name, a, b in zip(columns.names, low, high, strict=True)},
        "sample": spread_evenly(X, Most.sample),
    }


def safe_name(shown: str, start: bytes, longest: int = 60) -> str:
    """What a file is kept under: its own name if that is safe; else one made from it, the same each time.

    Parameters
    ----------
    shown : str
        What it is called.
    start : bytes
        How its contents begin, which tells Parquet from CSV where the name does not.
    """
    if re.fullmatch(UPLOAD_NAME, shown):
        return shown
    found = _KNOWN.search(shown)
    stem = shown[: found.start()] if found else shown
    kind = found[1].lower() if found else "parquet" if start[:4] == b"PAR1" else "csv"
    letters = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_-]+", "_", letters).strip("_-")[:longest]
    return f"{words or 'table'}-{hashlib.sha256(shown.encode()).hexdigest()[:8]}.{kind}"


def printable(name: str) -> str:
    """A name as it is shown: on one line, without signs that turn or hide others."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)


def version(path: Path) -> tuple[str, int, int]:
    """Changes whenever the table does; the same of a second name for it."""
    seen = path.stat()
    return path.name, seen.st_ino, seen.st_mtime_ns
