"""Plan a release: what users call, as methods of :class:`cloakgp.GP` and :class:`cloakgp.AutoGP`.

Everything that can fail is found out here, before anything is paid. A plan knows its settings; one that was
read from a file has none, and nothing can be released from it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, ArgumentTypeError, InputError
from cloakgp.data.blas import blas_threads
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import PublicInputs, as_inputs, named
from cloakgp.data.people import ALIKE
from cloakgp.data.sources import as_source
from cloakgp.model.auto_gp import LearnedGP
from cloakgp.model.gp import GaussianProcess
from cloakgp.release.combine import as_list
from cloakgp.release.plan import Plan
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planner import Comparison, Planner, make_function_plan
from cloakgp.release.settings import FUNCTION, PREDICTIONS, Settings, digest_of
from cloakgp.release.staged_planner import plan_cells, plan_stages


@named
def plan(
    gp: GaussianProcess,
    X: Any,
    *,
    X_star: Any,
    epsilon: float,
    delta: float | None = None,
    design: str = "mse",
    calibration: str = "analytic",
    weights: Any = None,
    gap: float = 0.01,
    device: Any = None,
    given: Sequence[Any] | None = None,
    windows: float | None = None,
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> Plan:
    """Plan a release of predictions at `X_star`: public, free, and without y.

    Parameters
    ----------
    X : table or (N, D) array
        Public inputs of the private outcomes: a pandas, polars or pyarrow table, whose texts and dates
        become numbers (``docs/tables.md``), or an array. A vector is one column. The order of the rows
        is public too: do not sort them by y. With inducing inputs also a memory map, a Dask array or
        :class:`cloakgp.ParquetColumns`, read a chunk at a time.
    X_star : table or (P, D) array
        Where predictions are wanted. A table has the columns of X, in any order.
    epsilon, delta : float
        The promise: epsilon > 0, 0 < delta < 1. One release spends it once. If absent, delta is the
        largest power of ten below 1 / (10 n) for n rows, or n people where the promise is to people.
    design : {"mse", "max", "posterior", "volume"}
        What the noise is shaped for: least mean noise variance over `X_star`; least noise at
        the worst point of `X_star`; least error of denoised predictions; or the paper's
        smallest noise volume. ``docs/designs.md`` helps to choose.
    calibration : {"analytic", "classic"}
        "analytic" is exact for every epsilon. "classic" is the paper's, for epsilon <= 1.
    weights : (P,) array, optional
        How much the noise at each test point matters; all alike if absent.
    gap : float
        How far, relatively, the design's objective (a variance) may be from the best possible.
    device : str or torch.device, optional
        Where an exact GP and the design are computed, such as "cuda" (extra ``torch``); where X is, if
        that is a torch tensor. What is private never goes there: y is not needed for a plan.
    given : releases, optional
        Of the same y at the same X, made before. The plan takes into account what they say: it measures
        what is still unknown, predicts from all of them, and costs only what is new. The `posterior`
        design is used.
    windows : float, optional
        With `given`: clip outcomes to where they are expected now, plus or minus so many standard
        deviations, such as 2, instead of to the bounds. Less noise is needed then; the model takes
        account of what is clipped.
    people : (N,) ids, or the name of a column of X, optional
        Whose outcome each row of X has: whole numbers, texts or anything hashable. Who has which rows is
        public. A column that is named is not an input. The promise is to each person then, with all of
        their rows, exactly; without, to each row.
    within : float
        With `people`: correlation of the noise of one person's outcomes, from 0 to 1; public. Rows of a
        person who has k get 1 + (k - 1) within times the noise variance, so that with 1 a person counts
        once. The plan's model has one variance per row then: give `include_noise` this `noise`.
    ids : {"alike", "exact"}
        With `people`: an id is the same however it is written, as 7, "007" and "7.0", or "Ann" and "ANN";
        or only if it is written exactly so, which the certificate then says. Who is written in two ways
        would be protected as two people: choose "exact" only where ids that look alike are different.
    columns : Columns, optional
        Names of the columns, levels and units, where X is an array or more is known than a table tells:
        see :meth:`cloakgp.Columns.of`.
    missing_inputs : {"error", "drop"}
        Refuse rows of X in which something is missing, or leave them out, of y too: X is public.

    Returns
    -------
    Plan
        Says how much noise there will be and where; ``plan.release(y)`` is the private step.
    """
    return _plan(gp, locals())


@named
def compare(
    gp: GaussianProcess,
    X: Any,
    *,
    X_star: Any,
    epsilon: float,
    delta: float | None = None,
    designs: Sequence[str] | None = None,
    weights: Any = None,
    calibration: str = "analytic",
    gap: float = 0.01,
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> Comparison:
    """Plan the same release with each design, and compare what to expect of them; public, and free.

    Parameters
    ----------
    designs : names, optional
        Which to compare; all, if absent.
    X, X_star, epsilon, delta, weights, calibration, gap, people, within, ids, columns, missing_inputs
        As for :meth:`plan`.

    Returns
    -------
    Comparison
        A table when printed; `best` names a design, and `plans` holds each plan, ready for its release.
    """
    options: Any = {"X_star": X_star, "weights": weights, "people": people, "within": within, "ids": ids}
    made = planner(gp, X, columns=columns, missing_inputs=missing_inputs, **options)
    return made.compare(designs=designs, epsilon=epsilon, delta=delta, calibration=calibration, gap=gap)


@named
def planner(
    gp: GaussianProcess,
    X: Any,
    *,
    X_star: Any,
    weights: Any = None,
    device: Any = None,
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> Planner:
    """For many plans over the same points: the costly part is done once.

    Arguments as for :meth:`plan`; ``gp.planner(X, X_star=...).plan(epsilon=..., delta=...)`` is
    the same as ``gp.plan(X, X_star=..., epsilon=..., delta=...)``.
    """
    gp.check_real("a planner")
    table = as_inputs(X, people, columns, missing_inputs, ids)
    # Each plan has an epsilon of its own.
    options: Any = {"epsilon": 1.0, "at": X_star, "weights": weights, "device": device, "within": within}
    return Planner(gp, table, Settings.of(gp.for_columns(table.columns), **options))


@named
def plan_function(
    gp: GaussianProcess,
    X: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    bound: str = "exact",
    calibration: str = "analytic",
    basis: Any = None,
    margin: Any = None,
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> Plan:
    """Plan a release of the whole function, to be asked anywhere: the paper's "standard" method.

    It needs no test points, and more noise than :meth:`plan`. Suited to outcomes with a small
    range, such as counts.

    Parameters
    ----------
    X : table or (N, D) array
        Public inputs of the private outcomes.
    epsilon, delta, calibration
        As for :meth:`plan`.
    bound : {"exact", "infinity", "paper", "input-free", "varah"}
        How far one row can move the function. "exact" is best. "infinity" and "paper" are the
        paper's bounds, scaled to the kernel's variance. "input-free" and "varah" give a noise
        level that tells nothing of X; they need `basis`.
    basis : (n, D) array, optional
        Public points on which the released function stands instead of X.
    margin : float, optional
        For "varah": a public promise that the inputs are so far apart that in Kff + S every
        diagonal entry exceeds the sum of the others in its row by at least this much.
    people, within, ids
        As for :meth:`plan`; for bound="exact" only, since the others are bounds on one row.
    columns, missing_inputs
        As for :meth:`plan`.
    """
    return _plan(gp, locals(), kind=FUNCTION)


@named
def plan_learned(
    model: LearnedGP,
    X: Any,
    *,
    X_star: Any = None,
    epsilon: float,
    delta: float | None = None,
    weights: Any = None,
    given: Sequence[Any] = (),
    people: Any = None,
    within: float = 1.0,
    ids: str = ALIKE,
    columns: Any = None,
    missing_inputs: str = "error",
) -> Plan:
    """Plan a release in stages: public, free, and without y.

    Parameters
    ----------
    X : table or (N, D) array
        Public inputs of the private outcomes, at most ten columns: a pandas, polars or pyarrow table,
        whose texts and dates become numbers (``docs/tables.md``), or an array. A vector is one column.
        The order of the rows is public too: do not sort them by y.
    X_star : table or (P, D) array, optional
        Where predictions matter most; points that cover X if absent.
    epsilon, delta : float
        The promise for all stages together. One release spends it once. If absent, delta is the largest
        power of ten below 1 / (10 n) for n rows, or n people where the promise is to people.
    weights : (P,) array, optional
        How much the error at each test point matters; all alike if absent.
    given : releases, optional
        Of the same y at the same X, made before: what they say is taken into account, and only what is
        new is paid for.
    people : (N,) ids, or the name of a column of X, optional
        Whose outcome each row of X has: whole numbers, texts or anything hashable. Who has which rows is
        public. A column that is named is not an input. The promise is to each person then, with all of
        their rows, exactly; without, to each row.
    within : float
        With `people`: correlation of the noise of one person's outcomes, from 0 to 1; public. With 1, a
        person counts once, however many rows they have.
    ids : {"alike", "exact"}
        With `people`: an id is the same however it is written, as 7, "007" and "7.0", or "Ann" and "ANN";
        or only if it is written exactly so, which the certificate then says. Who is written in two ways
        would be protected as two people: choose "exact" only where ids that look alike are different.
    columns : Columns, optional
        Names of the columns, levels and units, where X is an array or more is known than a table tells:
        see :meth:`cloakgp.Columns.of`.
    missing_inputs : {"error", "drop"}
        Refuse rows of X in which something is missing, or leave them out, of y too: X is public.

    Returns
    -------
    Plan
        Its schedule, the first stage, and the error to be expected; ``plan.release(y)`` is the private
        step.
    """
    return _plan(model, locals())


@named
def plan_rows(
    model: GaussianProcess | LearnedGP,
    grid: Grid,
    n_rows: int,
    *,
    X_star: Any = None,
    epsilon: float,
    delta: float | None = None,
    weights: Any = None,
    max_rows: int | None = None,
    ids: str = ALIKE,
) -> Plan:
    """Plan a release that protects whole rows, inputs included: public, free, and without X and y.

    Parameters
    ----------
    grid : Grid
        A public box, and how it is cut into cells: all that is known of the inputs.
    n_rows : int
        How many rows there are; with `max_rows`, how many people. Public: whoever learns of the release
        learns that number.
    X_star : table with the grid's names or (P, D) array, optional
        Where predictions matter most, from public knowledge; points that cover the box if absent.
    epsilon, delta : float
        The promise for all stages together. One release spends it once. If absent, delta is the largest
        power of ten below 1 / (10 n) for n rows, or n people where the promise is to people.
    weights : (P,) array, optional
        How much the error at each test point matters; all alike if absent.
    max_rows : int, optional
        Protect all rows of one person together, of which at most so many count.
    ids : {"alike", "exact"}
        With `max_rows`: how ids of people will be compared, as for :meth:`plan`.

    Returns
    -------
    Plan
        ``plan.release(X, y)`` is the private step.
    """
    if not isinstance(grid, Grid):
        raise ArgumentTypeError("grid", "must be a cloakgp.Grid", type(grid).__name__)
    return _plan(model, locals())


def _plan(model: Any, asked: dict[str, Any], kind: str = PREDICTIONS) -> Plan:
    """What a model's method was asked for, by the names of its arguments."""
    table, grid = None, asked.get("grid")
    if grid is None:
        table = as_inputs(*(asked[name] for name in ("X", "people", "columns", "missing_inputs", "ids")))
    model = _of_table(model, grid or table)
    of_table = ("gp", "model", "X", "people", "columns", "missing_inputs", "X_star")
    options = {name: value for name, value in asked.items() if name not in of_table}
    given = options.get("given")
    options["given"] = () if given is None else tuple(as_list(given, "given"))
    return _made(model, Settings.of(model, kind=kind, at=asked.get("X_star"), **options), table)


