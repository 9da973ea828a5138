"""The model: a Gaussian process whose every setting is public."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.model.inducing import APPROXIMATIONS, check_inducing, choose_inducing
from cloakgp.model.levels import check_levels, with_places
from cloakgp.model.outcome import REAL, Label, as_outcome, bounds_for, check_options, of_outcome
from cloakgp.model.windows import (
    Given,
    Middle,
    RowMeans,
    as_bounds,
    as_given,
    at_rows,
    check_bounds,
    check_mean,
    distances,
    noise_at,
)
from cloakgp.rows.blas import blas_threads
from cloakgp.rows.columns import Columns
from cloakgp.rows.inputs import PublicInputs, as_inputs, named
from cloakgp.rows.merging import Groups
from cloakgp.rows.people import ALIKE, as_ids

__all__ = ["GP", "check_bounds"]

if TYPE_CHECKING:
    from cloakgp.plans.comparison import Comparison
    from cloakgp.plans.functions import FunctionPlan
    from cloakgp.plans.planner import Planner
    from cloakgp.plans.predictions import Plan
    from cloakgp.plans.staged import StagedPlan
    from cloakgp.plans.whole_rows import RowsPlan
    from cloakgp.rows.grid import Grid


@dataclass(frozen=True, eq=False)
class GP:
    """A Gaussian-process model of a private outcome.

    Every argument must come from public knowledge, never from y: a bound or a variance that was
    computed from y has already told something about it.

    Parameters
    ----------
    kernel : Kernel or callable
        From :mod:`cloakgp.kernels`, or anything callable as ``k(X, Z) -> matrix``, such as
        scikit-learn's kernels.
    noise : float, (N,) array or callable
        Variance of the observation noise: one number, one per row of X, or a function of X. Outcomes at other
        inputs have the function's, too, in ``predict(..., include_noise=True)``; a file keeps the rows'
        numbers only, and its reader gives a number as `include_noise`.
    bounds : (lo, hi)
        Where outcomes are known to lie. Values outside are clipped. The privacy noise is
        proportional to hi - lo. Each of the two is a number, or, where rows differ, an (N,) array with one
        per row of X or a function of X: see ``docs/windows.md``. Arrays are taken on trust:
        ``bounds=(y - 1, y + 1)`` would publish y.
    mean : float, (N,) array or callable, optional
        Prior mean of the outcome: a number, one per row of X, or a function of X; the middle of the bounds
        if absent. An array says nothing of inputs that are not rows of X: predictions there need a number or
        a function.
    inducing : int or (m, D) array, optional
        Public inducing inputs, for a large data set, or how many of them k-means shall choose from X.
        An exact GP if absent. See ``docs/scale.md``.
    approximation : {"dtc", "fitc"}
        What inducing inputs cannot represent is ignored ("dtc") or counted as noise ("fitc").
    downweight : {None, "leverage"}
        With "leverage", a plan gives rows that stand alone up to 50 times the noise variance, going by X
        only, so that predictions near them need less privacy noise. The plan's model has one variance per
        row then: give `include_noise` this `noise`. See ``docs/designs.md``.
    outcome : {"real", "yes/no", "count"}
        What outcomes are. For yes/no, `kernel` and `mean` are of f with Pr[yes] = Phi(f), and `noise` and
        `bounds` are left out; for counts, of f with rate exp(f), and `noise` is the variance of a count over
        its rate, 1 if absent. See ``docs/outcomes.md``.
    classes : two or more values, optional
        What outcomes may be, public, instead of `outcome`; see :class:`cloakgp.AutoGP`. `kernel` and `mean`
        are then of each class's f.
    noise_function : callable, optional
        With one `noise` per row: the function of X that gives the variance elsewhere, if there is one. Where
        `noise` is a function, that.

    Examples
    --------
    >>> from cloakgp.kernels import EQ
    >>> GP(EQ(25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0))
    GP(kernel=EQ(lengthscale=25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0), mean=108.0)
    """

    kernel: Kernel
    noise: float | FloatArray | Any  # a function of X, before there is an X
    bounds: tuple[Given, Given]
    mean: Given
    inducing: int | FloatArray | None
    approximation: str
    downweight: str | None
    noise_function: Callable[[FloatArray], Any] | None
    outcome: str
    classes: tuple[Label, ...]

    def __init__(
        self,
        kernel: Any,
        noise: Any = None,
        bounds: Any = None,
        mean: Any = None,
        inducing: Any = None,
        approximation: str = "dtc",
        downweight: str | None = None,
        noise_function: Callable[[FloatArray], Any] | None = None,
        outcome: str = REAL,
        classes: Any = None,
    ) -> None:
        outcome, named = as_outcome(outcome, classes)
        low, high = as_bounds(bounds_for(outcome, bounds))
        noise, mean = of_outcome(outcome, noise, mean, (low, high))
        if mean is not None:
            mean = as_given(mean, "mean")
            if outcome == REAL and all(isinstance(one, float) for one in (low, high, mean)):
                check_mean(low, high, mean)
        elif isinstance(low, float) and isinstance(high, float):
            mean = low + (high - low) / 2
        else:
            mean = Middle(low, high)
        values = {
            "kernel": as_kernel(kernel),
            "noise": _noise(noise),
            "bounds": (low, high),
            "mean": mean,
            "inducing": check_inducing(inducing),
            "approximation": checks.choice(approximation, "approximation", APPROXIMATIONS),
            "downweight": _downweight(downweight),
            "noise_function": _noise_function(noise_function, noise),
            "outcome": outcome,
            "classes": named,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @overload
    def plan(
        self,
        X: Any,
        *,
        X_star: Any,
        epsilon: float,
        delta: float | None = ...,
        design: str = ...,
        calibration: str = ...,
        weights: Any = ...,
        gap: float = ...,
        device: Any = ...,
        given: None = ...,
        people: Any = ...,
        within: float = ...,
        ids: str = ...,
        columns: Any = ...,
        missing_inputs: str = ...,
    ) -> Plan: ...
    @overload
    def plan(
        self,
        X: Any,
        *,
        X_star: Any,
        epsilon: float,
        delta: float | None = ...,
        weights: Any = ...,
        given: Sequence[Any],
        windows: float | None = ...,
        people: Any = ...,
        within: float = ...,
        ids: str = ...,
        columns: Any = ...,
        missing_inputs: str = ...,
    ) -> StagedPlan: ...
    @named
    def plan(
        self,
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
    ) -> Plan | StagedPlan:
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
        if self.outcome != REAL:
            check_options(self.outcome, design=design, calibration=calibration, device=device)
            given = () if given is None else given
        if given is not None:
            inputs = as_inputs(X, people, columns, missing_inputs, ids)
            return self._plan_after(inputs, X_star, given, windows, epsilon, delta, weights, within)
        if windows is not None:
            raise ArgumentError("windows", "needs earlier releases", remedy="Name them in given.")
        return self.planner(
            X,
            X_star=X_star,
            weights=weights,
            device=device,
            people=people,
            within=within,
            ids=ids,
            columns=columns,
            missing_inputs=missing_inputs,
        ).plan(epsilon=epsilon, delta=delta, design=design, calibration=calibration, gap=gap)

    @named
    def compare(
        self,
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
        return self.planner(
            X,
            X_star=X_star,
            weights=weights,
            device=None,
            people=people,
            within=within,
            ids=ids,
            columns=columns,
            missing_inputs=missing_inputs,
        ).compare(epsilon=epsilon, delta=delta, designs=designs, calibration=calibration, gap=gap)

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
        """Plan a release that protects whole rows, inputs included, for this model.

        As :meth:`AutoGP.plan_rows`, which learns the model; here it is known. Levels of a category are
        numbered from 0, for a kernel such as :class:`cloakgp.kernels.Category`.
        """
        from cloakgp.plans.rows_planner import make_known_rows_plan

        promise: Any = {"epsilon": epsilon, "delta": delta, "weights": weights, "max_rows": max_rows}
        promise["ids"] = as_ids(ids, max_rows is not None)
        return make_known_rows_plan(self, grid, n_rows, X_star, **promise)

    def _plan_after(
        self,
        inputs: PublicInputs,
        X_star: Any,
        given: Sequence[Any],
        windows: float | None,
        epsilon: float,
        delta: float | None,
        weights: Any,
        within: float,
    ) -> StagedPlan:
        from cloakgp.plans.staged_planner import make_given_plan

        inputs = inputs._replace(X=checks.matrix(inputs.X, "X"))
        model = self.for_columns(inputs.columns)
        return make_given_plan(
            model,
            model.with_inducing(inputs.X),
            inputs,
            X_star,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            given=given,
            windows=windows,
            within=within,
        )

    @named
    def planner(
        self,
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
        from cloakgp.plans.planner import Planner

        self._check_real("a planner")
        inputs = as_inputs(X, people, columns, missing_inputs, ids)
        return Planner(self, inputs, X_star, weights, device, within)

    @named
    def plan_function(
        self,
        X: Any,
        *,
        epsilon: float,
        delta: float | None = None,
        bound: str = "exact",
        calibration: str = "analytic",
        basis: Any = None,
        margin: Any = None,
        prior_noise: bool = False,
        people: Any = None,
        within: float = 1.0,
        ids: str = ALIKE,
        columns: Any = None,
        missing_inputs: str = "error",
    ) -> FunctionPlan:
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
        prior_noise : bool
            Add the rest of a draw of the prior (public randomness), for noise like the paper's
            also away from the data.
        people, within, ids
            As for :meth:`plan`; for bound="exact" only, since the others are bounds on one row.
        columns, missing_inputs
            As for :meth:`plan`.
        """
        from cloakgp.plans.function_planner import make_function_plan

        self._check_real("a function release")
        if self.inducing is not None:
            raise ValueError(
                "inducing: a function release needs an exact GP. Leave inducing out, or use plan(), whose "
                "release also predicts anywhere."
            )
        inputs = as_inputs(X, people, columns, missing_inputs, ids)
        with blas_threads(len(inputs.X)):
            return make_function_plan(
                self.for_columns(inputs.columns),
                inputs,
                epsilon=epsilon,
                delta=delta,
                bound=bound,
                calibration=calibration,
                basis=basis,
                margin=margin,
                prior_noise=prior_noise,
                within=within,
            )

    def _check_real(self, what: str) -> None:
        if self.outcome != REAL:
            remedy = "Use plan, plan_rows or AutoGP, whose releases take account of it."
            raise ArgumentError("outcome", f"must be {REAL!r} for {what}", repr(self.outcome), remedy)

    def for_columns(self, columns: Columns | None) -> GP:
        """The same model for a table with these columns; or why its kernel does not suit them."""
        kernel = with_places(self.kernel, columns)
        if columns is not None:
            check_levels(kernel, columns)
        return self if kernel is self.kernel else replace(self, kernel=kernel)

    def with_inducing(self, X: Any) -> GP:
        """The same model with its inducing inputs, if it has any, chosen and checked for X."""
        if self.inducing is None:
            return self
        if isinstance(self.inducing, int):
            chosen = choose_inducing(X, self.inducing)
        else:
            chosen = checks.matrix(self.inducing, "inducing", columns=X.shape[1])
        return replace(self, inducing=chosen)

    def at_rows(self, X: Any, X_star: FloatArray | None = None) -> GP:
        """The same model with what differs from row to row, or is a function of X, at the rows of X."""
        bounds, mean = at_rows(self.bounds, self.mean, X, X_star)
        noise = noise_at(self.noise, X) if callable(self.noise) else self.noise
        return replace(self, bounds=bounds, mean=mean, noise=noise)

    @property
    def windows(self) -> FloatArray | None:
        """(N, 3) lower and upper limit and prior mean of each row; None if all rows have the same."""
        mean = self.mean.rows if isinstance(self.mean, RowMeans) else self.mean
        known = [one for one in (*self.bounds, mean) if not callable(one)]
        if len(known) < 3:
            raise ValueError("bounds, mean: functions of X have values once there is an X; plan first.")
        columns = np.broadcast_arrays(*known)
        return None if columns[0].ndim == 0 else np.column_stack(columns)

    def windows_of(self, groups: Groups | None) -> FloatArray | None:
        """(U, 3) the same for groups of rows that have the same."""
        windows = self.windows
        return windows if windows is None or groups is None else windows[groups.first]

    def mean_of(self, groups: Groups | None) -> float | FloatArray:
        """The prior mean of each group of rows, or one number for all."""
        windows = self.windows_of(groups)
        return self.level if windows is None else windows[:, 2]

    def mean_at(self, X: FloatArray) -> float | FloatArray:
        """The prior mean at these inputs."""
        if isinstance(self.mean, np.ndarray):
            raise ValueError("mean: an array is for the rows of an X; plan first.")
        return self.mean(X) if callable(self.mean) else self.mean

    def noise_at(self, X: FloatArray) -> float | FloatArray:
        """The variance of a new outcome at these inputs, about the function there."""
        if self.noise_function is not None:
            return noise_at(self.noise_function, X)
        if isinstance(self.noise, float):
            return self.noise
        raise ValueError(
            "include_noise: this model has one noise variance per row of X, so that of a new "
            "outcome is not known. Give it as a number: include_noise=variance."
        )

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest that any row's outcome can be."""
        windows = self.windows
        if windows is None:
            return self.one_pair("")
        return float(windows[:, 0].min()), float(windows[:, 1].max())

    def one_pair(self, what: str) -> tuple[float, float]:
        """The bounds, if they and the mean are the same for all rows; or why `what` cannot be done."""
        low, high = self.bounds
        if not isinstance(low, float) or not isinstance(high, float):
            raise ArgumentError("bounds", f"must be two numbers for {what}", remedy="GP.plan takes others.")
        if not isinstance(self.mean, float):
            raise ArgumentError("mean", f"must be one number for {what}", remedy="GP.plan takes others.")
        if callable(self.noise):
            expected = f"must be one number or one per row of X for {what}"
            raise ArgumentError("noise", expected, "a function", "Give its values at X, or use GP.plan.")
        return low, high

    @property
    def level(self) -> float:
        """The prior mean, where it is one number."""
        self.one_pair("this")
        assert isinstance(self.mean, float)
        return self.mean

    @property
    def farthest(self) -> float:
        """How far an outcome within the bounds can be from the prior mean."""
        windows = self.windows
        return float(np.max(distances((*self.one_pair(""), self.level) if windows is None else windows.T)))

    def check_rows(self, n_rows: int) -> None:
        """Raise unless what is given per row suits so many rows."""
        mean = self.mean.rows if isinstance(self.mean, RowMeans) and not self.mean.function else self.mean
        named = {"noise": self.noise, "bounds[0]": self.bounds[0], "bounds[1]": self.bounds[1], "mean": mean}
        for name, value in named.items():
            if isinstance(value, np.ndarray) and len(value) != n_rows:
                raise ArgumentError(
                    name, f"must be one number or one per row of X ({n_rows})", f"{len(value)} entries"
                )

    def __repr__(self) -> str:
        noise = self.noise if isinstance(self.noise, float) else _shown(self.noise, "variances")
        bounds = ", ".join(map(_shown, self.bounds))
        shown = f"kernel={self.kernel!r}, noise={noise}, bounds=({bounds}), mean={_shown(self.mean)}"
        if self.inducing is not None:
            inducing = self.inducing if isinstance(self.inducing, int) else f"<{len(self.inducing)} inputs>"
            shown += f", inducing={inducing}, approximation={self.approximation!r}"
        if self.downweight is not None:
            shown += f", downweight={self.downweight!r}"
        return f"GP({shown})"


def _noise(noise: Any) -> float | FloatArray | Any:
    if callable(noise):
        return noise
    remedy = "It is the variance of the observation noise, above 0."
    if isinstance(noise, (list, tuple)) or getattr(noise, "ndim", 0) > 0:
        variances = checks.vector(noise, "noise", positive=True, remedy=remedy)
        if len(variances) == 0:
            raise ArgumentError("noise", "must be a number or one per row of X", "no entries", remedy)
        return variances
    return checks.positive(noise, "noise", remedy)


def _noise_function(function: Any, noise: Any) -> Any:
    if function is not None and not callable(function):
        raise ArgumentTypeError("noise_function", "must be a function of X", type(function).__name__)
    return noise if callable(noise) else function


def _downweight(downweight: Any) -> str | None:
    return None if downweight is None else checks.choice(downweight, "downweight", ("leverage",))


def _shown(value: Given, words: str = "numbers") -> str:
    """A number as it is; of others, what they are and not what they hold."""
    if isinstance(value, float):
        return repr(value)
    rows = value.rows if isinstance(value, RowMeans) else value
    return f"<{len(rows)} {words}>" if isinstance(rows, np.ndarray) else "<function of X>"
