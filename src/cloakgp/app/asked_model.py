"""What settings ask for, as the library has it: the model, and where predictions are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.app import limits, models
from cloakgp.app.protection import grid_of
from cloakgp.app.public_inputs import PublicInputs, as_points
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.kernels.words import parse
from cloakgp.model.auto_gp import AutoGP
from cloakgp.model.gp import GP
from cloakgp.model.outcome import REAL
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.workflow import boxes, points


def is_staged(asked: models.Settings) -> bool:
    """Whether the release is made in stages, be it one, so that its error can be forecast and not more."""
    return asked.model == "learn" or asked.hides_inputs or asked.outcome != REAL


def promise_of(asked: models.Settings) -> dict[str, Any]:
    """As the library's functions take it."""
    return {"epsilon": asked.epsilon, "delta": asked.delta}


def described_gp(asked: models.Settings, share: float = 1.0) -> GP:
    """A model that somebody describes; its noise variance times `share`."""
    assert asked.kernel is not None
    noise = None if asked.noise is None else asked.noise * share
    return GP(parse(asked.kernel), noise, mean=asked.mean, inducing=asked.inducing, **_outcomes_of(asked))


def staged_gp(asked: models.Settings, support: FloatArray | None = None) -> AutoGP | GP:
    """The model of a release in stages: described, or learned, with inputs that stand for many rows."""
    if asked.kernel is not None:
        return described_gp(asked)
    return AutoGP(inducing=support, **_outcomes_of(asked))


def _outcomes_of(asked: models.Settings) -> dict[str, Any]:
    """What outcomes are, as models take it."""
    classes = None if asked.classes is None else tuple(asked.classes)
    return {"bounds": (asked.bounds[0], asked.bounds[1]), "outcome": asked.outcome, "classes": classes}


def points_of(asked: models.Settings, found: PublicInputs) -> FloatArray:
    """Where predictions are wanted, if that is not too many points."""
    X = found.complete
    if isinstance(asked.at, str):
        where = points.grid(asked.at, X, found.columns)
    else:
        where = points.as_matrix(as_points(found.columns, asked.at.points, X.shape[1]))
    most = limits.POINTS if len(X) <= limits.MANY_ROWS else limits.POINTS_OF_MANY_ROWS
    if len(where) > most:
        raise InputError(
            f"that is {len(where)} test points, and the app plans for at most {most} with {len(X)} rows. "
            "Take fewer: predictions elsewhere are free after the release."
        )
    return where


def plan_of_rows(asked: models.Settings, size: int) -> RowsPlan:
    """The plan for private inputs: from the box and a number, and from nothing else of the table."""
    grid = grid_of(asked)
    if isinstance(asked.at, str):
        where = boxes.over(grid, asked.at)
    else:
        where = np.asarray(as_points(grid.columns, asked.at.points, len(grid.axes)))
    points.check_number("at", len(where), limits.POINTS)
    promise = promise_of(asked) | {"max_rows": asked.max_rows, "ids": asked.ids}
    return staged_gp(asked).plan_rows(grid, size, X_star=where, **promise)
