"""Arrays wherever they live: numpy's, or torch's on a GPU.

A design runs where its smoother's columns are, in the array API's words. Here is what numpy and
torch say differently.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, to_device
from numpy.typing import NDArray

Array = Any  # a numpy array or a torch tensor


def on_host(array: Array) -> NDArray[Any]:
    """The same as a numpy array."""
    return array if is_numpy_array(array) else np.asarray(to_device(array, "cpu"))


def like(array: Array, values: NDArray[Any]) -> Array:
    """The values as an array of the same kind as `array`, on the same device."""
    if is_numpy_array(array):
        return values
    return array_namespace(array).asarray(values, device=device(array), copy=True)


def is_on_host(array: Array) -> bool:
    return str(device(array)) == "cpu"


def column_dots(a: Array, b: Array) -> Array:
    """The dot product of each column of `a` with the same column of `b`."""
    if is_numpy_array(a):
        return np.einsum("ij,ij->j", a, b)
    return array_namespace(a).sum(a * b, axis=0)


def r_factor(matrix: Array) -> Array:
    """R of the matrix's QR decomposition."""
    if is_numpy_array(matrix):
        return np.linalg.qr(matrix, mode="r")
    return array_namespace(matrix).linalg.qr(matrix, mode="r")[1]
