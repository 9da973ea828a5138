"""What error to expect, beforehand: of the size of what comes out, and public."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import AutoGP
from cloakgp.posterior import forecast

X = np.linspace(0, 10, 90)[:, None]
X_STAR = np.linspace(0.5, 9.5, 6)[:, None]
MODEL = AutoGP((0.0, 100.0))


def plan(epsilon, model=MODEL, rows=X):
    return model.plan(rows, X_star=X_STAR, epsilon=epsilon, delta=1e-3)


def test_less_privacy_more_rows_and_more_stages_leave_less_error():
    errors = [plan(epsilon).expected_error.mean() for epsilon in (0.1, 0.5, 2.0, 10.0)]
    assert np.all(np.diff(errors) < 0)
    made, more = plan(1.0), np.linspace(0, 10, 700)[:, None]
    assert (plan(1.0, rows=more).expected_error < made.expected_error).all()
    once = plan(1.0, AutoGP((0.0, 100.0), stages=1))
    assert made.expected_error.mean() < 0.8 * once.expected_error.mean()
    np.testing.assert_allclose(made.noise_std**2 + made.gp_std**2, made.expected_error**2, rtol=1e-9)
    assert (made.gp_std > 0).all()


def test_nothing_is_known_far_from_all_inputs():
    """Also where support points stand for the inputs, and interpolate."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(2, 8, (4, 2))
    rows = centres[rng.integers(0, 4, 300)] + 0.5 * rng.normal(size=(300, 2))
    axis = np.linspace(-10, 20, 7)
    around = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    made = AutoGP((0.0, 10.0), inducing=40, stages=2).plan(rows, X_star=[*centres, *around], epsilon=1.0)
    here, far = made.expected_error[:4], made.expected_error[4:]
    assert (far > here.min()).all()


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_it_has_the_size_of_what_comes_out(epsilon):
    """For outcomes out of the middle of the hyperprior, within a factor of three, over five data sets."""
    rng, made = np.random.default_rng(5), plan(epsilon)
    K = np.exp(-0.5 * (X - X.T) ** 2 / 2.0**2)
    root = np.linalg.cholesky(K + 1e-9 * np.eye(len(X)))
    errors = []
    for _ in range(5):
        curve = 50 + 12 * root @ rng.normal(size=len(X))
        release = made.release(curve + 6 * rng.normal(size=len(X)))
        errors.append(np.mean((release.predict(X_STAR) - np.interp(X_STAR[:, 0], X[:, 0], curve)) ** 2))
    ratio = np.sqrt(np.mean(errors)) / np.sqrt(np.mean(made.expected_error**2))
    assert 1 / 3 < ratio < 3


def test_curves_are_drawn_where_interpolation_makes_no_covariance():
    """With eigenvalues below zero, those are left out."""
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    k = vectors @ np.diag([2.0, 1.0, 0.5, 0.1, -0.3]) @ vectors.T
    root = forecast._root(k)
    np.testing.assert_allclose(
        root @ root.T, vectors @ np.diag([2.0, 1.0, 0.5, 0.1, 0.0]) @ vectors.T, atol=1e-12
    )
