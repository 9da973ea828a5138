"""Arrays of numpy and of torch, by the same names."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.data.merging import Inputs
from cloakgp.gp import GP
from cloakgp.kernels import EQ
from cloakgp.model import arrays
from cloakgp.model.gp import smoother_for

KINDS = ["numpy", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(params=KINDS)
def make(request):
    if request.param == "numpy":
        return np.asarray
    import torch

    return torch.tensor


@pytest.fixture
def A():
    return np.random.default_rng(0).normal(size=(7, 3))


def test_there_and_back(make, A):
    there = make(A)
    assert isinstance(arrays.on_host(there), np.ndarray)
    np.testing.assert_array_equal(arrays.on_host(there), A)
    for values in (A[0], np.arange(3)):
        other = arrays.like(there, values)
        assert type(other) is type(there)
        np.testing.assert_array_equal(arrays.on_host(other), values)
        assert arrays.on_host(other).dtype == values.dtype
    A.setflags(write=False)  # and what is read-only, too
    np.testing.assert_array_equal(arrays.on_host(arrays.like(make(np.ones(2)), A)), A)


def test_column_dots(make, A):
    B = A[::-1].copy()
    np.testing.assert_allclose(arrays.on_host(arrays.column_dots(make(A), make(B))), np.sum(A * B, axis=0))


def test_r_factor(make, A):
    R = arrays.on_host(arrays.r_factor(make(A)))
    assert R.shape == (3, 3)
    np.testing.assert_array_equal(np.tril(R, -1), 0)
    np.testing.assert_allclose(R.T @ R, A.T @ A)


RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(3, 5000))  # more than one thread takes at once


def test_wide_products_are_products():
    A = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(arrays.times_wide(A, WIDE), A @ WIDE)
    np.testing.assert_allclose(arrays.wide_dots(WIDE, WIDE), WIDE @ WIDE.T)


def test_the_covariance_of_many_rows_is_that_of_the_model():
    X = np.linspace(0.0, 10.0, 5000)[:, None]
    gp = GP(EQ(2.0), 0.3, (-1.0, 1.0), inducing=X[::1000])
    smoother = smoother_for(gp, Inputs(X, gp.noise, None), X[:3])
    K = gp.kernel(X, X[::1000])
    expected = WIDE @ K @ np.linalg.solve(gp.kernel(X[::1000]), K.T) + 0.3 * WIDE
    np.testing.assert_allclose(smoother.times_covariance(WIDE), expected, atol=1e-6)
