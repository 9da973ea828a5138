"""What a kernel is, and how kernels combine with each other and with functions k(X, Z)."""

from __future__ import annotations

import copy
import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from numbers import Real
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, ArgumentTypeError

Array = Any  # a numpy array, a torch tensor, or another array of the array API standard

MAX_DEPTH = 32  # sums inside products inside sums ...: more than this is a mistake or an attack
KINDS: dict[str, type[Kernel]] = {}
"""Every kernel that files and texts may name: those marked :func:`registered`, and nothing else."""

SKLEARN: dict[str, Callable[[Any], Kernel | None]] = {}
"""What scikit-learn's kernels are here, by the names of their classes; None for what is no kernel of ours."""

AnyKernel = TypeVar("AnyKernel", bound="Kernel")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def registered(kind: type[AnyKernel]) -> type[AnyKernel]:
    """Make a kernel's class a frozen dataclass, and one that files and texts name."""
    made = dataclass(frozen=True, slots=True, repr=False)(kind)
    KINDS[made.__name__] = made
    return made


class Kernel(ABC):
    """What every kernel can do; use a subclass, or :class:`Custom` for a function of your own.

    ``kernel(X)`` and ``kernel(X, Z)`` give the kernel matrix, ``kernel.diag(X)`` its diagonal.
    ``+`` and ``*`` combine kernels with kernels, scikit-learn's included, and with functions ``k(X, Z)``;
    ``*`` also scales by a positive number. A kernel cannot be changed: :meth:`with_params` makes another.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]  # every subclass is a frozen dataclass
    __array_ufunc__ = None  # so that np.float64(2) * kernel asks the kernel, not numpy

    # What a subclass says of itself, besides what it computes.
    _pointwise: ClassVar[bool] = (
        True  # each entry depends on its own two inputs, and not on what else is asked
    )
    _written: ClassVar[bool] = True  # in a text, by its name
    _texts: ClassVar[tuple[str, ...]] = ()  # parameters that may hold words
    _lists: ClassVar[int] = 1  # how deep lists of numbers may be in each other, in a spec

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
        return {"kind": type(self).__name__} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def _from_spec(cls, values: dict[str, Any], read: Callable[[Any], Kernel]) -> Kernel:
        """The kernel with these values of a spec; `read` makes kernels of the specs among them."""
        for name, value in values.items():
            if name not in cls._texts and not _numbers(value, cls._lists):
                raise ValueError(f"{name} in a kernel spec must hold numbers; got {reprlib.repr(value)}.")
        return cls(**values)

    def category_columns(self, columns: int) -> tuple[int, ...]:
        """Which of so many columns hold levels."""
        return ()

    def number_columns(self, columns: int) -> tuple[int, ...]:
        """Of which of so many columns distances are measured, or multiples taken."""
        return tuple(range(columns))

    def with_places(self, place: Callable[[str], int]) -> Kernel:
        """The same kernel with the columns that it names counted; itself if it names none."""
        return self

    def _depth_and_parts(self) -> tuple[int, int]:
        """How deep kernels are in each other, and how many there are."""
        return 0, 1

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` also those of parts, as in ``k1__lengthscale``.

        The parts of a sum or product are k1, k2 and so on, as in scikit-learn.
        """
        found = self._params()
        if deep:
            parts = [(name, value) for name, value in found.items() if isinstance(value, Kernel)]
            for name, part in parts:
                found |= {f"{name}__{inner}": value for inner, value in part.get_params().items()}
        return found

    def with_params(self, **params: Any) -> Kernel:
        """Return the same kernel with other parameters, named as by :meth:`get_params`.

        Examples
        --------
        >>> (EQ(10.0) + Constant(4.0)).with_params(k1__lengthscale=20.0)
        EQ(lengthscale=20.0, variance=1.0) + Constant(variance=4.0)
        """
        known = self._params()
        inside: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known or (inner and not isinstance(known[name], Kernel)):
                remedy = f"It has {', '.join(self.get_params())}."
                raise ArgumentError(key, f"is not a parameter of {type(self).__name__}", remedy=remedy)
            if inner:
                inside.setdefault(name, {})[inner] = value
            else:
                known[name] = value
        for name, changes in inside.items():
            known[name] = as_kernel(known[name]).with_params(**changes)
        return self._from_params(known)

    def __sklearn_clone__(self) -> Kernel:
        return self  # it cannot be changed, so nobody needs a copy

    def _params(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def _from_params(self, params: dict[str, Any]) -> Kernel:
        return type(self)(**params)

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
        rows, columns, in_cache = X.shape[0], Z.shape[0], 2**16  # the last: entries of a block
        if not is_numpy_array(X) or rows * columns <= in_cache or not self._pointwise:
            return self._matrix(X, Z)
        result = np.empty((rows, columns))
        step = max(1, in_cache // columns)
        for start in range(0, rows, step):
            result[start : start + step] = self._matrix(X[start : start + step], Z)
        return result

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
            raise ArgumentError(
                "kernel",
                f"must be finite on these inputs; {self!r} gave a NaN or an infinity",
                remedy="Bring the input columns to a common scale first, or use a larger lengthscale.",
            )
        return values


@registered
class Constant(Kernel):
    """Constant kernel: `variance` everywhere, an unknown level that all outcomes share."""

    variance: float = 1.0

    def __post_init__(self) -> None:
        set_frozen(self, variance=checks.positive(self.variance, "variance"))

    @property
    def range(self) -> tuple[float, float]:
        return self.variance, self.variance

    def number_columns(self, columns: int) -> tuple[int, ...]:
        return ()

    def _matrix(self, X: Array, Z: Array) -> Array:
        return full(X, (X.shape[0], Z.shape[0]), self.variance)

    def _diag(self, X: Array) -> Array:
        return full(X, (X.shape[0],), self.variance)


@dataclass(frozen=True, slots=True, repr=False)
class Combination(Kernel):
    """Several kernels under one operation; combinations of the same kind are flattened into one."""

    kernels: Sequence[Kernel]
    _written: ClassVar[bool] = False  # but with + and *

    def __post_init__(self) -> None:
        flat: list[Kernel] = []
        for kernel in map(as_kernel, self.kernels):
            flat.extend(kernel.kernels if isinstance(kernel, type(self)) else [kernel])
        if len(flat) < 2:
            raise ArgumentError("kernels", "must hold at least two kernels", str(len(flat)))
        set_frozen(self, kernels=tuple(flat))
        depth, parts = self._depth_and_parts()
        if depth > MAX_DEPTH:
            raise ArgumentError(
                "kernels", f"must be nested at most {MAX_DEPTH} deep", remedy="Multiply out the sums."
            )
        if parts > 1000:  # before anything is computed with them
            raise ArgumentError("kernels", "must be at most 1000 in all", str(parts), "Use fewer.")

    @property
    def range(self) -> tuple[float, float] | None:
        known = [kernel.range for kernel in self.kernels if kernel.range is not None]
        if len(known) < len(self.kernels):
            return None
        # Every known range is non-negative, so the ends combine with the ends, for + and for *.
        low, high = (reduce(self._combine, ends) for ends in zip(*known, strict=True))
        return low, high

    @property
    def _pointwise(self) -> bool:  # type: ignore[override]
        return all(kernel._pointwise for kernel in self.kernels)

    def category_columns(self, columns: int) -> tuple[int, ...]:
        return tuple(sorted({column for part in self.kernels for column in part.category_columns(columns)}))

    def number_columns(self, columns: int) -> tuple[int, ...]:
        return tuple(sorted({column for part in self.kernels for column in part.number_columns(columns)}))

    def with_places(self, place: Callable[[str], int]) -> Kernel:
        parts = tuple(part.with_places(place) for part in self.kernels)
        same = all(new is old for new, old in zip(parts, self.kernels, strict=True))
        return self if same else type(self)(parts)

    def _depth_and_parts(self) -> tuple[int, int]:
        depths, parts = zip(*(kernel._depth_and_parts() for kernel in self.kernels), strict=True)
        return 1 + max(depths), sum(parts)

    @classmethod
    def _from_spec(cls, values: dict[str, Any], read: Callable[[Any], Kernel]) -> Kernel:
        if not isinstance(values["kernels"], list):
            raise ArgumentError("kernels", "must be a list", reprlib.repr(values["kernels"]))
        return cls([read(part) for part in values["kernels"]])

    def _params(self) -> dict[str, Any]:
        return {f"k{number}": kernel for number, kernel in enumerate(self.kernels, 1)}

    def _from_params(self, params: dict[str, Any]) -> Kernel:
        return type(self)(tuple(params.values()))

    def _matrix(self, X: Array, Z: Array) -> Array:
        return reduce(self._combine, (kernel._matrix(X, Z) for kernel in self.kernels))

    def _diag(self, X: Array) -> Array:
        return reduce(self._combine, (kernel._diag(X) for kernel in self.kernels))

    @abstractmethod
    def _combine(self, a: Any, b: Any) -> Any:
        """The operation on two values."""


@registered
class Sum(Combination):
    """The sum of kernels, as ``+`` builds it."""

    def _combine(self, a: Any, b: Any) -> Any:
        return a + b

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@registered
class Product(Combination):
    """The product of kernels, as ``*`` builds it."""

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
        symmetric and positive semi-definite is up to you. Its ``diag(X)`` is used if it has one. A kernel
        of scikit-learn's kind is copied, and called as ``function(X)`` when Z is X, as is usual there.
    """

    function: Callable[..., Any] = field(hash=False)  # scikit-learn kernels have no hash
    name: str = field(init=False)
    _pointwise: ClassVar[bool] = False  # who knows

    def __post_init__(self) -> None:
        function = self.function
        if not callable(function) or isinstance(function, type):
            raise ArgumentTypeError(
                "kernel",
                "must be a cloakgp kernel or a function k(X, Z)",
                reprlib.repr(function),
                "Give an object such as EQ(1.0), not a class; to add a number, add Constant(number).",
            )
        if _is_sklearn(function):
            function = copy.deepcopy(function)  # set_params must not reach in here later
            if any(isinstance(value, Kernel) for value in function.get_params().values()):  # type: ignore[attr-defined]
                raise ArgumentTypeError(
                    "kernel",
                    "must not be a scikit-learn sum or product that holds a cloakgp kernel: "
                    "scikit-learn took the cloakgp kernel for a number",
                    remedy="Write the cloakgp kernel first, or wrap the scikit-learn one in as_kernel.",
                )
        name = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(function))
        set_frozen(self, function=function, name=name if len(name) <= 200 else name[:197] + "...")

    def number_columns(self, columns: int) -> tuple[int, ...]:
        return ()  # who knows

    def to_spec(self) -> dict[str, Any]:
        """Return the kind only: no file can hold the function (see :func:`from_spec`)."""
        return {"kind": "Custom"}

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
            raise ArgumentTypeError(
                "kernel", f"must return real numbers; {self!r} returned dtype {values.dtype}"
            )
        values = array_namespace(X).asarray(values, dtype=X.dtype, device=device(X))
        if values.shape != shape:
            raise ArgumentError(
                "kernel", f"must return shape {shape}; {self!r} returned {tuple(values.shape)}"
            )
        return values


def as_kernel(kernel: Any) -> Kernel:
    """Return `kernel` if it is one already, else the one that it stands for.

    scikit-learn's RBF, Matern (nu 0.5, 1.5, 2.5 or inf), RationalQuadratic, ExpSineSquared (for one column),
    DotProduct, ConstantKernel, their sums, products and whole powers become kernels of this package, which a
    release file can hold; their bounds are for scikit-learn's optimiser, and ignored. Its WhiteKernel is
    refused: noise is an argument of its own. Other kernels and functions ``k(X, Z)`` are wrapped in
    :class:`Custom`.
    """
    if isinstance(kernel, Kernel):
        return kernel
    # Known by the names of their classes, so that scikit-learn is not imported here: that takes its time, and
    # whoever has one of its kernels has done so already. A subclass from elsewhere may be another function.
    if type(kernel).__module__ == "sklearn.gaussian_process.kernels":
        name = type(kernel).__name__
        if name == "WhiteKernel":
            raise ArgumentError(
                "kernel",
                "must not hold scikit-learn's WhiteKernel: observation noise is no part of the function",
                remedy="Leave it out, and add its noise_level to noise=.",
            )
        return SKLEARN.get(name, Custom)(kernel) or Custom(kernel)
    return Custom(kernel)


def _inputs(value: Any, name: str, columns: int | None = None) -> Array:
    """Checked inputs of shape (rows, columns): float64 for numpy, floating for the rest."""
    if is_numpy_array(value) or not is_array_api_obj(value):
        return checks.matrix(value, name, columns)
    xp = array_namespace(value)
    if not xp.isdtype(value.dtype, "real floating"):
        raise ArgumentTypeError(name, "must hold floating-point numbers", f"dtype {value.dtype}")
    matrix = value[:, None] if value.ndim == 1 else value
    if matrix.ndim != 2 or 0 in matrix.shape or columns not in (None, matrix.shape[1]):
        wanted = "at least one column" if columns is None else f"{columns} column(s), as X has"
        raise ArgumentError(name, f"must be a matrix with {wanted}", f"shape {tuple(value.shape)}")
    if not bool(xp.all(xp.isfinite(matrix))):
        raise ArgumentError(name, "must be finite; it holds a NaN or infinity")
    return matrix


def _factor(value: Any) -> Kernel:
    if isinstance(value, Real) and not isinstance(value, bool):
        return Constant(checks.positive(value, "scale", "A kernel times a number needs a positive one."))
    return as_kernel(value)


def _plain(value: Any) -> Any:
    """A parameter in plain JSON types."""
    if isinstance(value, Kernel):
        return value.to_spec()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _numbers(value: Any, depth: int) -> bool:
    """Whether this is a number or None, or lists of them inside each other, at most so deep."""
    if isinstance(value, list):
        return depth > 0 and all(_numbers(entry, depth - 1) for entry in value)
    return type(value) in (int, float, type(None))


def _is_sklearn(function: Any) -> bool:
    return hasattr(function, "get_params") and not isinstance(function, Kernel)


def _numpy(X: Array) -> NDArray[Any]:
    return np.asarray(to_device(X, "cpu"))


def full(X: Array, shape: tuple[int, ...], value: float) -> Array:
    return array_namespace(X).full(shape, value, dtype=X.dtype, device=device(X))


def set_frozen(thing: Any, **values: Any) -> None:
    """Store checked values in a frozen kernel, or its inputs; only its own constructor may."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)
