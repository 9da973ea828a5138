"""Other models for what was released: free, for whoever has the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.merging import distinct
from cloakgp.data.people import for_people
from cloakgp.measure.measurement import Measurement
from cloakgp.model.auto_gp import LearnedGP
from cloakgp.model.build import downweighted
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.hyperprior import Hyperprior, Known
from cloakgp.model.windows import RowMeans
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.learning import Learned, learn
from cloakgp.release.reader import conditioned, learned_from
from cloakgp.release.stages import Rule

_COMPARED = 2**25
"""Entries of the kernel matrix up to which a model check has other models to compare with."""


def alternatives(release: Any) -> Callable[[GaussianProcess], Posterior] | None:
    """What gives the posterior of another model, where that is not too much work."""
    plan, gp, inputs = release.plan, release.plan.gp, release.plan.inputs
    wide = len(inputs) * (len(inputs) if gp.inducing is None else len(gp.inducing))
    if not 0 < wide <= _COMPARED:
        return None
    released = [(plan.measurement, release.z)]

    def given(other: GaussianProcess) -> Posterior:
        return Posterior(other, plan.X, released, inputs=replace(inputs, noise=other.noise_of(inputs.groups)))

    return given


def remodelled(release: Any, gp: Any) -> Posterior | Learned:
    """Another GP given what was released: see :meth:`Release.remodel`."""
    if not isinstance(gp, GaussianProcess):
        raise ArgumentTypeError("gp", "must be a cloakgp.GP", type(gp).__name__)
    if release.plan.alone:
        return _one_stage(release, gp)
    if not isinstance(gp.noise, float) or gp.downweight is not None:  # which would be one per row
        raise ArgumentError("gp", "must have one noise variance, not one per row, and no downweight")
    rule = release.rule
    outcome = rule.outcome
    if gp.outcome != outcome.name:
        raise ArgumentError("gp", f"must be of {outcome.plural}, as the release is", gp.outcome)
    if gp.classes and gp.classes != outcome.classes:
        expected = f"must have the classes of the release, {outcome.classes}"
        raise ArgumentError("gp", expected, f"{gp.classes}")
    gp = gp.for_columns(rule.columns).with_inducing(rule.inputs.X)
    if rule.outcome.link is not None:
        known = replace(rule, prior=Known(gp))
        return learned_from(known, release.stages, (Known(gp),), np.ones(1))
    return conditioned(gp, rule, rule.all_stages(release.stages))


def _one_stage(release: Any, gp: GaussianProcess) -> Posterior:
    """The same of one stage that stands alone, for a model that may say something of each row."""
    plan, measurement = release.plan, release.plan.measurement
    _check_shown(plan)
    if plan.cells is not None:
        return _of_cells(release, gp)
    gp.check_rows(len(plan.X))
    gp = gp.for_columns(plan.columns).with_inducing(plan.X).at_rows(plan.X)
    if measurement.people is not None:
        gp = replace(gp, noise=for_people(gp.noise, measurement.people, plan.within))
    gp = downweighted(gp, distinct(plan.X, gp.noise))
    if not isinstance(gp.noise, float) or not isinstance(gp.mean, float):  # joined rows may differ
        measurement = _by_row(measurement)
    return Posterior(gp, plan.X, [(measurement, release.z)], columns=plan.columns)


def _of_cells(release: Any, gp: GaussianProcess) -> Posterior:
    """Where rows are in cells, what a model says of each is asked where the cells are."""
    plan, inputs = release.plan, release.plan.inputs
    given = (gp.noise, *gp.bounds, gp.mean.rows if isinstance(gp.mean, RowMeans) else gp.mean)
    if any(isinstance(one, np.ndarray) for one in given):
        expected = "must have numbers or functions of X, since the release's rows are in cells"
        raise ArgumentError("gp", expected, "something for each row")
    gp = gp.for_columns(plan.columns).with_inducing(inputs.X).at_rows(inputs.X)
    gp = replace(gp, noise=gp.noise * plan.factor)
    gp = downweighted(gp, replace(inputs, noise=gp.noise))
    inputs = replace(inputs, noise=gp.noise)
    return Posterior(gp, inputs.X, [(plan.measurement, release.z)], inputs=inputs, columns=plan.columns)


def learned_anew(release: Any, prior: Hyperprior | None) -> Learned:
    """What another hyperprior learns from what was released: see :meth:`Release.learn`."""
    plan = rule = release.plan
    if plan.alone:
        return _learned_from_one_stage(release, prior)
    if prior is None:
        prior = Hyperprior(categories=() if rule.columns is None else rule.columns.categories)
    if rule.outcome.link is not None:
        outcome = rule.outcome
        prior = LearnedGP(rule.bounds, outcome=outcome.name, classes=outcome.classes, prior=prior).prior
    session = replace(rule, prior=prior).session()
    for stage in release.stages:
        session.learn(stage)
    return learned_from(session.rule, release.stages, session.state.settings, session.state.weights)


def _learned_from_one_stage(release: Any, prior: Hyperprior | None) -> Learned:
    """From bounds and the inputs' ranges alone, whatever the model that was known."""
    plan = release.plan
    _check_shown(plan)
    gp, inputs, measured = plan.gp, plan.inputs, (plan.measurement, release.z)
    windows, factor = gp.windows_of(inputs.groups), plan.factor
    if windows is None or isinstance(gp.mean, float):
        return learn(gp.limits, inputs, measured, prior, factor=factor, columns=plan.columns)
    about = windows[:, :2] - windows[:, 2:]  # what is learned is how outcomes differ from the mean
    bounds = float(about[:, 0].min()), float(about[:, 1].max())
    return learn(bounds, inputs, measured, prior, gp.mean, factor, plan.columns)


def _check_shown(plan: Rule) -> None:
    if not len(plan.inputs):
        raise ValueError("another model needs the inputs X and the matrix, which this release does not show.")


def _by_row(measurement: Measurement) -> Measurement:
    """The same with a column for each row of y."""
    if measurement.groups is None:
        return measurement
    labels = measurement.groups.labels
    statistic = measurement.statistic.at(labels)
    return replace(measurement, matrix=measurement.matrix[:, labels], statistic=statistic, groups=None)
