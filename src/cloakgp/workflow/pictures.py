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
from cloakgp.checks import FloatArray
from cloakgp.errors import Argument, InputError, missing_extra
from cloakgp.measurements.staged_certificate import AnyCertificate
from cloakgp.model.outcome import CLASSES, COUNT, YES_NO
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.predictions import Release
from cloakgp.plans.showing import beside
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.plots.labels import (
    NAMELESS,
    classes_of,
    columns_of,
    held_words,
    levels_of,
    numeric_inputs,
    outcome_of,
    predicted_words,
    yes_word,
)
from cloakgp.plots.maps import draw_map
from cloakgp.plots.page import name_as_written
from cloakgp.plots.surface import PREDICTION, PRIVACY, UNCERTAINTY, Surface
from cloakgp.workflow import tables
from cloakgp.workflow.releases import (
    box_of,
    can_denoise,
    n_inputs,
    named_points,
    predictions,
    released_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf", "csv")
WIDE, NARROW = (7.4, 4.4), (4.3, 3.7)
"""Inches, of a page and of a telephone."""
_MOST_CLASSES = 6  # that have a map each
_BLUE, _GREY = "#0072B2", "#6E6E6E"


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a release, to be drawn when it is asked for."""

    name: str
    """For a file's name, such as "uncertainty"."""
    caption: str
    draw: Callable[[bool], Figure]
    """Whether it is to be narrow."""
    numbers: Callable[[], dict[str, Any]] | None = None
    """What it shows, column by column."""

    def figure(self, narrow: bool = False) -> Figure:
        """The picture, of a page's width or of a telephone's."""
        return self.draw(narrow)

    def on_dark(self) -> Picture:
        """The same on dark paper."""
        return replace(self, draw=lambda narrow: plots.darken(self.draw(narrow)))

    def encoded(self, kind: str) -> bytes:
        """The bytes of a file of this kind, one of :data:`FORMATS`."""
        if kind != "csv":
            return image(self.figure(), kind)
        if self.numbers is None:
            raise InputError("the numbers of this picture are not written as a table: cloakgp export --csv.")
        return tables.encoded(self.numbers())


def noise_picture(predicted: plots.Predicted, inputs: list[str], output: str) -> Figure:
    """How much privacy noise there will be, or is, and where."""
    columns = predicted.X_star.shape[1]
    figure, plan = _figure(), plots.plan_of(predicted)
    if _has_levels(plan):
        _sorted_noise(figure, predicted)
    elif columns == 1:
        ax = plots.plot_plan(predicted, figure.subplots())
        ax.set(xlabel=inputs[0], ylabel=f"std, in the unit of {output}")
    elif columns == 2 and _spread(predicted.X_star):
        ax = plots.plot_noise_map(predicted, figure.subplots())
        ax.set(xlabel=inputs[0], ylabel=inputs[1])
    else:
        _sorted_noise(figure, predicted)
    return figure


def release_pictures(
    release: AnyRelease,
    inputs: list[str],
    output: str,
    *,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    outline: str | os.PathLike[str] | None = None,
) -> Iterator[Picture]:
    """What was released, for any number of input columns: the most telling picture first.

    Each is worked out when it is asked for: who wants the first does not wait for the others.
    """
    columns = n_inputs(release)
    predicts = can_denoise(release) or isinstance(release, FunctionRelease)
    if columns == 1 and not isinstance(release, FunctionRelease):
        yield _curve(release, inputs[0], output)
    elif predicts:
        if has_map(release, inputs, coordinates):
            axes = {"coordinates": coordinates, "geographic": geographic}
            yield from _maps(release, inputs, output, axes, outline)
        yield _slices(release, inputs, output)
    else:
        caption = "The std of the privacy noise over the test points, from small to large."
        yield Picture("noise", caption, lambda narrow: _noise_figure(release, narrow))
    if isinstance(release, RowsRelease):
        yield _density(release, inputs)
    yield from _of_stages(release, inputs, output)


def _curve(release: Release | StagedRelease, name: str, output: str) -> Picture:
    """One curve and one band; what was released as it came out, where nothing can be predicted from it."""
    predicts = can_denoise(release)
    caption = (
        f"Line: {_what(release, output)}. Band: where that lies with probability 95 %, privacy noise and the "
        f"model's own uncertainty taken together, if the model is right.{_ticks(release)}"
    )
    if not predicts:
        caption = (
            "Line: what was released. Dashed: one std of the privacy noise. The kernel is not in the file, "
            f"so there is no denoised prediction.{_ticks(release)}"
        )

    def draw(narrow: bool) -> Figure:
        figure, plan = _figure(*(NARROW if narrow else WIDE)), release.plan
        ax = plots.plot_release(release, figure.subplots(), denoised=predicts)
        if columns_of(plan) is None:
            ax.set_xlabel(name)
        ax.set_ylabel(predicted_words(plan, release.labels.units, output))
        return figure

    def numbers() -> dict[str, Any]:
        if not predicts:
            return released_table(release, [name], release.X_star)
        x = np.linspace(release.X_star.min(), release.X_star.max(), 200)[:, None]
        return beside(named_points(release, [name], x), predictions(release, x))

    return Picture("prediction" if predicts else "released", caption, draw, numbers)


def _slices(release: AnyRelease, inputs: list[str], output: str) -> Picture:
    """The prediction along each input, the others held."""
    found = plots.slices_of(release, inputs)
    categories, rest = any(one.levels for one in found), n_inputs(release) - len(found)
    what = _what(release, output) if can_denoise(release) else "the released function"
    band = "95 % band" if can_denoise(release) else "the band of 95 % of the privacy noise"
    held = "at their medians" if box_of(release) is None else "in the middle of the box"
    held += ", or at their first level" if categories else ""
    along = f" along each input, the others {held}" if n_inputs(release) > 1 else ""
    caption = f"{what.capitalize()}{along}, with its {band.removeprefix('the ')}."
    if rest:
        caption += f" The first {len(found)} of {n_inputs(release)} inputs."

    def draw(narrow: bool) -> Figure:
        return plots.plot_slices(
            release, _figure(), output=output, across=1 if narrow else None, slices=found
        )

    def numbers() -> dict[str, Any]:
        whole = np.concatenate([one.X for one in found])
        columns = named_points(release, inputs, whole)
        parts = {"prediction": "mean", "lower": "low", "upper": "high"}
        if classes_of(release):
            return beside(columns, predictions(release, whole))
        numbers = {name: np.concatenate([getattr(one, at) for one in found]) for name, at in parts.items()}
        return beside(columns, numbers)

    return Picture("along-each-input" if n_inputs(release) > 1 else "prediction", caption, draw, numbers)


def _what(release: AnyRelease, output: str) -> str:
    """What a prediction is of, in words."""
    words = {YES_NO: f"the probability of {yes_word(release.plan, output)}", COUNT: f"the rate of {output}"}
    words[CLASSES] = f"the probability of each {'class' if output in NAMELESS else output}"
    return words.get(outcome_of(release.plan), "the prediction")


def _maps(
    release: AnyRelease,
    inputs: list[str],
    output: str,
    axes: dict[str, Any],
    outline: str | os.PathLike[str] | None,
) -> Iterator[Picture]:
    """Three views of one surface; of several classes, each one's probability."""
    given: dict[str, Any] = {**axes, "units": release.labels.units, "names": inputs}
    classes = classes_of(release)[:_MOST_CLASSES]
    for one in classes:
        surface = plots.surface_of(release, of=one, views=(PREDICTION,), **given)
        what = f"the probability of {one}"
        picture = _view(release, surface, PREDICTION, f"map-{slug(str(one))}", what, outline)
        yield replace(picture, numbers=partial(_whole_table, release, of=one, **given))
    if classes:
        return
    surface = plots.surface_of(release, output=output, **given)
    names = {PREDICTION: "map", UNCERTAINTY: "map-uncertainty", PRIVACY: "map-privacy"}
    for view, name in names.items():
        yield _view(release, surface, view, name, _what(release, output), outline)


def release_map(
    release: AnyRelease, view: str = PREDICTION, *, names: list[str], output: str, of: Any = None, **axes: Any
) -> Picture:
    """One map: of these two inputs, with the others held there, as for :func:`cloakgp.plots.surface_of`."""
    surface = plots.surface_of(
        release, names=names, output=output, of=of, units=release.labels.units, views=(view,), **axes
    )
    what = _what(release, output) if of is None else f"the probability of {of}"
    return _view(release, surface, view, "map", what, None)


def _view(
    release: AnyRelease,
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
    numbers = partial(surface_table, surface) if view == PREDICTION else None
    return Picture(name, caption, _map_drawer(release, surface, view, outline), numbers)


def slug(name: str) -> str:
    """A name as a part of a file's."""
    return re.sub(r"[^\w]+", "-", name).strip("-").lower() or "class"


def _map_drawer(
    release: AnyRelease, surface: Surface, view: str, outline: str | os.PathLike[str] | None
) -> Callable[[bool], Figure]:
    def draw(narrow: bool) -> Figure:
        # As tall as the map is, so that there is no empty paper beside it.
        tall = 0.8 if surface.aspect is None else _tall(surface, surface.aspect)
        width = NARROW[0] if narrow else WIDE[0]
        words = 0.35 * bool(release.labels.title) + 0.2 * bool(release.labels.source or release.labels.date)
        figure = _figure(width, min(0.72 * width * tall + 1.15 + words, 1.25 * width))
        draw_map(figure.subplots(), release, surface, view, outline, release.labels)
        return figure

    return draw


def _tall(surface: Surface, aspect: float) -> float:
    """How tall a map is, in units of its width."""
    (west, east), (south, north) = surface.across[[0, -1]], surface.up[[0, -1]]
    return float(aspect * (north - south) / (east - west))


def surface_table(surface: Surface) -> dict[str, Any]:
    """The numbers of a map, column by column: one row for each point of its grid."""
    across, up = np.meshgrid(surface.across, surface.up)
    return {
        surface.names[0]: across.ravel(),
        surface.names[1]: up.ravel(),
        "prediction": surface.prediction.ravel(),
        "std": surface.std.ravel(),
        "known": (~surface.unknown).ravel().astype(int),
        "privacy_share": surface.privacy_share.ravel(),
    }


def _whole_table(release: AnyRelease, **given: Any) -> dict[str, Any]:
    """The same with privacy's share, which no picture of a class shows."""
    return surface_table(plots.surface_of(release, **given))


def has_map(release: AnyRelease, inputs: list[str], coordinates: Sequence[str] | None = None) -> bool:
    """Whether two inputs are to be a map: all there are, or places among others."""
    numeric = numeric_inputs(release.plan)
    predicts = can_denoise(release) or isinstance(release, FunctionRelease)
    both = n_inputs(release) == 2 or (len(numeric) >= 2 and _are_places(inputs, numeric, coordinates))
    return predicts and len(numeric) >= 2 and both


def _are_places(names: list[str], numeric: list[int], coordinates: Sequence[str] | None) -> bool:
    """Whether two inputs among several are to be a map."""
    if coordinates is not None:
        return True
    found = plots.plane(names, numeric)
    return found.degrees or found.metres


def _density(release: RowsRelease, inputs: list[str]) -> Picture:
    caption = (
        "How many rows there are, estimated from noisy counts, with 95 % bands or the std beside it: no "
        "input is shown. Rows outside the box count in the cells at its edge."
    )

    def draw(narrow: bool) -> Figure:
        return plots.plot_density(release, _figure(), inputs, across=1 if narrow else None)

    return Picture("rows", caption, draw)


def _of_stages(release: AnyRelease, inputs: list[str], output: str) -> list[Picture]:
    """How a release in stages came about, and what it learned."""
    if not isinstance(release, StagedRelease):
        return []
    levels = _has_levels(release.plan)
    shown: list[Picture] = []
    if len(inputs) == 1 and not levels:
        caption = (
            "How it came about. Outcomes count only within the shaded windows; each stage closes them in "
            "from what came out before it, so that less noise is needed. Line: the prediction so far."
        )
        if isinstance(release, RowsRelease):
            caption += " The first stage counted rows."

        def stages(narrow: bool) -> Figure:
            words = inputs[0], output
            return plots.plot_stages(release, _figure(), labels=words, across=1 if narrow else None)

        if release.plan.rule.link is None:  # f's own scale is nobody's
            shown.append(Picture("stages", caption, stages))
    if not plots.learned_settings(release) or (isinstance(release, RowsRelease) and levels):
        return shown

    def learned(narrow: bool) -> Figure:
        figure = plots.plot_learned(release, _figure(), across=1 if narrow else None)
        if not levels:  # else not every column has a panel
            for name, ax in zip(inputs, figure.axes, strict=False):
                ax.set_xlabel(f"lengthscale of {name}")
        return figure

    caption = "The models that were learned: large circles hold much weight. The frame is what was possible."
    return [*shown, Picture("learned", caption, learned)]


def kind_of(path: Path) -> str:
    """The kind of file that a picture is to be written as, by its name; raises if there is no such kind."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InputError(f"{path}: pictures are written as .png, .svg or .pdf, their numbers as .csv.")
    return kind


def check_path(path: Path) -> None:
    """Raise unless a picture can be written there."""
    if kind_of(path) == "csv":
        raise InputError(f"{path}: this picture is written as .png, .svg or .pdf.")


def image(figure: Figure, kind: str = "png", dpi: int = 130) -> bytes:
    """A picture's bytes as .png, .svg or .pdf; the same picture gives the same."""
    from matplotlib import rc_context

    unsaid = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    out = io.BytesIO()
    name_as_written(figure.axes)
    with rc_context({"svg.hashsalt": "cloakgp"}):
        figure.savefig(out, format=kind, dpi=dpi, metadata=unsaid)
    return out.getvalue()


def png(figure: Figure, dpi: int = 130) -> bytes:
    """A picture's bytes; the same picture gives the same."""
    return image(figure, "png", dpi)


def _has_levels(plan: Any) -> bool:
    return any(levels_of(plan, place) for place in range(int(plan.shown_inputs.shape[1])))


def _ticks(release: Release | StagedRelease) -> str:
    """What is drawn of the inputs: nothing, where they are private."""
    if isinstance(release, RowsRelease):
        return ""
    what = "inducing inputs" if isinstance(release, Release) else "cells of the inputs"
    return f" Ticks: the {'inputs' if release.plan.X is not None else what}, which are public."


def _noise_figure(predicted: Any, narrow: bool) -> Figure:
    figure = _figure(*(NARROW if narrow else WIDE))
    _sorted_noise(figure, predicted)
    return figure


def _sorted_noise(figure: Figure, predicted: plots.Predicted) -> None:
    """For inputs that cannot be drawn: how much noise at how many of the test points."""
    ax, noise = figure.subplots(), predicted.noise_std
    share = 100 * np.arange(1, len(noise) + 1) / len(noise)
    ax.plot(share, np.sort(noise), color=_BLUE, linewidth=2, label="privacy noise")
    ax.plot(share, np.sort(predicted.gp_std), color=_GREY, linestyle=":", label="GP's own uncertainty")
    ax.set(xlabel="share of the test points, %", ylabel="std, at most", ylim=(0, None))
    ax.set_title(plots.title(plots.plan_of(predicted)), loc="left", fontsize="medium")
    ax.legend(frameon=False, fontsize="small")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    _stamp_insecure(ax, predicted.certificate)


def _stamp_insecure(ax: Any, certificate: AnyCertificate) -> None:
    if certificate.insecure:
        ax.text(0.02, 0.95, plots.INSECURE, transform=ax.transAxes, color="#D55E00", weight="bold", va="top")


def _spread(points: FloatArray) -> bool:
    """Whether points of two columns are not all on one line, so that contours can be drawn."""
    return len(points) >= 3 and int(np.linalg.matrix_rank(points - points.mean(axis=0))) == 2


def _figure(width: float = WIDE[0], height: float = WIDE[1]) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra(Argument("picture"), "matplotlib", "plots") from None
    return Figure(figsize=(width, height), layout="constrained")
