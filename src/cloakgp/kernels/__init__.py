"""Kernels: k(X, Z) says how alike the outcomes at inputs X and Z are, before any outcome is seen.

A kernel is a small frozen value. It is built from public numbers, compares and hashes by those
numbers, prints as the Python that rebuilds it, and is stored as plain JSON (:meth:`Kernel.to_spec`,
:func:`from_spec`), never as a pickle. Kernels add and multiply with ``+`` and ``*``, and any function
``k(X, Z)`` can take part; scikit-learn's kernels become kernels of this package (:func:`as_kernel`).
:class:`Integral` takes means over boxes, as observed in bins, and relates them to each other and to points.

The arithmetic follows the array API standard, so inputs may be numpy arrays or torch tensors, and the
kernel matrix comes back as the same kind. Distances are summed from coordinate differences, never
expanded as |x|² + |z|² − 2 x·z: the matrix is then exactly symmetric and its diagonal exact.
"""

from cloakgp.kernels.base import KINDS, MAX_DEPTH, Constant, Custom, Kernel, Product, Sum, as_kernel
from cloakgp.kernels.families import (
    EQ,
    Category,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Stationary,
)
from cloakgp.kernels.gibbs import Gibbs
from cloakgp.kernels.integral import Boxes, Integral, Points
from cloakgp.kernels.specs import from_spec, parse

__all__ = [
    "EQ",
    "KINDS",
    "MAX_DEPTH",
    "Boxes",
    "Category",
    "Constant",
    "Custom",
    "Gibbs",
    "Integral",
    "Kernel",
    "Linear",
    "Matern",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Points",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Stationary",
    "Sum",
    "as_kernel",
    "from_spec",
    "parse",
]
