"""Averages over boxes: covariances between bins, and between bins and points.

When an outcome is observed only as a bin's mean, what it tells about the function is the mean over
that box, not the value at its centre. :class:`Integral` gives the covariances that this takes.

Boxes and points are typed, :class:`Boxes` and :class:`Points`, because an array of numbers alone could
mean either. Both become plain arrays of one shape, (N, 2 D): the D lower edges, then the D upper
edges, a point being a box whose edges coincide. That array is what a plan and a release file hold.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Self

import numpy as np
from array_api_compat import is_torch_array, to_device
from numpy.typing import NDArray

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels.base import Array, Constant, Kernel, Product, Sum, like, registered, set_frozen
from cloakgp.kernels.families import EQ

_HALF_ROOT = math.sqrt(math.pi / 2)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Boxes:
    """Boxes in the input space, such as the bins of a histogram, for :class:`Integral`.

    ``np.asarray(boxes)`` has shape (N, 2 D): the lower edges, then the upper edges.

    Parameters
    ----------
    lower, upper : arrays of shape (N, D)
        The edges, one box per row, with ``lower < upper`` everywhere. Vectors are read as one column.

    Examples
    --------
    >>> Boxes([0.0, 10.0], [10.0, 25.0])
    <Boxes: 2 in 1 dimension>
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        lower, upper = checks.matrix(self.lower, "lower"), checks.matrix(self.upper, "upper")
        if lower.shape != upper.shape:
            raise ArgumentError(
                "upper",
                f"must have the shape of lower, {lower.shape}",
                str(upper.shape),
                "Both hold one box per row and one dimension per column.",
            )
        _expect_edges(lower < upper, lower, upper, "lower", "must be below upper", "For points use Points.")
        set_frozen(self, lower=lower, upper=upper)

    def _parts(self) -> tuple[FloatArray, ...]:
        """What it is made from."""
        return self.lower, self.upper

    def __getitem__(self, rows: Any) -> Self:
        """Return some of them: a slice, a mask, a list of row numbers, or one row number."""
        one = isinstance(rows, (int, np.integer)) and not isinstance(rows, bool)
        return type(self)(*(part[[rows] if one else rows] for part in self._parts()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts()

    def __len__(self) -> int:
        return len(self.lower)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"{type(self).__name__} cannot become an array without a copy.")
        return np.hstack([self.lower, self.upper]).astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        rows, dimensions = self.lower.shape
        return f"<{type(self).__name__}: {rows} in {dimensions} dimension{'s' * (dimensions > 1)}>"


class Points(Boxes):
    """Single points of the input space, for :class:`Integral` and models that use it.

    ``np.asarray(points)`` has shape (N, 2 D): every point as the box that starts and ends there. Other
    kernels take `x` itself.

    Parameters
    ----------
    x : array of shape (N, D)
        One point per row. A vector is read as one column.
    """

    __slots__ = ()

    def __init__(self, x: Any) -> None:
        x = checks.matrix(x, "x")
        set_frozen(self, lower=x, upper=x)

    def _parts(self) -> tuple[FloatArray, ...]:
        return (self.lower,)


@registered
class Integral(Kernel):
    """The kernel of a function's means over boxes, the function itself having `kernel`.

    A mean over a box is what a bin's mean observes; a side of no length is evaluated, not averaged over.
    It gives the covariance of a box with a box, of a box with a point, and of a point with a point,
    where it is `kernel`'s own. Each is within a relative 1e-10 of the mean of `kernel` over the
    box or boxes, also for tiny, huge and far boxes.

    Parameters
    ----------
    kernel : EQ
        The kernel of the function at points. Its `active_dims` count the boxes' dimensions, and its
        lengthscale has one entry for each of those, if several.

    Notes
    -----
    Inputs are :class:`Boxes` and :class:`Points`. An array is always their encoding, of shape
    (N, 2 D): lower edges, then upper edges, equal for a point. A plan takes either form::

        gp = cloakgp.GP(Integral(EQ(25.0)), noise=1.0, bounds=(0.0, 100.0))
        plan = gp.plan(Boxes(lower, upper), X_star=Points(x), epsilon=1.0)

    A plan protects one row of y. To protect people whose inputs are known by bin, give one row per
    person, with the person's bin as its box; with a row per bin, one bin's mean is what is protected.

    Numbers scale it, and it adds to other `Integral` kernels, one per part of the function. A
    :class:`Constant` is the same for boxes and points, so it may be added too. Another
    kernel in a sum or product reads the 2 D columns of the encoding, which is seldom what is meant.

    Arrays of other libraries are accepted, but the arithmetic is numpy's.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Integral(EQ(25.0))
    >>> kernel
    Integral(kernel=EQ(lengthscale=25.0, variance=1.0))
    >>> np.round(kernel(Boxes([0.0, 10.0], [10.0, 20.0]), Points([5.0])), 3)
    array([[0.993],
           [0.918]])
    """

    kernel: EQ

    def __post_init__(self) -> None:
        if type(self.kernel) is not EQ:  # nor one derived from it, which may be another function
            raise ArgumentTypeError(
                "kernel",
                "must be EQ, the one kernel whose means over boxes are known here",
                reprlib.repr(self.kernel),
                "Write a sum as Integral(a) + Integral(b), and a scale as EQ's variance.",
            )

    @property
    def range(self) -> tuple[float, float] | None:
        return self.kernel.range

    @classmethod
    def _from_spec(cls, values: dict[str, Any], read: Callable[[Any], Kernel]) -> Kernel:
        return cls(**values | {"kernel": read(values["kernel"])})

    def _by_rows(self, X: Array, Z: Array) -> Array:
        return self._matrix(X, Z)  # which bounds its own temporaries

    def _matrix(self, X: Array, Z: Array) -> Array:
        x_lower, x_upper = _split(X, "X")
        z_lower, z_upper = (x_lower, x_upper) if Z is X else _split(Z, "Z")
        values = np.full((len(x_lower), len(z_lower)), self.kernel.variance)
        for column, scale in self.kernel._columns(x_lower):
            # Bins on a grid share their sides: one value per pair of distinct sides, then look up.
            xs, x_side = _sides(x_lower[:, column], x_upper[:, column])
            zs, z_side = _sides(z_lower[:, column], z_upper[:, column])
            values *= _table(xs, zs, scale)[:, z_side][x_side]
        return like(X, values)

    def _diag(self, X: Array) -> Array:
        lower, upper = _split(X, "X")
        values = np.full(len(lower), self.kernel.variance)
        for column, scale in self.kernel._columns(lower):
            sides = lower[:, column], upper[:, column]
            values *= _mean_covariance(sides, sides, scale)
        return like(X, values)


@singledispatch
def over_boxes(kernel: Kernel) -> Kernel:
    """The kernel of a function's means over boxes: of each term of a sum, a constant factor outside."""
    return Integral(kernel)  # type: ignore[arg-type]  # which refuses all but EQ


@over_boxes.register(Constant)
@over_boxes.register(Integral)
def _(kernel: Kernel) -> Kernel:
    return kernel


@over_boxes.register
def _(kernel: Sum) -> Kernel:
    return Sum([over_boxes(part) for part in kernel.kernels])


@over_boxes.register
def _(kernel: Product) -> Kernel:
    if sum(not isinstance(part, Constant) for part in kernel.kernels) > 1:
        return Integral(kernel)  # type: ignore[arg-type]
    return Product([over_boxes(part) for part in kernel.kernels])


# One dimension: sides are intervals, given by their lower and upper ends; a point's ends are equal

_Sides = tuple[FloatArray, FloatArray]


def _table(xs: _Sides, zs: _Sides, scale: float) -> FloatArray:
    """The mean of EQ(scale) over every pair of sides, a few rows at a time."""
    table = np.empty((len(xs[0]), len(zs[0])))
    step = max(1, 2**15 // table.shape[1])  # entries that are in the cache, of about 20 arrays
    for start in range(0, len(table), step):
        rows = slice(start, start + step)
        table[rows] = _mean_covariance((xs[0][rows, None], xs[1][rows, None]), zs, scale)
    return table


def _mean_covariance(first: _Sides, second: _Sides, scale: float) -> FloatArray:
    """The mean of k(t) = exp(−t²/2) over t = (x − z)/scale, x in the first sides and z in the second.

    For x and z uniform on sides of widths w ≥ v, the density of t is a trapezoid: over the four
    differences of ends e0 ≤ e1 ≤ e2 ≤ e3 it rises from 0 to 1/w, stays, and falls back to 0. So the mean
    is the sum of three integrals of k times a straight line. (The textbook form, a second difference
    of t erf(t/√2) + ..., loses all digits for small sides and for distant ones.) None of the three is
    negative, so each with a small relative error gives the sum a small relative error.

    Differences are taken between ends, each rounded once, never between centres: the tails need
    e0 to a relative accuracy, which c − w/2 − v/2 would not keep for wide sides.
    """
    (p, q), (r, s) = first, second
    one, other = _scaled(q - p, scale), _scaled(s - r, scale)
    low, high, across, back = (_scaled(gap, scale) for gap in (p - r, q - s, p - s, q - r))
    # Mirror until the first side is the one to the right: exact, so the result is symmetric to the bit.
    lean, lean_ends = low + high, across + back
    mirror = (lean < 0) | ((lean == 0) & (lean_ends < 0))
    low, high = np.where(mirror, -low, low), np.where(mirror, -high, high)
    e0, e3 = np.where(mirror, -back, across), np.where(mirror, -across, back)
    e1, e2 = np.minimum(low, high), np.maximum(low, high)

    w, v = np.broadcast_arrays(np.maximum(one, other), np.minimum(one, other))
    result = np.exp(-0.5 * e1 * e1)  # where both are points
    wide = w > 0
    e0, e1, e2, e3, w, v = (values[wide] for values in (e0, e1, e2, e3, w, v))
    ramps = np.zeros(len(w))
    is_box = v > 0  # otherwise the trapezoid is a rectangle
    v = v[is_box]
    ramps[is_box] = _segment(e0[is_box], e1[is_box], v, 0.0, 1.0)
    ramps[is_box] += _segment(e2[is_box], e3[is_box], v, 1.0, 0.0)
    w_flat = w.copy()
    w_flat[is_box] -= v
    result[wide] = np.minimum((ramps + _segment(e1, e2, w_flat, 1.0, 1.0)) / w, 1.0)
    return np.asarray(result)


# The integral over [a, b] of a line times exp(−t²/2) is in closed form, but for short intervals the form
# is a small difference of large terms. With h = b − a and m = max(|a|, |b|), the exponent changes by at
# most h m over the interval. Where h m ≤ 2, Gauss–Legendre quadrature is exact to rounding: the
# integrand is smooth and changes by less than e², and 10 nodes leave a relative error of 5e-16. Where
# h m > 2, the interval is long and the closed form's terms differ: mirrored to a + b ≥ 0,
#   a < 0:  the integral of k is a sum of two erf, and that of (t − a) k is k(a) − k(b) − a ∫k, a sum of
#           non-negative terms, since b ≥ |a|;
#   a ≥ 0:  k(b)/k(a) = exp(−h (a + b)/2) < e⁻¹, so that in differences of the form
#           f(a) k(a) − f(b) k(b) the first term stands out. With Mills' ratio R(t) = ∫_t^∞ k / k(t),
#           1 − a R(a) is near 1/a² and loses a factor a², at most 1,500 before k(a) underflows.
# The error is then a few hundred roundings at worst, 1e-12; test_integral_kernel.py measures it.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def _segment(a: FloatArray, b: FloatArray, h: FloatArray, at_a: float, at_b: float) -> FloatArray:
    """∫ from a to b = a + h of line(t) exp(−t²/2) dt, the line going from 0 or 1 at a to 0 or 1 at b."""
    mirror = a + b < 0
    a, b = np.where(mirror, -b, a), np.where(mirror, -a, b)
    start = np.where(mirror, at_b, at_a)
    rise = np.where(mirror, at_a - at_b, at_b - at_a)
    pieces, long = np.array([a, b, h, start, rise]), h * b > 2.0  # b = max(|a|, |b|) now
    result = np.empty(len(a))
    for rule, which in (
        (_quadrature, ~long),
        (_across_zero, long & (a < 0)),
        (_beyond_zero, long & (a >= 0)),
    ):
        if which.any():
            result[which] = rule(pieces[:, which])
    return result


def _quadrature(pieces: FloatArray) -> FloatArray:
    a, _, h, start, rise = pieces
    total = np.zeros(len(a))
    for node, weight in zip(0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS, strict=True):
        t = a + node * h
        t *= t
        t *= -0.5
        np.exp(t, out=t)
        t *= weight * start + (weight * node) * rise
        total += t
    return np.asarray(h * total)


def _across_zero(pieces: FloatArray) -> FloatArray:
    from scipy.special import erf  # here: slow to import

    a, b, h, start, rise = pieces
    flat = _HALF_ROOT * (erf(b * math.sqrt(0.5)) + erf(-a * math.sqrt(0.5)))
    ramp = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b) - a * flat) / h
    return np.asarray(start * flat + rise * ramp)


