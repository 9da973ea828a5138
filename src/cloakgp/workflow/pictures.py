"""Pictures of plans and releases for any number of input columns. All may be published.

A :class:`Picture` is drawn when it is asked for: wide or narrow, on light or dark paper, as PNG, SVG or PDF;
or its numbers are written as a table.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import plots
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import Argument, InputError, missing_extra
from cloakgp.plots.maps import draw_map
from cloakgp.plots.page import BLUE, GREY, finish
from cloakgp.plots.shown import (
    Predicted,
    classes_of,
    held_words,
    numeric_inputs,
    plan_of,
)
from cloakgp.plots.surface import PREDICTION, PRIVACY, UNCERTAINTY, Surface, plane
from cloakgp.release.release import Release
from cloakgp.release.showing import beside, inputs_of, response
from cloakgp.workflow import releases, tables
from cloakgp.workflow.releases import can_denoise, n_inputs, named_points, predictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf", "csv")


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a release, to be drawn when it is asked for."""

    name: str
    """For a file's name, such as "uncertainty"."""
    caption: str
    draw: Callable[[Figure, bool], Any]
    """Draws it on a figure: wide as a page, or narrow as a telephone."""
    numbers: Callable[[], dict[str, Any]] | None = None
    """What it shows, column by column."""
    dark: bool = False
    """On dark paper."""

    def figure(self, narrow: bool = False) -> Figure:
        """The picture, of a page's width or of a telephone's."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise missing_extra(Argument("picture"), "matplotlib", "plots") from None
        figure = Figure(figsize=(4.3, 3.7) if narrow else (7.4, 4.4), layout="constrained")  # inches
        self.draw(figure, narrow)
        return plots.darken(figure) if self.dark else figure

    def encoded(self, kind: str) -> bytes:
        """The bytes of a file of this kind, one of :data:`FORMATS`."""
        if kind != "csv":
            return image(self.figure(), kind)
        if self.numbers is None:
            raise InputError("the numbers of this picture are not written as a table: cloakgp export --csv.")
        return tables.encoded(self.numbers())


def noise_picture(predicted: Predicted) -> Picture:
    """How much privacy noise there will be, or is, and where."""
    points, plan = predicted.X_star, plan_of(predicted)
    flat = points.shape[1] == 1 or (points.shape[1] == 2 and _fills_a_plane(points))
    if not flat or _has_levels(plan) or predicted.noise_std.ndim > 1:
        caption = "The std of the privacy noise over the test points, from small to large."
        return Picture("noise", caption, lambda figure, narrow: _draw_sorted_noise(figure, predicted))
    draw = plots.plot_plan if points.shape[1] == 1 else plots.plot_noise_map
    return Picture(
        "noise", "The std of the privacy noise.", lambda figure, narrow: draw(predicted, figure.subplots())
    )


def release_pictures(
    release: Release,
    *,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    outline: str | os.PathLike[str] | None = None,
) -> Iterator[Picture]:
    """What was released, for any number of input columns: the most telling picture first.

    Each is worked out when it is asked for: who wants the first does not wait for the others.
    """
    if n_inputs(release) == 1 and release.plan.function is None:
        yield _curve(release)
    elif can_denoise(release) or release.plan.function is not None:
        if has_map(release, coordinates):
            yield from _maps(release, outline, coordinates=coordinates, geographic=geographic)
        yield _slices(release)
    else:
        yield noise_picture(release)
    if release.plan.grid is not None:
        caption = (
            "How many rows there are, estimated from noisy counts, with 95 % bands or the std beside it: no "
            "input is shown. Rows outside the box count in the cells at its edge."
        )
        yield Picture("rows", caption, _panels(plots.plot_density, release))
    if not release.plan.alone:
        yield from _of_stages(release)


def _panels(plot: Callable[..., Any], release: Release, **words: Any) -> Callable[[Figure, bool], Any]:
    """What draws several panels, below each other on a telephone."""
    return lambda figure, narrow: plot(release, figure, across=1 if narrow else None, **words)


def _curve(release: Release) -> Picture:
    """One curve and one band; what was released as it came out, where nothing can be predicted from it."""
    plan, predicts = release.plan, can_denoise(release)
    caption = (
        f"Line: {_what(release)}. Band: where that lies with probability 95 %, privacy noise and the "
        "model's own uncertainty taken together, if the model is right."
    )
    if not predicts:
        caption = (
            "Line: what was released. Dashed: one std of the privacy noise. The kernel is not in the file, "
            "so there is no denoised prediction."
        )
    if plan.grid is None:  # else no input is drawn
        stand_in = "inducing inputs" if plan.alone else "cells of the inputs"
        caption += f" Ticks: the {stand_in if plan.X is None else 'inputs'}, which are public."

    def draw(figure: Figure, narrow: bool) -> None:
        plots.plot_release(release, figure.subplots(), denoised=predicts)

    def numbers() -> dict[str, Any]:
        if not predicts:
            return releases.released_table(release, release.X_star)
        x = np.linspace(release.X_star.min(), release.X_star.max(), 200)[:, None]
        return beside(named_points(plan, x), predictions(release, x))

    return Picture("prediction" if predicts else "released", caption, draw, numbers)


def _slices(release: Release) -> Picture:
    """The prediction along each input, the others held."""
    found, n, denoised = plots.slices_of(release), n_inputs(release), can_denoise(release)
    what = _what(release) if denoised else "the released function"
    band = "95 % band" if denoised else "band of 95 % of the privacy noise"
    held = "at their medians" if release.plan.grid is None else "in the middle of the box"
    held += ", or at their first level" if any(one.column.levels for one in found) else ""
    along = f" along each input, the others {held}" if n > 1 else ""
    rest = f" The first {len(found)} of {n} inputs." if n > len(found) else ""

    def numbers() -> dict[str, Any]:
        whole = np.concatenate([one.X for one in found])
        return beside(named_points(release.plan, whole), predictions(release, whole))

    return Picture(
        "along-each-input" if n > 1 else "prediction",
        f"{what.capitalize()}{along}, with its {band}.{rest}",
        _panels(plots.plot_slices, release, slices=found),
        numbers,
    )


def _what(release: Release) -> str:
    """What a prediction is of, in words."""
    outcome = release.plan.outcome
    return f"the {outcome.told_of(response(release.plan))}" if outcome.told else "the prediction"


def _maps(release: Release, outline: str | os.PathLike[str] | None, **axes: Any) -> Iterator[Picture]:
    """Three views of one surface; of several classes, each one's probability."""
    classes = classes_of(release)[:6]  # a map each
    for one in classes:
        picture = release_map(release, of=one, outline=outline, **axes)
        slug = re.sub(r"[^\w]+", "-", str(one)).strip("-").lower() or "class"
        yield replace(picture, name=f"map-{slug}")
    if not classes:
        surface = plots.surface_of(release, units=release.labels.units, **axes)
        for view, name in {PREDICTION: "map", UNCERTAINTY: "map-uncertainty", PRIVACY: "map-privacy"}.items():
            yield _view(release, surface, view, name, _what(release), outline)


