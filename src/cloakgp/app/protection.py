"""Who is protected: what of a table is private then, and the public box that stands for private inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cloakgp.app import limits, models
from cloakgp.errors import InputError
from cloakgp.kernels.words import parse
from cloakgp.rows.grid import Grid
from cloakgp.workflow import boxes, points
from cloakgp.workflow.row_settings import RowSettings


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


def as_rows(asked: models.Settings, size: int) -> RowSettings:
    """The library's own settings for whole rows, checked."""
    at = asked.at if isinstance(asked.at, str) else points.as_matrix(asked.at.points)
    known: dict[str, Any] = {}
    if asked.kernel is not None:
        known = {"kernel": parse(asked.kernel), "noise": asked.noise, "mean": asked.mean}
    grid = grid_of(asked)
    wanted = RowSettings(
        grid=grid,
        output=asked.output,
        bounds=(asked.bounds[0], asked.bounds[1]),
        epsilon=asked.epsilon,
        delta=asked.delta,
        size=size,
        people=asked.people,
        max_rows=asked.max_rows,
        at=at,
        **known,
    )
    where = boxes.over(grid, at) if isinstance(at, str) else at
    points.check_number("at", len(where), limits.POINTS)
    return replace(wanted, at=where)
