"""How far another machine's columns may be: never less than term by term, and no more than costs nothing."""

import numpy as np
import pytest

from cloakgp.measurements.rounding import Rounding, allowance, small_error

RNG = np.random.default_rng(5)
A = RNG.normal(size=(6, 9)) * 10.0 ** RNG.integers(4, 13, size=(6, 1))
K = RNG.uniform(0, 0.8, size=(40, 9)) ** 3
D = RNG.uniform(0.1, 0.9, size=40)
TERM_BY_TERM = (9 + 128) * 2.0**-52 * float(((np.abs(A) @ K.T) / D).max())


@pytest.mark.parametrize("highest", [0.512, np.inf])
def test_an_error_is_at_least_what_its_terms_add_up_to(highest):
    """However coarse it may be; and as fine as that where it must be."""
    for enough in (0.5, 2 * TERM_BY_TERM, 100 * TERM_BY_TERM):
        found = Rounding(A, None, 9, enough, highest).largest(K, np.empty((0, 40)), D)
        assert found * (1 + 1e-12) >= TERM_BY_TERM
        assert found <= max(enough, TERM_BY_TERM * (1 + 1e-9))
        known = Rounding(A, None, 9, enough, highest).largest(K, np.empty((0, 40)), D, 1e9)
        assert known == 1e9


def test_the_largest_kernel_value_is_looked_up_once():
    """No row is longer than if all its values were the highest, so rows need not be looked at."""
    rounding = Rounding(A, None, 9, 1e9, 0.512)
    assert rounding.largest(np.full_like(K, np.nan), np.empty((0, 40)), D) >= TERM_BY_TERM
    assert np.isnan(Rounding(A, None, 9, 0.5, 0.512).largest(np.full_like(K, np.nan), np.empty((0, 40)), D))


@pytest.mark.parametrize("n_measurements", [1, 12, 400])
@pytest.mark.parametrize("bits", [8, 17, 26])
def test_a_small_error_hardly_lengthens_a_column(n_measurements, bits):
    error = small_error(n_measurements, bits) * (1 - 1e-9)
    assert allowance(error, n_measurements, 0) <= 2.0**bits / 4000
