"""A prediction along each input in turn, the others held: for any number of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots.axes import dates_across, name_levels, readable_up
from cloakgp.plots.bands import draw_band, draw_bars
from cloakgp.plots.labels import classes_of, columns_of, levels_of, outcome_of, predicted_words
from cloakgp.plots.page import bare, finish_panels, new_figure
from cloakgp.plots.predicted import denoised_at
from cloakgp.plots.shown_inputs import some_inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 6
_POINTS = 120


@dataclass(frozen=True, eq=False)
class Slice:
    """The prediction along one input."""

    place: int
    name: str
    levels: tuple[Any, ...]
    X: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def slices_of(release: AnyRelease, names: Sequence[str] | None = None) -> list[Slice]:
    """The denoised prediction with its 95 % band along each of the first six inputs, the others held.

    These are held at their medians, in the middle of the box where inputs are private, or at their first
    level.
    """
    plan = release.plan
    X = some_inputs(plan.shown_inputs)
    middle = plan.grid.centres[plan.grid.spare] if isinstance(plan, RowsPlan) else np.median(X, axis=0)
    levels = [levels_of(plan, place) for place in range(X.shape[1])]
    if not isinstance(plan, RowsPlan):
        middle = np.where([bool(some) for some in levels], 0.0, middle)
    known = columns_of(plan)
    if names is None:
        names = [f"x{place + 1}" for place in range(X.shape[1])] if known is None else known.names
    found = []
    for place in range(min(X.shape[1], _MOST)):
        low, high = _ends(plan, X, place)
        along = np.arange(float(len(levels[place]))) if levels[place] else np.linspace(low, high, _POINTS)
        where = np.tile(middle, (len(along), 1))
        where[:, place] = along
        found.append(Slice(place, names[place], levels[place], where, *denoised_at(release, where)))
    return found


def _ends(plan: Any, X: FloatArray, place: int) -> tuple[float, float]:
    if isinstance(plan, RowsPlan):
        axis = plan.grid.axes[place]
        return axis.low, axis.high
    return float(X[:, place].min()), float(X[:, place].max())


def plot_slices(
    release: AnyRelease,
    figure: Figure | None = None,
    labels: Sequence[str] | None = None,
    *,
    output: str | None = None,
    across: int | None = None,
    slices: Sequence[Slice] | None = None,
) -> Figure:
    """Draw the prediction along each input, the others held, with its 95 % band: for any number of inputs.

    A category has a dot and a bar for each level.

    Parameters
    ----------
    release : Release, StagedRelease, RowsRelease or FunctionRelease
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    labels : names of the inputs, optional
        As the release has them, if absent.
    output : str, optional
        What the outcome is called.
    across : int, optional
        How many panels are beside each other.
    slices : what :func:`slices_of` gave, optional
        So that it is not worked out again.

    Returns
    -------
    matplotlib Figure
    """
    plan, units = release.plan, release.labels.units
    drawn = slices_of(release, labels) if slices is None else slices
    n = len(drawn)
    across = min(2 if n in (2, 4) else 3, n) if across is None else min(across, n)
    down = -(-n // across)
    size = (7.4, 4.4) if n == 1 and across == 1 else (3.2 * across + 1.0, 2.7 * down + 0.5)
    figure = new_figure(figure, size)
    axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for ax, one in zip(axes, drawn, strict=False):
        _draw(ax, one, classes_of(release))
        ax.set_xlabel(one.name)
        dates_across(ax, plan, one.place)
        bare(ax)
    for ax in axes[::across]:
        ax.set_ylabel(predicted_words(plan, units, output))
    readable_up(axes[0], units, outcome_of(plan))
    for ax in axes[n:]:
        ax.set_visible(False)
    if classes_of(release):
        axes[0].legend(frameon=False, fontsize="small")
    finish_panels(figure, release, False)
    return figure


def _draw(ax: Axes, one: Slice, classes: Sequence[Any]) -> None:
    x, found = one.X[:, one.place], (one.mean, one.low, one.high)
    if one.levels:
        draw_bars(ax, x, *found, classes)
        name_levels(ax, one.levels)
    else:
        draw_band(ax, x, *found, classes)
