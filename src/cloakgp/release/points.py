"""Test points as people ask for them: ``grid:n``, over the range of public inputs or over a public box."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import InputError
from cloakgp.data.columns import Columns
from cloakgp.data.grid import Grid
from cloakgp.data.passes import sweep

MOST_POINTS = 20_000
"""Of one plan: the work grows with their square."""


def is_grid(spec: str) -> bool:
    """Whether a text asks for a grid, and not for a file."""
    return spec.startswith("grid:")


def grid(spec: str, X: Any, columns: Columns | None = None) -> FloatArray:
    """The points of ``grid:n``: n per axis over the range of each column of X, or all levels of a category;
    all combinations."""
    n, width = _per_axis(spec), X.shape[1]
    levels = {} if columns is None else {i: len(columns.inputs[i].levels) for i in columns.categories}
    check_number(spec, math.prod(levels.get(place, n) for place in range(width)))
    axes = [np.linspace(low, high, n) for low, high in zip(*ranges(X), strict=True)]
    for place, number in levels.items():
        axes[place] = np.arange(float(number))
    if any(axis[0] == axis[-1] for place, axis in enumerate(axes) if place not in levels):
        raise InputError(f"{spec}: an input column has the same number in every row, so it has no range.")
    return _combined(axes)


def over(box: Grid, spec: str) -> FloatArray:
    """All combinations of n points along each range of a box, its edges among them, and of all levels."""
    n = _per_axis(spec)
    check_number(spec, math.prod(axis.cells if axis.category else n for axis in box.axes))
    return _combined(
        [axis.centres if axis.category else np.linspace(axis.low, axis.high, n) for axis in box.axes]
    )


def check_number(where: str, n: int, limit: int | None = MOST_POINTS) -> None:
    """Raise if these would be too many points for one plan."""
    if limit is not None and n > limit:
        raise InputError(
            f"{where} has {n} points, above the limit of {limit} for one plan. Take fewer: predictions at "
            "other points are free after the release."
        )


def ranges(X: Any) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest number of each column, wherever X is kept."""
    if isinstance(X, np.ndarray):
        return X.min(axis=0), X.max(axis=0)
    found = np.array(list(sweep(_range, X, label="reading X")))
    if not np.isfinite(found).all():
        raise InputError(
            "the input columns must hold a finite number in every row. Fill or remove such rows by public "
            "knowledge only, never by their outcome."
        )
    return found[:, 0].min(axis=0), found[:, 1].max(axis=0)


def _range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return X.min(axis=0), X.max(axis=0)


def _combined(axes: list[FloatArray]) -> FloatArray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _per_axis(spec: str) -> int:
    """How many points along each axis ``grid:n`` asks for."""
    match = re.fullmatch(r"grid:([0-9]{1,6})", spec)
    if match is None or int(match[1]) < 2:
        raise InputError(f"a grid must be written grid:n with a whole number n of at least 2; got {spec!r}.")
    return int(match[1])
