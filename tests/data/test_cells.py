"""Many rows as cells: made from X alone, the same wherever X is kept."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.data import cells as module
from cloakgp.data.cells import fill_cells, make_cells
from cloakgp.data.people import as_people


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
    np.testing.assert_allclose(made.scale, 1 / np.ptp(X, axis=0))
    distances = (((X[:, None] - made.centres) * made.scale) ** 2).sum(axis=2)
    assert np.array_equal(made.labels, distances.argmin(axis=1))
    assert np.array_equal(np.bincount(made.labels, minlength=len(made.centres)), made.counts)


def test_what_is_kept_of_a_cells_rows_is_their_mean_and_their_spread(X):
    made, who = make_cells(X), as_people(np.arange(len(X)) // 7, len(X))
    own = make_cells(X, who).own
    for cell in range(len(made.counts)):
        rows = X[made.labels == cell]
        np.testing.assert_allclose(made.means[cell], rows.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(made.spreads[cell], rows.std(axis=0), atol=1e-9)
        assert own[cell] == pytest.approx(who.own[made.labels == cell].mean())


def test_columns_are_split_by_how_much_they_count(X):
    """A column that counts for nothing is never split, and each is looked at in its own scale."""
    X = X[:-1]
    for scale in ([1.0, 0.0], [0.3, 4.0]):
        made = make_cells(X, scale_of=lambda rows, scale=scale: np.array(scale))
        widths = [np.mean(made.spreads[:, column]) for column in (0, 1)]
        assert widths[0] < 0.1 * widths[1] if scale[1] == 0 else widths[1] < 0.3 * widths[0], widths
        distances = (((X[:, None] - made.centres) * scale) ** 2).sum(axis=2)
        assert np.array_equal(made.labels, distances.argmin(axis=1))


def test_the_same_rows_give_the_same_cells(X, tmp_path):
    made = make_cells(X)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=X.shape)
    mapped[:] = X
    again = make_cells(mapped)
    for name in ("centres", "counts", "labels", "means", "spreads"):
        assert np.array_equal(getattr(made, name), getattr(again, name))
    assert made.digest == again.digest == module.digest_of(X) == module.digest_of(mapped)
    other = X.copy()
    other[7, 1] += 1e-9
    assert make_cells(other).digest != made.digest


def test_known_cells_are_filled(X):
    made = make_cells(X)
    filled = fill_cells(X, made.centres, made.scale)
    assert np.array_equal(filled.labels, made.labels)
    assert np.array_equal(filled.counts, made.counts)


@pytest.mark.parametrize(
    "X", [np.zeros((300, 1)), np.repeat(np.arange(3.0), 100)[:, None]], ids=["one", "three"]
)
def test_equal_rows_share_a_cell(X):
    made = make_cells(X)
    assert len(made.centres) == len(np.unique(X))


@pytest.fixture
def leveled():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=3000), rng.integers(0, 3, 3000) * 0.01, rng.normal(size=3000)])
    rows[1234, 1] = 7.0  # a level of one row, which a sample may miss
    return rows


def test_levels_are_never_in_one_cell(leveled, monkeypatch):
    monkeypatch.setattr(module, "_SAMPLE", 100)
    made = make_cells(leveled, categories=(1,))
    assert len(made.centres) > 30
    np.testing.assert_array_equal(made.centres[made.labels, 1], leveled[:, 1])
    assert made.counts[made.labels[1234]] == 1
    filled = fill_cells(leveled, made.centres, made.scale, categories=(1,))
    assert np.array_equal(filled.labels, made.labels)
    assert not np.array_equal(fill_cells(leveled, made.centres, np.ones(3)).labels, made.labels)


def test_more_combinations_of_levels_than_cells_are_refused(leveled):
    leveled[:, 1] = np.arange(3000)
    with pytest.raises(ValueError, match="categories must have at most 64 combinations of levels"):
        make_cells(leveled, categories=(1,))


def test_no_cell_is_empty_after_others_were_dropped(monkeypatch):
    """Without an empty cell, a row that is as near to two others may go to the other of them."""
    monkeypatch.setattr(module, "MOST_CELLS", 256)
    for seed in range(3):
        rows = np.random.default_rng(seed).integers(0, 17, size=(400, 2)).astype(float)
        made = make_cells(rows)
        assert made.counts.all()
        assert np.array_equal(fill_cells(rows, made.centres, made.scale).labels, made.labels)
