"""Calibration: known values, order, and agreement with high-precision arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.core import calibration
from cloakgp.core.calibration import (
    CALIBRATIONS,
    WeakPromiseWarning,
    calibrate,
    default_delta,
    delta_of,
    delta_slack,
    promise,
    total_delta,
)
from cloakgp.core.errors import ArgumentError

epsilons = st.floats(math.log(0.01), math.log(30)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(0.5)).map(math.exp)


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Balle & Wang (2018), theorem 8, with 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


# Known values


def test_the_papers_promise():
    assert round(1 / calibrate(1.0, 0.01), 4) == 1.8779
    assert round(1 / calibrate(1.0, 0.01, "classic"), 4) == 3.2552


@given(epsilon=st.floats(0.01, 1.0), delta=deltas)
def test_classic_is_the_papers_formula(epsilon, delta):
    mu = calibrate(epsilon, delta, "classic")
    assert mu == pytest.approx(epsilon / math.sqrt(2 * math.log(2 / delta)))
    assert mu <= calibrate(epsilon, delta)  # no less noise than is needed


# What is promised if nobody says otherwise, and what is hardly a promise


@given(n=st.integers(1, 10**12))
def test_the_default_delta_is_the_largest_power_of_ten_below_a_tenth_of_one_in_n(n):
    power = round(-math.log10(default_delta(n)))
    assert default_delta(n) == float(f"1e-{power}")
    assert Fraction(1, 10**power) < Fraction(1, 10 * n) <= Fraction(1, 10 ** (power - 1))


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [(5.01, 1e-4, "epsilon 5.01 is a weak promise"), (1.0, 0.01, "delta 0.01 is a weak promise to 287")],
)
def test_a_weak_promise_warns_its_caller(epsilon, delta, said):
    with pytest.warns(WeakPromiseWarning, match=said) as caught:
        promise(epsilon, delta, 287)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.filterwarnings("error")
def test_a_good_promise_does_not_warn():
    assert promise(5.0, None, 287) == (5.0, 1e-4)
    assert promise(1.0, 1 / 287, 287) == (1.0, 1 / 287)


# The promise is kept, and barely


@given(epsilon=epsilons, delta=deltas)
def test_analytic_keeps_the_promise_and_wastes_little(epsilon, delta):
    mu = calibrate(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-5), epsilon) > delta


@given(epsilon=epsilons, delta=deltas, share=st.floats(0.2, 3.0))
def test_delta_of_is_a_close_upper_bound(epsilon, delta, share):
    mu = calibrate(epsilon, delta) * share
    exact = exact_delta(mu, epsilon)
    if exact > 1e-250:
        assert exact <= delta_of(mu, epsilon) <= float(exact) * (1 + 1e-5)


@given(epsilon=epsilons, delta=deltas, n=st.integers(1, 10**6))
def test_the_lattice_costs_next_to_nothing(epsilon, delta, n):
    mu = calibrate(epsilon, delta, n_measurements=n)
    assert total_delta(mu, epsilon, delta, n) <= delta * (1 + 1e-12)
    assert 0 <= delta_slack(mu, epsilon, delta, n) <= delta / 100
    assert mu <= calibrate(epsilon, delta) * (1 + 1e-9)
    assert mu >= calibrate(epsilon, delta) * (1 - 1e-4)


# Order


def test_slack_grows_with_measurements_and_falls_with_sigma():
    one, many = (calibration.slack(q, 1.0, 1e-6) for q in (1, 1000))
    finer = calibration.slack(1000, 1.0, 1e-6, sigma=2.0**40)
    assert one.eta < many.eta
    assert one.eta_ball < many.eta_ball
    assert finer.eta < many.eta
    assert finer.eta_ball < many.eta_ball
    assert many.eta == 1000 / (24 * 2**60)


def test_an_epsilon_that_the_lattice_uses_up_proves_nothing():
    assert total_delta(1e-3, 1e-20, 0.01, 1) == 1.0


@given(limit=st.floats(1e-15, 1e5))
def test_a_boundary_is_between_neighbouring_floats(limit):
    assert calibration.boundary(lambda size: size <= limit) == (limit, math.nextafter(limit, math.inf))
    assert calibration.boundary(lambda _: False)[0] == 0.0
    assert calibration.boundary(lambda _: True)[1] > 1e6


# Refusals


def test_classic_refuses_large_epsilon_and_says_why():
    assert calibrate(1.0, 0.01, "classic") > 0
    with pytest.raises(ValueError, match=r"proven only for epsilon <= 1; got epsilon=1\.5.*'analytic'"):
        calibrate(1.5, 0.01, "classic")


WRONG = [-1.0, 0.0, math.nan, math.inf, "1", True]


@pytest.mark.parametrize(
    ("argument", "value"),
    [("epsilon", wrong) for wrong in (*WRONG, None, 1e6, 1e300)]
    + [("delta", wrong) for wrong in (*WRONG, None, 1.0, 1e-300, 1e-310, 5e-324)],
)
def test_bad_promises(argument, value):
    with pytest.raises(ArgumentError) as refused:
        calibrate(**{"epsilon": 1.0, "delta": 0.01, argument: value})
    assert refused.value.name == argument
    assert isinstance(refused.value, TypeError) == (value is None or isinstance(value, (str, bool)))


def test_a_promise_that_no_noise_can_keep_is_refused():
    with pytest.raises(ValueError, match=r"epsilon.*and delta.*too small"):
        calibrate(1e-14, 1e-14)


def test_an_unknown_calibration_lists_the_known_ones():
    for word in ("exact", None, "Analytic"):
        with pytest.raises(ValueError, match="calibration must be one of 'analytic', 'classic'"):
            calibrate(1.0, 0.01, word)
    assert CALIBRATIONS == ("analytic", "classic")


@pytest.mark.parametrize("epsilon", [699.0, 705.0, 724.0, 741.0, 900.0])
def test_huge_epsilons_do_not_overflow(epsilon):
    assert math.sqrt(epsilon) < calibrate(epsilon, 3e-5) < 2 * math.sqrt(epsilon)
