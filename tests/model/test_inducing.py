"""Inducing inputs: the textbook's sparse GPs, the same ones every time, and refusals in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from cloakgp import GP, combine, plan_selection
from cloakgp.core.errors import ArgumentError
from cloakgp.data import cells
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ, Constant, Matern12, Matern32, as_kernel
from cloakgp.model.inducing import APPROXIMATIONS, Features, choose_inducing

RNG = np.random.default_rng(4)
X = RNG.uniform(0, 10, size=(40, 2))
X_STAR = RNG.uniform(0, 10, size=(5, 2))
NEW = RNG.uniform(-2, 12, size=(7, 2))
Z = RNG.uniform(0, 10, size=(8, 2))
Y = RNG.normal(1.5, 2.0, size=40)
BOUNDS = (-1.0, 4.0)
PER_ROW = np.geomspace(0.1, 4.0, 40)
PROMISE = {"epsilon": 1.0, "delta": 0.01}

KERNELS = {
    "EQ": EQ(2.0, variance=1.5),
    "a lengthscale per column": Matern32([2.0, 6.0], variance=0.7),
    "sum": Matern12(3.0) + Constant(2.0),
    "function": lambda X, Z: np.exp(-np.abs(X[:, :1] - Z[:, :1].T) - np.abs(X[:, 1:] - Z[:, 1:].T) / 3),
}
NOISE = {"one noise": 0.4, "noise per row": PER_ROW}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_noise = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
every_approximation = pytest.mark.parametrize("approximation", APPROXIMATIONS)
every_design = pytest.mark.parametrize("design", DESIGNS)


def model(approximation: str = "dtc", kernel: Any = None, noise: Any = 0.4, inducing: Any = Z) -> GP:
    return GP(kernel or KERNELS["EQ"], noise, BOUNDS, 0.7, inducing, approximation)


# The textbook


@every_kernel
@every_noise
@every_approximation
def test_columns_and_variances_are_the_textbooks(by_the_book, approximation, noise, kernel):
    gp = model(approximation, kernel, noise)
    smoother, book = gp.planner(X, X_star=X_STAR).smoother, by_the_book(gp, X, X_STAR)
    np.testing.assert_allclose(smoother.columns(slice(None)), book.C, atol=1e-9)
    np.testing.assert_allclose(smoother.columns(slice(5, 9)), book.C[:, 5:9], atol=1e-9)
    np.testing.assert_allclose(smoother.posterior_variance, book.variance, atol=1e-9)
    np.testing.assert_allclose(smoother.explained_variance, book.explained, atol=1e-9)
    np.testing.assert_allclose(smoother.cross, book.cross, atol=1e-9)
    B = np.random.default_rng(1).normal(size=(3, 40))
    np.testing.assert_allclose(smoother.times_covariance(B), B @ book.K, atol=1e-8)
    assert (smoother.n_rows, smoother.n_outputs, smoother.jitter) == (40, 5, 0.0)


def test_the_two_approximations_differ(by_the_book):
    """So that what agrees above is not one formula under two names."""
    one, other = (by_the_book(model(name), X, X_STAR) for name in APPROXIMATIONS)
    assert np.abs(one.C - other.C).max() > 0.01
    assert np.abs(one.variance - other.variance).max() > 0.01


@every_noise
@every_approximation
@every_design
def test_releases_are_the_textbooks(by_the_book, noiseless, design, approximation, noise):
    gp = model(approximation, noise=noise)
    plan = gp.plan(X, X_star=X_STAR, design=design, **PROMISE)
    at_star, at_new = by_the_book(gp, X, X_STAR), by_the_book(gp, X, NEW)
    np.testing.assert_allclose(plan.gp_std, np.sqrt(at_star.variance), rtol=1e-9)
    assert plan.certificate.gap <= 0.0101
    assert plan.certificate.design == design
    away = np.abs(noiseless(plan, Y).mean - at_star.mean(np.clip(Y, *BOUNDS))).max()
    assert away <= plan.certificate.bias + 1e-9
    assert away < 1e-5 or not plan.certificate.unbiased
    release = plan.release(Y)
    mean, cov = at_new.denoised([release])
    got, std = release.predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-8)
    got, full = release.predict(NEW, return_cov=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(full, cov, atol=1e-8)
    parts = release.uncertainty(NEW, include_noise=0.3)
    np.testing.assert_allclose(parts.gp, np.sqrt(at_new.variance), rtol=1e-8)
    np.testing.assert_allclose(parts.privacy**2, np.diag(cov) - at_new.variance, atol=1e-8)
    np.testing.assert_allclose(parts.total**2, np.diag(cov) + 0.3, rtol=1e-8)
    if design == "posterior":
        np.testing.assert_allclose(release.mean, release.predict(X_STAR), atol=1e-9)


@every_approximation
def test_blocks_and_chunks_change_nothing(monkeypatch, approximation):
    gp = model(approximation, noise=PER_ROW)
    whole = gp.planner(X, X_star=X_STAR).smoother
    B = np.random.default_rng(1).normal(size=(3, 40))
    wanted = whole.times_covariance(B), whole.cross, whole.columns(slice(None))
    monkeypatch.setattr("cloakgp.model.smoothers.BLOCK", 7)
    monkeypatch.setattr("cloakgp.data.chunks.CHUNK", 11)
    monkeypatch.setattr("cloakgp.data.chunks.STEP", 3)
    parts = gp.planner(X, X_star=X_STAR).smoother
    got = parts.times_covariance(B), parts.cross, parts.columns(slice(None))
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


# Places


def test_inducing_inputs_are_the_same_every_time_and_whatever_the_threads():
    data = np.random.default_rng(0).normal(size=(3000, 3)) * [1, 100, 1e-3]
    found = set()
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            found.add(choose_inducing(data, 50).tobytes())
    assert len(found) == 1


def test_a_number_of_inducing_inputs_is_chosen_from_X(by_the_book):
    plan = model(inducing=6).plan(X, X_star=X_STAR, **PROMISE)
    chosen = plan.gp.inducing
    assert chosen.shape == (6, 2)
    np.testing.assert_array_equal(chosen, choose_inducing(X, 6))
    assert plan.digest == model(inducing=6).plan(X, X_star=X_STAR, **PROMISE).digest
    assert plan.digest == model(inducing=chosen).plan(X, X_star=X_STAR, **PROMISE).digest
    assert (chosen.min(axis=0) >= X.min(axis=0)).all()
    assert (chosen.max(axis=0) <= X.max(axis=0)).all()
    book = by_the_book(plan.gp, X, X_STAR)
    np.testing.assert_allclose(plan.gp_std, np.sqrt(book.variance), rtol=1e-7)


@pytest.mark.parametrize("asked", [3, 4, 500, np.int64(7)])
def test_with_few_distinct_rows_all_of_them_are_inducing_inputs(by_the_book, asked):
    few = X[[0, 1, 2, 1, 0, 2, 2, 0]]
    np.testing.assert_array_equal(choose_inducing(few, asked), X[:3])
    gp = model(inducing=asked)
    plan = gp.plan(few, X_star=X_STAR, **PROMISE)
    assert plan.gp.inducing.shape == (3, 2)
    exact = by_the_book(GP(KERNELS["EQ"], 0.4, BOUNDS, 0.7), few, X_STAR)
    np.testing.assert_allclose(plan.gp_std, np.sqrt(exact.variance), rtol=1e-9)


def test_places_follow_the_bulk_of_any_columns():
    """In any unit, constant ones included, and rows that are hardly told apart."""
    scales = np.array([1.0, 1024.0])
    np.testing.assert_allclose(choose_inducing(X * scales, 6), choose_inducing(X, 6) * scales, rtol=1e-9)
    assert choose_inducing(X, 1) == pytest.approx(X.mean(axis=0)[None], rel=1e-9)
    flat = choose_inducing(np.column_stack([X[:, 0], np.full(40, 3.0)]), 5)
    assert np.isfinite(flat).all()
    np.testing.assert_allclose(flat[:, 1], 3.0, rtol=1e-12)
    bulk = np.random.default_rng(0).normal(size=(5000, 1))
    assert np.sum(np.abs(choose_inducing(np.vstack([bulk, [[30.0]]]), 5)) < 3) >= 4
    alike = [0.0, 1e-300, 2e-300, 1.0]
    assert sorted(set(choose_inducing(np.array(alike)[:, None], 3)[:, 0].round(6))) == [0.0, 1.0]
    GP(EQ(1.0), 0.4, BOUNDS, inducing=3).plan(alike, X_star=[0.5], **PROMISE)  # without a warning


def test_a_model_is_kept_as_it_was_given():
    vector = GP(EQ(2.0), 0.4, BOUNDS, inducing=[1.0, 5.0, 9.0]).plan(X[:, 0], X_star=[2.0], **PROMISE)
    assert vector.gp.inducing.shape == (3, 1)
    gp = model(inducing=6)
    one, other = gp.plan(X, X_star=X_STAR, **PROMISE), gp.plan(X[:20], X_star=X_STAR, **PROMISE)
    assert gp.inducing == 6  # and so may be used for other data
    assert not np.array_equal(one.gp.inducing, other.gp.inducing)


# Refusals


BAD = [
    0,
    -1,
    2.5,
    True,
    "many",
    np.zeros((0, 2)),
    np.zeros((2, 2, 1)),
    [[np.nan, 0.0]],
    [["a", "b"]],
    [[1], [2, 3]],
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_inducing_inputs_are_refused(bad):
    with pytest.raises(ArgumentError) as error:
        model(inducing=bad)
    assert error.value.name == "inducing"


@pytest.mark.parametrize("bad", ["foo", "DTC", "", None])
def test_unknown_approximations_are_refused(bad):
    with pytest.raises(ArgumentError, match=r"approximation must be .*dtc.*fitc"):
        model(bad)


def test_what_does_not_go_with_inducing_inputs():
    with pytest.raises(ValueError, match=r"inducing must have 2 column\(s\)"):
        model(inducing=np.zeros((3, 1))).plan(X, X_star=X_STAR, **PROMISE)
    with pytest.raises(ValueError, match=r"inducing: a function release needs an exact GP.*plan\(\)"):
        model().plan_function(X, **PROMISE)


@pytest.mark.parametrize("sparse", [0, 1])
def test_a_selection_does_not_pass_over_inducing_inputs(sparse):
    """Candidates are compared as exact GPs, so a sparse one would be judged by another model's errors."""
    candidates = [GP(EQ(2.0), 0.4, BOUNDS, 0.7), GP(EQ(3.0), 0.4, BOUNDS, 0.7)]
    plan_selection(candidates, X, epsilon=1.0)
    candidates[sparse] = model()
    with pytest.raises(ValueError, match=rf"candidates\[{sparse}\] must have no inducing inputs.*exact GP"):
        plan_selection(candidates, X, epsilon=1.0)


