"""Plan a release of whole rows: from a grid and a number, and from nothing else of the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import calibration as calibrate
from cloakgp import checks
from cloakgp.checks import frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.measurements.staged_certificate import certify_stages
from cloakgp.measurements.whole_rows import Population, has_room
from cloakgp.model.hyperprior import Hyperprior, Known
from cloakgp.model.outcome import CLASSES
from cloakgp.plans.question import Question
from cloakgp.plans.reconstruction import relative_weights
from cloakgp.plans.row_stages import RowRule
from cloakgp.plans.staged_planner import MOST_COLUMNS, most_numbers
from cloakgp.plans.stages import Promise
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.posterior import staging
from cloakgp.posterior.density import MOST_WANTED
from cloakgp.posterior.support import support_points
from cloakgp.rows.blas import one_blas_thread
from cloakgp.rows.grid import Grid

if TYPE_CHECKING:
    from cloakgp.model.auto_gp import AutoGP
    from cloakgp.model.gp import GP

COUNT_SHARE = 0.2
"""Of mu squared, for the counts."""
_MOST = 2**40


def make_rows_plan(
    model: AutoGP,
    grid: Grid,
    n: int,
    X_star: Any,
    *,
    epsilon: float,
    delta: float | None,
    weights: Any,
    max_rows: int | None,
    ids: str,
) -> RowsPlan:
    """A plan for a model that is learned, as :meth:`AutoGP.plan_rows` makes it."""
    _check_grid(grid)
    if len(grid.axes) > MOST_COLUMNS:
        raise ArgumentError("grid", f"must have at most {MOST_COLUMNS} inputs", str(len(grid.axes)))
    prior = replace(model.prior_for(grid.columns, len(grid.axes)), categories=grid.columns.categories)
    asked = epsilon, delta, weights, max_rows, ids
    return _planned(prior, model.bounds, model.inducing, grid, n, X_star, *asked, model.stages, model)


def make_known_rows_plan(
    gp: GP,
    grid: Grid,
    n: int,
    X_star: Any,
    *,
    epsilon: float,
    delta: float | None,
    weights: Any,
    max_rows: int | None,
    ids: str,
) -> RowsPlan:
    """A plan for a model that is known, as :meth:`GP.plan_rows` makes it."""
    _check_grid(grid)
    gp = gp.for_columns(grid.columns)
    bounds = gp.one_pair("a plan of whole rows")
    if not isinstance(gp.noise, float) or gp.downweight is not None:
        remedy = "Noise of each row, and downweight, which looks at X, would tell of private inputs."
        raise ArgumentError("gp", "must have one noise variance, and no downweight", remedy=remedy)
    asked = epsilon, delta, weights, max_rows, ids
    return _planned(Known(gp), bounds, gp.inducing, grid, n, X_star, *asked, None, gp)


def _check_grid(grid: Any) -> None:
    if not isinstance(grid, Grid):
        raise ArgumentTypeError("grid", "must be a cloakgp.Grid", type(grid).__name__)
    if len(grid) < 2:
        raise ArgumentError("grid", "must have at least two cells")


def _planned(
    prior: Hyperprior | Known,
    bounds: tuple[float, float],
    inducing: Any,
    grid: Grid,
    n: int,
    X_star: Any,
    epsilon: float,
    delta: float | None,
    weights: Any,
    max_rows: int | None,
    ids: str,
    stages: int | None,
    model: AutoGP | GP,
) -> RowsPlan:
    outcome, classes = model.outcome, model.classes
    curves = len(classes) if outcome == CLASSES else 1
    population = _population(n, max_rows)
    epsilon, delta = calibrate.promise(epsilon, delta, population.size)
    if stages is not None and stages < 2:
        raise ArgumentError("stages", "must be at least 2 for whole rows: the first counts them", str(stages))
    points = grid.cover() if X_star is None else grid.points(X_star, "X_star")
    options = {"X_star": None if X_star is None else points, "weights": weights, "grid": grid}
    if weights is None:
        weights = np.ones(len(points))
    remedy = "To ignore a test point, leave it out of X_star."
    weights = relative_weights(checks.vector(weights, "weights", len(points), positive=True, remedy=remedy))
    shares, kappa = _schedule(stages, outcome)
    most = most_row_numbers(len(points), len(grid), len(shares), curves)
    mu = calibrate.calibrate(epsilon, delta, n_measurements=most)
    for share in shares[1:]:
        for part in (share, share * (1 - staging.SCALE_SHARE), share * staging.SCALE_SHARE):
            if not has_room(population, mu * math.sqrt(part), curves):
                raise ValueError(
                    f"epsilon={epsilon:g} with up to {population.most} rows leaves too few bits for exact "
                    "noise; use a smaller epsilon, or a larger one if it is tiny."
                )
    rule = RowRule(
        prior=prior,
        bounds=bounds,
        X=None,
        X_star=points,
        weights=frozen(weights),
        support=support_points(grid.centres, inducing, prior.category_columns(len(grid.axes))),
        promise=Promise(epsilon, delta, mu, most, shares),
        kappa=kappa,
        grid=grid,
        population=population,
        outcome=outcome,
        classes=classes,
        columns=grid.columns,
    )
    with one_blas_thread():
        walk = rule.walk()
        first = walk.next_stage(0)
    certificate = certify_stages(
        epsilon, delta, mu, population.most, most, shares, unit=population.unit, ids=ids
    )
    options |= {"n_rows": n, "max_rows": max_rows, "ids": ids, "epsilon": epsilon, "delta": delta}
    plan = RowsPlan(rule, first, certificate, Question(model, "plan_rows", options))
    plan.__dict__["start"] = walk.state  # made already
    return plan


def _population(n: Any, max_rows: Any) -> Population:
    for value, name in ((n, "n_rows"), (max_rows, "max_rows")):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value < _MOST
        if not whole and not (name == "max_rows" and value is None):
            # Only a number is quoted: somebody may have put the private X here.
            got = str(value) if isinstance(value, (int, float, np.number)) else type(value).__name__
            raise ArgumentError(name, "must be a whole number above 0", got)
    return Population(int(n), None if max_rows is None else int(max_rows))


def _schedule(stages: int | None, outcome: str) -> staging.Schedule:
    """Counts first, then sums with shares that grow."""
    sums = staging.SUMS[outcome] if stages is None else stages - 1
    shares, kappa = staging.schedule(sums, outcome)
    return staging.Schedule((COUNT_SHARE, *((1 - COUNT_SHARE) * share for share in shares)), kappa)


def most_row_numbers(test_points: int, cells: int, stages: int, curves: int = 1) -> int:
    """At most how many numbers are released, whatever the designs will be; `curves` are classes."""
    return most_numbers(MOST_WANTED, cells, 1) + most_numbers(test_points, cells, stages - 1, curves)
