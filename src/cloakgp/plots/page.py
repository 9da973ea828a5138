"""The sheet that pictures are drawn on: readable axes, predictions, light or dark paper, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import missing_extra
from cloakgp.files.labels import NONE, Labels
from cloakgp.model.outcome import Outcome
from cloakgp.plots.numbers import nice_ticks, tick_words
from cloakgp.plots.shown import source_words, title
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSECURE = "INSECURE: not private"
NOT_FOR_RELEASE = "NOT FOR RELEASE: shows private data"

# From Okabe & Ito's palette, told apart by colour-blind readers; the line styles differ too.
BLUE, ORANGE, GREEN, BLACK, GREY = "#0072B2", "#D55E00", "#009E73", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY)
"""One for each class; beyond them they begin anew, with other dashes."""
PAPER = "#FFFFFF"
_ON_DARK = {  # the same colours where the paper is dark
    BLUE: "#5BB5EA",
    ORANGE: "#FF9153",
    GREEN: "#3CCFA2",
    BLACK: "#E6E8EC",
    GREY: "#A2ABBA",
    PAPER: "#14181E",
    "#CCCCCC": "#4A5361",  # matplotlib's own, of legends
    "#B0B0B0": "#4A5361",
}

# Figures and axes


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


def panels(
    figure: Figure | None, n: int, across: int, size: Sequence[float], **sharing: Any
) -> tuple[Figure, list[Any]]:
    """So many axes on one figure, some beside each other.

    `size` in inches: of one panel across and up, and what the figure has beyond all of these.
    """
    down = -(-n // across)
    figure = new_figure(figure, (size[0] * across + size[2], size[1] * down + size[3]))
    axes = figure.subplots(down, across, squeeze=False, **sharing).ravel()
    for ax in axes[n:]:
        ax.set_visible(False)
    return figure, list(axes[:n])


def bare(ax: Axes) -> None:
    """Without the lines above and on the right, which say nothing."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def readable_up(ax: Axes, units: str, outcome: Outcome) -> None:
    """Round numbers on the vertical axis, with the unit; a probability from 0 to 1, a rate from 0."""
    low, high = outcome.axis(*ax.get_ylim())
    ax.set_ylim(low, high)
    ticks = nice_ticks(low, high)
    ax.set_yticks(ticks, tick_words(ticks, units, outcome.percent))


