"""Inducing inputs: a GP that stands on a few public inputs, for data too large for an exact one.

The prior is replaced by one that knows f only through its values at the inducing inputs Z (Quinonero-
Candela & Rasmussen 2005). With features phi(x) = W k(Z, x), W k(Z, Z) W' = I, the outcomes' covariance is

    phi' phi + D,     D = S (dtc)    or    S + k(x, x) - |phi(x)|^2 (fitc),

so that C's column of a row needs that row alone: T phi(x) / D with T = phi(X*)' (I + sum phi phi' / D)^-1.

The sum of a cell's outcomes follows f's mean over the cell's rows, and that is taken at a few points with the
rows' own mean and spread: features and D are means over these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.cells import MOST_CELLS
from cloakgp.data.chunks import evenly, in_threads, spread_evenly, steps
from cloakgp.data.merging import Inputs, group
from cloakgp.kernels.base import Kernel
from cloakgp.model.arrays import wide_dots
from cloakgp.model.point_sets import centres
from cloakgp.model.smoothers import FactoredGP, check_covariance

APPROXIMATIONS = ("dtc", "fitc")
MOST_INDUCING = 10_000
"""Their covariances among each other are held as a matrix."""
_CUT = 1e-10
"""Directions of k(Z, Z) below this share of the largest are left out: inputs too alike to tell apart."""
_PAIRS = 256  # rows by which a kernel's scale is judged


def check_inducing(inducing: Any) -> int | FloatArray | None:
    """How many inducing inputs, or these themselves, or None."""
    if inducing is None:
        return None
    if isinstance(inducing, (int, np.integer)) and not isinstance(inducing, bool):
        if not 1 <= inducing <= MOST_INDUCING:
            expected = f"must be at least 1 and at most {MOST_INDUCING}"
            raise ArgumentError("inducing", expected, str(inducing), "Leave it out for an exact GP.")
        return int(inducing)
    if not isinstance(inducing, (list, tuple)) and np.ndim(inducing) == 0:
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
    some = spread_evenly(X, max(20_000, 10 * n))  # all that k-means looks at
    found = group(some)
    unique = some if found is None else some[found.first]
    if len(unique) <= n:
        return frozen(unique)
    scale = some.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return frozen(centres(some / scale, n) * scale)


class Seen(NamedTuple):
    """What a model with inducing inputs knows of distinct rows, or of cells."""

    phi: FloatArray  # (r, U)
    D: FloatArray  # (U,)
    n: FloatArray  # (U,): rows of y

    def left(self, phi: FloatArray) -> FloatArray:
        """(n,) variance that y leaves of what inducing inputs tell of f, where features are phi (r, n)."""
        weighed = self.phi * np.sqrt(self.n / self.D)
        # The sum of phi phi' / D over all rows of y is what they tell.
        root = cholesky(np.eye(len(phi)) + wide_dots(weighed, weighed), lower=True, check_finite=False)
        white = solve_triangular(root, phi, lower=True, check_finite=False)
        return np.asarray(np.einsum("ij,ij->j", white, white))


class Features:
    """phi(x) = W k(Z, x): coordinates in which f at the inducing inputs Z is white.

    W is made of eigenvectors, without those of the smallest eigenvalues: the same model on every machine.
    What is released is verified by whitening again, and rounding hardly moves the space that is left.
    """

    def __init__(self, kernel: Kernel, Z: FloatArray) -> None:
        self.kernel, self.Z = kernel, Z
        gram = kernel(Z, Z)
        check_covariance(gram)
        values, vectors = np.linalg.eigh(gram)
        keep = values > _CUT * values[-1]
        self.W: FloatArray = (vectors[:, keep] / np.sqrt(values[keep])).T  # (r, m)

    def kernel_rows(self, X: FloatArray) -> FloatArray:
        """(n, m) k(X, Z)."""
        return np.asarray(self.kernel(X, self.Z))

    def at(self, X: FloatArray) -> FloatArray:
        """(r, n) features of the rows of X."""
        features: FloatArray = self.W @ self.kernel_rows(X).T
        return features

    def seen(self, inputs: Inputs, approximation: str) -> Seen:
        """Features and D of distinct rows, or of cells."""
        phi, D = np.empty((len(self.W), len(inputs))), np.array(inputs.variances)

        def work(rows: slice) -> None:
            K: Any = 0.0
            rest: Any = 0.0
            points = list(_points_of(inputs, rows))
            for X in points:
                own = self.kernel_rows(X)
                K = K + own / len(points)
                if approximation == "fitc":
                    known = self.W @ own.T
                    left = self.kernel.diag(X) - np.einsum("ij,ij->j", known, known)
                    rest = rest + np.maximum(left, 0.0) / len(points)
            phi[:, rows] = self.W @ np.transpose(K)
            D[rows] += rest

        in_threads(work, list(steps(len(inputs))))
        return Seen(phi, D, inputs.counts)


def _points_of(inputs: Inputs, rows: slice) -> Iterator[FloatArray]:
    """Each row; of a cell two points for every column, which have its rows' mean and spread together."""
    X = np.asarray(inputs.X[rows], dtype=np.float64)
    if inputs.spreads is None:
        yield X
        return
    columns = np.flatnonzero(inputs.spreads.any(axis=0))
    step = np.sqrt(len(columns)) * inputs.spreads[rows]
    for column, sign in product(columns, (-1, 1)):
        points = X.copy()
        points[:, column] += sign * step[:, column]
        yield points


def scale_of(kernel: Kernel, rows: FloatArray) -> FloatArray:
    """(D,) how far f is apart per unit of each column, as a std; the largest range counts as 1.

    Over as much of a column's range as a cell would have if all columns were alike. Levels are left out. To
    three digits, so that every machine finds the same.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    some, spans = rows[evenly(len(rows), _PAIRS)], high - low
    steps = spans * MOST_CELLS ** (-1 / len(spans))
    scale = np.zeros(len(spans))
    steps[list(kernel.category_columns(len(spans)))] = 0.0
    for column in np.flatnonzero(steps):
        moved, inside = some.copy(), some[:, column] + steps[column] <= high[column]
        moved[:, column] += np.where(inside, steps[column], -steps[column])
        both = np.diagonal(kernel(some, moved))
        squared = kernel.diag(some) + kernel.diag(moved) - 2 * both
        scale[column] = np.sqrt(np.maximum(squared, 0.0).mean()) / steps[column]
    if not scale.any():
        scale = 1 / np.where(spans > 0, spans, 1.0)
    return np.array([float(f"{value:.2e}") for value in scale / (scale * spans).max()])


class SparseGP(FactoredGP):
    """A GP with inducing inputs that has seen X, or the sums of y over equal rows or cells.

    Parameters
    ----------
    features : Features
    approximation : {"dtc", "fitc"}
    inputs : Inputs
    X_star : (P, D) array
    """

    def __init__(self, features: Features, approximation: str, inputs: Inputs, X_star: FloatArray) -> None:
        phi, D, n = features.seen(inputs, approximation)
        prior = np.asarray(features.kernel.diag(X_star))
        super().__init__((phi * n).T, np.eye(len(phi)), features.at(X_star), D * n, prior)
