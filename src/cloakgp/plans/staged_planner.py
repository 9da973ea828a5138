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
from cloakgp.files.staged_schema import MOST_IN_ALL, WIDEST
from cloakgp.measurements.spread import spread_bits
from cloakgp.measurements.staged_certificate import certify_stages
from cloakgp.measurements.unit import OUTCOME, PERSON
from cloakgp.model.cover import cover
from cloakgp.model.hyperprior import Hyperprior, Known
from cloakgp.model.outcome import CLASSES, Label
from cloakgp.plans.given import taken
from cloakgp.plans.question import Question, table_options
from cloakgp.plans.reconstruction import relative_weights
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.stages import Promise, Rule, Walk
from cloakgp.posterior import staging
from cloakgp.posterior.support import support_points
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.cells import MOST_CELLS, make_cells
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.inputs import PublicInputs, as_points
from cloakgp.rows.people import ALIKE, as_within, distinct_rows
from cloakgp.rows.sources import is_lazy

if TYPE_CHECKING:
    from cloakgp.model.auto_gp import AutoGP
    from cloakgp.model.gp import GP

MOST_COLUMNS = 10
MOST_SORTED = 10**6
"""Rows among which equal ones are looked for; more go into cells at once."""
_COVERED = 20_000  # rows that default test points cover
_SPARE = 8  # measurements beyond one for each test point, which a design may use


def make_staged_plan(
    model: AutoGP,
    inputs: PublicInputs,
    X_star: Any,
    *,
    epsilon: float,
    delta: float | None,
    weights: Any,
    given: Sequence[Any],
    within: float = 1.0,
) -> StagedPlan:
    """A plan, as :meth:`AutoGP.plan` makes it."""
    X, columns = inputs.X, inputs.columns
    if X.shape[1] > MOST_COLUMNS:
        raise ArgumentError(
            "X",
            f"must have at most {MOST_COLUMNS} columns for a model that is learned",
            f"{X.shape[1]}",
            Message("Leave out columns that matter little, or ", Phrase.SET_MODEL, "."),
        )
    shares, kappa = staging.schedule(model.stages, model.outcome)
    return _planned(
        model,
        {},
        model.prior_for(columns, X.shape[1]),
        model.bounds,
        model.inducing,
        inputs,
        X_star,
        weights,
        given,
        epsilon,
        delta,
        shares,
        kappa,
        within,
        model.outcome,
        model.classes,
    )


def make_given_plan(
    model: GP,
    gp: GP,
    inputs: PublicInputs,
    X_star: Any,
    *,
    epsilon: float,
    delta: float | None,
    weights: Any,
    given: Sequence[Any],
    windows: float | None,
    within: float = 1.0,
) -> StagedPlan:
    """A plan of one stage for a model that is known, after earlier releases, as :meth:`GP.plan` makes it.

    `gp` is the model with its inducing inputs chosen.
    """
    bounds = gp.one_pair("a plan with given")
    if not isinstance(gp.noise, float) or gp.downweight is not None:
        raise ArgumentError("given", "needs a model with one noise variance, not one per row")
    if windows is not None:
        remedy = "It is in standard deviations; 2 is a careful choice."
        windows = checks.positive(windows, "windows", remedy)
        if not windows < WIDEST:
            raise ArgumentError("windows", f"must be below {WIDEST:g}", repr(windows), remedy)
    return _planned(
        model,
        {"windows": windows},
        Known(gp),
        bounds,
        gp.inducing,
        inputs,
        X_star,
        weights,
        given,
        epsilon,
        delta,
        (1.0,),
        windows,
        within,
        gp.outcome,
        gp.classes,
    )


