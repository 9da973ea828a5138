"""The release file's outside: one canonical form, and every other one refused."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest

from cloakgp.files import container
from cloakgp.files.container import ReleaseFileError, pack, unpack

MANIFEST = {"format": "test", "number": 0.1, "nested": {"b": 1, "a": [1, 2.5, None, "é"]}}
ARRAYS = {"z": np.array([3, -(2**60)]), "X": np.array([[0.1, 0.2]]), "empty": np.zeros((0, 2))}
SIGNATURE = {"algorithm": "none"}


@pytest.fixture(params=[None, SIGNATURE], ids=["unsigned", "signed"])
def signature(request):
    return request.param


@pytest.fixture
def contents(signature):
    return pack(MANIFEST, ARRAYS, signature)


def members(contents):
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def archive_of(entries, comment=b""):
    """A zip of the given (info, data) pairs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for info, data in entries:
            archive.writestr(info, data)
        archive.comment = comment
    return out.getvalue()


def refused(contents, match=None):
    with pytest.raises(ReleaseFileError, match=match):
        unpack(contents)


# Form


def test_round_trip(contents, signature):
    manifest, arrays, signed = unpack(contents)
    assert {key: manifest[key] for key in MANIFEST} == MANIFEST
    assert signed == signature
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert not arrays[name].flags.writeable


def test_it_is_a_plain_zip_of_a_manifest_and_arrays(contents, signature):
    entries = members(contents)
    names = [info.filename for info, _ in entries]
    assert names == ["manifest.json", "X.npy", "empty.npy", "z.npy"] + ["signature.json"] * (
        signature is not None
    )
    assert all(info.compress_type == zipfile.ZIP_STORED for info, _ in entries)
    assert {info.date_time for info, _ in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_the_manifest_has_the_digest_of_every_member(contents):
    data = {info.filename: data for info, data in members(contents)}
    listed = json.loads(data["manifest.json"])["members"]
    assert listed == {
        name: hashlib.sha256(data[name]).hexdigest() for name in ("X.npy", "empty.npy", "z.npy")
    }


def test_equal_contents_are_equal_bytes():
    backwards = {key: MANIFEST[key] for key in reversed(MANIFEST)}
    arrays = {key: np.asfortranarray(ARRAYS[key]) for key in reversed(ARRAYS)}
    assert pack(backwards, arrays) == pack(MANIFEST, ARRAYS)


def test_what_json_cannot_hold_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"x": float("nan")}, {})
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        pack({}, {"x": np.array([None])})


# Damage


