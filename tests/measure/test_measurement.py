"""How a measurement is made: fine integers, noise that is no larger than it must be, and room for every sum.

What every measurement must keep is in ``tests/contracts/test_measurement_contract.py``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp import Grid
from cloakgp.core.calibration import SIGMA_FLOOR, calibrate
from cloakgp.data.people import as_people
from cloakgp.measure import measurement as integers
from cloakgp.measure.measurement import HEADROOM, Measurement, measurement_of
from cloakgp.measure.statistics import Distance, Inside, OneOf, Present, bits_within
from cloakgp.measure.unit import Population

PROMISE = {"epsilon": 1.0, "delta": 0.01}
MU = calibrate(1.0, 0.01, n_measurements=3)
UNIT = Inside(0.0, 1.0)


def scaled_columns(q, N, seed):
    """As designs give them: the longest has norm 1."""
    C = np.random.default_rng(seed).normal(size=(q, N))
    return C / np.linalg.norm(C, axis=0).max()


@pytest.fixture
def C():
    return scaled_columns(3, 40, seed=5)


@pytest.fixture
def measurement(C):
    return measurement_of(C, Inside(-1.0, 4.0), **PROMISE, mu=MU)


def worst_sum(m):
    """The largest |matrix @ integers| that any in [0, 2^b] can give, in Python integers."""
    return max(sum(map(abs, row)) for row in m.matrix.tolist()) * 2**m.y_bits


def exact_sensitivity(m):
    squared = max(sum(entry**2 for entry in column) for column in m.matrix.T.tolist()) * 4**m.y_bits
    return math.isqrt(squared - 1) + 1 if squared else 0


@pytest.mark.parametrize(
    ("columns", "y_bits", "expected"),
    [([[3], [4]], 1, 10), ([[1], [1]], 1, 3), ([[1, 0], [0, 2]], 4, 32), ([[2**31], [1]], 1, 2**32 + 1)],
)
def test_sensitivity_by_hand(columns, y_bits, expected):
    """√(2²·(3²+4²)) = 10; √8 = 2.83 is rounded up to 3; and so on."""
    m = Measurement(np.array(columns, dtype=np.int64), 1, UNIT.with_bits(y_bits), SIGMA_FLOOR, 1.0, 0.01)
    assert m.sensitivity() == expected


def test_the_matrix_is_the_measurements_rounded(measurement, C):
    assert np.abs(measurement.matrix - C * 2.0**measurement.matrix_bits).max() <= 0.5
    assert (measurement.n_measurements, measurement.n_rows) == (3, 40)
    for rows in (slice(None), slice(3, 9)):
        real = measurement.real_matrix(rows)
        assert (real * 2.0**measurement.matrix_bits == measurement.matrix[:, rows]).all()
        assert np.abs(real - C[:, rows]).max() <= 2.0 ** -(measurement.matrix_bits + 1)


def test_units(measurement):
    step = 5.0 / 2 ** (measurement.y_bits + measurement.matrix_bits)
    assert measurement.step == pytest.approx(step, rel=1e-15)
    assert measurement.noise_scale == pytest.approx(measurement.sigma * step, rel=1e-15)
    half = 2 ** (measurement.y_bits - 1)
    assert measurement.midpoint.tolist() == [sum(row) * half for row in measurement.matrix.tolist()]


def test_what_a_step_of_a_distance_is_worth():
    m = measurement_of(np.ones((1, 4)), Distance(-9.0, 9.0, centre=np.zeros(4), limit=2.0), **PROMISE, mu=MU)
    assert m.step == pytest.approx(2.0 / 2 ** (m.y_bits + m.matrix_bits), rel=1e-15)
    assert (m.matrix == 2**m.matrix_bits).all()


# Noise


@given(epsilon=st.floats(0.01, 20), seed=st.integers(0, 99))
def test_sigma_is_the_smallest_float_that_suffices(epsilon, seed):
    mu = calibrate(epsilon, 1e-5, n_measurements=2)
    m = measurement_of(scaled_columns(2, 7, seed), UNIT, epsilon, 1e-5, mu)
    wanted = Fraction(m.sensitivity()) / Fraction(mu)
    assert m.sigma == int(float(m.sigma))
    assert math.floor(math.nextafter(float(m.sigma), 0.0)) < wanted <= m.sigma


@given(numerator=st.integers(1, 2**70), denominator=st.integers(1, 2**20))
def test_rounding_up_to_an_integer_that_is_a_float(numerator, denominator):
    value = Fraction(numerator, denominator)
    result = integers.integer_float_at_least(value)
    assert float(result) == result >= value
    lower = result - 1 if result <= 2**53 else int(math.nextafter(float(result), 0.0))
    assert lower < value


def test_mu_is_rounded_up(measurement):
    exact = Fraction(measurement.sensitivity(), measurement.sigma)
    assert exact <= Fraction(measurement.mu()) <= exact * (1 + Fraction(1, 2**51))
    assert measurement.mu() <= MU


@settings(max_examples=300)
@given(
    log_epsilon=st.floats(math.log(0.01), math.log(30))
    | st.sampled_from([0.1, 0.25, 0.5, 1.0]).map(math.log),
    log_delta=st.floats(math.log(1e-12), math.log(0.5)) | st.sampled_from([1e-3, 1e-7]).map(math.log),
    seed=st.integers(0, 999),
)
def test_the_calibrated_noise_passes_the_check_for_every_promise(log_epsilon, log_delta, seed):
    """Rounding the noise up to the lattice gives a mu a little below the calibrated one: more private."""
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    measurement_of(
        scaled_columns(2, 5, seed), UNIT, epsilon, delta, calibrate(epsilon, delta, n_measurements=2)
    )


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
    m = measurement_of(C, UNIT, epsilon, 1e-6, calibrate(epsilon, 1e-6, n_measurements=2))
    assert worst_sum(m) + 64 * m.sigma < HEADROOM
    assert m.sensitivity() == exact_sensitivity(m)
    assert m.sigma >= SIGMA_FLOOR
    assert m.y_bits >= 12
    assert m.matrix_bits >= 16


GRID = Grid({"x": (0.0, 1.0)}, cells=4)


@pytest.mark.parametrize("n", [1, 40, 10**6])
@pytest.mark.parametrize("max_rows", [None, 1, 50])
@pytest.mark.parametrize(
    "statistic", [Inside(0, 1, centred=True), OneOf(0, 1, centred=True), Present()], ids=str
)
def test_whole_rows_have_room_in_whichever_cells_they_are(n, max_rows, statistic):
    m = measurement_of(
        np.array([[1.0, -1.0, 0.5, 0.0]]),
        statistic,
        **PROMISE,
        mu=MU,
        population=Population(GRID, n, max_rows),
    )
    assert n * (max_rows or 1) * int(np.abs(m.matrix).max()) * 2**m.y_bits + 64 * m.sigma < HEADROOM
    assert m.sigma >= SIGMA_FLOOR


def test_millions_of_equal_rows():
    """A product with all rows at the top is exact; and people take bits as their rows do."""
    n = 2_000_000
    m = measurement_of(np.ones((1, n)), UNIT, **PROMISE, mu=calibrate(1.0, 0.01))
    entry = int(m.matrix[0, 0])
    assert (m.matrix @ np.full(n, 2**m.y_bits)).tolist() == [n * entry * 2**m.y_bits]
    assert n * entry * 2**m.y_bits + 64 * m.sigma < HEADROOM
    assert m.y_bits >= 12
    people = as_people(np.arange(1000) // 100, 1000)
    together = measurement_of(np.ones((1, 1000)), UNIT, **PROMISE, mu=calibrate(1.0, 0.01), people=people)
    assert together.sensitivity() == 100 * int(together.matrix[0, 0]) << together.y_bits


def test_an_epsilon_too_large_for_the_lattice_is_refused(C):
    with pytest.raises(ValueError, match=r"epsilon=.* with 40 rows leaves too few bits.*smaller epsilon"):
        measurement_of(C, UNIT, 1e9, 0.01, mu=1e9)


@given(
    total=st.integers(24, 61), entries=st.integers(0, 2**24), n=st.integers(1, 2**30), each=st.integers(1, 99)
)
def test_bits_are_shared_out_and_none_is_left_over_but_what_gains_nothing(total, entries, n, each):
    y_bits, matrix_bits = bits_within(total, entries, n, each)
    assert 0 < y_bits <= 24
    assert matrix_bits > 0
    assert y_bits + matrix_bits <= total


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
        m = measurement_of(B, UNIT, **PROMISE, mu=mu, full_scale=True)
        assert m.declared == integers.full_scale_sensitivity(q, m.y_bits, m.matrix_bits)
        assert m.sensitivity() == m.declared >= exact_sensitivity(m)
        assert m.sigma >= Fraction(m.declared) / Fraction(mu)


@given(q=st.integers(1, 10**9), y_bits=st.integers(1, 30), matrix_bits=st.integers(1, 40))
def test_the_declared_sensitivity_is_rounding_on_top_of_one(q, y_bits, matrix_bits):
    """A column of norm 1 rounds to one of norm at most 2^a + sqrt(q)/2 steps."""
    norm = Fraction(integers.full_scale_sensitivity(q, y_bits, matrix_bits)) / 2**y_bits - 2**matrix_bits
    assert (2 * norm) ** 2 >= q
    assert norm <= math.isqrt(q) + 1, "and not much more than that"


@pytest.mark.parametrize(("q", "N"), [(1, 1), (3, 40), (7, 5)])
def test_with_hidden_inputs_lattice_and_noise_depend_on_the_shape_alone(q, N):
    mu, told = calibrate(1.0, 0.01, n_measurements=q), set()
    for seed in range(20):
        for B in matrices_of(q, N, seed):
            m = measurement_of(B, UNIT, **PROMISE, mu=mu, full_scale=True, hide_inputs=True)
            told.add((m.y_bits, m.matrix_bits, m.sigma, m.declared, m.sensitivity(), m.mu()))
            assert worst_sum(m) + 64 * m.sigma < HEADROOM
    assert len(told) == 1


def test_without_hidden_inputs_they_depend_on_the_matrix(C):
    B = C / np.linalg.norm(C, axis=0)
    noise = {measurement_of(b, UNIT, **PROMISE, mu=MU).noise_scale for b in (B, B / 2)}
    bits = {measurement_of(b, UNIT, **PROMISE, mu=MU, full_scale=True).y_bits for b in (B, B * 1e-9)}
    assert (len(noise), len(bits)) == (2, 2)