def _beyond_zero(pieces: FloatArray) -> FloatArray:
    from scipy.special import erfcx

    a, b, h, start, rise = pieces
    drop = np.exp(-0.5 * h * (a + b))
    mills_a, mills_b = (_HALF_ROOT * erfcx(t * math.sqrt(0.5)) for t in (a, b))
    flat = mills_a - drop * mills_b
    ramp = ((1.0 - a * mills_a) - drop * (1.0 - a * mills_b)) / h
    return np.asarray(np.exp(-0.5 * a * a) * np.maximum(start * flat + rise * ramp, 0.0))


def _scaled(gap: FloatArray, scale: float) -> FloatArray:
    gap = np.clip(gap / scale, -1e300, 1e300)  # so that no difference of edges is infinite
    return np.where(np.abs(gap) < 1e-100, 0.0, gap)  # a thinner side is a point to within 1e-200


def _sides(lower: FloatArray, upper: FloatArray) -> tuple[_Sides, NDArray[np.intp]]:
    """The distinct sides, and which of them each row has."""
    distinct, which = np.unique(lower + 1j * upper, return_inverse=True)
    return (distinct.real, distinct.imag), which


def _split(X: Array, name: str) -> _Sides:
    """The lower and the upper edges in an (N, 2 D) encoding, checked."""
    edges: FloatArray = np.asarray(to_device(X, "cpu") if is_torch_array(X) else X, dtype=np.float64)
    remedy = "Give Boxes(lower, upper) or Points(x): an array must hold lower edges, then upper edges."
    if edges.shape[1] % 2:
        raise ArgumentError(
            name, "must have two columns per dimension for an Integral kernel", str(edges.shape[1]), remedy
        )
    lower, upper = np.hsplit(edges, 2)
    expected = "must have no lower edge above its upper edge for an Integral kernel"
    _expect_edges(lower <= upper, lower, upper, name, expected, remedy)
    return lower, upper


def _expect_edges(
    good: NDArray[np.bool_], lower: FloatArray, upper: FloatArray, name: str, expected: str, remedy: str
) -> None:
    """Raise and name the first edges that are not in order."""
    if not good.all():
        row, dimension = at = tuple(np.argwhere(~good)[0])
        got = f"{lower[at]!s} and {upper[at]!s} in row {row}, dimension {dimension}"
        raise ArgumentError(name, expected, got, remedy)
