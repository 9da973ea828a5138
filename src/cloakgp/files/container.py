"""The release file's outside: a zip of ``manifest.json`` and arrays, in one canonical form.

Arrays are in ``.npy`` format; large ones are coded (:mod:`cloakgp.files.coding`) if they are
integers or decimals. Digests are of the ``.npy`` bytes either way. The archive is stored without compression,
with fixed dates and sorted members, so that its contents determine every byte. The manifest lists the sha256
of every array, and carries its own. Nothing is ever unpickled.

What is read is packed again, and refused unless that gives the very same bytes: no unlisted member, comment,
padding or trailing byte can ride along, and no other way to write the same contents passes. Sizes are checked
before anything of them is held, so hostile files take no more memory than others of their size. Each array is
read straight to where it stays; a coded one takes about as much again, while it is decoded and compared.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from cloakgp.core import checks
from cloakgp.files import coding

Array = np.ndarray[Any, Any]
Contents = tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]
"""Manifest, arrays and signature."""
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
PLAIN, CODED = ".npy", ".coded"
_LARGEST_WORDS = 2**24  # bytes of the manifest or the signature: what is parsed takes many times more
_PIECE = 2**20  # bytes read or compared at once
_ADDED = ("members", "sha256")  # to a manifest, when it is sealed
_DAMAGED = "not a release file, or damaged"
_UNACCOUNTED = (
    "release file holds bytes that its contents do not account for (a comment, padding, another "
    "order or trailing data). Ask for a fresh copy."
)


class ReleaseFileError(ValueError):
    """A file is not a release file, is damaged, or holds more than it lists."""


def pack(
    manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None = None
) -> bytes:
    """The bytes of a file with these contents; `members` and `sha256` are added to the manifest."""
    out = io.BytesIO()
    _write(out, seal(manifest, arrays), arrays, signature)
    return out.getvalue()


def _write(
    file: Any, manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None
) -> None:
    """Write these contents, arrays from where they are, as a zip without anything that could vary."""
    with zipfile.ZipFile(file, "w") as archive:

        def add(name: str, *parts: Any) -> None:
            info = zipfile.ZipInfo(name)  # dated 1980-01-01
            info.create_system, info.external_attr = 3, 0o600 << 16  # Unix, readable by its owner
            info.file_size = sum(map(len, parts))
            if file.tell() + info.file_size > 2**31 - 2**24:  # which takes another form of zip
                raise ValueError("a release of this size cannot be written to a file: it is above 2 GB.")
            with archive.open(info, "w") as member:
                for part in parts:
                    member.write(part)

        add(MANIFEST, _json(manifest))
        for name, array in sorted(arrays.items()):
            code = coding.encode(array) if manifest.get("schema") is not None else None
            header, plain = _npy(array)
            add(name + (PLAIN if code is None else CODED), header, plain if code is None else code)
        if signature is not None:
            add(SIGNATURE, _json(signature))


class _Comparison:
    """A file to be written that keeps nothing but whether another one holds the same at each place."""

    def __init__(self, other: BinaryIO) -> None:
        self._other, self._at = other, 0
        self._same: dict[int, bool] = {}  # by where it was written: zipfile writes a header once more

    def write(self, data: Any) -> None:
        view = memoryview(data)
        parts = (view[at : at + _PIECE] for at in range(0, len(view), _PIECE))
        self._other.seek(self._at)
        self._same[self._at] = all(self._other.read(len(part)) == part for part in parts)
        self._at += len(view)

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> None:
        self._at = at

    def flush(self) -> None:
        """There is nothing to be flushed."""

    @property
    def is_whole(self) -> bool:
        """Whether that is all of the other file, too."""
        self._other.seek(self._at)
        return all(self._same.values()) and not self._other.read(1)


def seal(manifest: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """A manifest with the digests of these arrays, and its own, which covers everything but a signature."""
    members = {f"{name}.npy": digest(array) for name, array in sorted(arrays.items())}
    manifest = {**manifest, "members": members}
    return {**manifest, "sha256": _sha256(_json(manifest))}


def digest(array: Array) -> str:
    """SHA-256 of an array as a file holds it: what the manifest lists for it."""
    return _sha256(*_npy(array))


def unpack(contents: bytes) -> Contents:
    """What is in a file's bytes, once every one of them is accounted for."""
    return _unpack(io.BytesIO(contents))


