"""The custodian's own points in a picture, which is then stamped: the one place where y is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloakgp.core.errors import ArgumentError
from cloakgp.data.inputs import as_points
from cloakgp.plots.page import NOT_FOR_RELEASE, ORANGE, stamp
from cloakgp.private.room import custodian_view
from cloakgp.release.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_private(ax: Axes, private_data: Any, plan: Plan) -> None:
    """Scatter the custodian's own points, on the custodian's explicit word, and mark the picture."""
    try:
        X, y = private_data
    except (TypeError, ValueError):
        X = y = None
    if y is None:
        raise ArgumentError("private_data", "must be (X, y): inputs, and a vector of real numbers")
    X = as_points(X, "X in private_data", 1, plan.columns)
    outcomes = custodian_view(y, len(X))
    ax.scatter(X[:, 0], outcomes, s=12, color=ORANGE, alpha=0.5, linewidths=0, zorder=1, label="private data")
    stamp(ax, 0.99, 1.03, NOT_FOR_RELEASE, fontsize=13, ha="right", va="bottom")
