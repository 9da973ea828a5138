"""scikit-learn's kernels become ours: the same numbers, and files can hold them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from cloakgp.kernels import (
    EQ,
    Constant,
    Custom,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
    as_kernel,
)

A = EQ(1.3, variance=0.5)
SCALES = [0.7, 2.5]
# Theirs, ours, and how many columns they read.
SAME = {
    "RBF": (sk.RBF(0.7), EQ(0.7), 2),
    "RBF by column": (sk.RBF(SCALES), EQ(SCALES), 2),
    "RBF with a list of one": (sk.RBF([0.7]), EQ(0.7), 2),
    "Matern 1/2": (sk.Matern(SCALES, nu=0.5), Matern12(SCALES), 2),
    "Matern 3/2": (sk.Matern(0.7, nu=1.5), Matern32(0.7), 2),
    "Matern 5/2": (sk.Matern(SCALES, nu=2.5), Matern52(SCALES), 2),
    "Matern infinity": (sk.Matern(SCALES, nu=np.inf), EQ(SCALES), 2),
    "RationalQuadratic": (sk.RationalQuadratic(0.7, alpha=1.4), RationalQuadratic(0.7, alpha=1.4), 2),
    "ConstantKernel": (sk.ConstantKernel(3.0), Constant(3.0), 2),
    "DotProduct": (sk.DotProduct(0.7), Linear() + Constant(0.7**2), 2),
    "DotProduct through 0": (sk.DotProduct(0.0), Linear(), 2),
    "ExpSineSquared": (sk.ExpSineSquared(0.7, periodicity=1.9), Periodic([0.7], period=1.9), 1),
    "scaled": (3.0 * sk.RBF(0.7), Product((Constant(3.0), EQ(0.7))), 2),
    "sum": (
        sk.RBF(0.7) + sk.Matern(2.0) * sk.DotProduct(0.0),
        Sum((EQ(0.7), Matern32(2.0) * Linear())),
        2,
    ),
    "DotProduct cubed": (sk.DotProduct(0.7) ** 3, Polynomial(degree=3, offset=0.7**2), 2),
    "squared sum": ((sk.RBF(0.7) + 2.0) ** 2, Product([EQ(0.7) + Constant(2.0)] * 2), 2),
    "to the power of one": (sk.RBF(0.7) ** 1, EQ(0.7), 2),
}
every = pytest.mark.parametrize(("theirs", "ours", "columns"), SAME.values(), ids=SAME)


@every
def test_they_are_the_same_function(theirs, ours, columns):
    found = as_kernel(theirs)
    assert found == ours  # which a file can hold
    rng = np.random.default_rng(1)
    X, Z = rng.normal(scale=2.0, size=(30, columns)), rng.normal(scale=2.0, size=(7, columns))
    np.testing.assert_allclose(found(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found(X), theirs(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.diag(X), theirs.diag(X), rtol=1e-12)


@pytest.mark.parametrize(
    "theirs",
    [sk.Matern(nu=0.7), sk.RBF() ** 0.5, sk.RBF() ** 11, sk.PairwiseKernel(), type("RBF", (sk.RBF,), {})()],
    ids=["Matern", "root", "high power", "pairwise", "subclass of the same name"],
)
def test_others_stay_functions(theirs):
    assert as_kernel(theirs) == Custom(theirs)
    kernel = as_kernel(theirs + sk.RBF(0.7))  # and only they do
    assert kernel == Sum((Custom(theirs), EQ(0.7)))


@pytest.mark.parametrize(
    "theirs", [sk.WhiteKernel(0.3), sk.RBF() + sk.WhiteKernel(0.3), (sk.RBF() + sk.WhiteKernel()) ** 0.5]
)
def test_white_noise_is_refused_with_the_remedy(theirs):
    with pytest.raises(ValueError, match=r"must not hold .*WhiteKernel.* add its noise_level to noise="):
        as_kernel(theirs)


def test_the_sine_of_a_distance_in_two_columns_is_refused_as_it_is_not_a_kernel():
    X = np.random.default_rng(0).uniform(0, 4, size=(40, 2))
    theirs = sk.ExpSineSquared(0.7, periodicity=1.9)
    assert np.linalg.eigvalsh(theirs(X))[0] < -0.1
    with pytest.raises(ValueError, match="lengthscale must have one entry per column of X, which has 2"):
        as_kernel(theirs)(X)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: sk.RBF(2.0) + A, Sum((EQ(2.0), A))),
        (lambda: sk.RBF(2.0) * A, Product((EQ(2.0), A))),
        (lambda: sk.RBF(2.0) * (sk.RBF(3.0) + A), EQ(2.0) * (EQ(3.0) + A)),
        (lambda: (sk.RBF(2.0) + A) ** 2, (EQ(2.0) + A) * (EQ(2.0) + A)),
        (lambda: A + sk.RBF(2.0), A + EQ(2.0)),
    ],
)
def test_ours_and_theirs_add_and_multiply_in_either_order(build, expected):
    assert as_kernel(build()) == expected


def test_ours_in_a_power_of_theirs_that_is_no_kernel_of_ours_is_refused():
    with pytest.raises(TypeError, match=r"scikit-learn sum or product .* cloakgp kernel first"):
        as_kernel((sk.RBF() + A) ** 0.5)
