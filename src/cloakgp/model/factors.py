"""A small matrix that many rows are multiplied with: in half the time where it begins with a triangle."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrmm

from cloakgp.checks import FloatArray


class Factor:
    """A (q, m), for products A K' with many K (n, m).

    What has a triangle in its first q columns, as a Cholesky factor's inverse has, or what was turned by
    :func:`turn_to_triangle`, is multiplied without the triangle's zeros.
    """

    def __init__(self, A: FloatArray) -> None:
        q, m = A.shape
        lead = A[:, :q]
        self.A = np.ascontiguousarray(A)
        self._lower = not np.triu(lead, 1).any()
        self._triangular = 1 < q <= m and (self._lower or not np.tril(lead, -1).any())
        self._lead, self._rest = np.asfortranarray(lead), np.ascontiguousarray(A[:, q:].T)

    def times(self, K: FloatArray) -> FloatArray:
        """(q, n) A K'."""
        if not self._triangular:
            return np.asarray(self.A @ K.T)
        q = len(self.A)
        product: FloatArray = dtrmm(1.0, self._lead, K[:, :q].T, lower=self._lower)
        if len(self._rest):
            product += (K[:, q:] @ self._rest).T
        return product


def turn_to_triangle(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(q, q) the rotation U for which U A (q, m) begins with a triangle, exactly; and U A."""
    q = len(A)
    U: FloatArray = np.linalg.qr(A[:, :q], mode="complete")[0].T
    turned: FloatArray = U @ A
    turned[:, :q] = np.triu(turned[:, :q])
    return U, turned
