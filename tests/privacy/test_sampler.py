"""The noise that is really added follows its law, is of the declared size, and fresh every time.

The numbers come from the private room's own functions, the lines that add noise to a release. Each check has
an analytic threshold at a false-alarm probability of 1e-7. At 50,000 draws a scale is known to half a
percent, so one that is wrong by 5 % lies some ten standard deviations away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from privacy_helpers import fails, require, small_plan
from scipy import stats
from scipy.stats import chi2, kstest, norm

from cloakgp import binning
from cloakgp.private import room

CALLS, WIDTH = 250, 200  # 50,000 draws
FALSE_ALARM = 1e-7
FAST = np.random.default_rng()  # for what nothing is wrong with, and is drawn faster than by OpenDP


@dataclass(frozen=True)
class Law:
    name: str
    shape: Any
    power: int
    """The sum of absolute values to this power is chi-square, times `power` if it is Laplace's."""
    scales: tuple[int, ...]

    def add(self, exact, scale):
        return getattr(room, self.name)(exact, scale)

    def size(self, standard):
        """A statistic of the scale, and its degrees of freedom."""
        total = float(np.sum(np.abs(standard) ** self.power))
        return (total, standard.size) if self.power == 2 else (2 * total, 2 * standard.size)

    def right(self, exact, scale):
        return exact + np.rint(self.shape.rvs(exact.shape, random_state=FAST) * scale).astype(np.int64)


def bins(epsilon):
    return binning.plan([0.0, 1.0, 2.0], X_star=[1.0], edges=3, bounds=(0.0, 1.0), epsilon=epsilon)


LAWS = {
    "Gaussian": Law("add_noise", stats.norm(), 2, (2**30, 2**40, small_plan().measurement.sigma)),
    "Laplace": Law(
        "add_laplace", stats.laplace(), 1, (2**12, *(bins(e).measurement.sigma for e in (1.0, 1e-6)))
    ),
}


def check_size(standard, law):
    total, degrees = law.size(standard)
    assert chi2.cdf(total, degrees) > FALSE_ALARM / 2, "the noise is too small"
    assert chi2.sf(total, degrees) > FALSE_ALARM / 2, "the noise is too large"
    z = float(standard.mean()) / law.shape.std() * math.sqrt(standard.size)
    assert 2 * norm.sf(abs(z)) > FALSE_ALARM, "the noise is not centred"


def check_shape(standard, law):
    """Kolmogorov-Smirnov, with the bound of Dvoretzky, Kiefer, Wolfowitz and Massart; and far tails."""
    distance = kstest(standard.ravel(), law.shape.cdf, method="asymp").statistic
    assert 2 * math.exp(-2 * standard.size * distance**2) > FALSE_ALARM, "the noise is of another law"
    beyond = 2 * law.shape.sf(float(np.abs(standard).max()))
    assert standard.size * beyond > FALSE_ALARM, "the noise has heavier tails"
    assert (1 - beyond) ** standard.size > FALSE_ALARM, "the noise is cut off"


def check_low_bits(noise):
    """Parity, and the last three bits, are uniform."""
    for bits in (1, 3):
        counts = np.bincount((noise & (2**bits - 1)).ravel(), minlength=2**bits)
        expected = noise.size / 2**bits
        statistic = float(np.sum((counts - expected) ** 2) / expected)
        assert chi2.sf(statistic, 2**bits - 1) > FALSE_ALARM, f"the last {bits} bits are not uniform"


