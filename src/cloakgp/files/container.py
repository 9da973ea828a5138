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
import struct
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

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
    return b"".join(_pieces(seal(manifest, arrays), arrays, signature))


def _pieces(
    manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None
) -> list[Any]:
    """The bytes of a file with these contents, arrays where they are."""
    data = {MANIFEST: [_json(manifest)]}
    for name, array in sorted(arrays.items()):
        code = coding.encode(array) if manifest.get("schema") is not None else None
        header, plain = _npy(array)
        data[name + (PLAIN if code is None else CODED)] = [header, plain if code is None else code]
    if signature is not None:
        data[SIGNATURE] = [_json(signature)]
    pieces, directory, at = [], b"", 0
    for name, parts in data.items():
        size, crc = _measured(parts)
        # Version 2.0, no flags, stored, 1980-01-01 00:00, no extra field.
        common = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, crc, size, size, len(name), 0)
        header = b"PK\3\4" + common + name.encode()
        # Written under Unix, no comment, readable by its owner: as Python's zipfile writes it.
        about = struct.pack("<3H2I", 0, 0, 0, 0o600 << 16, at)
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + common + about + name.encode()
        pieces += [header, *parts]
        at += len(header) + size
    n = len(data)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), at, 0)
    return [*pieces, directory, end]


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
    with open(path, "rb") as file:
        return _unpack(file)


def _unpack(file: BinaryIO) -> Contents:
    try:
        words, arrays = _members(file)
        manifest, signature = words[MANIFEST], words.get(SIGNATURE)
        again = seal(bare(manifest), arrays)
        if manifest.get("members") != again["members"]:
            raise ReleaseFileError("release file is damaged: its members do not match the digests listed.")
        if manifest.get("sha256") != again["sha256"]:
            raise ReleaseFileError("release file is damaged: the manifest does not match its own digest.")
        if not _holds(file, _pieces(again, arrays, signature)):
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


def _holds(file: BinaryIO, pieces: list[Any]) -> bool:
    """Whether these are all the bytes of a file."""
    file.seek(0)
    for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), _PIECE):
            part = view[at : at + _PIECE]
            if file.read(len(part)) != part:
                return False
    return not file.read(1)


def bare(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it is before it is sealed."""
    return {key: value for key, value in manifest.items() if key not in _ADDED}


def _measured(parts: list[Any]) -> tuple[int, int]:
    """Size and checksum of data in parts."""
    size, crc = 0, 0
    for part in parts:
        size, crc = size + len(part), zlib.crc32(part, crc)
    if size > 2**31 - 2**16:  # more would need another form of zip
        raise ValueError("a release of this size cannot be written to a file: an array is above 2 GB.")
    return size, crc


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
