"""The integer lattice, against Python's integers, which cannot wrap or round."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cloakgp.calibration import SIGMA_FLOOR, calibrate
from cloakgp.measurements import lattice
from cloakgp.measurements.lattice import HEADROOM, Measurement, to_integers

PROMISE = {"epsilon": 1.0, "delta": 0.01}
MU = calibrate(1.0, 0.01, n_measurements=3)


def scaled_columns(q, N, seed):
    """As designs give them: the longest has norm 1."""
    C = np.random.default_rng(seed).normal(size=(q, N))
    return C / np.linalg.norm(C, axis=0).max()


@pytest.fixture
def C():
    return scaled_columns(3, 40, seed=5)


@pytest.fixture
def measurement(C):
    return to_integers(C, (-1.0, 4.0), **PROMISE, mu=MU)


def worst_sum(m: Measurement) -> int:
    """The largest |matrix @ y_int| that any y_int in [0, 2^b] can give, in Python integers."""
    return max(sum(map(abs, row)) for row in m.matrix.tolist()) * 2**m.y_bits


def exact_sensitivity(m: Measurement) -> int:
    squared = max(sum(entry**2 for entry in column) for column in m.matrix.T.tolist()) * 4**m.y_bits
    root = math.isqrt(squared)
    return root + (root**2 < squared)


# What is built


def test_the_matrix_is_the_measurements_rounded(measurement, C):
    scaled = C * 2.0**measurement.matrix_bits
    assert measurement.matrix.dtype == np.int64
    assert np.abs(measurement.matrix - scaled).max() <= 0.5
    assert (measurement.n_measurements, measurement.n_rows) == (3, 40)


def test_sensitivity_is_exact_and_rounded_up(measurement):
    assert measurement.sensitivity() == exact_sensitivity(measurement)
    assert Fraction(measurement.sensitivity()) ** 2 >= max(
        sum((entry * 2**measurement.y_bits) ** 2 for entry in column)
        for column in measurement.matrix.T.tolist()
    )


@pytest.mark.parametrize(
    ("columns", "y_bits", "expected"),
    [([[3], [4]], 1, 10), ([[1], [1]], 1, 3), ([[1, 0], [0, 2]], 4, 32), ([[2**31], [1]], 1, 2**32 + 1)],
)
def test_sensitivity_by_hand(columns, y_bits, expected):
    """√(2²·(3²+4²)) = 10; √8 = 2.83 is rounded up to 3; and so on."""
    m = Measurement(np.array(columns, dtype=np.int64), y_bits, 1, SIGMA_FLOOR, 0.0, 1.0, 1.0, 0.01)
    assert m.sensitivity() == expected


@given(epsilon=st.floats(0.01, 20), seed=st.integers(0, 99))
def test_sigma_is_the_smallest_float_that_suffices(epsilon, seed):
    C = scaled_columns(2, 7, seed)
    mu = calibrate(epsilon, 1e-5, n_measurements=2)
    m = to_integers(C, (0.0, 1.0), epsilon, 1e-5, mu)
    wanted = Fraction(m.sensitivity()) / Fraction(mu)
    assert m.sigma == int(float(m.sigma))
    assert m.sigma >= wanted
    below = math.nextafter(float(m.sigma), 0.0)
    assert math.floor(below) < wanted


@given(numerator=st.integers(1, 2**70), denominator=st.integers(1, 2**20))
def test_rounding_up_to_an_integer_that_is_a_float(numerator, denominator):
    value = Fraction(numerator, denominator)
    result = lattice.integer_float_at_least(value)
    assert isinstance(result, int)
    assert result >= value
    assert float(result) == result
    lower = result - 1 if result <= 2**53 else int(math.nextafter(float(result), 0.0))
    assert lower < value


def test_mu_is_rounded_up(measurement):
    exact = Fraction(measurement.sensitivity(), measurement.sigma)
    assert exact <= Fraction(measurement.mu()) <= exact * (1 + Fraction(1, 2**51))
    assert measurement.mu() <= MU


def test_units(measurement):
    step = 5.0 / 2 ** (measurement.y_bits + measurement.matrix_bits)
    assert measurement.step == pytest.approx(step, rel=1e-15)
    assert measurement.noise_scale == pytest.approx(measurement.sigma * step, rel=1e-15)
    half = 2 ** (measurement.y_bits - 1)
    assert measurement.midpoint.tolist() == [sum(row) * half for row in measurement.matrix.tolist()]


@pytest.mark.parametrize("rows", [slice(None), slice(3, 9)], ids=str)
def test_the_real_matrix_is_the_integers_exactly(measurement, C, rows):
    real = measurement.real_matrix(rows)
    assert [[Fraction(entry) for entry in row] for row in real.tolist()] == [
        [Fraction(entry, 2**measurement.matrix_bits) for entry in row]
        for row in measurement.matrix[:, rows].tolist()
    ]
    assert np.abs(real - C[:, rows]).max() <= 2.0 ** -(measurement.matrix_bits + 1)


def test_it_is_read_only_and_frozen(measurement):
    with pytest.raises(ValueError, match="read-only"):
        measurement.matrix[0, 0] = 0
    with pytest.raises(FrozenInstanceError):
        measurement.sigma = 1


@settings(max_examples=300)
@given(
    log_epsilon=st.floats(math.log(0.01), math.log(30)),
    log_delta=st.floats(math.log(1e-12), math.log(0.5)),
    seed=st.integers(0, 999),
)
def test_the_calibrated_noise_passes_the_check_for_every_promise(log_epsilon, log_delta, seed):
    """Rounding the noise up to the lattice gives a mu a little below the calibrated one: more private."""
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    C = scaled_columns(2, 5, seed)
    to_integers(C, (0.0, 1.0), epsilon, delta, calibrate(epsilon, delta, n_measurements=2))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.001), (0.25, 0.001), (0.5, 1e-7), (1.0, 1e-7)])
def test_the_calibrated_noise_passes_the_check_for_round_promises(epsilon, delta):
    for seed in range(100):
        C = scaled_columns(2, 5, seed)
        mu = calibrate(epsilon, delta, n_measurements=2)
        to_integers(C, (0.0, 1.0), epsilon, delta, mu)


# No wrap, whatever the size


@given(
    spread=st.floats(0, 12),
    n=st.integers(1, 300),
    log_epsilon=st.floats(math.log(1e-4), math.log(100)),
    seed=st.integers(0, 99),
)
def test_headroom_for_any_matrix_and_promise(spread, n, log_epsilon, seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(2, n)) * 10.0 ** (-spread * rng.uniform(size=n))
    C /= np.linalg.norm(C, axis=0).max()  # as designs give it
    epsilon = math.exp(log_epsilon)
    mu = calibrate(epsilon, 1e-6, n_measurements=2)
    m = to_integers(C, (0.0, 1.0), epsilon, 1e-6, mu)
    assert worst_sum(m) + 64 * m.sigma < HEADROOM
    assert m.sensitivity() == exact_sensitivity(m)
    assert m.sigma >= SIGMA_FLOOR
    assert m.y_bits >= 12
    assert m.matrix_bits >= 16


def test_a_hundred_thousand_equal_rows():
    C = np.repeat(np.array([[0.6], [-0.8], [0.0]]), 100_000, axis=1)
    m = to_integers(C, (0.0, 1.0), **PROMISE, mu=MU)
    top = np.full(m.n_rows, 2**m.y_bits)
    assert (m.matrix @ top).tolist() == [sum(row) * 2**m.y_bits for row in m.matrix.tolist()]
    assert worst_sum(m) + 64 * m.sigma < HEADROOM


def test_two_million_rows():
    m = to_integers(np.ones((1, 2_000_000)), (0.0, 1.0), **PROMISE, mu=calibrate(1.0, 0.01))
    entry = int(m.matrix[0, 0])
    assert (m.matrix == entry).all()
    assert (m.matrix @ np.full(m.n_rows, 2**m.y_bits)).tolist() == [2_000_000 * entry * 2**m.y_bits]
    assert 2_000_000 * entry * 2**m.y_bits + 64 * m.sigma < HEADROOM
    assert m.sensitivity() == entry * 2**m.y_bits
    assert m.y_bits >= 12
    assert m.sigma >= SIGMA_FLOOR


def test_an_epsilon_too_large_for_the_lattice_is_refused(C):
    with pytest.raises(ValueError, match=r"epsilon=.* with 40 rows leaves too few bits.*smaller epsilon"):
        to_integers(C, (0.0, 1.0), 1e9, 0.01, mu=1e9)


# A sensitivity that tells nothing of the matrix


def matrices_of(q, N, seed):
    """Columns of norm at most 1: long, short, none, all of one kind, and at the worst of rounding."""
    rng = np.random.default_rng(seed)
    random = rng.normal(size=(q, N))
    unit = random / np.linalg.norm(random, axis=0)
    return [
        unit,
        unit * rng.uniform(size=N),
        unit * 1e-9,
        np.zeros((q, N)),
        np.eye(q)[:, np.zeros(N, dtype=int)],
        np.full((q, N), 1 / math.sqrt(q)) * (1 - 1e-15),
    ]


@given(q=st.integers(1, 40), N=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_the_declared_sensitivity_covers_any_columns_of_norm_one(q, N, seed):
    mu = calibrate(1.0, 0.01, n_measurements=q)
    for B in matrices_of(q, N, seed):
        m = to_integers(B, (0.0, 1.0), **PROMISE, mu=mu, full_scale=True)
        assert m.declared == lattice.full_scale_sensitivity(q, m.y_bits, m.matrix_bits)
        assert m.declared >= exact_sensitivity(m)
        assert m.sensitivity() == m.declared
        assert m.sigma >= Fraction(m.declared) / Fraction(mu)
        m.check()


@given(q=st.integers(1, 10**9), y_bits=st.integers(1, 30), matrix_bits=st.integers(1, 40))
def test_the_declared_sensitivity_is_rounding_on_top_of_one(q, y_bits, matrix_bits):
    """A column of norm 1 rounds to one of norm at most 2^a + sqrt(q)/2 steps."""
    declared = Fraction(lattice.full_scale_sensitivity(q, y_bits, matrix_bits))
    norm = declared / 2**y_bits - 2**matrix_bits
    assert (2 * norm) ** 2 >= q
    assert norm <= math.isqrt(q) + 1, "and not much more than that"


@pytest.mark.parametrize(("q", "N"), [(1, 1), (3, 40), (7, 5)])
def test_with_hidden_inputs_lattice_and_noise_depend_on_the_shape_alone(q, N):
    mu = calibrate(1.0, 0.01, n_measurements=q)
    hidden = {"full_scale": True, "hide_inputs": True}
    told = set()
    for seed in range(20):
        for B in matrices_of(q, N, seed):
            m = to_integers(B, (0.0, 1.0), **PROMISE, mu=mu, **hidden)
            told.add((m.y_bits, m.matrix_bits, m.sigma, m.declared, m.sensitivity(), m.mu()))
            assert worst_sum(m) + 64 * m.sigma < HEADROOM
    assert len(told) == 1


def test_without_hidden_inputs_they_depend_on_the_matrix(C):
    B = C / np.linalg.norm(C, axis=0)
    noise = {to_integers(b, (0.0, 1.0), **PROMISE, mu=MU).noise_scale for b in (B, B / 2)}
    bits = {to_integers(b, (0.0, 1.0), **PROMISE, mu=MU, full_scale=True).y_bits for b in (B, B * 1e-9)}
    assert len(noise) == 2
    assert len(bits) == 2


def test_a_declared_sensitivity_costs_next_to_nothing(C):
    B = C / np.linalg.norm(C, axis=0)
    plain, full = (to_integers(B, (0.0, 1.0), **PROMISE, mu=MU, full_scale=f) for f in (False, True))
    assert plain.declared == 0
    assert plain.noise_scale <= full.noise_scale <= plain.noise_scale * (1 + 1e-6)


@pytest.mark.parametrize("declared", [-1, 0, 1])
def test_a_small_declared_sensitivity_is_not_believed(measurement, declared):
    doctored = replace(measurement, declared=declared)
    assert doctored.sensitivity() == measurement.sensitivity() == exact_sensitivity(measurement)
    doctored.check()


def test_check_refuses_noise_that_is_too_small_for_what_is_declared(measurement):
    with pytest.raises(AssertionError, match="noise is too small"):
        replace(measurement, declared=measurement.sensitivity() * 2).check()


int64s = st.one_of(
    st.integers(-(2**62), 2**62),
    st.integers(2**31 - 3, 2**31 + 3),
    st.integers(2**62 - 3, 2**62),
    st.integers(-5, 5),
)


@settings(max_examples=200)
@given(matrix=arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=int64s))
def test_largest_squared_norm_is_exact(matrix):
    assert lattice.largest_squared_norm(matrix) == max(
        sum(entry**2 for entry in column) for column in matrix.T.tolist()
    )


@pytest.mark.parametrize("size", [2**30, 2**31, 2**31 + 1, 2**40, 2**61, 2**62])
def test_largest_squared_norm_tells_columns_apart_that_floats_cannot(size):
    matrix = np.array([[size, size - 1, size], [3, 2**20, 4]], dtype=np.int64)
    expected = max(size**2 + 16, (size - 1) ** 2 + 2**40)
    assert lattice.largest_squared_norm(matrix) == expected
    assert lattice.largest_squared_norm(-matrix) == expected


# check() trusts nothing


def test_check_passes_what_was_built(measurement):
    measurement.check()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sigma": 1}, "not on a fine enough integer lattice"),
        ({"sigma": 0}, "not on a fine enough integer lattice"),
        ({"sigma": -(2**40)}, "not on a fine enough integer lattice"),
        ({"sigma": SIGMA_FLOOR - 1}, "not on a fine enough integer lattice"),
        ({"sigma": 2**57}, "could overflow"),
        ({"y_bits": 60}, "could overflow"),
        ({"epsilon": 0.5}, "noise is too small"),
        ({"epsilon": 1e-30}, "noise is too small|epsilon"),
        ({"delta": 0.005}, "noise is too small"),
        ({"epsilon": math.nan}, "noise is too small|epsilon"),
        ({"delta": math.nan}, "noise is too small|delta"),
    ],
    ids=str,
)
def test_check_refuses_a_doctored_measurement(measurement, changes, match):
    with pytest.raises((AssertionError, ValueError), match=match):
        replace(measurement, **changes).check()


def test_check_refuses_too_little_noise_by_a_hair(measurement):
    with pytest.raises(AssertionError, match="noise is too small"):
        replace(measurement, sigma=int(measurement.sigma * (1 - 1e-6)) & -1024).check()


def test_check_refuses_a_noise_scale_that_is_no_float(measurement):
    odd = measurement.sigma + 1
    assert float(odd) != odd
    with pytest.raises(AssertionError, match="not a floating-point number"):
        replace(measurement, sigma=odd).check()


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint64, object, ">i8"])
def test_check_refuses_other_dtypes(measurement, dtype):
    with pytest.raises(AssertionError, match="integer lattice"):
        replace(measurement, matrix=measurement.matrix.astype(dtype)).check()


def test_check_refuses_a_matrix_with_one_larger_column(measurement):
    matrix = measurement.matrix.copy()
    matrix[:, 7] = matrix[:, np.argmax((matrix.astype(float) ** 2).sum(axis=0))] * 2
    with pytest.raises(AssertionError, match="noise is too small"):
        replace(measurement, matrix=matrix).check()


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62])
def test_check_does_not_wrap(measurement, size):
    """(2**40)**2 and (2**31)**2 * 2 are 0 or negative in int64."""
    matrix = measurement.matrix.copy()
    matrix[:, 0] = size
    with pytest.raises(AssertionError):
        replace(measurement, matrix=matrix).check()
