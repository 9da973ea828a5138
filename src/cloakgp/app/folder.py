"""The data folder: what lies where, readable by its owner alone, and written whole or not at all.

::

    uploads/   tables, private outcomes included; never changed once they are there
    plans/     one JSON file for each plan
    releases/  a .cloak file and a JSON file for each release
    working/   links to tables while a release reads them; emptied on start
    people.json, ledger.db
    names.json     what tables were called that are kept under other names
    receipts.json  what was ever paid for here, deleted releases included

A process that is killed leaves files that begin with a dot, which are removed on start, or none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloakgp.core.errors import ArgumentError
from cloakgp.files import atomic

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows
    fcntl = None  # type: ignore[assignment]

UPLOAD_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_. \-]{0,79}\.(csv|tsv|txt|parquet|pq)$"
"""What a table may be kept under; it may have been called anything."""
ID = r"^[0-9a-f]{16}$"
PARTS = ("uploads", "plans", "releases", "working")


class Folder:
    """One server's files."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        ours = (self.path / "lock").exists() or (self.path / "uploads").is_dir()
        if self.path.exists() and not ours and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ArgumentError(
                "data", f"must be a folder of the app's own: new, empty, or made by it; {self.path} is not"
            )
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for part in PARTS:
            (self.path / part).mkdir(mode=0o700, exist_ok=True)
            (self.path / part).chmod(0o700)
        self.uploads, self.plans, self.releases, self.working = (self.path / part for part in PARTS)
        self.receipts = self.path / "receipts.json"
        self.names = self.path / "names.json"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Only one server may use a folder; a killed one has given it back."""
        handle = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise ValueError(
                f"another server uses {self.path} already. Stop it, or name another folder."
            ) from None
        try:
            yield
        finally:
            os.close(handle)

    def tidy(self) -> None:
        """Remove what a killed process left unfinished, and close what was put there by hand."""
        for table in self.uploads.iterdir():
            if table.is_file() and not table.is_symlink():
                table.chmod(0o600)
        for part in (self.path, self.uploads, self.plans, self.releases):
            for left in part.glob(".*.part"):
                left.unlink(missing_ok=True)
        for left in self.working.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def upload(self, name: str) -> Path:
        """Where the table of this name lies; the name cannot lead out of the folder."""
        if re.fullmatch(UPLOAD_NAME, name) is None:
            raise ValueError(
                "the name of a table must be letters, digits, space . _ - and end in .csv, .tsv, .txt, "
                ".parquet or .pq."
            )
        return self.uploads / name

    def plan(self, plan_id: str) -> Path:
        """Where a plan lies."""
        return self.plans / f"{_checked(plan_id)}.json"

    def record(self, release_id: str) -> Path:
        """Where what is known about a release lies."""
        return self.releases / f"{_checked(release_id)}.json"

    def release(self, release_id: str) -> Path:
        """Where a release file lies."""
        return self.releases / f"{_checked(release_id)}.cloak"


def write(path: Path, contents: bytes) -> None:
    """Write a file that its owner alone may read."""
    atomic.write(path, contents, atomic.OWNER)


def write_json(path: Path, value: Any) -> None:
    """The same for JSON."""
    write(path, json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """What is in a JSON file; None if it is not there."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return value if isinstance(value, dict) else None


def _checked(identity: str) -> str:
    if re.fullmatch(ID, identity) is None:
        raise ValueError("that is not the id of anything here.")
    return identity
