"""A prediction with its band, or one for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.plots.page import BLUE, CLASS_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_band(
    ax: Axes, x: FloatArray, mean: FloatArray, low: FloatArray, high: FloatArray, classes: Sequence[Any] = ()
) -> None:
    """A line and the band from `low` to `high`; with classes one of each, which have (n, K) numbers."""
    if mean.ndim == 1:
        ax.plot(x, mean, color=BLUE, linewidth=2.2, zorder=3, label="prediction")
        ax.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0, label="95 % band")
        return
    for k, (colour, dashes, name) in enumerate(_styled(classes)):
        ax.plot(x, mean[:, k], color=colour, linestyle=dashes, linewidth=2.2, zorder=3, label=name)
        ax.fill_between(x, low[:, k], high[:, k], color=colour, alpha=0.15, linewidth=0)


def draw_bars(
    ax: Axes, x: FloatArray, mean: FloatArray, low: FloatArray, high: FloatArray, classes: Sequence[Any] = ()
) -> None:
    """Dots, and bars from `low` to `high`; with classes, one of each beside the other."""
    style: dict[str, Any] = {"fmt": "o", "capsize": 4}
    if mean.ndim == 1:
        ends = np.maximum([mean - low, high - mean], 0.0)
        ax.errorbar(x, mean, ends, color=BLUE, label="prediction, 95 % interval", **style)
        return
    beside = np.linspace(-0.25, 0.25, len(classes))
    for k, (colour, _, name) in enumerate(_styled(classes)):
        ends = np.maximum([mean[:, k] - low[:, k], high[:, k] - mean[:, k]], 0.0)
        ax.errorbar(x + beside[k], mean[:, k], ends, color=colour, label=name, **style)


_STYLES = [(colour, dashes) for dashes in ("-", "--", ":") for colour in CLASS_COLOURS]


def _styled(classes: Sequence[Any]) -> list[tuple[str, str, str]]:
    """A colour and dashes for each class, and its name."""
    return [(*_STYLES[k % len(_STYLES)], str(one)) for k, one in enumerate(classes)]
