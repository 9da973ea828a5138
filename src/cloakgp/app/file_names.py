"""What an uploaded file is called, and what it is kept under: any name is taken, and none leads anywhere."""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
import unicodedata
import zlib
from pathlib import Path

from cloakgp.app import folder as stored
from cloakgp.app.errors import bad_input
from cloakgp.app.folder import UPLOAD_NAME
from cloakgp.app.request_body import too_large
from cloakgp.files import atomic

_KNOWN = re.compile(r"\.(csv|tsv|txt|parquet|pq)$", re.IGNORECASE)
_LONGEST = 60  # characters of a name that is made up
_BLOCK = 2**20  # bytes


class FileNames:
    """What tables were called that are kept under other names, in one file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        known = stored.read_json(path) or {}
        self._shown = {name: shown for name, shown in known.items() if isinstance(shown, str)}

    def shown(self, name: str) -> str:
        """What the table that is kept under this name was called."""
        return self._shown.get(name, name)

    def note(self, name: str, shown: str) -> None:
        """Remember what a table was called."""
        if shown == self.shown(name):
            return
        with self._lock:
            self._shown = {**self._shown, name: shown}
            stored.write_json(self._path, self._shown)


def safe_name(shown: str, start: bytes) -> str:
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
    plain = shown.removesuffix(".gz")
    found = _KNOWN.search(plain)
    stem = plain[: found.start()] if found else plain
    kind = found[1].lower() if found else "parquet" if start[:4] == b"PAR1" else "csv"
    letters = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_-]+", "_", letters).strip("_-")[:_LONGEST]
    return f"{words or 'table'}-{hashlib.sha256(shown.encode()).hexdigest()[:8]}.{kind}"


def printable(name: str) -> str:
    """A name as it is shown: on one line, without signs that turn or hide others."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)


def unpack(part: Path, unpacked: Path, most: int) -> None:
    """Write what a gzip file holds, if it is not too large."""
    size = 0
    try:
        with gzip.open(part) as packed, atomic.create(unpacked, atomic.OWNER) as plain:
            while block := packed.read(_BLOCK):
                size += len(block)
                if size > most:
                    raise too_large(most)
                plain.write(block)
            atomic.sync(plain)
    except (OSError, EOFError, zlib.error):
        raise bad_input("the file cannot be unpacked; it may be damaged.") from None
