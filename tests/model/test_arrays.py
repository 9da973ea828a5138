"""Arrays of numpy and of torch, by the same names."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.model import arrays

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


def test_read_only_values_can_be_taken_along(make, A):
    A.setflags(write=False)
    np.testing.assert_array_equal(arrays.on_host(arrays.like(make(np.ones(2)), A)), A)


def test_column_dots(make, A):
    B = A[::-1].copy()
    np.testing.assert_allclose(arrays.on_host(arrays.column_dots(make(A), make(B))), np.sum(A * B, axis=0))


def test_r_factor(make, A):
    R = arrays.on_host(arrays.r_factor(make(A)))
    assert R.shape == (3, 3)
    np.testing.assert_array_equal(np.tril(R, -1), 0)
    np.testing.assert_allclose(R.T @ R, A.T @ A)
