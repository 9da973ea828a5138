"""The kernel of categories, whose levels are equally far apart."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from array_api_compat import array_namespace

from cloakgp import checks
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels.base import Array, Combination, Kernel, full, set_frozen
from cloakgp.kernels.families import checked_dims, dims_of

MOST_LEVELS = 4096
LONGEST_LEVEL = 200
"""Characters of a level's name."""
_REMEDY = 'Give names, such as ["north", "south"], or how many levels there are.'


@dataclass(frozen=True, slots=True, repr=False)
class Category(Kernel):
    """variance if two inputs have the same level, variance · correlation if not.

    Inputs hold levels as numbers of any kind, such as 0, 1, 2: only whether two are equal counts, so a level
    that was never seen is like any other. Of several columns, correlation^(how many of them differ).

    Parameters
    ----------
    correlation : float
        Of two different levels, from 0 to 1.
    levels : names or int, optional
        What the numbers 0, 1, 2, ... stand for, or how many there are. Public: files hold them.
    variance : float
    active_dims : columns, optional
        Those that hold levels; all if absent.

    Examples
    --------
    >>> Category(0.25, levels=["red", "green"], variance=4.0)([[0.0], [1.0]])
    array([[4., 1.],
           [1., 4.]])
    """

    correlation: float = 0.0
    _: KW_ONLY
    levels: Sequence[Any] | int | None = None
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        correlation = checks.number(self.correlation, "correlation")
        if not 0 <= correlation <= 1:
            raise ArgumentError("correlation", "must be at least 0 and at most 1", repr(self.correlation))
        set_frozen(
            self,
            correlation=correlation,
            levels=_levels(self.levels),
            variance=checks.positive(self.variance, "variance"),
            active_dims=checked_dims(self.active_dims),
        )

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.variance

    def _matrix(self, X: Array, Z: Array) -> Array:
        xp, result = array_namespace(X, Z), full(X, (X.shape[0], Z.shape[0]), self.variance)
        for column in dims_of(self.active_dims, X):
            same = X[:, column][:, None] == Z[:, column][None, :]
            result = xp.where(same, result, result * self.correlation)
        return result

    def _diag(self, X: Array) -> Array:
        dims_of(self.active_dims, X)
        return full(X, (X.shape[0],), self.variance)


def category_columns(kernel: Kernel, columns: int) -> tuple[int, ...]:
    """Which of so many columns hold levels, by the categories in a kernel."""
    if isinstance(kernel, Combination):
        found = (category_columns(part, columns) for part in kernel.kernels)
        return tuple(sorted({column for part in found for column in part}))
    if not isinstance(kernel, Category):
        return ()
    return tuple(range(columns)) if kernel.active_dims is None else tuple(sorted(kernel.active_dims))


def _levels(levels: Any) -> tuple[str | int, ...] | int | None:
    if levels is None:
        return None
    if isinstance(levels, (list, tuple)):
        number: Any = len(levels)
    elif isinstance(levels, int) and not isinstance(levels, bool):
        number = levels
    else:
        raise ArgumentTypeError("levels", "must be names or their number", reprlib.repr(levels), _REMEDY)
    if not 1 <= number <= MOST_LEVELS:
        raise ArgumentError("levels", f"must be at least 1 and at most {MOST_LEVELS}", str(number), _REMEDY)
    if isinstance(levels, int):
        return levels
    for level in levels:
        if type(level) not in (str, int) or len(str(level)) > LONGEST_LEVEL or not str(level).isprintable():
            expected = f"must be whole numbers or printable texts of at most {LONGEST_LEVEL} characters"
            raise ArgumentError("levels", expected, reprlib.repr(level), _REMEDY)
    if len(set(levels)) < number:
        raise ArgumentError("levels", "must differ from each other", reprlib.repr(levels))
    return tuple(levels)
