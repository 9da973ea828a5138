"""The kernel of categories, whose levels are equally far apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from array_api_compat import array_namespace

from cloakgp import checks
from cloakgp.errors import ArgumentError
from cloakgp.kernels.base import Array, Kernel, full, set_frozen
from cloakgp.kernels.families import checked_dims, dims_of


@dataclass(frozen=True, slots=True, repr=False)
class Category(Kernel):
    """variance · correlation^(number of columns in which two inputs differ).

    Parameters
    ----------
    correlation : float
        Of two different levels: at least 0, below 1.
    variance : float
    active_dims : columns, optional
        Those that hold levels, as numbers of any kind; all if absent.
    """

    correlation: float
    _: KW_ONLY
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        correlation = checks.number(self.correlation, "correlation")
        if not 0 <= correlation < 1:
            raise ArgumentError("correlation", "must be at least 0 and below 1", repr(self.correlation))
        set_frozen(
            self,
            correlation=correlation,
            variance=checks.positive(self.variance, "variance"),
            active_dims=checked_dims(self.active_dims),
        )

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.variance

    def _matrix(self, X: Array, Z: Array) -> Array:
        xp, result = array_namespace(X, Z), full(X, (X.shape[0], Z.shape[0]), self.variance)
        for column in dims_of(self.active_dims, X):
            same = X[:, column, None] == Z[None, :, column]
            result = xp.where(same, result, result * self.correlation)
        return result

    def _diag(self, X: Array) -> Array:
        dims_of(self.active_dims, X)
        return full(X, (X.shape[0],), self.variance)
