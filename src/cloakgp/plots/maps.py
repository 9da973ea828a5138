"""Maps: a prediction, its uncertainty, and where privacy noise dominates, over two inputs."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.files.labels import NONE, Labels
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plots.labels import axis_label, held_words, plan_of
from cloakgp.plots.number_words import nice_ticks, tick_words
from cloakgp.plots.outlines import outline_of
from cloakgp.plots.page import BLACK, GREY, PAPER, check_style, darken, finish, new_axes
from cloakgp.plots.predicted import Predicted, expect_columns, expect_one_curve
from cloakgp.plots.shown_inputs import public_inputs
from cloakgp.plots.surface import NEAR_PRIOR, PREDICTION, PRIVACY, VIEWS, Surface, View, surface_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHADES = 24  # of colour, which look continuous; contour lines are at the ticks
_LETTERS = 11  # in an inch of a title
_HATCH = "////"
_ON_COLOURS = "#101010"  # of dots, whatever the paper is
UNKNOWN = "not known"


def plot_map(
    release: AnyRelease | Plan | StagedPlan,
    ax: Axes | None = None,
    *,
    view: str = PREDICTION,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    of: Any = None,
    held: Mapping[str, Any] | None = None,
    outline: str | os.PathLike[str] | None = None,
    style: str = "light",
    title: str | None = None,
    units: str | None = None,
    source: str | None = None,
    date: str | None = None,
    surface: Surface | None = None,
) -> Axes:
    """Draw a filled map of a release over two inputs, longitude across and latitude up.

    Where the prediction is hardly less uncertain than before anything was released, privacy noise and the
    GP's own uncertainty taken together, nothing is shown but hatching: land without houses is neither dear
    nor cheap. The dots are the training inputs, where these are public.

    Parameters
    ----------
    release : Release, StagedRelease, RowsRelease or FunctionRelease
        With two inputs at least that are numbers. Of a plan, which predicts nothing yet, its noise is drawn:
        see :func:`plot_noise_map`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    view : {"prediction", "uncertainty", "privacy"}
        The denoised prediction; its std, GP and privacy together; or privacy's share of the variance, with a
        line where that is a half.
    coordinates : (str, str), optional
        Names of two inputs, across and up; longitude and latitude, by their names, if absent.
    geographic : bool, optional
        Whether the two are longitude and latitude, in degrees; their names say if absent.
    of : a class, optional
        Whose probability is drawn, where outcomes are one of several classes; the first if absent.
    held : mapping of names to values, optional
        Where other inputs are held; at their medians or first levels if absent.
    outline : path, optional
        A GeoJSON file whose borders are drawn.
    style : {"light", "dark"}
        Dark changes the colours of all that is on the figure.
    title, units, source, date : str, optional
        As for :func:`plot_release`.
    surface : Surface, optional
        What :func:`surface_of` found, so that it is not worked out again for each view.

    Returns
    -------
    matplotlib Axes
    """
    if isinstance(release, Plan | StagedPlan):
        return plot_noise_map(release, ax)
    if not isinstance(release, Release | StagedRelease | FunctionRelease):
        raise ArgumentTypeError("release", "must be a release", type(release).__name__)
    if view not in VIEWS:
        raise ArgumentError("view", f"must be one of {', '.join(VIEWS)}", repr(view))
    check_style(style)
    if np.shape(release.plan.shown_inputs)[1] < 2:
        expect_columns(release.plan.shown_inputs, 2, "plot_map")
    labels = release.labels.changed(title=title, units=units, source=source, date=date)
    if surface is None:
        axes: Any = {"coordinates": coordinates, "geographic": geographic}
        surface = surface_of(release, **axes, held=held, of=of, units=labels.units, views=(view,))
    ax = draw_map(new_axes(ax), release, surface, view, outline, labels)
    if style == "dark":
        darken(ax.get_figure(root=True))  # type: ignore[arg-type]
    return ax


def draw_map(
    ax: Axes,
    release: AnyRelease,
    surface: Surface,
    view: str,
    outline: str | os.PathLike[str] | None = None,
    labels: Labels = NONE,
) -> Axes:
    """One view of a surface, as a map with the promise and all other words."""
    lines = [] if outline is None else outline_of(outline)
    draw_surface(ax, surface, surface.views[view])
    for line in lines:
        ax.plot(*line.T, color=BLACK, linewidth=0.9, alpha=0.8, zorder=5)
    ax.set(xlim=surface.across[[0, -1]], ylim=surface.up[[0, -1]])
    finish(ax, release.plan, labels, below=True, more=_held_lines(ax, release, surface))
    return ax


def _held_lines(ax: Axes, release: AnyRelease, surface: Surface) -> list[str]:
    """Where the other inputs are held, in lines as wide as the picture."""
    words = ", ".join(held_words(release.plan, surface.held))
    width: float = ax.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    return textwrap.wrap(words, int(_LETTERS * width))


def draw_surface(ax: Axes, surface: Surface, view: View) -> None:
    """One view of a surface, with its colour bar and what is public of the inputs."""
    from matplotlib.collections import PathCollection

    levels = np.linspace(view.low, view.high, _SHADES + 1) if view.high > view.low else 2
    values = np.clip(view.values, view.low, view.high)
    filled = ax.contourf(surface.across, surface.up, values, levels=levels, cmap=view.colours)
    inside = [tick for tick in view.ticks if view.low < tick < view.high]
    if inside and view.name != PRIVACY:
        ax.contour(
            surface.across, surface.up, view.values, levels=inside, colors=PAPER, linewidths=0.6, alpha=0.6
        )
    if view.name == PRIVACY and view.values.min() < 0.5 < view.values.max():
        ax.contour(surface.across, surface.up, view.values, levels=[0.5], colors=BLACK, linewidths=1.6)
        ax.plot([], [], color=BLACK, linewidth=1.6, label="half of the variance")
    dots = surface.inputs
    if dots is not None and len(dots):
        style: dict[str, Any] = {"linestyle": "", "marker": ".", "markeredgewidth": 0}
        size = float(np.clip(60 / np.sqrt(len(dots)), 1.2, 3.5))
        ax.plot(*dots.T, markersize=size, alpha=0.4, zorder=3, color=_ON_COLOURS, **style)
        ax.plot([], [], markersize=6, alpha=0.6, color=BLACK, label="inputs (public)", **style)
    if surface.unknown.any():
        # By the share itself, so that the edge is as smooth as the surface.
        edge = ax.contourf(surface.across, surface.up, surface.near_prior, levels=[NEAR_PRIOR, 2.0])
        cover: dict[str, Any] = {"facecolor": PAPER if view.hides_unknown else "none", "edgecolor": GREY}
        cover |= {"hatch": _HATCH, "linewidth": 0.0}
        ax.add_collection(PathCollection(edge.get_paths(), zorder=4, **cover), autolim=False)
        edge.remove()
        ax.fill_between([], [], [], label=UNKNOWN, **cover)
    # Within the axes' own frame: as tall as the map, whatever its shape.
    bar = ax.figure.colorbar(filled, cax=ax.inset_axes((1.03, 0.0, 0.04, 1.0)), ticks=view.ticks)
    bar.set_label(view.label)
    bar.ax.set_yticklabels(view.tick_words)
    bar.outline.set_visible(False)
    ax.set(xlabel=surface.names[0], ylabel=surface.names[1])
    if surface.aspect is not None:
        ax.set_aspect(surface.aspect, adjustable="box")
    for axis, along in ((ax.xaxis, surface.across), (ax.yaxis, surface.up)):
        ticks = nice_ticks(float(along[0]), float(along[-1]), 4)
        axis.set_ticks(ticks, tick_words(ticks))


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
    expect_one_curve(plan_or_release)
    ax, (east, north) = new_axes(ax), plan.X_star.T
    try:
        contours = ax.tricontourf(east, north, plan_or_release.noise_std, levels=10, cmap="cividis")
    except (RuntimeError, ValueError):
        raise ValueError("plot_noise_map needs at least three test points, not all on one line.") from None
    bar = ax.figure.colorbar(contours, ax=ax, label="std of the privacy noise, in y's unit")
    bar.outline.set_visible(False)
    limits = ax.axis()
    found = public_inputs(plan)
    if found is not None:
        ax.plot(*found[0].T, ".", color=BLACK, markersize=3, markeredgewidth=0, alpha=0.5, label=found[1])
    ax.axis(limits)
    ax.set(xlabel=axis_label(plan, 0), ylabel=axis_label(plan, 1))
    finish(ax, plan, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    return ax
