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
    the margin. Columns of `categories` hold levels, which are not moved; two that differ are a range apart.
    """
    X = checks.matrix(X, "X")
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    if X.shape[1] == 1 and not categories:
        return np.linspace(low - margin * width, high + margin * width, n_points)
    scaled, levels = (X - low) / width, X[:, list(categories)]
    scaled[:, list(categories)] = 0.0
    middle = scaled.mean(axis=0)
    chosen = [int(np.argmin(((scaled - middle) ** 2).sum(axis=1)))]
    distance = _distances(scaled, levels, chosen[0])
    while len(chosen) < n_points // 2 and distance.max() > 0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, _distances(scaled, levels, chosen[-1]))
    rows = scaled[chosen]
    points: FloatArray = np.vstack([rows, middle + (1 + 2 * margin) * (rows - middle)]) * width + low
    points[:, list(categories)] = np.tile(levels[chosen], (2, 1))
    return points[: len(chosen)] if len(categories) == X.shape[1] else points


def _distances(scaled: FloatArray, levels: FloatArray, one: int) -> FloatArray:
    """Squared, of all rows from one: each level that differs counts 1."""
    differ = (levels != levels[one]).sum(axis=1)
    return np.asarray(((scaled - scaled[one]) ** 2).sum(axis=1) + differ)
