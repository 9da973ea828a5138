"""OpenDP's own accounting of what a release asks it for: at the sensitivity, what the certificate claims."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from opendp import measurements
from privacy_helpers import small_bins, small_plan

from cloakgp.measure.measurement import Measurement


def made_by_opendp(monkeypatch, plan):
    """The measurement that a release asks OpenDP for."""
    seen = []
    for name in ("make_laplace", "make_gaussian"):
        right = getattr(measurements, name)
        make = lambda *args, _right=right, **more: seen.append(_right(*args, **more)) or seen[-1]  # noqa: E731
        monkeypatch.setattr(measurements, name, make)
    plan.release(np.full(6, 0.4))
    (made,) = seen
    return made


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 1.0, math.log(3), 7.7, 1e5])
@pytest.mark.parametrize("local", [False, True], ids=["bins", "rows"])
def test_the_laplace_measurement_keeps_epsilon(monkeypatch, epsilon, local):
    """In L1 and rounded up by OpenDP: at most epsilon, and near it; a part in a thousand less noise shows."""
    plan = small_bins(epsilon=epsilon, local=local)
    made, steps = made_by_opendp(monkeypatch, plan), plan.measurement.sensitivity()
    assert "L1Distance" in str(made.input_metric)
    assert "MaxDivergence" in str(made.output_measure)
    assert epsilon * (1 - 1e-6) <= made.map(steps) <= epsilon < made.map(steps + steps // 1000)
    weak = replace(plan, measurement=replace(plan.measurement, sigma=plan.measurement.sigma * 999 // 1000))
    monkeypatch.setattr(Measurement, "check", lambda self: None)
    assert made_by_opendp(monkeypatch, weak).map(steps) > epsilon


@pytest.mark.parametrize("make", [small_plan, lambda **more: small_bins("gaussian", **more)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_the_gaussian_measurement_has_the_declared_mu(monkeypatch, make, epsilon):
    """rho = mu^2 / 2 in L2, for the mu that a ledger is told."""
    plan = make(epsilon=epsilon)
    made = made_by_opendp(monkeypatch, plan)
    assert "L2Distance" in str(made.input_metric)
    rho = plan.measurement.mu() ** 2 / 2
    assert made.map(plan.measurement.sensitivity()) == pytest.approx(rho, rel=1e-12)
    assert plan.cost.mu >= plan.measurement.mu()
