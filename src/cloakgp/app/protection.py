"""Who is protected: what of a table is private then, and the public box that stands for private inputs."""

from __future__ import annotations

from typing import Any

from cloakgp.app import limits, models
from cloakgp.errors import InputError
from cloakgp.ledger.units import Reads
from cloakgp.rows.grid import Grid
from cloakgp.rows.people import ALIKE
from cloakgp.workflow.spending import Request


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


def request_of(settings: dict[str, Any]) -> Request:
    """What a plan's settings ask of the private step."""
    hidden, at = hides_inputs(settings), settings.get("at")
    private = (*settings["inputs"], settings["output"]) if hidden else (settings["output"],)
    reads = Reads(private, () if hidden else tuple(settings["inputs"]), settings.get("people"))
    lists = (f"{len(at['points'])} test points",) if isinstance(at, dict) else ()
    ids = settings.get("ids", ALIKE)
    return Request(reads, settings["epsilon"], settings["delta"], hidden, lists, ids)


def written_as(settings: dict[str, Any]) -> tuple[list[str], models.Written]:
    """The columns by which it is found out how a table is written, and what was said of that."""
    public = [] if hides_inputs(settings) else settings["inputs"]
    said = {name: settings.get(name) for name in ("decimal", "encoding")}
    return public, models.Written.model_validate(said)


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
