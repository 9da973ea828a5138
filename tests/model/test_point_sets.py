"""Sets of points: centres as good as scikit-learn's, Sobol's to the bit, and points that cover inputs."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cloakgp.model.point_sets import MOST, centres, cover, sobol

RNG = np.random.default_rng(7)
ROWS = {
    "clusters": RNG.normal(size=(12, 2))[RNG.integers(0, 12, 2500)] + 0.1 * RNG.normal(size=(2500, 2)),
    "heavy tails": np.exp(2 * RNG.normal(size=(2500, 3))),
    "far from zero": 1e7 + RNG.normal(size=(2500, 1)),
}


def spread(rows, found):
    """Mean squared distance to the nearest centre."""
    return np.mean(np.min([np.square(rows - centre).sum(axis=1) for centre in found], axis=0))


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_are_as_near_to_centres_as_to_scikit_learns(rows):
    others = KMeans(40, n_init=3, random_state=0).fit(rows).cluster_centers_
    assert spread(rows, centres(rows, 40)) < 1.1 * spread(rows, others)


def test_centres_that_no_row_is_nearest_to_stay_finite():
    with np.errstate(all="raise"):
        found = centres(np.array([[0.0], [1e-300], [2e-300], [1.0], [1.0]]), 4)
    assert set(found.ravel().round(6)) == {0.0, 1.0}


def test_inducing_inputs_are_chosen_without_scikit_learn():
    """Loading it takes longer than a plan."""
    code = (
        "import sys, cloakgp, numpy as np; X = np.random.default_rng(0).normal(size=(300, 1));"
        "cloakgp.GP(cloakgp.kernels.EQ(1.0), 0.4, (-1, 1), inducing=5)"
        ".plan(X, X_star=[0.5], epsilon=1, delta=1e-3);"
        "print('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("n", [1, 512])
@pytest.mark.parametrize("dimensions", [1, 4, MOST, MOST + 1])
def test_sobols_points_are_scipys(dimensions, n):
    """To the bit: files say which windows followed from them."""
    qmc = pytest.importorskip("scipy.stats").qmc
    np.testing.assert_array_equal(
        sobol(dimensions, n), qmc.Sobol(dimensions, scramble=False).random(n), strict=True
    )


def test_test_points_have_levels_that_there_are():
    levels = [RNG.integers(0, 3, 40), RNG.integers(5, 7, 40)]
    X = np.column_stack([RNG.uniform(size=40), *levels])
    found = cover(X, categories=(1, 2))
    assert set(found[:, 1]) == {0.0, 1.0, 2.0}
    assert set(found[:, 2]) == {5.0, 6.0}
    assert all((point == X).all(axis=1).any() for point in found)
    alone = cover(X[:, [1, 2]], categories=(0, 1))
    assert len(alone) == len(np.unique(X[:, [1, 2]], axis=0))


def test_one_column_is_covered_evenly_and_no_further():
    points = cover([[3.0], [13.0], [5.0]])
    np.testing.assert_allclose(points[:, 0], np.linspace(3.0, 13.0, 100))
    np.testing.assert_allclose(cover([3.0, 13.0], n_points=5)[:, 0], [3, 5.5, 8, 10.5, 13])
    np.testing.assert_array_equal(cover(np.full((5, 1), 7.0)), [[7.0]])
    with pytest.raises(ValueError, match="X must be finite"):
        cover([[np.nan, 1.0]])


def test_several_columns_are_covered_by_rows_far_apart_and_rows_as_dense_as_there_are():
    X = np.random.default_rng(0).normal(size=(400, 2)) * [1.0, 1000.0]
    X[:4] = [[9.0, 0.0], [-9.0, 0.0], [0.0, 9000.0], [0.0, -9000.0]]
    found = cover(X)
    assert 85 < len(found) <= 100  # some rows are both
    assert all((point == X).all(axis=1).any() for point in found)
    apart, sample = found[:50], found[50:]
    assert all((apart == extreme).all(axis=1).any() for extreme in X[:4])
    # Every row of X has a chosen one nearby, whatever the columns' units.
    gaps = np.linalg.norm((X[:, None] - apart) / [18.0, 18_000.0], axis=2).min(axis=1)
    assert gaps.max() < 0.1
    assert (
        np.abs(sample / [1.0, 1000.0]).mean()
        < 1.2 * np.sqrt(2 / np.pi)
        < np.abs(apart / [1.0, 1000.0]).mean()
    )


def test_few_rows_and_constant_columns_are_covered():
    points = cover([[0.0, 0.0], [1.0, 3.0], [1.0, 3.0], [0.0, 0.0]])
    assert {tuple(point) for point in points} == {(0.0, 0.0), (1.0, 3.0)}
    assert len(points) == 2
    np.testing.assert_allclose(cover(np.column_stack([np.arange(10.0), np.full(10, 4.0)]))[:, 1], 4.0)
    np.testing.assert_allclose(cover([[2.0, 3.0]]), [[2.0, 3.0]])
