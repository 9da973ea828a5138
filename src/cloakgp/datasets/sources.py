"""Where a data file is: given by the user, or downloaded once and checked ever after.

Downloads go through pooch (extra ``datasets``) into a cache folder. A file whose checksum is known
beforehand is checked against it. Of any other, the checksum is recorded at the first download, in
``sha256.json`` beside it, and checked at each later use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from cloakgp.datasets.dataset import DatasetError

DATA, CACHE = "CLOAKGP_DATA", "CLOAKGP_CACHE"
RECORD = "sha256.json"

PathLike = str | os.PathLike[str]


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
    if place is None or place.is_file():
        return place
    found = inside(place, names)
    if found is None:
        raise absent(place, names)
    return found


def inside(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of `names` that the folder holds, in capitals or not."""
    there = {entry.name.lower(): entry for entry in sorted(folder.iterdir()) if entry.is_file()}
    return next((there[name.lower()] for name in names if name.lower() in there), None)


def absent(folder: Path, names: Sequence[str]) -> FileNotFoundError:
    """The error for a folder that holds none of the names."""
    return FileNotFoundError(
        f"{str(folder)!r} holds none of {', '.join(names)}. Put one there, or give neither path nor {DATA} "
        "to download."
    )


def download(url: str, name: str, sha256: str | None = None) -> Path:
    """The file at `url`, from the cache if it is there, with its checksum compared."""
    pooch = _pooch(name)
    folder = Path(os.environ.get(CACHE) or pooch.os_cache("cloakgp")).expanduser()
    file = folder / name
    expected = sha256 or _recorded(folder).get(name, {}).get("sha256")
    if file.exists():
        actual = pooch.file_hash(str(file), alg="sha256")
        if expected and actual != expected:
            raise DatasetError(
                f"{file} has changed since it was downloaded: its sha256 is {actual}, not {expected}. "
                "Delete it to download it again."
            )
    else:
        _retrieve(pooch, url, name, folder, expected, known=sha256 is not None)
        actual = pooch.file_hash(str(file), alg="sha256")
    if not expected:
        _note(folder, name, {"url": url, "sha256": actual, "on": datetime.now(UTC).date().isoformat()})
    return file


def _retrieve(pooch: Any, url: str, name: str, folder: Path, expected: str | None, *, known: bool) -> None:
    errors = import_module("requests").exceptions
    try:
        pooch.retrieve(url, known_hash=expected and f"sha256:{expected}", fname=name, path=folder)
    except errors.HTTPError as error:
        raise DatasetError(
            f"{url} could not be had: {error}. The publisher may have moved it. "
            f"Find {name} by hand and give it as path, or in the folder that {DATA} names."
        ) from error
    except (errors.ConnectionError, errors.Timeout) as error:
        raise ConnectionError(
            f"{url} cannot be reached. Without a network, give {name} as path, or set {DATA} to the folder "
            "that holds it."
        ) from error
    except ValueError as error:
        if "hash" not in str(error):
            raise
        remedy = (
            "Do not use it."
            if known
            else "The publisher may have revised it. To accept what is there now, "
            f"delete {name!r} from {folder / RECORD}."
        )
        first = "known" if known else "recorded at the first download"
        raise DatasetError(f"{url} has not the sha256 {first}, {expected}. {remedy}") from error


def _recorded(folder: Path) -> dict[str, dict[str, str]]:
    record = folder / RECORD
    if not record.exists():
        return {}
    try:
        entries = json.loads(record.read_text(encoding="utf-8"))
        return {str(name): {"sha256": str(entry["sha256"]), **entry} for name, entry in entries.items()}
    except (ValueError, AttributeError, TypeError, KeyError):
        raise DatasetError(
            f"{record} cannot be read. Delete it to trust the files beside it as they are."
        ) from None


def _note(folder: Path, name: str, entry: dict[str, str]) -> None:
    record, new = folder / RECORD, folder / f"{RECORD}.{os.getpid()}"
    new.write_text(json.dumps({**_recorded(folder), name: entry}, indent=1) + "\n", encoding="utf-8")
    new.replace(record)


def _pooch(name: str) -> Any:
    try:
        return import_module("pooch")
    except ImportError:
        raise ImportError(
            f"downloading {name} needs pooch: install the extra cloakgp[datasets] (in a clone: pip install "
            f"'.[datasets]'). Or give a copy as path, or in the folder that {DATA} names."
        ) from None