def read(path: str | os.PathLike[str]) -> Contents:
    """What is in a file, once every byte of it is accounted for."""
    with open(checks.path(path), "rb") as file:
        return _unpack(file)


def _unpack(file: BinaryIO) -> Contents:
    try:
        words, arrays = _members(file)
        manifest, signature = words[MANIFEST], words.get(SIGNATURE)
        again = seal(bare(manifest), arrays)
        if any(manifest.get(name) != again[name] for name in _ADDED):
            raise ReleaseFileError("release file is damaged: its contents do not match the digests listed.")
        compared = _Comparison(file)
        _write(compared, again, arrays, signature)
        if not compared.is_whole:
            raise ReleaseFileError(_UNACCOUNTED)
    except ReleaseFileError:
        raise
    except Exception as error:  # zipfile, json and numpy raise many kinds on damaged input
        raise ReleaseFileError(f"{_DAMAGED} ({type(error).__name__}).") from None
    return manifest, arrays, signature


def _members(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a zip holds: words and arrays, by their names."""
    words: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    size = _checked_size(file)
    with zipfile.ZipFile(file) as archive:
        if sum(info.file_size for info in archive.infolist()) > size:  # members that share bytes
            raise ReleaseFileError(_UNACCOUNTED)
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                raise ReleaseFileError("release file must not be compressed inside.")
            name, suffix = os.path.splitext(info.filename)
            with archive.open(info) as member:
                if info.filename not in (MANIFEST, SIGNATURE):
                    arrays[name] = _read_array(info, suffix == CODED, member)
                    continue
                if info.file_size > _LARGEST_WORDS:
                    raise ReleaseFileError("release file has a manifest that is far too long.")
                words[info.filename] = json.loads(member.read())
                if not isinstance(words[info.filename], dict):
                    raise ReleaseFileError(f"{_DAMAGED}: {info.filename} is not an object.")
    return words, arrays


def _checked_size(file: BinaryIO) -> int:
    """A file's size, if its list of members is short: it ends as ours do, which says how long that is."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 42, 0))
    before, end = file.read(20), file.read(22)
    if end[:4] != b"PK\5\6" or before[:4] == b"PK\6\7":  # a comment; or a second end, for huge files
        raise ReleaseFileError(_UNACCOUNTED if zipfile.is_zipfile(file) else f"{_DAMAGED} (no zip).")
    if int.from_bytes(end[12:16], "little") > 2**20:  # zipfile takes some 15 times as much memory for it
        raise ReleaseFileError("release file has a list of members that is far too long.")
    return size


def _read_array(info: zipfile.ZipInfo, coded: bool, member: Any) -> Array:
    """An array, or what a code stands for, once its size is known to be the member's."""
    try:
        np.lib.format.read_magic(member)
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        length = info.file_size - member.tell()
        if coded:
            array = coding.decode(dtype, shape, member.read(length))
        elif dtype.hasobject or np.prod(shape, dtype=object) * dtype.itemsize != length:
            raise ValueError
        else:
            array = np.empty(shape, dtype)
            view = _bytes(array)
            for at in range(0, length, _PIECE):
                view[at : at + _PIECE] = member.read(_PIECE)
    except Exception as error:
        said = f"release file: {info.filename} is not a plain array ({type(error).__name__})."
        raise ReleaseFileError(said) from None
    array.setflags(write=False)
    return array


def bare(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it is before it is sealed."""
    return {key: value for key, value in manifest.items() if key not in _ADDED}


def _npy(array: Array) -> list[Any]:
    """An array's header, and its bytes where they are."""
    array = np.ascontiguousarray(array)
    if array.dtype.hasobject:
        raise ValueError("object arrays cannot be written to a release file.")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return [header.getvalue(), _bytes(array)]


def _bytes(array: Array) -> Any:
    """A contiguous array's own memory."""
    return array.reshape(-1).view(np.uint8).data


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()


def _sha256(*parts: Any) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()
