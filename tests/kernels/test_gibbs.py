"""The kernel whose lengthscale differs from place to place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.kernels import EQ, Gibbs, from_spec

KNOTS = ([0.0, 20.0, 80.0], [5.0, 10.0, 40.0])
KERNEL = Gibbs(KNOTS, variance=3.0)


def lengthscale(x):
    """log-linear between the knots, and as at the ends beyond them."""
    return np.exp(np.interp(x, KNOTS[0], np.log(KNOTS[1])))


def test_it_is_the_formula_in_one_column():
    x, z = np.linspace(-30, 120, 31), np.linspace(-10, 90, 7)
    a, b = lengthscale(x)[:, None], lengthscale(z)[None, :]
    s = a**2 + b**2
    expected = 3.0 * np.sqrt(2 * a * b / s) * np.exp(-((x[:, None] - z) ** 2) / s)
    np.testing.assert_allclose(KERNEL(x, z), expected, rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_one_lengthscale_everywhere_is_eq(columns):
    X = np.random.default_rng(columns).normal(size=(20, columns))
    knots = (X[:4], [0.7] * 4)
    kernel = Gibbs(knots, variance=3.0)
    np.testing.assert_allclose(kernel(X, X[:5]), EQ(0.7, variance=3.0)(X, X[:5]), rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 3])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.0, 4.0))
def test_it_is_positive_semi_definite_however_the_lengthscale_jumps(columns, seed, spread):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(25, columns))
    knots = (rng.uniform(-3, 3, size=(6, columns)), np.exp(spread * rng.normal(size=6)))
    K = Gibbs(knots)(X)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * 25
    assert K.min() >= 0
    assert K.max() <= 1


def test_knots_are_kept_at_knots_between_and_beyond():
    kernel = Gibbs(([(0.0, 0.0), (1.0, 0.0), (0.0, 2.0)], [1.0, 4.0, 9.0]))
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.5, 0.0], [-9.0, -9.0], [1e300, 0.0]])
    at = kernel._lengthscales(X)
    np.testing.assert_allclose(at[:3], [1.0, 4.0, 9.0], rtol=1e-12)
    assert 2.0 < at[3] < 9.0
    np.testing.assert_allclose(at[4:], [1.0, 4.0], rtol=1e-12)

    turned = ([80.0, 0.0, 20.0], [40.0, 5.0, 10.0])  # in one column their order does not matter
    assert Gibbs(turned, variance=3.0) == KERNEL
    assert Gibbs((np.array(turned[0])[:, None], np.array(turned[1])), variance=3.0) == KERNEL


def test_lengthscales_of_any_size_neither_warn_nor_give_nan():
    X = np.array([[0.0], [1.0], [1e300], [-1.7e308], [1.7e308]])
    for scales in ([1e-300, 1e-300], [1e300, 1e300], [1e-300, 1e300]):
        kernel = Gibbs(([0.0, 1.0], scales))
        K = kernel(X)
        assert np.isfinite(K).all()
        np.testing.assert_array_equal(np.diagonal(K), np.ones(5))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (10.0, "must be knots; got 10.0.* use EQ"),
        (None, "must be knots; got None"),
        (EQ, "must be knots"),
        (EQ(1.0), "must be knots"),
        (lambda X: 1.0, "must be knots"),
        (([0, 1], [1, 2], [3, 4]), "must be knots"),
        (([0, 1], [1, 0]), "must be above 0 everywhere"),
        (([0, 1], [1, math.inf]), "must be finite"),
        (([0, math.nan], [1, 2]), "positions must be finite"),
        (([0, 1e200], [1, 2]), "positions must be at most 1e"),
        (([0, 1], [1, 2, 3]), "as many positions as lengthscales; got 2 and 3"),
        (([0, 0], [1, 2]), "positions must differ"),
        (([], []), "positions must be a matrix"),
        (("ab", [1, 2]), "positions must hold real numbers"),
        ((range(1001), np.ones(1001)), "must have at most 1000 knots; got 1001"),
        ([1.0, 2.0], "positions"),
        ([[0, 1], [1, "2"]], "must hold real numbers"),
        ([[0], [[[[1]]]]], "must be one-dimensional"),
    ],
)
def test_wrong_lengthscales_are_named_in_files_too(wrong, match):
    with pytest.raises((ValueError, TypeError), match=rf"lengthscale.*{match}"):
        Gibbs(wrong)
    with pytest.raises(ValueError, match="lengthscale"):
        from_spec(KERNEL.to_spec() | {"lengthscale": wrong})


def test_columns_are_checked():
    with pytest.raises(ValueError, match=r"knots with one coordinate per column of X, which has 2; got 1"):
        KERNEL(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"knots with one coordinate per column in active_dims, 2; got 1"):
        Gibbs(KNOTS, active_dims=[0, 1])
    with pytest.raises(ValueError, match=r"active_dims must name columns of X, which has 1; got \(3,\)"):
        Gibbs(KNOTS, active_dims=[3])([[1.0]])
