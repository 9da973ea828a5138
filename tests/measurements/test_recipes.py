"""A measurement that is a recipe: what it makes of a row, and what a pass over all rows finds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp import GP
from cloakgp.kernels import EQ, Linear, Matern32
from cloakgp.measurements.recipes import (
    FACTOR_BITS,
    MARGIN,
    Recipe,
    bias,
    declared_sensitivity,
    digest_of,
    recipe,
    scan,
    summed,
)
from cloakgp.model.inducing import APPROXIMATIONS, Features, SparseGP, information, triangular_whitening
from cloakgp.rows import chunks
from cloakgp.rows.merging import Groups, Inputs, distinct

RNG = np.random.default_rng(6)
X = RNG.uniform(0, 10, size=(300, 2))
Z = RNG.uniform(0, 10, size=(7, 2))
X_STAR = RNG.uniform(0, 10, size=(4, 2))
PER_ROW = np.geomspace(0.1, 4.0, 300)
KERNEL = EQ(3.0, variance=1.5)
R = RNG.normal(size=(5, 7))

every_approximation = pytest.mark.parametrize("approximation", APPROXIMATIONS)
every_noise = pytest.mark.parametrize("noise", [0.4, PER_ROW], ids=["one noise", "noise per row"])


def made(approximation="dtc", matrix_bits=20, R=R, kernel=KERNEL) -> Recipe:
    return recipe(Features(kernel, Z), approximation, R, matrix_bits)


def by_hand(made, approximation, noise):
    """Each column in 30 digits from the kernel's values, and how far it is from a whole number."""
    K = KERNEL(X, Z)
    rest = np.zeros(len(X))
    if approximation == "fitc":
        rest = np.diag(KERNEL(X)) - np.sum(K.T * np.linalg.solve(KERNEL(Z), K.T), axis=0)
    variances = np.broadcast_to(noise, len(X)) + rest
    unit = Fraction(2) ** (made.matrix_bits - made.factor_bits)
    return [
        [
            unit * sum(int(r) * Fraction(float(k)) for r, k in zip(row, values, strict=True)) / Fraction(D)
            for row in made.factors
        ]
        for values, D in zip(K, variances.tolist(), strict=True)
    ]


# The recipe


@every_noise
@every_approximation
def test_columns_are_the_recipe_followed_by_hand(approximation, noise):
    recipe = made(approximation)
    columns = recipe.columns(X, noise)
    assert columns.dtype == np.int64
    away = [
        abs(int(got) - wanted)
        for column, exact in zip(columns.T, by_hand(recipe, approximation, noise), strict=True)
        for got, wanted in zip(column, exact, strict=True)
    ]
    assert max(away) <= Fraction(1, 2) + Fraction(1, 1000)
    assert max(away) > Fraction(2, 5)  # rounded to whole numbers, and to no finer


def test_factors_are_whole_numbers_that_floats_hold():
    for scale in (1e-30, 1e-3, 1.0, 1e30):
        recipe = made(R=R * scale)
        assert recipe.factors.dtype == np.int64
        assert 2 ** (FACTOR_BITS - 1) <= np.abs(recipe.factors).max() <= 2**FACTOR_BITS
        near = recipe.factors.astype(float) * 2.0**-recipe.factor_bits
        np.testing.assert_allclose(near, R * scale, rtol=0, atol=scale * 1e-14)


def test_factors_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        made().factors[0, 0] = 1


def test_the_recipe_in_terms_of_features_is_the_same():
    recipe = made(kernel=Matern32(2.0))
    np.testing.assert_allclose(recipe.reduced @ recipe.features.at(X), R @ Matern32(2.0)(Z, X))
    other = Features(recipe.features.kernel, Z, -recipe.features.W[::-1])
    np.testing.assert_allclose(recipe.reduced_to(other) @ other.at(X), recipe.reduced @ recipe.features.at(X))


def test_features_of_other_inducing_inputs_say_the_same():
    """Another machine may find that others of two nearly equal inputs add nothing."""
    twice = np.vstack([Z, Z + 1e-7])
    one = Features(KERNEL, twice, triangular_whitening(KERNEL, twice))
    other = Features(KERNEL, twice, np.roll(one.W, len(Z), axis=1))
    assert not set(one.used) & set(other.used)
    made = recipe(one, "dtc", RNG.normal(size=(5, len(one.W))) @ one.W, 20)
    np.testing.assert_allclose(made.reduced_to(other) @ other.at(X), made.reduced @ one.at(X), atol=1e-4)


