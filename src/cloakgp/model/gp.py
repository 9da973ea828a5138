"""The model: a Gaussian process whose every setting is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.kernels import Kernel, as_kernel
from cloakgp.model.inducing import APPROXIMATIONS, check_inducing, choose_inducing

if TYPE_CHECKING:
    from cloakgp.plans.functions import FunctionPlan
    from cloakgp.plans.planner import Planner
    from cloakgp.plans.predictions import Plan
    from cloakgp.plans.staged import StagedPlan


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
    noise : float or (N,) array
        Variance of the observation noise, one number or one per row of X.
    bounds : (lo, hi)
        Where outcomes are known to lie. Values outside are clipped. The privacy noise is
        proportional to hi - lo.
    mean : float, optional
        Prior mean of the outcome; the middle of the bounds if absent.
    inducing : int or (m, D) array, optional
        Public inducing inputs, for a large data set, or how many of them k-means shall choose from X.
        An exact GP if absent. See ``docs/scale.md``.
    approximation : {"dtc", "fitc"}
        What inducing inputs cannot represent is ignored ("dtc") or counted as noise ("fitc").
    downweight : {None, "leverage"}
        With "leverage", a plan gives rows that stand alone up to 50 times the noise variance, going by X
        only, so that predictions near them need less privacy noise. The plan's model has one variance per
        row then: give `include_noise` this `noise`. See ``docs/designs.md``.

    Examples
    --------
    >>> from cloakgp.kernels import EQ
    >>> GP(EQ(25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0))
    GP(kernel=EQ(lengthscale=25.0, variance=662.5), noise=199.0, bounds=(58.0, 158.0), mean=108.0)
    """

    kernel: Kernel
    noise: float | FloatArray
    bounds: tuple[float, float]
    mean: float
    inducing: int | FloatArray | None
    approximation: str
    downweight: str | None

    def __init__(
        self,
        kernel: Any,
        noise: Any,
        bounds: Any,
        mean: Any = None,
        inducing: Any = None,
        approximation: str = "dtc",
        downweight: str | None = None,
    ) -> None:
        low, high = check_bounds(bounds)
        middle = low + (high - low) / 2
        values = {
            "kernel": as_kernel(kernel),
            "noise": _noise(noise),
            "bounds": (low, high),
            "mean": middle if mean is None else checks.number(mean, "mean"),
            "inducing": check_inducing(inducing),
            "approximation": checks.choice(approximation, "approximation", APPROXIMATIONS),
            "downweight": _downweight(downweight),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @overload
    def plan(
        self,
        X: Any,
        X_star: Any,
        *,
        epsilon: float,
        delta: float,
        design: str = ...,
        calibration: str = ...,
        weights: Any = ...,
        gap: float = ...,
        device: Any = ...,
        given: None = ...,
    ) -> Plan: ...
    @overload
    def plan(
        self,
        X: Any,
        X_star: Any,
        *,
        epsilon: float,
        delta: float,
        weights: Any = ...,
        given: Sequence[Any],
        windows: float | None = ...,
    ) -> StagedPlan: ...
    def plan(
        self,
        X: Any,
        X_star: Any,
        *,
        epsilon: float,
        delta: float,
        design: str = "mse",
        calibration: str = "analytic",
        weights: Any = None,
        gap: float = 0.01,
        device: Any = None,
        given: Sequence[Any] | None = None,
        windows: float | None = None,
    ) -> Plan | StagedPlan:
        """Plan a release of predictions at `X_star`: public, free, and without y.

        Parameters
        ----------
        X : (N, D) array
            Public inputs of the private outcomes. A vector is one column. The order of the rows
            is public too: do not sort them by y. With inducing inputs also a memory map, a Dask array or
            :class:`cloakgp.ParquetColumns`, read a chunk at a time.
        X_star : (P, D) array
            Where predictions are wanted.
        epsilon, delta : float
            The promise: epsilon > 0, 0 < delta < 1. One release spends it once.
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

        Returns
        -------
        Plan
            Says how much noise there will be and where; ``plan.release(y)`` is the private step.
        """
        if given is not None:
            return self._plan_after(X, X_star, given, windows, epsilon, delta, weights)
        if windows is not None:
            raise ArgumentError("windows", "needs earlier releases", remedy="Name them in given.")
        return self.planner(X, X_star, weights, device).plan(
            epsilon=epsilon, delta=delta, design=design, calibration=calibration, gap=gap
        )

    def _plan_after(
        self,
        X: Any,
        X_star: Any,
        given: Sequence[Any],
        windows: float | None,
        epsilon: float,
        delta: float,
        weights: Any,
    ) -> StagedPlan:
        from cloakgp.plans.staged_planner import make_given_plan

        X = checks.matrix(X, "X")
        return make_given_plan(
            self.with_inducing(X),
            X,
            X_star,
            epsilon=epsilon,
            delta=delta,
            weights=weights,
            given=given,
            windows=windows,
        )

    def planner(self, X: Any, X_star: Any, weights: Any = None, device: Any = None) -> Planner:
        """For many plans over the same points: the costly part is done once.

        Arguments as for :meth:`plan`; ``gp.planner(X, X_star).plan(epsilon=..., delta=...)`` is the same
        as ``gp.plan(X, X_star, epsilon=..., delta=...)``.
        """
        from cloakgp.plans.planner import Planner

        return Planner(self, X, X_star, weights, device)

    def plan_function(
        self,
        X: Any,
        *,
        epsilon: float,
        delta: float,
        bound: str = "exact",
        calibration: str = "analytic",
        basis: Any = None,
        margin: Any = None,
        prior_noise: bool = False,
    ) -> FunctionPlan:
        """Plan a release of the whole function, to be asked anywhere: the paper's "standard" method.

        It needs no test points, and more noise than :meth:`plan`. Suited to outcomes with a small
        range, such as counts.

        Parameters
        ----------
        X : (N, D) array
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
        """
        from cloakgp.plans.function_planner import make_function_plan

        if self.inducing is not None:
            raise ValueError(
                "inducing: a function release needs an exact GP. Leave inducing out, or use plan(), whose "
                "release also predicts anywhere."
            )
        return make_function_plan(
            self,
            X,
            epsilon=epsilon,
            delta=delta,
            bound=bound,
            calibration=calibration,
            basis=basis,
            margin=margin,
            prior_noise=prior_noise,
        )

    def with_inducing(self, X: Any) -> GP:
        """The same model with its inducing inputs, if it has any, chosen and checked for X."""
        if self.inducing is None:
            return self
        if isinstance(self.inducing, int):
            chosen = choose_inducing(X, self.inducing)
        else:
            chosen = checks.matrix(self.inducing, "inducing", columns=X.shape[1])
        return replace(self, inducing=chosen)

    @property
    def farthest(self) -> float:
        """How far an outcome within the bounds can be from the prior mean."""
        return max(abs(self.bounds[0] - self.mean), abs(self.bounds[1] - self.mean))

    def check_rows(self, n_rows: int) -> None:
        """Raise unless `noise` suits so many rows."""
        if not isinstance(self.noise, float) and len(self.noise) != n_rows:
            raise ArgumentError(
                "noise", f"must be one number or one per row of X ({n_rows})", f"{len(self.noise)} entries"
            )

    def __repr__(self) -> str:
        noise = self.noise if isinstance(self.noise, float) else f"<{len(self.noise)} variances>"
        shown = f"kernel={self.kernel!r}, noise={noise}, bounds={self.bounds}, mean={self.mean}"
        if self.inducing is not None:
            inducing = self.inducing if isinstance(self.inducing, int) else f"<{len(self.inducing)} inputs>"
            shown += f", inducing={inducing}, approximation={self.approximation!r}"
        if self.downweight is not None:
            shown += f", downweight={self.downweight!r}"
        return f"GP({shown})"


def _noise(noise: Any) -> float | FloatArray:
    remedy = "It is the variance of the observation noise, above 0."
    if isinstance(noise, (list, tuple)) or getattr(noise, "ndim", 0) > 0:
        variances = checks.vector(noise, "noise", positive=True, remedy=remedy)
        if len(variances) == 0:
            raise ArgumentError("noise", "must be a number or one per row of X", "no entries", remedy)
        return variances
    return checks.positive(noise, "noise", remedy)


def _downweight(downweight: Any) -> str | None:
    return None if downweight is None else checks.choice(downweight, "downweight", ("leverage",))


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Two public limits, lo < hi, or a clear error."""
    remedy = "Give public limits (lo, hi) on the outcome; there is no safe default, and y must not set them."
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ArgumentError("bounds", "must be two numbers", repr(bounds), remedy) from None
    low, high = (
        checks.number(low, "bounds[0]", remedy=remedy),
        checks.number(high, "bounds[1]", remedy=remedy),
    )
    if not low < high:
        raise ArgumentError("bounds", "must have lo < hi", repr(bounds), remedy)
    if not 1e-100 < high - low < 1e100 or high - low < 1e-9 * max(abs(low), abs(high)):
        raise ArgumentError(
            "bounds",
            "must be apart by an ordinary number, and not by a tiny share of their own size",
            repr(bounds),
            "Change y's unit or its origin.",
        )
    return low, high
