"""How y becomes predictions: always ``prior + C (y - prior)`` for a public matrix C.

A smoother knows C and hands out its columns in blocks of rows of X (one row of X, one column
of C), so that nothing that uses it depends on C being held in memory. y never comes here. Where the prior was
shaped by what was released before, it is given as covariances: a matrix, or factors that never make one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import evenly
from cloakgp.data.merging import Inputs, distinct
from cloakgp.kernels.base import Kernel
from cloakgp.model.arrays import like, times_wide, wide_dots

Rows = NDArray[np.intp]

BLOCK = 8192
"""Rows of X handled at a time."""

_SAMPLE = 256  # rows on which a kernel is tested for positive semi-definiteness


class Smoother(Protocol):
    """What designs and plans need to know of a smoother."""

    n_rows: int
    n_outputs: int
    jitter: float
    scale: float
    """The mean diagonal that a jitter is a power of ten of; 0 if there is never any."""
    posterior_variance: FloatArray
    """(P,) variance of f(X*) given y."""
    explained_variance: FloatArray
    """(P,) variance of C y: what y can tell of f(X*)."""

    @property
    def cross(self) -> FloatArray:
        """(N, P) prior covariance of y and f(X*)."""
        ...

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B (q, N) times the prior covariance of y."""
        ...

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C, shape (n_outputs, number of rows), that belong to these rows of X."""
        ...


Solver = Callable[[Kernel, float | FloatArray, FloatArray, FloatArray], Smoother]
"""From kernel, noise, X and X* to the exact GP: on the processor, or on a GPU."""


def blocks(n_rows: int, size: int | None = None) -> Iterator[slice]:
    """Consecutive slices that cover the rows, of so many each; of `BLOCK` if nobody says."""
    size = size or BLOCK
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


class GivenGP:
    """C = cross' (K + S)^-1 by Cholesky (Rasmussen & Williams 2006, algorithm 2.1).

    Parameters
    ----------
    covariance : (N, N) array
        K, of the outcomes but for their noise.
    cross : (N, P) array
        Of the outcomes and f(X*).
    variance : (P,) array
        Of f(X*).
    noise : float or (N,) array
        Observation-noise variances S.
    """

    def __init__(
        self, covariance: FloatArray, cross: FloatArray, variance: FloatArray, noise: float | FloatArray = 0.0
    ) -> None:
        self._covariance, self._noise = covariance, noise
        factor, self.jitter = gentle_cholesky(covariance, noise)
        self.scale = mean_diagonal(covariance, noise)
        self._keep(cross, cho_solve(factor, cross, check_finite=False), variance)

    def _keep(self, cross: FloatArray, transposed: FloatArray, variance: FloatArray) -> None:
        """What follows from C^T."""
        self.n_rows, self.n_outputs = cross.shape
        self.cross, self._transposed = cross, transposed
        self.explained_variance = np.einsum("ij,ij->j", cross, transposed)
        self.posterior_variance = np.maximum(variance - self.explained_variance, 0.0)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B (K + S)."""
        product: FloatArray = times_wide(B, self._covariance) + B * self._noise
        return product

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C that belong to these rows of X."""
        return np.ascontiguousarray(self._transposed[rows].T)


class ExactGP(GivenGP):
    """The same for a kernel, inputs (N, D) and test points (P, D)."""

    def __init__(self, kernel: Kernel, noise: float | FloatArray, X: FloatArray, X_star: FloatArray) -> None:
        gram = kernel(X, X)
        check_covariance(gram)
        some = np.vstack([sample(X), sample(X_star)])
        check_covariance(kernel(some, some))
        prior = kernel.diag(X_star)
        super().__init__(gram, kernel(X, X_star), prior, noise)
        if (self.explained_variance > prior * (1 + 1e-6) + 1e-12).any():
            raise ValueError(NOT_PSD)


class FactoredGP(GivenGP):
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
        self._factors, self._covariance, self._own = factors.T, covariance, own
        # K^-1 factors S* = own^-1 factors (I + S J)^-1 S* with J = factors' own^-1 factors
        weighed = factors / own[:, None]
        system = np.eye(len(covariance)) + covariance @ wide_dots(self._factors, weighed.T)
        self._keep(factors @ cross, weighed @ np.linalg.solve(system, cross), variance)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B K."""
        moved = wide_dots(B, self._factors) @ self._covariance
        product: FloatArray = times_wide(moved, self._factors) + B * self._own
        return product


