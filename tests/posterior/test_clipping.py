"""Lines through clipped and linked outcomes, and what they leave over: closed forms, and many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from cloakgp.model.outcome import REAL, Count, YesNo
from cloakgp.posterior.clipping import Direct, law_of

MEAN, F, NOISE = (
    np.array([1.0, -0.5, 4.0]),
    np.array([[2.0, 1.2, 0.6], [1.2, 1.5, -0.4], [0.6, -0.4, 1.0]]),
    0.5,
)
COUNTS = np.array([1.0, 3.0, 2.0])
WINDOW = np.array([0.2, -1.5, 4.5]), np.array([1.9, 1.0, 6.0])
FAR = Direct((-100.0, 100.0), 0.0)
OPEN = np.full(4, -np.inf), np.full(4, np.inf)


def draws(n):
    """(n, rows) outcomes at each input, and the same clipped to the windows."""
    rng = np.random.default_rng(4)
    f = rng.multivariate_normal(MEAN, F, size=n)
    outcomes = [
        f[:, [g]] + np.sqrt(NOISE) * rng.normal(size=(n, int(count))) for g, count in enumerate(COUNTS)
    ]
    return outcomes, [np.clip(y, WINDOW[0][g], WINDOW[1][g]) for g, y in enumerate(outcomes)]


def test_the_line_and_the_leftover_errors_are_those_of_draws():
    line, own = FAR.linearise(MEAN, np.diag(F), NOISE, WINDOW)
    assert own is None
    outcomes, clipped = draws(400_000)
    sums = []
    for g, (y, c) in enumerate(zip(outcomes, clipped, strict=True)):
        assert c.mean() == pytest.approx(line.centre[g], abs=5e-3)
        slope = np.cov(y[:, 0], c[:, 0])
        assert slope[0, 1] / slope[0, 0] == pytest.approx(line.slope[g], abs=5e-3)
        e = c - line.centre[g] - line.slope[g] * (y - MEAN[g])
        assert e[:, 0].var() == pytest.approx(line.left[g], rel=0.02)
        sums.append(e.sum(axis=1))
    np.testing.assert_allclose(line.of_sums(F, COUNTS), np.cov(sums), rtol=0.03, atol=4e-3)


@pytest.mark.parametrize("middle", [0.0, 3.0])
def test_an_edge_that_is_the_bound_clips_nothing(middle):
    mean, variance, window = np.zeros(2), np.ones(2), (np.array([-0.5] * 2), np.array([0.75] * 2))

    def within(low, high):
        return Direct((middle + low, middle + high), middle).linearise(mean, variance, 0.0, window)[0]

    line = within(-0.5, 0.75)
    np.testing.assert_array_equal(line.slope, 1.0)
    np.testing.assert_allclose([line.centre, line.left], 0.0, atol=1e-12)
    assert within(-100.0, 100.0).slope[0] < 0.5
    assert within(-0.5, 100.0).slope[0] == pytest.approx(0.773, abs=1e-3)  # Pr[y < 0.75]


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_any_unit_will_do(unit):
    line, scaled = (
        Direct((-100.0 * u, 100.0 * u), 0.0).linearise(
            MEAN * u, np.diag(F) * u**2, NOISE * u**2, (WINDOW[0] * u, WINDOW[1] * u)
        )[0]
        for u in (1.0, unit)
    )
    left = scaled.of_sums(F * unit**2, COUNTS) / unit**2
    np.testing.assert_allclose(left, line.of_sums(F, COUNTS), rtol=1e-9)


def test_a_window_far_from_what_is_expected_says_nothing_and_breaks_nothing():
    window = np.array([90.0]), np.array([91.0])
    line = FAR.linearise(np.zeros(1), np.ones(1), 0.0, window)[0]
    assert line.slope[0] == 0.0
    assert np.isfinite(line.of_sums(np.array([[0.5]]), np.array([3.0]))).all()


def test_the_mean_of_cut_distances_is_that_of_draws():
    drawn = np.random.default_rng(0).normal(size=(400_000, 1)) * [0.3, 1.0, 5.0] + 0.4
    centre = np.array([0.4, 1.0, -2.0])
    expected = np.minimum(np.abs(drawn - centre), 1.2).mean(axis=0)
    found = FAR.distance(np.full(3, 0.4), np.array([0.09, 1.0, 25.0]), centre, 1.2)
    np.testing.assert_allclose(found[0], expected[0], atol=3e-3)
    # Where an outcome is not expected at the centre, as if it were, and scattered by as much more.
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0.1)


def test_a_probit_has_closed_forms_wherever_f_is_counted_from():
    mean, variance = np.array([-2.0, -0.5, 0.0, 1.5]), np.array([0.3, 1.0, 2.0, 0.01])
    for middle in (0.0, 1.0):
        line, scatter = law_of(YesNo(), (0.0, 1.0), middle).linearise(mean - middle, variance, 1.0, OPEN)
        at = mean / np.sqrt(1 + variance)
        np.testing.assert_allclose(line.centre, ndtr(at), rtol=1e-9)
        np.testing.assert_allclose(line.slope, norm.pdf(at) / np.sqrt(1 + variance), rtol=1e-9)
        # An outcome's variance is that of its probability and its own together.
        total = line.slope**2 * variance + line.left
        np.testing.assert_allclose(total, ndtr(at) * (1 - ndtr(at)), rtol=1e-9)
        assert (scatter < total).all()


def test_a_rate_has_closed_forms_and_is_no_larger_than_the_bound():
    mean, variance = np.log([0.5, 2.0, 5.0, 0.1]), np.array([0.1, 0.5, 0.2, 0.01])
    line, scatter = law_of(Count(), (0.0, 1e9), 0.0).linearise(mean, variance, 3.0, OPEN)
    rate = np.exp(mean + variance / 2)
    np.testing.assert_allclose(line.centre, rate, rtol=1e-9)
    np.testing.assert_allclose(line.slope, rate, rtol=1e-9)
    np.testing.assert_allclose(scatter, 3 * rate, rtol=1e-9)
    bent = rate**2 * (np.expm1(variance) - variance)
    np.testing.assert_allclose(line.left, scatter + bent, rtol=1e-8)
    np.testing.assert_allclose((line.terms**2).sum(axis=0), bent, rtol=1e-3)  # by Mehler's series
    one = law_of(Count(), (0.0, 50.0), 0.0).linearise(np.full(4, 9.0), np.full(4, 0.1), 1.0, OPEN)[0]
    np.testing.assert_allclose(one.centre, 50.0)


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_clipped_counts_as_drawn(noise):
    rng = np.random.default_rng(0)
    rates, low, high = np.array([0.4, 2.0, 6.0]), 0.8, 5.5
    drawn = rng.gamma(rates / noise, noise, size=(400_000, 3))
    mean, variance = Count().clipped(rates, noise, np.array(low), np.array(high))
    np.testing.assert_allclose(mean, np.clip(drawn, low, high).mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(variance, np.clip(drawn, low, high).var(axis=0), rtol=0.02)
    centre = np.array([1.0, 2.5, 4.0])
    expected = np.minimum(np.abs(drawn - centre), 3.0).mean(axis=0)
    found = Count().distance(rates, noise * rates, centre, 3.0)
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_what_is_expected_of_an_outcome_is_that_of_draws():
    rng = np.random.default_rng(1)
    mean, variance = np.array([-0.5, 1.0]), np.array([0.4, 0.1])
    f = rng.normal(mean, np.sqrt(variance), size=(400_000, 2))
    for outcome, given_f in ((REAL, f), (YesNo(), ndtr(f)), (Count(), np.exp(f))):
        at, apart, _ = law_of(outcome, (0.0, 1e9), 0.0).moments(mean, variance, 1.0)
        np.testing.assert_allclose(at, given_f.mean(axis=0), rtol=0.02, atol=3e-3)
        np.testing.assert_allclose(apart, given_f.var(axis=0), rtol=0.02)
