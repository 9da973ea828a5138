"""Arrays wherever they live: numpy's, or torch's on a GPU.

A design runs where its smoother's columns are, in the array API's words. Here is what numpy and
torch say differently.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, to_device
from numpy.typing import NDArray

from cloakgp.data.chunks import in_threads

Array = Any  # a numpy array or a torch tensor


def on_host(array: Array) -> NDArray[Any]:
    """The same as a numpy array."""
    return array if is_numpy_array(array) else np.asarray(to_device(array, "cpu"))


def like(array: Array, values: NDArray[Any]) -> Array:
    """The values as an array of the same kind as `array`, on the same device."""
    if is_numpy_array(array):
        return values
    return array_namespace(array).asarray(values, device=device(array), copy=True)


def column_dots(a: Array, b: Array) -> Array:
    """The dot product of each column of `a` with the same column of `b`."""
    if is_numpy_array(a):
        return np.einsum("ij,ij->j", a, b)
    return array_namespace(a).sum(a * b, axis=0)


_COLUMNS = 1024  # of a wide matrix that are worked on at once, at most


def times_wide(a: Array, wide: Array) -> Array:
    """a (p, q) times a matrix with many columns: here in threads, the same to the last bit for any number."""
    if _at_once(wide):
        return a @ wide
    product = np.empty((len(a), wide.shape[1]))
    _in_pieces(lambda columns: np.matmul(a, wide[:, columns], out=product[:, columns]), wide)
    return product


def wide_dots(a: Array, b: Array) -> Array:
    """a b' of two matrices with many columns, in threads likewise."""
    return sum(_in_pieces(lambda columns: a[:, columns] @ b[:, columns].T, a))


def weighted_gram(wide: Array, weights: Array) -> Array:
    """The sum of c c' over columns c, each times its weight, in threads likewise."""
    root = array_namespace(weights).sqrt(weights)

    def gram(columns: slice) -> Array:
        scaled = wide[:, columns] * root[columns]
        return scaled @ scaled.T

    return sum(_in_pieces(gram, wide))


def squared_lengths(a: Array, wide: Array) -> Array:
    """|a c|^2 for every column c, in threads likewise."""

    def lengths(columns: slice) -> Array:
        moved = a @ wide[:, columns]
        return column_dots(moved, moved)

    found = _in_pieces(lengths, wide)
    return found[0] if len(found) == 1 else np.concatenate(found)


_MANY, _GROUPS = 200, 4


def squared_dots(a: Array, weights: Array) -> Array:
    """Sum over rows d of `weights` of the squares of a' diag(d) a, to seven digits; in threads likewise."""
    xp = array_namespace(a)
    largest = float(weights.max())  # so that squares stay within what single precision has
    single, roots = (xp.astype(x, xp.float32) for x in (a, xp.sqrt(weights / largest)))

    def part(some: Array) -> Array:
        total = 0
        for root in some:
            scaled = single * root[:, None]
            total = total + (scaled.T @ scaled) ** 2
        return total

    groups = [roots[i::_GROUPS] for i in range(min(_GROUPS, len(roots)))]
    at_once = not is_numpy_array(a) or a.shape[1] < _MANY
    total = part(roots) if at_once else sum(in_threads(part, groups))
    return xp.astype(total, xp.float64) * largest**2


def _at_once(wide: Array) -> bool:
    return not is_numpy_array(wide) or wide.shape[1] <= _COLUMNS


def _in_pieces(function: Callable[[slice], Array], wide: Array) -> list[Array]:
    """function(columns), for pieces of a wide matrix that are as even as can be."""
    if _at_once(wide):
        return [function(slice(None))]
    n = wide.shape[1]
    edges = np.linspace(0, n, -(-n // _COLUMNS) + 1).astype(int).tolist()
    return in_threads(function, [slice(start, stop) for start, stop in pairwise(edges)])


def r_factor(matrix: Array) -> Array:
    """R of the matrix's QR decomposition."""
    if is_numpy_array(matrix):
        return np.linalg.qr(matrix, mode="r")
    return array_namespace(matrix).linalg.qr(matrix, mode="r")[1]
