"""Observation noise as a function of X: evaluated at its rows when planned, and asked at new inputs."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, ArgumentError, binning, combine, plan_selection
from cloakgp.kernels import EQ

X = np.linspace(0, 10, 30)[:, None]
X_STAR = np.linspace(0.3, 9.7, 5)[:, None]
Y = np.sin(X[:, 0])
NEW = np.array([[-2.0], [4.4], [14.0]])
BOUNDS, PROMISE = (-2.0, 2.0), {"epsilon": 1.0, "delta": 0.01}


def spread(X):
    """Larger to the right; above 0 everywhere."""
    return 0.1 + np.exp(0.3 * X[:, 0]) / 10


@pytest.fixture(scope="module")
def release():
    return GP(EQ(2.0), spread, BOUNDS).plan(X, X_star=X_STAR, **PROMISE).release(Y)


def test_a_plan_is_that_of_the_variances_at_its_rows():
    ours, same = (
        GP(EQ(2.0), noise, BOUNDS).plan(X, X_star=X_STAR, **PROMISE) for noise in (spread, spread(X))
    )
    np.testing.assert_array_equal(ours.gp.noise, spread(X))
    np.testing.assert_array_equal(ours.noise_std, same.noise_std)
    np.testing.assert_array_equal(ours.gp_std, same.gp_std)
    assert ours.digest == same.digest


def test_new_outcomes_have_the_functions_variance(release):
    f = release.predict(NEW, return_std=True)[1]
    new = release.predict(NEW, return_std=True, include_noise=True)[1]
    np.testing.assert_allclose(new**2 - f**2, spread(NEW), rtol=1e-9)
    cov = release.predict(NEW, return_cov=True, include_noise=True)[1]
    added = cov - release.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(added, np.diag(spread(NEW)), atol=1e-12)
    np.testing.assert_allclose(release.uncertainty(NEW).observation, np.sqrt(spread(NEW)))
    np.testing.assert_allclose(release.uncertainty(NEW, include_noise=0.25).observation, 0.5)


def test_files_keep_the_rows_variances_and_no_function(release, tmp_path):
    release.save(tmp_path / "file")
    again = cloakgp.load(tmp_path / "file")
    np.testing.assert_array_equal(again.plan.gp.noise, spread(X))
    np.testing.assert_array_equal(again.predict(NEW), release.predict(NEW))
    with pytest.raises(ValueError, match=r"include_noise: .* Give it as a number"):
        again.predict(NEW, return_std=True, include_noise=True)
    wider = again.predict(NEW, return_std=True, include_noise=0.3)[1]
    assert (wider > again.predict(NEW, return_std=True)[1]).all()


def test_also_where_all_rows_have_the_same(tmp_path):
    """What the function gives elsewhere may differ, and the reader of the file does not have it."""
    step = GP(EQ(2.0), lambda X: np.where(X[:, 0] > 11, 4.0, 1.0), BOUNDS)
    release = step.plan(X, X_star=X_STAR, **PROMISE).release(Y)
    assert release.uncertainty(NEW).observation.tolist() == [1.0, 1.0, 2.0]
    release.save(tmp_path / "file")
    with pytest.raises(ValueError, match="include_noise: "):
        cloakgp.load(tmp_path / "file").uncertainty(NEW)


def test_variances_per_row_may_come_with_the_function():
    gp = GP(EQ(2.0), spread(X), BOUNDS, noise_function=spread)
    release = gp.plan(X, X_star=X_STAR, **PROMISE).release(Y)
    np.testing.assert_allclose(release.uncertainty(NEW).observation, np.sqrt(spread(NEW)))
    with pytest.raises(TypeError, match="noise_function must be a function of X; got float"):
        GP(EQ(2.0), 1.0, BOUNDS, noise_function=1.0)


@pytest.mark.parametrize(
    "function",
    [lambda X: X[:, 0], lambda X: np.full(len(X), np.nan), lambda X: np.ones(3), lambda X: ["a"] * len(X)],
    ids=["0", "NaN", "too few", "texts"],
)
def test_what_the_function_gives_is_checked(function):
    with pytest.raises(ArgumentError) as error:
        GP(EQ(2.0), function, BOUNDS).plan(X, X_star=X_STAR, **PROMISE)
    assert error.value.name == "noise"


def test_where_a_function_is_not_taken_it_says_so(release):
    gp = GP(EQ(2.0), spread, BOUNDS)
    assert "noise=<function of X>" in repr(gp)
    local = {"X_star": X_STAR, "kernel": EQ(1.0), "noise": spread, "bounds": BOUNDS, "epsilon": 1.0}
    for ask in (
        lambda: gp.plan_function(X, **PROMISE),
        lambda: gp.plan(X, X_star=X_STAR, given=[release], **PROMISE),
        lambda: plan_selection([gp, GP(EQ(1.0), spread, BOUNDS)], X, epsilon=1.0, folds=3),
        lambda: binning.local(X, **local),
    ):
        with pytest.raises(ArgumentError, match="must be one number or one per row of X for") as error:
            ask()
        assert (error.value.name, error.value.got) == ("noise", "a function")
    with pytest.raises(ValueError, match="model must have one noise variance"):
        combine([release, release.plan.release(Y)], same_data=False, model=gp)
