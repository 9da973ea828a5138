"""Codes of large arrays: the same array again, to the bit, and one code for each array."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from cloakgp.files import coding, container
from cloakgp.files.container import ReleaseFileError

RNG = np.random.default_rng(4)
N = coding.LEAST
BELL = np.rint(RNG.normal(size=(2, 5000)) * 1000).astype("<i8")
DECIMALS = np.column_stack([RNG.normal(size=N).round(4), RNG.integers(-9, 9, size=N) * 10.0])
ARRAYS = {
    "any integers": RNG.integers(-(2**63), 2**63 - 1, size=(3, 5000)),
    "the largest": np.where(np.arange(N) % 2, 2**63 - 1, -(2**63)),
    "zeros": np.zeros(N, dtype="<i8"),
    "one large": np.eye(1, N, 17, dtype="<i8") << 62,
    "labels": np.minimum(np.arange(70001), 70000 - np.arange(70001) % 3),
    "short rows": RNG.integers(-9, 9, size=(9, coding.SHORTEST)),
    "bell": BELL,
    "decimals": DECIMALS,
    "one column of decimals": np.column_stack([DECIMALS, RNG.normal(size=N)]),
    "minus zero": np.column_stack([np.zeros(N), -np.zeros(N)]),
    "large decimals": np.linspace(-(2**53) + 1, 2**53 - 1, N).round(),
    "a vector": DECIMALS[:, 0].copy(),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_coded_is_decoded_to_the_bit(name):
    array = ARRAYS[name]
    code = coding.encode(array)
    again = coding.decode(array.dtype, array.shape, code)
    np.testing.assert_array_equal(again.view(np.int64), np.ascontiguousarray(array).view(np.int64))
    assert again.dtype == array.dtype
    assert coding.encode(again) == code


@pytest.mark.parametrize(
    "array",
    [
        BELL[:, :2047],
        np.resize(BELL, (N, 3)),
        RNG.normal(size=N),
        np.full(N, np.nan),
        np.full(N, np.inf),
        np.full(N, 1e16),
        BELL > 0,
    ],
    ids=["small", "rows too short", "floats", "NaN", "infinite", "too large for decimals", "another dtype"],
)
def test_what_gains_nothing_is_not_coded(array):
    assert coding.encode(array) is None


def test_a_great_many_short_rows_are_refused():
    """Each costs some microseconds, and a hostile file could have millions in few bytes."""
    rows = np.zeros((64, coding.SHORTEST - 1), dtype="<i8")
    with pytest.raises(ValueError, match="no code"):
        coding.decode(rows.dtype, rows.shape, coding._code(rows))


def test_codes_take_little_more_than_the_entropy():
    entropy = np.log2(1000 * np.sqrt(2 * np.pi * np.e))  # of a bell with this std
    assert len(coding.encode(BELL)) * 8 / BELL.size < entropy + 0.15
    assert len(coding.encode(ARRAYS["labels"])) < len(ARRAYS["labels"]) / 2  # in place of 8 bytes each


# In a file


def member_of(contents, name):
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        return archive.read(name)


def file_of(suffix, data, array=BELL, schema=3):
    """A file with this array, written as given and otherwise right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, contents in [
            ("manifest.json", container._json(container.seal({"schema": schema}, {"a": array}))),
            (f"a{suffix}", container._npy(array)[0] + data),
        ]:
            info = zipfile.ZipInfo(name)  # dated 1980-01-01
            info.create_system = 3
            archive.writestr(info, contents)
    return out.getvalue()


def test_large_arrays_are_coded():
    contents = container.pack({"schema": 3}, {"a": BELL, "b": BELL[:, :3]})
    manifest, arrays, _ = container.unpack(contents)
    np.testing.assert_array_equal(arrays["a"], BELL)
    assert not arrays["a"].flags.writeable
    assert manifest["members"] == {"a.npy": container.digest(BELL), "b.npy": container.digest(BELL[:, :3])}
    assert member_of(contents, "a.coded") == container._npy(BELL)[0] + coding.encode(BELL)
    assert len(container.pack({}, {"a": BELL})) > BELL.nbytes  # not those of a stage in a ledger


def test_every_other_way_to_write_an_array_is_refused():
    code = coding.encode(BELL)
    container.unpack(file_of(".coded", code))
    for suffix, data, schema in [
        (".npy", BELL.tobytes(), 3),
        (".coded", code, None),
        (".coded", code + b"\0", 3),
        (".coded", code[:-1], 3),
        (".coded", with_more_low_bits(), 3),
        (".other", code, 3),
    ]:
        with pytest.raises(ReleaseFileError):
            container.unpack(file_of(suffix, data, schema=schema))


def with_more_low_bits():
    """Another code of the same array, if readers took any k."""
    kept, coding._naturals = coding._naturals, lambda row: (kept(row)[0], kept(row)[1] + 1)
    try:
        other = coding.encode(BELL)
    finally:
        coding._naturals = kept
    np.testing.assert_array_equal(coding.decode(BELL.dtype, BELL.shape, other), BELL)
    return other


@pytest.mark.parametrize("shape", [(2**34,), (2**20, 2**14), (1, 2**62), (2**62, 2**62), (3, 5000), (0, 9)])
def test_a_code_of_few_bytes_cannot_ask_for_much_memory(shape):
    code = coding.encode(BELL)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"no code|buffer"):
            coding.decode(BELL.dtype, shape, code)
        with pytest.raises(ValueError, match=r"no code|buffer"):
            coding.decode(BELL.dtype, (N,), bytes(2**22))  # more than so many entries have
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