def name_levels(ax: Axes, levels: Sequence[Any]) -> None:
    """The names of levels below an axis, as many as fit, on their side if they are long."""
    shown = np.arange(len(levels))[:: -(-len(levels) // 24)]  # more names than that do not fit at all
    names = [str(levels[place]) for place in shown]
    ax.set_xticks(shown, names)
    if sum(map(len, names)) > 40:  # letters, which are as many as fit beside each other
        ax.tick_params(axis="x", labelrotation=35)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.5, len(levels) - 0.5)


def name_dates(ax: Axes, plan: Plan, place: int) -> None:
    """Dates in place of days since an origin, where the input was one."""
    column = inputs_of(plan)[place]
    if not column.origin:
        return
    import matplotlib.dates as untyped

    dates: Any = untyped
    origin = float(dates.date2num(np.datetime64(column.origin)))
    first, last = ax.get_xlim()
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    ticks = locator.tick_values(*(dates.num2date(origin + end) for end in (first, last)))
    inside = [tick for tick in ticks if first <= tick - origin <= last]
    words = dates.ConciseDateFormatter(locator).format_ticks(inside)
    ax.set_xticks([tick - origin for tick in inside], words)
    ax.set_xlabel(column.name)


# Predictions


def draw_prediction(
    ax: Axes, x: FloatArray, found: Sequence[FloatArray], classes: Sequence[Any] = (), *, bars: bool = False
) -> None:
    """A line and its band, or dots and their bars; of classes one of each, which have (n, K) numbers.

    `found` has the prediction, and the ends between which the truth lies with probability 95 %.
    """
    mean, low, high = (np.atleast_2d(one.T) for one in found)
    beside = np.linspace(-0.25, 0.25, len(mean)) if classes else [0.0]
    for k, name in enumerate(map(str, classes or ["prediction"])):
        colour, dashes = CLASS_COLOURS[k % len(CLASS_COLOURS)], ("-", "--", ":")[k // len(CLASS_COLOURS) % 3]
        if bars:
            ends = np.maximum([mean[k] - low[k], high[k] - mean[k]], 0.0)
            label = name if classes else f"{name}, 95 % interval"
            ax.errorbar(x + beside[k], mean[k], ends, color=colour, label=label, fmt="o", capsize=4)
            continue
        ax.plot(x, mean[k], color=colour, linestyle=dashes, linewidth=2.2, zorder=3, label=name)
        style: dict[str, Any] = {"alpha": 0.15} if classes else {"alpha": 0.18, "label": "95 % band"}
        ax.fill_between(x, low[k], high[k], color=colour, linewidth=0, **style)


# Words and marks


def as_written(drawn: Any) -> None:
    """Dollar signs as they are: matplotlib takes what is between two of them for a formula."""
    from matplotlib.text import Text

    for text in drawn.findobj(Text):
        text.set_parse_math(False)


def finish(
    ax: Axes,
    plan: Plan,
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

    promise = "\n".join([title(plan), *more])
    if labels.title:
        ax.set_title(promise, loc="left", fontsize="small", color=GREY)
        up = 21 + 12 * len(more)  # points, of which a line takes 12
        above = ax.annotate(labels.title, (0, 1), (0, up), "axes fraction", "offset points")
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
            beside = 3 if figure.get_figwidth() > 5.5 else 2  # inches, of a figure for telephones
            place = {"loc": "upper left", "bbox_to_anchor": (0, 0), "borderaxespad": 0.0, "ncols": beside}
            shift = ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans)  # below the axes' name
            place["bbox_transform"] = ax.transAxes + shift
        key = ax.legend(frameon=False, fontsize="small", **place)
        lowest = key if below else lowest
    said = source_words(labels)
    if said:
        at: Any = ("axes fraction", lowest)  # below that, wherever it comes to lie
        note = ax.annotate(said, (1, 0), (0, -5), at, "offset points")
        note.set(fontsize="x-small", color=GREY, ha="right", va="top")
    as_written(ax)
    if plan.certificate.insecure:
        stamp(ax, 0.5, 0.5, INSECURE, fontsize=30, ha="center", va="center", rotation=15)


def finish_panels(figure: Figure, release: Release) -> None:
    """Title and promise above several panels, and the mark of insecure releases."""
    lines = [release.labels.title, title(release.plan), source_words(release.labels)]
    above = "\n".join(line for line in lines if line)
    figure.suptitle(above, x=0.01, ha="left", fontsize="medium")
    as_written(figure)
    if release.certificate.insecure:
        style: dict[str, Any] = {"color": ORANGE, "weight": "bold", "fontsize": 12}
        figure.text(0.99, 0.99, INSECURE, ha="right", va="top", **style)


def stamp(ax: Axes, across: float, up: float, words: str, **style: Any) -> None:
    """Words that cannot be overlooked."""
    frame = {"facecolor": PAPER, "edgecolor": ORANGE, "alpha": 0.85, "boxstyle": "square,pad=0.2"}
    at: dict[str, Any] = {"transform": ax.transAxes, "zorder": 10}
    ax.text(across, up, words, color=ORANGE, weight="bold", bbox=frame, **at, **style)


# Dark paper


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
    for one in figure.findobj():
        if getattr(one, "get_array", lambda: None)() is not None:
            continue  # by a colour map, which is made for any paper
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            if hasattr(one, f"get_{name}") and hasattr(one, f"set_{name}"):
                one.set(**{name: _on_dark(getattr(one, f"get_{name}")())})
    for ax in figure.axes:
        for one in (ax, *ax.child_axes):
            one.tick_params(which="both", colors=_ON_DARK[BLACK])
    return figure


def _on_dark(colours: Any) -> Any:
    """One colour, or one for each of many things; those that are none of ours stay."""
    from matplotlib.colors import to_hex, to_rgba

    if np.ndim(colours) > 1:
        return [_on_dark(tuple(one)) for one in colours]
    try:
        rgba = to_rgba(colours)
    except ValueError:  # "none", or one that varies
        return colours
    found = _ON_DARK.get(to_hex(rgba).upper())
    return colours if found is None else to_rgba(found, rgba[3])
