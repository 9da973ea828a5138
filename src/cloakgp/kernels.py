"""Kernels: k(X, Z) says how alike the outcomes at inputs X and Z are, before any outcome is seen.

A kernel is a small frozen value. It is built from public numbers, compares and hashes by those
numbers, prints as the Python that rebuilds it, and is stored as plain JSON (:meth:`Kernel.to_spec`,
:func:`from_spec`), never as a pickle. Kernels add and multiply with ``+`` and ``*``, and any function
``k(X, Z)``, a scikit-learn kernel included, can take part.

The arithmetic follows the array API standard, so inputs may be numpy arrays or torch tensors, and the
kernel matrix comes back as the same kind. Distances are summed from coordinate differences, never
expanded as |x|² + |z|² − 2 x·z: the matrix is then exactly symmetric and its diagonal exact.
"""

from __future__ import annotations

import copy
import math
import operator
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device
from numpy.typing import NDArray

from cloakgp import checks

Array = Any  # a numpy array, a torch tensor, or another array of the array API standard
Lengthscale = float | Sequence[float] | NDArray[Any]

_IN_CACHE = 2**16  # entries of a matrix block
MAX_DEPTH = 32  # sums inside products inside sums ...: more than this is a mistake or an attack


class Kernel(ABC):
    """What every kernel can do; use a subclass, or :class:`Custom` for a function of your own.

    ``kernel(X)`` and ``kernel(X, Z)`` give the kernel matrix, ``kernel.diag(X)`` its diagonal.
    ``+`` and ``*`` combine kernels with kernels and with functions ``k(X, Z)``; ``*`` also scales by a
    positive number. Put the cloakgp kernel first when the other is a scikit-learn kernel:
    ``RBF() + EQ(1.0)`` is scikit-learn's own sum, which takes `EQ` for a number, and
    :func:`as_kernel` rejects it. ``EQ(1.0) + RBF()`` and ``as_kernel(RBF()) + EQ(1.0)`` are right.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]  # every subclass is a frozen dataclass
    __array_ufunc__ = None  # so that np.float64(2) * kernel asks the kernel, not numpy

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return the kernel matrix between the rows of `X` and the rows of `Z`.

        Parameters
        ----------
        X : array of shape (N, D)
            Inputs, one per row. A vector is read as one column.
        Z : array of shape (M, D), optional
            Other inputs; `X` again if absent.

        Returns
        -------
        array of shape (N, M)
        """
        same = Z is None or Z is X
        X = _inputs(X, "X")
        Z = X if same else _inputs(Z, "Z", X.shape[1])
        array_namespace(X, Z)  # a TypeError if one is numpy's and the other torch's
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # far apart: simply 0
            return self._finite(self._by_rows(X, Z))

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for each row x of `X`, shape (N,), without the N × N matrix."""
        X = _inputs(X, "X")
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self._finite(self._diag(X))

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and highest value the kernel can take on any inputs, or None if not known."""
        return None

    def to_spec(self) -> dict[str, Any]:
        """Return a description in plain JSON types, from which :func:`from_spec` rebuilds the kernel."""
        spec: dict[str, Any] = {"kind": type(self).__name__}
        for f in fields(self):
            value = getattr(self, f.name)
            spec[f.name] = list(value) if isinstance(value, tuple) else value
        return spec

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self)}
        listed = ", ".join(f"{name}={value!r}" for name, value in shown.items() if value is not None)
        return f"{type(self).__name__}({listed})"

    def __add__(self, other: Any) -> Kernel:
        return Sum((self, as_kernel(other)))

    def __radd__(self, other: Any) -> Kernel:
        return Sum((as_kernel(other), self))

    def __mul__(self, other: Any) -> Kernel:
        return Product((self, _factor(other)))

    def __rmul__(self, other: Any) -> Kernel:
        return Product((_factor(other), self))

    def _by_rows(self, X: Array, Z: Array) -> Array:
        """The matrix, a few rows at a time where that keeps temporaries in the processor's cache."""
        rows, columns = X.shape[0], Z.shape[0]
        if not is_numpy_array(X) or rows * columns <= _IN_CACHE or not self._pointwise:
            return self._matrix(X, Z)
        result = np.empty((rows, columns))
        step = max(1, _IN_CACHE // columns)
        for start in range(0, rows, step):
            result[start : start + step] = self._matrix(X[start : start + step], Z)
        return result

    @property
    def _pointwise(self) -> bool:
        """Whether each entry depends on its own two inputs alone, and not on what else is asked."""
        return True

    @abstractmethod
    def _matrix(self, X: Array, Z: Array) -> Array:
        """The matrix for checked inputs; `Z` is the very object `X` when they are the same inputs."""

    @abstractmethod
    def _diag(self, X: Array) -> Array:
        """The diagonal for checked inputs."""

    def _finite(self, values: Array) -> Array:
        if self.range is not None and math.isfinite(self.range[1]):
            return values
        xp = array_namespace(values)
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(
                f"kernel must be finite on these inputs; {self!r} gave a NaN or an infinity. "
                "Bring the input columns to a common scale first, or use a larger lengthscale."
            )
        return values


@dataclass(frozen=True, slots=True, repr=False)
class _Scaled(Kernel):
    """A kernel that divides each input column it reads by a lengthscale."""

    lengthscale: Lengthscale
    _: KW_ONLY
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        scales = _lengthscale(self.lengthscale)
        dims = None if self.active_dims is None else _active_dims(self.active_dims)
        if isinstance(scales, tuple) and dims is not None and len(scales) != len(dims):
            raise ValueError(
                f"lengthscale must have one entry per column in active_dims, {len(dims)}; got {len(scales)}. "
                "Give a single number to use the same lengthscale for all."
            )
        _set(self, lengthscale=scales, variance=checks.positive(self.variance, "variance"), active_dims=dims)

    def _columns(self, X: Array) -> list[tuple[int, float]]:
        """The columns of X that this kernel reads, each with its lengthscale."""
        width = X.shape[1]
        dims = range(width) if self.active_dims is None else self.active_dims
        if max(dims) >= width:
            raise ValueError(
                f"active_dims must name columns of X, which has {width}; got {self.active_dims!r}. "
                "Columns are counted from 0."
            )
        if not isinstance(self.lengthscale, tuple):
            return [(column, float(self.lengthscale)) for column in dims]  # type: ignore[arg-type]
        if len(self.lengthscale) != len(dims):
            raise ValueError(
                f"lengthscale must have one entry per column of X, which has {width}; got "
                f"{len(self.lengthscale)}. Give a single number, or choose columns with active_dims."
            )
        return list(zip(dims, self.lengthscale, strict=True))


class _Stationary(_Scaled):
    """variance · shape(r²), where r² = Σ_d ((x_d − z_d) / ℓ_d)²."""

    __slots__ = ()

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.variance

    def _matrix(self, X: Array, Z: Array) -> Array:
        return self.variance * self._shape(self._squared_distance(X, Z), array_namespace(X, Z))

    def _diag(self, X: Array) -> Array:
        self._columns(X)  # for its checks
        return _full(X, (X.shape[0],), self.variance)

    def _squared_distance(self, X: Array, Z: Array) -> Array:
        # Here and in _shape, names are re-used and deleted so that few N × M arrays live at once.
        total: Array = 0.0
        for column, scale in self._columns(X):
            gap = self._gap(X[:, column][:, None] - Z[:, column][None, :]) / scale
            gap = gap * gap
            total += gap
            del gap
        return total

    def _gap(self, gap: Array) -> Array:
        return gap

    @abstractmethod
    def _shape(self, r2: Array, xp: Any) -> Array:
        """Must be 1 at r² = 0, and in [0, 1] with no NaN up to r² = ∞."""


class EQ(_Stationary):
    """Exponentiated quadratic (RBF, Gaussian) kernel: variance · exp(−r²/2), very smooth.

    Here r² = Σ_d ((x_d − z_d) / lengthscale_d)².

    Parameters
    ----------
    lengthscale : float or sequence of float
        How far apart inputs are when their outcomes stop being alike, in the inputs' unit: one number,
        or one per column (automatic relevance determination). It must come from public knowledge.
    variance : float, default 1.0
        The kernel's value at distance zero: the outcomes' prior variance.
    active_dims : sequence of int, optional
        The input columns to read, counted from 0. All of them if absent.

    Examples
    --------
    >>> EQ(25.0, variance=662.5)
    EQ(lengthscale=25.0, variance=662.5)
    >>> EQ([1.0, 5.0], active_dims=[0, 2]) + Constant(4.0)
    EQ(lengthscale=(1.0, 5.0), variance=1.0, active_dims=(0, 2)) + Constant(variance=4.0)
    """

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-0.5 * r2)


