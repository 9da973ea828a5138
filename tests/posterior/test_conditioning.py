"""Predictions from a release: the textbook's posterior, calibrated, free, and without y."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloakgp import GP, Release
from cloakgp.core.errors import ArgumentError
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Matern32, as_kernel
from cloakgp.posterior import conditioning

PER_ROW = np.linspace(0.2, 0.9, 12)
CASES: dict[str, dict[str, Any]] = {
    **{design: {"design": design} for design in DESIGNS},
    "mean outside the bounds": {"mean": -9.0},
    "default mean": {"mean": None},
    "noise per row": {"noise": PER_ROW},
    "noise per row, posterior": {"noise": PER_ROW, "design": "posterior", "mean": 3.0},
    "sum of kernels": {"kernel": Matern32(1.5) + Constant(4.0)},
    "custom kernel": {"kernel": lambda X, Z: np.exp(-np.abs(X[:, :1] - Z[:, :1].T))},
    "far bounds": {"bounds": (1000.0, 1010.0), "mean": 1004.0},
}
UNPLANNED = np.array([[-3.0], [0.123], [4.9], [5.0], [30.0]])


def by_the_formula(release: Any, X_new: Any) -> tuple[Any, Any]:
    """Mean and covariance of f(X_new) given z (docs/designs.md), z and B in y's own unit."""
    plan = release.plan
    m, gp, X = plan.measurement, plan.gp, plan.X
    k = as_kernel(gp.kernel)
    d = m.upper - m.lower
    B = m.matrix / 2.0**m.matrix_bits
    z = release.z / 2.0 ** (m.matrix_bits + m.y_bits) * d + B.sum(axis=1) * m.lower
    s = (m.sigma / 2.0 ** (m.matrix_bits + m.y_bits) * d) ** 2
    K = k(X) + np.diag(np.broadcast_to(np.asarray(gp.noise), (len(X),)))
    G = np.linalg.solve(B @ K @ B.T + s * np.eye(len(B)), B @ k(X, X_new)).T
    mean = gp.mean + G @ (z - B @ np.full(len(X), gp.mean))
    return mean, k(X_new) - G @ B @ k(X, X_new)


@pytest.fixture(scope="module")
def release(make_plan: Any, setting: Any) -> Release:
    return make_plan().release(setting.y)


@pytest.fixture(scope="module")
def planar() -> SimpleNamespace:
    """Two input columns with a lengthscale each."""
    rng = np.random.default_rng(8)
    X, X_star = rng.uniform(0, 5, size=(25, 2)), rng.uniform(0, 5, size=(6, 2))
    gp = GP(EQ((1.0, 3.0), variance=4.0), noise=0.5, bounds=(-6.0, 6.0), mean=0.5)
    y = rng.normal(size=25)
    release = gp.plan(X, X_star=X_star, epsilon=2.0, delta=1e-3).release(y)
    return SimpleNamespace(release=release, new=rng.uniform(-1, 6, size=(9, 2)))


