"""A model that is right is hardly ever called wrong; one that is grossly wrong, nearly always."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP
from cloakgp.data import cells
from cloakgp.kernels import EQ, Gibbs
from cloakgp.posterior.model_check import broader

X = np.linspace(0, 100, 100)[:, None]
X_star = np.linspace(0, 100, 20)[:, None]
KERNEL = EQ(20.0, variance=400.0)
MODEL = GP(KERNEL, 25.0, (-100.0, 200.0))


@pytest.fixture(scope="module")
def plan():
    return MODEL.plan(X, X_star=X_star, epsilon=10.0, delta=1e-4)


def _checks(plan, kernel, n, level=50.0):
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(kernel(X) + 1e-6 * np.eye(len(X)))
    ys = (level + root @ rng.normal(size=len(X)) + 5 * rng.normal(size=len(X)) for _ in range(n))
    return [plan.release(y).check_model() for y in ys]


def test_a_right_model_is_green(plan):
    found = _checks(plan, KERNEL, 100)
    assert sum(not one.fits for one in found) <= 8  # some 1 of 100 is expected
    p = np.sort([one.p_value for one in found])
    assert 0.2 < np.mean(p < 0.5) < 0.8
    assert all(str(one).startswith("green: The model fits") for one in found if one.fits)


@pytest.mark.parametrize(
    ("kernel", "level"),
    [(EQ(20.0, variance=16 * 400.0), 50.0), (EQ(6.0, variance=1600.0), 50.0), (KERNEL, 170.0)],
    ids=["larger", "shorter", "another level"],
)
def test_a_wrong_model_is_amber(kernel, level):
    plan = MODEL.plan(X, X_star=X_star, epsilon=100.0, delta=1e-4)
    found = _checks(plan, kernel, 12, level)
    assert sum(not one.fits for one in found) >= 9
    assert all("does not fit" in str(one) or "vary less" in str(one) for one in found if not one.fits)


def test_what_was_learned_is_checked_too_and_a_function():
    rng = np.random.default_rng(1)
    y = 50 + 30 * np.sin(X[:, 0] / 15) + 3 * rng.normal(size=len(X))
    learned = AutoGP(bounds=(-100, 200), stages=2).plan(X, X_star=X_star, epsilon=5.0, delta=1e-4).release(y)
    assert learned.check_model().odds is None
    assert 0 <= learned.check_model().p_value <= 1
    function = MODEL.plan_function(X, epsilon=5.0, delta=1e-4).release(y)
    assert isinstance(function.check_model(), cloakgp.ModelCheck)


def test_with_inducing_inputs_and_rows_in_cells(monkeypatch):
    rng = np.random.default_rng(2)
    y = 50 + 20 * np.sin(X[:, 0] / 15) + 5 * rng.normal(size=len(X))
    gp = GP(KERNEL, 25.0, (-100.0, 200.0), inducing=15)
    assert gp.plan(X, X_star=X_star, epsilon=5.0, delta=1e-4).release(y).check_model().odds is not None
    monkeypatch.setattr(cells, "MOST_CELLS", 32)
    found = gp.plan(X, X_star=X_star, epsilon=5.0, delta=1e-4).release(y).check_model()
    assert found.odds is not None
    assert 0 < found.p_value <= 1


def test_lengthscales_at_knots_are_stretched_and_their_places_stay():
    found = dict(broader(GP(Gibbs(([0, 50], [6.0, 12.0])), 25.0, (-100.0, 200.0))))
    assert found["lengthscales a third as long"].kernel == Gibbs(([0, 50], [2.0, 4.0]))
