"""Sums over bins in integers: the least noise that keeps the promise, and a check that sees too little."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.calibration import SIGMA_FLOOR, calibrate, total_delta
from cloakgp.measurements.bin_sums import MECHANISMS, BinSums, make_sums
from cloakgp.measurements.lattice import HEADROOM

BOUNDS = (-3.0, 7.0)


def labels(*counts):
    """So many rows in each bin."""
    return np.repeat(np.arange(len(counts)), counts).astype(np.int64)


def laplace(epsilon=1.0, counts=(3, 1, 5), bounds=BOUNDS):
    return make_sums(labels(*counts), len(counts), bounds, epsilon, 0.0, "laplace")


def gaussian(epsilon=1.0, delta=0.01, counts=(3, 1, 5), bounds=BOUNDS):
    return make_sums(labels(*counts), len(counts), bounds, epsilon, delta, "gaussian")


# ------------------------------------------------------------------------------------------ scale

EPSILONS = [1e-12, 1e-6, 0.1, 0.3, 1 / 3, 1.0, math.log(3), 1.7, 10.0, 123.4, 1e5, 999_999.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_scale_is_the_smallest_that_keeps_the_promise(epsilon):
    sums = laplace(epsilon)
    assert Fraction(sums.sensitivity, sums.scale) <= Fraction(epsilon)
    assert float(sums.scale) == sums.scale
    below = int(math.nextafter(float(sums.scale), 0.0)) if sums.scale > 2**53 else sums.scale - 1
    assert Fraction(sums.sensitivity, below) > Fraction(epsilon)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(1e-9, 9e5), st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_laplace_scale_is_never_below_the_exact_one_and_hardly_above(epsilon, counts):
    sums = laplace(epsilon, counts)
    exact = Fraction(sums.sensitivity) / Fraction(epsilon)
    assert exact <= sums.scale <= exact * (1 + Fraction(1, 2**52)) + 1
    with pytest.raises(AssertionError, match="too small"):
        replace(sums, scale=int(float(int(sums.scale * (1 - 2**-20)) - 1))).check()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_std_in_the_outcomes_unit(mechanism):
    epsilon, delta = 0.7, 0.02
    sums = laplace(epsilon) if mechanism == "laplace" else gaussian(epsilon, delta)
    scale = 1 / epsilon if mechanism == "laplace" else 1 / calibrate(epsilon, delta, n_measurements=3)
    expected = 10.0 * scale * (math.sqrt(2) if mechanism == "laplace" else 1.0)
    assert sums.noise_std == pytest.approx(expected, rel=1e-9)
    assert sums.noise_std >= expected * (1 - 1e-15)
    assert sums.step * 2**sums.y_bits == 10.0
    assert sums.n_rows == 9
    assert sums.sensitivity == 2**sums.y_bits


@pytest.mark.parametrize("epsilon", [1e-10, 1e-6, 0.1, 1.0, 50.0, 1e4, 1e5])
@pytest.mark.parametrize("delta", [1e-250, 1e-12, 0.01, 0.999])
def test_gaussian_scale_keeps_the_promise_over_all_bins(epsilon, delta):
    sums = gaussian(epsilon, delta)
    assert sums.scale >= SIGMA_FLOOR
    assert Fraction(sums.mu) >= Fraction(sums.sensitivity, sums.scale)
    assert total_delta(sums.mu, epsilon, delta, 3) <= delta
    assert sums.mu <= calibrate(epsilon, delta, n_measurements=3) * (1 + 1e-12)
    less = replace(sums, scale=int(sums.scale * 0.99))
    with pytest.raises(AssertionError, match="too small"):
        less.check()


def test_gaussian_noise_counts_every_bin():
    few, many = gaussian(counts=(1,)), gaussian(counts=(1,) * 2000)
    assert many.mu <= few.mu
    assert few.mu == pytest.approx(many.mu, rel=1e-6)


# ----------------------------------------------------------------------------------------- headroom


@pytest.mark.parametrize("rows", [1, 1000, 3_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e5])
def test_large_bins_leave_headroom(rows, epsilon):
    sums = laplace(epsilon, (rows, 1))
    assert rows * 2**sums.y_bits + 64 * sums.scale < HEADROOM
    assert sums.y_bits == 40 or rows * 2**sums.y_bits + 64 * sums.scale >= HEADROOM // 8


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-100, 1e-15])
def test_epsilon_too_small_is_refused_by_name(epsilon):
    with pytest.raises(ValueError, match=r"epsilon=.* is too small"):
        laplace(epsilon)


def test_epsilon_too_large_is_refused_by_name():
    with pytest.raises(ValueError, match=r"epsilon=.* is too large"):
        gaussian(9.9e5, 0.01)
    with pytest.raises(ValueError, match=r"epsilon=.* is too large"):
        laplace(2.0**31)


def test_labels_cannot_be_edited_afterwards():
    mine = labels(2, 2)
    sums = make_sums(mine, 2, BOUNDS, 1.0, 0.0, "laplace")
    mine[:] = 0
    assert sums.labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        sums.labels[0] = 1


# ------------------------------------------------------------------------------------ planted bugs


def test_what_was_made_passes_its_check():
    for sums in (laplace(), gaussian(), laplace(1e5), laplace(1e-6), gaussian(1e-6, 1e-12)):
        sums.check()


def planted(kind, **changes):
    return replace(laplace() if kind == "laplace" else gaussian(), **changes)


BUGS = {
    "label past the last bin": ("laplace", {"labels": np.array([0, 3])}, "in no bin"),
    "label below the first": ("laplace", {"labels": np.array([0, -1])}, "in no bin"),
    "labels as floats": ("laplace", {"labels": np.array([0.0, 1.0])}, "in no bin"),
    "labels that wrap": ("laplace", {"labels": np.array([0, 1], dtype=np.int8)}, "in no bin"),
    "fewer bins": ("gaussian", {"n_bins": 2}, "in no bin"),
    "finer outcomes, same noise": ("laplace", {"y_bits": 41}, "too small"),
    "finer outcomes, same noise, gaussian": ("gaussian", {"y_bits": 41}, "too small"),
    "sums that overflow": ("laplace", {"y_bits": 60, "scale": 2**60}, "overflow"),
    "noise that overflows": ("laplace", {"scale": 2**56}, "overflow"),
    "no noise": ("laplace", {"scale": 0}, "too small"),
    "no noise, gaussian": ("gaussian", {"scale": 0}, "too small"),
    "negative noise": ("laplace", {"scale": -(2**45)}, "too small"),
    "one step too little": ("laplace", {"scale": 2**40 - 1}, "too small"),
    "scale that OpenDP would round": ("laplace", {"epsilon": 2.0**-14, "scale": 2**54 + 1}, "floating"),
    "smaller epsilon": ("laplace", {"epsilon": math.nextafter(1.0, 0.0)}, "too small"),
    "smaller epsilon, gaussian": ("gaussian", {"epsilon": 0.99}, "too small"),
    "smaller delta": ("gaussian", {"delta": 0.0099}, "too small"),
    "a delta that Laplace does not have": ("laplace", {"delta": 0.01}, "too small"),
    "not a number": ("laplace", {"epsilon": math.nan}, "too small"),
    "not a number, gaussian": ("gaussian", {"epsilon": math.nan}, "too small"),
    "not a number for delta": ("gaussian", {"delta": math.nan}, "too small"),
    "infinite epsilon": ("laplace", {"epsilon": math.inf}, "too small"),
    "Laplace's noise called Gaussian": ("laplace", {"mechanism": "gaussian", "delta": 0.01}, "too small"),
    "Gaussian noise called Laplace's": ("gaussian", {"mechanism": "laplace"}, "too small"),
    "coarse Gaussian lattice": ("gaussian", {"y_bits": 12, "scale": 2**29}, "too small"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    kind, changes, why = BUGS[bug]
    with pytest.raises(AssertionError, match=why):
        planted(kind, **changes).check()


def test_a_product_that_rounds_up_to_the_sensitivity_is_not_enough():
    """epsilon * scale = 2^40 in floating point, but less in truth."""
    random = np.random.default_rng(0)
    found = 0
    for epsilon in random.uniform(1e-4, 1.0, 20_000).tolist():
        scale = math.floor(2**40 / epsilon)
        if epsilon * scale >= 2**40 and Fraction(epsilon) * scale < 2**40:
            found += 1
            bad = BinSums(labels(1), 1, 40, *BOUNDS, epsilon, 0.0, "laplace", scale)
            with pytest.raises(AssertionError, match="too small"):
                bad.check()
            assert laplace(epsilon, (1,)).scale > scale
    assert found > 0
