"""Write a file whole or not at all, and on disk before that is said.

What is being written has another name, which begins with a dot and ends in ``.part``; a process that is
killed leaves that, or nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from cloakgp.core import checks

ANYBODY = 0o666
"""Permissions that the process's mask narrows, as for any new file."""
OWNER = 0o600
"""Its owner alone may read the file, whatever the mask."""


def write(path: str | os.PathLike[str], contents: bytes, mode: int = ANYBODY) -> None:
    """Write a file whole or not at all."""
    path = checks.path(path)
    part = unfinished(path)
    try:
        with create(part, mode) as file:
            file.write(contents)
            sync(file)
        part.replace(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def unfinished(path: Path) -> Path:
    """A name beside `path` for a file that is still being written."""
    return path.with_name(f".{path.name[:100]}.{uuid4().hex}.part")


def create(path: Path, mode: int = ANYBODY) -> BinaryIO:
    """A new file, with these permissions from its first moment."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def sync(file: BinaryIO) -> None:
    """Have on disk what was written."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Have a rename on disk, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
