"""The search over multipliers: rows that are dropped never matter, and its bounds hold for all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp.designs import multipliers
from cloakgp.designs.columns import reduced
from cloakgp.designs.multipliers import Point, search
from cloakgp.designs.solve import _Trace, _Volume

CRITERIA = {"mse": _Trace, "volume": _Volume}
every_criterion = pytest.mark.parametrize("criterion", [kind() for kind in CRITERIA.values()], ids=CRITERIA)


class KeepingAll:
    """The same criterion, without dropping rows."""

    def __init__(self, criterion):
        self.shape = criterion.shape

    def cannot_matter(self, part, point, upper):
        return np.zeros(part.shape[1], dtype=bool)


def point_at(criterion, part, v):
    shape = criterion.shape((part * v) @ part.T)
    return Point(v, shape, np.sum((shape.transform @ part) ** 2, axis=0))


def accurate(criterion, part):
    """The optimum to 1e-7, without dropping: its rows of weight, and its value."""
    climb = multipliers.Climb(part, KeepingAll(criterion), 1e-7)
    v = np.ones(part.shape[1])
    for _ in range(20):
        best, _ = climb.run(v)
        v = best.v / best.v.mean() + 1e-12
        if climb.upper <= climb.lower * (1 + 1e-7):
            break
    assert climb.upper <= climb.lower * (1 + 1e-6)
    binding = best.g / best.g.max() > 1 - 1e-4
    return np.flatnonzero((best.v / best.v.mean() > 1e-3) & binding), climb.upper


def coarse_points(criterion, part, rng):
    """Where a search may stand with a gap between 1 % and 30 %: multiplicative steps, with noise."""
    v = np.ones(part.shape[1])
    for _ in range(60):
        point = point_at(criterion, part, v)
        if point.upper / point.lower - 1 < 0.3:
            yield point
        if point.upper / point.lower - 1 < 0.01:
            return
        v = v * point.g * np.exp(0.1 * rng.normal(size=len(v)))
        v = v / v.mean()


def columns_of(kind, r, N, rng):
    part = rng.normal(size=(r, N))
    if kind == "heavy tails":
        return part * np.exp(rng.normal(size=N))
    if kind == "scales":
        return np.diag(10.0 ** -np.arange(r)) @ part
    return part


@every_criterion
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    r=st.integers(2, 6),
    N=st.integers(10, 400),
    kind=st.sampled_from(["gaussian", "heavy tails", "scales"]),
)
def test_no_row_that_carries_weight_is_ever_dropped(criterion, seed, r, N, kind):
    rng = np.random.default_rng(seed)
    part = columns_of(kind, r, N, rng)
    support, optimum = accurate(criterion, part)
    assert len(support) > 0
    for point in coarse_points(criterion, part, rng):
        for upper in (point.upper, optimum):  # what this point proves, and the best that could be known
            dropped = criterion.cannot_matter(part, point, upper)
            assert not dropped[support].any()


@every_criterion
@pytest.mark.parametrize("r", [2, 4, 6])
def test_the_rule_drops_many_rows(criterion, r):
    rng = np.random.default_rng(r)
    part = rng.normal(size=(r, 400))
    shares = [criterion.cannot_matter(part, p, p.upper).mean() for p in coarse_points(criterion, part, rng)]
    assert max(shares) > 0.3


@every_criterion
def test_the_rule_drops_nothing_that_it_should_not_at_the_optimum_itself(criterion):
    """Columns on a sphere around the axes: at the optimum every g is 1 up to rounding."""
    part = np.eye(4)
    for v in (np.ones(4), np.full(4, 0.1), np.full(4, 7.0)):
        point = point_at(criterion, part, v)
        assert not criterion.cannot_matter(part, point, point.upper).any()


@every_criterion
def test_dropping_rows_changes_neither_bound_beyond_the_gap(criterion, dense):
    C = np.random.default_rng(2).normal(size=(5, 400))
    columns = reduced(dense(C), np.ones(5))
    with_rule = search(columns, criterion, 1e-5)
    without = search(columns, KeepingAll(criterion), 1e-5)
    for found in (with_rule, without):
        assert found.converged
        assert found.upper <= found.lower * (1 + 1e-5)
    assert with_rule.upper == pytest.approx(without.upper, rel=2e-5)


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
    _, optimum = accurate(criterion, columns.take(np.arange(500)))
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
    _, optimum = accurate(criterion, part)
    for _ in range(50):
        point = point_at(criterion, part, np.exp(2 * rng.normal(size=40)))
        assert point.lower <= optimum <= point.upper * (1 + 1e-6)