def test_a_kernel_that_is_none_is_refused():
    with pytest.raises(ValueError, match="positive semi-definite"):
        model(kernel=lambda X, Z: -np.exp(-((X[:, :1] - Z[:, :1].T) ** 2))).plan(X, X_star=X_STAR, **PROMISE)
    with pytest.raises(ValueError, match="symmetric"):
        model(kernel=lambda X, Z: np.exp(X[:, :1] - 2 * Z[:, :1].T)).plan(X, X_star=X_STAR, **PROMISE)


# Several together


@every_noise
@every_approximation
def test_sparse_releases_are_combined(by_the_book, approximation, noise):
    gp = model(approximation, noise=noise)
    plans = [
        gp.plan(X, X_star=X_STAR, **PROMISE),
        gp.plan(X, X_star=X_STAR[:2], design="posterior", **PROMISE),
    ]
    releases = [plan.release(Y) for plan in plans]
    mean, cov = by_the_book(gp, X, NEW).denoised(releases)
    got, std = combine(releases).predict(NEW, return_std=True)
    np.testing.assert_allclose(got, mean, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(np.diag(cov)), rtol=1e-8)


@pytest.mark.parametrize(
    "other",
    [{"inducing": None}, {"inducing": Z[:-1]}, {"inducing": Z + 0.1}, {"approximation": "fitc"}],
    ids=["exact", "fewer inducing inputs", "other inducing inputs", "other approximation"],
)
def test_releases_of_different_models_are_not_combined(other):
    """The answer would depend on which came first."""
    plans = [gp.plan(X, X_star=X_STAR, **PROMISE) for gp in (model(), model(**other))]
    releases = [plan.release(Y) for plan in plans]
    for chosen in (releases, releases[::-1]):
        with pytest.raises(ValueError, match="releases must all have the same kernel"):
            combine(chosen)


