"""Previews: what a plan for another promise has, without making it, and without a trace in plans."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.data import cells
from cloakgp.kernels import EQ

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, size=(120, 1))
X_STAR = np.linspace(0, 10, 6)[:, None]
MODEL = GP(EQ(2.0), 0.3, (-2.0, 2.0), inducing=X[:8])


@pytest.mark.parametrize("most", [64, 4096], ids=["cells", "rows"])
@pytest.mark.parametrize("design", ["mse", "posterior"])
def test_a_preview_is_about_the_plan_and_leaves_no_trace(monkeypatch, design, most):
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    planner = MODEL.planner(X, X_star=X_STAR)
    planner.plan(epsilon=1.0, delta=0.01, design=design)
    shown = planner.preview(epsilon=0.7, delta=0.01, design=design)
    plan = planner.plan(epsilon=0.7, delta=0.01, design=design)
    error = np.sqrt(np.mean(plan.expected_error**2))
    assert np.sqrt(np.mean(shown.expected_error**2)) == pytest.approx(error, rel=0.02)
    if design == "mse":
        np.testing.assert_allclose(shown.noise_std, plan.noise_std, rtol=1e-3)
        np.testing.assert_allclose(shown.expected_error, plan.expected_error, rtol=1e-3)
    alone = MODEL.planner(X, X_star=X_STAR).plan(epsilon=0.7, delta=0.01, design=design)
    assert plan.digest == alone.digest
