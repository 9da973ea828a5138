"""The design for the worst test point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.designs import DESIGNS, solve
from cloakgp.designs.largest import JointClimb, WorstPoint
from cloakgp.model.arrays import weighted_gram

UNBIASED = [name for name in DESIGNS if name != "posterior"]


def largest_of(dense, design, C, weights=None, gap=1e-4):
    """The solution, and the noise variance at every test point."""
    C = np.asarray(C, dtype=float)
    s = solve(design, dense(C), np.ones(len(C)) if weights is None else np.asarray(weights, dtype=float), gap)
    return s, np.sum(s.reconstruction**2, axis=1)


# Beside the others


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    P=st.integers(1, 12),
    N=st.integers(1, 60),
    spread=st.floats(0, 2),
    gap=st.sampled_from([0.1, 0.01, 1e-3]),
    weighted=st.booleans(),
)
def test_no_unbiased_design_has_a_smaller_largest_noise(dense, seed, P, N, spread, gap, weighted):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(P, N)) * np.exp(spread * rng.normal(size=N))
    weights = np.exp(rng.normal(size=P)) if weighted else np.ones(P)
    s, variances = largest_of(dense, "max", C, weights, gap)
    largest = np.max(weights * variances)
    assert s.objective == pytest.approx(largest, rel=1e-6)
    for design in UNBIASED:
        _, others = largest_of(dense, design, C, weights, gap)
        assert largest <= np.max(weights * others) * (1 + gap) * (1 + 1e-9)
        assert s.lower_bound <= np.max(weights * others) * (1 + 1e-9)


# The search


@pytest.fixture
def climb():
    rng = np.random.default_rng(3)
    return JointClimb(rng.normal(size=(3, 9)), WorstPoint(rng.normal(size=(5, 3))), 1e-9)


def test_the_shape_solves_its_equation(climb):
    """M W M = Q, with W = sum w_j u_j u_j'."""
    rng = np.random.default_rng(4)
    criterion, weights = climb.criterion, np.exp(rng.normal(size=5))
    Q = weighted_gram(climb.part, np.exp(rng.normal(size=9)))
    shape, variances = criterion.shape_for(Q, weights)
    np.testing.assert_allclose(shape.transform @ shape.inverse, np.eye(3), atol=1e-12)
    M = shape.inverse @ shape.inverse.T
    W = criterion.points.T @ np.diag(weights) @ criterion.points
    np.testing.assert_allclose(M @ W @ M, Q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances, np.diag(criterion.points @ M @ criterion.points.T), rtol=1e-9)
    assert shape.size == variances.max()


def test_the_gradient_is_that_of_the_lower_bound(climb):
    theta = np.exp(0.3 * np.random.default_rng(5).normal(size=9 + 5))
    _, gradient = climb.negative(theta)
    step = 1e-6
    for i in range(len(theta)):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += step
        behind[i] -= step
        slope = (climb.negative(ahead)[0] - climb.negative(behind)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_a_row_without_a_multiplier_gets_one(climb):
    """Zero is where the root's gradient is zero too."""
    climb.gap = 1e-3
    known = np.r_[np.ones(4), np.zeros(5)]
    assert climb.run(known).v.min() > 0
    assert climb.upper <= climb.lower * (1 + 1e-3)
