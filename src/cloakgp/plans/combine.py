"""Predict from several releases at once: of the same data, or of different people's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

import numpy as np

from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.measurements.lattice import IntArray, Measurement
from cloakgp.model.gp import GP
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.plans.custodians import AnyRelease, pooled
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedRelease
from cloakgp.posterior.conditioning import Posterior
from cloakgp.posterior.learning import Learned
from cloakgp.rows.columns import common


@overload
def combine(
    releases: Iterable[Release | FunctionRelease], *, same_data: Literal[True] = ..., model: None = ...
) -> Posterior: ...
@overload
def combine(
    releases: Iterable[AnyRelease], *, same_data: Literal[False], model: GP | Hyperprior | str | None = ...
) -> Posterior | Learned: ...
def combine(
    releases: Iterable[Any], *, same_data: bool = True, model: GP | Hyperprior | str | None = None
) -> Posterior | Learned:
    """Condition one model on several releases: free, like all post-processing.

    Parameters
    ----------
    releases : iterable of releases
        Of the same y at the same X, under the same model, and not in stages (a plan takes ``given=`` for
        that). What they spent adds up as it does anyway. With ``same_data=False``, of any kinds.
    same_data : bool
        False if each is of other people's outcomes, all about one f: see ``docs/custodians.md``. Inputs,
        bounds, promises and models may differ then.
    model : GP, Hyperprior or "learn", optional
        With ``same_data=False``, what all are conditioned on; with a hyperprior, a model is learned from all
        of them. If absent, the model that all have; learned, if one of them is.

    Returns
    -------
    Posterior or Learned
        With `predict`, `uncertainty` and `sample`. A mixture if the model is learned.
    """
    if not isinstance(releases, Iterable):
        raise ArgumentTypeError("releases", "must be a list of releases", type(releases).__name__)
    releases = list(releases)
    if not same_data:
        return pooled(releases, model)
    if model is not None:
        raise ArgumentError(
            "model",
            "is for releases of different data sets",
            remedy="Releases of the same data have one model; or say same_data=False.",
        )
    if not releases:
        raise ArgumentError("releases", "must hold at least one release")
    if not all(isinstance(release, (Release, FunctionRelease)) for release in releases):
        in_stages = any(isinstance(release, StagedRelease) for release in releases)
        remedy = (
            "Those in stages cannot be combined if they are of the same data: plan another one with given=. "
            "If each is about other people, say same_data=False."
            if in_stages
            else ""
        )
        raise ArgumentTypeError("releases", "must hold nothing but releases", remedy=remedy)
    first = releases[0].plan
    if len({isinstance(release.plan.measurement, Measurement) for release in releases}) > 1:
        raise ValueError(
            "releases: some hold their measurement as a matrix, others as a recipe; combine like with like."
        )
    shown = [_inputs(release.plan) for release in releases]
    if any(inputs is None for inputs in shown):
        raise ValueError("releases: one of them does not show X, which combining needs.")
    for i, release in enumerate(releases):
        if any(_same(release, other) for other in releases[:i]):
            raise ArgumentError("releases", "must be different; one is given twice, and would count twice")
        plan = release.plan
        same_noise = np.array_equal(np.asarray(plan.gp.noise), np.asarray(first.gp.noise))
        same_model = plan.gp.kernel == first.gp.kernel and same_noise
        same_inducing = (plan.gp.inducing is None) == (first.gp.inducing is None) and np.array_equal(
            np.asarray(plan.gp.inducing), np.asarray(first.gp.inducing)
        )
        same_model = same_model and same_inducing and plan.gp.approximation == first.gp.approximation
        if not _equal(shown[i], shown[0]):
            raise ArgumentError("releases", "must all be of the same data; these have different inputs X")
        if (plan.unit, plan.partition) != (first.unit, first.partition):
            raise ArgumentError(
                "releases",
                "must all protect the same: each row, or the same people with the same rows; these differ",
            )
        if not same_model or not _equal(*(_windows(one) for one in (plan, first))):
            raise ArgumentError(
                "releases",
                "must all have the same kernel, noise, mean, bounds and inducing inputs; these differ",
            )
    released = [(release.plan.measurement, release.z) for release in releases]
    return Posterior(first.gp, first.X, released, columns=common(r.plan.columns for r in releases))


def _same(one: Release | FunctionRelease, other: Release | FunctionRelease) -> bool:
    """Whether two releases hold the very same measurements, not only of the same data."""
    return np.array_equal(one.z, other.z) and np.array_equal(_numbers(one), _numbers(other))


def _numbers(release: Release | FunctionRelease) -> IntArray:
    measurement = release.plan.measurement
    return measurement.matrix if isinstance(measurement, Measurement) else measurement.recipe.factors


def _inputs(plan: Plan | FunctionPlan) -> Any:
    """What tells X: itself, or its digest."""
    return plan.X if isinstance(plan.measurement, Measurement) else plan.measurement.digest


def _windows(plan: Plan | FunctionPlan) -> Any:
    """The bounds and the prior mean, at each row where they differ from row to row."""
    windows = plan.gp.windows
    return np.array([*plan.gp.limits, plan.gp.level]) if windows is None else windows


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, type(other)) and one == other
    return np.array_equal(one, other)
