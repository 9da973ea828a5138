"""The noise multiplier keeps its promise in sixty digits, lattice included, and is not larger than needed.

Everything here is worked out again from the theory, with mpmath and none of the library's formulas:

* continuous noise (Balle & Wang 2018): delta_mu(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu);
* discrete noise P against rounded continuous noise R, q numbers with std sigma: P <= e^eta R everywhere with
  eta = q / (24 sigma^2), and R <= e^eta' P within the ball of radius T sigma, where
  eta' = q log(1 + 2.1 e^(-2 pi^2 sigma^2)) + T^2 / (24 sigma^2). For an event S and neighbours D, D',
      P_D(S) <= e^eta R_D(S) <= e^eta (e^eps0 R_D'(S) + delta_mu(eps0)),
      R_D'(S) <= e^eta' P_D'(S) + Pr[R outside the ball],
  so discrete noise is (eps0 + eta + eta', e^eta (delta_mu(eps0) + e^eps0 tail))-DP, for every T.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails

from cloakgp.core import calibration
from cloakgp.core.calibration import SIGMA_FLOOR, calibrate, delta_of, slack, total_delta
from cloakgp.verification.guarantee import discrete_delta as audited_delta

DIGITS = 60
EPSILONS = [1e-3, 3e-3, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 50.0, 100.0]
DELTAS = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5]
GRID = list(itertools.product(EPSILONS, DELTAS))


# ------------------------------------------------------------------------- in high precision


def Phi(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gaussian_delta(mu, epsilon):
    """The exact delta of continuous noise."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return Phi(mu / 2 - epsilon / mu) - mp.exp(epsilon) * Phi(-mu / 2 - epsilon / mu)


def outside_the_ball(q, T, sigma):
    """Pr[|R| > T sigma]: rounding moves a Gaussian vector by at most sqrt(q)/2, the rest is chi-square."""
    radius = T - mp.sqrt(q) / (2 * sigma)
    return mp.gammainc(mp.mpf(q) / 2, radius**2 / 2, mp.inf, regularized=True)


def discrete_delta(mu, epsilon, delta, q, sigma=SIGMA_FLOOR):
    """An upper bound on the delta of discrete noise; the radius is chosen here, not by the library."""
    sigma, epsilon = mp.mpf(sigma), mp.mpf(epsilon)
    # Wide enough that the tail is below 1e-7 e^-eps delta (chi: 1-Lipschitz, mean below sqrt(q)).
    T = mp.sqrt(q) + mp.sqrt(2 * (epsilon - mp.log(mp.mpf(delta)) + 7 * mp.log(10))) + 1
    eta = q / (24 * sigma**2)
    eta_ball = q * mp.log1p(mp.mpf("2.1") * mp.exp(-2 * mp.pi**2 * sigma**2)) + T**2 / (24 * sigma**2)
    left = epsilon - eta - eta_ball
    assert left > 0
    return mp.exp(eta) * (gaussian_delta(mu, left) + mp.exp(left) * outside_the_ball(q, T, sigma))


# ---------------------------------------------------------------------------------------- checks


def check_kept(mu, epsilon, delta, q=1):
    """Noise with this mu is (epsilon, delta)-DP, lattice and all."""
    with mp.workdps(DIGITS):
        assert discrete_delta(mu, epsilon, delta, q) <= mp.mpf(delta), "the promise is not kept"


def check_tight(mu, epsilon, delta):
    """A hundred-thousandth less noise would break the promise, even if it were continuous."""
    with mp.workdps(DIGITS):
        assert gaussian_delta(mp.mpf(mu) * (1 + mp.mpf("1e-5")), epsilon) > mp.mpf(delta), "wasteful"


# ----------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_promise_is_kept_and_noise_is_not_wasted_over_the_whole_range(epsilon):
    """epsilon from 0.001 to 100, delta from 1e-12 to 1/2."""
    for delta in DELTAS:
        mu = calibrate(epsilon, delta)
        check_kept(mu, epsilon, delta)
        check_tight(mu, epsilon, delta)


