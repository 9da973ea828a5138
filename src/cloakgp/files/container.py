"""The release file's outside: a zip of ``manifest.json`` and arrays, in one canonical form.

Arrays are in ``.npy`` format; large ones are coded (:mod:`cloakgp.files.coding`) if they are
integers or decimals. Digests are of the ``.npy`` bytes either way. The archive is stored without compression,
with fixed dates and sorted members, so that its contents determine every byte. Reading refuses a file that is
not exactly what writing its contents gives: no unlisted member, comment, padding or trailing byte can ride
along. The manifest lists the sha256 of every array, and carries its own. Nothing is ever unpickled.

A file is read once, from its beginning to its end, and each array straight to where it stays, so reading
takes no more memory than the arrays themselves; a coded one takes about as much again, while it is decoded.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from cloakgp.files import coding

Array = np.ndarray[Any, Any]
Contents = tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]
"""Manifest, arrays and signature."""
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
PLAIN, CODED = ".npy", ".coded"
"""The schema of the first files with coded arrays."""
LARGEST_MEMBER = 2**31 - 2**16
"""Bytes that a member may have: more would need another form of zip."""
_LARGEST_WORDS = 2**24  # bytes of the manifest or the signature
_LARGEST_HEADER = 10_000  # bytes of an array's
_ADDED = ("members", "sha256")  # to a manifest, when it is sealed
_LOCAL = struct.Struct("<4s5H3I2H")  # what stands before a member's name
_UNACCOUNTED = (
    "release file holds bytes that its contents do not account for (a comment, padding, another "
    "order or trailing data). Ask for a fresh copy."
)


class ReleaseFileError(ValueError):
    """A file is not a release file, is damaged, or holds more than it lists."""


class _Member(NamedTuple):
    """One member, by what its headers say of it."""

    name: str
    size: int
    crc: int


def pack(
    manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None = None
) -> bytes:
    """The bytes of a file with these contents; `members` and `sha256` are added to the manifest."""
    data = {MANIFEST: [_json(sealed(manifest, arrays))]}
    for name, array in sorted(arrays.items()):
        code = _code(manifest, array)
        header, plain = _npy(array)
        data[name + (PLAIN if code is None else CODED)] = [header, plain if code is None else code]
    if signature is not None:
        data[SIGNATURE] = [_json(signature)]
    headers, end = _skeleton([_Member(name, *_measured(parts)) for name, parts in data.items()])
    pieces = [[header, *parts] for header, parts in zip(headers, data.values(), strict=True)]
    return b"".join([*(part for parts in pieces for part in parts), end])


def _code(manifest: dict[str, Any], array: Array) -> bytes | None:
    """How a file with this manifest holds an array, if not plainly."""
    return coding.encoded(array) if manifest.get("schema") is not None else None


def sealed(manifest: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
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
    found: list[_Member] = []
    words: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    codes: dict[str, bytes | None] = {}
    headers = b""
    try:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        while (header := file.read(_LOCAL.size))[:4] == b"PK\3\4":
            name, size, rest = _local_header(header, file)
            if name in words or name.rpartition(".")[0] in arrays or not size <= end - file.tell():
                raise ReleaseFileError(_UNACCOUNTED)
            if name in (MANIFEST, SIGNATURE):
                if size > _LARGEST_WORDS:
                    raise ReleaseFileError("release file has a manifest that is far too long.")
                data = file.read(size)
                words[name], crc = _parse(data), zlib.crc32(data)
            else:
                stem = name.rpartition(".")[0]
                arrays[stem], codes[stem], crc = _read_array(name, size, file)
            found.append(_Member(name, size, crc))
            headers += rest
        headers += header + file.read(end - file.tell() if found else 0)
        manifest = words[MANIFEST]
    except ReleaseFileError:
        raise
    except Exception as error:  # struct, json and numpy raise many kinds on damaged input
        raise ReleaseFileError(f"not a release file, or damaged ({type(error).__name__}).") from None
    if not all(isinstance(value, dict) for value in words.values()):
        raise ReleaseFileError("not a release file: its manifest or its signature is not an object.")
    _check_digests(manifest, arrays)
    if any(_code(manifest, arrays[name]) != code for name, code in codes.items()):
        raise ReleaseFileError(_UNACCOUNTED)
    members = (name + (PLAIN if codes[name] is None else CODED) for name in sorted(arrays))
    names = [MANIFEST, *members, *([SIGNATURE] if SIGNATURE in words else [])]
    expected, end_record = _skeleton(found)
    if [member.name for member in found] != names or headers != b"".join([*expected, end_record]):
        raise ReleaseFileError(_UNACCOUNTED)
    return manifest, arrays, words.get(SIGNATURE)


def _local_header(header: bytes, file: BinaryIO) -> tuple[str, int, bytes]:
    """A member's name, its size, and the header's bytes."""
    _, _, _, method, _, _, _, _, size, name_length, extra_length = _LOCAL.unpack(header)
    if method != 0:
        raise ReleaseFileError("release file must not be compressed inside.")
    name = file.read(name_length + extra_length)
    return name[:name_length].decode("ascii"), size, header + name


def _read_array(name: str, size: int, file: BinaryIO) -> tuple[Array, bytes | None, int]:
    """An array, its code if it is coded, and its checksum; refused if it is not as :func:`_npy` writes it."""
    start = file.tell()
    beginning = io.BytesIO(file.read(min(size, _LARGEST_HEADER)))
    coded, array = name.endswith(CODED), np.empty(0)
    try:
        np.lib.format.read_magic(beginning)
        shape, _, dtype = np.lib.format.read_array_header_1_0(beginning)
        header = _npy_header(dtype, shape)
        exact = header == beginning.getvalue()[: len(header)] and not dtype.hasobject
        exact = exact and name.endswith((PLAIN, CODED))
        length = size - len(header)
        file.seek(start + len(header))
        if coded and exact:
            code = file.read(length)
            array = coding.decoded(dtype, shape, code)
        elif exact and np.prod(shape, dtype=object) * dtype.itemsize == length:
            array = np.empty(shape, dtype)
    except Exception as error:
        raise ReleaseFileError(
            f"release file: {name} is not a plain array ({type(error).__name__})."
        ) from None
    if not exact or not (coded or array.nbytes == length):
        raise ReleaseFileError(f"release file: {name} is not a plain array in this library's form.")
    view = code if coded else _bytes(array)
    if not coded and file.readinto(view) != length:  # type: ignore[attr-defined]
        raise ReleaseFileError("not a release file, or damaged (it ends too early).")
    array.setflags(write=False)
    return array, code if coded else None, zlib.crc32(view, zlib.crc32(header))


def _check_digests(manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
    if manifest.get("sha256") != _sha256(_json({k: v for k, v in manifest.items() if k != "sha256"})):
        raise ReleaseFileError("release file is damaged: the manifest does not match its own digest.")
    if manifest.get("members") != {name + PLAIN: digest(array) for name, array in arrays.items()}:
        raise ReleaseFileError("release file is damaged: its members do not match the digests listed.")


def bare(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it is before it is sealed."""
    return {key: value for key, value in manifest.items() if key not in _ADDED}


