"""Draws of the prior: functions with the kernel's covariance, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import kernels
from cloakgp.kernels import (
    EQ,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    base,
)

ONE = np.array([[0.0], [0.3], [1.0], [2.5], [-1.7]])
TWO = np.array([[0.0, 0.0], [0.4, -0.2], [1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]])
CASES = {
    "EQ": (EQ(0.8, variance=2.0), ONE),
    "Matern12": (Matern12(1.3, variance=0.5), ONE),
    "Matern32": (Matern32(0.9), ONE),
    "Matern52": (Matern52(2.0, variance=3.0), ONE),
    "RationalQuadratic": (RationalQuadratic(0.7, alpha=0.6, variance=1.5), ONE),
    "Constant": (Constant(2.5), ONE),
    "sum": (EQ(0.5) + Matern12(3.0, variance=0.4) + Constant(0.3), ONE),
    "product": (EQ(1.0, variance=2.0) * Matern32(2.0, variance=0.5), ONE),
    "product with a constant": (3.0 * EQ(1.0), ONE),
    "sum of products": (EQ(1.0) * EQ(2.0) + 0.5 * Matern52(1.0), ONE),
    "two columns": (Matern12(1.0), TWO),
    "ARD": (EQ((0.5, 2.0), variance=1.2), TWO),
    "ARD Matern": (Matern32((0.7, 3.0)), TWO),
    "one column of two": (EQ(0.6, active_dims=[1]), TWO),
    "a kernel per column": (EQ(0.6, active_dims=[1]) * Matern12(1.0, active_dims=[0]), TWO),
    "columns in another order": (EQ((0.5, 2.0), active_dims=[1, 0]), TWO),
}


@pytest.mark.parametrize("case", CASES)
def test_the_covariance_is_the_kernels(case, monkeypatch):
    """Over seeds the covariance is the kernel's exactly, with however few waves."""
    kernel, X = CASES[case]
    monkeypatch.setattr(base, "_WAVES", 64)
    n = 2000
    values = np.array([kernel.draw(X.shape[1], seed)(X) for seed in range(n)])
    size = kernel.diag(X)[0]
    # The fourth moment of 64 waves is a little above a normal's: 5 standard errors, with room for it.
    np.testing.assert_allclose(values.T @ values / n, kernel(X), atol=size * 5.5 * np.sqrt(2 / n))
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=5 * np.sqrt(size / n))


def test_the_same_seed_gives_the_same_function():
    kernel = EQ(1.0) + Matern12(2.0) * Constant(0.5)
    one, two, other = (kernel.draw(1, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one(ONE), two(ONE))
    assert (one(ONE) != other(ONE)).all()


def test_a_function_has_one_value_at_each_input():
    draw = Matern32((0.7, 3.0)).draw(2, 1)
    whole = draw(TWO)
    np.testing.assert_allclose([draw(x[None])[0] for x in TWO], whole, rtol=0, atol=1e-10)
    np.testing.assert_allclose(draw(TWO[::-1])[::-1], whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Periodic(1.0, period=2.0),
        kernels.Polynomial(degree=2),
        kernels.as_kernel(lambda X, Z: np.exp(-np.abs(X - Z.T))),
        EQ(1.0) + Linear(),
        EQ(1.0) * Linear(),
    ],
    ids=repr,
)
def test_other_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match=r"prior_noise: draws of the prior are not.*leave prior_noise out"):
        kernel.draw(1, 0)


@pytest.mark.parametrize("case", [case for case in CASES if not isinstance(CASES[case][0], kernels.Sum)])
def test_the_waves_have_the_kernels_spectrum(case):
    """Far sharper than draws can be: the mean of cos(w·(x - z)) is the kernel."""
    kernel, X = CASES[case]
    variance, waves = kernel._waves(200_000, X.shape[1], np.random.default_rng(0))
    gaps = X[:, None] - X[None]
    got = variance * np.array([[np.cos(waves @ gap).mean() for gap in row] for row in gaps])
    np.testing.assert_allclose(got, kernel(X), atol=variance * 5 / np.sqrt(200_000))
