"""A rough figure within a second, while the whole is worked out: of some rows, which stand for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloakgp.app import models
from cloakgp.app.asked_model import plan_of_rows, points_of, promise_of, staged_gp
from cloakgp.app.protection import grid_of
from cloakgp.app.public_inputs import PublicInputs
from cloakgp.checks import FloatArray
from cloakgp.plans.staged import StagedPlan
from cloakgp.rows.chunks import spread_evenly

ROWS, POINTS, CELLS = 120, 60, 100
"""Of which a rough figure is made."""
_QUICK_ROWS, _QUICK_POINTS = 400, 150  # of which the whole takes no longer

SomeRows = Callable[[int], tuple[FloatArray, dict[str, Any]]]


def rough_learned(asked: models.Settings, found: PublicInputs, some_rows: SomeRows) -> StagedPlan | None:
    """A plan of some rows at some test points, whose noise is that of all; None if the whole is quick."""
    where, n = points_of(asked, found), len(found.complete)
    if asked.given or (n <= _QUICK_ROWS and len(where) <= _QUICK_POINTS):
        return None
    some, of = some_rows(ROWS)
    copy, row = np.divmod(np.arange(n), len(some))  # as many rows as there are: equal ones are taken together
    if "people" in of:
        labels = of["people"]
        of["people"] = labels[row] + (labels.max() + 1) * copy  # other people
    columns = found.named(asked.output, asked.people)
    gp = staged_gp(asked.model_copy(update={"inducing": None}))
    rough: StagedPlan = gp.plan(
        some[row], X_star=spread_evenly(where, POINTS), given=(), columns=columns, **promise_of(asked), **of
    )
    return rough


def rough_rows(asked: models.Settings, size: int) -> StagedPlan | None:
    """The same of whole rows: a coarser box; None if the box is coarse already."""
    assert asked.box is not None
    cells = len(grid_of(asked))
    ranges = [name for name in asked.inputs if isinstance(asked.box[name], models.Range)]
    if cells <= CELLS or not ranges:
        return None
    fewer = (CELLS / cells) ** (1 / len(ranges))
    box = {
        name: each.model_copy(update={"cells": max(2, int(each.cells * fewer))})
        if isinstance(each, models.Range)
        else each
        for name, each in asked.box.items()
    }
    per_axis = max(2, int(POINTS ** (1 / len(asked.inputs))))
    return plan_of_rows(asked.model_copy(update={"box": box, "at": f"grid:{per_axis}"}), size)
