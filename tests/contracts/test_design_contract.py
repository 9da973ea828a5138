"""What every design must do, on matrices of many kinds. A new design is included by being in DESIGNS."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cloakgp.designs import DESIGNS, DesignName, largest, multipliers, newton, solve
from cloakgp.designs.solution import Solution
from cloakgp.model import smoothers


def mean_variance(L, weights):
    return float(np.sum(weights * np.sum(L**2, axis=1)) / np.sum(weights))


def geometric_mean_variance(L, weights):
    """Over the directions that are measured, whatever the weights."""
    singular = np.linalg.svd(L, compute_uv=False)
    return float(np.exp(2 * np.mean(np.log(singular))))


def largest_variance(L, weights):
    return float(np.max(weights * np.sum(L**2, axis=1)))


SIZES = {"mse": mean_variance, "volume": geometric_mean_variance, "max": largest_variance}
"""Each design's objective, for noise L e on the predictions, e of unit variance."""

every_design = pytest.mark.parametrize("design", DESIGNS)
sized = pytest.mark.parametrize("design", [name for name in DESIGNS if name in SIZES])


def gaussian(P, N, seed=0):
    return np.random.default_rng(seed).normal(size=(P, N))


def smooth(P, N):
    """A GP's C: its singular values fall fast."""
    x, s = np.linspace(0, 1, N), np.linspace(0, 1, P)
    k = lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2) / 0.08)  # noqa: E731
    return k(s, x) @ np.linalg.inv(k(x, x) + 0.1 * np.eye(N))


MATRICES = {
    "square": gaussian(3, 3),
    "wide": gaussian(3, 50),
    "tall": gaussian(9, 4),
    "one row of X": gaussian(5, 1),
    "one test point": gaussian(1, 20),
    "one by one": np.array([[0.7]]),
    "rank 2 of 6": gaussian(6, 2) @ gaussian(2, 30, 1),
    "repeated columns": np.repeat(gaussian(3, 4), 5, axis=1),
    "repeated test points": np.repeat(gaussian(2, 20), 3, axis=0),
    "a zero column": np.hstack([np.zeros((3, 1)), gaussian(3, 10)]),
    "a zero test point": np.vstack([np.zeros((1, 12)), gaussian(3, 12)]),
    "orthogonal": np.diag([3.0, 1.0, 0.2]),
    "a giant column": np.hstack([gaussian(3, 10), np.array([[1e4], [0.0], [0.0]])]),
    "scales": np.diag([1.0, 1e-2, 1e-4]) @ gaussian(3, 40),
    "minute": gaussian(3, 12) * 1e-40,
    "immense": gaussian(3, 12) * 1e40,
    "a GP": smooth(25, 80),
}
every_matrix = pytest.mark.parametrize("C", MATRICES.values(), ids=MATRICES)


def solution_of(design, dense, C, weights=None, gap=0.01) -> Solution:
    return solve(design, dense(C), np.ones(len(C)) if weights is None else np.asarray(weights), gap)


def measurements(s: Solution, C):
    """B, which a solution gives outright or as a map of C's columns."""
    return s.reduce @ C if s.matrix is None else s.matrix


def test_every_design_has_its_objective_here():
    """But `posterior`: its objective also counts what the prior knows (designs/test_posterior.py)."""
    assert set(DESIGNS) - set(SIZES) == {"posterior"}
    assert set(get_args(DesignName)) == set(DESIGNS)


# What privacy and accuracy rest on


@every_design
@every_matrix
def test_no_column_is_longer_than_one_and_bounds_are_honest(design, dense, C):
    s = solution_of(design, dense, C, gap=0.05)
    norms = np.linalg.norm(measurements(s, C), axis=0)
    assert norms.max() == pytest.approx(1.0, abs=1e-9)
    assert 0 < s.lower_bound <= s.objective
    assert s.gap == s.objective / s.lower_bound - 1
    assert (s.status == "converged") is (s.gap <= 0.05 * (1 + 1e-9))
    assert (s.design, type(s.objective), type(s.lower_bound)) == (design, float, float)


@sized
@every_matrix
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gap", [0.3, 0.01, 1e-4])
def test_predictions_are_reconstructed_with_the_noise_that_is_said_to_the_gap_that_was_asked_for(
    design, dense, C, weighted, gap
):
    weights, size = np.linspace(0.5, 2.0, len(C)) if weighted else np.ones(len(C)), np.linalg.norm(C, ord=2)
    s = solution_of(design, dense, C, weights, gap)
    assert (s.matrix, s.unbiased, s.status) == (None, True, "converged")
    np.testing.assert_allclose(s.reconstruction @ (s.reduce @ C), C, rtol=0, atol=3e-6 * size)
    q = np.linalg.matrix_rank(C, tol=1e-6 * size)
    assert (s.reduce.shape, s.reconstruction.shape) == ((q, len(C)), (len(C), q))
    assert s.iterations >= 1
    assert s.gap <= gap * (1 + 1e-9)
    assert s.objective == pytest.approx(SIZES[design](s.reconstruction, weights), rel=1e-6)


@every_design
def test_the_lower_bound_is_not_above_the_objective_by_rounding_either(design, dense):
    """One row of X: both bounds are exact, so rounding alone decides."""
    for seed in range(20):
        s = solution_of(design, dense, gaussian(2, 1, seed))
        assert s.lower_bound <= s.objective


