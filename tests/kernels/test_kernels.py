"""Kernels: their algebra, functions and scikit-learn kernels, stored descriptions, other array types."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics.pairwise import rbf_kernel

from cloakgp import kernels
from cloakgp.kernels import (
    EQ,
    Category,
    Constant,
    Custom,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    Sum,
    as_kernel,
    from_spec,
)

A, B, C = EQ(1.3, variance=0.5), Matern32(0.8), Linear(2.0, variance=0.1)


def minimum_kernel(X, Z):
    """Brownian motion's kernel, which has no parameters and is not one of ours."""
    return np.minimum(X[:, :1], Z[:, :1].T)


@pytest.fixture
def X():
    return np.random.default_rng(1).uniform(0.1, 3.0, size=(70, 2))


@pytest.fixture
def Z():
    return np.random.default_rng(2).uniform(0.1, 3.0, size=(4, 2))


# Values


def test_nearby_points_far_from_the_origin_keep_their_distance():
    X = np.array([[1e8], [1e8 + 1.0]])  # |x|² + |z|² − 2 x·z would give 0 or 2 here
    assert EQ(1.0)(X)[0, 1] == math.exp(-0.5)


def test_periodic_is_exact_after_many_periods():
    X = np.array([[0.0], [2.0**40], [2.0**40 + 0.25]])
    K = Periodic(1.0, period=1.0)(X)
    assert K[0, 1] == 1.0
    np.testing.assert_allclose(K[0, 2], math.exp(-1.0), rtol=1e-15)


@pytest.mark.parametrize("kernel", [Matern12(1.0), Matern32(1.0), Matern52(1.0)])
def test_matern_never_exceeds_its_variance_by_rounding(kernel):
    x = np.geomspace(1e-12, 1.0, 20_000)[:, None]
    assert kernel(x, [[0.0]]).max() <= 1.0


def test_levels_are_equal_or_not_whatever_their_numbers():
    k = Category(0.25, variance=4.0, active_dims=[1])
    X = np.array([[0.0, 0.0], [9.0, 1.0], [5.0, 0.0], [5.0, 17.0]])  # 17: a level that nobody named
    np.testing.assert_array_equal(k(X), [[4, 1, 4, 1], [1, 4, 1, 1], [4, 1, 4, 1], [1, 1, 1, 4]])
    for correlation in (0.0, 0.5, 1.0):  # is a covariance
        K = Category(correlation)(np.repeat(np.arange(6.0), 2)[:, None])
        assert np.linalg.eigvalsh(K)[0] > -1e-12


def test_diag_does_not_build_the_matrix(X):
    many = np.tile(X, (60, 1))  # 4,200 rows: the matrix would take 141 MB
    for kernel in (A + B * C, as_kernel(minimum_kernel), as_kernel(sk.Matern(nu=0.7)) * A):
        tracemalloc.start()
        kernel.diag(many)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6


# Parameters


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: Periodic(1.0), "period"),  # has no default
        (lambda: EQ(1.0, 2.0), "positional"),
        (lambda: Constant("1"), "variance must be a number"),
        (lambda: Sum([EQ(1.0)]), "kernels must hold at least two kernels; got 1"),
        (lambda: Matern(2.0, nu=2), r"nu must be 0.5, 1.5 or 2.5; got 2"),
        (lambda: Matern(2.0, nu="5/2"), "nu must be a number"),
        (lambda: Sum([A] * 1000) + B, "kernels must be at most 1000 in all; got 1001"),
        (lambda: 0.0 * A, "scale must be finite and above 0"),
        (lambda: A * -1.0, "scale must be finite and above 0"),
        (lambda: np.float64(-2.0) * A, "scale must be finite and above 0"),
        (lambda: A * math.nan, "scale must be finite and above 0"),
    ],
)
def test_bad_parameters_are_refused_at_once(build, match):
    with pytest.raises((ValueError, TypeError), match=match):
        build()


def test_parameters_are_plain_and_cannot_be_edited_from_outside():
    scales, dims = np.array([1.0, 2.0]), [0, 3]
    kernel = EQ(scales, variance=np.float32(2.0), active_dims=dims)
    scales[0], dims[0] = 9.0, 9
    assert kernel.lengthscale == (1.0, 2.0)
    assert kernel.active_dims == (0, 3)
    assert type(kernel.variance) is float
    assert type(EQ(1).lengthscale) is float
    assert type(EQ(np.array(2.0)).lengthscale) is float
    assert all(type(d) is int for d in EQ(1.0, active_dims=np.arange(2)).active_dims)
    assert EQ(1) == EQ(1.0) != EQ([1.0])


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (np.zeros((2, 2, 2)), ValueError, "X must be a matrix"),
        (np.zeros((0, 2)), ValueError, "X must be a matrix with at least one row"),
        ([[0.0, math.nan]], ValueError, r"X must be finite; there is a NaN or infinity at index \(0, 1\)"),
        ([["a"]], TypeError, "X must hold real numbers"),
    ],
)
def test_bad_inputs_are_named(X, error, match):
    for use in (A, A.diag):
        with pytest.raises(error, match=match):
            use(X)
    with pytest.raises(error, match=match.replace("X", "Z")):
        A([[0.0, 0.0]], X)


