"""Lines through a link: against closed forms, and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from cloakgp.model.outcome import LINKS
from cloakgp.posterior.linking import Linked

MEAN, VARIANCE = np.array([-2.0, -0.5, 0.0, 1.5]), np.array([0.3, 1.0, 2.0, 0.01])
OPEN = np.full(4, -np.inf), np.full(4, np.inf)


def test_a_probit_has_closed_forms():
    line, scatter = Linked(LINKS["yes/no"], (0.0, 1.0), 0.0).linearise(MEAN, VARIANCE, 1.0, OPEN)
    at = MEAN / np.sqrt(1 + VARIANCE)
    np.testing.assert_allclose(line.centre, ndtr(at), rtol=1e-9)
    np.testing.assert_allclose(line.slope, norm.pdf(at) / np.sqrt(1 + VARIANCE), rtol=1e-9)
    # An outcome's variance is that of its probability and its own together.
    total = line.slope**2 * VARIANCE + line.left
    np.testing.assert_allclose(total, ndtr(at) * (1 - ndtr(at)), rtol=1e-9)
    assert (scatter < total).all()


def test_a_rate_has_closed_forms():
    mean, variance = np.log([0.5, 2.0, 5.0, 0.1]), np.array([0.1, 0.5, 0.2, 0.01])
    line, scatter = Linked(LINKS["count"], (0.0, 1e9), 0.0).linearise(mean, variance, 3.0, OPEN)
    rate = np.exp(mean + variance / 2)
    np.testing.assert_allclose(line.centre, rate, rtol=1e-9)
    np.testing.assert_allclose(line.slope, rate, rtol=1e-9)
    np.testing.assert_allclose(scatter, 3 * rate, rtol=1e-9)
    bent = rate**2 * (np.expm1(variance) - variance)
    np.testing.assert_allclose(line.left, scatter + bent, rtol=1e-8)
    np.testing.assert_allclose((line.terms**2).sum(axis=0), bent, rtol=1e-3)  # by Mehler's series


def test_f_is_counted_from_the_middle():
    there = Linked(LINKS["yes/no"], (0.0, 1.0), 1.0).linearise(MEAN - 1, VARIANCE, 1.0, OPEN)[0]
    here = Linked(LINKS["yes/no"], (0.0, 1.0), 0.0).linearise(MEAN, VARIANCE, 1.0, OPEN)[0]
    np.testing.assert_allclose(there.centre, here.centre, rtol=1e-12)


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_clipped_counts_as_drawn(noise):
    rng = np.random.default_rng(0)
    rates, low, high = np.array([0.4, 2.0, 6.0]), 0.8, 5.5
    drawn = rng.gamma(rates / noise, noise, size=(400_000, 3))
    mean, variance = LINKS["count"].clipped(rates, noise, np.array(low), np.array(high))
    np.testing.assert_allclose(mean, np.clip(drawn, low, high).mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(variance, np.clip(drawn, low, high).var(axis=0), rtol=0.02)
    centre = np.array([1.0, 2.5, 4.0])
    expected = np.minimum(np.abs(drawn - centre), 3.0).mean(axis=0)
    found = LINKS["count"].distance(rates, noise * rates, centre, 3.0)
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_two_values_clipped_are_two_values():
    p, low, high = np.array([0.1, 0.9]), np.array(0.2), np.array(0.7)
    mean, variance = LINKS["yes/no"].clipped(p, 1.0, low, high)
    np.testing.assert_allclose(mean, 0.2 + 0.5 * p)
    np.testing.assert_allclose(variance, 0.25 * p * (1 - p))


def test_a_rate_is_no_larger_than_the_bound():
    line, _ = Linked(LINKS["count"], (0.0, 50.0), 0.0).linearise(
        np.array([9.0]), np.array([0.1]), 1.0, (OPEN[0][:1], OPEN[1][:1])
    )
    assert line.centre[0] == pytest.approx(50.0)
