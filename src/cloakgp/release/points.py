"""Test points as people ask for them: ``grid:n``, over the range of public inputs or over a public box."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
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
    levels = {} if columns is None else {i: len(columns.inputs[i].levels) for i in columns.categories}
    spans = list(zip(*ranges(X), strict=True))
    if any(low == high for place, (low, high) in enumerate(spans) if place not in levels):
        raise InputError(f"{spec}: an input column has the same number in every row, so it has no range.")
    return _combined(spec, spans, levels)


def over(box: Grid, spec: str) -> FloatArray:
    """All combinations of n points along each range of a box, its edges among them, and of all levels."""
    levels = {place: axis.cells for place, axis in enumerate(box.axes) if axis.category}
    return _combined(spec, [(axis.low, axis.high) for axis in box.axes], levels)


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


def _combined(spec: str, spans: Sequence[tuple[float, float]], levels: dict[int, int]) -> FloatArray:
    """All combinations of n points along each span, or of the numbers of its levels where it has some."""
    n = _per_axis(spec)
    check_number(spec, math.prod(levels.get(place, n) for place in range(len(spans))))
    axes = [
        np.arange(float(levels[place])) if place in levels else np.linspace(*span, n)
        for place, span in enumerate(spans)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _per_axis(spec: str) -> int:
    """How many points along each axis ``grid:n`` asks for."""
    match = re.fullmatch(r"grid:([0-9]{1,6})", spec)
    if match is None or int(match[1]) < 2:
        raise InputError(f"a grid must be written grid:n with a whole number n of at least 2; got {spec!r}.")
    return int(match[1])