def check_independent(standard, law):
    """No correlation, of values or of their sizes, between coordinates or between calls.

    Of their ranks, which are bounded: so their sums are nearly normal whatever the law.
    """
    ranks = law.shape.cdf(standard)
    for values in (ranks, np.abs(2 * ranks - 1)):
        values = (values - 0.5) * math.sqrt(12)
        pairs = {
            "coordinates of one call": (values[:, :-1], values[:, 1:]),
            "distant coordinates of one call": (values[:, : WIDTH // 2], values[:, WIDTH // 2 :]),
            "one call and the next": (values[:-1], values[1:]),
            "a call and one long after": (values[: CALLS // 2], values[CALLS // 2 :]),
        }
        for which, (one, other) in pairs.items():
            z = float(np.sum(one * other)) / math.sqrt(one.size)
            assert 2 * norm.sf(abs(z)) > FALSE_ALARM, f"noise of {which} is not independent"


def check_sampler(add, law, scale):
    """All of the above, of many calls, one call per row, on measurements that are not zero."""
    exact = np.random.default_rng(0).integers(-(2**58), 2**58, WIDTH)
    noise = np.array([add(exact, scale) for _ in range(CALLS)]) - exact
    require(noise.dtype == np.int64, "not integers")
    standard = noise / scale
    check_size(standard, law)
    check_shape(standard, law)
    check_low_bits(noise)
    check_independent(standard, law)


@pytest.mark.parametrize(("law", "scale"), [(law, scale) for law in LAWS for scale in LAWS[law].scales])
def test_the_noise_of_a_release_follows_its_law_and_is_fresh(law, scale):
    check_sampler(LAWS[law].add, LAWS[law], scale)


def test_repeated_releases_of_the_same_data_are_all_different():
    """No draw is ever used twice: 1000 releases, no two numbers the same."""
    plan, y = small_plan(), np.full(6, 0.3)
    drawn = np.array([plan.release(y).z for _ in range(1000)])
    assert len(np.unique(drawn)) == drawn.size  # a collision has probability 2e6 / 2^55 = 6e-11


# ---------------------------------------------------------------------------------- planted bugs


def of_another_law(shape):
    return lambda law: lambda e, s: e + np.rint(shape.rvs(e.shape, random_state=FAST) * s).astype(np.int64)


def zeros(law, exact, scale):
    return law.right(np.zeros_like(exact), scale)


def stale(law):
    """A buffer that is refilled only every other call."""
    buffer = []

    def add(exact, scale):
        if not buffer:
            buffer.extend([zeros(law, exact, scale)] * 2)
        return exact + buffer.pop()

    return add


def few_random_bits(law):
    """Scaled up, as from 32-bit uniforms."""
    return lambda e, s: e + np.rint(np.float32(zeros(law, e, s) / s) * s).astype(np.int64)


def cut_off(law):
    """At three standard deviations, or six times the scale."""
    return lambda e, s: e + np.clip(zeros(law, e, s), -6 // law.power * int(s), 6 // law.power * int(s))


def seeded(law):
    return lambda e, s: e + np.rint(law.shape.rvs(e.shape, random_state=7) * s).astype(np.int64)


BUGS = {  # and what the check must say of each
    "scale 5 % too large": (lambda law: lambda e, s: law.right(e, 1.05 * s), "too large"),
    "scale 5 % too small": (lambda law: lambda e, s: law.right(e, 0.95 * s), "too small"),
    "uniform of the same variance": (of_another_law(stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))), ""),
    "one-sided": (of_another_law(stats.expon()), ""),
    "rounded to multiples of 2": (lambda law: lambda e, s: e + 2 * (zeros(law, e, s) // 2), "bits"),
    "few random bits": (few_random_bits, "bits"),
    "cut off": (cut_off, "cut off"),
    "one draw for all": (lambda law: lambda e, s: e + law.right(np.zeros(1, dtype=np.int64), s), ""),
    "a fixed seed": (seeded, ""),
    "the same draws in two calls running": (stale, "not independent"),
    "shifted by a twentieth of its size": (
        lambda law: lambda e, s: law.right(e, s) + int(s) // 20,
        "not centred",
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_planted_wrong_noise_is_caught(law):
    """Each of these would pass for noise at a glance; so would the other law's, of the same size."""
    own, (other,) = LAWS[law], (LAWS[name] for name in LAWS if name != law)
    check_sampler(own.right, own, 2**40)
    for bug, (add, because) in BUGS.items():
        assert fails(check_sampler, add(own), own, 2**40, because=because), bug
    factor = math.sqrt(math.pi / 2) if own.power == 1 else math.sqrt(1 / 2)
    assert fails(check_sampler, lambda e, s: other.right(e, factor * s), own, 2**40, because="another law")