def release_map(
    release: Release,
    view: str = PREDICTION,
    *,
    of: Any = None,
    outline: str | os.PathLike[str] | None = None,
    **axes: Any,
) -> Picture:
    """One map: of these two inputs, with the others held there, as for :func:`cloakgp.plots.surface_of`."""
    surface = plots.surface_of(release, units=release.labels.units, of=of, views=(view,), **axes)
    what = _what(release) if of is None else f"the probability of {of}"
    return _view(release, surface, view, "map", what, outline)


def _view(
    release: Release,
    surface: Surface,
    view: str,
    name: str,
    what: str,
    outline: str | os.PathLike[str] | None,
) -> Picture:
    held = "".join(f", {words}" for words in held_words(release.plan, surface.held))
    hidden = ""
    if surface.unknown.any():
        hidden = (
            " Hatched: not known, since there the prediction is hardly less uncertain than if only the level "
            "of all outcomes were known."
        )
    dots = "" if surface.inputs is None else " Dots: inputs, which are public."
    caption = {
        PREDICTION: f"Colour: {what}{held}.{hidden}{dots}",
        UNCERTAINTY: f"How uncertain the prediction is: its std, privacy and model together.{hidden}",
        PRIVACY: "Where privacy noise dominates: its share of the uncertainty (of the variance). The rest is "
        "not known because outcomes are few or scattered.",
    }[view]

    def draw(figure: Figure, narrow: bool) -> None:
        # As tall as the map is, so that there is no empty paper beside it.
        aspect, width = surface.aspect, figure.get_figwidth()
        tall = 0.8 if aspect is None else float(aspect * np.ptp(surface.up) / np.ptp(surface.across))
        words = 0.35 * bool(release.labels.title) + 0.2 * bool(release.labels.source or release.labels.date)
        figure.set_figheight(min(0.72 * width * tall + 1.15 + words, 1.25 * width))
        draw_map(figure.subplots(), release, surface, view, outline)

    return Picture(name, caption, draw, partial(_table_of, surface) if view == PREDICTION else None)


