"""Bounds and prior means that differ from row to row: each a number, an array, or a function of X.

A row's bounds are its window. All of it is public, like X: an array that was made from y would publish y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.merging import Groups, group
from cloakgp.data.passes import sweep

Given = float | FloatArray | Callable[[FloatArray], Any]
"""A number for all rows, one for each row of X, or a function of X."""

_UNIT = "It is in y's unit, and the middle of the bounds if it is left out."
_PUBLIC = "Give public limits (lo, hi) on the outcome; there is no safe default, and y must not set them."
_CALLABLE = "Give mean= as a number, or as a function of X that knows it everywhere."


def as_given(value: Any, name: str, remedy: str = "") -> Given:
    """A number, a vector or a function, or a clear error. A vector's numbers are not quoted."""
    if callable(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0:
        return checks.vector(value, name, remedy=remedy)
    return checks.number(value, name, remedy=remedy)


def as_bounds(bounds: Any) -> tuple[Given, Given]:
    """Two public limits, each a number, one per row, or a function of X; or a clear error."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        got = type(bounds).__name__ if np.ndim(bounds) > 1 or callable(bounds) else repr(bounds)
        raise ArgumentError("bounds", "must be two numbers", got, _PUBLIC) from None
    low, high = as_given(low, "bounds[0]", _PUBLIC), as_given(high, "bounds[1]", _PUBLIC)
    if isinstance(low, np.ndarray) and isinstance(high, np.ndarray) and len(low) != len(high):
        raise ArgumentError(
            "bounds", "must have as many lower as upper limits", f"{len(low)} and {len(high)}", _PUBLIC
        )
    if not callable(low) and not callable(high):
        _check_apart(low, high)
    return low, high


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Two public limits, lo < hi, or a clear error."""
    low, high = as_bounds(bounds)
    if not isinstance(low, float) or not isinstance(high, float):
        raise ArgumentError("bounds", "must be two numbers", "limits of each row", _PUBLIC)
    return low, high


def _check_apart(low: float | FloatArray, high: float | FloatArray) -> None:
    """Raise unless lo < hi, by an ordinary number; of many rows it says which, and not what it has."""
    lower, upper = np.broadcast_arrays(low, high)
    with np.errstate(over="ignore"):
        width, size = upper - lower, np.maximum(np.abs(lower), np.abs(upper))
    each, got = (" in every row", "") if width.ndim else ("", f"({low!r}, {high!r})")
    if not (width > 0).all():
        row = f"; row {int(np.argmin(width > 0))} has not" if width.ndim else ""
        raise ArgumentError("bounds", f"must have lo < hi{each}{row}", got, _PUBLIC)
    if not 1e-100 < width.min() <= width.max() < 1e100 or (width < 1e-9 * size).any():
        expected = f"must be apart by an ordinary number{each}, and not by a tiny share of their own size"
        raise ArgumentError("bounds", expected, got, "Change y's unit or its origin.")
    if width.min() < 1e-6 * width.max():  # a narrower row's integers would be mostly rounding
        raise ArgumentError(
            "bounds",
            "must not be a million times narrower in one row than in another",
            remedy="Widen the narrowest; its row would not gain from being narrower.",
        )


def check_mean(low: Any, high: Any, mean: Any) -> None:
    """Raise where a prior mean is so far from bounds that what is between them is lost in rounding."""
    if not (distances((low, high, mean)) <= 1e9 * (high - low)).all():
        raise ArgumentError(
            "mean", "must be no farther from the bounds than a billion times their width", remedy=_UNIT
        )


def check_variance(variances: FloatArray, outcome_std: float) -> None:
    """Raise where f may vary so much more than outcomes do that these are lost in rounding."""
    std, most = float(np.sqrt(np.max(np.abs(variances)))), 30_000  # beyond, rounding shows in files
    if not std <= most * outcome_std:
        raise ArgumentError(
            "kernel",
            f"must give f a std of at most {most:,} times the bounds' width or noise's std everywhere",
            f"{std:.1e}",
            "If few inputs are far from all others, move them nearer by public knowledge, or use a kernel "
            "with the same variance everywhere, such as EQ; else bring its variance and the bounds to a "
            "common scale.",
        )


def distances(windows: Any) -> Any:
    """How far an outcome within each window can be from its mean, given lower, upper and mean."""
    lower, upper, mean = windows
    return np.maximum(np.abs(lower - mean), np.abs(upper - mean))


def of_groups(values: FloatArray, groups: Groups | None) -> FloatArray:
    """What groups have of what there is for each row; or for each cell already."""
    return values if groups is None or len(values) == len(groups.counts) else values[groups.first]


def evaluated(function: Callable[[FloatArray], Any], name: str, X: Any) -> FloatArray:
    """(n,) what a function of X gives, checked."""
    values = np.asarray(function(np.asarray(X, dtype=np.float64)))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 0:
        values = np.broadcast_to(values, (len(X),))
    remedy = "As a function it takes (n, D) inputs and returns n finite numbers."
    return checks.vector(values, name, len(X), remedy=remedy)


def noise_at(function: Callable[[FloatArray], Any], X: Any) -> FloatArray:
    """(n,) variances that a function of X gives, which is asked a chunk of rows at a time."""
    parts = sweep(partial(_evaluated, [("noise", function)]), X, label="evaluating noise")
    remedy = "As a function it takes (n, D) inputs and returns n variances."
    return checks.vector(np.concatenate(list(parts))[:, 0], "noise", positive=True, remedy=remedy)


class Middle:
    """The middle of bounds that differ from row to row: the prior mean where none is given."""

    def __init__(self, low: Given, high: Given) -> None:
        self.low, self.high = low, high

    @property
    def everywhere(self) -> bool:
        """Whether it is known beyond the rows of X."""
        return not isinstance(self.low, np.ndarray) and not isinstance(self.high, np.ndarray)

    def __call__(self, X: FloatArray) -> FloatArray:
        low, high = (evaluated(one, "bounds", X) if callable(one) else one for one in (self.low, self.high))
        return np.asarray(low + (high - low) / 2)


@dataclass(frozen=True, eq=False)
class RowMeans:
    """A prior mean that is known at the rows of X and at test points, and elsewhere by its function."""

    rows: FloatArray  # (N,)
    function: Callable[[FloatArray], Any] | None = None
    X: Any = None
    """(N, D) where there is no function: what is looked up there; None if a file does not hold it."""
    X_star: FloatArray | None = None
    star: FloatArray | None = None  # (P,)

    def __call__(self, X: FloatArray) -> FloatArray:
        if self.function is not None:
            return evaluated(self.function, "mean", X)
        result = np.full(len(X), np.nan)
        for known, values in ((self.X_star, self.star), (self.X, self.rows)):
            left = np.isnan(result)
            if known is not None and left.any():
                result[left] = _looked_up(X[left], known, values)
        if np.isnan(result).any():
            raise ArgumentError(
                "mean",
                "was given per row of X, or left to be the middle of bounds that were, so it is known only "
                "there; an input asked about is no row of X",
                remedy=_CALLABLE,
            )
        return result


def _looked_up(points: FloatArray, X: Any, means: Any) -> FloatArray:
    """What those rows of X have that equal these points; NaN where there is none."""
    low, high = np.full(len(points), np.inf), np.full(len(points), -np.inf)
    for least, most in sweep(partial(_found, points), X, means, label="looking for rows"):
        low, high = np.minimum(low, least), np.maximum(high, most)
    if (low < high).any():
        raise ArgumentError(
            "mean",
            "was given per row of X, and rows with the same inputs have different ones, so there is none "
            "for an input that is asked about",
            remedy=_CALLABLE,
        )
    return np.where(np.isfinite(low), low, np.nan)


def _found(points: FloatArray, X: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest value of a chunk's rows that equal each point."""
    n, both = len(points), group(np.vstack([points, X]))
    if both is None:
        return np.full(n, np.inf), np.full(n, -np.inf)
    low, high = np.full(len(both.counts), np.inf), np.full(len(both.counts), -np.inf)
    np.minimum.at(low, both.labels[n:], values)
    np.maximum.at(high, both.labels[n:], values)
    return low[both.labels[:n]], high[both.labels[:n]]


def at_rows(
    bounds: tuple[Given, Given], mean: Given, X: Any, X_star: FloatArray | None
) -> tuple[tuple[float | FloatArray, float | FloatArray], float | RowMeans]:
    """Bounds and mean at the rows of X: numbers where all rows have the same, and else arrays."""
    known = mean.rows if isinstance(mean, RowMeans) and mean.function is None else mean
    own = not isinstance(known, Middle)
    low, high, level = _columns([*bounds, known if own else 0.0], X)
    _check_apart(low, high)
    if isinstance(low, np.ndarray) or isinstance(high, np.ndarray):
        low, high = (np.broadcast_to(one, (len(X),)) for one in (low, high))
        low, high = (_one_number(low), _one_number(high)) if _alike(low) and _alike(high) else (low, high)
    limits = (low, high) if isinstance(low, float) else (frozen(low), frozen(np.asarray(high)))
    if not own:
        level = low + (high - low) / 2
    elif isinstance(low, np.ndarray) or isinstance(level, np.ndarray):  # numbers were looked at before
        check_mean(low, high, level)
    if isinstance(level, float) and not callable(known):
        return limits, level
    rows = np.broadcast_to(np.asarray(level), (len(X),))
    function = known if callable(known) else None
    if isinstance(known, Middle) and not known.everywhere:
        function = None
    if function is None and _alike(rows):
        return limits, _one_number(rows)
    if isinstance(function, RowMeans):
        function = function.function
    made = RowMeans(frozen(rows), function, None if function is not None else X)
    if X_star is None:
        return limits, made
    return limits, RowMeans(made.rows, function, made.X, X_star, frozen(made(X_star)))


def _columns(given: Sequence[Given], X: Any) -> list[float | FloatArray]:
    """Each at the rows of X; functions are asked a chunk of rows at a time."""
    names = ("bounds[0]", "bounds[1]", "mean")
    functions = [(name, one) for name, one in zip(names, given, strict=True) if callable(one)]
    if not functions:
        return [one for one in given if not callable(one)]
    parts = sweep(partial(_evaluated, functions), X, label="evaluating bounds and mean")
    table = iter(np.concatenate(list(parts)).T)
    return [next(table) if callable(one) else one for one in given]


def _evaluated(functions: Sequence[tuple[str, Callable[[FloatArray], Any]]], X: FloatArray) -> FloatArray:
    return np.column_stack([evaluated(function, name, X) for name, function in functions])


def _alike(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def _one_number(values: FloatArray) -> float:
    return float(values[0])
