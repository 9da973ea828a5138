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
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.support import support_points
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
    """The same of one stage that stands alone, for a model that may say something of each row.

    Where rows are in cells, what it says is asked where the cells are.
    """
    plan, measurement, inputs = release.plan, release.plan.measurement, None
    _check_shown(plan)
    in_cells, X = plan.cells is not None, plan.X if plan.cells is None else plan.inputs.X
    given = (gp.noise, *gp.bounds, gp.mean.rows if isinstance(gp.mean, RowMeans) else gp.mean)
    if in_cells and any(isinstance(one, np.ndarray) for one in given):
        expected = "must have numbers or functions of X, since the release's rows are in cells"
        raise ArgumentError("gp", expected, "something for each row")
    gp.check_rows(len(X))
    gp = gp.for_columns(plan.columns).with_inducing(X).at_rows(X)
    if in_cells:
        gp = replace(gp, noise=gp.noise * plan.factor)
        inputs = replace(plan.inputs, noise=gp.noise)
    elif measurement.people is not None:
        gp = replace(gp, noise=for_people(gp.noise, measurement.people, plan.within))
    gp = downweighted(gp, inputs or distinct(X, gp.noise))
    if inputs is not None:
        inputs = replace(inputs, noise=gp.noise)
    elif not isinstance(gp.noise, float) or not isinstance(gp.mean, float):  # joined rows may differ
        measurement = _by_row(measurement)
    return Posterior(gp, X, [(measurement, release.z)], inputs=inputs, columns=plan.columns)


def learned_anew(release: Any, prior: Hyperprior | None) -> Learned:
    """What another hyperprior learns from what was released: see :meth:`Release.learn`."""
    plan, outcome = release.plan, release.plan.outcome
    _check_shown(plan)
    support = plan.support
    if prior is None:
        prior = Hyperprior(categories=() if plan.columns is None else plan.columns.categories)
    elif not isinstance(prior, Hyperprior):
        raise ArgumentTypeError("prior", "must be a cloakgp.Hyperprior", type(prior).__name__)
    if outcome.link is not None:
        prior = LearnedGP(plan.bounds, outcome=outcome.name, classes=outcome.classes, prior=prior).prior
    if plan.alone:  # from bounds and the inputs' ranges alone, whatever the model that was known
        if not isinstance(plan.gp.mean, float):
            remedy = "The models that are learned have one. Compare models of your own with evidence."
            raise ArgumentError("mean", "must be one number for a model to be learned", remedy=remedy)
        support = support_points(plan.inputs.X, None, prior.category_columns(plan.inputs.X.shape[1]))
    session = replace(plan, prior=prior, support=support).session()
    for stage in release.stages:
        session.learn(stage)
    return learned_from(session.rule, release.stages, session.state.settings, session.state.weights)


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
