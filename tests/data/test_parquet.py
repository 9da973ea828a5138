"""Columns of Parquet files, read as they are asked for: the same rows as the whole table has."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cloakgp.data.parquet import ParquetColumns, spans

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is optional: pip install cloakgp[cli]")
from pyarrow import parquet as pq  # noqa: E402

SIZES = (100, 1, 37, 262)


@pytest.fixture
def rows():
    table = np.random.default_rng(5).normal(size=(sum(SIZES), 3))
    table[:, 1] = np.rint(1000 * table[:, 1])
    return table


def table_of(rows):
    return pyarrow.table(
        {"a": rows[:, 0], "b": rows[:, 1].astype(np.int32), "c": rows[:, 2], "text": ["x"] * len(rows)}
    )


@pytest.fixture(params=["file", "folder"])
def path(request, rows, tmp_path):
    """The rows in one file with several row groups, or in several files."""
    if request.param == "file":
        pq.write_table(table_of(rows), tmp_path / "x.parquet", row_group_size=64)
        return tmp_path / "x.parquet"
    parts = np.split(rows, np.cumsum(SIZES)[:-1])
    for number, part in zip((0, 2, 9, 10), parts, strict=True):  # 10 comes last, not after 0
        pq.write_table(table_of(part), tmp_path / f"part.{number}.parquet", row_group_size=50)
    (tmp_path / "_metadata.parquet").write_bytes(b"not rows")
    (tmp_path / "README.txt").write_text("not rows")
    return tmp_path


def test_it_looks_like_a_matrix(path, rows):
    X = ParquetColumns(path, ["c", "b"])
    assert X.shape == (400, 2)
    assert len(X) == 400
    assert (X.dtype, X.ndim) == (np.float64, 2)
    np.testing.assert_array_equal(np.asarray(X), rows[:, [2, 1]])


@pytest.mark.parametrize(
    "part",
    [
        *(
            slice(*ends)
            for ends in [(None,), (0, 1), (99, 102), (120, 333), (-5, None), (390, 1000), (50, 50)]
        ),
        *(slice(*ends) for ends in [(60, 20), (3, 300, 7), (300, 3, -7)]),
        *(
            [5],
            [399, 0, 100, 100, -1],
            np.arange(0, 400, 13),
            np.array([], dtype=int),
            [],
            7,
            -1,
            np.int64(100),
        ),
    ],
    ids=str,
)
def test_any_rows_are_those_of_the_table(path, rows, part):
    got = ParquetColumns(path, ["a", "c"])[part]
    wanted = rows[:, [0, 2]][part if not isinstance(part, list) else np.array(part, dtype=int)]
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == np.float64


@pytest.mark.parametrize(
    "bad", [400, -401, [0, 400], [-401], 1.5, [0.0], [True, False], "a", (slice(None), 0)]
)
def test_what_is_no_row_is_refused(path, bad):
    with pytest.raises((IndexError, ValueError), match=r"below 400|whole number|inhomogeneous"):
        ParquetColumns(path, ["a"])[bad]


def test_missing_values_are_nan(tmp_path):
    table = pyarrow.table({"a": pyarrow.array([1, None, 3]), "b": [0.5, None, None]})
    pq.write_table(table, tmp_path / "x.pq")
    X = ParquetColumns(tmp_path / "x.pq", ["a", "b"])[:]
    np.testing.assert_array_equal(X, [[1, 0.5], [np.nan, np.nan], [3, np.nan]])


def test_threads_share_what_is_read(path, rows, monkeypatch):
    X = ParquetColumns(path, ["a", "b", "c"])
    loaded = []
    load = X.load
    monkeypatch.setattr(X, "load", lambda block: loaded.append(block) or load(block))
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda start: X[start : start + 7], range(0, 400, 7)))
    np.testing.assert_array_equal(np.vstack(parts), rows)
    assert len(loaded) < 2 * len(X.ends)


def test_a_failed_read_is_tried_again(path, rows, monkeypatch):
    X = ParquetColumns(path, ["a"])
    with monkeypatch.context() as patch:
        patch.setattr(X, "load", lambda block: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            X[0]
    np.testing.assert_array_equal(X[0], rows[0, :1])


def test_a_pickle_holds_the_path_and_not_the_rows(path, rows):
    X = ParquetColumns(path, ["a"])
    X[:]
    stored = pickle.dumps(X)
    assert len(stored) < 500
    np.testing.assert_array_equal(pickle.loads(stored)[:], rows[:, :1])  # noqa: S301


@pytest.mark.parametrize(
    ("tables", "columns", "match"),
    [
        ([{"a": [1.0], "text": ["x"]}], ["a", "text"], "'text' must hold numbers; it holds string"),
        ([{"a": [1.0]}], ["a", "d"], "one column 'd'"),
        ([{"a": [1.0]}, {"a": ["1.0"]}], ["a"], r"1\.parquet: column 'a'"),  # every file of a folder
        ([], ["a"], r"no \.parquet or \.pq file"),
        ([None], ["a"], "damaged"),
        ([{"a": pyarrow.array([], pyarrow.float64())}], ["a"], "no rows"),
        ([{"a": [1.0]}], [], "at least one column"),
    ],
)
def test_files_and_columns_that_cannot_be_read_are_named(tables, columns, match, tmp_path):
    for number, table in enumerate(tables):
        file = tmp_path / f"{number}.parquet"
        file.write_bytes(b"PAR0") if table is None else pq.write_table(pyarrow.table(table), file)
    with pytest.raises(ValueError, match=match):
        ParquetColumns(tmp_path, columns)
    with pytest.raises(FileNotFoundError):
        ParquetColumns(tmp_path / "none.parquet", ["a"])


def test_spans_skip_empty_blocks():
    assert list(spans([0, 3, 3, 5], 0, 5)) == [(1, slice(0, 3)), (3, slice(0, 2))]
    assert list(spans([0, 3, 3, 5], 2, 4)) == [(1, slice(2, 3)), (3, slice(0, 1))]
    assert list(spans([4, 8], 4, 4)) == []
