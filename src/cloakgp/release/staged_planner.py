"""Plan a release in stages: for public inputs, or for whole rows, known by a box and a number alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloakgp.core import calibration as calibrate
from cloakgp.core import checks
from cloakgp.core.checks import frozen
from cloakgp.core.errors import ArgumentError, Message, Phrase
from cloakgp.data.blas import one_blas_thread
from cloakgp.data.cells import make_cells, told_apart
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.columns import Columns
from cloakgp.data.inputs import PublicInputs, as_points
from cloakgp.data.people import ALIKE, as_ids, rows_each
from cloakgp.data.sources import is_lazy
from cloakgp.files.schema import MOST_IN_ALL, WIDEST
from cloakgp.measure.certificate import certify
from cloakgp.measure.measurement import has_room
from cloakgp.measure.statistics import Bin, OneOf
from cloakgp.measure.unit import OUTCOME, PERSON, Population
from cloakgp.model.hyperprior import Hyperprior, Known, Prior
from cloakgp.model.outcome import Outcome, outcome_named
from cloakgp.model.point_sets import cover
from cloakgp.posterior import staging
from cloakgp.posterior.density import MOST_WANTED
from cloakgp.posterior.support import support_points
from cloakgp.release.combine import earlier_releases
from cloakgp.release.plan import Plan
from cloakgp.release.readouts import relative_weights
from cloakgp.release.settings import Settings
from cloakgp.release.stages import MOST_OUTSIDE, Rule, grid_inputs

MOST_COLUMNS = 10
COUNT_SHARE = 0.2
"""Of mu squared, for the counts of private rows."""
_COVERED = 20_000  # rows that default test points cover
_SPARE = 9 + MOST_OUTSIDE
"""Numbers beyond one for each test point: a design may use some, and so may what windows cut off; or bins."""


def plan_stages(model: Any, chosen: Settings, table: PublicInputs) -> Plan:
    """A plan of stages for public inputs."""
    X, (n_rows, width) = table.X, table.X.shape
    prior = _prior(model, chosen, table.columns, width)
    outcome = outcome_named(chosen.outcome, chosen.classes)
    outcome.check_options(design=chosen.design, calibration=chosen.calibration, device=chosen.device)
    shares, kappa = _schedule(chosen, outcome)
    categories = prior.category_columns(width)
    if chosen.at is None:
        X_star = frozen(cover(spread_evenly(X, _COVERED), categories=categories))
    else:
        X_star = as_points(chosen.at, "X_star", width, table.columns)
    weights = relative_weights(chosen.weights, len(X_star))
    shared = table.shared(n_rows)
    epsilon, delta = calibrate.promise(
        chosen.epsilon, chosen.delta, n_rows if shared is None else shared.n_people
    )
    cells, inputs = None, None if is_lazy(X) else told_apart(X, rows_each(shared))
    if inputs is None:
        cells = make_cells(X, shared, categories)
        inputs = cells.inputs
    unit, ids, each = (OUTCOME, ALIKE, 1) if shared is None else (PERSON, shared.ids, shared.most_rows)
    bins = chosen.kernel is None and outcome.shaped
    moved = each * math.sqrt(min(outcome.curves + bins, 2))
    most = most_numbers(len(X_star), len(inputs), len(shares), outcome.curves)
    splits = chosen.kernel is None and outcome.link is None
    mu = _mu(epsilon, delta, most, shares, n_rows, moved, 1 / moved, splits)
    if outcome.curves > 1 and chosen.given:
        remedy = "Plan without, and pay for all of it."
        raise ArgumentError("given", "must be left out for classes", remedy=remedy)
    partition = "" if shared is None else shared.digest
    earlier = earlier_releases(chosen.given, X, inputs.groups, unit, partition, outcome)
    in_all = sum(len(one.stages) for one in earlier) + len(shares)
    if in_all > MOST_IN_ALL:
        expected = f"must have no more than {MOST_IN_ALL} stages in all, with those to come"
        raise ArgumentError("given", f"{expected}: a file holds no more", f"{in_all}")
    before = tuple((one.epsilon, one.delta) for one in earlier)
    rule = Rule(
        certificate=certify(epsilon, delta, mu, most, unit, n_rows, ids=ids, shares=shares, before=before),
        prior=prior,
        bounds=model.bounds,
        outcome=outcome,
        kappa=kappa,
        support=support_points(inputs.X, model.inducing, categories),
        X=X,
        inputs=inputs,
        X_star=X_star,
        weights=weights,
        given=earlier,
        cells=cells,
        people=shared,
        within=chosen.within,
        partition=partition,
        columns=table.columns,
        rows=table.rows,
    )
    return _first_stage(rule)


def plan_cells(model: Any, chosen: Settings) -> Plan:
    """A plan of stages for private inputs: from a grid and a number, and nothing else of the data."""
    grid, width = chosen.grid, len(chosen.inputs)
    assert grid is not None
    if len(grid) < 2:
        raise ArgumentError("grid", "must have at least two cells")
    as_ids(chosen.ids, chosen.max_rows is not None)
    prior = _prior(model, chosen, grid.columns, width)
    outcome = outcome_named(chosen.outcome, chosen.classes)
    shares, kappa = _schedule(chosen, outcome)
    for value, name in ((chosen.n_rows, "n_rows"), (chosen.max_rows, "max_rows")):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value < 2**40
        if not whole and not (name == "max_rows" and value is None):
            # Only a number is quoted: somebody may have put the private X here.
            got = str(value) if isinstance(value, (int, float, np.number)) else type(value).__name__
            raise ArgumentError(name, "must be a whole number above 0", got)
    most_rows = None if chosen.max_rows is None else int(chosen.max_rows)
    population = Population(grid, int(chosen.n_rows or 0), most_rows)
    n_rows, each, unit = population.most, population.each, population.unit
    epsilon, delta = calibrate.promise(chosen.epsilon, chosen.delta, population.size)
    X_star = grid.cover() if chosen.at is None else as_points(chosen.at, "X_star", width, grid.columns)
    weights = relative_weights(chosen.weights, len(X_star))
    most = most_row_numbers(len(X_star), len(grid), len(shares), outcome.curves)
    bins = Bin.cell_reach if chosen.kernel is None and outcome.shaped else 1.0
    reach = each * (bins if outcome.curves == 1 else OneOf.cell_reach)
    mu = _mu(epsilon, delta, most, shares, n_rows, reach, each)
    rule = Rule(
        certificate=certify(epsilon, delta, mu, most, unit, n_rows, ids=chosen.ids, shares=shares),
        prior=prior,
        bounds=model.bounds,
        outcome=outcome,
        kappa=kappa,
        support=support_points(grid.centres, model.inducing, prior.category_columns(width)),
        X=None,
        inputs=grid_inputs(population),
        X_star=X_star,
        weights=weights,
        population=population,
        columns=grid.columns,
    )
    return _first_stage(rule)


def _prior(model: Any, chosen: Settings, columns: Columns | None, width: int) -> Prior:
    """What is known of a model beforehand, for a table with these columns."""
    whole_rows = chosen.hides_inputs
    if chosen.kernel is None:
        if width > MOST_COLUMNS:
            raise ArgumentError(
                "grid" if whole_rows else "X",
                f"must have at most {MOST_COLUMNS} columns for a model that is learned",
                f"{width}",
                Message("Leave out columns that matter little, or ", Phrase.SET_MODEL, "."),
            )
        prior: Hyperprior = model.prior_for(columns, width)
        return prior if chosen.grid is None else replace(prior, categories=chosen.grid.columns.categories)
    model.one_pair("a plan of whole rows" if whole_rows else "a plan with given")
    if not isinstance(model.noise, float) or model.downweight is not None:
        if whole_rows:
            remedy = "Noise of each row, and downweight, which looks at X, would tell of private inputs."
            raise ArgumentError("gp", "must have one noise variance, and no downweight", remedy=remedy)
        raise ArgumentError("given", "needs a model with one noise variance, not one per row")
    return Known(model)


def _schedule(chosen: Settings, outcome: Outcome) -> tuple[tuple[float, ...], float | None]:
    """Each stage's share of mu squared, and half a window's width. Private rows are counted first.

    After the stages that somebody chose the number of, the last counts where outcomes fell.
    """
    shares, kappa = _of_sums(chosen, outcome)
    if chosen.kernel is None and outcome.shaped:
        shares = (*((1 - staging.BIN_SHARE) * share for share in shares), staging.BIN_SHARE)
    return shares, kappa


def _of_sums(chosen: Settings, outcome: Outcome) -> tuple[tuple[float, ...], float | None]:
    """The same of all but the last."""
    stages = chosen.stages
    if chosen.hides_inputs:
        if stages is not None and stages < 2:
            expected = "must be at least 2 for whole rows: the first counts them"
            raise ArgumentError("stages", expected, str(stages))
        shares, kappa = staging.schedule(outcome, (max(outcome.stages, 3) if stages is None else stages) - 1)
        return (COUNT_SHARE, *((1 - COUNT_SHARE) * share for share in shares)), kappa
    if chosen.kernel is None:
        return staging.schedule(outcome, stages)
    if chosen.windows is not None:  # of the one stage after those of earlier releases
        remedy = "It is in standard deviations; 2 is a careful choice."
        checks.positive(chosen.windows, "windows", remedy)
        if not chosen.windows < WIDEST:
            raise ArgumentError("windows", f"must be below {WIDEST:g}", repr(chosen.windows), remedy)
    return (1.0,), chosen.windows


def _first_stage(rule: Rule) -> Plan:
    """The plan by this rule."""
    with one_blas_thread():
        session = rule.session()
        state, first = session.state, session.next_stage(0)
    plan = Plan.of(rule, first)
    plan.__dict__["start"] = state  # made already
    return plan


def _mu(
    epsilon: float,
    delta: float,
    numbers: int,
    shares: Sequence[float],
    n_rows: int,
    most: float,
    least: float,
    splits: bool = False,
) -> float:
    """Of a promise for so many numbers, if every stage's integers have room: nothing may fail once paid for.

    `most` and `least` are how far a unit can move a stage's numbers, in longest columns: a person with k rows
    by k at most and by a k-th at least; of several classes, by the root of 2 times that. `splits` says
    whether what windows cut off has a part of a stage's sums for itself.
    """
    mu, level = calibrate.calibrate(epsilon, delta, n_measurements=numbers), staging.SCALE_SHARE
    # Of a stage alone, of sums beside the noise level, of that, and of sums inside and outside of windows.
    beyond = [one for part in staging.OUTSIDE for one in (part, 1 - part)] if splits else []
    sizes = [1.0, 1 - level, level, *((1 - level) * one for one in beyond)]
    parts = [share * size for share in shares for size in sizes]
    if not all(has_room(n_rows, mu * math.sqrt(part), most, least) for part in parts):
        raise ValueError(
            f"epsilon={epsilon:g} with {n_rows} rows leaves too few bits for exact noise; use a "
            "smaller epsilon, or a larger one if it is tiny."
        )
    return mu


def most_numbers(test_points: int, inputs: int, stages: int, curves: int = 1) -> int:
    """At most how many numbers are released, whatever the designs will be; `curves` are classes."""
    return (min(test_points, inputs) + _SPARE) * stages * curves


def most_row_numbers(test_points: int, cells: int, stages: int, curves: int = 1) -> int:
    """The same where rows are counted first."""
    return most_numbers(MOST_WANTED, cells, 1) + most_numbers(test_points, cells, stages - 1, curves)