class Matern12(_Stationary):
    """Matérn kernel with ν = 1/2: variance · exp(−r), rough. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        return xp.exp(-xp.sqrt(r2))


class Matern32(_Stationary):
    """Matérn kernel, ν = 3/2: variance · (1 + a) exp(−a), a = √3 r. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)  # exp(−√3e7) is 0 already, and ∞ would make ∞ · 0
        a = xp.sqrt(3.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a), xp)  # however it rounds, not above 1


class Matern52(_Stationary):
    """Matérn kernel, ν = 5/2: variance · (1 + a + a²/3) exp(−a), a = √5 r. Parameters as for :class:`EQ`."""

    __slots__ = ()

    def _shape(self, r2: Array, xp: Any) -> Array:
        r2 = _at_most(1e7, r2, xp)
        a = xp.sqrt(5.0 * r2)
        del r2
        return _at_most(1.0, xp.exp(-a) * (1.0 + a * (1.0 + a / 3.0)), xp)


@dataclass(frozen=True, slots=True, repr=False)
class Periodic(_Stationary):
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
        _Stationary.__post_init__(self)
        _set(self, period=checks.positive(self.period, "period"))

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
class RationalQuadratic(_Stationary):
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
        _Stationary.__post_init__(self)
        _set(self, alpha=checks.positive(self.alpha, "alpha"))

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
            raise ValueError(f"degree must be at least 1; got {degree}. For degree 0 use Constant.")
        offset = checks.number(self.offset, "offset")
        if offset < 0:
            raise ValueError(f"offset must be at least 0; got {offset!r}. Below 0 this is not a kernel.")
        _set(self, degree=degree, offset=offset)

    def _shape(self, product: Array) -> Array:
        return (product + self.offset) ** float(self.degree)