def _skeleton(members: list[_Member]) -> tuple[list[bytes], bytes]:
    """The bytes of a zip that are not data: what stands before each member, and what after the last."""
    headers, directory, at = [], b"", 0
    for name, size, crc in members:
        # Version 2.0, no flags, stored, 1980-01-01 00:00, no extra field.
        common = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, crc, size, size, len(name), 0)
        headers.append(b"PK\3\4" + common + name.encode())
        # Written under Unix, no comment, readable by its owner: as Python's zipfile writes it.
        about = struct.pack("<3H2I", 0, 0, 0, 0o600 << 16, at)
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + common + about + name.encode()
        at += len(headers[-1]) + size
    n = len(members)
    return headers, directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), at, 0)


def _measured(parts: list[Any]) -> tuple[int, int]:
    """Size and checksum of data in parts."""
    size, crc = 0, 0
    for part in parts:
        size, crc = size + len(part), zlib.crc32(part, crc)
    if size > LARGEST_MEMBER:
        raise ValueError("a release of this size cannot be written to a file: an array is above 2 GB.")
    return size, crc


def _npy(array: Array) -> list[Any]:
    """An array's header, and its bytes where they are."""
    array = np.ascontiguousarray(array)
    if array.dtype.hasobject:
        raise ValueError("object arrays cannot be written to a release file.")
    header = _npy_header(array.dtype, np.shape(array))
    return [header, _bytes(array)]


def _bytes(array: Array) -> Any:
    """A contiguous array's own memory."""
    return array.reshape(-1).view(np.uint8).data


def _npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    described = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(
        out, {"descr": described, "fortran_order": False, "shape": tuple(shape)}
    )
    return out.getvalue()


def _parse(data: bytes) -> Any:
    """JSON with finite numbers only, as :func:`_json` writes it."""
    value = json.loads(data)
    if _json(value) != data:
        raise ReleaseFileError(_UNACCOUNTED)
    return value


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()


def _sha256(*parts: Any) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()
