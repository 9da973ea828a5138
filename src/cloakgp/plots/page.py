"""The sheet that pictures are drawn on: figures and axes, light or dark, and the marks that none may lack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cloakgp.errors import ArgumentError, missing_extra
from cloakgp.files.labels import NONE, Labels
from cloakgp.plots.labels import source_words, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cloakgp.plans.opening import AnyPlan, AnyRelease

INSECURE = "INSECURE: not private"
NOT_FOR_RELEASE = "NOT FOR RELEASE: shows private data"

# From Okabe & Ito's palette, told apart by colour-blind readers; the line styles differ too.
BLUE, ORANGE, GREEN, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY)
"""One for each class; beyond them they begin anew, with other dashes."""
PAPER = "#FFFFFF"
_DARK_PAPER = "#14181E"
_ON_DARK = {  # the same colours where the paper is dark
    BLUE: "#5BB5EA",
    ORANGE: "#FF9153",
    GREEN: "#3CCFA2",
    BLACK: "#E6E8EC",
    GREY: "#A2ABBA",
    PAPER: _DARK_PAPER,
    "#CCCCCC": "#4A5361",  # matplotlib's own, of legends
    "#B0B0B0": "#4A5361",
}
STYLES = ("light", "dark")
_NARROW = 5.5  # inches, of a figure for telephones
_LINE = 12.0  # points
_BELOW = 34.0  # points from the axes to a legend below their name


def new_axes(ax: Axes | None) -> Axes:
    """The axes given, or new ones."""
    return new_figure(None, (7.0, 4.2)).subplots() if ax is None else ax


def new_figure(figure: Figure | None, size: tuple[float, float]) -> Figure:
    """The figure given, or a new one of pyplot's, which notebooks show by themselves."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_extra("a picture", "matplotlib", "plots") from None
    if figure is None:
        return plt.figure(figsize=size, layout="constrained")
    figure.set_size_inches(*size)
    return figure


def bare(ax: Axes) -> None:
    """Without the lines above and on the right, which say nothing."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def as_written(words: str) -> str:
    """With dollar signs as they are: matplotlib takes what is between two of them for a formula."""
    return re.sub(r"(?<!\\)\$", r"\\$", words)


def name_as_written(axes: Sequence[Any]) -> None:
    """The same for the names of axes and what their legends say: these are words of whoever has the data."""
    for ax in (one for each in axes for one in (each, *each.child_axes)):
        legend = ax.get_legend()
        for text in (ax.xaxis.label, ax.yaxis.label, *(() if legend is None else legend.get_texts())):
            text.set_text(as_written(text.get_text()))


def finish(
    ax: Axes,
    plan: AnyPlan,
    labels: Labels = NONE,
    *,
    below: bool = False,
    more: Sequence[str] = (),
    **legend: Any,
) -> None:
    """The legend, title and promise, source and date, and the mark of insecure releases.

    `more` are lines below the promise.
    """
    from matplotlib.transforms import ScaledTranslation

    promise = as_written("\n".join([title(plan), *more]))
    if labels.title:
        ax.set_title(promise, loc="left", fontsize="small", color=GREY)
        up = 21 + _LINE * len(more)
        above = ax.annotate(as_written(labels.title), (0, 1), (0, up), "axes fraction", "offset points")
        above.set(weight="bold", fontsize="large")
    else:
        ax.set_title(promise, loc="left", fontsize="medium")
    bare(ax)
    lowest: Any = ax.xaxis.label
    if ax.get_legend_handles_labels()[1]:
        # Clear of the axes' edges, where the ticks of the training inputs stand.
        place: dict[str, Any] = {"borderaxespad": 1.6, **legend}
        if below:
            figure: Any = ax.get_figure(root=True)
            beside = 3 if figure.get_figwidth() > _NARROW else 2
            place = {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 0.0, "ncols": beside}
            shift = ScaledTranslation(0, -_BELOW / 72, figure.dpi_scale_trans)
            place["bbox_transform"] = ax.transAxes + shift
        key = ax.legend(frameon=False, fontsize="small", **place)
        lowest = key if below else lowest
    name_as_written([ax])
    said = as_written(source_words(labels))
    if said:
        at: Any = ("axes fraction", lowest)  # below that, wherever it comes to lie
        note = ax.annotate(said, (1, 0), (0, -5), at, "offset points")
        note.set(fontsize="x-small", color=GREY, ha="right", va="top")
    if plan.certificate.insecure:
        stamp(ax, 0.5, 0.5, INSECURE, fontsize=30, ha="center", va="center", rotation=15)


def finish_panels(figure: Figure, release: AnyRelease, private: bool) -> None:
    """Title and promise above several panels, and the marks of what must not be published."""
    lines = [release.labels.title, title(release.plan), source_words(release.labels)]
    above = "\n".join(line for line in lines if line)
    name_as_written(figure.axes)
    figure.suptitle(as_written(above), x=0.01, ha="left", fontsize="medium")
    marks = [INSECURE] * release.certificate.insecure + [NOT_FOR_RELEASE] * private
    if marks:
        words = "; ".join(marks)
        figure.text(0.99, 0.99, words, color=ORANGE, weight="bold", fontsize=12, ha="right", va="top")


def stamp(ax: Axes, across: float, up: float, words: str, **style: Any) -> None:
    """Words that cannot be overlooked."""
    frame = {"facecolor": PAPER, "edgecolor": ORANGE, "alpha": 0.85, "boxstyle": "square,pad=0.2"}
    at: dict[str, Any] = {"transform": ax.transAxes, "zorder": 10}
    ax.text(across, up, words, color=ORANGE, weight="bold", bbox=frame, **at, **style)


def check_style(style: str) -> None:
    """Raise unless it is one of :data:`STYLES`."""
    if style not in STYLES:
        raise ArgumentError("style", "must be 'light' or 'dark'", repr(style))


def darken(figure: Figure) -> Figure:
    """The same picture on dark paper: every colour that is known here has one for that.

    Parameters
    ----------
    figure : matplotlib Figure
        With pictures of this package. It is changed.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    for one in figure.findobj():
        if isinstance(one, Collection) and one.get_array() is not None:
            continue  # by a colour map, which is made for any paper
        if isinstance(one, Collection | Patch):
            one.set_facecolor(_each_on_dark(one.get_facecolor()))
            one.set_edgecolor(_each_on_dark(one.get_edgecolor()))
        elif isinstance(one, Line2D):
            one.set_color(_on_dark(one.get_color()))
            one.set_markerfacecolor(_on_dark(one.get_markerfacecolor()))
            one.set_markeredgecolor(_on_dark(one.get_markeredgecolor()))
        elif isinstance(one, Text):
            one.set_color(_on_dark(one.get_color()))
    for ax in figure.axes:
        for one in (ax, *ax.child_axes):
            one.tick_params(which="both", colors=_ON_DARK[BLACK])
    return figure


def _on_dark(colour: Any) -> Any:
    """One colour; as it is if it is none of ours."""
    from matplotlib.colors import to_hex, to_rgba

    try:
        *_, opacity = rgba = to_rgba(colour)
    except ValueError:  # "none", or one that varies
        return colour
    found = _ON_DARK.get(to_hex(rgba).upper())
    return colour if found is None else to_rgba(found, opacity)


def _each_on_dark(colours: Any) -> Any:
    """Colours of one thing or of many; those of a colour map stay."""
    import numpy as np

    if np.ndim(colours) < 2:
        return _on_dark(colours)
    return [_on_dark(tuple(colour)) for colour in colours]