@given(st.integers(0, 2**80), st.integers(0, 30))
def test_the_declared_sensitivity_is_the_root_rounded_up(squared, bits):
    declared = declared_sensitivity(squared, bits)
    assert declared**2 >= squared * 4**bits
    assert declared == 0 or (declared - 1) ** 2 < squared * 4**bits


# A pass over the columns


def expected(recipe, inputs, margin):
    """What a pass should find, row by row in Python's integers."""
    columns = recipe.columns(np.asarray(inputs.X), inputs.noise).T.tolist()
    counts = inputs.counts.astype(int).tolist()
    longest = max(sum((abs(entry) + margin) ** 2 for entry in column) for column in columns)
    column_sum = [sum(n * c[i] for n, c in zip(counts, columns, strict=True)) for i in range(len(R))]
    absolute_sums = [sum(n * abs(c[i]) for n, c in zip(counts, columns, strict=True)) for i in range(len(R))]
    return longest, column_sum, absolute_sums


@every_noise
@every_approximation
@pytest.mark.parametrize("matrix_bits", [1, 8, 28, 40])
@pytest.mark.parametrize("margin", [0, MARGIN])
def test_a_pass_finds_the_longest_column_and_the_sums_exactly(
    monkeypatch, margin, matrix_bits, approximation, noise
):
    recipe = made(approximation, matrix_bits)
    monkeypatch.setattr(chunks, "CHUNK", 64)
    monkeypatch.setattr(chunks, "STEP", 10)
    seen = scan(recipe, distinct(X, noise), margin)
    longest, column_sum, absolute_sums = expected(recipe, distinct(X, noise), margin)
    assert (seen.longest, seen.column_sum.tolist(), list(seen.absolute_sums)) == (
        longest,
        column_sum,
        absolute_sums,
    )


def test_equal_rows_are_one_column_and_as_many_in_the_sums(monkeypatch):
    data = X[RNG.integers(0, 40, size=500)]
    monkeypatch.setattr(chunks, "CHUNK", 16)
    recipe, inputs = made(), distinct(data, 0.4)
    assert len(inputs) == 40
    seen, single = scan(recipe, inputs), scan(recipe, Inputs(data, 0.4, None))
    assert seen.longest == single.longest
    assert seen.column_sum.tolist() == single.column_sum.tolist() == expected(recipe, inputs, 0)[1]
    assert list(seen.absolute_sums) == list(single.absolute_sums)
    np.testing.assert_allclose(seen.rounding, single.rounding, rtol=1e-4)


def test_what_rounding_took_is_summed_over_all_rows(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 64)
    recipe = made()
    real = recipe.real_columns(X, 0.4)
    lost = real - np.rint(real)
    np.testing.assert_allclose(scan(recipe, distinct(X, 0.4)).rounding, lost @ lost.T, rtol=1e-4, atol=1e-4)


@every_noise
def test_the_rows_with_the_longest_columns_are_handed_back(monkeypatch, noise):
    monkeypatch.setattr(chunks, "CHUNK", 100)
    monkeypatch.setattr("cloakgp.measurements.recipes._WORST", 64)
    recipe = made()
    worst = scan(recipe, distinct(X, noise)).worst
    lengths = np.linalg.norm(recipe.real_columns(X, noise), axis=0)
    for part in range(3):
        rows = np.arange(100) + 100 * part
        wanted = rows[np.sort(np.argsort(-lengths[rows])[:64])]
        np.testing.assert_array_equal(worst.X[64 * part : 64 * (part + 1)], X[wanted])
        variances = np.broadcast_to(noise, 300)[wanted]
        np.testing.assert_array_equal(worst.variances[64 * part : 64 * (part + 1)], variances)


def test_a_lone_column_a_thousand_times_longer_is_found_in_any_step(monkeypatch):
    """A linear kernel: the column of a row is as long as the row is far out."""
    monkeypatch.setattr(chunks, "CHUNK", 64)
    monkeypatch.setattr(chunks, "STEP", 16)
    recipe = made(kernel=Linear(1.0), matrix_bits=10)
    usual = scan(recipe, distinct(X, 0.4)).longest
    for row in (0, 15, 16, 63, 64, 299):
        data = X.copy()
        data[row] *= 1000
        inputs = distinct(data, 0.4)
        longest = scan(recipe, inputs).longest
        assert longest == expected(recipe, inputs, MARGIN)[0]
        assert longest > 100**2 * usual


