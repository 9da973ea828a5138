"""One person's outcome moves the measurements no further where rows have bounds of their own.

As in ``test_neighbours``: the noise is frozen, and the integers that it would hide are compared.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy_helpers import columns, fails
from test_neighbours import check_neighbours, examples, outcomes

from cloakgp import GP
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ
from cloakgp.plans import out_of_core
from cloakgp.private import room

ROWS = 7
PROMISE = {"epsilon": 1.0, "delta": 0.01}


def windowed(design="mse", low=None, width=None, mean=None, **prior):
    """Rows of which two are equal in all, and two but for their window."""
    X = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 0.9, 1.0])[:, None]
    low = np.array([0.0, 3.0, -1.0, -1.0, 5.0, 5.0, 100.0]) if low is None else low
    width = np.array([1.0, 0.1, 2.0, 2.0, 1.0, 0.5, 7.0]) if width is None else width
    gp = GP(EQ(0.5), 0.3, (low, low + width), 0.0 if mean is None else mean, **prior)
    return gp.plan(X, X_star=[[0.2], [0.7]], design=design, **PROMISE)


def ends(plan):
    low, high, _ = plan.gp.windows.T
    return low, high


@examples
@given(st.data(), st.sampled_from(sorted(DESIGNS)), st.booleans())
def test_whatever_an_outcome_is_replaced_by_it_moves_at_most_the_sensitivity(data, design, sparse):
    low = np.array(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=ROWS, max_size=ROWS)))
    width = np.array(data.draw(st.lists(st.floats(0.01, 1e3), min_size=ROWS, max_size=ROWS)))
    plan = windowed(design, low, width, **({"inducing": [[0.1], [0.8]]} if sparse else {}))
    lows, highs = low, low + width
    y = np.array([data.draw(outcomes(lows[i], highs[i])) for i in range(ROWS)])
    row = data.draw(st.integers(0, ROWS - 1))
    y_prime = y.copy()
    y_prime[row] = data.draw(outcomes(lows[row], highs[row]))
    check_neighbours(plan, y, y_prime)


@pytest.mark.parametrize("design", DESIGNS)
def test_each_row_moves_the_measurements_by_its_own_column(design):
    """From one end of its window to the other; the longest column is the sensitivity, and no more."""
    plan = windowed(design)
    assert plan.measurement.groups.labels.tolist() == [0, 1, 2, 2, 3, 4, 5]
    low, high = ends(plan)
    moved = []
    for row in range(ROWS):
        y = low.copy()
        y[row] = high[row]
        moved.append(check_neighbours(plan, low, y))
    assert moved == [4**plan.measurement.y_bits * sum(b * b for b in column) for column in columns(plan)]
    assert max(moved) * 10**4 >= (plan.measurement.sensitivity() * 99) ** 2


def test_outcomes_beyond_their_window_are_at_its_end():
    plan = windowed()
    low, high = ends(plan)
    top = exact_measurements_of(plan, high)
    for beyond in (high + 1, high * 1e6 + 1e9, np.full(ROWS, 1e300)):
        assert exact_measurements_of(plan, beyond) == top
    assert exact_measurements_of(plan, low - 1e5) == exact_measurements_of(plan, low) == [0, 0]
    assert exact_measurements_of(plan, np.full(ROWS, 4.9)) != top


def exact_measurements_of(plan, y):
    return room._times_matrix(plan.measurement, y, "error").tolist()


def test_what_is_missing_is_in_the_middle_of_its_window():
    plan = windowed()
    low, high = ends(plan)
    missing = room._times_matrix(plan.measurement, np.full(ROWS, np.nan), "midpoint").tolist()
    assert missing == exact_measurements_of(plan, (low + high) / 2) == plan.measurement.midpoint.tolist()


@pytest.mark.parametrize("merged", [True, False])
def test_a_recipe_clips_to_each_rows_window(monkeypatch, merged):
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    options = {} if merged else {"low": np.arange(ROWS) * 3.0, "width": np.ones(ROWS)}
    plan = windowed(inducing=[[0.1], [0.8]], **options)
    low, high = ends(plan)
    m = plan.measurement
    assert (m.groups is not None) == merged
    exact = [room._times_recipe(m, y, "error").tolist() for y in (high, high + 1e9, np.full(ROWS, 1e300))]
    assert exact[0] == exact[1] == exact[2] == (m.column_sum * 2**m.y_bits).tolist()
    assert room._times_recipe(m, low - 5, "error").tolist() == [0] * m.n_measurements
    for row in range(ROWS):
        y = low.copy()
        y[row] = 1e9
        moved = sum(v * v for v in room._times_recipe(m, y, "error").tolist())
        assert 0 < moved <= m.sensitivity() ** 2


def test_errors_quote_no_outcome():
    plan = windowed()
    for y in (np.full(ROWS, np.nan), [[7654.0]] * ROWS, ["7654"] * ROWS):
        with pytest.raises((TypeError, ValueError)) as refused:
            plan.release(y)
        assert "7654" not in str(refused.value)


def test_forgetting_to_clip_would_be_seen(monkeypatch):
    """The check can fail: y that is not clipped to its window, or clipped to another row's."""
    plan = windowed()
    low, _ = ends(plan)
    y_prime = low.copy()
    y_prime[6] = 1e4
    check_neighbours(plan, low, y_prime)

    def unclipped(y, lattice):
        share = (y - lattice.lower) / (lattice.upper - lattice.lower)
        return np.rint(share * 2**lattice.y_bits).astype(np.int64)

    def widest(y, lattice):
        lower, upper = np.min(lattice.lower), np.max(lattice.upper)
        share = (np.clip(y, lower, upper) - lattice.lower) / (lattice.upper - lattice.lower)
        return np.rint(share * 2**lattice.y_bits).astype(np.int64)

    for planted in (unclipped, widest):
        monkeypatch.setattr(room, "to_integers", planted)
        high_first = low.copy()
        high_first[1] = 1e4
        assert fails(check_neighbours, plan, low, high_first, because="outside its public range")
