"""Delta if nobody names one: by how many the promise is made to, whatever the plan."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP, AutoGP, Grid, binning, plan_selection
from cloakgp.kernels import EQ

X = np.linspace(0.0, 10.0, 120)
WHO = np.arange(120) // 2  # 60 people: another power of ten
MODEL = GP(EQ(3.0), noise=0.5, bounds=(-2.0, 2.0))
LEARNED = AutoGP((-2.0, 2.0), stages=2)
BINS = {"edges": 4, "bounds": (-2.0, 2.0), "mechanism": "gaussian"}


@pytest.mark.parametrize(
    ("plan", "delta"),
    [
        (lambda: MODEL.plan(X, X_star=[5.0], epsilon=1.0), 1e-4),
        (lambda: MODEL.plan(X, X_star=[5.0], epsilon=1.0, people=WHO), 1e-3),
        (lambda: MODEL.plan_function(X, epsilon=1.0), 1e-4),
        (lambda: MODEL.plan_function(X, epsilon=1.0, people=WHO), 1e-3),
        (lambda: LEARNED.plan(X, X_star=[5.0], epsilon=1.0), 1e-4),
        (lambda: LEARNED.plan(X, X_star=[5.0], epsilon=1.0, people=WHO), 1e-3),
        (lambda: LEARNED.plan_rows(Grid({"x": (0, 10)}, 5), 120, epsilon=1.0), 1e-4),
        (lambda: LEARNED.plan_rows(Grid({"x": (0, 10)}, 5), 60, epsilon=1.0, max_rows=2), 1e-3),
        (lambda: binning.plan(X, X_star=[5.0], epsilon=1.0, **BINS), 1e-4),
        (lambda: binning.plan(X, X_star=[5.0], epsilon=1.0, people=WHO, **BINS), 1e-3),
    ],
)
def test_it_counts_rows_or_people(plan, delta):
    assert plan().certificate.delta == delta


def test_a_selection_counts_the_noise_of_a_release_with_it():
    plan = plan_selection(
        [MODEL, GP(EQ(1.0), 0.5, (-2.0, 2.0))], X, epsilon=0.3, plan_for=([5.0], 1.0, None, "mse"), people=WHO
    )
    assert "(1, 0.001)-DP" in str(plan.certificate.plan_for)
