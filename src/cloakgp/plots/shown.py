"""What pictures show of a plan or a release: its words, its predictions, and those inputs that are public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.data.chunks import spread_evenly
from cloakgp.files.labels import Labels
from cloakgp.model.gp import GaussianProcess
from cloakgp.plots.numbers import in_unit
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.release.showing import inputs_of, response

Predicted = Plan | Release
"""What has test points of its own."""


def plan_of(thing: Any) -> Any:
    """The plan of a release; a plan is its own."""
    return getattr(thing, "plan", thing)


# Inputs


def numeric_inputs(plan: Plan) -> list[int]:
    """Which columns of X are numbers, and no categories, with names of their levels or without."""
    columns = inputs_of(plan)
    coded = plan.rule.prior.category_columns(len(columns))
    return [place for place, one in enumerate(columns) if place not in coded and not one.levels]


def public_inputs(plan: Plan) -> tuple[FloatArray, str] | None:
    """Inputs to draw, and what they are called; those of a plan that holds no X stand for it.

    None where inputs are private.
    """
    if plan.grid is not None:
        return None
    if plan.X is not None:
        return some_inputs(plan), "training inputs (public)"
    words = "inducing inputs" if plan.alone else "cells of training inputs"
    return plan.shown_inputs, f"{'basis points' if plan.function else words} (public)"


def some_inputs(plan: Plan) -> FloatArray:
    """Three thousand rows of X, spread evenly, which an eye cannot tell from more; all if there are fewer."""
    return spread_evenly(plan.shown_inputs, 3000)


def middle_of(plan: Plan) -> FloatArray:
    """(D,) where inputs are held that are not drawn: medians, or first levels; the middle of a box."""
    if plan.grid is not None:
        return np.array(plan.grid.centres[plan.grid.spare])
    X, numeric = some_inputs(plan), numeric_inputs(plan)
    return np.where(np.isin(np.arange(X.shape[1]), numeric), np.median(X, axis=0), X.min(axis=0))


def expect_columns(inputs: FloatArray, columns: int, name: str) -> None:
    """Raise unless a picture can show these inputs."""
    if inputs.shape[1] != columns:
        raise ValueError(
            f"{name} draws inputs of {columns} column(s); this plan has {inputs.shape[1]}. For two there are "
            "plot_map or plot_noise_map, for any number plot_slices."
        )


def in_order(shown: Predicted) -> tuple[FloatArray, Any]:
    """The test inputs in increasing order, and that order."""
    if plan_of(shown).function is not None:
        raise ArgumentError(
            "plan", "must have test points", remedy="Of a whole function, draw plot_function."
        )
    expect_columns(shown.X_star, 1, "this picture")
    order = np.argsort(shown.X_star[:, 0], kind="stable")
    return shown.X_star[order, 0], order


# Predictions


def classes_of(release: Any) -> tuple[Any, ...]:
    """The classes of outcomes, where there are more than two."""
    return tuple(release.classes) if release.plan.outcome.curves > 1 else ()


def expect_one_curve(shown: Any) -> None:
    """Raise for a release of several classes, which has a curve for each."""
    if hasattr(shown, "plan") and classes_of(shown):
        raise ArgumentError(
            "release",
            "must have one curve",
            f"one for each of {len(shown.classes)} classes",
            "Draw the columns of release.predict_proba(X), or those of release.to_frame().",
        )


# Words


def predicted_words(plan: Plan, units: str = "") -> str:
    """What is predicted: a probability, a rate, or a value, with its unit."""
    what = plan.outcome.told_of(response(plan))
    return what if plan.outcome.percent else in_unit(what, units)


def source_words(labels: Labels) -> str:
    """Where the data are from, and of when."""
    parts = [f"Source: {labels.source}" if labels.source else "", labels.date]
    return ", ".join(part for part in parts if part)


def inducing_words(gp: GaussianProcess) -> str | None:
    """How many inducing inputs a model has, and of which kind; None for an exact GP."""
    if gp.inducing is None:
        return None
    number = gp.inducing if isinstance(gp.inducing, int) else len(gp.inducing)
    return f"{number} inducing inputs ({gp.approximation})"


def held_words(plan: Plan, held: Mapping[str, Any]) -> list[str]:
    """Where inputs are held, each as "kind held at flat"; dates as dates."""
    dates = {one.name: one.origin for one in inputs_of(plan) if one.origin}

    def cell(name: str, value: Any) -> str:
        if name in dates:
            return str(np.datetime64(dates[name], "D") + round(value))
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return [f"{name} held at {cell(name, value)}" for name, value in held.items()]


def title(plan: Plan) -> str:
    """The promise of a plan, and its approximation if it is one."""
    c = plan.certificate
    model = inducing_words(plan.gp) if plan.alone else None
    promise = f"({c.epsilon:g}, {c.delta:g})-DP, unit: {c.unit}"
    return promise if model is None else f"{promise}; {model}"