def _of_table(model: Any, table: Any) -> Any:
    """The model for a table or a grid with these columns."""
    return model if isinstance(model, LearnedGP) else model.for_columns(table.columns)


def _made(model: Any, chosen: Settings, table: PublicInputs | None) -> Plan:
    """The plan of these settings for this table, by the planner that suits them."""
    if table is None:
        return chosen.attach(plan_cells(model, chosen))
    if chosen.kind == FUNCTION:
        X = checks.matrix(table.X, "X")
        with blas_threads(len(X)):
            return make_function_plan(model, chosen, table._replace(X=X))
    if chosen.windows is not None and not chosen.given:
        raise ArgumentError("windows", "needs earlier releases", remedy="Name them in given.")
    if chosen.in_stages:
        X = as_source(table.X, "X") if chosen.kernel is None else checks.matrix(table.X, "X")
        model = model if chosen.kernel is None else model.with_inducing(X)
        return chosen.attach(plan_stages(model, chosen, table._replace(X=X)))
    names = ("epsilon", "delta", "design", "calibration", "gap")
    return Planner(model, table, chosen).plan(**{name: getattr(chosen, name) for name in names})


def plan_from(settings: Settings, X: Any = None, people: Any = None) -> Plan:
    """The plan of these settings for this table: public, without y, and the same wherever inputs are kept."""
    table = None
    if settings.hides_inputs:
        if X is not None or people is not None:
            remedy = "The plan protects whole rows, and must not see them: give them to release."
            raise ArgumentError("X, people", "must be left out", remedy=remedy)
    elif X is None:
        raise ArgumentError("X", "must be given: the inputs of your own table, which the plan is for")
    else:
        table = as_inputs(X, people, settings.columns, settings.missing_inputs, settings.ids)
    known = plan if settings.kernel is not None else plan_learned
    method = plan_rows if table is None else plan_function if settings.kind == FUNCTION else known
    of_table = {"at", "output", "people", "reading", "kind"}
    known_by = {*vars(settings.model), "kernels", *of_table, *signature(method).parameters}
    if wrong := settings.chosen().keys() - known_by:
        raise ArgumentError(", ".join(sorted(wrong)), "must be left out: such a plan has no use for it")
    model = _of_table(settings.model, settings.grid or table)
    made = _made(model, replace(settings, at=settings.points(X)), table)
    object.__setattr__(made, "question", settings)
    return made


