"""Where predictions are wanted: a grid over the inputs' range, or the rows of a file."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.rows.columns import Columns
from cloakgp.workflow import tables
from cloakgp.workflow.inputs import ranges
from cloakgp.workflow.table_cells import as_numbers, read_points

MOST_POINTS = 20_000
_GRID = re.compile(r"grid:([0-9]{1,6})")
_COUNT = re.compile(r"[0-9]{1,6}")


def is_grid(spec: str) -> bool:
    """Whether a text asks for a grid, and not for a file."""
    return spec.startswith("grid:")


def grid(spec: str, X: Any, columns: Columns | None = None) -> FloatArray:
    """The points of ``grid:n``: n per axis over the range of each column of X, or all levels of a category;
    all combinations."""
    n, width = per_axis(spec), X.shape[1]
    levels = {} if columns is None else {i: len(columns.inputs[i].levels) for i in columns.categories}
    size = math.prod(levels.get(place, n) for place in range(width))
    if size > MOST_POINTS:
        raise InputError(
            f"{spec} over {width} input columns would be {size} points, above the limit of "
            f"{MOST_POINTS}. Take fewer per axis, or a file of points."
        )
    axes = [np.linspace(low, high, n) for low, high in zip(*ranges(X), strict=True)]
    for place, number in levels.items():
        axes[place] = np.arange(float(number))
    if any(axis[0] == axis[-1] for place, axis in enumerate(axes) if place not in levels):
        raise InputError(f"{spec}: an input column has the same number in every row, so it has no range.")
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, width)


def per_axis(spec: str) -> int:
    """How many points along each axis ``grid:n`` asks for."""
    match = _GRID.fullmatch(spec)
    if match is None or int(match[1]) < 2:
        raise InputError(f"a grid must be written grid:n with a whole number n of at least 2; got {spec!r}.")
    return int(match[1])


def check_number(where: str, n: int, limit: int | None = MOST_POINTS) -> None:
    """Raise if these would be too many points for one plan."""
    if limit is not None and n > limit:
        raise InputError(
            f"{where} has {n} points, above the limit of {limit} for one plan. Take fewer: predictions at "
            "other points are free after the release."
        )


def from_file(
    path: str, inputs: Sequence[str], limit: int | None = MOST_POINTS, columns: Columns | None = None
) -> FloatArray:
    """The rows of a file that has these input columns, or a plan's."""
    if columns is None:
        points = tables.read_columns(path, inputs)
    else:
        points = as_numbers(path, columns, read_points(path, columns))
    check_number(path, len(points), limit)
    return points


def resolve(spec: str, inputs: Sequence[str], X: Any, columns: Columns | None = None) -> FloatArray:
    """The points of a grid or of a file."""
    return grid(spec, X, columns) if is_grid(spec) else from_file(spec, inputs, columns=columns)


def inducing_inputs(
    spec: str | None, inputs: Sequence[str], columns: Columns | None = None
) -> int | FloatArray | None:
    """Inducing inputs as they are asked for: how many, or the rows of a file."""
    if spec is None:
        return None
    return int(spec) if _COUNT.fullmatch(spec) else from_file(spec, inputs, columns=columns)


def named_columns(path: str, wanted: int, inputs: Sequence[str] | None) -> list[str]:
    """Which columns of a file of points are the inputs: those named, or all if the number is right."""
    if inputs is not None:
        if len(inputs) != wanted:
            raise InputError(f"the release has {wanted} input column(s); {len(inputs)} were named.")
        return list(inputs)
    there = tables.columns_of(path)
    if len(there) != wanted:
        raise InputError(
            f"{path} has {len(there)} columns and the release has {wanted} input column(s). Say which: "
            "--inputs, in the order in which the release was planned."
        )
    return there


def as_matrix(points: object) -> FloatArray:
    """Stored points, checked."""
    return checks.matrix(points, "points")
