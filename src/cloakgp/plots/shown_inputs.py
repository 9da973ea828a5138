"""Public inputs as dots and ticks: none where they are private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.files import schema
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots.page import GREY
from cloakgp.rows.chunks import spread_evenly

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INPUTS = "training inputs (public)"
_STAND_INS = {
    schema.PREDICTIONS: "inducing inputs (public)",
    schema.FUNCTION: "basis points (public)",
    schema.STAGED: "cells of training inputs (public)",
}
_DOTS = 3000  # inputs that are drawn, spread evenly over all of them


def public_inputs(plan: AnyPlan) -> tuple[FloatArray, str] | None:
    """Inputs to draw, and what they are called; those of a plan that holds no X stand for it.

    None where inputs are private.
    """
    if isinstance(plan, RowsPlan):
        return None
    if plan.X is not None:
        return some_inputs(plan.X), _INPUTS
    return plan.shown_inputs, _STAND_INS[plan.kind]


def some_inputs(X: Any) -> FloatArray:
    """A few thousand rows of X, spread evenly; all of them if they are no more than that."""
    return spread_evenly(X, _DOTS)


def draw_rug(ax: Axes, plan: AnyPlan) -> None:
    """Ticks at the bottom."""
    found = public_inputs(plan)
    if found is None:
        return
    inputs = np.unique(found[0][:, 0])
    ax.plot(
        inputs,
        np.full(len(inputs), 0.015),
        linestyle="",
        marker="|",
        markersize=7,
        markeredgewidth=0.8,
        color=GREY,
        alpha=0.7,
        transform=ax.get_xaxis_transform(),
        label=found[1],
    )
