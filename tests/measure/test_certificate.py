"""The certificate: what it says, and that it agrees with the plan."""

from __future__ import annotations

import pytest

from cloakgp.core.calibration import calibrate


def test_it_agrees_with_the_plan(make_plan):
    plan = make_plan()
    c, m = plan.certificate, plan.measurement
    assert (c.epsilon, c.delta, c.calibration, c.design) == (1.0, 0.01, "analytic", "mse")
    assert (c.n_rows, c.n_measurements) == (12, len(plan.reconstruction.T))
    assert c.mu == pytest.approx(calibrate(1.0, 0.01), rel=1e-6)
    assert c.sensitivity / c.noise_scale == pytest.approx(c.mu, rel=1e-12)
    assert c.sensitivity == pytest.approx(5.0, rel=1e-6)  # d times a longest column of norm 1
    assert (c.sigma, c.sensitivity_steps) == (m.sigma, m.sensitivity())
    assert c.noise_scale == pytest.approx(c.sigma * 5.0 / 2 ** (c.y_bits + c.matrix_bits))
    assert not c.insecure
