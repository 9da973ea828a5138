"""A public box over private inputs, as people type it; and points in it, with levels by their names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.rows.file_cells import read_texts
from cloakgp.rows.grid import Grid
from cloakgp.workflow import points, tables


def make_grid(
    inputs: Sequence[str],
    ranges: Mapping[str, tuple[Any, Any]],
    levels: Mapping[str, Sequence[str]],
    cells: int | Mapping[str, int] | None = None,
) -> Grid:
    """The grid of these inputs, each of which has a range or levels: texts, or whole numbers if all are."""
    twice = sorted(set(ranges) & set(levels))
    if twice:
        raise InputError(f"{twice[0]!r} has a range and levels. Give one of them.")
    for name in [*ranges, *levels]:
        if name not in inputs:
            raise InputError(f"{name!r} is not among the inputs: {', '.join(inputs)}.")
    for name in inputs:
        if name not in ranges and name not in levels:
            raise InputError(
                f"the inputs are private, so the public range of {name!r} must be given, or its levels: it "
                "is not looked up in the table, whose range would tell of somebody."
            )
    box: dict[str, Any] = {
        name: tuple(ranges[name]) if name in ranges else _typed(levels[name]) for name in inputs
    }
    return Grid(box) if cells is None else Grid(box, cells)


def _typed(levels: Sequence[str]) -> list[Any]:
    try:
        return [int(level) for level in levels]
    except ValueError:
        return list(levels)


def resolve(at: str, grid: Grid) -> FloatArray:
    """The points of ``grid:n``, or of a file with the grid's columns."""
    return over(grid, at) if points.is_grid(at) else from_file(at, grid, points.MOST_POINTS)


def over(grid: Grid, spec: str) -> FloatArray:
    """All combinations of n points along each range, its edges among them, and of all levels."""
    n = points.per_axis(spec)
    sizes = [axis.cells if axis.category else n for axis in grid.axes]
    points.check_number(spec, math.prod(sizes))
    axes = [axis.centres if axis.category else np.linspace(axis.low, axis.high, n) for axis in grid.axes]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def from_file(path: str, grid: Grid, limit: int | None = None) -> FloatArray:
    """The rows of a file of public points, levels by their numbers."""
    tables.check_columns(path, list(grid.names))
    table: dict[str, Any] = {}
    for axis in grid.axes:
        if axis.has_texts or axis.origin:
            table[axis.name] = read_texts(path, axis.name)
        else:
            table[axis.name] = tables.read_columns(path, [axis.name])[:, 0]
    found = grid.points(table)
    points.check_number(path, len(found), limit)
    return found


def _shown(end: Any) -> str:
    return end if isinstance(end, str) else f"{end:g}"


def range_words(grid: Grid) -> list[str]:
    """Each input's range or levels, in words."""
    return [
        f"{axis.name}: {', '.join(map(str, axis.levels))}"
        if axis.category
        else f"{axis.name}: {' to '.join(map(_shown, grid.ends(axis)))} in {axis.cells} cells"
        for axis in grid.axes
    ]
