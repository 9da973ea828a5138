"""Earlier releases of the same outcomes, taken into account by a new plan: what they answered is public."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.measurements.lattice import Measurement
from cloakgp.measurements.unit import OUTCOME, Unit
from cloakgp.model.outcome import NO_YES, REAL, YES_NO, Label
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.predictions import Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.stages import Given, Promise, Stage, StagePlan
from cloakgp.posterior.conditioning import Line
from cloakgp.rows.merging import Groups


def taken(
    releases: Any,
    X: FloatArray,
    groups: Groups | None,
    unit: Unit = OUTCOME,
    partition: str = "",
    outcome: str = REAL,
    classes: tuple[Label, ...] = (),
) -> tuple[Given, ...]:
    """What each release promised and answered; or an error that says why it cannot be taken into account."""
    if isinstance(releases, (Release, StagedRelease, FunctionRelease)) or not isinstance(releases, Iterable):
        raise ArgumentTypeError("given", "must be a list of releases", type(releases).__name__)
    found: list[Given] = []
    for number, release in enumerate(releases):
        name = f"given[{number}]"
        if isinstance(release, FunctionRelease):
            raise ArgumentError(name, "must be a release of predictions", "one of a whole function")
        if not isinstance(release, (Release, StagedRelease)):
            raise ArgumentTypeError(name, "must be a release", type(release).__name__)
        if release.certificate.insecure:
            raise ArgumentError(
                name,
                "must be a private release",
                "an INSECURE one",
                "Its noise came from a seed, so that what follows from it would not be private either.",
            )
        if release.certificate.unit != unit.name:
            raise ArgumentError(name, f"must protect the same unit, {unit.name}", release.certificate.unit)
        own = release.plan.rule.outcome if isinstance(release, StagedRelease) else outcome
        if own != outcome:  # what its windows do to outcomes is told in units of another f
            raise ArgumentError(name, f"must be of {outcome} outcomes, as the plan is", own)
        if (
            isinstance(release, StagedRelease)
            and outcome == YES_NO
            and release.classes != (classes or NO_YES)
        ):
            raise ArgumentError(name, f"must be of {classes or NO_YES}, as the plan is", f"{release.classes}")
        if release.plan.partition != partition:
            raise ArgumentError(name, "must be of the same people, with the same rows each; its are others")
        if release.plan.X is None or not np.array_equal(np.asarray(release.plan.X), np.asarray(X)):
            raise ArgumentError(name, "must be of the same rows; its X is another one, or not shown")
        one = _staged(release) if isinstance(release, StagedRelease) else [_plain(release, name)]
        if any(_same_answers(one[-1], other) for other in found):
            raise ArgumentError("given", "must hold different releases; one is there twice")
        _check_groups(one, groups, name)
        found += [given for given in one if not any(_same_answers(given, other) for other in found)]
    if len({given.dataset for given in found if given.dataset is not None}) > 1:
        raise ArgumentError("given", "must be of one data set; different ones paid for these")
    return tuple(found)


def _plain(release: Release, name: str) -> Given:
    m = release.plan.measurement
    if not isinstance(m, Measurement):
        raise ArgumentError(
            name,
            "must hold its measurement as a matrix",
            "a recipe, for many rows",
            "Use combine, which predicts from several such releases.",
        )
    promise = Promise(m.epsilon, m.delta, m.mu(), m.n_measurements, (1.0,))
    line = None
    if isinstance(m.lower, np.ndarray):  # outcomes are taken to lie within windows that were given
        q, U = m.matrix.shape
        line = Line(np.ones(U), np.zeros(q), np.zeros((q, q)))
    stage = Stage(StagePlan(m, None, line), release.z)
    bounds = (float(np.min(m.lower)), float(np.max(m.upper)))
    return Given(promise, bounds, (stage,), None if release.receipt is None else release.receipt.dataset)


def _staged(release: StagedRelease) -> list[Given]:
    """What a release in stages answered, after what had been given to it."""
    rule = release.plan.rule
    dataset = None if release.receipt is None else release.receipt.dataset
    return [*rule.given, Given(rule.promise, rule.bounds, release.stages, dataset)]


def _same_answers(one: Given, other: Given) -> bool:
    return len(one.stages) == len(other.stages) and all(
        np.array_equal(a.answer, b.answer)
        and np.array_equal(a.plan.measurement.matrix, b.plan.measurement.matrix)
        for a, b in zip(one.stages, other.stages, strict=True)
    )


def _check_groups(taken: list[Given], groups: Groups | None, name: str) -> None:
    for given in taken:
        for stage in given.stages:
            own = stage.plan.measurement.groups
            same = own is groups or (
                own is not None and groups is not None and np.array_equal(own.labels, groups.labels)
            )
            if not same:
                raise ArgumentError(
                    name,
                    "must treat the same rows alike",
                    "a release that does not",
                    "Those with equal inputs are, and of very many those in one cell, by AutoGP alone.",
                )
