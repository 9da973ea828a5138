"""The low bits of what is released do not tell which of two data sets it came from.

Mironov (2012): ``m + noise`` in floating point can reach only some floats, and which ones depends on m. For
m = 1 and an output v below 1/2 the sum is exact (Sterbenz), so v is a multiple of 2^-53; an output that is
not can only have come from elsewhere. The attack below asks, for each of two candidate inputs, whether any
float of noise could have given the output, and is *certain* when only one of them could. It succeeds
against noise added in floating point, and must learn nothing from ``release.mean`` and ``release.z``.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from privacy_helpers import exact_measurements, fails, require, small_plan, with_answer, worst_neighbours
from scipy.stats import chi2_contingency, fisher_exact

from cloakgp.private import room

N = 2000
FALSE_ALARM = 1e-7  # per test: a failure is news


# ------------------------------------------------------------------------------------- the attack


def reachable(output, candidate):
    """Whether some float g exists with candidate + g == output, in floating point."""
    g = output - candidate
    tries = [g]
    below = above = g
    for _ in range(4):
        below, above = np.nextafter(below, -np.inf), np.nextafter(above, np.inf)
        tries += [below, above]
    return np.any([candidate + t == output for t in tries], axis=0)


def verdicts(outputs, first, second):
    """-1: surely the first input; +1: surely the second; 0: cannot tell."""
    return reachable(outputs, second).astype(int) - reachable(outputs, first).astype(int)


def magnitudes(outputs, first, second):
    """Sign and binary exponent of an output and of the noise that each input would need for it."""
    parts = []
    for value in (outputs, outputs - first, outputs - second):
        parts += [np.sign(value).astype(int), np.frexp(value)[1]]
    return list(zip(*(part.tolist() for part in parts), strict=True))


def check_no_certain_verdicts(from_first, from_second, first, second):
    """The attack's verdicts are as frequent on outputs of either input.

    That outputs of some size are more frequent under one of the inputs is what (epsilon, delta) allows; so
    outputs for which all floats involved have the same exponents are compared with each other. Among
    them, only the low bits could tell. Fisher's exact test, one per combination.
    """
    tables: dict[tuple[int, ...], np.ndarray] = {}
    for source, outputs in enumerate((from_first, from_second)):
        found = verdicts(outputs, first, second)
        for key, verdict in zip(magnitudes(outputs, first, second), found, strict=True):
            tables.setdefault(key, np.zeros((2, 2), dtype=int))[source, int(verdict != 0)] += 1
    comparable = [table for table in tables.values() if table.sum(axis=1).min() >= 20]
    require(len(comparable) >= 4, "too few outputs to compare")
    for table in comparable:
        p = fisher_exact(table).pvalue
        assert p > FALSE_ALARM / len(comparable), "the low bits tell the inputs apart"


def check_low_bits(from_first, from_second):
    """The last bits of integers are as frequent under either input (chi-square, 1 to 8 bits)."""
    for bits in (1, 3, 8):
        last = [np.asarray(outputs) & (2**bits - 1) for outputs in (from_first, from_second)]
        counts = np.array([np.bincount(values, minlength=2**bits) for values in last])
        p = chi2_contingency(counts[:, counts.any(axis=0)]).pvalue
        assert p > FALSE_ALARM, f"the last {bits} bits tell the inputs apart"


# ------------------------------------------------------- against noise added in floating point


def naive(value, random, n=20_000):
    """What a straightforward implementation releases."""
    return value + random.normal(size=n)


def test_the_attack_is_certain_and_right_against_floating_point_noise():
    """Of two inputs, 0 and 1, it names the right one for a good share of outputs and never the wrong one."""
    random = np.random.default_rng(0)
    on_first = verdicts(naive(0.0, random), 0.0, 1.0)
    on_second = verdicts(naive(1.0, random), 0.0, 1.0)
    assert np.mean(on_first == -1) > 0.10
    assert not (on_first == 1).any()
    assert not (on_second == -1).any()


@pytest.mark.parametrize("pair", [(0.0, 1.0), (0.1, 1.0), (0.3, 2.7)])
def test_planted_floating_point_noise_is_caught(pair):
    """The check that cloakgp must pass rejects noise added in floating point."""
    random = np.random.default_rng(1)
    assert fails(check_no_certain_verdicts, *(naive(m, random) for m in pair), *pair)


def test_planted_lattice_that_shows_the_input_is_caught():
    """Noise on a coarser lattice than the measurements leaves the measurement's own low bits."""
    random = np.random.default_rng(2)
    noise = np.rint(random.normal(size=(2, N)) * 2**30).astype(np.int64)
    assert not fails(check_low_bits, noise[0] + 12345, noise[1] + 54320)
    assert fails(check_low_bits, 2 * noise[0] + 12345, 2 * noise[1] + 54320)
    assert fails(check_low_bits, 256 * noise[0] + 12344, 256 * noise[1] + 54320)


