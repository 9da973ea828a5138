"""The noise that is really added is Gaussian, of the declared size, and fresh every time.

The numbers come from ``room.add_noise``, the line that adds the noise to a release. Each check has an
analytic threshold at a false-alarm probability of 1e-7. At 50 000 draws the variance is known to 0.63 %
(one standard deviation), so a scale wrong by 3 % lies 9 of them away and is rejected almost surely.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from privacy_helpers import fails, require, small_plan
from scipy.stats import chi2, kstest, norm

from cloakgp.private import room

CALLS, WIDTH = 250, 200  # 50 000 draws
FALSE_ALARM = 1e-7
SIGMAS = [2**30, 2**40, small_plan().measurement.sigma]


def draw(add_noise, sigma, calls=CALLS, width=WIDTH):
    """Noise of many calls, one call per row, on measurements that are not zero."""
    exact = np.random.default_rng(0).integers(-(2**58), 2**58, width)
    out = np.array([add_noise(exact, sigma) for _ in range(calls)])
    require(out.dtype == np.int64, "not integers")
    return out - exact


# ---------------------------------------------------------------------------------------- checks


def check_variance(noise, sigma):
    """Sum of squares over sigma^2 is chi-square; two-sided."""
    total, n = float(np.sum((noise / sigma) ** 2)), noise.size
    assert chi2.cdf(total, n) > FALSE_ALARM / 2, "the noise is too small"
    assert chi2.sf(total, n) > FALSE_ALARM / 2, "the noise is too large"


def check_centred(noise, sigma):
    """The mean is zero: nothing is shifted."""
    z = float(noise.mean()) / sigma * math.sqrt(noise.size)
    assert 2 * norm.sf(abs(z)) > FALSE_ALARM, "the noise is not centred"


def check_shape(noise, sigma):
    """Kolmogorov-Smirnov, with the bound of Dvoretzky, Kiefer, Wolfowitz and Massart; and far tails."""
    standard = noise.ravel() / sigma
    distance = kstest(standard, norm.cdf, method="asymp").statistic
    assert 2 * math.exp(-2 * standard.size * distance**2) > FALSE_ALARM, "the noise is not Gaussian"
    largest = float(np.abs(standard).max())
    assert standard.size * 2 * norm.sf(largest) > FALSE_ALARM, "the noise has heavier tails than a Gaussian"
    assert (1 - 2 * norm.sf(largest)) ** standard.size > FALSE_ALARM, "the noise is cut off"


def check_low_bits(noise):
    """Parity, and the last three bits, are uniform."""
    for bits in (1, 3):
        counts = np.bincount((noise & (2**bits - 1)).ravel(), minlength=2**bits)
        expected = noise.size / 2**bits
        statistic = float(np.sum((counts - expected) ** 2) / expected)
        assert chi2.sf(statistic, 2**bits - 1) > FALSE_ALARM, f"the last {bits} bits are not uniform"


def check_independent(noise, sigma):
    """No correlation, of values or of their squares, between coordinates or between calls."""
    standard = noise / sigma
    for values in (standard, (standard**2 - 1) / math.sqrt(2)):
        pairs = {
            "coordinates of one call": (values[:, :-1], values[:, 1:]),
            "distant coordinates of one call": (values[:, : WIDTH // 2], values[:, WIDTH // 2 :]),
            "one call and the next": (values[:-1], values[1:]),
            "a call and one long after": (values[: CALLS // 2], values[CALLS // 2 :]),
        }
        for which, (one, other) in pairs.items():
            z = float(np.sum(one * other)) / math.sqrt(one.size)
            assert 2 * norm.sf(abs(z)) > FALSE_ALARM, f"noise of {which} is not independent"


def check_sampler(add_noise, sigma):
    """All of the above."""
    noise = draw(add_noise, sigma)
    check_variance(noise, sigma)
    check_centred(noise, sigma)
    check_shape(noise, sigma)
    check_low_bits(noise)
    check_independent(noise, sigma)


# ----------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("sigma", SIGMAS, ids=lambda sigma: f"2^{math.log2(sigma):.4g}")
def test_the_noise_of_a_release_is_gaussian_of_the_declared_size_and_fresh(sigma):
    """Size, centre, shape, low bits and independence, through the function that every release uses."""
    check_sampler(room.add_noise, sigma)


def test_repeated_releases_of_the_same_data_are_all_different():
    """No draw is ever used twice: 2000 releases, no two numbers the same."""
    plan, y = small_plan(), np.full(6, 0.3)
    drawn = np.array([plan.release(y).z for _ in range(1000)])
    assert len(np.unique(drawn)) == drawn.size  # a collision has probability 2e6 / 2^55 = 6e-11


# ---------------------------------------------------------------------------------- planted bugs


def _right(exact, sigma):
    """What nothing is wrong with, and is drawn faster than by OpenDP."""
    return exact + np.rint(np.random.default_rng().normal(size=exact.shape) * sigma).astype(np.int64)


def _scaled(factor):
    return lambda exact, sigma: _right(exact, factor * sigma)


def _laplace(exact, sigma):
    noise = np.random.default_rng().laplace(scale=sigma / math.sqrt(2), size=exact.shape)
    return exact + np.rint(noise).astype(np.int64)


def _uniform(exact, sigma):
    half = math.sqrt(3) * sigma
    return exact + np.rint(np.random.default_rng().uniform(-half, half, exact.shape)).astype(np.int64)


def _even(exact, sigma):
    return exact + 2 * (_right(np.zeros_like(exact), sigma) // 2)


def _float_steps(exact, sigma):
    """Few random bits scaled up, as from 32-bit uniforms."""
    return exact + np.rint(np.float32(np.random.default_rng().normal(size=exact.shape)) * sigma).astype(
        np.int64
    )


def _cut_off(exact, sigma):
    noise = _right(np.zeros_like(exact), sigma)
    return exact + np.clip(noise, -3 * int(sigma), 3 * int(sigma))


def _one_draw_for_all(exact, sigma):
    return exact + _right(np.zeros(1, dtype=np.int64), sigma)


def _seeded(exact, sigma):
    return exact + np.rint(np.random.default_rng(7).normal(size=exact.shape) * sigma).astype(np.int64)


def _stale():
    """A buffer that is refilled only every other call."""
    buffer = []

    def add_noise(exact, sigma):
        if not buffer:
            buffer.extend([_right(np.zeros_like(exact), sigma)] * 2)
        return exact + buffer.pop()

    return add_noise


def _shifted(exact, sigma):
    return _right(exact, sigma) + int(sigma) // 20


BUGS = {  # and what the check must say of each
    "scale 3 % too large": (_scaled(1.03), "too large"),
    "scale 3 % too small": (_scaled(0.97), "too small"),
    "Laplace of the same variance": (_laplace, "not Gaussian"),
    "uniform of the same variance": (_uniform, "not Gaussian"),
    "rounded to multiples of 2": (_even, "bits are not uniform"),
    "few random bits": (_float_steps, "bits are not uniform"),
    "cut off at three standard deviations": (_cut_off, "cut off"),
    "the same draw for every measurement": (_one_draw_for_all, ""),
    "the same draws in every call": (_seeded, ""),
    "the same draws in two calls running": (_stale(), "not independent"),
    "shifted by a twentieth of its size": (_shifted, "not centred"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_wrong_noise_is_caught(bug):
    """Each of these would pass for noise at a glance, and each is rejected."""
    add_noise, because = BUGS[bug]
    check_sampler(_right, 2**40)
    assert fails(check_sampler, add_noise, 2**40, because=because)


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_the_check_of_the_size_has_the_power_it_claims(factor):
    """A scale wrong by 3 % is rejected with probability above 99.9 %: by the chi-square law itself."""
    n = CALLS * WIDTH
    low, high = chi2.ppf(FALSE_ALARM / 2, n), chi2.isf(FALSE_ALARM / 2, n)
    missed = chi2.cdf(high / factor**2, n) - chi2.cdf(low / factor**2, n)
    assert missed < 1e-3