@dataclass(frozen=True, slots=True, repr=False)
class Constant(Kernel):
    """Constant kernel: `variance` everywhere, an unknown level that all outcomes share."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        _set(self, variance=checks.positive(self.variance, "variance"))

    @property
    def range(self) -> tuple[float, float]:
        return self.variance, self.variance

    def _matrix(self, X: Array, Z: Array) -> Array:
        return _full(X, (X.shape[0], Z.shape[0]), self.variance)

    def _diag(self, X: Array) -> Array:
        return _full(X, (X.shape[0],), self.variance)


@dataclass(frozen=True, slots=True, repr=False)
class _Combination(Kernel):
    """Several kernels under one operation; combinations of the same kind are flattened into one."""

    kernels: Sequence[Kernel]

    def __post_init__(self) -> None:
        flat: list[Kernel] = []
        for kernel in map(as_kernel, self.kernels):
            flat.extend(kernel.kernels if isinstance(kernel, type(self)) else [kernel])
        if len(flat) < 2:
            raise ValueError(f"kernels must hold at least two kernels; got {len(flat)}.")
        _set(self, kernels=tuple(flat))
        if _depth(self) > MAX_DEPTH:
            raise ValueError(f"kernels must be nested at most {MAX_DEPTH} deep. Multiply out the sums.")

    @property
    def range(self) -> tuple[float, float] | None:
        known = [kernel.range for kernel in self.kernels if kernel.range is not None]
        if len(known) < len(self.kernels):
            return None
        # Every known range is non-negative, so the ends combine with the ends, for + and for *.
        low, high = (reduce(self._combine, ends) for ends in zip(*known, strict=True))
        return low, high

    @property
    def _pointwise(self) -> bool:
        return all(kernel._pointwise for kernel in self.kernels)

    def to_spec(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "kernels": [kernel.to_spec() for kernel in self.kernels]}

    def _matrix(self, X: Array, Z: Array) -> Array:
        return reduce(self._combine, (kernel._matrix(X, Z) for kernel in self.kernels))

    def _diag(self, X: Array) -> Array:
        return reduce(self._combine, (kernel._diag(X) for kernel in self.kernels))

    @abstractmethod
    def _combine(self, a: Any, b: Any) -> Any:
        """The operation on two values."""


class Sum(_Combination):
    """The sum of kernels, as ``+`` builds it."""

    __slots__ = ()

    def _combine(self, a: Any, b: Any) -> Any:
        return a + b

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


class Product(_Combination):
    """The product of kernels, as ``*`` builds it."""

    __slots__ = ()

    def _combine(self, a: Any, b: Any) -> Any:
        return a * b

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels)


@dataclass(frozen=True, slots=True, repr=False)
class Custom(Kernel):
    """A kernel given by a function; ``+``, ``*`` and :func:`as_kernel` wrap functions in it.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the (N, M) matrix for inputs of shapes (N, D) and (M, D). That it is
        symmetric and positive semi-definite is up to you. Its ``diag(X)`` is used if it has one. A
        scikit-learn kernel is copied, and called as ``function(X)`` when Z is X, because its
        `WhiteKernel` is zero otherwise.
    """

    function: Callable[..., Any] = field(hash=False)  # scikit-learn kernels have no hash
    name: str = field(init=False)

    def __post_init__(self) -> None:
        function = self.function
        if not callable(function) or isinstance(function, type):
            raise TypeError(
                f"kernel must be a cloakgp kernel or a function k(X, Z); got {reprlib.repr(function)}. "
                "Give an object such as EQ(1.0), not a class; to add a number, add Constant(number)."
            )
        if _is_sklearn(function):
            function = copy.deepcopy(function)  # set_params must not reach in here later
            if any(isinstance(value, Kernel) for value in function.get_params().values()):  # type: ignore[attr-defined]
                raise TypeError(
                    "kernel must not be a scikit-learn sum or product that holds a cloakgp kernel: "
                    "scikit-learn took the cloakgp kernel for a number. Write the cloakgp kernel first, "
                    "or wrap the scikit-learn one in as_kernel."
                )
        name = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(function))
        _set(self, function=function, name=name if len(name) <= 200 else name[:197] + "...")

    @property
    def _pointwise(self) -> bool:
        return False  # scikit-learn's WhiteKernel is not

    def to_spec(self) -> dict[str, Any]:
        """Return the function's name only: no file can hold the function (see :func:`from_spec`)."""
        return {"kind": "Custom", "name": self.name}

    def __repr__(self) -> str:
        return f"Custom({self.name})"

    def _matrix(self, X: Array, Z: Array) -> Array:
        if not _is_sklearn(self.function):
            values = self.function(X, Z)
        else:
            values = self.function(_numpy(X)) if Z is X else self.function(_numpy(X), _numpy(Z))
        return self._checked(values, X, (X.shape[0], Z.shape[0]))

    def _diag(self, X: Array) -> Array:
        if hasattr(self.function, "diag"):
            values = self.function.diag(_numpy(X) if _is_sklearn(self.function) else X)
            return self._checked(values, X, (X.shape[0],))
        xp = array_namespace(X)
        rows = X.shape[0]
        blocks = [X[start : min(start + 32, rows), :] for start in range(0, rows, 32)]
        return xp.concat([xp.linalg.diagonal(self._matrix(block, block)) for block in blocks])

    def _checked(self, values: Any, X: Array, shape: tuple[int, ...]) -> Array:
        if not is_array_api_obj(values):
            values = np.asarray(values)
        if is_numpy_array(values) and values.dtype.kind not in "iuf":
            raise TypeError(f"kernel must return real numbers; {self!r} returned dtype {values.dtype}.")
        values = array_namespace(X).asarray(values, dtype=X.dtype, device=device(X))
        if values.shape != shape:
            raise ValueError(f"kernel must return shape {shape}; {self!r} returned {tuple(values.shape)}.")
        return values


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
    kinds: dict[float, type[_Stationary]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}
    kind = kinds.get(checks.number(nu, "nu"))
    if kind is None:
        raise ValueError(f"nu must be 0.5, 1.5 or 2.5; got {nu!r}. For a very smooth kernel use EQ.")
    return kind(lengthscale, variance=variance, active_dims=active_dims)