# ------------------------------------------------------------------------------ against cloakgp


def neighbours(plan):
    """Two data sets that differ in one row: predictions near 0 and away from it, as the attack likes.

    The outcomes are not on a coarse grid, and the first measurement is even for one and odd for the other:
    noise that is coarser than the lattice would show which.
    """
    y = np.array([0.0123, -0.0345, 0.0211, -0.0077])
    for row, outcome in itertools.product(range(len(y)), np.linspace(0.98, 0.99, 20)):
        y_prime = y.copy()
        y_prime[row] = outcome
        if (exact_measurements(plan, y)[0] - exact_measurements(plan, y_prime)[0]) % 2:
            return y, y_prime
    raise RuntimeError("no neighbours with measurements of different parity")


@pytest.fixture(scope="module")
def released():
    """Many releases of each of two neighbouring data sets, and their predictions without noise."""
    plan = small_plan(n_rows=4, n_outputs=2, bounds=(-1.0, 1.0), epsilon=2.0, delta=0.1)
    pairs = []
    for data in neighbours(plan):
        without_noise = with_answer(plan, exact_measurements(plan, data)).mean[0]
        releases = [plan.release(data) for _ in range(N)]
        means, zs = np.array([r.mean[0] for r in releases]), np.array([r.z[0] for r in releases])
        pairs.append((float(without_noise), means, zs))
    return plan, pairs


def test_the_attack_would_work_on_these_data_with_floating_point_noise(released):
    """The same predictions with the same amount of noise, added in floating point, are told apart."""
    plan, ((first, _, _), (second, _, _)) = released
    random = np.random.default_rng(3)
    outputs = [m + random.normal(size=N) * plan.noise_std[0] for m in (first, second)]
    assert fails(check_no_certain_verdicts, *outputs, first, second)


def test_low_bits_of_released_means_do_not_tell_neighbours_apart(released):
    """The attack's verdicts on release.mean come as often from either data set."""
    _, ((first, means, _), (second, means_prime, _)) = released
    check_no_certain_verdicts(means, means_prime, first, second)


def test_low_bits_of_released_integers_do_not_tell_neighbours_apart(released):
    """The last bits of release.z are uniform whatever the data."""
    _, ((_, _, zs), (_, _, zs_prime)) = released
    check_low_bits(zs, zs_prime)


def test_a_release_is_a_function_of_z_and_the_public_plan_alone(monkeypatch):
    """Two data sets that happen to give the same z give the same release, bit for bit."""
    plan = small_plan(n_outputs=3)
    y, y_prime = worst_neighbours(plan)
    z = plan.release(y).z
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: np.array(z))
    one, other = plan.release(y), plan.release(y_prime)
    assert pickle.dumps(one) == pickle.dumps(other)
    rebuilt = with_answer(plan, z)
    for name in ("mean", "noise_std", "gp_std"):
        assert getattr(one, name).tobytes() == getattr(rebuilt, name).tobytes()
    assert repr(one) == repr(rebuilt)
    assert one.certificate == rebuilt.certificate == plan.certificate
