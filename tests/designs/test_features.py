"""The design `posterior` for recipes: what it leaves unknown, and the bound on what any recipe leaves."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.designs.features import Space, _that_count, bound, posterior_recipe

RNG = np.random.default_rng(4)
N, R_, P = 300, 6, 9
COLUMNS = RNG.normal(size=(R_, N)) * np.geomspace(1, 0.05, R_)[:, None] * RNG.gamma(1.0, size=N)
INFORMATION = 0.3 * COLUMNS @ COLUMNS.T  # noise variance 0.3: columns are phi / D
T = RNG.normal(size=(P, R_)) @ np.linalg.inv(np.eye(R_) + INFORMATION)
WEIGHTS = np.exp(RNG.normal(size=P))
SPACE = Space(INFORMATION, T, WEIGHTS)
START = np.eye(R_)


def left_unknown(R, s):
    """By the textbook: u has covariance I^2 + I, and R u is known up to noise."""
    S = INFORMATION @ INFORMATION + INFORMATION
    known = S @ R.T @ np.linalg.inv(R @ S @ R.T + s * np.eye(len(R))) @ R @ S
    return float(WEIGHTS @ np.diag(T @ (S - known) @ T.T) / WEIGHTS.sum())


@pytest.mark.parametrize("s", [1e-3, 1.0, 1e3])
def test_the_gap_is_reached_and_the_objective_is_the_textbooks(s):
    found = posterior_recipe(SPACE, COLUMNS, START, 0.01, s)
    assert found.status == "converged"
    assert found.gap <= 0.01
    assert np.linalg.norm(found.features @ COLUMNS, axis=0).max() == pytest.approx(1.0)
    assert found.objective * s == pytest.approx(left_unknown(found.features, s), rel=1e-4)


@pytest.mark.parametrize("s", [1e-3, 1.0, 1e3])
def test_no_recipe_is_below_the_bound(s):
    """Whatever it measures; and the bound holds for whatever multipliers it is made from."""
    found = posterior_recipe(SPACE, COLUMNS, START, 0.01, s)
    for seed in range(50):
        R = np.random.default_rng(seed).normal(size=(R_, R_)) * np.geomspace(1, 10, R_)
        R /= np.linalg.norm(R @ COLUMNS, axis=0).max()
        assert left_unknown(R, s) >= found.lower_bound * s
        w = np.random.default_rng(seed).exponential(size=N)
        assert bound(SPACE, SPACE.down @ COLUMNS, R @ SPACE.up, w, s) <= found.objective * s


def test_a_search_that_starts_again_with_more_columns_keeps_what_it_had():
    """From a design for most columns, in few steps; from what that lacks, it would have to begin anew."""
    first = posterior_recipe(SPACE, COLUMNS[:, :-10], START, 0.01, 1.0)
    features = first.features[:3]  # directions without a measurement are no worse
    most = np.linalg.norm(features @ COLUMNS, axis=0).max()
    again = posterior_recipe(SPACE, COLUMNS, features, 1e9, 1.0, fresh=False)
    assert again.objective <= left_unknown(features / most, 1.0) * (1 + 1e-9)
    assert len(again.features) <= 3


def test_the_bound_of_fewer_columns_is_kept_and_still_holds():
    """More columns only forbid more; in the search's own units, whatever the noise."""
    s = 7.0
    first = posterior_recipe(SPACE, COLUMNS[:, :-10], START, 0.01, s)
    best = posterior_recipe(SPACE, COLUMNS, START, 0.01, s)
    again = posterior_recipe(SPACE, COLUMNS, first.features, 1e9, s, False, first.lower_bound)
    assert again.lower_bound >= first.lower_bound * (1 - 1e-12)
    assert again.lower_bound <= best.objective


def test_rows_that_count_stay_however_long_a_column_is_that_was_lacking():
    g = np.array([0.02, 0.019, 1e-9, 1.0])  # the last, which no search has seen yet
    np.testing.assert_array_equal(_that_count(np.arange(3), g, 16.0), [0, 1])
