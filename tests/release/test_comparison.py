"""Designs side by side: what is expected of each is what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.kernels import EQ

X = np.linspace(0, 100, 80)[:, None]
X_star = np.linspace(0, 100, 12)[:, None]
MODEL = GP(EQ(20.0, variance=400.0), 25.0, (-50.0, 150.0))
PROMISE = {"epsilon": 4.0, "delta": 1e-4}


@pytest.fixture(scope="module")
def compared():
    return MODEL.compare(X, X_star=X_star, **PROMISE)


def test_posterior_expects_least_and_none_less_than_without_privacy(compared):
    errors = dict(zip(compared.table()["design"], compared.table()["expected_error"], strict=True))
    assert compared.best == min(errors, key=errors.get) == "posterior"
    assert min(errors.values()) > compared.without_privacy
    assert all((plan.expected_error >= plan.gp_std).all() for plan in compared.plans.values())


def test_expected_error_is_what_predictions_are_off_by(compared):
    rng = np.random.default_rng(1)
    both = np.vstack([X, X_star])
    root = np.linalg.cholesky(MODEL.kernel(both) + 1e-6 * np.eye(len(both)))
    plan, off = compared.plans["mse"], []
    for _ in range(150):
        f = 50 + root @ rng.normal(size=len(both))
        release = plan.release(np.clip(f[: len(X)] + 5 * rng.normal(size=len(X)), -50, 150))
        off.append((release.predict(X_star) - f[len(X) :]) ** 2)
    ratio = np.mean(off) / np.mean(plan.expected_error**2)
    assert 0.8 < ratio < 1.25
    assert np.allclose(release.predict(X_star, return_std=True)[1], plan.expected_error)


def test_the_table_is_printed_framed_and_shown(compared):
    text = str(compared)
    assert "posterior" in text
    assert "Least expected error: posterior" in text
    frame = compared.to_frame()
    assert list(frame["design"]) == list(compared.plans)
    assert "Least expected error: posterior" in compared._repr_html_()
    assert compared.plans["mse"].to_frame()["expected_error"].to_numpy() == pytest.approx(
        compared.plans["mse"].expected_error
    )


@pytest.mark.parametrize("designs", [[], ["best"]])
def test_designs_must_be_some_that_exist(designs):
    with pytest.raises(ValueError, match="designs"):
        MODEL.compare(X, X_star=X_star, designs=designs, **PROMISE)