def _planned(
    model: AutoGP | GP,
    options: dict[str, Any],
    prior: Hyperprior | Known,
    bounds: tuple[float, float],
    inducing: Any,
    table: PublicInputs,
    X_star: Any,
    weights: Any,
    given: Sequence[Any],
    epsilon: float,
    delta: float | None,
    shares: tuple[float, ...],
    kappa: float | None,
    within: float,
    outcome: str,
    classes: tuple[Label, ...],
) -> StagedPlan:
    X, columns = table.X, table.columns
    categories = prior.category_columns(X.shape[1])
    if X_star is not None:
        X_star = as_points(X_star, "X_star", X.shape[1], columns)
    options |= {"X_star": X_star, "weights": weights}
    if X_star is None:
        X_star = points_covering(X, categories)
    if weights is None:
        weights = np.ones(len(X_star))
    remedy = "To ignore a test point, leave it out of X_star."
    weights = relative_weights(checks.vector(weights, "weights", len(X_star), positive=True, remedy=remedy))
    cells, inputs = None, None
    shared = table.shared(len(X))
    epsilon, delta = calibrate.promise(epsilon, delta, len(X) if shared is None else shared.n_people)
    within = as_within(within)
    if not is_lazy(X) and len(X) <= MOST_SORTED:
        inputs = distinct_rows(X, shared)
    if inputs is None or len(inputs) > MOST_CELLS:
        cells = make_cells(X, shared, categories)
        inputs = cells.inputs
    curves = len(classes) if outcome == CLASSES else 1
    most = most_numbers(len(X_star), len(inputs), len(shares), curves)
    mu = calibrate.calibrate(epsilon, delta, n_measurements=most)
    unit = OUTCOME if shared is None else PERSON
    partition = "" if shared is None else shared.digest
    moved = (1 if shared is None else shared.most_rows) * (1.0 if curves == 1 else math.sqrt(2))
    _check_headroom(len(X), mu, shares, epsilon, moved)
    if curves > 1 and tuple(given):
        raise ArgumentError(
            "given", "must be left out for classes", remedy="Plan without, and pay for all of it."
        )
    earlier = taken(given, X, inputs.groups, unit, partition, outcome, classes)
    in_all = sum(len(one.stages) for one in earlier) + len(shares)
    if in_all > MOST_IN_ALL:
        raise ArgumentError(
            "given",
            f"must have no more than {MOST_IN_ALL} stages in all, with those to come: a file holds no more",
            f"{in_all}",
        )
    rule = Rule(
        prior=prior,
        bounds=bounds,
        X=X,
        X_star=X_star,
        weights=frozen(weights),
        support=support_points(inputs.X, inducing, categories),
        promise=Promise(epsilon, delta, mu, most, shares),
        kappa=kappa,
        given=earlier,
        cells=cells,
        people=shared,
        within=within,
        partition=partition,
        outcome=outcome,
        classes=classes,
        columns=columns,
        rows=table.rows,
    )
    with one_blas_thread():
        walk = Walk(rule)
        state, first = walk.state, walk.next_stage(0)
    before = tuple((given.promise.epsilon, given.promise.delta) for given in rule.given)
    ids = ALIKE if shared is None else shared.ids
    certificate = certify_stages(epsilon, delta, mu, len(X), most, shares, before, unit, ids)
    options |= {"given": tuple(given) or None, "epsilon": epsilon, "delta": delta}
    options |= table_options(shared, within, columns, table.rows)
    plan = StagedPlan(rule, first, certificate, Question(model, "plan", options))
    plan.__dict__["start"] = state  # made already
    return plan


def most_numbers(test_points: int, inputs: int, stages: int, curves: int = 1) -> int:
    """At most how many numbers are released, whatever the designs will be; `curves` are classes."""
    return (min(test_points, inputs) + _SPARE) * stages * curves


def _check_headroom(
    n_rows: int, mu: float, shares: tuple[float, ...], epsilon: float, most_rows: float
) -> None:
    """Raise unless every stage's integers have room, whatever its matrix: nothing may fail once paid for.

    A person with k rows moves a stage's numbers by k columns at most, and by a k-th of one at least; of
    several classes, by the root of 2 times that.
    """
    for number, share in enumerate(shares):
        parts = [share * (1 - staging.SCALE_SHARE), share * staging.SCALE_SHARE] if number else [share]
        for part in parts:
            own = mu * math.sqrt(part)
            bits = spread_bits(n_rows, own / most_rows)
            if bits < 20 or 2.0 ** (bits - 1) / own / most_rows < SIGMA_FLOOR:
                raise ValueError(
                    f"epsilon={epsilon:g} with {n_rows} rows leaves too few bits for exact noise; use a "
                    "smaller epsilon, or a larger one if it is tiny."
                )


def points_covering(X: Any, categories: Sequence[int] = ()) -> FloatArray:
    """Test points, if nobody names others: such that cover X and its surroundings."""
    return cover(spread_evenly(X, _COVERED), categories=categories)