# Algebra


def test_nested_sums_and_products_are_flat():
    assert (A + B) + C == A + (B + C) == Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == Product((A, B, C))
    assert A + B != B + A
    assert A + B != A * B
    assert (A + B).kernels == (A, B)


@pytest.mark.parametrize("other", [1.0, np.float64(1.0), True, "EQ", None, np.ones((2, 2)), EQ])
def test_only_kernels_and_functions_add_and_numbers_multiply_too(other):
    ways = [as_kernel, lambda other: A + other, lambda other: other + A]
    if type(other) not in (float, np.float64):
        ways += [lambda other: A * other, lambda other: other * A]
    for way in ways:
        with pytest.raises(TypeError, match="kernel must be a cloakgp kernel or a function"):
            way(other)


def test_range():
    assert EQ(1.0, variance=3.0).range == (0.0, 3.0)
    assert Constant(2.0).range == (2.0, 2.0)
    assert (EQ(1.0, variance=3.0) + Constant(2.0)).range == (2.0, 5.0)
    assert (EQ(1.0, variance=3.0) * (Matern12(1.0) + Constant(2.0))).range == (0.0, 9.0)
    assert ((EQ(1.0) + Constant(0.5)) * Constant(4.0)).range == (2.0, 6.0)
    unknown = [C, Polynomial(degree=2), as_kernel(minimum_kernel)]
    for kernel in unknown:
        assert kernel.range is None
        assert (A + kernel).range is None
        assert (A * kernel).range is None


def test_values_that_overflow_are_an_error_not_an_infinity():
    huge = EQ(1.0, variance=1e200) * EQ(1.0, variance=1e200)
    for use in (huge, huge.diag, lambda X: (Linear() * A)([[1e200], [-1e200]])):  # ∞ · 0
        with pytest.raises(ValueError, match="kernel must be finite on these inputs"):
            use([[0.0]])


def test_nesting_has_a_limit():
    kernel = A
    for _ in range(kernels.MAX_DEPTH // 2):
        kernel = (kernel + B) * C
    assert from_spec(kernel.to_spec()) == kernel
    with pytest.raises(ValueError, match="nested at most 32 deep"):
        kernel + B


# Functions and scikit-learn kernels


def test_functions_without_diag_are_called_on_small_blocks(X):
    seen = []

    def function(X, Z):
        seen.append((len(X), len(Z)))
        return minimum_kernel(X, Z)

    np.testing.assert_array_equal(as_kernel(function).diag(X), X[:, 0])
    assert seen == [(32, 32), (32, 32), (6, 6)]


def test_a_function_with_diag_is_asked_for_it(X):
    class Counted:
        def __call__(self, X, Z):
            raise AssertionError("the matrix is not needed")

        def diag(self, X):
            return X[:, 1]

    np.testing.assert_array_equal(as_kernel(Counted()).diag(X), X[:, 1])
    np.testing.assert_allclose((A * Counted()).diag(X), 0.5 * X[:, 1])


def test_as_kernel():
    assert as_kernel(A) is A
    kernel = as_kernel(minimum_kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel  # noqa: S301
    with pytest.raises(AttributeError):
        kernel.function = rbf_kernel
    assert as_kernel(minimum_kernel) == Custom(minimum_kernel)
    assert as_kernel(minimum_kernel) != as_kernel(rbf_kernel)
    assert hash(as_kernel(minimum_kernel)) == hash(Custom(minimum_kernel))
    assert len(as_kernel(partial(rbf_kernel, gamma="x" * 10_000)).name) == 200
    np.testing.assert_array_equal(Custom(A)([[1.0]]), A([[1.0]]))  # ours, called as ours
    assert Custom(A).function is A


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda X, Z: np.zeros((len(X), 3)), ValueError, r"kernel must return shape \(70, 4\); .* \(70, 3\)"),
        (lambda X, Z: 1.0, ValueError, r"kernel must return shape \(70, 4\); .* \(\)"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), ValueError, "kernel must be finite"),
        (lambda X, Z: np.exp(1e6 * X[:, :1]) * Z[:, 0], ValueError, "kernel must be finite"),
        (lambda X, Z: None, TypeError, "must return real numbers"),
        (lambda X, Z: np.full((len(X), len(Z)), 1j), TypeError, "must return real numbers"),
        (lambda X, Z: np.full((len(X), len(Z)), "a"), TypeError, "must return real numbers"),
    ],
)
def test_what_functions_return_is_checked(function, error, match, X, Z):
    with pytest.raises(error, match=match):
        as_kernel(function)(X, Z)
    with pytest.raises(error, match=match):
        (A * function)(X, Z)


