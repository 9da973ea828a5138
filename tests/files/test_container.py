"""The release file's outside: one canonical form, and every other one refused."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tracemalloc
import zipfile
import zlib

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


@pytest.mark.parametrize("junk", [b"", b"hello", b"PK\x03\x04", bytes(1000), b"{}"])
def test_what_is_no_zip_is_refused(junk):
    refused(junk, "not a release file, or damaged")


# Files that ask for more memory than they have bytes


def deflated():
    """A megabyte that unpacks to a thousand."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("manifest.json", "w") as file,
    ):
        for _ in range(200):
            file.write(bytes(2**20))
    return out.getvalue()


def overlapping(n=100, size=2**20):
    """Members each of which holds all those after it."""
    blob, listed = bytes(size), []
    for number in range(n):
        data = npy(np.frombuffer(blob, np.uint8))
        name = f"{number}.npy".encode()
        words = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0)
        blob = b"PK\3\4" + words + name + data
        listed.append((len(blob), words, name))
    entries = [
        b"PK\1\2" + struct.pack("<H", 20) + words + struct.pack("<3H2I", 0, 0, 0, 0, len(blob) - at) + name
        for at, words, name in reversed(listed)
    ]
    length = sum(map(len, entries))
    return blob + b"".join(entries) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, length, len(blob), 0)


def of_shape(text):
    """An array whose header says that it is large."""
    header = npy(np.zeros(3))[:-24]
    told = header.replace(b"(3,), }" + b" " * len(text), f"({text},), }}".encode() + b" ")
    return archive_of([(as_written("a.npy"), told + bytes(24))])


def listing(n=60_000):
    """A long list of members, and nothing else."""
    return archive_of([(as_written(f"{number}.npy"), b"") for number in range(n)])


def second_end():
    """The same, told in the form for huge files, while the end says that there is no list."""
    one = listing()
    start, size, at = len(one) - 22, *struct.unpack("<II", one[-10:-2])
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 60_000, 60_000, size, at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start, 1)
    return one[:start] + record + locator + struct.pack("<4s4H2IH", b"PK\5\6", *[0] * 7)


@pytest.mark.parametrize(
    "bomb",
    [
        deflated,
        overlapping,
        lambda: of_shape("99999999999"),
        lambda: of_shape("9, 9" * 9),
        listing,
        second_end,
        lambda: archive_of([(as_written("manifest.json"), b" " * (2**24 + 1))]),
    ],
    ids=["deflated", "overlapping", "large", "many dimensions", "listing", "second end", "words"],
)
def test_bombs_are_refused_before_they_take_memory(bomb):
    contents = bomb()
    tracemalloc.start()
    try:
        refused(contents)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_reading_takes_no_more_memory_than_the_arrays(tmp_path):
    large = np.zeros((2**22, 2))
    (tmp_path / "file").write_bytes(pack({}, {"a": large}))
    tracemalloc.start()
    try:
        container.read(tmp_path / "file")
        assert tracemalloc.get_traced_memory()[1] < 1.2 * large.nbytes
    finally:
        tracemalloc.stop()


# The same contents in another form


def test_rewriting_without_a_change_is_accepted(contents):
    """So that the tests around this one refuse for the reason that they name."""
    assert archive_of(members(contents)) == contents == repacked(contents, "X.npy", lambda data: data)


def with_header(which, **changes):
    def change(contents):
        entries = members(contents)
        for name, value in changes.items():
            setattr(entries[which][0], name, value)
        return archive_of(entries)

    return change


def with_member(name, which=1):
    """One more, with the contents of another."""
    return lambda contents: archive_of(
        [*members(contents), (zipfile.ZipInfo(name), members(contents)[which][1])]
    )


def in_order(*numbers):
    return lambda contents: archive_of([members(contents)[number] for number in numbers])


def with_manifest(change):
    def rewrite(contents):
        (info, text), *rest = members(contents)
        return archive_of([(info, change(text)), *rest])

    return rewrite


