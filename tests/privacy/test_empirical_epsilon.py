"""An adversary who sees many releases does not beat the promised (epsilon, delta).

The adversary knows all outcomes but one, which is at either end of the bounds, in the row where it
matters most, and uses the best test there is: z projected on that row's column, against a threshold.
(epsilon, delta)-DP says that its true-positive rate is at most e^epsilon times its false-positive rate plus
delta. From many releases, exact (Clopper-Pearson) limits on both rates give a lower limit on epsilon that
holds with probability 1 - 1e-6. It must lie below the promise; with too little noise it lies above.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from privacy_helpers import (
    columns,
    exact_measurements,
    fails,
    small_merged_plan,
    small_plan,
    worst_neighbours,
    worst_row,
)
from scipy.stats import beta

from cloakgp.private import room

CONFIDENCE = 1e-6


def epsilon_lower_limit(null, alternative, thresholds, delta):
    """Largest epsilon that the two samples rule out, at any of the thresholds (fixed in advance)."""
    alpha, best = CONFIDENCE / (2 * len(thresholds)), 0.0
    for threshold in thresholds:
        false, true = int(np.sum(null > threshold)), int(np.sum(alternative > threshold))
        highest = beta.isf(alpha, false + 1, len(null) - false)
        lowest = beta.ppf(alpha, true, len(alternative) - true + 1) if true else 0.0
        if lowest > delta:
            best = max(best, math.log((lowest - delta) / highest))
    return best


def statistics(plan, zs):
    """z projected on the worst row's column, centred on the first neighbour, in noise std."""
    m = plan.measurement
    column = np.array(columns(plan)[worst_row(plan)], dtype=float)
    y, _ = worst_neighbours(plan)
    centred = (np.asarray(zs) - np.array(exact_measurements(plan, y))).astype(float)
    return centred @ (column / np.linalg.norm(column)) / m.sigma


def thresholds(plan):
    """At and below the place where the likelihood ratio is e^epsilon (the best one by Neyman and Pearson).

    Lower thresholds see more positives, so that the limits on both rates are closer.
    """
    m = plan.measurement
    best = m.epsilon / m.mu() + m.mu() / 2
    return [best - 1.0, best - 0.7, best - 0.4]


def release_each(plan, y, n):
    """n whole releases."""
    return [plan.release(y).z for _ in range(n)]


def release_in_bulk(plan, y, n):
    """n draws through the private room's own functions, many at a time, for larger samples."""
    y_int = room.to_integers(y, plan.measurement.lattice)
    exact = np.tile(plan.measurement.matrix @ y_int, n)
    return room.add_noise(exact, plan.measurement.sigma).reshape(n, -1)


def check_epsilon(plan, release, n, pair=None):
    """The lower limit from n releases of each neighbour is below the promise; returns it."""
    y, y_prime = pair or worst_neighbours(plan)
    samples = [statistics(plan, release(plan, data, n)) for data in (y, y_prime)]
    limit = epsilon_lower_limit(*samples, thresholds(plan), plan.certificate.delta)
    assert limit <= plan.certificate.epsilon, "releases tell neighbours apart better than promised"
    return limit


# Promise, how to draw, sample size, and a limit that a working attack gets past. The sizes are such that
# planted noise of 0.7 times the right size is missed with probability below 1e-6, and the attack
# on the right noise falls short of the last number with probability below 1e-6.
CASES = {
    "whole releases": ({"epsilon": 1.0, "delta": 0.1, "n_rows": 5}, release_each, 8000, 0.4),
    "in bulk": ({"epsilon": 1.0, "delta": 0.01, "n_outputs": 1}, release_in_bulk, 60_000, 0.55),
    "large epsilon": ({"epsilon": 4.0, "delta": 0.1}, release_in_bulk, 20_000, 2.5),
    "volume": ({"epsilon": 1.0, "delta": 0.1, "design": "volume"}, release_in_bulk, 8000, 0.4),
}
every_case = (
    pytest.mark.parametrize(  # whole releases cost half a millisecond each; the others are drawn in bulk
        "case",
        [
            pytest.param(case, marks=[pytest.mark.slow] if release is release_each else [])
            for case, (_, release, *_) in CASES.items()
        ],
    )
)


@every_case
def test_the_best_attack_on_the_worst_neighbours_stays_below_the_promise(case):
    """And comes near it: the attack is a working one, and the noise is not far larger than needed."""
    promise, release, n, least = CASES[case]
    limit = check_epsilon(small_plan(**promise), release, n)
    assert limit > least


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior", [{}, {"inducing": [[0.1], [0.9]], "approximation": "fitc"}], ids=["exact", "fitc"]
)
def test_one_of_many_equal_rows_is_as_well_hidden(monkeypatch, prior):
    """Whole releases in which rows share columns; and noise that is too small is seen here too."""
    plan = small_merged_plan(epsilon=1.0, delta=0.1, repeats=(5, 3), **prior)
    assert check_epsilon(plan, release_each, 8000) > 0.4
    monkeypatch.setattr(room, "add_noise", _less_noise)
    assert fails(check_epsilon, plan, release_each, 8000)


# ---------------------------------------------------------------------------------- planted bugs


def _less_noise(exact, sigma):
    """Drawn by numpy, which is faster."""
    noise = np.random.default_rng().normal(size=exact.shape) * 0.7 * sigma
    return exact + np.rint(noise).astype(np.int64)


@every_case
def test_planted_noise_thirty_percent_too_small_is_caught(monkeypatch, case):
    """The same attack, the same number of releases: the limit passes the promise."""
    promise, release, n, _ = CASES[case]
    monkeypatch.setattr(room, "add_noise", _less_noise)
    assert fails(check_epsilon, small_plan(**promise), release, n)


def test_an_outcome_far_outside_the_bounds_gives_the_attack_nothing_more():
    """Clipping holds: a neighbour with an outcome at three times the range is no easier to tell."""
    plan = small_plan(epsilon=1.0, delta=0.1)
    y, y_prime = worst_neighbours(plan)
    y_prime[worst_row(plan)] = 3.0  # of bounds (0, 1); much larger ones would wrap if not clipped
    check_epsilon(plan, release_in_bulk, 8000, (y, y_prime))


def test_planted_missing_clip_is_caught(monkeypatch):
    """Without clipping, an outcome at three times the range moves as much further than the noise allows."""
    plan = small_plan(epsilon=1.0, delta=0.1)
    y, y_prime = worst_neighbours(plan)
    y_prime[worst_row(plan)] = 3.0
    top = 2**plan.measurement.y_bits
    monkeypatch.setattr(room, "to_integers", lambda y, m: np.rint(y * top).astype(np.int64))
    assert fails(check_epsilon, plan, release_in_bulk, 8000, (y, y_prime))


def test_the_limit_itself_is_right_for_gaussian_noise_of_known_size():
    """On samples of N(0, 1) and N(mu, 1) it stays below the exact epsilon, and nears it with many samples."""
    random = np.random.default_rng(0)
    plan = small_plan(epsilon=1.0, delta=0.1)
    mu = plan.measurement.mu()
    best = [1.0 / mu + mu / 2]
    limits = [
        epsilon_lower_limit(random.normal(size=n), mu + random.normal(size=n), best, 0.1)
        for n in (10**3, 10**4, 10**6)
    ]
    assert limits[0] < limits[1] < limits[2] < 1.0
    assert limits[2] > 0.95
