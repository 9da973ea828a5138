"""scikit-learn's kernels as ours, so that a release file can hold them.

They are known by the names of their classes: scikit-learn is not imported here, because it is slow to import
and whoever has one of its kernels has imported it already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloakgp.errors import ArgumentError
from cloakgp.kernels.base import CONVERTERS, Constant, Kernel, Product, Sum, as_kernel
from cloakgp.kernels.families import (
    EQ,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

_MOST = 10  # factors that a power is written out as


def converted(kernel: Any) -> Kernel | None:
    """The kernel of ours that is the same function, or None if there is none."""
    build = _KINDS.get(type(kernel).__name__)
    return None if build is None else build(kernel)


def _lengthscale(kernel: Any) -> Any:
    """One entry is for all columns there; here it would be for the only one."""
    return np.squeeze(kernel.length_scale)


def _matern(kernel: Any) -> Kernel | None:
    kinds: dict[float, Callable[[Any], Kernel]] = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, np.inf: EQ}
    kind = kinds.get(kernel.nu)
    return None if kind is None else kind(_lengthscale(kernel))


def _periodic(kernel: Any) -> Kernel:
    # A lengthscale for one column, so that more are refused: in more, scikit-learn takes the sine of the
    # Euclidean distance, which is not positive semi-definite.
    return Periodic((kernel.length_scale,), period=kernel.periodicity)


def _constant(kernel: Any) -> Kernel:
    # RBF() + EQ(1.0) is scikit-learn's own sum, which takes what it does not know for a constant.
    value = kernel.constant_value
    return as_kernel(value) if callable(value) else Constant(value)


def _dot_product(kernel: Any) -> Kernel:
    return Linear() + Constant(kernel.sigma_0**2) if kernel.sigma_0 else Linear()


def _power(kernel: Any) -> Kernel | None:
    base, exponent = as_kernel(kernel.kernel), kernel.exponent
    if exponent not in range(1, _MOST + 1):
        return None
    if type(kernel.kernel).__name__ == "DotProduct":
        return Polynomial(degree=int(exponent), offset=kernel.kernel.sigma_0**2)
    return base if exponent == 1 else Product([base] * int(exponent))


def _white(kernel: Any) -> Kernel:
    raise ArgumentError(
        "kernel",
        "must not hold scikit-learn's WhiteKernel: observation noise is no part of the function",
        remedy="Leave it out, and add its noise_level to noise=.",
    )


_KINDS: dict[str, Callable[[Any], Kernel | None]] = {
    "RBF": lambda kernel: EQ(_lengthscale(kernel)),
    "Matern": _matern,
    "RationalQuadratic": lambda kernel: RationalQuadratic(_lengthscale(kernel), alpha=kernel.alpha),
    "ExpSineSquared": _periodic,
    "ConstantKernel": _constant,
    "DotProduct": _dot_product,
    "WhiteKernel": _white,
    "Sum": lambda kernel: Sum((as_kernel(kernel.k1), as_kernel(kernel.k2))),
    "Product": lambda kernel: Product((as_kernel(kernel.k1), as_kernel(kernel.k2))),
    "Exponentiation": _power,
}
CONVERTERS["sklearn.gaussian_process.kernels"] = converted
