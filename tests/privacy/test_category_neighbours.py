"""Whoever is alone in a level is as well protected as anybody: no stage's integers move further for them."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails, some_stages
from test_staged_privacy import ANY, check_moves

from cloakgp import AutoGP

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

LEVELS = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 5.0])  # the last row is alone in its level
ALONE = len(LEVELS) - 1
TABLES = {
    "a number and levels": np.column_stack([np.linspace(0, 1, 6), LEVELS]),
    "levels alone": LEVELS[:, None],
    "two categories": np.column_stack([LEVELS, np.arange(6.0) % 2]),
}


@cache
def plan(name):
    X = TABLES[name]
    columns = [1] if name == "a number and levels" else list(range(X.shape[1]))
    return AutoGP(bounds=(0, 1), categories=columns, stages=3).plan(
        X, X_star=X[[0, -1]], epsilon=1.0, delta=0.01
    )


def parts(name, seed=0):
    return [part for stage in some_stages(plan(name), seed) for part in stage.parts]


@pytest.mark.parametrize("name", TABLES)
@given(y=st.lists(ANY, min_size=6, max_size=6), value=ANY, row=st.just(ALONE) | st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_one_row_moves_all_stages_together_by_no_more_than_mu(name, y, value, row):
    check_moves(parts(name), plan(name).rule.promise.mu, y, [*y[:row], value, *y[row + 1 :]])


@pytest.mark.parametrize("name", TABLES)
def test_who_is_alone_in_a_level_counts_and_not_too_much(name):
    """From end to end they move the integers, and by no more than noise was made for: the check can fail."""
    low, high = np.zeros(6), np.eye(6)[ALONE]
    mu = plan(name).rule.promise.mu
    moved = check_moves(parts(name), mu, low, high)
    assert 0 < moved <= Fraction(mu) ** 2
    fails(check_moves, parts(name), float(moved) ** 0.5 / 2, low, high)
