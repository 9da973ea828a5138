"""The families of kernels: stationary ones, and polynomials of the inputs."""

from __future__ import annotations

import math
import operator
import reprlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from cloakgp import checks
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels.base import Array, Kernel, full, set_frozen

Lengthscale = float | Sequence[float] | NDArray[Any]


@dataclass(frozen=True, slots=True, repr=False)
class _Scaled(Kernel):
    """A kernel that divides each input column it reads by a lengthscale."""

    lengthscale: Lengthscale
    _: KW_ONLY
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        scales = _lengthscale(self.lengthscale)
        dims = checked_dims(self.active_dims)
        if isinstance(scales, tuple) and dims is not None and len(scales) != len(dims):
            raise ArgumentError(
                "lengthscale",
                f"must have one entry per column in active_dims, {len(dims)}",
                str(len(scales)),
                "Give a single number to use the same lengthscale for all.",
            )
        set_frozen(
            self, lengthscale=scales, variance=checks.positive(self.variance, "variance"), active_dims=dims
        )

    def _columns(self, X: Array) -> list[tuple[int, float]]:
        """The columns of X that this kernel reads, each with its lengthscale."""
        width, dims = X.shape[1], dims_of(self.active_dims, X)
        if not isinstance(self.lengthscale, tuple):
            return [(column, float(self.lengthscale)) for column in dims]  # type: ignore[arg-type]
        if len(self.lengthscale) != len(dims):
            raise ArgumentError(
                "lengthscale",
                f"must have one entry per column of X, which has {width}",
                str(len(self.lengthscale)),
                "Give a single number, or choose columns with active_dims.",
            )
        return list(zip(dims, self.lengthscale, strict=True))


def checked_dims(dims: Sequence[int] | None) -> tuple[int, ...] | None:
    """Columns that a kernel reads, if they are fit to be that."""
    return None if dims is None else _active_dims(dims)


def dims_of(dims: Sequence[int] | None, X: Array) -> Sequence[int]:
    """The columns of X that a kernel reads: all if it names none."""
    width = X.shape[1]
    if dims is None:
        return range(width)
    if isinstance(dims[0], str):
        remedy = "Plan with a table that has these columns, or count columns from 0."
        raise ArgumentError("active_dims", "must count columns, where X has no names", repr(dims), remedy)
    if max(dims) >= width:
        raise ArgumentError(
            "active_dims",
            f"must name columns of X, which has {width}",
            repr(dims),
            "Columns are counted from 0.",
        )
    return dims


class Stationary(_Scaled):
    """variance · shape(r²), where r² = Σ_d ((x_d − z_d) / ℓ_d)²."""

    __slots__ = ()

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.variance

    def _matrix(self, X: Array, Z: Array) -> Array:
        values = self._shape(self._squared_distance(X, Z), array_namespace(X, Z))
        values *= self.variance
        return values

    def _diag(self, X: Array) -> Array:
        self._columns(X)  # for its checks
        return full(X, (X.shape[0],), self.variance)

    def of_gaps(self, gaps: Array) -> Array:
        """The values for differences in each column, of any shape: for many kernels of the same inputs.

        Not for periodic ones.
        """
        scales = self.lengthscale if isinstance(self.lengthscale, tuple) else len(gaps) * [self.lengthscale]
        r2 = sum((gap / scale) ** 2 for gap, scale in zip(gaps, scales, strict=True))
        return self._shape(r2, array_namespace(r2)) * self.variance

    def _squared_distance(self, X: Array, Z: Array) -> Array:
        # Here and in _shape, arrays are re-used so that few of size N × M live at once.
        total: Array = None
        for column, scale in self._columns(X):
            gap = self._gap(X[:, column][:, None] - Z[:, column][None, :])
            gap /= scale
            gap *= gap
            if total is None:
                total = gap
            else:
                total += gap
        return total

    def _gap(self, gap: Array) -> Array:
        return gap

    @abstractmethod
    def _shape(self, r2: Array, xp: Any) -> Array:
        """Must be 1 at r² = 0, and in [0, 1] with no NaN up to r² = ∞. It may overwrite `r2`."""


