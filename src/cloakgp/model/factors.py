"""A small matrix that many rows are multiplied with: in less time where it begins with a triangle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.linalg import solve_triangular

from cloakgp.checks import FloatArray

_BLOCKS = 3  # of a triangle: more would leave out more zeros, in products too small to be quick
_STEEP = 32  # times: entries of a block of a root's diagonal are at most so much larger than its first


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


class Root:
    """A lower triangle A (r, r), for sums of A k (A k)' over many k.

    A is a product, of blocks on its diagonal and of what is below them, B. A sum needs only B k of each k;
    the blocks can wait until all are added up. (The whole of A cannot, unless it is even: it is large where a
    sum of k k' has lost what counts. In a block of B k that is left over, where A is large all is small.)
    """

    def __init__(self, A: FloatArray) -> None:
        self.diagonal, self._below = np.zeros_like(A), []
        for start, stop in pairwise(_edges(np.abs(np.diagonal(A)))):
            own = slice(start, stop)
            self.diagonal[own, own] = A[own, own]
            if 0 < start < stop:
                below = solve_triangular(A[own, own], A[own, :start], lower=True, check_finite=False)
                self._below.append((own, slice(0, start), np.ascontiguousarray(below.T)))

    def begin(self, K: FloatArray) -> FloatArray:
        """B k of each row k of K (n, r)."""
        begun = K.copy() if self._below else K
        for own, before, below in self._below:
            begun[:, own] += K[:, before] @ below
        return begun

    def end(self, total: FloatArray) -> FloatArray:
        """The sum of A k (A k)', from that of B k (B k)'."""
        ended: FloatArray = self.diagonal @ total @ self.diagonal.T
        return (ended + ended.T) / 2


def _edges(sizes: FloatArray) -> list[int]:
    """Where blocks begin and end: new ones where a diagonal of these sizes has become large."""
    edges = [0]
    for i in range(1, len(sizes)):
        if sizes[i] > _STEEP * sizes[edges[-1]]:
            edges.append(i)
    return [*edges, len(sizes)]


def turn_to_triangle(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(q, q) the rotation U for which U A (q, m) begins with a triangle, exactly; and U A."""
    q = len(A)
    U: FloatArray = np.linalg.qr(A[:, :q], mode="complete")[0].T
    turned: FloatArray = U @ A
    turned[:, :q] = np.triu(turned[:, :q])
    return U, turned
