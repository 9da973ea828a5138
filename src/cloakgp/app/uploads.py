"""Tables that were uploaded: their names, columns and rows, and their input columns.

The output column is not read here. To count rows no cell is decoded, and to read inputs only theirs are.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cloakgp.app import limits, models
from cloakgp.app.cache import Cache
from cloakgp.app.errors import Problem, bad_input, conflict, not_found, public_work
from cloakgp.app.file_names import FileNames, printable, safe_name, unpack
from cloakgp.app.folder import UPLOAD_NAME, Folder
from cloakgp.app.public_inputs import PublicInputs, form_of, read_inputs
from cloakgp.app.tokens import new_id
from cloakgp.errors import InputError
from cloakgp.files import atomic
from cloakgp.rows import formats
from cloakgp.rows.file_cells import read_csv
from cloakgp.rows.formats import SAVE_AS, is_spreadsheet
from cloakgp.rows.people import ALIKE, People, as_people
from cloakgp.workflow import tables
from cloakgp.workflow.protection import looks_like_ids

log = logging.getLogger("cloakgp.app")
_NO_HEADER = (
    "the first line must name the columns, each by a word. What is there instead is not shown, since it may "
    "be somebody's data."
)


class Uploads:
    """The tables in the data folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._names = folder, FileNames(folder.names)
        self._facts: Cache[dict[str, Any]] = Cache(64)
        self._inputs: Cache[PublicInputs] = Cache(4)
        self._people: Cache[People] = Cache(4)

    def names(self) -> list[str]:
        """Of all tables; what was put there by hand under another kind of name is left alone."""
        found = (path for path in self._folder.uploads.iterdir() if path.is_file())
        return sorted(path.name for path in found if re.fullmatch(UPLOAD_NAME, path.name))

    def everything(self) -> list[dict[str, Any]]:
        """What is shown of all tables that can be read."""
        shown = []
        for name in self.names():
            try:
                shown.append(self.facts(name))
            except Problem:
                log.warning("table %s cannot be read, or was removed just now", name)
        return shown

    def path(self, name: str) -> Path:
        """Of one table, which must be there."""
        with public_work():
            path = self._folder.upload(name)
        if not path.is_file():
            raise not_found("table")
        return path

    def facts(self, name: str) -> dict[str, Any]:
        """What the app shows of a table before roles are given: names and counts."""
        path = self.path(name)

        def look() -> dict[str, Any]:
            with public_work():
                columns, rows = columns_of(path), rows_of(path)
            who = [column for column in columns if looks_like_ids(column)]
            size = path.stat().st_size
            shown = self._names.shown(name)
            return {"name": name, "shown": shown, "columns": columns, "rows": rows, "bytes": size, "who": who}

        return self._facts.get(_version(path), look)

    def keep(self, part: Path, shown: str, most: int) -> dict[str, Any]:
        """Take in a table that has arrived as `part`, whatever it is called; never in place of another.

        One that is packed is kept unpacked, if that has at most so many bytes.
        """
        with open(part, "rb") as file:
            start = file.read(4)
        if start[:2] == b"\x1f\x8b":
            unpacked = atomic.unfinished(part.with_name("unpacked"))
            try:
                unpack(part, unpacked, most)
                return self._keep(unpacked, shown, start)
            finally:
                unpacked.unlink(missing_ok=True)
        return self._keep(part, shown, start)

    def _keep(self, part: Path, shown: str, start: bytes) -> dict[str, Any]:
        name = safe_name(shown, start)
        with public_work():
            if is_spreadsheet(shown):
                raise InputError(SAVE_AS)
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
        self._names.note(name, printable(shown))
        return self.facts(name)

    def remove(self, name: str) -> None:
        """Delete a table, outcomes included."""
        self.path(name).unlink()

    def inputs(self, name: str, columns: list[str], most: int, written: models.Written) -> PublicInputs:
        """The input columns of a table that has at most so many rows."""
        path = self.path(name)
        self.rows(name, most)
        said = (written.decimal, written.encoding, tuple(written.categories or ()), written.missing_inputs)
        read = partial(read_inputs, path, columns, written)
        with self._own_name(name):
            return self._inputs.get((*_version(path), tuple(columns), said), read)

    def rows(self, name: str, most: int) -> int:
        """How many rows a table has, if that is at most so many."""
        rows = int(self.facts(name)["rows"])
        if rows > most:
            remedy = (
                f"With inducing inputs, or a model that is learned, it can be {limits.INDUCING_ROWS}. "
                if most == limits.ROWS
                else ""
            )
            raise bad_input(
                f"{self._names.shown(name)} has {rows} rows, and the app does this for at most {most}. "
                f"{remedy}Take a sample by public knowledge only, or use the library on a larger machine."
            )
        return rows

    def people(
        self, name: str, column: str, encoding: models.Encoding | None = None, how: str = ALIKE
    ) -> People:
        """Who has which rows of a table, by a public column."""
        path = self.path(name)

        def read() -> People:
            with public_work():
                form = form_of(path, [column], models.Written(encoding=encoding))
                ids = tables.read_ids(path, column, form, how)
                return as_people(ids, len(ids), how)

        with self._own_name(name):
            return self._people.get((*_version(path), column, encoding, how), read)

    @contextmanager
    def _own_name(self, name: str) -> Iterator[None]:
        """What is said of a table is said of it by the name that it had."""
        try:
            yield
        except Problem as problem:
            problem.detail = str(problem.detail).replace(name, self._names.shown(name))
            raise

    def version(self, name: str) -> tuple[str, int, int]:
        """Changes whenever the table does."""
        return _version(self.path(name))

    @contextmanager
    def snapshot(self, name: str) -> Iterator[Path]:
        """A second name for a table, so that nobody can put another in its place meanwhile."""
        with self._alone(self.path(name), name) as path:
            yield path

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
        raise InputError(_NO_HEADER)
    return columns


def rows_of(path: Path) -> int:
    """How many rows there are; no cell is decoded for it."""
    import pyarrow
    from pyarrow import parquet

    try:
        if formats.is_parquet(path):
            return int(parquet.ParquetFile(str(path)).metadata.num_rows)
        nowhere = f"no column {new_id()}"
        form = formats.detected(path)
        options = formats.csv_options(form, [nowhere], pyarrow.string())
        options["convert_options"].include_missing_columns = True
        table = read_csv(path, form, options)
        if table is not None:
            return int(table.num_rows)
    except (pyarrow.ArrowException, OSError, ValueError):
        pass  # its message may quote a line of the table
    raise InputError(
        "the file cannot be read as a regular table: every row needs as many cells as the header, and text "
        "with separators in it needs quotes."
    )


def _version(path: Path) -> tuple[str, int, int]:
    seen = path.stat()
    return path.name, seen.st_ino, seen.st_mtime_ns