class EQ(Stationary):
    """Exponentiated quadratic (RBF, Gaussian) kernel: variance · exp(−r²/2), very smooth.

    Here r² = Σ_d ((x_d − z_d) / lengthscale_d)².

    Parameters
    ----------
    lengthscale : float or sequence of float
        How far apart inputs are when their outcomes stop being alike, in the inputs' unit: one number,
        or one per column (automatic relevance determination). It must come from public knowledge.
    variance : float, default 1.0
        The kernel's value at distance zero: the outcomes' prior variance.
    active_dims : sequence of int or of names, optional
        The input columns to read, counted from 0, or by the names that a plan's table has. All if absent.

    Examples
    --------
    >>> EQ(25.0, variance=662.5)
    EQ(lengthscale=25.0, variance=662.5)
    >>> EQ([1.0, 5.0], active_dims=[0, 2]) + Constant(4.0)
    EQ(lengthscale=(1.0, 5.0), variance=1.0, active_dims=(0, 2)) + Constant(variance=4.0)
    """

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 *= -0.5
        return xp.exp(r2)


class Matern12(Stationary):
    """Matérn kernel with ν = 1/2: variance · exp(−r), rough. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-xp.sqrt(r2))


class Matern32(Stationary):
    """Matérn kernel, ν = 3/2: variance · (1 + a) exp(−a), a = √3 r. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)  # exp(−√3e7) is 0 already, and ∞ would make ∞ · 0
        a = xp.sqrt(3.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a), xp)  # however it rounds, not above 1