def agrees(release: Any, X_new: Any) -> None:
    mean, cov = by_the_formula(release, X_new)
    scale = np.abs(mean).max() + 1
    np.testing.assert_allclose(release.predict(X_new), mean, rtol=0, atol=1e-9 * scale)
    got, std = release.predict(X_new, return_std=True)
    np.testing.assert_array_equal(got, release.predict(X_new))
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-7)
    got, full = release.predict(X_new, return_cov=True)
    np.testing.assert_allclose(got, mean, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(full, cov, rtol=0, atol=1e-9 * np.diag(cov).max())
    np.testing.assert_allclose(np.diag(full), std**2, rtol=1e-9)


@pytest.mark.parametrize("case", [*CASES, "two columns"])
def test_predict_is_the_textbooks_posterior(make_plan, setting, planar, case):
    release = planar.release if case == "two columns" else make_plan(**CASES[case]).release(setting.y)
    agrees(release, release.X_star)
    agrees(release, planar.new if case == "two columns" else UNPLANNED)


def test_predict_is_deterministic_and_does_not_care_what_else_is_asked(release):
    once = release.predict(UNPLANNED, return_std=True)
    again = release.predict(UNPLANNED, return_std=True)
    np.testing.assert_array_equal(once, again)
    each = np.array([release.predict(x[None], return_std=True) for x in UNPLANNED])[:, :, 0].T
    np.testing.assert_allclose(each, once, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(release.predict(UNPLANNED[::-1])[::-1], once[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(release.predict(UNPLANNED[:, 0]), release.predict(UNPLANNED))


def test_predict_needs_nothing_but_the_plan_and_the_noisy_integers(make_plan, setting, answered):
    """The very same predictions from what is public, in a world where y never was."""
    plan = make_plan()
    y = setting.y.copy()
    released = plan.release(y)
    before = released.predict(UNPLANNED, return_std=True)
    y[:] = np.nan
    rebuilt = answered(make_plan(), released.z.copy())
    np.testing.assert_array_equal(rebuilt.predict(UNPLANNED, return_std=True), before)


@pytest.mark.parametrize("entries", [1, 25, 64])
def test_small_batches_change_nothing(planar, answered, monkeypatch, entries):
    whole = planar.release.predict(planar.new, return_std=True)
    mean, cov = planar.release.predict(planar.new, return_cov=True)
    parts = planar.release.uncertainty(planar.new)
    monkeypatch.setattr(conditioning, "_ENTRIES", entries)
    afresh = answered(planar.release.plan, planar.release.z)  # nothing cached
    np.testing.assert_allclose(afresh.predict(planar.new, return_std=True), whole, rtol=1e-9, atol=1e-9)
    batched_mean, batched_cov = afresh.predict(planar.new, return_cov=True)
    np.testing.assert_allclose(batched_mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(batched_cov, cov, atol=1e-10)
    np.testing.assert_allclose(afresh.uncertainty(planar.new).total, parts.total, rtol=1e-10)


def test_many_predictions_need_little_memory(planar, monkeypatch):
    """20,000 points: their covariance would take 3.2 GB, their kernel matrix with X 4 MB at once."""
    monkeypatch.setattr(conditioning, "_ENTRIES", 2**12)
    many = np.random.default_rng(0).uniform(0, 5, size=(20_000, 2))
    planar.release.predict(many[:10], return_std=True)
    tracemalloc.start()
    try:
        mean, std = planar.release.predict(many, return_std=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert mean.shape == std.shape == (20_000,)
    assert peak < 2_500_000  # X, mean and variance are 0.64 MB, and one copy of each is allowed for


def test_the_observation_noise_is_added_where_it_is_asked_for(release, make_plan, setting):
    mean, std = release.predict(UNPLANNED, return_std=True)
    _, cov = release.predict(UNPLANNED, return_cov=True)
    for asked, variance in ((True, 0.4), (0.07, 0.07), (1, 1.0), (False, 0.0)):
        got, wide = release.predict(UNPLANNED, return_std=True, include_noise=asked)
        np.testing.assert_array_equal(got, mean)
        np.testing.assert_allclose(wide**2, std**2 + variance, rtol=1e-12)
        got, full = release.predict(UNPLANNED, return_cov=True, include_noise=asked)
        np.testing.assert_allclose(full, cov + variance * np.eye(5), rtol=1e-12)
        np.testing.assert_allclose(got, mean, rtol=1e-10, atol=1e-10)
    per_row = make_plan(noise=PER_ROW).release(setting.y)
    with pytest.raises(ValueError, match=r"one noise variance per row.*include_noise=variance"):
        per_row.predict(UNPLANNED, return_std=True, include_noise=True)
    _, std = per_row.predict(UNPLANNED, return_std=True)
    _, wide = per_row.predict(UNPLANNED, return_std=True, include_noise=0.3)
    np.testing.assert_allclose(wide**2, std**2 + 0.3, rtol=1e-12)


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf, "yes", None])
def test_a_noise_variance_must_be_a_positive_number(release, bad):
    with pytest.raises(ArgumentError) as error:
        release.predict(UNPLANNED, return_std=True, include_noise=bad)
    assert error.value.name == "include_noise"


def test_std_and_covariance_are_not_given_together(release):
    with pytest.raises(ValueError, match="at most one"):
        release.predict(UNPLANNED, return_std=True, return_cov=True)


@pytest.mark.parametrize("method", ["predict", "uncertainty", "sample"])
@pytest.mark.parametrize(
    "bad", [np.zeros((3, 2)), np.zeros((0, 1)), np.zeros((2, 1, 1)), [[np.nan]], [["a"]]], ids=repr
)
def test_bad_inputs_are_refused(release, method, bad):
    with pytest.raises(ArgumentError) as error:
        getattr(release, method)(bad, **({"n": 2} if method == "sample" else {}))
    assert error.value.name == "X"


def test_mse_designs_mean_is_unbiased(make_plan, setting, textbook, seeded):
    plan = make_plan()
    n = 4000
    with seeded(0):
        releases = [plan.release(setting.y) for _ in range(n)]
    assert releases[0].certificate.unbiased
    y = np.clip(setting.y, -1.0, 4.0)
    mean, _ = textbook(setting.gp.kernel, 0.4, 0.7, setting.X, setting.X_star, y)
    average = np.mean([release.mean for release in releases], axis=0)
    assert (np.abs(average - mean) < 4 * plan.noise_std / np.sqrt(n)).all()
    # The denoised prediction is not: it is drawn to the prior mean by more than chance can explain.
    denoised = np.array([release.predict(setting.X_star) for release in releases[:500]])
    away = np.abs(denoised.mean(axis=0) - mean) / (denoised.std(axis=0) / np.sqrt(500))
    assert away.max() > 10


def test_noise_std_is_the_spread_of_denoised_means_over_releases(make_plan, setting, seeded):
    """Of the other designs all of the covariance is compared: tests/release/test_release.py."""
    plan = make_plan(design="posterior")
    n = 2500
    with seeded(4):
        means = np.array([plan.release(setting.y).mean for _ in range(n)])
    # A sample std has a relative error of 1/√(2n) = 1.4 %.
    np.testing.assert_allclose(means.std(axis=0), plan.noise_std, rtol=0.06)


@pytest.mark.parametrize("design", DESIGNS)
def test_variances_add_up(make_plan, setting, textbook, design):
    release = make_plan(design=design).release(setting.y)
    for X_new in (setting.X_star, UNPLANNED):
        parts = release.uncertainty(X_new)
        _, alone = textbook(setting.gp.kernel, 0.4, 0.7, setting.X, X_new, setting.y)
        _, std = release.predict(X_new, return_std=True)
        _, wide = release.predict(X_new, return_std=True, include_noise=True)
        np.testing.assert_allclose(parts.gp, alone, rtol=1e-9)
        np.testing.assert_allclose(parts.privacy**2, std**2 - alone**2, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(parts.observation, np.full(len(X_new), np.sqrt(0.4)), rtol=1e-12)
        np.testing.assert_allclose(parts.total, wide, rtol=1e-12)
        added = parts.privacy**2 + parts.gp**2 + parts.observation**2
        np.testing.assert_allclose(parts.total**2, added, rtol=1e-10)
    at_planned = release.uncertainty(setting.X_star)
    np.testing.assert_allclose(at_planned.gp, release.gp_std, rtol=1e-9)
    assert (at_planned.privacy > 0.01).all()


def test_less_privacy_leaves_less_unknown_and_far_away_only_the_prior_is_known(make_plan, setting, release):
    mean, std = release.predict([[1e6]], return_std=True)
    assert (mean[0], std[0]) == (pytest.approx(0.7, abs=1e-12), pytest.approx(np.sqrt(1.5)))
    plans = [make_plan(epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0, 60.0)]
    stds = [plan.release(setting.y).uncertainty(setting.X_star) for plan in plans]
    for wide, narrow in pairwise(stds):
        assert (narrow.privacy < wide.privacy).all()
        np.testing.assert_array_equal(narrow.gp, wide.gp)


@pytest.mark.parametrize("design", ["mse", "posterior"])
def test_intervals_hold_what_they_promise(seeded, design):
    """Data from the prior itself: 95 % intervals hold 95 % of f, and of new outcomes."""
    rng = np.random.default_rng(0)
    kernel, noise, sets = EQ(1.5), 0.3, 300
    gp = GP(kernel, noise, bounds=(-6.0, 6.0))  # five stds of y: clipping is as good as absent
    held: dict[str, list[Any]] = {"f": [], "outcome": []}
    with seeded(11):
        for _ in range(4):
            X, X_new = rng.uniform(0, 6, size=(35, 1)), rng.uniform(-1, 7, size=(5, 1))
            plan = gp.plan(X, X_star=np.linspace(0, 6, 4), epsilon=4.0, delta=1e-3, design=design)
            both = np.vstack([X, X_new])
            root = np.linalg.cholesky(kernel(both) + 1e-9 * np.eye(40))
            for _ in range(sets):
                f = root @ rng.normal(size=40)
                y = f[:35] + np.sqrt(noise) * rng.normal(size=35)
                outcome = f[35:] + np.sqrt(noise) * rng.normal(size=5)
                release = plan.release(y)
                mean, std = release.predict(X_new, return_std=True)
                _, wide = release.predict(X_new, return_std=True, include_noise=True)
                held["f"].append(np.abs(f[35:] - mean) < 1.959964 * std)
                held["outcome"].append(np.abs(outcome - mean) < 1.959964 * wide)
            # Privacy noise is a real part of what is tested.
            assert np.mean(release.uncertainty(X_new).gp / std) < 0.8
    assert np.mean(held["f"]) == pytest.approx(0.95, abs=0.02)
    assert np.mean(held["outcome"]) == pytest.approx(0.95, abs=0.02)


def test_samples_have_the_posteriors_mean_and_covariance(release):
    n = 20_000
    draws = release.sample(UNPLANNED, n, seed=5)
    assert draws.shape == (n, 5)
    mean, cov = release.predict(UNPLANNED, return_cov=True)
    std = np.sqrt(np.diag(cov))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 5 * std / np.sqrt(n))
    standard = np.cov(draws.T) / np.outer(std, std)
    np.testing.assert_allclose(standard, cov / np.outer(std, std), atol=5 * np.sqrt(2 / n))


def test_samples_repeat_with_their_seed_only_and_are_functions(release):
    one = release.sample(UNPLANNED, 4, seed=7)
    np.testing.assert_array_equal(release.sample(UNPLANNED, 4, seed=7), one)
    assert (release.sample(UNPLANNED, 4, seed=8) != one).all()
    assert (release.sample(UNPLANNED, 4) != release.sample(UNPLANNED, 4)).all()
    # A singular covariance is no obstacle: one function has one value at one input.
    draws = release.sample([[2.0], [2.0], [2.0 + 1e-9]], 5, seed=0)
    np.testing.assert_allclose(draws[:, :1] + np.zeros(3), draws, atol=1e-6)
