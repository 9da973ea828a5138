"""Sums over bins in integers: the least noise that keeps the promise, and a check that sees too little."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cloakgp import ArgumentError
from cloakgp.binning import make_sums
from cloakgp.core.calibration import SIGMA_FLOOR, calibrate, total_delta
from cloakgp.data.merging import Groups
from cloakgp.data.people import People
from cloakgp.measure.measurement import HEADROOM
from cloakgp.measure.sensitivity import largest_power_sum, largest_squared_move
from cloakgp.measure.statistics import OneOf

BOUNDS = (-3.0, 7.0)


def groups(*counts):
    """So many rows in each bin."""
    return Groups(np.repeat(np.arange(len(counts)), counts), np.array(counts))


def laplace(epsilon=1.0, counts=(3, 1, 5), bounds=BOUNDS):
    return make_sums(sum(counts), groups(*counts), bounds, epsilon, 0.0, "laplace")


def gaussian(epsilon=1.0, delta=0.01, counts=(3, 1, 5), bounds=BOUNDS):
    return make_sums(sum(counts), groups(*counts), bounds, epsilon, delta, "gaussian")


# ------------------------------------------------------------------------------------------ scale

EPSILONS = [1e-12, 1e-6, 0.1, 0.3, 1 / 3, 1.0, math.log(3), 1.7, 10.0, 123.4, 1e5, 999_999.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_scale_is_the_smallest_that_keeps_the_promise(epsilon):
    m = laplace(epsilon)
    assert m.sensitivity() == 2**m.y_bits
    assert m.step * 2**m.y_bits == 10.0
    assert Fraction(m.sensitivity(), m.sigma) <= Fraction(epsilon)
    assert float(m.sigma) == m.sigma
    below = int(math.nextafter(float(m.sigma), 0.0)) if m.sigma > 2**53 else m.sigma - 1
    assert Fraction(m.sensitivity(), below) > Fraction(epsilon)
    with pytest.raises(AssertionError, match="too small"):
        replace(m, sigma=below).check()


@pytest.mark.parametrize("epsilon", [1e-10, 1e-6, 0.1, 1.0, 50.0, 1e4, 1e5])
@pytest.mark.parametrize("delta", [1e-250, 1e-12, 0.01, 0.999])
def test_gaussian_scale_keeps_the_promise_over_all_bins(epsilon, delta):
    m = gaussian(epsilon, delta)
    assert m.sigma >= SIGMA_FLOOR
    assert Fraction(m.mu()) >= Fraction(m.sensitivity(), m.sigma)
    assert total_delta(m.mu(), epsilon, delta, 3) <= delta
    assert m.mu() <= calibrate(epsilon, delta, n_measurements=3) * (1 + 1e-12)
    with pytest.raises(AssertionError, match="too small"):
        replace(m, sigma=int(m.sigma * 0.99)).check()


def test_where_rounding_errors_of_mu_count_noise_is_a_little_larger():
    gaussian(3.3036189655754018e-09, 2.790218580522695e-251, counts=(1,) * 1722).check()


# -------------------------------------------------------------------------------------- sensitivity


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_norms_of_what_a_person_moves_are_those_of_dense_arithmetic(seed):
    """Of entries without signs, all bounds are one; of bins, in both norms, exact. Beyond 64 bits, too."""
    random = np.random.default_rng(seed)
    q, columns, rows = random.integers(1, 6, 3)
    matrix = random.integers(0, 5, (q, columns)) * random.integers(0, 2, (q, columns))
    labels, whose = (
        random.integers(0, columns, rows),
        np.unique(random.integers(0, 3, rows), return_inverse=True)[1],
    )
    owned = np.zeros((columns, whose.max() + 1), dtype=np.int64)
    np.add.at(owned, (labels, whose), 1)
    moved, people = matrix @ owned, People(whose)
    for big in (1, 2**40):
        for form in (sparse.csc_array(big * matrix), -big * matrix):
            assert largest_power_sum(form, labels, people, 1) == big * moved.sum(axis=0).max()
            assert largest_power_sum(form, labels, people, 2) == big**2 * int((moved**2).sum(axis=0).max())
            assert largest_power_sum(form, labels, None, 1) == big * matrix.sum(axis=0).max()
            assert largest_power_sum(form, labels, None, 2) == big**2 * int((matrix**2).sum(axis=0).max())
    assert largest_power_sum(matrix, labels, people, 2) == largest_squared_move(matrix, labels, people)


def test_laplace_noise_of_any_matrix():
    """Absolute values are added up. Of classes an outcome moves two, which nobody has asked for."""
    m = laplace(counts=(2, 1, 1))
    signed = replace(
        m, matrix=np.array([[3, -2, 0], [-1, 4, 1]]), statistic=m.statistic.with_bits(30), sigma=2**36
    )
    assert signed.sensitivity() == 6 * 2**30
    shared = replace(signed, people=People(np.array([0, 1, 0, 2])))
    assert shared.sensitivity() == 10 * 2**30
    assert replace(signed, declared=2**34).sensitivity() == 2**34
    signed.check()
    with pytest.raises(AssertionError, match="too small"):
        replace(signed, sigma=6 * 2**30 - 1).check()
    with pytest.raises(AssertionError, match="one number per row"):
        replace(signed, statistic=OneOf(*BOUNDS, y_bits=30)).check()


# ----------------------------------------------------------------------------------------- headroom


@pytest.mark.parametrize("rows", [1, 1000, 3_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e5])
def test_large_bins_leave_headroom(rows, epsilon):
    m = laplace(epsilon, (rows, 1))
    assert rows * 2**m.y_bits + 64 * m.sigma < HEADROOM
    assert m.y_bits == 40 or rows * 2**m.y_bits + 64 * m.sigma >= HEADROOM // 8


@pytest.mark.parametrize(
    ("make", "epsilon", "expected"),
    [
        *((laplace, epsilon, "larger") for epsilon in (5e-324, 1e-310, 1e-100, 1e-15)),
        (gaussian, 9.9e5, "smaller"),
        (laplace, 2.0**31, "smaller"),
    ],
)
def test_epsilon_too_small_or_too_large_is_refused_by_name(make, epsilon, expected):
    with pytest.raises(ArgumentError, match=f"must be {expected}") as caught:
        make(epsilon)
    assert caught.value.name == "epsilon"


# ------------------------------------------------------------------------------------ planted bugs


def relabelled(labels):
    return {"groups": Groups(np.array(labels), groups(3, 1, 5).counts)}


BUGS = {  # beside those of any measurement, in tests/contracts/test_measurement_contract.py
    "label past the last bin": (laplace, relabelled([0] * 3 + [1] + [2] * 4 + [3]), "counted"),
    "rows in other bins": (laplace, relabelled([0, 1, 2] * 3), "counted"),
    "fewer bins": (gaussian, {"matrix": sparse.eye_array(2, dtype=np.int64)}, "counted"),
    "scale that OpenDP would round": (laplace, {"epsilon": 2.0**-14, "sigma": 2**54 + 1}, "floating"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    make, changes, why = BUGS[bug]
    with pytest.raises(AssertionError, match=why):
        replace(make(), **changes).check()


def test_a_product_that_rounds_up_to_the_sensitivity_is_not_enough():
    """epsilon * scale = 2^40 in floating point, but less in truth."""
    found, good = 0, laplace(1.0, (1,))
    assert good.y_bits == 40
    for epsilon in np.random.default_rng(0).uniform(1e-4, 1.0, 20_000).tolist():
        scale = math.floor(2**40 / epsilon)
        if epsilon * scale >= 2**40 and Fraction(epsilon) * scale < 2**40:
            found += 1
            with pytest.raises(AssertionError, match="too small"):
                replace(good, epsilon=epsilon, sigma=scale).check()
            assert laplace(epsilon, (1,)).sigma > scale
    assert found > 0