class Matern52(Stationary):
    """Matérn kernel, ν = 5/2: variance · (1 + a + a²/3) exp(−a), a = √5 r. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)
        a = xp.sqrt(5.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a * (1.0 + a / 3.0)), xp)


@dataclass(frozen=True, slots=True, repr=False)
class Periodic(Stationary):
    """Periodic kernel: variance · exp(−2 Σ_d sin²(π |x_d − z_d| / period) / lengthscale_d²).

    Parameters
    ----------
    lengthscale, variance, active_dims
        As for :class:`EQ`, except that the lengthscale has no unit: it acts on the sine.
    period : float
        After how long the outcomes repeat, in the inputs' unit; the same for all columns.
    """

    period: float = field(kw_only=True)

    def __post_init__(self) -> None:
        Stationary.__post_init__(self)
        set_frozen(self, period=checks.positive(self.period, "period"))

    def _gap(self, gap: Array) -> Array:
        # Whole periods are dropped before the sine, which is inexact far from 0. Above 2**53 every
        # float is whole, so nothing is lost by stopping there, and ∞ − ∞ is avoided.
        xp = array_namespace(gap)
        gap = xp.abs(gap)
        gap = _at_most(2.0**53, gap / self.period, xp)
        gap = gap - xp.round(gap)
        return xp.sin(math.pi * gap)

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-2.0 * r2)


@dataclass(frozen=True, slots=True, repr=False)
class RationalQuadratic(Stationary):
    """Rational quadratic kernel: variance · (1 + r²/(2 alpha))^(−alpha), EQs of many lengthscales.

    Parameters
    ----------
    lengthscale, variance, active_dims
        As for :class:`EQ`.
    alpha : float
        Small mixes very different lengthscales; as it grows the kernel becomes :class:`EQ`.
    """

    alpha: float = field(kw_only=True)

    def __post_init__(self) -> None:
        Stationary.__post_init__(self)
        set_frozen(self, alpha=checks.positive(self.alpha, "alpha"))

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-self.alpha * xp.log1p(0.5 * r2 / self.alpha))


@dataclass(frozen=True, slots=True, repr=False)
class Linear(_Scaled):
    """Linear kernel: variance · Σ_d x_d z_d / lengthscale_d², straight lines through the origin.

    Parameters as for :class:`EQ`; the lengthscale defaults to 1.
    """

    lengthscale: Lengthscale = 1.0

    def _matrix(self, X: Array, Z: Array) -> Array:
        pairs = zip(self._scaled(X), self._scaled(Z), strict=True)
        return self.variance * self._shape(sum(x[:, None] * z[None, :] for x, z in pairs))

    def _diag(self, X: Array) -> Array:
        return self.variance * self._shape(sum(x * x for x in self._scaled(X)))

    def _scaled(self, X: Array) -> list[Array]:
        return [X[:, column] / scale for column, scale in self._columns(X)]

    def _shape(self, product: Array) -> Array:
        return product


@dataclass(frozen=True, slots=True, repr=False)
class Polynomial(Linear):
    """Polynomial kernel: variance · (Σ_d x_d z_d / lengthscale_d² + offset)^degree.

    Parameters
    ----------
    lengthscale, variance, active_dims
        As for :class:`EQ`; the lengthscale defaults to 1.
    degree : int
        The polynomials' degree, at least 1.
    offset : float, default 1.0
        At least 0; at 0 only terms of exactly this degree remain.
    """

    degree: int = field(kw_only=True)
    offset: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        Linear.__post_init__(self)
        degree = _integer(self.degree, "degree")
        if degree < 1:
            raise ArgumentError("degree", "must be at least 1", str(degree), "For degree 0 use Constant.")
        offset = checks.number(self.offset, "offset")
        if offset < 0:
            raise ArgumentError("offset", "must be at least 0", repr(offset), "Below 0 this is not a kernel.")
        set_frozen(self, degree=degree, offset=offset)

    def _shape(self, product: Array) -> Array:
        return (product + self.offset) ** float(self.degree)


def Matern(
    lengthscale: Lengthscale,
    nu: float = 2.5,
    *,
    variance: float = 1.0,
    active_dims: Sequence[int] | None = None,
) -> Kernel:
    """Return :class:`Matern12`, :class:`Matern32` or :class:`Matern52`.

    Parameters
    ----------
    lengthscale, variance, active_dims
        As for :class:`EQ`.
    nu : {0.5, 1.5, 2.5}, default 2.5
        The smoothness: larger is smoother.
    """
    kinds: dict[float, type[Stationary]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}
    kind = kinds.get(checks.number(nu, "nu"))
    if kind is None:
        raise ArgumentError("nu", "must be 0.5, 1.5 or 2.5", repr(nu), "For a very smooth kernel use EQ.")
    return kind(lengthscale, variance=variance, active_dims=active_dims)


def _lengthscale(value: Any) -> float | tuple[float, ...]:
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0:
        scales = tuple(checks.vector(value, "lengthscale", positive=True).tolist())
        if not scales:
            raise ArgumentError("lengthscale", "must be a number or one per input column", "no entries")
        return scales
    return checks.positive(value, "lengthscale")


def _active_dims(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)) and value and all(isinstance(name, str) for name in value):
        if len(set(value)) < len(value):
            raise ArgumentError("active_dims", "must be distinct columns", reprlib.repr(value))
        return tuple(value)  # names, which a plan makes numbers by its table
    try:
        dims = tuple(_integer(column, "active_dims") for column in value)
    except TypeError:
        raise ArgumentTypeError(
            "active_dims", "must be a sequence of column indices such as [0, 2]", reprlib.repr(value)
        ) from None
    if not dims or min(dims) < 0 or len(set(dims)) < len(dims):
        raise ArgumentError(
            "active_dims", "must be distinct columns counted from 0, at least one", repr(dims)
        )
    return dims


def _integer(value: Any, name: str) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(name, "must be a whole number", reprlib.repr(value)) from None
    if abs(result) >= 2**31:
        raise ArgumentError(name, "must be below 2**31 in size", reprlib.repr(result))
    return result


def _at_most(limit: float, values: Array, xp: Any) -> Array:
    return xp.minimum(values, xp.asarray(limit, dtype=values.dtype, device=device(values)))
