"""Many rows as cells: made from X alone, the same wherever X is kept."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.rows import cells as module
from cloakgp.rows.cells import fill_cells, make_cells


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 64)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(3000, 2)), [[50.0, 50.0]]])  # one stands alone


def test_every_row_is_in_the_nearest_cell(X):
    made = make_cells(X)
    assert 32 <= len(made.centres) <= 64
    assert made.counts.sum() == len(X)
    assert (made.counts > 0).all()
    spans = np.ptp(made.centres, axis=0)
    distances = (((X[:, None] - made.centres) / spans) ** 2).sum(axis=2)
    assert np.array_equal(made.labels, distances.argmin(axis=1))
    assert np.array_equal(np.bincount(made.labels, minlength=len(made.centres)), made.counts)


def test_rows_of_a_cell_are_near_each_other(X):
    made = make_cells(X[:-1])
    within = X[:-1] - made.centres[made.labels]
    assert within.std() < 0.3 * X[:-1].std()


def test_the_same_rows_give_the_same_cells(X, tmp_path):
    made = make_cells(X)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=X.shape)
    mapped[:] = X
    again = make_cells(mapped)
    for name in ("centres", "counts", "labels"):
        assert np.array_equal(getattr(made, name), getattr(again, name))
    assert made.digest == again.digest
    other = X.copy()
    other[7, 1] += 1e-9
    assert make_cells(other).digest != made.digest


def test_known_cells_are_filled(X):
    made = make_cells(X)
    filled = fill_cells(X, made.centres)
    assert np.array_equal(filled.labels, made.labels)
    assert np.array_equal(filled.counts, made.counts)


def test_on_a_cluster(X):
    da = pytest.importorskip("dask.array")
    made, there = make_cells(X), make_cells(da.from_array(X, chunks=(700, 2)))
    assert np.array_equal(made.centres, there.centres)
    assert np.array_equal(made.labels, there.labels)


@pytest.mark.parametrize(
    "X", [np.zeros((300, 1)), np.repeat(np.arange(3.0), 100)[:, None]], ids=["one", "three"]
)
def test_equal_rows_share_a_cell(X):
    made = make_cells(X)
    assert len(made.centres) == len(np.unique(X))
