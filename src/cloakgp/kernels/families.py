"""The families of kernels: stationary ones, polynomials of the inputs, and levels of categories."""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels.base import (
    SKLEARN,
    Array,
    Constant,
    Kernel,
    Product,
    Sum,
    as_kernel,
    full,
    registered,
    set_frozen,
)

_LARGEST = 2**31 - 1  # whole number that a spec holds
Lengthscale = float | Sequence[float] | NDArray[Any]


class OnColumns(Kernel):
    """A kernel between 0 and its variance, of the columns that it names."""

    __slots__ = ()
    variance: float
    active_dims: Sequence[int] | None

    @property
    def range(self) -> tuple[float, float] | None:
        return 0.0, self.variance

    def number_columns(self, columns: int) -> tuple[int, ...]:
        return tuple(range(columns)) if self.active_dims is None else tuple(self.active_dims)

    def with_places(self, place: Callable[[str], int]) -> Kernel:
        names = self.active_dims
        if not names or not isinstance(names[0], str):
            return self
        return self.with_params(active_dims=[place(str(name)) for name in names])

    def _store(self, **checked: Any) -> None:
        """Keep the parameters, these and its own, checked."""
        variance = checks.positive(self.variance, "variance")
        set_frozen(self, **checked, variance=variance, active_dims=_active_dims(self.active_dims))

    def _check_entries(self, entries: int | None, of: str, X: Array | None = None) -> None:
        """Raise unless a lengthscale has as many entries as there are columns; None suits any number."""
        dims = self.active_dims if X is None else self._dims(X)
        if entries is None or dims is None or entries == len(dims):
            return
        where = f"in active_dims, {len(dims)}" if X is None else f"of X, which has {X.shape[1]}"
        remedy = "Choose columns with active_dims, or give what is the same for all of them."
        raise ArgumentError("lengthscale", f"must have {of} per column {where}", str(entries), remedy)

    def _dims(self, X: Array) -> Sequence[int]:
        """The columns of X that the kernel reads: all if it names none."""
        width, dims = X.shape[1], self.active_dims
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

    def _columns(self, X: Array) -> Any:
        """What the kernel reads of X, checked."""
        return self._dims(X)

    def _diag(self, X: Array) -> Array:
        self._columns(X)  # for its checks
        return full(X, (X.shape[0],), self.variance)


@dataclass(frozen=True, slots=True, repr=False)
class _Scaled(OnColumns):
    """A kernel that divides each input column it reads by a lengthscale."""

    lengthscale: Lengthscale
    _: KW_ONLY
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._store(lengthscale=_lengthscale(self.lengthscale))
        self._check_entries(self._n_scales, "one entry")

    @property
    def _n_scales(self) -> int | None:
        """How many lengthscales there are; None if one is for all columns."""
        return len(self.lengthscale) if isinstance(self.lengthscale, tuple) else None

    def _columns(self, X: Array) -> list[tuple[int, float]]:
        """The columns of X that this kernel reads, each with its lengthscale."""
        self._check_entries(self._n_scales, "one entry", X)
        dims = self._dims(X)
        return list(zip(dims, self._scales(len(dims)), strict=True))

    def _scales(self, columns: int) -> Any:
        return columns * [self.lengthscale] if self._n_scales is None else self.lengthscale


class Stationary(_Scaled):
    """variance · shape(r²), where r² = Σ_d ((x_d − z_d) / ℓ_d)²."""

    __slots__ = ()

    def _matrix(self, X: Array, Z: Array) -> Array:
        values = self._shape(self._squared_distance(X, Z), array_namespace(X, Z))
        values *= self.variance
        return values

    def of_gaps(self, gaps: Array) -> Array:
        """The values for differences in each column, of any shape: for many kernels of the same inputs.

        Not for periodic ones.
        """
        r2 = sum((gap / scale) ** 2 for gap, scale in zip(gaps, self._scales(len(gaps)), strict=True))
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


@registered
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

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 *= -0.5
        return xp.exp(r2)


@registered
class Matern12(Stationary):
    """Matérn kernel with ν = 1/2: variance · exp(−r), rough. Parameters as for :class:`EQ`."""

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-xp.sqrt(r2))


@registered
class Matern32(Stationary):
    """Matérn kernel, ν = 3/2: variance · (1 + a) exp(−a), a = √3 r. Parameters as for :class:`EQ`."""

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)  # exp(−√3e7) is 0 already, and ∞ would make ∞ · 0
        a = xp.sqrt(3.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a), xp)  # however it rounds, not above 1


@registered
class Matern52(Stationary):
    """Matérn kernel, ν = 5/2: variance · (1 + a + a²/3) exp(−a), a = √5 r. Parameters as for :class:`EQ`."""

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)
        a = xp.sqrt(5.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a * (1.0 + a / 3.0)), xp)


@registered
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


@registered
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


@registered
class Linear(_Scaled):
    """Linear kernel: variance · Σ_d x_d z_d / lengthscale_d², straight lines through the origin.

    Parameters as for :class:`EQ`; the lengthscale defaults to 1.
    """

    lengthscale: Lengthscale = 1.0

    @property
    def range(self) -> None:
        return None  # it grows with the inputs

    def _matrix(self, X: Array, Z: Array) -> Array:
        pairs = zip(self._scaled(X), self._scaled(Z), strict=True)
        return self.variance * self._shape(sum(x[:, None] * z[None, :] for x, z in pairs))

    def _diag(self, X: Array) -> Array:
        return self.variance * self._shape(sum(x * x for x in self._scaled(X)))

    def _scaled(self, X: Array) -> list[Array]:
        return [X[:, column] / scale for column, scale in self._columns(X)]

    def _shape(self, product: Array) -> Array:
        return product