def planner_from(settings: Settings, X: Any, people: Any = None) -> Planner:
    """For plans of predictions that differ in the promise or the design alone: see :func:`planner`."""
    settings.model.check_real("a planner")
    table = as_inputs(X, people, settings.columns, settings.missing_inputs, settings.ids)
    return Planner(settings.model, table, replace(settings, at=settings.points(X)))


def compare_from(settings: Settings, X: Any, people: Any = None) -> Comparison:
    """The designs side by side, for this table: public, and without y."""
    asked = {name: getattr(settings, name) for name in ("epsilon", "delta", "calibration", "gap")}
    return planner_from(settings, X, people).compare(**asked)


def load_plan(
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    people: Any = None,
    given: Sequence[Any] = (),
    ids: str = ALIKE,
) -> Plan:
    """Plan again what a plan file asks for, from your own table. Nothing in the file is executed.

    Print ``plan.question`` before you release: it lists all settings, which are all that came from the file.

    Parameters
    ----------
    path : path
        Written by ``plan.save``, or by ``cloakgp plan``.
    X : table or (N, D) array
        The public inputs, as they were planned for; left out where whole rows are protected.
    people : (N,) ids, or the name of a column of X, optional
        If the promise is to people.
    given : releases, optional
        If the plan takes earlier ones into account.
    ids : {"alike", "exact"}
        As in the plan: it cannot choose alone to take each way of writing an id for another person.

    Raises
    ------
    Refused
        If the inputs or people are not those that the plan was made for, or another plan comes out.
    """
    name, file = checks.path(path).name, PlanFile.read(path)
    settings = file.settings
    if settings.ids != ids:
        remedy = "It takes each way of writing an id for another person. Say so, too, if that is right."
        raise ArgumentError("ids", f"must be {settings.ids!r}, as in the plan", ids, remedy)
    if [digest_of(release) for release in given] != list(settings.given):
        raise ArgumentError("given", "must be the releases that the plan was made for, in order")
    try:
        plan = plan_from(replace(settings, given=tuple(given)), X, people)
    except (TypeError, OverflowError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{name}: its settings cannot be planned ({said}).") from None
    differs = file.check(plan)
    if differs is not None:
        warnings.warn(f"{name}: {differs}", stacklevel=2)
    return plan
