"""A small matrix that many rows are multiplied with: in less time where it begins with a triangle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cloakgp.checks import FloatArray

_BLOCKS = 3  # of a triangle: more would leave out more zeros, in products too small to be quick


class Factor:
    """A (q, m), for products A K' with many K (n, m).

    What is a triangle, as a Cholesky factor's inverse is, or begins with one, as what was turned by
    :func:`turn_to_triangle` does, is multiplied without most of its zeros. (In blocks, by numpy: SciPy's
    product with a triangle keeps Python's lock, and with it all other threads from their work.)
    """

    def __init__(self, A: FloatArray) -> None:
        self.A = np.ascontiguousarray(A)
        self._blocks = []
        edges = np.linspace(0, len(A), _BLOCKS + 1).astype(int)
        for start, stop in pairwise(edges):
            rows = slice(start, stop)
            counted = np.flatnonzero(A[rows].any(axis=0))
            across = slice(counted[0], counted[-1] + 1) if len(counted) else slice(0)
            self._blocks.append((rows, across, np.ascontiguousarray(A[rows, across])))

    def times(self, K: FloatArray) -> FloatArray:
        """(q, n) A K'."""
        product = np.empty((len(self.A), len(K)))
        for rows, across, block in self._blocks:
            np.matmul(block, K[:, across].T, out=product[rows])
        return product


def turn_to_triangle(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(q, q) the rotation U for which U A (q, m) begins with a triangle, exactly; and U A."""
    q = len(A)
    U: FloatArray = np.linalg.qr(A[:, :q], mode="complete")[0].T
    turned: FloatArray = U @ A
    turned[:, :q] = np.triu(turned[:, :q])
    return U, turned
