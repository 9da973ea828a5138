"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def write(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file whole or not at all."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name[:100]}.{uuid4().hex}.part")
    try:
        with unfinished.open("xb") as file:  # a new file, with the permissions that the process gives to such
            file.write(contents)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