@pytest.mark.parametrize("variance", [1e-18, 1e-100])
def test_columns_too_long_for_integers_are_refused(variance):
    noise = np.full(300, 0.4)
    noise[17] = variance
    with pytest.raises(ValueError, match=r"column is out of range; is its noise variance far below others'"):
        scan(made(matrix_bits=28), distinct(X, noise))


def test_columns_whose_sum_over_steps_would_wrap_are_refused(monkeypatch):
    """Each step on its own stays below 2^62; their sum does not."""
    monkeypatch.setattr(chunks, "STEP", 30)
    usual = scan(made(matrix_bits=20), distinct(X, 0.4))
    most = math.isqrt(usual.longest)
    bits = 20 + 61 - (most * 30).bit_length()
    with pytest.raises(ValueError, match="column is out of range"):
        scan(made(matrix_bits=bits), distinct(X, 0.4))
    seen = scan(made(matrix_bits=bits - 5), distinct(X, 0.4))
    assert max(seen.absolute_sums) > 0
    assert abs(seen.column_sum).max() <= max(seen.absolute_sums)


# Digests


def test_a_digest_is_of_all_that_the_columns_are_made_of(monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "CHUNK", 64)
    np.save(tmp_path / "X.npy", X)
    inputs = Inputs(X, 0.4, None)
    same = [
        inputs,
        Inputs(X.copy(), 0.4, None),
        Inputs(np.load(tmp_path / "X.npy", mmap_mode="r"), 0.4, None),
        Inputs(np.asfortranarray(X), 0.4, None),
    ]
    assert len({digest_of(other) for other in same}) == 1
    data, swapped, noisy = X.copy(), X.copy(), PER_ROW.copy()
    data[299, 1] = np.nextafter(data[299, 1], 11)
    swapped[[3, 70]] = X[[70, 3]]
    noisy[0] *= 1 + 1e-15
    labels = RNG.integers(0, 300, size=400)
    labels[:300] = np.arange(300)
    counts, other = np.bincount(labels), np.bincount(labels)
    turned = labels.copy()
    turned[[300, 301]] = labels[[301, 300]]
    other[[0, 1]] = counts[[1, 0]] + [0, 1]
    different = [
        inputs,
        Inputs(data, 0.4, None),
        Inputs(swapped, 0.4, None),
        Inputs(X[:-1], 0.4, None),
        Inputs(X, 0.4000001, None),
        Inputs(X, PER_ROW, None),
        Inputs(X, noisy, None),
        Inputs(X, 0.4, Groups(labels, counts)),
        Inputs(X, 0.4, Groups(labels, other)),
        Inputs(X, 0.4, Groups(turned, counts)),
    ]
    assert len({digest_of(one) for one in different}) == len(different)


# Bounds


@every_noise
@every_approximation
def test_sums_of_influence_are_bounded(approximation, noise):
    """Whatever R: at least the sum of the absolute values over rows."""
    gp = GP(KERNEL, noise, (-1.0, 4.0), 0.7, Z, approximation)
    features = Features(KERNEL, Z)
    model = SparseGP(
        features, approximation, information(features, approximation, distinct(X, noise)), X_STAR
    )
    phi = features.at(X)
    D = model.rest(X, phi, noise)
    for R in (model.T, RNG.normal(size=(6, len(phi))), np.eye(len(phi))):
        bound, attained = summed(gp, model, R, len(X)), np.abs(R @ phi / D).sum(axis=1)
        assert (bound >= attained * (1 - 1e-12)).all()
        if approximation == "dtc" and isinstance(noise, float):
            assert (bound <= attained * 3).all()


def test_the_bias_counts_from_the_prior_mean(monkeypatch):
    """Outcomes are clipped to the bounds, and what is lost of them is lost of y less the prior mean."""
    monkeypatch.setattr("cloakgp.plans.out_of_core.DENSE", 1)
    gp = GP(KERNEL, 0.4, (-1.0, 4.0), 1.5, Z)
    assert gp.farthest == 2.5
    plan = gp.plan(X, X_star=X_STAR, epsilon=1.0, delta=0.01)
    far = replace(gp, mean=-1000.0)
    assert far.farthest == 1004.0
    model = SparseGP(plan.measurement.recipe.features, "dtc", plan.measurement.information, X_STAR)
    nothing = np.zeros((plan.measurement.n_measurements,) * 2)
    # A reconstruction that gets everything wrong: the error is then C (y - mean), and more by rounding.
    one, other = (bias(g, model, plan.measurement, plan.reconstruction * 0, nothing) for g in (gp, far))
    np.testing.assert_allclose(other / one, 1004 / 2.5, rtol=1e-5)
