"""Maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plots.labels import axis_label, plan_of
from cloakgp.plots.page import BLACK, BLUE, finish, new_axes
from cloakgp.plots.predicted import Predicted, expect_columns
from cloakgp.plots.shown_inputs import public_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FADED = 0.4
"""Noise std, as a share of the bounds' width, at which a number says nothing: that of a blind guess is less.

A map does not show such a circle.
"""
_AREAS = (12.0, 260.0)  # of a map's circles, at the lower and the upper bound, in square points


def plot_map(plan_or_release: Predicted, ax: Axes | None = None) -> Axes:
    """Draw a map of predictions: large circles are large values, faint ones are noisy.

    A circle's area grows with the released mean, from the lower to the upper bound of the
    outcomes. Without privacy noise it would be opaque; where the noise's std is 40 % of the bounds'
    width or more it cannot be seen. The dots are the training inputs, which are public. From a
    plan, which has no values yet, all circles are alike in size.

    Parameters
    ----------
    plan_or_release : Plan, StagedPlan, Release or StagedRelease
        With inputs of two columns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.colors import to_rgb

    plan = plan_of(plan_or_release)
    expect_columns(plan.X_star, 2, "plot_map")
    ax = new_axes(ax)
    low, high = plan.gp.limits
    shares = np.full(len(plan.X_star), 0.5)
    if isinstance(plan_or_release, Release | StagedRelease):
        shares = (plan_or_release.mean - low) / (high - low)
    opacity = np.clip(1 - plan_or_release.noise_std / (FADED * (high - low)), 0.0, 1.0)
    colours = np.column_stack([np.tile(to_rgb(BLUE), (len(opacity), 1)), opacity])
    draw_dots(ax, plan)
    east, north = plan.X_star.T
    ax.scatter(east, north, s=_areas(shares), c=colours, linewidths=0, zorder=3)
    if isinstance(plan_or_release, Release | StagedRelease):
        for value in np.linspace(low, high, 3):
            _key(ax, _areas((value - low) / (high - low)), 1.0, f"value {value:.4g}")
    for share in (0.0, 0.1, 0.2, 0.3):
        _key(ax, _areas(0.5), 1 - share / FADED, f"noise std {share * (high - low):.3g}")
    ax.plot([], [], linestyle="", label=f"noise std {FADED * (high - low):.3g} or more: not seen")
    _finish_map(ax, plan, loc="upper left", bbox_to_anchor=(1.0, 1.0), labelspacing=0.9)
    return ax


def plot_noise_map(plan_or_release: Predicted, ax: Axes | None = None) -> Axes:
    """Draw a map of the privacy noise's std, by contours between the test points.

    The dots are the training inputs, which are public; those beyond the test points are left out.

    Parameters
    ----------
    plan_or_release : Plan, StagedPlan, Release or StagedRelease
        With inputs of two columns, and test points that are not all on one line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    plan = plan_of(plan_or_release)
    expect_columns(plan.X_star, 2, "plot_noise_map")
    ax, (east, north) = new_axes(ax), plan.X_star.T
    try:
        contours = ax.tricontourf(east, north, plan_or_release.noise_std, levels=10, cmap="Blues")
    except (RuntimeError, ValueError):
        raise ValueError(
            "plot_noise_map needs at least three test points, not all on one line. Use plot_map."
        ) from None
    ax.figure.colorbar(contours, ax=ax, label="std of the privacy noise, in y's unit")
    limits = ax.axis()
    draw_dots(ax, plan)
    ax.axis(limits)
    _finish_map(ax, plan, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    return ax


def _areas(shares: Any) -> Any:
    """Areas of circles for values that are so far up from the lower to the upper bound."""
    smallest, largest = _AREAS
    return smallest + (largest - smallest) * np.clip(shares, 0.0, 1.0)


def _key(ax: Axes, area: float, opacity: float, label: str) -> None:
    """A circle for the legend alone."""
    size = float(np.sqrt(area))
    ax.plot([], [], "o", color=BLUE, markersize=size, markeredgewidth=0, alpha=opacity, label=label)


def _finish_map(ax: Axes, plan: Plan | StagedPlan, **legend: Any) -> None:
    ax.set(xlabel=axis_label(plan, 0), ylabel=axis_label(plan, 1))
    finish(ax, plan, **legend)


def draw_dots(ax: Axes, plan: Plan | StagedPlan) -> None:
    found = public_inputs(plan)
    if found is not None:
        ax.plot(*found[0].T, ".", color=BLACK, markersize=3.5, markeredgewidth=0, zorder=4, label=found[1])
