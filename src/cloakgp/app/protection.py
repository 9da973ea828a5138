"""Who is protected: what of a table is private then, and the public box that stands for private inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.app import limits, models
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.rows.grid import Grid
from cloakgp.workflow import points


def hides_inputs(settings: dict[str, Any]) -> bool:
    """Whether a plan's settings protect whole rows."""
    return settings.get("protect") == "rows"


def private_columns(settings: dict[str, Any]) -> set[str]:
    """Columns that nothing but the private step may read."""
    return set(columns_of(settings)) if hides_inputs(settings) else {settings["output"]}


def columns_of(settings: dict[str, Any]) -> list[str]:
    """All columns that a plan needs, by name."""
    who = settings.get("people")
    wanted = [*settings["inputs"], settings["output"]]
    return wanted if who is None or who in wanted else [*wanted, who]


def grid_of(asked: models.Settings) -> Grid:
    """The cells of the box, which are all that is known of private inputs."""
    assert asked.box is not None
    box: dict[str, Any] = {}
    cells = {}
    for name in asked.inputs:
        extent = asked.box[name]
        if isinstance(extent, models.Levels):
            box[name] = list(extent.levels)
        else:
            box[name], cells[name] = (extent.low, extent.high), extent.cells
    grid = Grid(box, cells)
    if len(grid) > limits.CELLS:
        raise InputError(
            f"the box has {len(grid)} cells, and the app does this for at most {limits.CELLS}. Give fewer "
            "cells to an input, or leave one out."
        )
    return grid


def points_in(grid: Grid, at: str | models.Points) -> FloatArray:
    """Test points: so many along each range of the box, at every level; or one's own."""
    if not isinstance(at, str):
        return points.as_matrix(at.points)
    n = int(at.removeprefix("grid:"))
    if n < 2:
        raise InputError(f"a grid must be written grid:n with a whole number n of at least 2; got {at!r}.")
    axes = [axis.centres if axis.category else np.linspace(axis.low, axis.high, n) for axis in grid.axes]
    count = int(np.prod([len(axis) for axis in axes], dtype=float))
    if count > limits.POINTS:
        raise InputError(
            f"that is {count} test points, and the app plans for at most {limits.POINTS}. Take fewer: "
            "predictions elsewhere are free after the release."
        )
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