def _table_of(surface: Surface) -> dict[str, Any]:
    """The numbers of a map, column by column: one row for each point of its grid."""
    found = dict(zip(surface.names, np.meshgrid(surface.across, surface.up), strict=True))
    found |= {"prediction": surface.prediction, "std": surface.std, "known": (~surface.unknown).astype(int)}
    if PRIVACY in surface.views:
        found["privacy_share"] = surface.views[PRIVACY].values
    return {name: values.ravel() for name, values in found.items()}


def has_map(release: Release, coordinates: Sequence[str] | None = None) -> bool:
    """Whether two inputs are to be a map: all there are, or places among others."""
    plan = release.plan
    if len(numeric_inputs(plan)) < 2 or not (can_denoise(release) or plan.function is not None):
        return False
    axes = plane(plan)
    return n_inputs(release) == 2 or coordinates is not None or axes.degrees or axes.metres


def _of_stages(release: Release) -> Iterator[Picture]:
    """How a release in stages came about, and what it learned."""
    levels, box = _has_levels(release.plan), release.plan.grid
    # Else f's own scale is nobody's.
    if n_inputs(release) == 1 and not levels and release.plan.outcome.link is None:
        caption = (
            "How it came about. Outcomes count only within the shaded windows; each stage closes them in "
            "from what came out before it, so that less noise is needed. Line: the prediction so far."
        )
        caption += "" if box is None else " The first stage counted rows."
        yield Picture("stages", caption, _panels(plots.plot_stages, release))
    if not plots.learned_settings(release) or (box is not None and levels):
        return

    caption = "The models that were learned: large circles hold much weight. The frame is what was possible."
    yield Picture("learned", caption, _panels(plots.plot_learned, release))


def kind_of(path: Path, numbers: bool = True) -> str:
    """The kind of file that a picture is to be written as, by its name; raises if there is no such kind."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{path}: pictures are written as .png, .svg or .pdf, their numbers as .csv.")
    if kind == "csv" and not numbers:
        raise InputError(f"{path}: this picture is written as .png, .svg or .pdf.")
    return kind


def image(figure: Figure, kind: str = "png", dpi: int = 130) -> bytes:
    """A picture's bytes as .png, .svg or .pdf; the same picture gives the same."""
    from matplotlib import rc_context

    unsaid = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "cloakgp"}):
        figure.savefig(out, format=kind, dpi=dpi, metadata=unsaid)
    return out.getvalue()


def _has_levels(plan: Any) -> bool:
    return any(one.levels for one in inputs_of(plan))


def _fills_a_plane(points: FloatArray) -> bool:
    """Whether points of two columns are not all on one line, so that contours can be drawn."""
    return len(points) >= 3 and int(np.linalg.matrix_rank(points - points.mean(axis=0))) == 2


def _draw_sorted_noise(figure: Figure, predicted: Any) -> None:
    """For inputs that cannot be drawn: how much noise at how many of the test points."""
    ax, noise, own = figure.subplots(), predicted.noise_std.ravel(), predicted.gp_std.ravel()
    share = 100 * np.arange(1, len(noise) + 1) / len(noise)
    ax.plot(share, np.sort(noise), color=BLUE, linewidth=2, label="privacy noise")
    ax.plot(share, np.sort(own), color=GREY, linestyle=":", label="GP's own uncertainty")
    ax.set(xlabel="share of the test points, %", ylabel="std, at most", ylim=(0, None))
    finish(ax, plan_of(predicted))