BEYOND = [(1e-4, 1e-12), (1e-4, 0.5), (1e-3, 1e-15), (1.0, 1e-18), (300.0, 1e-15), (300.0, 0.5), (1.0, 0.9)]
BEYOND += [(epsilon, math.nextafter(1e-300, 1.0)) for epsilon in (1e-6, 1.0, 300.0)]


@pytest.mark.parametrize(("epsilon", "delta"), BEYOND)
def test_a_promise_that_is_made_outside_of_that_range_is_still_kept(epsilon, delta):
    check_kept(calibrate(epsilon, delta), epsilon, delta)


@pytest.mark.parametrize("q", [1, 2, 30, 1000, 20_000])
def test_the_promise_is_kept_for_releases_of_many_numbers(q):
    """The lattice's slack grows with the number of measurements, and is accounted for."""
    for epsilon, delta in [(1e-3, 1e-12), (1e-3, 0.5), (1.0, 1e-6), (100.0, 1e-12), (100.0, 0.5)]:
        mu = calibrate(epsilon, delta, n_measurements=q)
        check_kept(mu, epsilon, delta, q)
        check_tight(mu, epsilon, delta)


@settings(max_examples=150, deadline=None)
@given(
    st.floats(math.log(1e-3), math.log(100)).map(math.exp),
    st.floats(math.log(1e-12), math.log(0.5)).map(math.exp),
    st.integers(1, 500),
)
def test_the_promise_is_kept_between_the_points_of_the_grid(epsilon, delta, q):
    """Random epsilon, delta and size."""
    mu = calibrate(epsilon, delta, n_measurements=q)
    check_kept(mu, epsilon, delta, q)
    check_tight(mu, epsilon, delta)


def test_the_library_never_understates_delta():
    """delta_of and total_delta are upper bounds on the exact values, also away from the calibrated mu."""
    with mp.workdps(DIGITS):
        for (epsilon, delta), factor in itertools.product(GRID[::3], (0.5, 0.99, 1.0, 1.01, 2.0)):
            mu = calibrate(epsilon, delta) * factor
            exact = gaussian_delta(mu, epsilon)
            assert delta_of(mu, epsilon) >= exact
            assert delta_of(mu, epsilon) <= exact * (1 + mp.mpf("1e-7")) + mp.mpf("1e-25")
            assert total_delta(mu, epsilon, delta, 3) >= discrete_delta(mu, epsilon, delta, 3) * (
                1 - mp.mpf("2e-6")
            )


def test_the_slack_is_no_smaller_than_the_lemma_says():
    """eta, eta' and the tail, from the lemma, for the radius that the library uses."""
    with mp.workdps(DIGITS):
        for (epsilon, delta), q in itertools.product(GRID[::7], (1, 5, 100, 3000)):
            s, sigma = slack(q, epsilon, delta), mp.mpf(SIGMA_FLOOR)
            T = mp.sqrt(24 * sigma**2 * mp.mpf(s.eta_ball))
            assert s.eta >= q / (24 * sigma**2) * (1 - mp.mpf("1e-15"))
            assert mp.log(outside_the_ball(q, T * (1 - mp.mpf("1e-15")), sigma)) <= s.log_tail


def test_the_auditors_formula_agrees_with_the_exact_one():
    """verify() has its own formula: no understatement that could pass a file with too little noise."""
    with mp.workdps(DIGITS):
        for epsilon, delta in GRID:
            mu = calibrate(epsilon, delta)
            exact = gaussian_delta(mu, epsilon)
            claimed = mp.mpf(audited_delta(mu, epsilon, delta, 1))
            assert abs(claimed - exact) <= mp.mpf("2e-6") * exact
            assert claimed <= delta  # an honest file passes


@pytest.mark.parametrize("epsilon", [e for e in EPSILONS if e <= 1])
def test_the_papers_formula_keeps_its_promise_up_to_epsilon_one(epsilon):
    """sqrt(2 log(2/delta))/epsilon where it is proven, also for large delta, where it alone would not do."""
    for delta in DELTAS:
        mu = calibrate(epsilon, delta, "classic")
        check_kept(mu, epsilon, delta)
        assert mu <= epsilon / math.sqrt(2 * math.log(2 / delta))