def best_by_slsqp(size, C, weights, seed):
    """The least size with c' M^-1 c <= 1 for each column c, M^-1 = R R', over triangular R."""
    r = len(C)
    lower = np.tril_indices(r)

    def unpack(x):
        R = np.zeros((r, r))
        R[lower] = x
        return R

    def log_size(x):
        return math.log(size(np.linalg.inv(unpack(x).T), weights))

    slack = {"type": "ineq", "fun": lambda x: 1 - np.sum((unpack(x).T @ C) ** 2, axis=0)}
    best = math.inf
    for attempt in range(3):
        rng = np.random.default_rng([seed, attempt])
        start = np.eye(r) / np.linalg.norm(C, axis=0).max() * (1 + 0.1 * rng.uniform(size=(r, r)))
        found = minimize(
            log_size,
            start[lower],
            constraints=[slack],
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-13},
        )
        R = unpack(found.x)
        worst = np.sum((R.T @ C) ** 2, axis=0).max()
        best = min(best, size(np.linalg.inv(R.T), weights) * worst)  # made feasible
    return best


@sized
@pytest.mark.parametrize(("r", "N", "weighted"), [(1, 5, True), (2, 4, False), (2, 8, True), (3, 8, False)])
@pytest.mark.parametrize("seed", range(3))
def test_an_independent_solver_finds_the_same_optimum(design, dense, r, N, weighted, seed):
    C = gaussian(r, N, seed)
    weights = np.linspace(0.5, 2.0, r) if weighted else np.ones(r)
    s = solution_of(design, dense, C, weights, gap=1e-4)
    best = best_by_slsqp(SIZES[design], C, weights, seed)
    assert s.lower_bound <= best * (1 + 1e-7)
    assert s.objective <= best * (1 + 2e-4)
    assert best <= s.objective * (1 + 1e-5), "the reference must find the optimum too"


@sized
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    r=st.integers(1, 5),
    N=st.integers(1, 60),
    spread=st.floats(0, 3),
    gap=st.sampled_from([0.5, 0.05, 1e-3]),
)
def test_no_noise_shape_beats_the_lower_bound(design, dense, seed, r, N, spread, gap):
    """Any M that hides every row is at least as large: also the other designs' answers, nudged."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(r, max(N, r))) * np.exp(spread * rng.normal(size=max(N, r)))
    weights = np.exp(rng.normal(size=r))
    s = solution_of(design, dense, C, weights, gap=gap)
    rivals = [rng.normal(size=(r, r)) + 2 * np.eye(r)]
    for other in SIZES.keys() & DESIGNS:
        L = solution_of(other, dense, C, weights, gap=1e-6).reconstruction
        assume(L.shape == (r, r))  # else rounding hides directions that are too small beside others
        nudge = np.eye(r) + 0.05 * rng.normal(size=(r, r))
        rivals += [L, nudge @ L]
    for L in rivals:
        worst = np.linalg.norm(np.linalg.solve(L, C), axis=0).max()
        assert SIZES[design](L * worst, weights) >= s.lower_bound * (1 - 1e-7)


@sized
def test_bounds_hold_also_when_the_search_is_cut_short(design, dense, monkeypatch):
    C = gaussian(4, 200)
    best = solution_of(design, dense, C, gap=1e-6)
    monkeypatch.setattr(multipliers, "_ROUNDS", 1)
    monkeypatch.setattr(newton, "_LOOKS", 2)
    monkeypatch.setattr(newton, "_STEPS", 1)
    monkeypatch.setattr(largest, "_EVALUATIONS", 2)
    s = solution_of(design, dense, C, gap=1e-6)
    assert s.status == "stopped before the gap was reached"
    assert s.lower_bound <= best.objective
    assert s.objective >= best.lower_bound
    assert s.gap > 1e-6
    assert np.linalg.norm(s.reduce @ C, axis=0).max() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(s.reconstruction @ (s.reduce @ C), C, atol=1e-9)


@sized
@pytest.mark.parametrize("matrix", ["gaussian", "heavy tails", "rank 3 of 8", "a GP"])
def test_working_sets_and_blocks_reach_the_same_objective(design, dense, monkeypatch, matrix):
    rng = np.random.default_rng(4)
    C = {
        "gaussian": gaussian(4, 700),
        "heavy tails": gaussian(4, 700) * np.exp(rng.normal(size=700)),
        "rank 3 of 8": gaussian(8, 3) @ gaussian(3, 700, 1),
        "a GP": smooth(10, 700),
    }[matrix]
    gap = 1e-3
    whole = solution_of(design, dense, C, gap=gap)
    monkeypatch.setattr(smoothers, "BLOCK", 37)
    monkeypatch.setattr(multipliers, "WORKING_SET", 90)
    parts = solution_of(design, dense, C, gap=gap)
    assert parts.status == "converged"
    assert parts.gap <= gap * (1 + 1e-9)
    assert parts.objective <= whole.lower_bound * (1 + gap) ** 2
    assert whole.objective <= parts.lower_bound * (1 + gap) ** 2
    assert np.linalg.norm(parts.reduce @ C, axis=0).max() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(
        parts.reconstruction @ (parts.reduce @ C), C, rtol=0, atol=3e-6 * np.linalg.norm(C, ord=2)
    )