@registered
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
        degree = checks.whole(self.degree, "degree", 1, _LARGEST, "For degree 0 use Constant.")
        offset = checks.number(self.offset, "offset", least=0.0, remedy="Below 0 this is not a kernel.")
        set_frozen(self, degree=degree, offset=offset)

    def _shape(self, product: Array) -> Array:
        return (product + self.offset) ** float(self.degree)


@registered
class Category(OnColumns):
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
    _texts: ClassVar[tuple[str, ...]] = ("levels",)

    def __post_init__(self) -> None:
        correlation = checks.number(self.correlation, "correlation", least=0.0, most=1.0)
        self._store(correlation=correlation, levels=_levels(self.levels))

    def category_columns(self, columns: int) -> tuple[int, ...]:
        return tuple(sorted(OnColumns.number_columns(self, columns)))

    def number_columns(self, columns: int) -> tuple[int, ...]:
        return ()

    def _matrix(self, X: Array, Z: Array) -> Array:
        xp, result = array_namespace(X, Z), full(X, (X.shape[0], Z.shape[0]), self.variance)
        for column in self._dims(X):
            same = X[:, column][:, None] == Z[:, column][None, :]
            result = xp.where(same, result, result * self.correlation)
        return result


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
    kind: type[Stationary] | None = _MATERN.get(checks.number(nu, "nu"))
    if kind is None:
        raise ArgumentError("nu", "must be 0.5, 1.5 or 2.5", repr(nu), "For a very smooth kernel use EQ.")
    return kind(lengthscale, variance=variance, active_dims=active_dims)


_MATERN: dict[float, type[Stationary]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}


def _constant(theirs: Any) -> Kernel:
    # RBF() + EQ(1.0) is scikit-learn's own sum, which takes what it does not know for a constant.
    value = theirs.constant_value
    return as_kernel(value) if callable(value) else Constant(value)


def _matern(theirs: Any) -> Kernel | None:
    kind = (_MATERN | {math.inf: EQ}).get(theirs.nu)
    return None if kind is None else kind(np.squeeze(theirs.length_scale))


def _power(theirs: Any) -> Kernel | None:
    base, exponent = as_kernel(theirs.kernel), theirs.exponent
    if exponent not in range(1, 11):  # a few factors are written out
        return None
    if type(theirs.kernel).__name__ == "DotProduct":
        return Polynomial(degree=int(exponent), offset=theirs.kernel.sigma_0**2)
    return base if exponent == 1 else Product([base] * int(exponent))


# A lengthscale with one entry is for all columns; but a periodic one's is for one, so that more are refused:
# in more, scikit-learn takes the sine of the Euclidean distance, which is not positive semi-definite.
SKLEARN |= {
    "RBF": lambda theirs: EQ(np.squeeze(theirs.length_scale)),
    "Matern": _matern,
    "RationalQuadratic": lambda theirs: RationalQuadratic(theirs.length_scale, alpha=theirs.alpha),
    "ExpSineSquared": lambda theirs: Periodic((theirs.length_scale,), period=theirs.periodicity),
    "DotProduct": lambda theirs: Linear() + Constant(theirs.sigma_0**2) if theirs.sigma_0 else Linear(),
    "ConstantKernel": _constant,
    "Sum": lambda theirs: Sum((theirs.k1, theirs.k2)),
    "Product": lambda theirs: Product((theirs.k1, theirs.k2)),
    "Exponentiation": _power,
}


def _lengthscale(value: Any) -> float | tuple[float, ...]:
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0:
        scales = tuple(checks.vector(value, "lengthscale", positive=True).tolist())
        if not scales:
            raise ArgumentError("lengthscale", "must be a number or one per input column", "no entries")
        return scales
    return checks.positive(value, "lengthscale")


def _active_dims(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and value and all(isinstance(name, str) for name in value):
        if len(set(value)) < len(value):
            raise ArgumentError("active_dims", "must be distinct columns", reprlib.repr(value))
        return tuple(value)  # names, which a plan makes numbers by its table
    if np.ndim(value) != 1:
        expected = "must be a sequence of column indices such as [0, 2]"
        raise ArgumentTypeError("active_dims", expected, reprlib.repr(value))
    dims = tuple(checks.whole(column, "active_dims", 0, _LARGEST) for column in value)
    if not dims or len(set(dims)) < len(dims):
        raise ArgumentError("active_dims", "must be distinct columns, at least one", repr(dims))
    return dims


def _levels(levels: Any) -> tuple[str | int, ...] | int | None:
    remedy = 'Give names, such as ["north", "south"], or how many levels there are.'
    if levels is None:
        return None
    named = isinstance(levels, (list, tuple))
    number = checks.whole(len(levels) if named else levels, "levels", 1, 4096, remedy)
    if not named:
        return number
    for level in levels:
        if type(level) not in (str, int) or len(str(level)) > 200 or not str(level).isprintable():
            expected = "must be whole numbers or printable texts of at most 200 characters"
            raise ArgumentError("levels", expected, reprlib.repr(level), remedy)
    if len(set(levels)) < number:
        raise ArgumentError("levels", "must differ from each other", reprlib.repr(levels))
    return tuple(levels)


def _at_most(limit: float, values: Array, xp: Any) -> Array:
    return xp.minimum(values, xp.asarray(limit, dtype=values.dtype, device=device(values)))
