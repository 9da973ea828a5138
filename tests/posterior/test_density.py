"""How many rows each cell has: estimates that are near, and know how near."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.data.grid import Grid
from cloakgp.posterior.density import MOST_WANTED, CountErrors, DensityPrior, estimate

GRIDS = {
    "ages": Grid({"age": (0, 90)}, cells=45),
    "places": Grid({"a": (0, 1), "b": (0, 1)}, cells=12),
    "levels": Grid({"a": (0, 1), "k": ["x", "y", "z"]}, cells=15),
}


def some_counts(grid, total, random):
    share = np.exp(-grid.centres[:, 0] / np.ptp(grid.centres[:, 0]) * 2)
    return random.multinomial(total, share / share.sum()).astype(float)


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("known", [True, False])
def test_estimates_are_as_near_as_they_say(grid, known):
    random, total = np.random.default_rng(0), 2000
    prior = DensityPrior(grid, total, 0.0) if known else DensityPrior(grid, 1.4 * total, 0.3 * total)
    rows, ratios, better = prior.design(10.0**2), [], []
    for _ in range(20):
        counts = some_counts(grid, total, random)
        value = rows @ counts + 10.0 * random.normal(size=len(rows))
        found = estimate(prior, rows, value, 10.0**2)
        assert found.counts.min() > 0
        assert not known or found.counts.sum() == pytest.approx(total)
        ratios.append(np.mean((found.counts - counts) ** 2 / found.std**2))
        better.append(np.mean((found.counts - counts) ** 2) / np.mean((total / len(grid) - counts) ** 2))
    assert 0.5 < np.mean(ratios) < 1.5
    assert np.mean(better) < 0.6


def test_where_there_are_many_rows_counts_of_single_cells_are_known():
    """A town's rows are in few places: no smooth curve tells where."""
    random, grid = np.random.default_rng(0), GRIDS["places"]
    counts = np.rint(30_000 * random.dirichlet(np.full(len(grid), 0.3)))
    prior = DensityPrior(grid, counts.sum(), 0.0)
    rows = prior.design(10.0**2)
    found = estimate(prior, rows, rows @ counts + 10.0 * random.normal(size=len(rows)), 10.0**2)
    assert np.mean((found.counts - counts) ** 2) < 1.3 * 10.0**2


def test_of_very_many_cells_neighbours_are_counted_together():
    random, grid = np.random.default_rng(0), Grid({"a": (0, 1), "k": ["x", "y"], "b": (0, 1)}, cells=20)
    counts = np.rint(60_000 * random.dirichlet(np.full(len(grid), 0.3)))
    prior = DensityPrior(grid, counts.sum(), 0.0)
    rows = prior.design(10.0**2)
    assert len(rows) <= MOST_WANTED
    assert np.linalg.norm(rows, axis=0).max() <= 1 + 1e-12
    found = estimate(prior, rows, rows @ counts + 10.0 * random.normal(size=len(rows)), 10.0**2)
    wrong = (found.counts - counts).reshape(10, 2, 2, 20).sum(axis=1)
    assert np.mean(wrong**2) < 3 * 10.0**2
    assert np.mean((found.counts - counts) ** 2) > 10 * 10.0**2  # how they share it nobody measured


def test_a_known_total_leaves_no_error_in_it():
    grid = GRIDS["ages"]
    prior = DensityPrior(grid, 500.0, 0.0)
    rows = prior.design(4.0)
    errors = estimate(prior, rows, np.zeros(len(rows)), 4.0).errors
    whole = errors.times(np.ones((45, 1)), np.zeros(45))
    assert whole.sum() < 1e-3 * np.trace(whole)
    assert np.allclose(np.diag(whole), errors.variance)
    assert np.linalg.eigvalsh(whole).min() > -1e-8 * np.trace(whole)


def test_errors_in_sums_are_those_of_the_whole_matrix():
    random = np.random.default_rng(1)
    G, A = random.normal(size=(9, 4)), random.normal(size=(4, 4))
    errors = CountErrors(G, A @ A.T, 0.3)
    rows, factors, rest = random.normal(size=(3, 9)), random.normal(size=(9, 2)), random.uniform(size=9)
    expected = (G @ A @ A.T @ G.T + 0.3 * np.eye(9)) * (factors @ factors.T + np.diag(rest))
    assert np.allclose(errors.times(factors, rest), expected)
    assert np.allclose(errors.in_rows(rows, factors, rest), rows @ expected @ rows.T)
