"""Releases: noise as promised, a new spend each time, and nothing that can be changed."""

from __future__ import annotations

import os

import numpy as np
import pytest

import cloakgp


def test_the_noise_has_the_covariance_that_was_planned(make_plan, setting, noiseless, seeded, design):
    plan = make_plan(design=design)
    n = 3000
    with seeded(0):
        means = np.array([plan.release(setting.y).mean for _ in range(n)])
    noise = means - noiseless(plan, setting.y).mean
    standard = noise @ np.linalg.inv(np.linalg.cholesky(plan.noise_cov)).T
    # Standard normals: entries of the sample covariance have std √(2/n) or less, those of the mean √(1/n).
    np.testing.assert_allclose(np.cov(standard.T), np.eye(4), atol=5 * np.sqrt(2 / n))
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(noise.std(axis=0), plan.noise_std, rtol=0.1)


# Saving


def test_a_save_leaves_the_processs_mask_alone(make_plan, setting, tmp_path, monkeypatch):
    """The umask can be read only by setting it, and a second thread may set the first one's 0 for good."""
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("it was set"))
    make_plan().release(setting.y).save(tmp_path / "file")


def test_a_number_is_no_file(make_plan, setting, tmp_path):
    """It would be one that this process has open: reading it would close the program's own output."""
    plan = make_plan()
    release = plan.release(setting.y)
    with open(tmp_path / "output", "w") as output:
        for use in (cloakgp.load, cloakgp.verify, cloakgp.load_plan, release.save, plan.save):
            with pytest.raises(cloakgp.ArgumentError, match=r"^path must be the name of a file; got int"):
                use(output.fileno())


# What every kind of release answers


def test_predictions_were_released_at_their_test_points_only(make_plan, setting):
    release = make_plan().release(setting.y)
    with pytest.raises(ValueError, match=r"X must be the plan's test points.*uncertainty"):
        release.released_at(setting.X_star + 1.0)


def test_the_noise_elsewhere_is_known_also_with_a_variance_for_each_row(make_plan, setting):
    plan = make_plan(noise=np.geomspace(0.1, 3, len(setting.X)))
    known = plan.release(setting.y).uncertainty(setting.X_star, include_noise=0.5)
    np.testing.assert_array_equal(plan.noise_at(setting.X_star), known.privacy)
