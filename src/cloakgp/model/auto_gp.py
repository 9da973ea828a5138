"""A Gaussian process of which nothing must be known but bounds: the rest is learned, privately, in stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.model.gp import check_bounds
from cloakgp.model.hyperprior import PERIODS, Hyperprior
from cloakgp.model.inducing import check_inducing
from cloakgp.model.outcome import LINKS, REAL, Label, as_outcome, bounds_for
from cloakgp.rows.columns import DATE, Columns
from cloakgp.rows.inputs import as_inputs, named
from cloakgp.rows.people import ALIKE, as_ids
from cloakgp.rows.sources import as_source

if TYPE_CHECKING:
    from cloakgp.plans.staged import StagedPlan
    from cloakgp.plans.whole_rows import RowsPlan
    from cloakgp.rows.grid import Grid

MOST_STAGES = 12


@dataclass(frozen=True, eq=False)
class AutoGP:
    """A model of a private outcome that is learned from the release itself.

    The release is made in stages, under one promise: each stage learns from what the stages before it made
    public, so windows close in on where outcomes are, and less noise is needed. See ``docs/learning.md``.

    Parameters
    ----------
    bounds : (lo, hi)
        Where outcomes are known to lie, from public knowledge; generous ones will do. Values outside are
        clipped. For yes/no outcomes they are (0, 1), and can be left out.
    outcome : {"real", "yes/no", "count"}
        What outcomes are. For yes/no (True and False, or 1 and 0) the model is of a probability, for counts
        (0, 1, 2, ...) of a rate: predictions and their intervals stay within what these can be. See
        ``docs/outcomes.md``.
    classes : two or more values, optional
        What outcomes may be, public, instead of `outcome`: texts, whole numbers or truth values, such as
        ("no", "yes"), which is yes/no by other names, or ("car", "bus", "train"). The model is of each
        class's probability. An outcome that is none of them is missing.
    kernels : names out of {"EQ", "Matern32", "Matern52"}, optional
        Families of the smooth part; "EQ" if absent.
    prior : Hyperprior, optional
        What is believed beforehand of lengthscales, signal and noise, instead of `kernels`; public. Other
        outcomes than real ones have no noise of their own: its `noise` is not looked at, and `signal` is in
        shares of the range of f, which is 7 for yes/no, and 6.9 for counts with bounds from 0.
    categories : columns of X, optional
        Those that hold levels, by any numbers, counted from 0: only whether two are equal counts. What they
        change, alone and together with the other columns, is learned.
    seasons : mapping of columns to periods, optional
        Where outcomes may repeat: such as ``{"date": ["week", "year"]}`` for a column of dates ("day", "week"
        or "year"), or after how long, in the column's unit. Columns by name, or counted from 0. How much each
        season changes is learned.
    stages : int, optional
        How many; chosen by a public rule if absent.
    inducing : int or (m, D) array, optional
        For many rows: inputs that stand for all, or how many of them k-means shall choose from X. Chosen
        for more than some hundred distinct rows if absent.

    Examples
    --------
    >>> AutoGP(bounds=(0, 250))
    AutoGP(bounds=(0.0, 250.0), kernels=('EQ',))
    """

    bounds: tuple[float, float]
    prior: Hyperprior
    stages: int | None
    inducing: int | FloatArray | None
    seasons: tuple[tuple[str | int, str | float], ...]
    outcome: str
    classes: tuple[Label, ...]

    def __init__(
        self,
        bounds: Any = None,
        *,
        outcome: str = REAL,
        classes: Any = None,
        kernels: Any = None,
        prior: Hyperprior | None = None,
        categories: Any = None,
        seasons: Mapping[str | int, Any] | None = None,
        stages: int | None = None,
        inducing: Any = None,
    ) -> None:
        if prior is not None and not isinstance(prior, Hyperprior):
            raise ArgumentTypeError("prior", "must be a cloakgp.Hyperprior", type(prior).__name__)
        if prior is not None and kernels is not None:
            raise ArgumentError("kernels", "must be left out where prior is given, which names them too")
        outcome, named = as_outcome(outcome, classes)
        bounds = check_bounds(bounds_for(outcome, bounds))
        prior = _prior(prior, kernels, outcome, bounds)
        if categories is not None:
            prior = replace(prior, categories=categories)
        if stages is not None and (type(stages) is not int or not 1 <= stages <= MOST_STAGES):
            raise ArgumentError("stages", f"must be a whole number from 1 to {MOST_STAGES}", repr(stages))
        values = {
            "bounds": bounds,
            "prior": prior,
            "stages": stages,
            "inducing": check_inducing(inducing),
            "seasons": _pairs(seasons),
            "outcome": outcome,
            "classes": named,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @named
    def plan(
        self,
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
    ) -> StagedPlan:
        """Plan a release in stages: public, free, and without y.

        Parameters
        ----------
        X : table or (N, D) array
            Public inputs of the private outcomes, at most ten columns: a pandas, polars or pyarrow table,
            whose texts and dates become numbers (``docs/tables.md``), or an array. A vector is one column.
            The order of the rows is public too: do not sort them by y.
        X_star : table or (P, D) array, optional
            Where predictions matter most; points that cover X and its surroundings if absent.
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
        StagedPlan
            Its schedule, the first stage, and the error to be expected; ``plan.release(y)`` is the private
            step.
        """
        from cloakgp.plans.staged_planner import make_staged_plan

        inputs = as_inputs(X, people, columns, missing_inputs, ids)
        return make_staged_plan(
            self,
            inputs._replace(X=as_source(inputs.X, "X")),
            X_star,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            given=given,
            within=within,
        )

    @named
    def plan_rows(
        self,
        grid: Grid,
        n_rows: int,
        *,
        X_star: Any = None,
        epsilon: float,
        delta: float | None = None,
        weights: Any = None,
        max_rows: int | None = None,
        ids: str = ALIKE,
    ) -> RowsPlan:
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
        RowsPlan
            ``plan.release(X, y)`` is the private step.
        """
        from cloakgp.plans.rows_planner import make_rows_plan

        promise: Any = {"epsilon": epsilon, "delta": delta, "weights": weights, "max_rows": max_rows}
        promise["ids"] = as_ids(ids, max_rows is not None)
        return make_rows_plan(self, grid, n_rows, X_star, **promise)

    def prior_for(self, columns: Columns | None, width: int) -> Hyperprior:
        """What is believed beforehand of a table with these columns."""
        prior = self.prior
        if columns is not None and columns.categories:
            prior = replace(prior, categories=columns.categories)
        if not self.seasons:
            return prior
        return replace(prior, seasons=tuple(_season(*pair, columns, width) for pair in self.seasons))

    def __repr__(self) -> str:
        shown = f"bounds={self.bounds}, kernels={self.prior.kernels}"
        if self.classes:
            shown += f", classes={self.classes}"
        elif self.outcome != REAL:
            shown += f", outcome={self.outcome!r}"
        if self.prior.categories:
            shown += f", categories={self.prior.categories}"
        if self.stages is not None:
            shown += f", stages={self.stages}"
        return f"AutoGP({shown})"


