"""The test points of a plan, as pictures need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease

Predicted = Plan | StagedPlan | Release | StagedRelease
"""What has test points of its own."""
TWO_SIDED_95 = 1.959964


def expect_one_curve(shown: Any) -> None:
    """Raise for a release of several classes, which has a curve for each."""
    if isinstance(shown, StagedRelease) and shown.plan.rule.n_curves > 1:
        raise ArgumentError(
            "release",
            "must have one curve",
            f"one for each of {len(shown.classes)} classes",
            "Draw the columns of release.predict_proba(X), or those of release.to_frame().",
        )


def in_order(plan: Predicted) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan.X_star.shape[1] != 1:
        raise ValueError(
            f"this picture is for inputs of one column; this plan's X has {plan.X_star.shape[1]}. "
            "For two use plot_map or plot_noise_map; for more draw slices of plan.noise_std or release.mean."
        )
    order = np.argsort(plan.X_star[:, 0], kind="stable")
    return plan.X_star[order, 0], order


def denoised_at(release: AnyRelease, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Prediction, and the ends of the interval in which the truth lies with probability 95 %.

    Of several classes, (n, K) of each. Of a function that hides its inputs: its values, and where these lie
    but for the privacy noise.
    """
    if isinstance(release, StagedRelease):
        low, high = np.moveaxis(release.interval(X), -1, 0)
        return release.predict(X), low, high
    hidden = isinstance(release, FunctionRelease) and release.plan.hides_inputs
    mean, std = release.released_at(X) if hidden else release.predict(X, return_std=True)
    return mean, mean - TWO_SIDED_95 * std, mean + TWO_SIDED_95 * std


def expect_columns(inputs: FloatArray, columns: int, name: str) -> None:
    """Raise unless a picture can show these inputs."""
    if inputs.shape[1] != columns:
        raise ValueError(f"{name} draws inputs of {columns} column(s); this plan has {inputs.shape[1]}.")
