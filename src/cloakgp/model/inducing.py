"""Inducing inputs: a GP that stands on a few public inputs, for data too large for an exact one.

The prior is replaced by one that knows f only through its values at the inducing inputs Z (Quinonero-
Candela & Rasmussen 2005). With features phi(x) = W k(Z, x), W k(Z, Z) W' = I, the outcomes' covariance is

    phi' phi + D,     D = S (dtc)    or    S + k(x, x) - |phi(x)|^2 (fitc),

so that C's column of a row needs that row alone: T phi(x) / D with T = phi(X*)' (I + sum phi phi' / D)^-1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf, dtrtri

from cloakgp import checks
from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.model.factored import Factored
from cloakgp.model.factors import Factor
from cloakgp.model.k_means import centres
from cloakgp.model.smoothers import Rows, blocks, check_covariance, diagonal, kernel_matrix
from cloakgp.rows.chunks import spread_evenly, steps
from cloakgp.rows.merging import Chunk, Inputs, group
from cloakgp.rows.passes import sweep

APPROXIMATIONS = ("dtc", "fitc")
MOST_INDUCING = 10_000
"""Their covariances among each other are held as a matrix."""
_CUT = 1e-10
"""Directions of k(Z, Z) below this share of the largest are left out: inputs too alike to tell apart."""
_SAMPLE = 20_000  # rows that k-means looks at, or ten for each inducing input
_KEPT = 2**26  # numbers of features that are kept: half a gigabyte


def check_inducing(inducing: Any) -> int | FloatArray | None:
    """How many inducing inputs, or these themselves, or None."""
    if inducing is None:
        return None
    if isinstance(inducing, (int, np.integer)) and not isinstance(inducing, bool):
        if not 1 <= inducing <= MOST_INDUCING:
            expected = f"must be at least 1 and at most {MOST_INDUCING}"
            raise ArgumentError("inducing", expected, str(inducing), "Leave it out for an exact GP.")
        return int(inducing)
    if np.ndim(inducing) == 0:
        raise ArgumentTypeError(
            "inducing",
            "must be a number of inducing inputs or an array of them",
            repr(inducing),
            "Give a whole number, such as 500, to have them chosen by k-means on X.",
        )
    given = checks.matrix(inducing, "inducing")
    if len(given) > MOST_INDUCING:
        raise ArgumentError(
            "inducing", f"must have at most {MOST_INDUCING} rows", str(len(given)), "Use fewer."
        )
    return given


def choose_inducing(X: Any, n: int) -> FloatArray:
    """(m, D) inducing inputs, by k-means on rows spread evenly over X: public, and the same every time.

    Columns are scaled to their spread. Few of them follow the bulk of the data; with many, outliers get their
    own.
    """
    some = spread_evenly(X, max(_SAMPLE, 10 * n))
    found = group(some)
    unique = some if found is None else some[found.first]
    if len(unique) <= n:
        return frozen(unique)
    scale = some.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return frozen(centres(some / scale, n) * scale)


class Features:
    """phi(x) = W k(Z, x): coordinates in which f at the inducing inputs Z is white."""

    def __init__(self, kernel: Any, Z: FloatArray, W: FloatArray | None = None) -> None:
        self.kernel, self.Z = kernel, Z
        self.W = _whitening(kernel, Z) if W is None else W  # (r, m)
        counted = np.flatnonzero(self.W.any(axis=0))
        first = (self.W[:, counted] != 0).argmax(axis=0)
        self.used: Rows = counted[np.argsort(first, kind="stable")]
        """Which inducing inputs count, in the order in which W has a triangle."""
        self.factor = Factor(self.W[:, self.used])

    def kernel_rows(self, X: FloatArray, used: Rows | None = None) -> FloatArray:
        """(n, m') k(X, Z) of those inducing inputs that are used."""
        return kernel_matrix(self.kernel, X, self.Z[self.used if used is None else used], "X, inducing")

    def at(self, X: FloatArray) -> FloatArray:
        """(r, n) features of the rows of X."""
        return self.factor.times(self.kernel_rows(X))


def _whitening(kernel: Any, Z: FloatArray) -> FloatArray:
    """By eigenvectors, without those of the smallest eigenvalues: the same model on every machine.

    What is released is verified by whitening again, and rounding hardly moves the space that is left.
    """
    gram = _gram(kernel, Z)
    values, vectors = np.linalg.eigh(gram)
    keep = values > _CUT * values[-1]
    W: FloatArray = (vectors[:, keep] / np.sqrt(values[keep])).T
    return W


def triangular_whitening(kernel: Any, Z: FloatArray) -> FloatArray:
    """The inverse of a Cholesky factor that takes the inducing inputs by what the ones before leave unknown.

    Those that add next to nothing are left out, so that no kernel value is needed of them. Which ones, hangs
    on how a machine rounds: for recipes alone, which hold it.
    """
    gram = _gram(kernel, Z)
    cut = _CUT * float(np.abs(gram).sum(axis=1).max())  # at least that share of the largest eigenvalue
    root, order, rank, _ = dpstrf(gram, tol=cut, lower=1)
    W = np.zeros((rank, len(Z)))
    W[:, order[:rank] - 1] = np.tril(dtrtri(root[:rank, :rank], lower=1)[0])
    return W


def _gram(kernel: Any, Z: FloatArray) -> FloatArray:
    gram = kernel_matrix(kernel, Z, Z, "inducing, inducing")
    check_covariance(gram)
    return gram


class SparseGP:
    """A GP with inducing inputs, and what X tells it; its rows are not kept.

    Parameters
    ----------
    features : Features
    approximation : {"dtc", "fitc"}
    information : (r, r) array
        The sum of phi phi' / D over the rows of X: see :func:`information`.
    X_star : (P, D) array
    """

    def __init__(
        self, features: Features, approximation: str, information: FloatArray, X_star: FloatArray
    ) -> None:
        self.features, self.approximation, self.information = features, approximation, information
        self.star = features.at(X_star)  # (r, P)
        factor = cho_factor(np.eye(len(information)) + information, lower=True, check_finite=False)
        self.T: FloatArray = cho_solve(factor, self.star, check_finite=False).T  # (P, r)
        prior = diagonal(features.kernel, X_star)
        known = np.einsum("ij,ij->j", self.star, self.star)
        left = np.einsum("ij,ji->j", self.star, self.T)
        self.explained_variance = np.maximum(known - left, 0.0)
        self.posterior_variance = np.maximum(prior - known, 0.0) + left

    def rest(self, X: FloatArray, phi: FloatArray, noise: float | FloatArray) -> float | FloatArray:
        """D: the variance of one outcome at each row of X that its features do not explain."""
        return unexplained(self.features, self.approximation, X, phi, noise)


def unexplained(
    features: Features, approximation: str, X: FloatArray, phi: FloatArray, noise: float | FloatArray
) -> float | FloatArray:
    """D at the rows of X, whose features are `phi`; one number if it is the same everywhere."""
    if approximation == "dtc":
        return noise
    rest = diagonal(features.kernel, X) - np.einsum("ij,ij->j", phi, phi)
    result: FloatArray = noise + np.maximum(rest, 0.0)
    return result


def information(features: Features, approximation: str, inputs: Inputs) -> FloatArray:
    """The sum of phi phi' / D over all rows, in one pass."""
    function = partial(_information, features, approximation)
    total = np.zeros((len(features.W),) * 2)
    for part in sweep(function, inputs.X, inputs.noise, inputs.group_counts, label="summing over rows"):
        total += part
    return total


def _information(
    features: Features, approximation: str, X: FloatArray, noise: Any, counts: Any
) -> FloatArray:
    total, chunk = Gram(len(features.W)), Chunk(X, noise, counts)
    for rows in steps(len(chunk)):
        step = chunk[rows]
        phi = features.at(step.X)
        D = unexplained(features, approximation, step.X, phi, step.noise)
        total.add(phi.T, np.sqrt(step.group_counts / D))
    return total.total


class Gram:
    """The sum of phi phi' over many rows phi, each times its weight."""

    def __init__(self, r: int) -> None:
        self.total = np.zeros((r, r))

    def add(self, rows: FloatArray, weights: float | FloatArray) -> None:
        """Rows (n, r)."""
        if np.ndim(weights):
            rows, weights = rows * np.reshape(weights, (-1, 1)), 1.0
        self.total += (rows.T @ rows) * weights**2


class SparseRows:
    """C's columns at given rows of X, seen through the sums of y over groups of equal rows."""

    jitter = scale = 0.0
    keep = True
    """Whether columns that were made are kept."""

    def __init__(self, model: SparseGP, inputs: Inputs) -> None:
        self.model, self.inputs = model, inputs
        self.n_rows, self.n_outputs = len(inputs), len(model.T)
        self.posterior_variance, self.explained_variance = model.posterior_variance, model.explained_variance

    @cached_property
    def cross(self) -> FloatArray:
        """(N, P) prior covariance of the sums and f(X*)."""
        parts = [(phi * n).T @ self.model.star for _, phi, _, n in self._blocks()]
        return np.vstack(parts)

    def times_covariance(self, B: FloatArray) -> FloatArray:
        """B times the prior covariance of the sums."""
        seen, _ = self.factored.measured(B)
        return self.factored.back(seen, -np.eye(len(B)), B)

    @cached_property
    def factored(self) -> Factored:
        """The covariance of the sums in factors."""
        if self._keeps_features:
            _ = self._features  # made once, not by each thread

        def at(rows: slice | Rows) -> tuple[FloatArray, FloatArray]:
            phi, D, n = self._at(rows)
            return phi if np.ndim(n) == 0 else phi * n, np.broadcast_to(D * n, len(phi.T))

        return Factored(self.n_rows, at, self.model.star, self.model.information)

    def columns(self, rows: slice | Rows) -> FloatArray:
        """Columns of C, each of any one row of a group."""
        if not self.keep:
            phi, D, _ = self._at(rows)
            return np.asarray(self.model.T @ (phi / D))
        kept = self._kept[:, rows]
        return kept if self._keeps_columns else np.asarray(self.model.T @ kept)

    @property
    def _keeps_columns(self) -> bool:
        """Whether columns of C are kept, or, where those are longer, the features that they are made from."""
        return self.n_outputs <= len(self.model.information)

    @cached_property
    def _kept(self) -> FloatArray:
        """What a design asks for again and again: C, or phi / D."""
        parts = [phi / D for _, phi, D, _ in self._blocks()]
        return np.hstack([self.model.T @ part for part in parts] if self._keeps_columns else parts)

    @property
    def _keeps_features(self) -> bool:
        return self.keep and self.n_rows * len(self.model.information) <= _KEPT

    @cached_property
    def _features(self) -> FloatArray:
        """(r, N) what every product with the covariance asks for."""
        return np.hstack([self.model.features.at(self.inputs[rows].X) for rows in blocks(self.n_rows)])

    def _blocks(self) -> Iterator[tuple[slice, FloatArray, FloatArray | float, FloatArray | float]]:
        for rows in blocks(self.n_rows):
            yield rows, *self._at(rows)

    def _at(self, rows: slice | Rows) -> tuple[FloatArray, FloatArray | float, FloatArray | float]:
        """Features, D, and how many rows of y, at some rows."""
        some = self.inputs[rows]
        phi = self._features[:, rows] if self._keeps_features else self.model.features.at(some.X)
        return phi, self.model.rest(some.X, phi, some.noise), some.group_counts