@pytest.mark.parametrize("most", [4096, 16], ids=["rows", "cells"])
@every_approximation
def test_inducing_inputs_that_add_nothing_change_no_prediction(monkeypatch, most, approximation):
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    X, Z = np.linspace(0, 10, 80)[:, None], np.linspace(0, 10, 6)[:, None]
    stds = []
    for places in (Z, np.vstack([Z[:3], Z + 1e-8])):
        gp = GP(EQ(2.0), 0.3, (-3.0, 3.0), inducing=places, approximation=approximation)
        release = gp.plan(X, X_star=X[::9] + 0.1, epsilon=1.0, delta=0.01).release(np.sin(X[:, 0]))
        stds.append(release.predict(X, return_std=True)[1])
    assert stds[1] == pytest.approx(stds[0], rel=1e-4)


def test_a_machine_that_rounds_otherwise_has_the_same_model():
    """Inducing inputs too alike to tell apart: what is left out must not hang on a kernel's last bits."""
    Z, X = np.random.default_rng(1).uniform(0, 10, size=(30, 1)), np.linspace(0, 10, 50)[:, None]
    phi, exact = Features(EQ(2.0), Z).at(X), EQ(2.0)
    assert len(phi) < 20

    def otherwise(*asked):
        K = exact(*asked)
        bits = generator.integers(-1, 2, size=K.shape) * 2.0**-52
        return K * (1 + (bits + bits.T)) if len(K) == len(K.T) else K

    generator = np.random.default_rng(0)
    for _ in range(4):
        there = Features(as_kernel(otherwise), Z).at(X)
        np.testing.assert_allclose(there.T @ there, phi.T @ phi, rtol=0, atol=1e-10)
