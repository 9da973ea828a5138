"""The exact GP smoother: its C, its posterior variance, and the kernels that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from cloakgp.kernels import EQ, Constant, Linear, Matern32, as_kernel
from cloakgp.model import smoothers
from cloakgp.model.smoothers import ExactGP, FactoredGP, GivenGP, blocks


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(15, 2))


@pytest.fixture
def X_star():
    return np.random.default_rng(2).normal(size=(4, 2))


def reference(kernel, noise, X, X_star):
    k = as_kernel(kernel)
    covariance = k(X) + np.diag(np.broadcast_to(noise, (len(X),)))
    C = k(X_star, X) @ np.linalg.inv(covariance)
    return C, k.diag(X_star) - np.diag(C @ k(X, X_star))


@pytest.mark.parametrize("noise", [0.3, np.linspace(0.1, 2.0, 15)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize(
    "kernel",
    [
        EQ([0.7, 2.0], variance=3.0),
        Matern32(1.0) + Constant(5.0),
        Linear(2.0),
        2.0 * sk.RBF(1.3) + sk.Matern(nu=0.7),
        lambda X, Z: np.exp(-np.abs(X[:, :1] - Z[:, :1].T)),
    ],
    ids=["EQ", "sum", "Linear", "scikit-learn", "function"],
)
def test_columns_and_variance_are_the_textbooks(kernel, noise, X, X_star):
    smoother = ExactGP(as_kernel(kernel), noise, X, X_star)
    C, variance = reference(kernel, noise, X, X_star)
    assert (smoother.n_rows, smoother.n_outputs, smoother.jitter) == (15, 4, 0.0)
    np.testing.assert_allclose(smoother.columns(slice(0, 15)), C, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(smoother.posterior_variance, variance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("noise", [0.3, np.linspace(0.1, 2.0, 15)], ids=["one noise", "noise per row"])
def test_what_the_prior_says_of_data_and_predictions(noise, X, X_star):
    """Covariances of y with itself and with f(X*), and the variance of C y."""
    kernel = EQ([0.7, 2.0], variance=3.0)
    smoother = ExactGP(kernel, noise, X, X_star)
    C, _ = reference(kernel, noise, X, X_star)
    covariance = kernel(X) + np.diag(np.broadcast_to(noise, (15,)))
    B = np.random.default_rng(3).normal(size=(2, 15))
    np.testing.assert_allclose(smoother.times_covariance(B), B @ covariance, rtol=1e-12)
    np.testing.assert_allclose(smoother.cross, kernel(X, X_star), rtol=1e-12)
    np.testing.assert_allclose(smoother.explained_variance, np.diag(C @ covariance @ C.T), rtol=1e-9)
    total = smoother.explained_variance + smoother.posterior_variance
    np.testing.assert_allclose(total, kernel.diag(X_star), rtol=1e-12)


@pytest.mark.parametrize(("n", "size"), [(1, 4), (4, 4), (5, 4), (8, 4), (9, 1)])
def test_blocks_cover_the_rows_in_order(monkeypatch, n, size):
    monkeypatch.setattr(smoothers, "BLOCK", size)
    covered = [row for block in blocks(n) for row in range(n)[block]]
    assert covered == list(range(n))
    assert all(block.stop - block.start <= size for block in blocks(n))


# Jitter


def test_jitter_rescues_a_singular_gram_matrix_and_scales_with_the_kernel(X, X_star):
    twice = np.vstack([X, X])
    smoother = ExactGP(EQ(1.0), 1e-300, twice, X_star)
    assert 0 < smoother.jitter < 1e-6
    assert np.isfinite(smoother.columns(slice(0, 30))).all()
    assert np.isfinite(smoother.posterior_variance).all()
    large = ExactGP(EQ(1.0, variance=2.0**20), 1e-300, twice, X_star).jitter
    assert 0.01 <= large / smoother.jitter / 2.0**20 <= 100
    assert ExactGP(EQ(1.0), 1e-3, twice, X_star).jitter == 0.0  # where the noise suffices


def test_covariances_that_are_given_are_as_good_as_a_kernel():
    """As a matrix, or in factors that never make one."""
    own, X = np.linspace(0.1, 0.8, 12), np.linspace(0, 5, 12)[:, None]
    kernel, X_star = EQ(1.5, variance=2.0), np.array([[0.5], [2.2], [9.0]])
    expected = ExactGP(kernel, own, X, X_star)
    cross, variance = kernel(X, X_star), kernel.diag(X_star)
    B, factors = np.arange(24.0).reshape(2, 12), np.random.default_rng(0).normal(size=(12, 12))
    inner = np.linalg.solve(factors, np.linalg.solve(factors, kernel(X)).T).T
    for found in (
        GivenGP(kernel(X) + np.diag(own), cross, variance),
        GivenGP(kernel(X), cross, variance, own),
        FactoredGP(factors, inner, np.linalg.solve(factors, cross), own, variance),
    ):
        assert (found.n_rows, found.n_outputs) == (12, 3)
        close = {"rtol": 1e-6, "atol": 1e-6}
        for rows in (slice(2, 7), np.array([9, 0, 9])):
            np.testing.assert_allclose(found.columns(rows), expected.columns(rows), **close)
        np.testing.assert_allclose(found.cross, expected.cross, **close)
        np.testing.assert_allclose(found.times_covariance(B), expected.times_covariance(B), **close)
        np.testing.assert_allclose(found.posterior_variance, expected.posterior_variance, **close)
        np.testing.assert_allclose(found.explained_variance, expected.explained_variance, **close)


# Refusals


@pytest.mark.parametrize(
    "kernel",
    [
        lambda X, Z: -EQ(1.0)(X, Z),
        lambda X, Z: EQ(1.0)(X, Z) - 0.5,
        lambda X, Z: np.linalg.norm(X[:, None] - Z[None], axis=2),
        lambda X, Z: (np.linalg.norm(X[:, None] - Z[None], axis=2) < 1.2) * 1.0,
        lambda X, Z: np.tanh(X @ Z.T - 3.0),
    ],
    ids=["negative", "shifted", "distance", "indicator", "tanh"],
)
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("n", [6, 15])
def test_kernels_that_are_not_positive_semi_definite(kernel, noise, n, X, X_star):
    assert np.linalg.eigvalsh(kernel(X[:n], X[:n]))[0] < -1e-3, "the example must be indefinite"
    with pytest.raises(ValueError, match=r"positive semi-definite matrix.*Check the kernel's formula"):
        ExactGP(as_kernel(kernel), noise, X[:n], X_star)


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e6])
def test_a_kernel_that_is_indefinite_only_between_data_and_test_points(noise):
    """On one row any positive number is a covariance; |k(x, x*)|² > k(x, x) k(x*, x*) is not."""
    kernel = as_kernel(lambda X, Z: 1.0 + np.abs(X - Z.T))
    with pytest.raises(ValueError, match="positive semi-definite"):
        ExactGP(kernel, noise, np.zeros((1, 1)), np.array([[3.0]]))


def test_a_kernel_that_is_not_symmetric_is_refused(X, X_star):
    kernel = as_kernel(lambda X, Z: EQ(1.0)(X, Z) * (1 + 0.01 * X[:, :1]))
    with pytest.raises(ValueError, match=r"kernel.*must be symmetric"):
        ExactGP(kernel, 0.1, X, X_star)