def as_kernel(kernel: Any) -> Kernel:
    """Return `kernel` if it is one already, else wrap the function ``k(X, Z)`` in :class:`Custom`."""
    return kernel if isinstance(kernel, Kernel) else Custom(kernel)


_STATIONARY: list[type[Kernel]] = [EQ, Matern12, Matern32, Matern52, Periodic, RationalQuadratic]
_OTHERS: list[type[Kernel]] = [Linear, Polynomial, Constant, Sum, Product]
KINDS = {kind.__name__: kind for kind in [*_STATIONARY, *_OTHERS]}  # all that a spec may name


def from_spec(spec: Any) -> Kernel:
    """Rebuild a kernel from :meth:`Kernel.to_spec`'s description.

    Only this module's kernels can come out, each through its own constructor's checks, so a
    description from an untrusted file is safe to read.

    Raises
    ------
    ValueError
        If the description is not one that `to_spec` writes, or holds a :class:`Custom` kernel.
    """
    return _from_spec(spec, 0)


def _from_spec(spec: Any, depth: int) -> Kernel:
    if depth > MAX_DEPTH:
        raise ValueError(f"kernel spec must be nested at most {MAX_DEPTH} deep.")
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise ValueError(f"kernel spec must be a dict with a kind; got {reprlib.repr(spec)}.")
    if spec["kind"] == "Custom":
        raise ValueError(
            f"a custom kernel ({reprlib.repr(spec.get('name'))}) cannot be rebuilt from a file, which does "
            "not hold its function. The reader must give the kernel."
        )
    kind = KINDS.get(spec["kind"])
    if kind is None:
        raise ValueError(
            f"kernel spec kind must be one of {', '.join(KINDS)}; got {reprlib.repr(spec['kind'])}."
        )
    values = {name: value for name, value in spec.items() if name != "kind"}
    wanted = {f.name for f in fields(kind)}
    if values.keys() != wanted:
        raise ValueError(
            f"kernel spec of kind {kind.__name__} must have exactly the keys {sorted(wanted)}; "
            f"got {reprlib.repr(list(values))}."
        )
    if issubclass(kind, _Combination):
        if not isinstance(values["kernels"], list):
            raise ValueError(f"kernels must be a list; got {reprlib.repr(values['kernels'])}.")
        return kind([_from_spec(part, depth + 1) for part in values["kernels"]])
    for name, value in values.items():
        entries = value if isinstance(value, list) else [value]
        if not all(type(entry) in (int, float, type(None)) for entry in entries):
            raise ValueError(f"{name} in a kernel spec must hold numbers; got {reprlib.repr(value)}.")
    try:
        return kind(**values)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"kernel spec of kind {kind.__name__} is not valid: {error}") from error