@pytest.mark.parametrize(
    "other",
    [
        sk.Matern([0.5, 1.5], nu=0.7),
        sk.DotProduct(0.4) ** 2.5,
        sk.PairwiseKernel(gamma=0.5, metric="laplacian"),
        partial(rbf_kernel, gamma=0.3),
        minimum_kernel,
    ],
    ids=["Matern", "DotProduct", "Pairwise", "partial", "function"],
)
def test_kernels_that_are_not_ours_join_in(other, X, Z):
    assert isinstance(as_kernel(other), Custom)
    for kernel in (as_kernel(other), A + other, A * other, as_kernel(other) + A):
        np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X)), rtol=1e-12)
    np.testing.assert_array_equal(as_kernel(other)(X, Z), other(X, Z))
    np.testing.assert_array_equal((A + other)(X, Z), A(X, Z) + other(X, Z))
    np.testing.assert_array_equal((A * other)(X, Z), A(X, Z) * other(X, Z))
    assert as_kernel(other) == as_kernel(other)
    assert len({as_kernel(other), as_kernel(other)}) == 1


def test_scikit_learn_kernels_are_copied(X):
    other = sk.Matern(0.7, nu=0.7)
    kernel = as_kernel(other)
    before = kernel(X)
    other.set_params(length_scale=2.0)
    np.testing.assert_array_equal(kernel(X), before)
    assert kernel != as_kernel(other)


# Parameters by name, as scikit-learn has them


def test_get_params():
    assert clone(A) is A  # as it cannot be changed
    assert EQ(2.0).get_params() == {"lengthscale": 2.0, "variance": 1.0, "active_dims": None}
    kernel = A * (B + Constant(4.0))
    assert kernel.get_params(deep=False) == {"k1": A, "k2": B + Constant(4.0)}
    deep = kernel.get_params()
    assert (deep["k1__variance"], deep["k2__k1"], deep["k2__k2__variance"]) == (0.5, B, 4.0)
    assert kernels.Integral(A).get_params()["kernel__lengthscale"] == 1.3
    assert as_kernel(minimum_kernel).get_params() == {"function": minimum_kernel}


def test_with_params():
    kernel = A * (B + Constant(4.0))
    changed = kernel.with_params(k1__lengthscale=[1.0, 2.0], k1__active_dims=[0, 1], k2__k2__variance=5.0)
    assert changed == EQ([1.0, 2.0], variance=0.5, active_dims=[0, 1]) * (B + Constant(5.0))
    assert kernel == A * (B + Constant(4.0))
    assert kernel.with_params(k2=C, k2__variance=7.0) == A * Linear(2.0, variance=7.0)
    assert kernel.with_params(**kernel.get_params(deep=False)) == kernel
    assert Polynomial(degree=2).with_params(degree=3) == Polynomial(degree=3)
    assert as_kernel(minimum_kernel).with_params(function=rbf_kernel) == Custom(rbf_kernel)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"k1__lengthscal": 1.0}, "lengthscal is not a parameter of EQ. It has lengthscale, variance, act"),
        ({"k3": A}, "k3 is not a parameter of Sum. It has k1, k2, k1__lengthscale"),
        ({"k1__variance__x": 1.0}, "variance__x is not a parameter of EQ"),
        ({"k1__lengthscale": -1.0}, "lengthscale must be finite and above 0"),
    ],
)
def test_parameters_that_are_not_there_are_named(params, match):
    with pytest.raises(ValueError, match=match):
        (A + B).with_params(**params)


@pytest.mark.torch
def test_torch_inputs_are_checked(X):
    import torch

    tX = torch.asarray(X)
    with pytest.raises(TypeError, match=r"X must hold floating-point numbers; got dtype torch\.int64"):
        A(torch.ones((2, 2), dtype=torch.int64))
    with pytest.raises(
        ValueError, match=r"X must be a matrix with at least one column; got shape \(2, 2, 2\)"
    ):
        A(torch.ones((2, 2, 2)))
    with pytest.raises(
        ValueError, match=r"Z must be a matrix with 2 column\(s\), as X has; got shape \(3, 1\)"
    ):
        A(tX, torch.ones((3, 1)))
    with pytest.raises(ValueError, match="Z must be finite"):
        A(tX, torch.full((3, 2), torch.nan))
    with pytest.raises(TypeError, match="Multiple namespaces"):
        A(tX, X)
    assert A(tX[:, 0]).shape == (70, 70)
