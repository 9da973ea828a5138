"""Categories: a dot and a bar for each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.plans.predictions import Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.plots.page import BLUE
from cloakgp.plots.predicted import denoised_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_levels(ax: Axes, release: Release | StagedRelease, levels: Sequence[Any]) -> None:
    """The denoised prediction at each level of the one input, with its 95 % interval."""
    x = np.arange(float(len(levels)))
    mean, low, high = denoised_at(release, x[:, None])
    draw_bars(ax, x, mean, low, high)


def draw_bars(ax: Axes, x: Any, mean: Any, low: Any, high: Any) -> None:
    """Dots, and bars from `low` to `high`."""
    ends = np.maximum([mean - low, high - mean], 0.0)
    ax.errorbar(x, mean, ends, fmt="o", color=BLUE, capsize=4, label="prediction, 95 % interval")
