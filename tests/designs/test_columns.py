"""C in the few directions that matter."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.designs.columns import RANK_CUT, reduced
from cloakgp.model import smoothers


@pytest.fixture
def C():
    rng = np.random.default_rng(8)
    return rng.normal(size=(6, 3)) @ rng.normal(size=(3, 50))  # rank 3


@pytest.fixture
def weights():
    return np.linspace(0.5, 3.0, 6)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("block", [7, 50, 8192])
def test_coordinates_carry_everything(dense, C, weights, whiten, block, monkeypatch):
    monkeypatch.setattr(smoothers, "BLOCK", block)
    columns = reduced(dense(C), weights, whiten)
    assert (columns.rank, columns.n_rows) == (3, 50)
    np.testing.assert_allclose(columns.up @ columns.down @ C, C, atol=1e-12)
    np.testing.assert_allclose(columns.down @ columns.up, np.eye(3), atol=1e-12)


def test_coordinates_measure_weighted_predictions(dense, C, weights):
    """|down c|² u² = Σ_j w_j c_j², so that tr M u² in coordinates is the weighted sum of variances."""
    columns = reduced(dense(C), weights)
    norms = np.sum(columns.take(np.arange(50)) ** 2, axis=0)
    np.testing.assert_allclose(norms * np.linalg.norm(C, 2) ** 2, weights @ C**2)


def test_whitened_coordinates_are_orthonormal_over_the_rows(dense, C, weights):
    coordinates = reduced(dense(C), weights, whiten=True).take(np.arange(50))
    np.testing.assert_allclose(coordinates @ coordinates.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("block", [7, 8192])
def test_squared_norms_of_all_rows(dense, C, weights, block, monkeypatch):
    monkeypatch.setattr(smoothers, "BLOCK", block)
    columns = reduced(dense(C), weights)
    transform = np.random.default_rng(1).normal(size=(2, 3))
    expected = np.sum((transform @ columns.down @ C) ** 2, axis=0)
    np.testing.assert_allclose(columns.squared_norms(transform), expected)


def test_the_rank_cut_leaves_out_what_is_small_beside_the_largest(dense):
    C = np.diag([1.0, 10 * RANK_CUT, RANK_CUT / 10])
    for scale in (1.0, 1e-50, 1e50):
        assert reduced(dense(C * scale), np.ones(3)).rank == 2


@pytest.mark.parametrize("C", [np.zeros((2, 5)), np.full((2, 5), 1e-200)], ids=["zero", "underflow"])
def test_test_points_without_influence_are_refused(dense, C):
    with pytest.raises(ValueError, match=r"X_star: no test point is influenced.*Choose test points nearer"):
        reduced(dense(C), np.ones(2))


@pytest.mark.parametrize("whiten", [False, True])
def test_the_directions_that_are_kept_do_not_depend_on_the_weights(dense, whiten):
    """A test point of little weight is still predicted."""
    C = np.random.default_rng(9).normal(size=(4, 30)) * np.array([1.0, 1.0, 1e-3, 1e-8])[:, None]
    for weights in (np.ones(4), np.array([1e-12, 1.0, 1.0, 1.0]), np.array([1e-6, 1.0, 1e-6, 1e6])):
        columns = reduced(dense(C), weights, whiten)
        assert columns.rank == 3
        np.testing.assert_allclose(columns.up @ columns.down @ C, C, atol=1e-5)
