"""How the model links what was measured with f anywhere: prior covariances, for denoising.

With B the measurement matrix, over the sums of y at the distinct rows of X, and K the prior covariance of
these sums: Cov(f(x), B y) and B K B'. Public, like all that is not y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular

from cloakgp.checks import FloatArray
from cloakgp.measurements.lattice import Measurement
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.model.build import smoother_for
from cloakgp.model.inducing import Features, SparseGP, SparseRows, information
from cloakgp.rows.merging import Inputs, take

if TYPE_CHECKING:
    from cloakgp.model.gp import GP

_ENTRIES = 2**22  # of a block of the kernel matrix: bounds memory, whatever is asked


class Links(ABC):
    """Prior covariances of the measurements."""

    covariance: FloatArray
    """(q, q) of the measurements with each other, privacy noise not counted."""
    weights: FloatArray
    """(w, q): what :meth:`rows` is multiplied with for f's covariance with the measurements."""

    @abstractmethod
    def rows(self, X: FloatArray) -> FloatArray:
        """(n, w) covariances of f(X) with f where it is measured, or at the inducing inputs."""

    @abstractmethod
    def explaining(self, factor: FloatArray) -> FloatArray:
        """(c, w) C with as few rows as will do: what the measurements tell of f(X) has the root C rows(X)'.

        `factor` is their covariance's, noise included, by Cholesky.
        """

    @abstractmethod
    def known_variance(self, X: FloatArray) -> FloatArray:
        """(n,) variance of f(X) if y itself were known."""

    def at(self, X: FloatArray) -> FloatArray:
        """(n, q) covariances of f(X) with the measurements."""
        return np.asarray(self.rows(X) @ self.weights)


def links(
    gp: GP,
    X: Any,
    measured: Sequence[Measurement | FactoredMeasurement],
    slopes: Sequence[FloatArray | None] | None = None,
    inputs: Inputs | None = None,
) -> Links:
    """For measurements of the same data, stacked; `slopes` say how far each group's outcome moves them.

    `inputs` stand for X where rows that are not equal have been joined.
    """
    recipes = [m for m in measured if isinstance(m, FactoredMeasurement)]
    if recipes and len(recipes) < len(measured):
        raise ValueError(
            "releases: some hold their measurement as a matrix, others as a recipe; combine like with like."
        )
    if recipes:
        return FactoredLinks(gp, recipes)
    measurements = [m for m in measured if isinstance(m, Measurement)]
    groups = measurements[0].groups
    each = slopes or [None] * len(measurements)
    if all(m.groups is groups or _same(m, measurements[0]) for m in measurements):
        parts = [_sloped(m.real_matrix(), s) for m, s in zip(measurements, each, strict=True)]
    else:  # one counts the rows singly
        groups = None
        singly = [None if s is None else s[m.labels] for m, s in zip(measurements, each, strict=True)]
        parts = [_sloped(m.by_row(), s) for m, s in zip(measurements, singly, strict=True)]
    B = parts[0] if len(parts) == 1 else np.vstack(parts)
    if inputs is None:
        inputs = take(X, gp.noise, groups)
    return ExactLinks(gp, inputs, B) if gp.inducing is None else SparseLinks(gp, inputs, B)


def _sloped(real: FloatArray, slope: FloatArray | None) -> FloatArray:
    return real if slope is None else real * slope


def _same(one: Measurement, other: Measurement) -> bool:
    if one.groups is None or other.groups is None:
        return one.groups is other.groups
    return np.array_equal(one.groups.labels, other.groups.labels)


class ExactLinks(Links):
    """k(x, X) B' and B (Kff + S) B'."""

    def __init__(self, gp: GP, inputs: Inputs, B: FloatArray) -> None:
        self._gp, self._inputs, self.weights = gp, inputs, (B * inputs.counts).T
        product = B * inputs.noise
        for rows in batches(len(inputs), len(inputs)):
            product += self.weights[rows].T @ np.asarray(gp.kernel(inputs.X[rows], inputs.X))
        self.covariance: FloatArray = product @ self.weights

    def rows(self, X: FloatArray) -> FloatArray:
        return np.asarray(self._gp.kernel(X, self._inputs.X))

    def explaining(self, factor: FloatArray) -> FloatArray:
        return _solved(factor, self.weights.T)

    def known_variance(self, X: FloatArray) -> FloatArray:
        return smoother_for(self._gp, self._inputs, X).posterior_variance


class _FeatureLinks(Links):
    """phi(x)' H', with features phi(x) = A k(Z, x): often far fewer than inducing inputs, or measurements."""

    def __init__(self, features: Features, approximation: str, H: FloatArray, own: FloatArray) -> None:
        self._features, self._approximation, self._H = features, approximation, H
        self.weights: FloatArray = (H @ features.factor.A).T
        self.covariance: FloatArray = H @ H.T + own

    @property
    @abstractmethod
    def _information(self) -> FloatArray:
        """What X tells: see :func:`cloakgp.model.inducing.information`."""

    def rows(self, X: FloatArray) -> FloatArray:
        return self._features.kernel_rows(X)

    def explaining(self, factor: FloatArray) -> FloatArray:
        whitened = _solved(factor, self._H)
        if len(whitened) > whitened.shape[1]:
            whitened = np.asarray(np.linalg.qr(whitened, mode="r"))
        return np.asarray(whitened @ self._features.factor.A)

    def known_variance(self, X: FloatArray) -> FloatArray:
        model = SparseGP(self._features, self._approximation, self._information, X)
        variance: FloatArray = model.posterior_variance
        return variance


class SparseLinks(_FeatureLinks):
    """H = B phi', and H H' + B D B'."""

    def __init__(self, gp: GP, inputs: Inputs, B: FloatArray) -> None:
        features, self._inputs = Features(gp.kernel, np.asarray(gp.inducing)), inputs
        untold = np.zeros((len(features.W),) * 2)  # what X tells is summed up when it is asked for
        model = SparseGP(features, gp.approximation, untold, inputs.X[:1])
        rows = SparseRows(model, inputs)
        rows.keep = False  # each is looked at once
        super().__init__(features, gp.approximation, *rows.factored.measured(B))

    @cached_property
    def _information(self) -> FloatArray:
        return information(self._features, self._approximation, self._inputs)


class FactoredLinks(_FeatureLinks):
    """The same from a recipe, B = R phi / D: H = R I and B D B' = R I R', with I the rows' information."""

    def __init__(self, gp: GP, measurements: Sequence[FactoredMeasurement]) -> None:
        first = measurements[0]
        R = np.vstack([m.recipe.reduced_to(first.recipe.features) for m in measurements])
        self._told = first.information
        H = R @ self._told
        super().__init__(first.recipe.features, gp.approximation, H, H @ R.T)

    @property
    def _information(self) -> FloatArray:
        return self._told


def _solved(factor: FloatArray, right: FloatArray) -> FloatArray:
    result: FloatArray = solve_triangular(factor, right, lower=True)
    return result


def batches(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of rows such that a block has a bounded number of entries."""
    step = max(1, _ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
