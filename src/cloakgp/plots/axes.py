"""Axes whose numbers can be read: units, percentages, dates, names of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.model.outcome import CHANCES, COUNT
from cloakgp.plans.opening import AnyPlan
from cloakgp.plots.labels import column_of
from cloakgp.plots.number_words import nice_ticks, tick_words
from cloakgp.plots.page import as_written
from cloakgp.rows.columns import DATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDEWAYS = 40  # letters of all levels that fit below an axis
_MOST_LEVELS = 24  # whose names fit at all


def readable_up(ax: Axes, units: str = "", outcome: str = "") -> None:
    """Round numbers on the vertical axis, with the unit; a probability from 0 to 1, a rate from 0."""
    low, high = ax.get_ylim()
    if outcome in CHANCES:
        # All of it, unless a yes is so rare, or so common, that nothing would be seen.
        low, high = (0.0, 1.0) if high - low > 0.2 else (max(low, 0.0), min(high, 1.0))
    elif outcome == COUNT:
        low = 0.0
    ax.set_ylim(low, high)
    ticks = nice_ticks(low, high)
    ax.set_yticks(ticks, tick_words(ticks, units, outcome))


def name_levels(ax: Axes, levels: Sequence[Any]) -> None:
    """The names of levels below an axis, as many as fit, on their side if they are long."""
    places = np.arange(len(levels))
    shown = places[:: -(-len(levels) // _MOST_LEVELS)]
    names = [str(levels[place]) for place in shown]
    ax.set_xticks(shown, list(map(as_written, names)))
    if sum(map(len, names)) > _SIDEWAYS:
        ax.tick_params(axis="x", labelrotation=35)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.5, len(levels) - 0.5)


def dates_across(ax: Axes, plan: AnyPlan, place: int) -> None:
    """Dates in place of days since an origin, where the input was one."""
    column = column_of(plan, place)
    if column is None or column.kind != DATE:
        return
    import matplotlib.dates as untyped

    dates: Any = untyped
    origin = float(dates.date2num(np.datetime64(column.origin)))
    low, high = (dates.num2date(origin + end) for end in ax.get_xlim())
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    ticks = np.asarray(locator.tick_values(low, high), dtype=np.float64)
    inside = [tick for tick in ticks if ax.get_xlim()[0] <= tick - origin <= ax.get_xlim()[1]]
    words = dates.ConciseDateFormatter(locator).format_ticks(inside)
    ax.set_xticks([tick - origin for tick in inside], words)
    ax.set_xlabel(column.name)
