"""A down-weighted GP from plan to file: less noise around a lone row, and the promise as ever."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP
from cloakgp.data import cells, chunks
from cloakgp.data.merging import distinct
from cloakgp.kernels import EQ
from cloakgp.model.gp import downweighted

RNG = np.random.default_rng(5)
X = np.concatenate([RNG.uniform(0, 10, 80).round(), [25.0]])[:, None]  # repeated, and one alone
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=len(X))
X_STAR = np.array([[2.0], [5.5], [9.0], [24.0]])
PROMISE = {"epsilon": 1.0, "delta": 0.01}
MODELS = {
    "exact": {},
    "dtc": {"inducing": 12},
    "fitc": {"inducing": np.linspace(0, 25, 8)[:, None], "approximation": "fitc"},
}

every_model = pytest.mark.parametrize("places", MODELS.values(), ids=MODELS)


def model(downweight: str | None = "leverage", **changes) -> GP:
    return GP(**{"kernel": EQ(2.0), "noise": 0.3, "bounds": (-2.0, 2.0), "downweight": downweight, **changes})


@every_model
@pytest.mark.parametrize("design", ["volume", "mse", "max"])
def test_a_lone_row_costs_less_noise(places, design):
    plain = model(None, **places).plan(X, X_star=X_STAR, design=design, **PROMISE)
    plan = model(**places).plan(X, X_star=X_STAR, design=design, **PROMISE)
    assert plan.gp.noise[-1] > 5 * 0.3
    assert np.min(plan.gp.noise) == 0.3
    assert plan.noise_std[-1] < 0.5 * plain.noise_std[-1]
    assert len(plan.measurement.groups.counts) == len(plain.measurement.groups.counts) == 12


@pytest.mark.parametrize("most", [64, 4096], ids=["cells", "rows"])
@pytest.mark.parametrize("repeated", [False, True])
def test_rows_left_in_a_file_get_the_same_noise(monkeypatch, tmp_path, repeated, most):
    rows = X if repeated else X + 0.01 * np.arange(len(X))[:, None]
    monkeypatch.setattr(chunks, "CHUNK", 16)
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    np.save(tmp_path / "X.npy", rows)
    lazy = np.load(tmp_path / "X.npy", mmap_mode="r")
    for places in MODELS.values():
        found = model(**places).planner(lazy, X_star=X_STAR).gp.noise
        expected = model(**places).planner(rows, X_star=X_STAR).gp.noise
        np.testing.assert_array_equal(found, expected)
        assert found[-1] > 1.5


def test_a_new_outcomes_variance_is_given_by_the_reader():
    release = model().plan(X, X_star=X_STAR, **PROMISE).release(Y)
    with pytest.raises(ValueError, match="include_noise=variance"):
        release.uncertainty(X_STAR)
    np.testing.assert_allclose(release.uncertainty(X_STAR, include_noise=0.3).observation, np.sqrt(0.3))


def test_a_release_is_remodelled_with_it():
    release = model().plan(X, X_star=X_STAR, epsilon=100.0, delta=0.01).release(Y)  # hardly any noise
    mean, std = release.predict(X_STAR, return_std=True)
    again, same = release.remodel(model()).predict(X_STAR, return_std=True)
    np.testing.assert_allclose(again, mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(same, std, rtol=1e-6)
    plain = release.remodel(model(None)).predict(X_STAR, return_std=True)[1]  # the same whatever the noise
    assert np.abs(plain / std - 1).max() > 0.01


def test_a_function_takes_it_unless_its_inputs_are_hidden(tmp_path):
    plan = model().plan_function(X, **PROMISE)
    expected = downweighted(model(), distinct(X, 0.3)).noise
    np.testing.assert_array_equal(plan.gp.noise, expected)
    assert plan.function.reach < model(None).plan_function(X, **PROMISE).function.reach
    plan.release(Y).save(tmp_path / "f.cloak")
    assert cloakgp.verify(tmp_path / "f.cloak").proven_delta is not None
    assert np.isfinite(cloakgp.load(tmp_path / "f.cloak").query(X_STAR)).all()
    for bound in ({"bound": "input-free"}, {"bound": "varah", "margin": 0.02}):
        with pytest.raises(cloakgp.ArgumentError, match=r"downweight must be None.*X is not to be shown"):
            model().plan_function(X, basis=np.linspace(0, 10, 5), **bound, **PROMISE)
