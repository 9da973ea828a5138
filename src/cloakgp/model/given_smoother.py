"""Smoothers for a prior that is given as covariances: what was released before has shaped it.

Outcomes y (or sums of them) have covariance K, and f(X*) covariance `cross` with them: C = cross' K^-1.
Either K is a matrix, or it is factors S factors' + diag(own), which never makes an N x N matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve

from cloakgp.checks import FloatArray
from cloakgp.model.smoothers import Rows, gentle_cholesky, mean_diagonal


class GivenGP:
    """C = cross' K^-1 by Cholesky.

    Parameters
    ----------
    covariance : (N, N) array
        Of the outcomes.
    cross : (N, P) array
        Of the outcomes and f(X*).
    variance : (P,) array
        Of f(X*).
    """

    def __init__(self, covariance: FloatArray, cross: FloatArray, variance: FloatArray) -> None:
        self.n_rows, self.n_outputs = cross.shape
        self.cross, self._covariance = cross, covariance
        factor, self.jitter = gentle_cholesky(covariance, 0.0)
        self.scale = mean_diagonal(covariance, 0.0)
        self._transposed: FloatArray = cho_solve(factor, cross, check_finite=False)
        self.explained_variance = np.einsum("ij,ij->j", cross, self._transposed)
        self.posterior_variance = np.maximum(variance - self.explained_variance, 0.0)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B K."""
        product: FloatArray = B @ self._covariance
        return product

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C that belong to these rows of X."""
        return np.ascontiguousarray(self._transposed[rows].T)


class FactoredGP:
    """The same for K = factors S factors' + diag(own), cross = factors S*.

    Parameters
    ----------
    factors : (N, m) array
    covariance, cross : (m, m) and (m, P) arrays
        S and S*: of f at m support points, among themselves and with f(X*).
    own : (N,) array
        What each outcome has for itself, above 0.
    variance : (P,) array
        Of f(X*).
    """

    jitter = scale = 0.0

    def __init__(
        self,
        factors: FloatArray,
        covariance: FloatArray,
        cross: FloatArray,
        own: FloatArray,
        variance: FloatArray,
    ) -> None:
        self.n_rows, self.n_outputs = len(factors), cross.shape[1]
        self._factors, self._covariance, self._own = factors, covariance, own
        self.cross: FloatArray = factors @ cross
        # K^-1 factors S* = own^-1 factors (I + S J)^-1 S* with J = factors' own^-1 factors
        weighed = factors / own[:, None]
        system = np.eye(len(covariance)) + covariance @ (factors.T @ weighed)
        self._transposed: FloatArray = weighed @ np.linalg.solve(system, cross)
        self.explained_variance = np.einsum("ij,ij->j", self.cross, self._transposed)
        self.posterior_variance = np.maximum(variance - self.explained_variance, 0.0)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B K."""
        product: FloatArray = ((B @ self._factors) @ self._covariance) @ self._factors.T + B * self._own
        return product

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C that belong to these rows of X."""
        return np.ascontiguousarray(self._transposed[rows].T)
