"""Plans and releases of whole rows: what comes out, and what is refused."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from cloakgp import GP, ArgumentError, AutoGP, Grid, verify
from cloakgp.kernels import EQ, Category, Constant
from cloakgp.posterior import support
from cloakgp.testing import InsecureWarning, insecure_seed

GRID = Grid({"x": (0, 10), "k": ["a", "b"]}, cells=20)
PROMISE = {"epsilon": 2.0, "delta": 1e-3}
N = 800


def curve(x, k):
    return 50 + 20 * np.sin(x / 2) + 12 * (np.asarray(k) == "b")


@cache
def data(seed=0):
    random = np.random.default_rng(seed)
    x, k = random.beta(2, 3, N) * 10, random.choice(["a", "b"], N, p=[0.6, 0.4])
    return {"x": x, "k": k}, curve(x, k) + 4 * random.normal(size=N)


def seeded(plan, *table, seed=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureWarning)
        with insecure_seed(seed):
            return plan.release(*table, **options)


@pytest.fixture(scope="module")
def learned():
    return seeded(AutoGP((0, 100)).plan_rows(GRID, N, **PROMISE), *data())


TEST = {"x": [1, 3, 5, 7, 1, 3, 5, 7], "k": ["a"] * 4 + ["b"] * 4}


def test_what_is_learned_is_near_the_curve_and_knows_how_near(learned):
    mean, std = learned.predict(TEST, return_std=True)
    wrong = mean - curve(np.array(TEST["x"]), TEST["k"])
    assert np.sqrt(np.mean(wrong**2)) < 6
    assert np.mean(np.abs(wrong) < 3 * std) > 0.8
    assert (std < 15).all()
    assert learned.sample(TEST, 2, 0).shape == (2, 8)
    assert learned.uncertainty(TEST).total.shape == (8,)


def test_no_stage_is_lost_to_numpys_settings(learned):
    """Under strict ones tiny numbers would end it, and all stages are paid for."""
    with np.errstate(all="raise"):
        again = seeded(learned.plan, *data())
    np.testing.assert_array_equal(again.mean, learned.mean)


def test_a_density_comes_along(learned):
    X, _ = data()
    cell = np.minimum((X["x"] * 2).astype(int), 19) * 2 + (X["k"] == "b")
    counts = np.bincount(cell, minlength=len(GRID))
    found = learned.density
    assert found.counts.sum() == pytest.approx(N)
    assert np.sqrt(np.mean((found.counts - counts) ** 2)) < 0.6 * counts.std()
    assert 0.3 < np.mean((found.counts - counts) ** 2 / found.std**2) < 2


def test_inputs_in_the_place_of_their_number_are_not_quoted():
    secret = np.array([63.0625, 41.3125])
    for n_rows in (secret, secret.tolist(), "63.0625"):
        with pytest.raises(ArgumentError, match="n_rows must be a whole number above 0; got") as refusal:
            AutoGP(bounds=(0, 1)).plan_rows(Grid({"x": (0, 90)}), n_rows, epsilon=1.0, delta=1e-3)
        assert "63" not in str(refusal.value)


def test_a_known_model_has_windows_too_and_no_noise_level():
    kernel = EQ(2.0, variance=400, active_dims=[0]) * Category(0.7, active_dims=[1]) + Constant(400)
    plan = GP(kernel, 16.0, (0, 100)).plan_rows(GRID, N, X_star=TEST, **PROMISE)
    release = seeded(plan, *data())
    assert all(stage.spread is None for stage in release.stages)
    assert np.mean(release.stages[-1].upper - release.stages[-1].lower) < 60
    wrong = release.mean - curve(np.array(TEST["x"]), TEST["k"])
    assert np.sqrt(np.mean(wrong**2)) < 6


@pytest.mark.usefixtures("few_models_here")
def test_people_with_several_rows(tmp_path):
    X, y = data()
    plan = AutoGP((0, 100), stages=4).plan_rows(
        GRID, N // 4, X_star=TEST, epsilon=4.0, delta=1e-3, max_rows=3
    )
    ids = np.arange(N) % (N // 4)
    release = plan.release(X, y, people=ids)
    release.save(tmp_path / "file")
    assert verify(tmp_path / "file").headline.startswith(
        "verified IN PART: (4, 0.001)-DP, unit one person's whole rows, but how many rows of each person"
    )
    assert release.density.counts.sum() == pytest.approx(N // 4 * 3, rel=0.2)
    assert str(plan.certificate).count("up to 600 rows")
    assert "of X and y" in str(plan.certificate)


def test_a_plan_tells_what_error_to_expect_without_rows():
    plans = [AutoGP((0, 100)).plan_rows(GRID, n, X_star=TEST, **PROMISE) for n in (100, 10_000)]
    errors = [plan.expected_error.mean() for plan in plans]
    assert errors[1] < errors[0]
    assert plans[0].hides_inputs
    assert plans[0].X is None
    assert plans[0].inputs_digest == plans[0].partition == ""
    assert plans[0].unit == "one whole row"


@pytest.mark.usefixtures("few_models_here")
def test_inducing_inputs_come_from_the_grid(monkeypatch):
    monkeypatch.setattr(support, "MOST_EXACT", 60)
    grid = Grid({"x": (0, 10), "z": (0, 1)}, cells=8)
    plan = AutoGP((0, 100), stages=3).plan_rows(grid, 300, **PROMISE)
    assert plan.rule.support is not None
    again = AutoGP((0, 100), stages=3).plan_rows(grid, 300, **PROMISE)
    assert plan.digest == again.digest


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda gp: gp.plan_rows({"x": (0, 1)}, N, **PROMISE), "grid"),
        (lambda gp: gp.plan_rows(Grid({"x": (0, 1)}, cells=1), N, **PROMISE), "grid"),
        (lambda gp: gp.plan_rows(GRID, 0, **PROMISE), "n_rows"),
        (lambda gp: gp.plan_rows(GRID, 2.5, **PROMISE), "n_rows"),
        (lambda gp: gp.plan_rows(GRID, N, max_rows=0, **PROMISE), "max_rows"),
        (lambda gp: gp.plan_rows(GRID, N, X_star=[[1.0]], **PROMISE), "X_star"),
        (lambda gp: gp.plan_rows(GRID, N, X_star=TEST, weights=[1], **PROMISE), "weights"),
        (lambda gp: gp.plan_rows(GRID, N, epsilon=0, delta=0.1), "epsilon"),
        (lambda gp: AutoGP((0, 1), stages=1).plan_rows(GRID, N, **PROMISE), "stages"),
        (lambda gp: GP(EQ(1.0), np.ones(N), (0, 1)).plan_rows(GRID, N, **PROMISE), "gp"),
        (lambda gp: GP(EQ(1.0), 1.0, (0, 1), downweight="leverage").plan_rows(GRID, N, **PROMISE), "gp"),
        (lambda gp: GP(EQ(1.0), 1.0, (0, 1), lambda X: X[:, 0]).plan_rows(GRID, N, **PROMISE), "mean"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(change, named):
    with pytest.raises((ValueError, TypeError), match=f"^{named}\\b"):
        change(AutoGP((0, 100)))
