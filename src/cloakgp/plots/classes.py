"""Several classes: a curve of probabilities for each."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.plans.staged import StagedRelease
from cloakgp.plots.page import BLACK, BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = [(colour, style) for style, colour in product(("-", "--", ":"), (BLUE, ORANGE, GREEN, BLACK))]


def draw_classes(ax: Axes, release: StagedRelease, x: FloatArray) -> None:
    """Each class's probability, with the band in which it lies with probability 95 %."""
    chances, ends = release.predict_proba(x), release.interval(x)
    for place, name in enumerate(release.classes):
        colour, style = _LINES[place % len(_LINES)]
        low, high = np.moveaxis(ends[:, place], 1, 0)
        ax.plot(x, chances[:, place], color=colour, linestyle=style, linewidth=2, zorder=3, label=str(name))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
    ax.set_ylim(-0.05, 1.02)
