"""The certificate: what it says, and that it agrees with the plan."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cloakgp.core.calibration import calibrate
from cloakgp.measure.certificate import Certificate


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


@pytest.mark.parametrize("design", ["mse", "max", "volume"])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0]])
def test_the_objective_is_a_variance_in_ys_unit(make_plan, design, weights):
    plan = make_plan(design=design, weights=weights)
    c = plan.certificate
    w = np.ones(4) if weights is None else np.array(weights)
    expected = {
        "mse": w @ plan.noise_std**2 / w.sum(),
        "max": np.max(w / w.mean() * plan.noise_std**2),
        "volume": np.exp(np.linalg.slogdet(plan.noise_cov)[1] / 4),
    }[design]
    assert c.objective == pytest.approx(expected, rel=5e-6)  # six digits
    assert 0 < c.lower_bound <= c.objective
    assert c.gap == pytest.approx(c.objective / c.lower_bound - 1, abs=1e-15)
    assert c.gap <= 0.01 + 2e-5
    assert c.status == "converged"


def test_it_says_what_a_reader_must_know(make_plan):
    text = str(make_plan().certificate)
    for words in (
        "(1, 0.01)-differential privacy of y, unit: one row",
        "y of one row replaced by any other value; X and all else the same",
        "each release made from a plan spends this once more",
        "analytic, mu = 0.5325",
        "4 numbers from 12 rows",
        "mse: objective",
        "the mean is the GP's, to within",
    ):
        assert words in text
    assert "INSECURE" not in text
    assert str(replace(make_plan().certificate, insecure=True)).startswith("INSECURE: noise from a seed")


def test_it_is_plain_json_and_comes_back_equal(make_plan, design):
    certificate = make_plan(design=design, noise=np.full(12, 0.3)).certificate
    text = json.dumps(certificate.to_dict(), allow_nan=False)
    assert Certificate.from_dict(json.loads(text)) == certificate


def test_values_have_the_types_that_files_ask_for(make_plan, design):
    words, plain = make_plan(design=design).certificate.to_dict(), {"int", "float", "str", "bool"}
    for name, kind in Certificate.__annotations__.items():
        assert kind not in plain or type(words[name]).__name__ == kind