def sites(inputs: Inputs) -> tuple[FloatArray, Rows, FloatArray]:
    """The different inputs, which of them each group has, and the noise variance of all outcomes at one."""
    found = distinct(inputs.X, 0.0)  # groups may share an input, with other noise
    site = np.arange(len(inputs)) if found.groups is None else found.groups.labels
    noise: FloatArray = 1 / np.bincount(site, weights=inputs.counts / inputs.variances)
    return found.X, site, noise


class _Around:
    """A smoother by way of another's, whose predictions are the same."""

    def __init__(self, inner: Smoother, n_rows: int) -> None:
        self._inner, self.n_rows, self.n_outputs = inner, n_rows, inner.n_outputs
        self.jitter, self.scale = inner.jitter, inner.scale
        self.posterior_variance, self.explained_variance = inner.posterior_variance, inner.explained_variance


class Merged(_Around):
    """An exact GP on the distinct inputs, seen through the sums of y over groups of equal rows.

    At one input, groups of n_g rows with noise variance S_g act as one outcome: their mean weighted by
    1 / S_g, with variance S = 1 / sum_g n_g / S_g. So a row of group g has the input's column times S / S_g.
    """

    def __init__(self, kernel: Kernel, inputs: Inputs, X_star: FloatArray, solver: Solver) -> None:
        X, self._site, noise = sites(inputs)
        inner = solver(kernel, noise, X, X_star)
        # What is solved on a device stays there; the rest is done here.
        super().__init__(inner.on_host() if hasattr(inner, "on_host") else inner, len(inputs))
        self._n, self._own, self._noise = inputs.counts, inputs.variances, noise
        self._share = noise[self._site] / self._own
        self.cross = self._inner.cross[self._site] * self._n[:, None]

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B times the covariance of the sums."""
        spread = B * self._n
        at_sites = np.zeros((len(B), len(self._noise)))
        np.add.at(at_sites.T, self._site, spread.T)
        smooth = self._inner.times_covariance(at_sites) - at_sites * self._noise
        product: FloatArray = smooth[:, self._site] * self._n + spread * self._own
        return product

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C, each of any one row of a group."""
        columns: FloatArray = self._inner.columns(self._site[rows]) * self._share[rows]
        return columns


class Rescaled(_Around):
    """A smoother of outcomes that are each measured in a unit of their own: y_i / units[i]."""

    def __init__(self, inner: Smoother, units: FloatArray) -> None:
        super().__init__(inner, inner.n_rows)
        self._units, self._here = units, like(inner.cross, units)
        self.cross: FloatArray = inner.cross / self._here[:, None]

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B times the covariance of the outcomes in their units."""
        product: FloatArray = self._inner.times_covariance(B / self._here) / self._here
        return product

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C, for outcomes in their units."""
        columns: FloatArray = self._inner.columns(rows) * like(self.cross, self._units[rows])
        return columns


NOT_PSD = (
    "kernel must return a positive semi-definite matrix; it does not on these inputs. "
    "Check the kernel's formula, or use one from cloakgp.kernels."
)


def check_covariance(gram: FloatArray) -> None:
    """Refuse what cannot be a covariance matrix, by conditions necessary on any sample of the rows."""
    part = sample(sample(gram).T)
    size = max(float(np.abs(part).max()), np.finfo(float).tiny)
    if not np.allclose(part, part.T, rtol=0, atol=1e-8 * size):
        raise ValueError(
            "kernel(X, X) must be symmetric; it is not on these inputs. Check the kernel's formula."
        )
    try:  # a principal submatrix of a positive semi-definite matrix is one too
        cho_factor(part + 1e-8 * size * np.eye(len(part)), overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError(NOT_PSD) from None


def sample(rows: FloatArray) -> FloatArray:
    """Up to so many rows, evenly spread."""
    sample: FloatArray = rows[evenly(len(rows), _SAMPLE)]
    return sample


def jitters(scale: float) -> list[float]:
    """What to add to a diagonal of this size until a factorisation works, from nothing upwards."""
    return [0.0, *(scale * 10.0**power for power in range(-15, -5))]


def mean_diagonal(gram: FloatArray, noise: float | FloatArray) -> float:
    return float(np.mean(np.diag(gram) + noise))


def gentle_cholesky(gram: FloatArray, noise: float | FloatArray) -> tuple[tuple[FloatArray, bool], float]:
    """Cholesky factor of gram + S + jitter I with the smallest jitter, from none upwards, that works."""
    for jitter in jitters(mean_diagonal(gram, noise)):
        attempt = gram.T.copy(order="F")  # Fortran order lets LAPACK work in place
        attempt[np.diag_indices_from(attempt)] += noise + jitter
        try:
            return cho_factor(attempt, lower=True, overwrite_a=True, check_finite=False), jitter
        except LinAlgError:
            continue
    raise ValueError(NOT_PSD)
