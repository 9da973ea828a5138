"""Intervals for a new outcome, read through where outcomes fell; and what else does with such a stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cloakgp
from cloakgp import GP, AutoGP, Grid
from cloakgp.kernels import EQ
from cloakgp.measure.statistics import Bin
from cloakgp.testing import InsecureWarning, insecure_seed
from cloakgp.workflow import releases

BOUNDS = (0.0, 40.0)
POINTS = np.array([1.0, 5.0, 9.0])
LAW = stats.expon(scale=3)  # with nothing more than one std below its mean
PROMISE = {"epsilon": 3.0, "delta": 1e-3}


def outcomes(X, rng):
    return 2 + X / 2 + LAW.rvs(size=len(X), random_state=rng)


@pytest.fixture(scope="module")
def skewed():
    """A release of 3,000 outcomes that are never far below the curve, and often far above."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, 3000).round(1)
    with pytest.warns(InsecureWarning), insecure_seed(1):
        return AutoGP(BOUNDS, stages=4).plan(X, X_star=POINTS, **PROMISE).release(outcomes(X, rng))


def test_the_last_stage_counts_where_outcomes_fell(skewed):
    assert [isinstance(stage.measurement.statistic, Bin) for stage in skewed.stages] == [False] * 4 + [True]
    assert skewed.plan.shares[-1] == pytest.approx(0.04)
    assert sum(skewed.plan.shares) == pytest.approx(1)
    last = skewed.stages[-1].measurement
    assert last.mu() ** 2 == pytest.approx(0.04 * skewed.certificate.mu**2, rel=1e-6)
    assert skewed.learned.shape.counts.sum() == pytest.approx(3000, abs=6 * np.sqrt(10) * last.noise_scale)
    assert last.noise_scale == pytest.approx(np.sqrt(2) / (0.2 * skewed.certificate.mu), rel=1e-6)


def test_intervals_are_as_skewed_as_outcomes(skewed):
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 10, 20_000).round(1)
    new = outcomes(X, rng)

    low, high = skewed.interval(X, 0.95, include_noise=True).T
    own_low, own_high = replace(skewed.learned, shape=None).interval(X, 0.95, include_noise=True).T
    assert 0.935 < np.mean((low <= new) & (new <= high)) < 0.985
    assert 0.01 < np.mean(new > high) < 0.045 < np.mean(new > own_high)
    assert (low > own_low).all()  # where a normal law expects some, there are none
    assert (high > own_high).all()


def test_nothing_else_is_read_through_it(skewed):
    without = replace(skewed.learned, shape=None)
    for more in ({}, {"include_noise": False}, {"include_noise": 4.0}):
        assert np.array_equal(skewed.interval(POINTS, 0.9, **more), without.interval(POINTS, 0.9, **more))
    found, other = (one.predict(POINTS, return_std=True, include_noise=True) for one in (skewed, without))
    assert np.array_equal(found, other)


def test_an_interval_ends_at_the_bounds():
    X = np.linspace(0, 10, 200)
    released = AutoGP((0.0, 1.0), stages=2).plan(X, X_star=POINTS, **PROMISE).release(np.zeros(200))
    low, high = released.interval(POINTS, 0.999, include_noise=True).T
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low < high).all()


def test_every_face_reads_the_same(skewed, tmp_path):
    skewed.save(tmp_path / "file")
    loaded = cloakgp.load(tmp_path / "file")
    wanted = skewed.interval(POINTS, 0.9, include_noise=True)
    assert np.array_equal(loaded.interval(POINTS, 0.9, include_noise=True), wanted)
    found = releases.predictions(loaded, POINTS[:, None], 0.9, include_noise=True)
    assert np.array_equal(np.column_stack([found["lower"], found["upper"]]), wanted)


def test_the_check_sees_what_sums_cannot(skewed):
    """A model whose noise is normal, for outcomes that are not."""
    check = skewed.check_model()
    assert not check.fits
    assert "outcomes lie" in check.words
    assert len(check.words.split()) <= 20


