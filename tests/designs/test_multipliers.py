"""The search over multipliers: it reaches the optimum, and its bounds hold for all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.designs import multipliers, newton
from cloakgp.designs.columns import reduced
from cloakgp.designs.multipliers import search
from cloakgp.designs.newton import NewtonClimb
from cloakgp.designs.shapes import Point
from cloakgp.designs.solve import _Trace, _Volume
from cloakgp.model.arrays import squared_dots

CRITERIA = {"mse": _Trace, "volume": _Volume}
every_criterion = pytest.mark.parametrize("criterion", [kind() for kind in CRITERIA.values()], ids=CRITERIA)


def point_at(criterion, part, v):
    shape = criterion.shape((part * v) @ part.T)
    return Point(v, shape, np.sum((shape.transform @ part) ** 2, axis=0))


def accurate(criterion, part):
    """The optimum to 1e-7."""
    climb = NewtonClimb(part, criterion, 1e-7)
    climb.run(np.ones(part.shape[1]))
    assert climb.upper <= climb.lower * (1 + 1e-7)
    return climb.upper


def columns_of(kind, r, N, rng):
    part = rng.normal(size=(r, N))
    if kind == "heavy tails":
        return part * np.exp(rng.normal(size=N))
    if kind == "scales":
        return np.diag(10.0 ** -np.minimum(np.arange(r), 5)) @ part  # smaller ones are lost in rounding
    return part


@every_criterion
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    r=st.integers(1, 8),
    N=st.integers(8, 400),
    kind=st.sampled_from(["gaussian", "heavy tails", "scales"]),
)
def test_the_search_gets_as_near_to_the_optimum_as_it_is_asked_to(criterion, seed, r, N, kind):
    part = columns_of(kind, r, N, np.random.default_rng(seed))
    optimum = accurate(criterion, part)
    for gap in (0.1, 1e-3):
        climb = NewtonClimb(part, criterion, gap)
        point = climb.run(np.ones(N))
        again = point_at(criterion, part, point.v)
        assert point.upper == pytest.approx(again.upper, rel=1e-6)
        assert (
            optimum / (1 + gap) < climb.lower * (1 + 1e-6) < optimum * (1 + 2e-6) < point.upper * (1 + 3e-6)
        )
        assert point.upper <= climb.lower * (1 + gap)


@every_criterion
def test_the_curvature_is_how_constraints_move_with_multipliers(criterion):
    """Up to what the sum of exponentials is off by, over eight orders of magnitude."""
    rng = np.random.default_rng(7)
    part, v = np.diag(10.0 ** -np.arange(5)) @ rng.normal(size=(5, 30)), np.exp(rng.normal(size=30))
    point = point_at(criterion, part, v)
    A = squared_dots(point.shape.transform @ part, criterion.curvature(point.shape))
    own = np.sqrt(np.diag(A))
    for j in range(30):
        step = 1e-5 * (np.arange(30) == j)
        ahead, behind = (point_at(criterion, part, v * (1 + s)).g for s in (step, -step))
        assert np.all(np.abs(A[:, j] - (behind - ahead) / (2e-5 * v[j])) < 0.2 * own * own[j])


@every_criterion
def test_rows_that_are_left_out_and_missed_come_back_to_stay(criterion, monkeypatch):
    """Or a search that leaves out too many goes round in circles."""
    monkeypatch.setattr(newton, "_WEIGHTY", 0.3)
    accurate(criterion, columns_of("heavy tails", 6, 300, np.random.default_rng(8)))


@every_criterion
@pytest.mark.parametrize("working_set", [30, 100, 6000])
def test_bounds_are_over_all_rows(criterion, dense, monkeypatch, working_set):
    monkeypatch.setattr(multipliers, "WORKING_SET", working_set)
    C = np.random.default_rng(3).normal(size=(3, 500)) * np.exp(np.random.default_rng(4).normal(size=500))
    columns = reduced(dense(C), np.ones(3))
    found = search(columns, criterion, 0.01)
    g = np.sum((found.shape.transform @ columns.down @ C) ** 2, axis=0)
    assert found.largest == pytest.approx(g.max(), rel=1e-12)
    assert found.upper == pytest.approx(found.shape.size * g.max(), rel=1e-12)
    optimum = accurate(criterion, columns.take(np.arange(500)))
    assert found.lower <= optimum
    assert found.converged


@every_criterion
def test_a_shape_is_its_transform_and_its_inverse(criterion):
    Q = np.cov(np.random.default_rng(5).normal(size=(4, 50)))
    shape = criterion.shape(Q)
    np.testing.assert_allclose(shape.transform @ shape.inverse, np.eye(4), atol=1e-12)
    M = shape.inverse @ shape.inverse.T
    expected = {"_Trace": np.trace(M), "_Volume": np.linalg.det(M) ** 0.25}[type(criterion).__name__]
    assert shape.size == pytest.approx(expected)
    np.testing.assert_allclose({"_Trace": M @ M, "_Volume": M}[type(criterion).__name__], Q, atol=1e-12)


@every_criterion
def test_weak_duality_at_any_multipliers(criterion):
    rng = np.random.default_rng(6)
    part = rng.normal(size=(3, 40))
    optimum = accurate(criterion, part)
    for _ in range(50):
        point = point_at(criterion, part, np.exp(2 * rng.normal(size=40)))
        assert point.lower <= optimum <= point.upper * (1 + 1e-6)
