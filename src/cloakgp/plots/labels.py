"""Words on pictures: the promise, and what axes are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cloakgp.files.labels import Labels
from cloakgp.model.gp import GP
from cloakgp.model.outcome import CLASSES, COUNT, REAL, YES_NO
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots.number_words import in_unit
from cloakgp.rows.columns import Column, Columns

NAMELESS = ("y", "outcome")
"""What outcomes are called that have no name."""


def plan_of(thing: Any) -> Any:
    """The plan of a release; a plan is its own."""
    return getattr(thing, "plan", thing)


def columns_of(plan: AnyPlan) -> Columns | None:
    """Names of the inputs, levels and dates: of the table, or of the box where inputs are private."""
    return plan.grid.columns if isinstance(plan, RowsPlan) else plan.columns


def column_of(plan: AnyPlan, place: int) -> Column | None:
    """What is known of one column of X."""
    columns = columns_of(plan)
    return None if columns is None else columns.inputs[place]


def axis_label(plan: AnyPlan, column: int) -> str:
    """What a column of X is called on an axis."""
    known = column_of(plan, column)
    if known is not None:
        return known.label
    only = np.shape(plan.shown_inputs)[1] == 1
    return "x" if only else f"{('first', 'second')[column]} column of X"


def response(plan: AnyPlan) -> str:
    """What is predicted, on an axis."""
    return "y" if plan.columns is None or not plan.columns.response else plan.columns.response


def predicted_words(plan: AnyPlan, units: str = "", name: str | None = None) -> str:
    """What is predicted: a probability, a rate, or a value, with its unit."""
    name, outcome = name or response(plan), outcome_of(plan)
    if outcome == YES_NO:
        return f"probability of {yes_word(plan, name)}"
    if outcome == CLASSES:
        return "probability" if name in NAMELESS else f"probability of each {name}"
    return in_unit(f"rate of {name}" if outcome == COUNT else name, units)


def numeric_inputs(plan: AnyPlan) -> list[int]:
    """Which columns of X are numbers, and no categories, with names of their levels or without."""
    width = int(plan.shown_inputs.shape[1])
    coded = plan.rule.prior.category_columns(width) if isinstance(plan, StagedPlan) else ()
    return [place for place in range(width) if place not in coded and not levels_of(plan, place)]


def yes_word(plan: AnyPlan, name: str) -> str:
    """What a yes is called: as its class is, or the outcome; or yes."""
    classes = plan.rule.classes if isinstance(plan, StagedPlan) else ()
    return str(classes[1]) if classes else "yes" if name in NAMELESS else name


def classes_of(release: Any) -> tuple[Any, ...]:
    """The classes of outcomes, where there are more than two."""
    return tuple(release.classes) if outcome_of(release.plan) == CLASSES else ()


def levels_of(plan: AnyPlan, place: int) -> tuple[Any, ...]:
    """The levels of a column of X; none where it is no category."""
    column = column_of(plan, place)
    return () if column is None else column.levels


def outcome_of(plan: AnyPlan) -> str:
    """What outcomes are: real numbers, yes or no, or counts."""
    return plan.rule.outcome if isinstance(plan, StagedPlan) else REAL


def source_words(labels: Labels) -> str:
    """Where the data are from, and of when."""
    parts = [f"Source: {labels.source}" if labels.source else "", labels.date]
    return ", ".join(part for part in parts if part)


def inducing_words(gp: GP) -> str | None:
    """How many inducing inputs a model has, and of which kind; None for an exact GP."""
    if gp.inducing is None:
        return None
    number = gp.inducing if isinstance(gp.inducing, int) else len(gp.inducing)
    return f"{number} inducing inputs ({gp.approximation})"


def held_words(plan: AnyPlan, held: Mapping[str, Any]) -> list[str]:
    """Where inputs are held, each as "kind held at flat"; dates as dates."""
    columns = columns_of(plan)
    dates = {} if columns is None else {one.name: one.origin for one in columns.inputs if one.origin}
    return [f"{name} held at {_cell(value, dates.get(name))}" for name, value in held.items()]


def _cell(value: Any, origin: str | None) -> str:
    if origin is not None:
        return str(np.datetime64(origin, "D") + round(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def title(plan: AnyPlan) -> str:
    """The promise of a plan, and its approximation if it is one."""
    c = plan.certificate
    model = None if isinstance(plan, StagedPlan) else inducing_words(plan.gp)
    promise = f"({c.epsilon:g}, {c.delta:g})-DP, unit: {c.unit}"
    return promise if model is None else f"{promise}; {model}"
