"""How many rows there are, where inputs are private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentTypeError
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.plots.page import BLUE, as_written, bare, finish_panels, new_figure
from cloakgp.plots.places import plane
from cloakgp.plots.predicted import TWO_SIDED_95
from cloakgp.rows.grid import Axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_density(
    release: RowsRelease,
    figure: Figure | None = None,
    labels: Sequence[str] | None = None,
    *,
    across: int | None = None,
) -> Figure:
    """Draw how many rows there are, where inputs are private: estimates, with their uncertainty.

    For inputs of two ranges a map of the cells, beside it the std of what each estimate may be wrong by. For
    others one panel for each input, summed over the rest: the line, or the dots of a category, with 95 %
    bands. All of it comes from noisy counts, and may be published.

    Parameters
    ----------
    release : RowsRelease
        Made from a plan of :meth:`AutoGP.plan_rows` or :meth:`GP.plan_rows`.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    labels : names of the inputs, optional
        The grid's if absent.
    across : int, optional
        How many panels are beside each other.

    Returns
    -------
    matplotlib Figure
    """
    if not isinstance(release, RowsRelease):
        raise ArgumentTypeError("release", "must be a RowsRelease, made by plan_rows", type(release).__name__)
    grid, density = release.plan.grid, release.density
    names = list(grid.names if labels is None else labels)
    if len(grid.axes) == 2 and not any(axis.category for axis in grid.axes):
        across = min(across or 2, 2)
        figure = new_figure(figure, (4.3 * across, 3.9 * (3 - across)))
        sides = plane(names, (0, 1))  # longitude goes across, whichever column it is
        order = (sides.up, sides.across)
        edges = [np.linspace(axis.low, axis.high, axis.cells + 1) for axis in grid.axes]
        up, east = (edges[side] for side in order)
        drawn = ((density.counts, "rows in a cell, estimated"), (density.std, "std of the estimate"))
        panels = figure.subplots(3 - across, across, sharex=True, sharey=True)
        for ax, (values, words) in zip(panels, drawn, strict=True):
            shown = values.reshape(grid.shape).transpose(order)
            mesh = ax.pcolormesh(east, up, shown, cmap="cividis", vmin=0)
            bar = figure.colorbar(mesh, cax=ax.inset_axes((1.03, 0.0, 0.04, 1.0)), label=words)
            bar.outline.set_visible(False)
            ax.set(xlabel=names[sides.across], ylabel=names[sides.up])
            aspect = sides.aspect(up[0], up[-1])
            if aspect is not None:
                ax.set_aspect(aspect)
    else:
        across = min(len(names), across or 3)
        down = -(-len(names) // across)
        # A single one is as wide as the curve above it, so that places can be compared.
        figure = new_figure(figure, (3.3 * across + 0.6 if across > 1 or down > 1 else 7.0, 2.6 * down + 0.7))
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for place, (ax, axis) in enumerate(zip(axes, grid.axes, strict=False)):
            _draw_counts(ax, axis, *density.along(grid, place))
            ax.set_xlabel(names[place])
        axes[0].set_ylabel("rows, estimated")
        for ax in axes[len(names) :]:
            ax.set_visible(False)
    finish_panels(figure, release, False)
    return figure


def _draw_counts(ax: Axes, axis: Axis, counts: FloatArray, std: FloatArray) -> None:
    """How many rows each cell along one input has, with 95 % bands."""
    if axis.category:
        ax.errorbar(axis.centres, counts, TWO_SIDED_95 * std, fmt="o", color=BLUE, capsize=4)
        ax.set_xticks(axis.centres, [as_written(str(level)) for level in axis.levels])
        ax.margins(x=0.15)
    else:
        edges = np.linspace(axis.low, axis.high, axis.cells + 1)
        lower, upper = counts - TWO_SIDED_95 * std, counts + TWO_SIDED_95 * std
        ax.stairs(counts, edges, color=BLUE, linewidth=2)
        ax.stairs(upper, edges, baseline=np.maximum(lower, 0), fill=True, color=BLUE, alpha=0.18)
    ax.set_ylim(0, None)
    bare(ax)
