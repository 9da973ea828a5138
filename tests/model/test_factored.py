"""The covariance of a sparse GP's outcomes in factors, and cells of rows that are much alike."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp.designs import in_cells, solve
from cloakgp.designs.any_noise import AnyNoise
from cloakgp.designs.posterior import lower_bound
from cloakgp.kernels import EQ, Linear
from cloakgp.model.factored import cells
from cloakgp.model.smoothers import Rescaled
from cloakgp.rows import chunks

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, size=(600, 2)) ** [[1.0, 1.3]]
X_STAR = RNG.uniform(0, 10, size=(12, 2))
GP = cloakgp.GP(EQ(3.0), noise=0.2, bounds=(-1.0, 1.0), inducing=30).with_inducing(X)
UNITS = RNG.uniform(0.5, 2.0, size=600)


@pytest.fixture(scope="module")
def smoother():
    return Rescaled(GP.planner(X, X_star=X_STAR).smoother, UNITS)


def test_in_units_it_is_the_same_covariance_and_the_same_columns(smoother):
    B = RNG.normal(size=(4, 600))
    seen, own = smoother.factored.measured(B)
    np.testing.assert_allclose(seen @ seen.T + own, smoother.times_covariance(B) @ B.T, rtol=1e-9)
    np.testing.assert_allclose(seen @ smoother.factored.star, B @ smoother.cross, rtol=1e-8, atol=1e-10)
    every = slice(None)
    np.testing.assert_allclose(
        smoother.factored.columns(every), smoother.columns(every), rtol=1e-6, atol=1e-10
    )
    assert (smoother.factored.reach >= np.abs(smoother.cross).sum(axis=0) ** 2).all()


def test_a_cell_has_points_that_are_near_each_other():
    """Four heaps far apart along one axis: no cell has points of two."""
    heap = np.repeat(np.arange(4), 25)
    order = RNG.permutation(100)
    points = (np.stack([0 * heap, 9 * heap], axis=1) + RNG.uniform(-1, 1, size=(100, 2)))[order]
    found = cells(points, 16)
    np.testing.assert_array_equal(np.unique(found), np.arange(16))
    assert len(np.unique(np.stack([found, heap[order]]), axis=1).T) == 16
    assert len(np.unique(cells(points, 1000))) == 64  # more than there are
    assert len(np.unique(cells(np.repeat(points[:2], 50, axis=0), 16))) == 2  # equal ones stay together


def test_sums_over_cells_are_what_measurements_of_whole_cells_measure(smoother):
    sums, label = smoother.factored.in_cells(32)
    B = RNG.normal(size=(3, sums.n_rows))
    for one, other in zip(sums.measured(B), smoother.factored.measured(B[:, label]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_rows_that_are_far_from_all_inducing_inputs_have_columns_too(monkeypatch):
    """Their features are 0, or so small that their squares are."""
    monkeypatch.setattr(in_cells, "LARGE", 64)
    far = X.copy()
    far[::100] += np.geomspace(30.0, 1e6, 6)[:, None]
    smoother = GP.planner(far, X_star=X_STAR).smoother
    found = AnyNoise(smoother, np.ones(12), 1.0).solve(0.01, 20.0)
    assert found.status == "converged"
    np.testing.assert_allclose(np.linalg.norm(found.matrix, axis=0), 1.0, atol=0.01)


def test_rows_that_tell_little_need_not_be_measured_in_full(monkeypatch):
    """A line through 0: outcomes near 0 have noise and no signal, and there is but one measurement to use."""
    monkeypatch.setattr(in_cells, "LARGE", 64)
    gp = cloakgp.GP(Linear(), noise=0.2, bounds=(-1.0, 1.0), inducing=np.eye(2))
    found = AnyNoise(gp.planner(X - 2, X_star=X_STAR).smoother, np.ones(12), 1.0).solve(0.01, 10.0)
    assert found.status == "converged"


@pytest.mark.parametrize("s", [20.0, 100.0])
@pytest.mark.parametrize("small", [1000, 128])  # cells: more than rows; fewer, and all rows are looked at
def test_a_design_that_was_sought_for_cells_first_is_as_good_as_any(smoother, small, s, monkeypatch):
    weights = np.ones(12)
    plain = AnyNoise(smoother, weights, 1.0).solve(0.01, s)
    monkeypatch.setattr(in_cells, "LARGE", 64)
    monkeypatch.setattr(in_cells, "SMALL", small)
    designs = []
    for cores in (1, 3):
        monkeypatch.setattr(chunks, "_cores", lambda cores=cores: cores)
        designs.append(AnyNoise(smoother, weights, 1.0).solve(0.01, s))
    one, other = designs
    np.testing.assert_array_equal(one.matrix, other.matrix)  # whatever the number of threads
    assert one.status == "converged"
    assert one.lower_bound <= plain.objective
    assert plain.lower_bound <= one.objective
    seen = np.einsum("ij,ji->", one.reconstruction, one.matrix @ smoother.cross)
    left = smoother.explained_variance.sum() - seen
    assert one.objective * s * 12 == pytest.approx(left, rel=1e-6)
    np.testing.assert_allclose(np.linalg.norm(one.matrix, axis=0), 1.0, atol=0.01)


def test_cells_do_for_a_design_of_all_rows(monkeypatch):
    """No search over all rows: their columns follow from the cells', and so does a bound."""
    monkeypatch.setattr(in_cells, "LARGE", 64)
    monkeypatch.setattr(in_cells, "SMALL", 128)
    monkeypatch.setattr(in_cells, "_LARGEST", 0)
    smoother, weights = GP.planner(X, X_star=X_STAR).smoother, np.ones(12)
    found = AnyNoise(smoother, weights, 1.0).solve(0.03, 100.0)
    assert found.status == "converged"
    assert len(found.matrix) <= 12 + 4
    np.testing.assert_allclose(np.linalg.norm(found.matrix, axis=0), 1.0, atol=0.01)
    best = solve("posterior", smoother, weights, 1e-3, 100.0)
    assert found.lower_bound <= best.objective
    assert best.lower_bound <= found.objective


def test_the_bound_for_all_rows_is_the_one_that_is_written_out(monkeypatch):
    """Of E, which belongs to no measurements, by matrices as large as the rows."""
    monkeypatch.setattr(in_cells, "LARGE", 64)
    monkeypatch.setattr(in_cells, "SMALL", 128)
    looked, bounds = in_cells.InCells._looked, []

    def compared(self, search, law):
        found, Y, A = looked(self, search, law), search.best.Y, search.cells.A
        F, d = self.rows.at(slice(None))
        E = (A.T - Y.T @ search.best.BK) @ F - Y.T @ (found.point.B * d)
        to_C = np.linalg.solve(F.T @ F + np.diag(d), E.T)  # K^-1 E'
        v = np.linalg.norm(Y @ E, axis=0)
        bounds.append((found.bound, lower_bound(E, v, (A.T @ F @ to_C).T, E @ to_C, search.s)))
        return found

    monkeypatch.setattr(in_cells.InCells, "_looked", compared)
    AnyNoise(GP.planner(X, X_star=X_STAR).smoother, np.ones(12), 1.0).solve(0.03, 100.0)
    assert len(bounds) > 1
    for ours, written_out in bounds:
        assert ours == pytest.approx(written_out, rel=1e-6)
