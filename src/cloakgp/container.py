"""The release file's outside: a zip of ``manifest.json`` and ``.npy`` arrays, in one canonical form.

The archive is stored without compression, with fixed dates and sorted members, so that its
contents determine every byte. Reading refuses a file that is not exactly what writing its
contents gives: no unlisted member, comment, padding or trailing byte can ride along. The manifest
lists the sha256 of every member, and carries its own. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
MANIFEST, SIGNATURE = "manifest.json", "signature.json"


class ReleaseFileError(ValueError):
    """A file is not a release file, is damaged, or holds more than it lists."""


def pack(
    manifest: dict[str, Any], arrays: dict[str, Array], signature: dict[str, str] | None = None
) -> bytes:
    """The bytes of a file with these contents; `members` and `sha256` are added to the manifest."""
    members = {f"{name}.npy": _npy(array) for name, array in sorted(arrays.items())}
    manifest = {**manifest, "members": {name: _sha256(data) for name, data in members.items()}}
    manifest["sha256"] = _sha256(_json(manifest))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        _write(archive, MANIFEST, _json(manifest))
        for name, data in members.items():
            _write(archive, name, data)
        if signature is not None:
            _write(archive, SIGNATURE, _json(signature))
    return out.getvalue()


def unpack(contents: bytes) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """Manifest, arrays and signature, once every byte of the file is accounted for."""
    manifest, members, signature = _open(contents)
    bare = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
    if manifest.get("sha256") != _sha256(_json({**bare, "members": manifest.get("members")})):
        raise ReleaseFileError("release file is damaged: the manifest does not match its own digest.")
    if manifest["members"] != {name: _sha256(data) for name, data in members.items()}:
        raise ReleaseFileError("release file is damaged: its members do not match the digests listed.")
    arrays = {name.removesuffix(".npy"): _array(name, data) for name, data in members.items()}
    if pack(bare, arrays, signature) != contents:
        raise ReleaseFileError(
            "release file holds bytes that its contents do not account for (a comment, padding, another "
            "order or trailing data). Ask for a fresh copy."
        )
    return manifest, arrays, signature


def _open(contents: bytes) -> tuple[dict[str, Any], dict[str, bytes], dict[str, str] | None]:
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise ReleaseFileError("release file must not be compressed inside.")
            data = {name: archive.read(name) for name in archive.namelist()}
        manifest = _parse(data.pop(MANIFEST))
        signature = _parse(data.pop(SIGNATURE)) if SIGNATURE in data else None
    except ReleaseFileError:
        raise
    except Exception as error:  # zipfile and json raise many kinds on damaged input
        raise ReleaseFileError(f"not a release file, or damaged ({type(error).__name__}).") from None
    if not isinstance(manifest, dict):
        raise ReleaseFileError("not a release file: its manifest is not an object.")
    return manifest, data, signature


def manifest_digest(contents: bytes) -> str:
    """The manifest's own SHA-256, which covers everything but a signature, of bytes from :func:`pack`."""
    sha256: str = unpack(contents)[0]["sha256"]
    return sha256


def digest(array: Array) -> str:
    """SHA-256 of an array as a file holds it: what the manifest lists for it."""
    return _sha256(_npy(array))


def _array(name: str, data: bytes) -> Array:
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:
        raise ReleaseFileError(
            f"release file: {name} is not a plain array ({type(error).__name__})."
        ) from None
    array.setflags(write=False)
    return array


def _npy(array: Array) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name)  # dated 1980-01-01
    info.create_system = 3  # the same on every platform
    archive.writestr(info, data)


def _parse(data: bytes) -> Any:
    """JSON with finite numbers only, as :func:`_json` writes it."""
    value = json.loads(data)
    _json(value)
    return value


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