@pytest.mark.parametrize(
    "bits", [(0, 5), pytest.param(range(8), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_every_single_bit_flip_is_refused(contents, bits):
    for position in range(len(contents)):
        for bit in bits:
            damaged = bytearray(contents)
            damaged[position] ^= 1 << bit
            with pytest.raises(ReleaseFileError):
                unpack(bytes(damaged))


def test_every_truncation_is_refused(contents):
    for length in range(len(contents)):
        with pytest.raises(ReleaseFileError):
            unpack(contents[:length])


@pytest.mark.parametrize("junk", [b"\0", b"\n", b"PK\x05\x06", b"x" * 1000])
def test_bytes_before_or_after_are_refused(contents, junk):
    refused(contents + junk)
    refused(junk + contents)


def test_two_files_in_one_are_refused(contents):
    refused(contents + contents)
    refused(pack({}, {}) + contents)


@pytest.mark.parametrize("junk", [b"", b"hello", b"PK\x03\x04", bytes(1000), b"{}"])
def test_what_is_no_zip_is_refused(junk):
    refused(junk, "not a release file, or damaged")


def test_edits_without_new_digests_are_named(contents):
    (info, manifest), (other, data), *rest = members(contents)
    edited = archive_of([(info, manifest), (other, data[:-1] + b"!"), *rest])
    refused(edited, "damaged: its members do not match the digests listed")
    edited = archive_of([(info, manifest.replace(b"0.1", b"0.2")), (other, data), *rest])
    refused(edited, "damaged: the manifest does not match its own digest")


# The same contents in another form


def test_a_comment_is_refused(contents):
    refused(archive_of(members(contents), comment=b"psst"), "bytes that its contents do not account for")


def test_rewriting_without_a_change_is_accepted(contents):
    """So that the tests around this one refuse for the reason that they name."""
    assert archive_of(members(contents)) == contents
    unpack(archive_of(members(contents)))


@pytest.mark.parametrize(
    "change",
    [
        {"date_time": (2024, 2, 29, 12, 0, 0)},
        {"extra": b"\x99\x99\x04\x00psst"},
        {"comment": b"psst"},
        {"external_attr": 0o777 << 16},
        {"create_system": 0},
        {"create_version": 63},
        {"internal_attr": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("which", [0, 1, -1])
def test_other_zip_headers_are_refused(contents, change, which):
    entries = members(contents)
    for name, value in change.items():
        setattr(entries[which][0], name, value)
    refused(archive_of(entries))


def test_compressed_members_are_refused(contents):
    entries = members(contents)
    for which in range(len(entries)):
        entries = members(contents)
        entries[which][0].compress_type = zipfile.ZIP_DEFLATED
        refused(archive_of(entries), "must not be compressed")


def test_reordered_members_are_refused(contents):
    entries = members(contents)
    refused(archive_of(entries[::-1]))
    refused(archive_of([entries[0], entries[2], entries[1], *entries[3:]]))


@pytest.mark.parametrize(
    "name", ["extra.npy", "notes.txt", "X", "a/b.npy", "../x.npy", "folder/", "Manifest.json"]
)
def test_an_extra_member_is_refused(contents, name):
    extra = np.lib.format.magic(1, 0) if not name.endswith(".npy") else members(contents)[1][1]
    refused(archive_of([*members(contents), (zipfile.ZipInfo(name), extra)]))


def test_a_missing_member_is_refused(contents):
    entries = members(contents)
    for which in range(4):
        refused(archive_of(entries[:which] + entries[which + 1 :]))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_duplicate_member_is_refused(contents, which):
    entries = members(contents)
    info, data = entries[which]
    refused(archive_of([*entries, (info.filename, data)]))
    refused(archive_of([*entries, (info.filename, data.replace(b"1", b"2"))]))


def repacked(contents, name, change):
    """The file with one member's bytes changed, and digests that are right."""
    entries = {info.filename: data for info, data in members(contents)}
    entries[name] = change(entries[name])
    manifest = json.loads(entries["manifest.json"])
    manifest = {key: value for key, value in manifest.items() if key not in ("members", "sha256")}
    arrays = {key: data for key, data in entries.items() if key.endswith(".npy")}
    manifest["members"] = {key: container._sha256(data) for key, data in arrays.items()}
    manifest["sha256"] = container._sha256(container._json(manifest))
    entries["manifest.json"] = container._json(manifest)
    return archive_of([(as_written(key), data) for key, data in entries.items()])


def as_written(name):
    """A member's header as the library writes it, from Python's own zip."""
    info = zipfile.ZipInfo(name)  # dated 1980-01-01
    info.create_system = 3
    return info


def npy(array, version=(1, 0), allow_pickle=True):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version, allow_pickle=allow_pickle)
    return out.getvalue()


def test_repacking_without_a_change_is_accepted(contents):
    assert repacked(contents, "X.npy", lambda data: data) == contents


def test_a_pickle_is_never_read(contents):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    refused(repacked(contents, "X.npy", lambda _: npy(np.array([Bomb()]))), "X.npy is not a plain array")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"psst",
        lambda data: data[:-1],
        lambda data: npy(np.array([[0.1, 0.2]]), version=(2, 0)),
        lambda data: npy(np.asfortranarray(np.array([[0.1, 0.2], [0.3, 0.4]]))),
        lambda data: data.replace(b"'<f8'", b"'=f8'"),
        lambda data: data.replace(b"False, ", b"False ,"),
        lambda data: b"",
        lambda data: b"not an array",
    ],
    ids=[
        "longer",
        "shorter",
        "npy version 2",
        "Fortran order",
        "native byte order",
        "spaces in the header",
        "empty",
        "text",
    ],
)
def test_arrays_in_another_form_are_refused(contents, change):
    refused(repacked(contents, "X.npy", change))


def with_manifest(contents, text):
    entries = members(contents)
    return archive_of([(entries[0][0], text), *entries[1:]])


def test_a_manifest_in_another_form_is_refused(contents):
    text = members(contents)[0][1]
    refused(with_manifest(contents, text + b" "))
    refused(with_manifest(contents, text.replace(b'"number": 0.1', b'"number": 0.10')))
    refused(with_manifest(contents, json.dumps(json.loads(text)).encode()))
    refused(with_manifest(contents, text.replace(b"{", b'{\n "number": 7,', 1)))
    refused(with_manifest(contents, b"\xef\xbb\xbf" + text))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"3",
        b"{}",
        b"{",
        b"\xff",
        b'{"members": 3, "sha256": 4}',
        b'{"members": {}, "sha256": NaN}',
        b'{"members": {}, "sha256": "", "x": NaN}',
        b'{"members": {}, "sha256": "", "x": 1e999}',
        b"[" * 100_000,
        b'{"x": ' * 900 + b"1" + b"}" * 900,
        b'{"x": ' + b"9" * 5000 + b"}",
    ],
    ids=lambda text: text[:40].decode("latin-1"),
)
def test_a_manifest_that_makes_no_sense_is_refused(contents, text):
    refused(with_manifest(contents, text))
