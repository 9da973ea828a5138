"""Sobol's points: few, spread evenly over a cube. They are SciPy's, whose statistics take long to import."""

from __future__ import annotations

import numpy as np

from cloakgp.checks import FloatArray

_BITS = 30
# Joe & Kuo (2008), the first dimensions: a primitive polynomial's bits, and the first direction numbers.
_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
)
MOST = 1 + len(_DIRECTIONS)
"""Dimensions that are known here; beyond them SciPy is asked."""


def sobol(dimensions: int, n: int) -> FloatArray:
    """(n, dimensions) the first points, the origin included."""
    if dimensions > MOST:
        from scipy.stats import qmc

        return np.asarray(qmc.Sobol(dimensions, scramble=False).random(n), dtype=np.float64)
    columns = [[1] * _BITS, *(_numbers(*one) for one in _DIRECTIONS)][:dimensions]
    scaled = np.array(columns).T << np.arange(_BITS - 1, -1, -1)[:, None]
    index = np.arange(1, n)
    changed = np.log2(index & -index).astype(np.intp)  # the bit of a Gray code that changes
    steps = np.vstack([np.zeros((1, dimensions), dtype=scaled.dtype), scaled[changed]])
    return np.asarray(np.ldexp(np.bitwise_xor.accumulate(steps), -_BITS), dtype=np.float64)


def _numbers(polynomial: int, first: tuple[int, ...]) -> list[int]:
    """A dimension's direction numbers, by the recurrence that its polynomial is."""
    found, degree = list(first), len(first)
    for j in range(degree, _BITS):
        new = found[j - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                new ^= found[j - k] << k
        found.append(new)
    return found