def _inputs(value: Any, name: str, columns: int | None = None) -> Array:
    """Checked inputs of shape (rows, columns): float64 for numpy, floating for the rest."""
    if is_numpy_array(value) or not is_array_api_obj(value):
        return checks.matrix(value, name, columns)
    xp = array_namespace(value)
    if not xp.isdtype(value.dtype, "real floating"):
        raise TypeError(f"{name} must hold floating-point numbers; got dtype {value.dtype}.")
    matrix = value[:, None] if value.ndim == 1 else value
    if matrix.ndim != 2 or 0 in matrix.shape or columns not in (None, matrix.shape[1]):
        wanted = "at least one column" if columns is None else f"{columns} column(s), as X has"
        raise ValueError(f"{name} must be a matrix with {wanted}; got shape {tuple(value.shape)}.")
    if not bool(xp.all(xp.isfinite(matrix))):
        raise ValueError(f"{name} must be finite; it holds a NaN or infinity.")
    return matrix


def _lengthscale(value: Any) -> float | tuple[float, ...]:
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0:
        scales = tuple(checks.vector(value, "lengthscale", positive=True).tolist())
        if not scales:
            raise ValueError("lengthscale must be a number or one per input column; got no entries.")
        return scales
    return checks.positive(value, "lengthscale")


def _active_dims(value: Any) -> tuple[int, ...]:
    try:
        dims = tuple(_integer(column, "active_dims") for column in value)
    except TypeError:
        raise TypeError(
            f"active_dims must be a sequence of column indices such as [0, 2]; got {reprlib.repr(value)}."
        ) from None
    if not dims or min(dims) < 0 or len(set(dims)) < len(dims):
        raise ValueError(f"active_dims must be distinct columns counted from 0, at least one; got {dims!r}.")
    return dims


def _integer(value: Any, name: str) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number; got {reprlib.repr(value)}.") from None
    if abs(result) >= 2**31:
        raise ValueError(f"{name} must be below 2**31 in size; got {reprlib.repr(result)}.")
    return result


def _factor(value: Any) -> Kernel:
    if isinstance(value, Real) and not isinstance(value, bool):
        return Constant(checks.positive(value, "scale", "A kernel times a number needs a positive one."))
    return as_kernel(value)


def _depth(kernel: Kernel) -> int:
    return 1 + max(map(_depth, kernel.kernels)) if isinstance(kernel, _Combination) else 0


def _is_sklearn(function: Any) -> bool:
    return hasattr(function, "get_params")


def _numpy(X: Array) -> NDArray[Any]:
    return np.asarray(to_device(X, "cpu"))


def _at_most(limit: float, values: Array, xp: Any) -> Array:
    return xp.minimum(values, xp.asarray(limit, dtype=values.dtype, device=device(values)))


def _full(X: Array, shape: tuple[int, ...], value: float) -> Array:
    return array_namespace(X).full(shape, value, dtype=X.dtype, device=device(X))


def _set(kernel: Kernel, **values: Any) -> None:
    """Store checked values in a frozen kernel; only its own constructor may."""
    for name, value in values.items():
        object.__setattr__(kernel, name, value)