def test_a_check_of_normal_outcomes_is_by_both():
    """The smaller p-value, doubled; the noise level is what is uncertain with so few rows."""
    rng, X = np.random.default_rng(3), np.linspace(0, 10, 300)
    y = 10 + X + 2 * rng.normal(size=300)
    with pytest.warns(InsecureWarning), insecure_seed(4):
        released = AutoGP(BOUNDS, stages=4).plan(X, X_star=POINTS, epsilon=1.0, delta=1e-3).release(y)
    check = released.check_model()
    assert check.fits
    assert 0.01 < check.p_value <= 1


KNOWN = GP(EQ(3.0, variance=4.0), 1.0, BOUNDS, 5.0)
OTHERS = {
    "yes/no": lambda X: AutoGP(outcome="yes/no", stages=2).plan(X, X_star=POINTS, **PROMISE).release(X > 5),
    "counts": lambda X: (
        AutoGP((0, 20), outcome="count", stages=2).plan(X, X_star=POINTS, **PROMISE).release(np.rint(X))
    ),
    "a known model": lambda X: KNOWN.plan(X, X_star=POINTS, **PROMISE).release(X),
    "a known model of whole rows": lambda X: KNOWN.plan_rows(
        Grid({"x": (0.0, 10.0)}, cells=5), len(X), X_star=POINTS, **PROMISE
    ).release(X, X),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_others_have_no_such_stage(kind, few_models):
    released = OTHERS[kind](np.linspace(0, 10, 60))
    assert not any(stage.counts_bins for stage in released.stages)
    assert released.learned.shape is None


def test_whole_rows_and_people_have_one(few_models):
    rng = np.random.default_rng(5)
    X, ids = rng.uniform(0, 10, 400), np.arange(400) % 200
    y, model = outcomes(X, rng), AutoGP(BOUNDS, stages=3)
    of_rows = model.plan_rows(Grid({"x": (0.0, 10.0)}, cells=12), 200, X_star=POINTS, max_rows=2, **PROMISE)
    of_people = model.plan(X, X_star=POINTS, people=ids, **PROMISE)
    for released in (of_rows.release(X, y, people=ids), of_people.release(y)):
        shape, last = released.learned.shape, released.stages[-1].measurement
        assert last.unit == released.plan.first.measurement.unit
        # Each of two rows moves two bins.
        assert np.sqrt(shape.noise) == pytest.approx(
            2 * np.sqrt(2) / (0.2 * released.certificate.mu), rel=1e-6
        )
        assert shape.clustered == pytest.approx(2, rel=0.2)  # two outcomes of one person count as one


def test_what_comes_after_takes_the_sums_alone(skewed, few_models):
    X = skewed.plan.X[:, 0]
    y = outcomes(X, np.random.default_rng(7))
    with pytest.warns(InsecureWarning), insecure_seed(8):
        first = AutoGP(BOUNDS, stages=2).plan(X, X_star=POINTS, **PROMISE).release(y)
    first = replace(first, plan=replace(first.plan, certificate=replace(first.certificate, insecure=False)))
    later = AutoGP(BOUNDS, stages=2).plan(X, X_star=POINTS, given=[first], **PROMISE)
    assert [len(given.stages) for given in later.given] == [2]
    assert later.sum_shares == pytest.approx(later.shares[:2])
    assert np.isfinite(first.learn(cloakgp.Hyperprior(noise=(0.05, 0.5))).predict(POINTS)).all()
    assert (
        first.learn(cloakgp.Hyperprior(noise=(0.05, 0.5))).shape is None
    )  # bins are of another model's laws


def test_a_release_that_stopped_before_its_last_stage_reads_the_model_alone(skewed):
    short = replace(skewed, stages=skewed.stages[:-1])
    assert short.learned.shape is None
    assert np.array_equal(short.predict(POINTS), skewed.predict(POINTS))
