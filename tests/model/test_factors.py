"""Products with a matrix that begins with a triangle: what the whole matrix gives."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.kernels import EQ, Matern12
from cloakgp.model.factors import Factor, Root, turn_to_triangle
from cloakgp.model.inducing import Features, Gram, triangular_whitening

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("shape", [(5, 5), (5, 8), (8, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("cut", [np.tril, np.triu, np.array], ids=["lower", "upper", "full"])
def test_products_are_those_of_the_whole_matrix(cut, shape):
    q, m = shape
    A = RNG.normal(size=shape)
    A[:, :q] = cut(A[:, :q])
    K = RNG.normal(size=(20, m))
    np.testing.assert_allclose(Factor(A).times(K), A @ K.T, atol=1e-13)
    np.testing.assert_allclose(Factor(A).times(K[::2]), A @ K[::2].T, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 5, 60, 200])
def test_sums_of_features_are_the_same_from_kernel_values(m):
    """Also where inducing inputs are so close that sums of kernel values alone have lost what counts."""
    Z, X = RNG.uniform(0, 10, size=(m, 2)), RNG.uniform(0, 10, size=(9000, 2))
    features = Features(EQ(1.5), Z, triangular_whitening(EQ(1.5), Z))
    phi, K, weights = features.at(X), features.kernel_rows(X), RNG.uniform(1, 3, size=len(X))
    wanted = (phi * weights**2) @ phi.T
    A = features.factor.A
    root, gram = Root(A), Gram(len(A))
    for rows in (slice(0, 500), slice(500, 8500), slice(8500, None)):
        gram.add(root.begin(K[rows]), weights[rows])
    np.testing.assert_allclose(root.end(gram.total), wanted, atol=1e-9 * np.abs(wanted).max())
    np.testing.assert_array_equal(K, features.kernel_rows(X))  # what a kernel returned is its own
    if m == 200:
        lost = A @ ((K.T * weights**2) @ K) @ A.T
        assert np.abs(lost - wanted).max() > 1e-8 * np.abs(wanted).max()


def test_sums_of_features_are_exact_where_the_first_inducing_inputs_have_neighbours():
    """Three stand apart, and nine next to these: one block of a root must not have both kinds."""
    kernel, Z = Matern12(1.0), np.add.outer(np.arange(4) * 1e-9, np.linspace(0, 2, 3)).reshape(-1, 1)
    features, X = Features(kernel, Z, triangular_whitening(kernel, Z)), RNG.uniform(0, 2, size=(4000, 1))
    root, gram, phi = Root(features.factor.A), Gram(12), features.at(X)
    gram.add(root.begin(features.kernel_rows(X)), 2.0)
    np.testing.assert_allclose(root.end(gram.total), 4 * phi @ phi.T, atol=4e-11 * len(X))


def test_what_is_turned_begins_with_a_triangle_and_keeps_every_length():
    A = RNG.normal(size=(4, 7))
    U, turned = turn_to_triangle(A)
    np.testing.assert_allclose(U @ U.T, np.eye(4), atol=1e-14)
    np.testing.assert_allclose(turned, U @ A, atol=1e-13)
    assert not np.tril(turned[:, :4], -1).any()


def test_inducing_inputs_that_add_nothing_are_not_asked_for():
    Z = RNG.uniform(0, 10, size=(6, 2))
    doubled = np.vstack([Z, Z + 1e-9])
    asked = []

    def kernel(X, Y):
        asked.append(len(Y))
        return np.asarray(EQ(2.0)(X, Y))

    features = Features(kernel, doubled, triangular_whitening(kernel, doubled))
    assert len(features.W) == len(features.used) == 6
    phi = features.at(Z)
    assert asked[-1] == 6
    np.testing.assert_allclose(phi.T @ phi, EQ(2.0)(Z), atol=1e-6)
