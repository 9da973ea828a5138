"""Maps: a prediction, its uncertainty, and where privacy noise dominates, over two inputs; with borders."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.plots import page, shown
from cloakgp.plots.numbers import nice_ticks, tick_words
from cloakgp.plots.page import BLACK, GREY, PAPER
from cloakgp.plots.shown import plan_of
from cloakgp.plots.surface import NEAR_PRIOR, PREDICTION, PRIVACY, VIEWS, Surface, View, surface_of
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of, response

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_map(
    release: Any,
    ax: Axes | None = None,
    *,
    view: str = PREDICTION,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    of: Any = None,
    held: Mapping[str, Any] | None = None,
    outline: str | os.PathLike[str] | None = None,
    surface: Surface | None = None,
) -> Axes:
    """Draw a filled map of a release over two inputs, longitude across and latitude up.

    Where the prediction is hardly less uncertain than before anything was released, privacy noise and the
    GP's own uncertainty taken together, nothing is shown but hatching: land without houses is neither dear
    nor cheap. The dots are the training inputs, where these are public. Words are as
    for :func:`plot_release`.

    Parameters
    ----------
    release : Release
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
    surface : Surface, optional
        What :func:`surface_of` found, so that it is not worked out again for each view.

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(plan_of(release), "shown_inputs"):
        raise ArgumentTypeError("release", "must be a release", type(release).__name__)
    if plan_of(release) is release:
        return plot_noise_map(release, ax)
    checks.choice(view, "view", VIEWS)
    if np.shape(release.plan.shown_inputs)[1] < 2:
        shown.expect_columns(release.plan.shown_inputs, 2, "plot_map")
    if surface is None:
        axes: Any = {"coordinates": coordinates, "geographic": geographic}
        surface = surface_of(release, **axes, held=held, of=of, units=release.labels.units, views=(view,))
    return draw_map(page.new_axes(ax), release, surface, view, outline)


def draw_map(
    ax: Axes,
    release: Release,
    surface: Surface,
    view: str,
    outline: str | os.PathLike[str] | None = None,
) -> Axes:
    """One view of a surface, as a map with the promise and all other words."""
    lines = [] if outline is None else outline_of(outline)
    draw_surface(ax, surface, surface.views[view])
    for line in lines:
        ax.plot(*line.T, color=BLACK, linewidth=0.9, alpha=0.8, zorder=5)
    ax.set(xlim=surface.across[[0, -1]], ylim=surface.up[[0, -1]])
    figure: Any = ax.get_figure(root=True)
    held = ", ".join(shown.held_words(release.plan, surface.held))
    lines_of_words = textwrap.wrap(held, int(11 * figure.get_figwidth()))  # letters in an inch of a title
    page.finish(ax, release.plan, release.labels, below=True, more=lines_of_words)
    return ax


def draw_surface(ax: Axes, surface: Surface, view: View) -> None:
    """One view of a surface, with its colour bar and what is public of the inputs."""
    from matplotlib.collections import PathCollection

    # So many shades look continuous; contour lines are at the ticks.
    levels = np.linspace(view.low, view.high, 25) if view.high > view.low else 2
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
        ax.plot(*dots.T, markersize=size, alpha=0.4, zorder=3, color="#101010", **style)  # on any paper
        ax.plot([], [], markersize=6, alpha=0.6, color=BLACK, label="inputs (public)", **style)
    if surface.unknown.any():
        # By the share itself, so that the edge is as smooth as the surface.
        edge = ax.contourf(surface.across, surface.up, surface.near_prior, levels=[NEAR_PRIOR, 2.0])
        cover: dict[str, Any] = {"facecolor": PAPER if view.hides_unknown else "none", "edgecolor": GREY}
        cover |= {"hatch": "////", "linewidth": 0.0}
        ax.add_collection(PathCollection(edge.get_paths(), zorder=4, **cover), autolim=False)
        edge.remove()
        ax.fill_between([], [], [], label="not known", **cover)
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


def plot_noise_map(plan_or_release: shown.Predicted, ax: Axes | None = None) -> Axes:
    """Draw a map of the privacy noise's std, by contours between the test points.

    The dots are the training inputs, which are public; those beyond the test points are left out.

    Parameters
    ----------
    plan_or_release : Plan, Plan, Release
        With inputs of two columns, and test points that are not all on one line.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.

    Returns
    -------
    matplotlib Axes
    """
    plan = plan_of(plan_or_release)
    shown.expect_columns(plan.X_star, 2, "plot_noise_map")
    shown.expect_one_curve(plan_or_release)
    ax, (east, north) = page.new_axes(ax), plan.X_star.T
    try:
        contours = ax.tricontourf(east, north, plan_or_release.noise_std, levels=10, cmap="cividis")
    except (RuntimeError, ValueError):
        raise ValueError("plot_noise_map needs at least three test points, not all on one line.") from None
    of = f"std of the privacy noise, in the unit of {response(plan)}"
    bar = ax.figure.colorbar(contours, ax=ax, label=of)
    page.as_written(bar.ax)
    bar.outline.set_visible(False)
    limits = ax.axis()
    found = shown.public_inputs(plan)
    if found is not None:
        ax.plot(*found[0].T, ".", color=BLACK, markersize=3, markeredgewidth=0, alpha=0.5, label=found[1])
    ax.axis(limits)
    across, up = inputs_of(plan)
    ax.set(xlabel=across.label, ylabel=up.label)
    page.finish(ax, plan, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    return ax


def outline_of(path: str | os.PathLike[str], largest: int = 50_000_000) -> list[FloatArray]:
    """The lines of a GeoJSON file, each as (n, 2) points: longitude and latitude, or as its inputs are.

    Borders of areas, and lines; points are left out. Files of more than `largest` bytes are not read.
    """
    expected = "must be a GeoJSON file with areas or lines"
    if not Path(path).is_file() or Path(path).stat().st_size > largest:
        raise ArgumentError("outline", f"{expected}, of at most {largest // 10**6} MB", str(path))
    try:
        lines = list(_lines(json.loads(Path(path).read_text(encoding="utf-8-sig"))))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        lines = []
    if not lines:
        raise ArgumentError("outline", expected, str(path))
    return lines


_NESTED = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}  # lists around a line


def _lines(found: Any) -> Iterator[FloatArray]:
    """Of one object of GeoJSON, and of those inside it."""
    if found is None:
        return
    kind = found["type"]
    inside = {"FeatureCollection": "features", "GeometryCollection": "geometries"}.get(kind)
    for part in [found["geometry"]] if kind == "Feature" else found[inside] if inside else []:
        yield from _lines(part)
    if kind in _NESTED:
        lines = [found["coordinates"]]
        for _ in range(_NESTED[kind]):
            lines = [line for part in lines for line in part]
        for coordinates in lines:
            line = np.array([place[:2] for place in coordinates], dtype=np.float64)
            if line.ndim != 2 or line.shape[1] != 2 or not np.isfinite(line).all():
                raise ValueError
            yield line
