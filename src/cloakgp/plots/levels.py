"""Categories: a dot and a bar for each level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp.plans.predictions import Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.plots.bands import draw_bars
from cloakgp.plots.labels import classes_of
from cloakgp.plots.predicted import denoised_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_levels(ax: Axes, release: Release | StagedRelease, levels: Sequence[Any]) -> None:
    """The denoised prediction at each level of the one input, with its 95 % interval."""
    x = np.arange(float(len(levels)))
    mean, low, high = denoised_at(release, x[:, None])
    draw_bars(ax, x, mean, low, high, classes_of(release))
