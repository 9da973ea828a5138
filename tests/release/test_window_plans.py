"""Plans, releases and files of rows that have bounds and prior means of their own."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, combine, verify
from cloakgp.data import cells
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ
from cloakgp.private import room
from cloakgp.release.plan import Plan

RNG = np.random.default_rng(8)
X = np.concatenate([RNG.uniform(0, 10, 25), np.repeat([2.0, 4.0], 3)])[:, None]
X_STAR = np.linspace(0, 10, 5)[:, None]
PROMISE = {"epsilon": 1.0, "delta": 0.01}
KERNEL = EQ(2.0, variance=1.5)


def curve(X):
    return 5 + 0.5 * X[:, 0] ** 2


def lower(X):
    return curve(X) - 2


def upper(X):
    return curve(X) + 1 + X[:, 0] / 5


Y = curve(X) + RNG.uniform(-1.5, 0.8, len(X))
MODELS = {
    "exact": {},
    "dtc": {"inducing": X_STAR + 0.1},
    "fitc": {"inducing": X_STAR + 0.1, "approximation": "fitc"},
}


def model(bounds=(lower, upper), mean=curve, **options):
    return GP(KERNEL, 0.4, bounds, mean, **options)


def released_without_noise(plan, y=Y):
    return plan.first.readout.mean(plan.measurement, integers(plan, y))


def integers(plan, y):
    return room._times([plan.measurement], room.Outcomes(y), "error")[0]


def posterior_mean(mean, at=X_STAR):
    """The GP by the book, with no window and no sparsity."""
    weights = np.linalg.solve(KERNEL(X, X) + 0.4 * np.eye(len(X)), Y - mean(X))
    return mean(at) + KERNEL(at, X) @ weights


@pytest.mark.parametrize("design", ["mse", "max", "volume"])
def test_windows_leave_the_predictions_what_they_are(design):
    plan = model().plan(X, X_star=X_STAR, design=design, **PROMISE)
    np.testing.assert_allclose(
        released_without_noise(plan), posterior_mean(curve), atol=plan.certificate.bias, rtol=0
    )
    assert plan.certificate.bias < 1e-4
    assert plan.certificate.gap < 0.01


@pytest.mark.parametrize("prior", MODELS)
@pytest.mark.parametrize(
    "mean", [curve, lambda X: np.full(len(X), 6.0), 6.0], ids=["curve", "level", "number"]
)
def test_windows_change_the_noise_and_not_the_mean(prior, mean):
    """Two plans for the same model agree but for their noise."""
    given = model(mean=mean, **MODELS[prior]).plan(X, X_star=X_STAR, **PROMISE)
    plain = model((-5.0, 70.0), mean, **MODELS[prior]).plan(X, X_star=X_STAR, **PROMISE)
    off = given.certificate.bias + plain.certificate.bias
    np.testing.assert_allclose(released_without_noise(given), released_without_noise(plain), atol=off)
    assert given.noise_std.max() < plain.noise_std.min()
    np.testing.assert_array_equal(given.gp_std, plain.gp_std)


@pytest.mark.parametrize("design", DESIGNS)
def test_windows_of_one_width_need_the_noise_of_that_width(design):
    """Where a window lies costs nothing: the matrix is that of bounds of the same width, merging aside."""
    alone = X[:25]
    given = model((lower, lambda X: lower(X) + 4), curve).plan(alone, X_star=X_STAR, design=design, **PROMISE)
    plain = model((0.0, 4.0), 2.0).plan(alone, X_star=X_STAR, design=design, **PROMISE)
    np.testing.assert_allclose(given.noise_std, plain.noise_std, rtol=1e-9)
    np.testing.assert_allclose(given.measurement.matrix, plain.measurement.matrix, atol=1)


@pytest.mark.parametrize("design", DESIGNS)
def test_one_wide_window_among_narrow_ones_costs_less_than_wide_ones(design):
    wide = np.where(np.arange(len(X)) == 3, 20.0, 2.0)
    plans = [
        model((curve(X) - half, curve(X) + half)).plan(X, X_star=X_STAR, design=design, **PROMISE)
        for half in (2.0, wide, 20.0)
    ]
    objectives = [plan.certificate.objective for plan in plans]
    assert objectives[0] < objectives[1] < objectives[2]
    for plan in plans:
        assert plan.certificate.lower_bound <= plan.certificate.objective
        assert plan.certificate.gap < 0.02


def test_outcomes_of_merged_rows_and_of_single_ones_agree(monkeypatch):
    from cloakgp.data.merging import Inputs

    merged = model().plan(X, X_star=X_STAR, **PROMISE)
    assert merged.measurement.groups is not None
    monkeypatch.setattr(
        "cloakgp.release.planner.distinct", lambda X, noise, windows: Inputs(X, noise, None, windows)
    )
    single = model().plan(X, X_star=X_STAR, **PROMISE)
    off = merged.certificate.bias + single.certificate.bias
    np.testing.assert_allclose(released_without_noise(merged), released_without_noise(single), atol=off)


def test_denoised_predictions_follow_the_formula():
    release = model().plan(X, X_star=X_STAR, **PROMISE).release(Y)
    m = release.plan.measurement
    B, K = m.by_row(), KERNEL(X, X) + 0.4 * np.eye(len(X))
    middle = (lower(X) + upper(X)) / 2
    surprise = (release.z - m.midpoint) * m.step - B @ (curve(X) - middle)
    D = B @ K @ B.T + m.noise_scale**2 * np.eye(len(B))
    at = np.array([[0.3], [7.7]])
    expected = curve(at) + KERNEL(at, X) @ B.T @ np.linalg.solve(D, surprise)
    np.testing.assert_allclose(release.predict(at), expected, rtol=1e-9)


def test_posterior_design_is_what_predict_says():
    release = model().plan(X, X_star=X_STAR, design="posterior", **PROMISE).release(Y)
    np.testing.assert_allclose(release.mean, release.predict(X_STAR), rtol=1e-7)


@pytest.mark.parametrize("most", [4096, 16], ids=["rows", "cells"])
@pytest.mark.parametrize("mean", [curve, curve(X), 6.0], ids=["function", "array", "number"])
def test_files_hold_what_rows_have(monkeypatch, tmp_path, answered, most, mean):
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    plan = model(mean=mean, inducing=X_STAR + 0.1).plan(X, X_star=X[:4], **PROMISE)
    release = plan.release(Y)
    release.save(tmp_path / "file")
    again = cloakgp.load(tmp_path / "file")
    np.testing.assert_array_equal(again.mean, release.mean)
    np.testing.assert_array_equal(again.predict(X[:4]), release.predict(X[:4]))
    np.testing.assert_array_equal(again.plan.gp.windows, plan.gp.windows)
    assert again.plan.digest == plan.digest
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "file").read_bytes()
    assert Plan.from_charged(plan.to_bytes()).digest == plan.digest
    new = [[0.123]]
    if isinstance(mean, float):
        np.testing.assert_array_equal(again.predict(new), release.predict(new))
        return
    with pytest.raises(ValueError, match=r"mean was given per row.*as a function of X"):
        again.predict(new)
    given = cloakgp.load(tmp_path / "file", mean=curve)
    expected = model(inducing=X_STAR + 0.1).plan(X, X_star=X[:4], **PROMISE)
    assert given.predict(new) == pytest.approx(answered(expected, release.z).predict(new), rel=1e-6)
    for wrong in (lambda X: curve(X) + 1e-3, curve(X)):
        with pytest.raises((ValueError, TypeError), match="mean must be the function of X"):
            cloakgp.load(tmp_path / "file", mean=wrong)


def test_several_releases_combine_and_others_are_refused():
    plan = model().plan(X, X_star=X_STAR, **PROMISE)
    one, two = plan.release(Y), plan.release(Y)
    both = combine([one, two]).predict(X_STAR, return_std=True)[1]
    assert (both < one.predict(X_STAR, return_std=True)[1]).all()
    for bounds, mean in (((lower, lambda X: upper(X) + 1), curve), ((lower, upper), 6.0)):
        other = model(bounds, mean).plan(X, X_star=X_STAR, **PROMISE).release(Y)
        with pytest.raises(ValueError, match="same kernel, noise, mean, bounds"):
            combine([one, other])


def test_a_model_is_learned_about_the_mean():
    release = model().plan(X, X_star=X_STAR, epsilon=50.0, delta=0.01).release(Y)
    learned = release.learn()
    assert learned.gp.limits[1] - learned.gp.limits[0] == pytest.approx((2 + 1 + X.max() / 5), rel=1e-6)
    np.testing.assert_allclose(learned.predict(X_STAR), curve(X_STAR), atol=2.0)
    flat = model(mean=6.0).plan(X, X_star=X_STAR, epsilon=50.0, delta=0.01).release(Y)
    np.testing.assert_allclose(flat.learn().predict(X_STAR[:4]), curve(X_STAR[:4]), atol=2.0)
    plain = model((-5.0, 70.0), 6.0)
    assert release.remodel(plain).predict(X_STAR).shape == (5,)
    assert release.evidence(model()) > release.evidence(model(mean=lambda X: curve(X) + 9))


def test_verify_says_whose_word_rows_are(tmp_path):
    cases = {"bounds, mean": model(), "mean": model((-5.0, 70.0)), "bounds": model(mean=6.0)}
    for said, gp in cases.items():
        gp.plan(X, X_star=X_STAR, **PROMISE).release(Y).save(tmp_path / "file")
        result = verify(tmp_path / "file")
        assert not result.complete
        assert result.proven_delta is not None
        (left,) = result.unchecked
        assert left.startswith(f"the origin of each row's {said}: ")
        assert "IN PART" in result.headline
        assert "the origin of what each row has of its own was not checked" in result.headline