def _prior(prior: Hyperprior | None, kernels: Any, outcome: str, bounds: tuple[float, float]) -> Hyperprior:
    """What is believed beforehand; of the noise of yes/no and counts, what they allow."""
    given = prior is not None
    if prior is None:
        prior = Hyperprior() if kernels is None else Hyperprior(kernels=kernels)
    if outcome not in LINKS:
        return prior
    link = LINKS[outcome]
    low, high = link.latent(bounds)
    least, most = (math.sqrt(factor) / (high - low) for factor in link.noise)
    signal = prior.signal if given else (link.signal[0] / (high - low), link.signal[1] / (high - low))
    return replace(prior, signal=signal, noise=(least, most))


def _pairs(seasons: Any) -> tuple[tuple[str | int, str | float], ...]:
    remedy = 'Such as {"date": ["week", "year"]}, or {0: 24.0} for a period in the unit of the first column.'
    if seasons is None:
        return ()
    if not isinstance(seasons, Mapping):
        raise ArgumentTypeError("seasons", "must say the periods of columns", type(seasons).__name__, remedy)
    listed = {
        name: [one] if isinstance(one, (str, int, float)) else list(one) for name, one in seasons.items()
    }
    pairs = tuple((name, period) for name, periods in listed.items() for period in periods)
    for name, period in pairs:
        if not isinstance(name, (str, int)) or (isinstance(period, str) and period not in PERIODS):
            expected = f"must be columns, and {', '.join(PERIODS)} or numbers as their periods"
            raise ArgumentError("seasons", expected, f"{name!r}: {period!r}"[:100], remedy)
    return pairs


def _season(name: str | int, period: str | float, columns: Columns | None, width: int) -> tuple[int, float]:
    """A column's number, and a period in its unit."""
    if isinstance(name, str):
        if columns is None:
            raise ArgumentError("seasons", "must count columns, since X has no names", repr(name))
        place = columns.place(name)
    else:
        place = name
    if not 0 <= place < width:
        raise ArgumentError("seasons", f"must be of columns of X, which has {width}", repr(name))
    if not isinstance(period, str):
        return place, float(period)
    if columns is not None and columns.inputs[place].kind != DATE:
        remedy = "Give the period as a number, in the column's unit."
        raise ArgumentError("seasons", f"must be a number for {columns.names[place]!r}", repr(period), remedy)
    return place, PERIODS[period]