HEADERS = [
    {"date_time": (2024, 2, 29, 12, 0, 0)},
    {"extra": b"\x99\x99\x04\x00psst"},
    {"comment": b"psst"},
    {"external_attr": 0o777 << 16},
    {"create_system": 0},
    {"create_version": 63},
    {"internal_attr": 1},
]
EXTRA = [
    "extra.npy",
    "notes.txt",
    "X",
    "a/b.npy",
    "../x.npy",
    "folder/",
    "Manifest.json",
    "X.npy",
    "manifest.json",
]
ARRAY = np.array([[0.1, 0.2], [0.3, 0.4]])
OTHER_ARRAYS = {
    "longer": lambda data: data + b"psst",
    "shorter": lambda data: data[:-1],
    "npy version 2": lambda _: npy(ARRAY[:1], version=(2, 0)),
    "Fortran order": lambda _: npy(np.asfortranarray(ARRAY)),
    "native byte order": lambda data: data.replace(b"'<f8'", b"'=f8'"),
    "spaces in the header": lambda data: data.replace(b"False, ", b"False ,"),
    "empty": lambda _: b"",
    "text": lambda _: b"not an array",
}
OTHER_MANIFESTS = {
    "a space": lambda text: text + b" ",
    "a zero": lambda text: text.replace(b'"number": 0.1', b'"number": 0.10'),
    "no indent": lambda text: json.dumps(json.loads(text)).encode(),
    "a word twice": lambda text: text.replace(b"{", b'{\n "number": 7,', 1),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
}
SENSELESS = [b"", b"[]", b"null", b"3", b"{}", b"{", b"\xff", b"[" * 100_000, b'{"x": ' + b"9" * 5000 + b"}"]
SENSELESS += [b'{"members": 3, "sha256": 4}', b'{"members": {}, "sha256": NaN}']
SENSELESS += [b'{"members": {}, "sha256": "", "x": NaN}', b'{"members": {}, "sha256": "", "x": 1e999}']
SENSELESS += [b'{"x": ' * 900 + b"1" + b"}" * 900]
FORMS = {
    **{f"{junk[:4]!r} after": lambda c, j=junk: c + j for junk in (b"\0", b"\n", b"PK\5\6", b"x" * 1000)},
    **{f"{junk[:4]!r} before": lambda c, j=junk: j + c for junk in (b"\0", b"\n", b"PK\5\6", b"x" * 1000)},
    "two files": lambda contents: contents + contents,
    "another file before": lambda contents: pack({}, {}) + contents,
    "a comment": lambda contents: archive_of(members(contents), comment=b"psst"),
    **{f"{change} at {at}": with_header(at, **change) for change in HEADERS for at in (0, 1, -1)},
    **{f"compressed {at}": with_header(at, compress_type=zipfile.ZIP_DEFLATED) for at in range(4)},
    **{f"in order {order}": in_order(*order) for order in [(3, 2, 1, 0), (0, 2, 1, 3)]},
    **{f"without {at}": in_order(*({0, 1, 2, 3} - {at})) for at in range(4)},
    **{f"with {name}": with_member(name) for name in EXTRA},
    **{f"{at} twice": in_order(0, 1, 2, 3, at) for at in range(2)},
    **{f"array: {n}": lambda c, f=f: repacked(c, "X.npy", f) for n, f in OTHER_ARRAYS.items()},
    **{f"manifest: {n}": with_manifest(change) for n, change in OTHER_MANIFESTS.items()},
    **{f"no manifest: {text[:40]!r}": with_manifest(lambda _, text=text: text) for text in SENSELESS},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_same_contents_in_another_form_are_refused(contents, form):
    other = FORMS[form](contents)
    assert other != contents
    refused(other)


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


def test_a_pickle_is_never_read(contents):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    refused(repacked(contents, "X.npy", lambda _: npy(np.array([Bomb()]))), "X.npy is not a plain array")
