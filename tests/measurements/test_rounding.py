"""How far another machine's columns may be: never less than term by term, and no more where it counts."""

import numpy as np
import pytest

from cloakgp.measurements.rounding import Rounding

RNG = np.random.default_rng(5)
A = RNG.normal(size=(6, 9)) * 10.0 ** RNG.integers(4, 13, size=(6, 1))
K = RNG.uniform(0, 0.8, size=(40, 9)) ** 3
D = RNG.uniform(0.1, 0.9, size=40)
NONE = np.empty((0, 40))


def term_by_term(scale: float = 1.0) -> float:
    return (9 + 128) * 2.0**-52 * float(((np.abs(A * scale) @ K.T) / D).max())


@pytest.mark.parametrize("span", [(0.0, 0.512), (-1.0, 0.512), (-np.inf, np.inf)])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_an_error_is_what_its_terms_add_up_to_or_too_small_to_count(span, scale):
    found, wanted = Rounding(A * scale, None, 9, span).largest(K, NONE, D), term_by_term(scale)
    assert found * (1 + 1e-12) >= wanted
    assert found <= max(0.5, wanted * (1 + 1e-9))


def test_the_largest_error_of_several_steps_is_that_of_all_rows():
    """Rows that cannot have a larger one than is known are left aside."""
    rounding, known = Rounding(A * 1e3, None, 9), 0.0
    for start in range(0, 40, 8):
        some = slice(start, start + 8)
        known = rounding.largest(K[some], NONE[:, some], D[some], known)
    assert known == pytest.approx(term_by_term(1e3), rel=1e-9)
    assert rounding.largest(K, NONE, D, 1e9) == 1e9


def test_rows_are_not_looked_at_where_the_highest_kernel_value_tells_enough():
    unknown = np.full_like(K, np.nan)
    small = Rounding(A * 1e-9, None, 9, (0.0, 0.512)).largest(unknown, NONE, D)
    assert term_by_term(1e-9) <= small < 0.5
    assert np.isnan(Rounding(A, None, 9, (0.0, 0.512)).largest(unknown, NONE, D))
