"""Where to predict if nobody says: points that cover the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray


def cover(X: Any, n_points: int = 100, margin: float = 0.1, categories: Sequence[int] = ()) -> FloatArray:
    """Public points that cover X and its surroundings, chosen from X alone.

    One column: `n_points` evenly over the range of X, widened by `margin` of it on each side. More
    columns: half are rows of X, each the one farthest from those chosen before, starting from the
    one nearest to the middle; the other half are the same rows moved away from the middle by twice
    the margin. Columns that hold levels of a category keep their levels.
    """
    X = checks.matrix(X, "X")
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    levels = list(categories)
    if X.shape[1] == 1 and not levels:
        return np.linspace(low - margin * width, high + margin * width, n_points)
    scaled = (X - low) / width
    middle = scaled.mean(axis=0)
    chosen = [int(np.argmin(((scaled - middle) ** 2).sum(axis=1)))]
    distance = ((scaled - scaled[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < n_points // 2 and distance.max() > 0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((scaled - scaled[chosen[-1]]) ** 2).sum(axis=1))
    rows = scaled[chosen]
    moved = middle + (1 + 2 * margin) * (rows - middle)
    moved[:, levels] = rows[:, levels]
    points: FloatArray = np.vstack([rows, moved]) * width + low
    if levels:
        points[:, levels] = np.rint(points[:, levels])  # the codes again, without rounding errors
    return np.unique(points, axis=0) if levels else points