def test_the_papers_formula_is_not_proven_above_epsilon_one():
    """And it is false at the paper's own epsilon = 50."""
    assert fails(check_kept, 50.0 / math.sqrt(2 * math.log(2 / 0.01)), 50.0, 0.01)


# --------------------------------------------------- the lemma on discrete noise, in small cases


@pytest.mark.parametrize("sigma", ["0.8", "1.5", "2", "3.3", "10"])
def test_the_lemma_on_discrete_noise_holds_number_by_number(sigma):
    """P <= e^eta R, and R <= (1 + 2.1 e^(-2 pi^2 s^2)) e^(k^2 / 24 s^4) P, far into the tails."""
    with mp.workdps(DIGITS):
        sigma = mp.mpf(sigma)
        span = int(60 * sigma)
        mass = mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-span, span + 1))
        eta, wobble = 1 / (24 * sigma**2), 1 + mp.mpf("2.1") * mp.exp(-2 * mp.pi**2 * sigma**2)
        distance = mp.mpf(0)
        for k in range(int(12 * sigma) + 1):
            P = mp.exp(-(mp.mpf(k) ** 2) / (2 * sigma**2)) / mass
            half = mp.mpf(1) / 2
            R = Phi(-(k - half) / sigma) - Phi(-(k + half) / sigma)  # upper tails: no cancellation
            assert mp.exp(eta) * R >= P
            assert wobble * mp.exp(mp.mpf(k) ** 2 / (24 * sigma**4)) * P >= R
            distance += max(P - R, 0) * (2 if k else 1)
        assert distance <= 1 - mp.exp(-eta)


# ---------------------------------------------------------------------------------- planted bugs


@pytest.mark.parametrize(("epsilon", "delta"), GRID[::5])
def test_planted_multiplier_a_ten_thousandth_too_large_is_caught(epsilon, delta):
    """mu * 1.0001 breaks the promise everywhere on the grid."""
    mu = calibrate(epsilon, delta)
    assert fails(check_kept, mu * 1.0001, epsilon, delta)
    assert fails(check_tight, mu * 0.9999, epsilon, delta)


def _wrong_sign(mu, epsilon):
    return float(mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 + epsilon / mu))


def _without_the_factor(mu, epsilon):
    return float(mp.ncdf(mu / 2 - epsilon / mu) - mp.ncdf(-mu / 2 - epsilon / mu))


def _rounded(mu, epsilon):
    return delta_of(mu, epsilon) * (1 - 1e-4)


def _half(mu, epsilon):
    return delta_of(mu, epsilon) / 2


@pytest.mark.parametrize("formula", [_wrong_sign, _half, _rounded])
def test_planted_wrong_formulas_are_caught(monkeypatch, formula):
    """A wrong sign, half the delta, or a delta understated by 1e-4."""
    monkeypatch.setattr(calibration, "delta_of", formula)
    for epsilon, delta in [(0.5, 0.01), (1.0, 1e-5), (5.0, 0.1)]:
        assert fails(check_kept, calibrate(epsilon, delta), epsilon, delta)


def test_planted_formula_that_wastes_noise_is_caught(monkeypatch):
    """Forgetting e^eps keeps the promise and wastes noise: the check for waste sees it."""
    monkeypatch.setattr(calibration, "delta_of", _without_the_factor)
    assert fails(check_tight, calibrate(1.0, 0.01), 1.0, 0.01)


def test_planted_coarse_lattice_is_caught():
    """The slack is not idle: on a lattice with noise of 30 steps the same mu is no longer proven."""
    mu = calibrate(1.0, 1e-6)
    with mp.workdps(DIGITS):
        assert discrete_delta(mu, 1.0, 1e-6, 1) <= 1e-6 < discrete_delta(mu, 1.0, 1e-6, 1, sigma=30)


def test_planted_smaller_slack_is_caught(monkeypatch):
    """A slack of zero is below the lemma's."""
    monkeypatch.setitem(globals(), "slack", lambda q, e, d: calibration.Slack(0.0, 1e-19, -1e3))
    with pytest.raises(AssertionError):
        test_the_slack_is_no_smaller_than_the_lemma_says()
