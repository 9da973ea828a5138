"""The designs by name: values known by hand, and what sets them apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloakgp.designs import solve


def noise_of(dense, design, C, weights=None, gap=1e-6):
    C = np.asarray(C, dtype=float)
    s = solve(design, dense(C), np.ones(len(C)) if weights is None else np.asarray(weights, dtype=float), gap)
    return s, s.reconstruction @ s.reconstruction.T


both = pytest.mark.parametrize("design", ["mse", "volume"])


# By hand


@both
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (3.0, 0.5)])
def test_two_orthogonal_rows(dense, design, a, b):
    """c₁ = (a, 0), c₂ = (0, b): each is hidden on its own, M = diag(a², b²)."""
    s, M = noise_of(dense, design, [[a, 0.0], [0.0, b]])
    np.testing.assert_allclose(M, np.diag([a**2, b**2]), rtol=1e-5, atol=1e-5)
    assert s.objective == pytest.approx({"mse": (a**2 + b**2) / 2, "volume": a * b}[design], rel=1e-5)


@both
def test_one_test_point_is_hidden_by_its_most_influential_row(dense, design):
    s, M = noise_of(dense, design, [[0.5, -2.0, 1.0]])
    assert M.item() == pytest.approx(4.0)
    assert s.objective == pytest.approx(4.0)


@both
def test_three_rows_of_two_test_points(dense, design):
    """Columns e₁, e₂ and e₁ + e₂. By symmetry M has eigenvalues u along (1, 1) and w along (1, -1).

    The constraints are 2/u <= 1 and (1/u + 1/w)/2 <= 1. Both u + w and u w are least at u = 2,
    where w = 2/3: mean variance 4/3, geometric mean √(4/3).
    """
    s, M = noise_of(dense, design, [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(M, [[4 / 3, 2 / 3], [2 / 3, 4 / 3]], rtol=1e-3)
    assert s.objective == pytest.approx({"mse": 4 / 3, "volume": math.sqrt(4 / 3)}[design], rel=2e-6)


# Beside each other


def geometric_mean(M):
    return math.exp(np.linalg.slogdet(M)[1] / len(M))


@pytest.mark.parametrize("seed", range(6))
def test_each_design_is_best_at_its_own_game(dense, seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(4, 60)) * np.exp(rng.normal(size=60))
    gap = 1e-4
    _, mse = noise_of(dense, "mse", C, gap=gap)
    _, volume = noise_of(dense, "volume", C, gap=gap)
    assert np.trace(mse) <= np.trace(volume) * (1 + gap)
    assert geometric_mean(volume) <= geometric_mean(mse) * (1 + gap)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("point", [0, 2])
def test_mse_a_point_that_weighs_more_gets_less_noise(dense, seed, point):
    C = np.random.default_rng(seed).normal(size=(3, 40))
    variances = []
    for factor in (0.1, 1.0, 10.0):
        weights = np.ones(3)
        weights[point] = factor
        variances.append(noise_of(dense, "mse", C, weights, gap=1e-6)[1][point, point])
    assert variances[0] * (1 + 1e-3) >= variances[1] >= variances[2] * (1 - 1e-3)
    assert variances[0] > variances[2] * 1.05


def test_volume_noise_does_not_depend_on_the_weights(dense):
    C = np.random.default_rng(1).normal(size=(3, 40))
    _, plain = noise_of(dense, "volume", C, gap=1e-7)
    _, weighted = noise_of(dense, "volume", C, [0.1, 1.0, 10.0], gap=1e-7)
    np.testing.assert_allclose(weighted, plain, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("weight", [1e-3, 1e-6, 1e-10])
def test_a_test_point_of_little_weight_is_still_predicted(dense, design, weight):
    """Its noise may be large, but leaving it out of the measurements would make it wrong."""
    C = np.random.default_rng(2).normal(size=(3, 20))
    s, _ = noise_of(dense, design, C, [1.0, 1.0, weight], gap=0.01)
    np.testing.assert_allclose(s.reconstruction @ s.reduce @ C, C, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-95, 1e120])
def test_the_unit_of_the_predictions_does_not_matter(dense, design, scale):
    """Test points far from all data have next to no column: what is left of it is hidden all the same."""
    C = np.random.default_rng(3).normal(size=(3, 20))
    small, _ = noise_of(dense, design, C * scale, gap=0.01)
    assert small.objective / scale**2 == pytest.approx(noise_of(dense, design, C, gap=0.01)[0].objective)


def test_numbers_that_underflow_are_no_errors(dense, design):
    C = np.diag(10.0 ** -np.arange(5)) @ np.random.default_rng(3).normal(size=(5, 50))
    with np.errstate(all="raise"):
        assert noise_of(dense, design, C, gap=0.01)[0].status == "converged"


@pytest.mark.parametrize("length", [1e8, 1e12])
def test_rows_with_columns_far_longer_than_others(dense, design, length):
    C = np.random.default_rng(7).normal(size=(10, 100))
    for seed in (1, 3, 26, 39):
        new = length * np.random.default_rng(seed).normal(size=(10, 2))
        assert solve(design, dense(np.hstack([C, new])), np.ones(10), 0.01).status == "converged"


@pytest.mark.parametrize("gap", [1e-12, 1e-17])
def test_a_gap_beyond_reach_ends_without_a_warning(dense, design, gap):
    for C in (np.eye(3), np.diag([1.0, 1e-3]), np.ones((2, 3))):
        s, _ = noise_of(dense, design, C, gap=gap)
        assert s.gap <= 1e-6
