"""Plan a release in stages: everything that can fail is found out here, before anything is paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks
from cloakgp.calibration import SIGMA_FLOOR
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, Message, Phrase
from cloakgp.measurements.lattice import NOISE_SCALES
from cloakgp.measurements.spread import spread_bits
from cloakgp.measurements.staged_certificate import certify_stages
from cloakgp.model.cover import cover
from cloakgp.plans.reconstruction import relative_weights
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.stages import Rule, Walk
from cloakgp.posterior import staging
from cloakgp.posterior.mixture import support_points
from cloakgp.rows.merging import distinct

if TYPE_CHECKING:
    from cloakgp.model.auto_gp import AutoGP

MOST_COLUMNS = 10
MOST_ROWS = 200_000
"""Distinct rows, for now."""
_SPARE = 8  # measurements beyond one for each test point, which a design may use


def make_staged_plan(
    model: AutoGP,
    X: FloatArray,
    X_star: Any,
    *,
    epsilon: float,
    delta: float,
    weights: Any,
    given: Sequence[Any],
) -> StagedPlan:
    """A plan, as :meth:`AutoGP.plan` makes it."""
    epsilon, delta = calibrate.promise(epsilon, delta)
    if X.shape[1] > MOST_COLUMNS:
        raise ArgumentError(
            "X",
            f"must have at most {MOST_COLUMNS} columns for a model that is learned",
            f"{X.shape[1]}",
            Message("Leave out columns that matter little, or ", Phrase.SET_MODEL, "."),
        )
    X_star = cover(X) if X_star is None else checks.matrix(X_star, "X_star", columns=X.shape[1])
    if weights is None:
        weights = np.ones(len(X_star))
    remedy = "To ignore a test point, leave it out of X_star."
    weights = relative_weights(checks.vector(weights, "weights", len(X_star), positive=True, remedy=remedy))
    inputs = distinct(X, 0.0)
    most_each = min(len(X_star), len(inputs)) + _SPARE
    # The number of stages depends on mu, which depends, hardly, on how many numbers they release.
    rough = calibrate.calibrate(epsilon, delta, n_measurements=most_each)
    schedule = staging.schedule(rough, len(X), model.stages)
    most = most_each * len(schedule.shares)
    mu = calibrate.calibrate(epsilon, delta, n_measurements=most)
    _check_headroom(len(X), mu, schedule.shares, epsilon)
    rule = Rule(
        prior=model.prior,
        bounds=model.bounds,
        X=X,
        X_star=X_star,
        weights=frozen(weights),
        support=support_points(inputs.X, model.inducing),
        schedule=schedule,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        most=most,
    )
    walk = Walk(rule)
    first = walk.next_stage(0)
    certificate = certify_stages(epsilon, delta, mu, len(X), most, schedule.shares)
    plan = StagedPlan(rule, first, certificate)
    plan.__dict__["start"] = walk.state  # made already
    return plan


def _check_headroom(n_rows: int, mu: float, shares: tuple[float, ...], epsilon: float) -> None:
    """Raise unless every stage's integers have room, whatever its matrix: nothing may fail once paid for."""
    for number, share in enumerate(shares):
        parts = [share * (1 - staging.SCALE_SHARE), share * staging.SCALE_SHARE] if number else [share]
        for part in parts:
            own = mu * math.sqrt(part)
            bits = min(spread_bits(n_rows, own), math.floor(61 - math.log2(n_rows + NOISE_SCALES / own)))
            if bits < 20 or 2.0 ** (bits - 1) / own < SIGMA_FLOOR:
                raise ValueError(
                    f"epsilon={epsilon:g} with {n_rows} rows leaves too few bits for exact noise; use a "
                    "smaller epsilon, or a larger one if it is tiny."
                )
