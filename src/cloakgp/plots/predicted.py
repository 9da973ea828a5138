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


def in_order(plan: Predicted) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan.X_star.shape[1] != 1:
        raise ValueError(
            f"this picture is for inputs of one column; this plan's X has {plan.X_star.shape[1]}. "
            "For two use plot_map or plot_noise_map; for more draw slices of plan.noise_std or release.mean."
        )
    order = np.argsort(plan.X_star[:, 0], kind="stable")
    return plan.X_star[order, 0], order


def expect_columns(inputs: FloatArray, columns: int, name: str) -> None:
    """Raise unless a picture can show these inputs."""
    if inputs.shape[1] != columns:
        raise ValueError(f"{name} draws inputs of {columns} column(s); this plan has {inputs.shape[1]}.")
