"""The test points of a plan, as pictures need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease

Predicted = Plan | StagedPlan | Release | StagedRelease
"""What has test points of its own."""
TWO_SIDED_95 = 1.959964
FADED = 0.4
"""Noise std, as a share of the bounds' width, at which a number says nothing: that of a blind guess is less.

For plans, of which nothing else is known. Of a release see :func:`is_unknown`, which goes by all uncertainty.
"""


def in_order(plan: Predicted) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan.X_star.shape[1] != 1:
        raise ValueError(
            f"this picture is for inputs of one column; this plan's X has {plan.X_star.shape[1]}. "
            "For two use plot_map or plot_noise_map; for more draw slices of plan.noise_std or release.mean."
        )
    order = np.argsort(plan.X_star[:, 0], kind="stable")
    return plan.X_star[order, 0], order


def denoised_at(release: Release | StagedRelease, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Prediction, and the ends of the interval in which the truth lies with probability 95 %."""
    if isinstance(release, StagedRelease):
        low, high = release.interval(X).T
        return release.predict(X), low, high
    mean, std = release.predict(X, return_std=True)
    return mean, mean - TWO_SIDED_95 * std, mean + TWO_SIDED_95 * std


def expect_columns(inputs: FloatArray, columns: int, name: str) -> None:
    """Raise unless a picture can show these inputs."""
    if inputs.shape[1] != columns:
        raise ValueError(f"{name} draws inputs of {columns} column(s); this plan has {inputs.shape[1]}.")
