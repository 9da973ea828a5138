"""Support points: where f is followed, and how f anywhere hangs on them.

Up to some hundred distinct inputs each is a support point. Beyond, a few hundred are chosen by k-means, and
f at the inputs is an interpolation P of f there: by the kernel of one setting that stands for its neighbours,
and a little by a kernel as short as support points are dense. By that setting alone, one that is flat would
interpolate everything flat, and no other setting could be told from it any more.
Levels of a category are not averaged: each has support points of its own, however few inputs it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import FloatArray, frozen
from cloakgp.kernels import EQ, Matern32, Matern52
from cloakgp.model.hyperprior import Candidate
from cloakgp.model.inducing import choose_inducing

MOST_EXACT = 400
"""Distinct inputs up to which each is a support point."""
_LOOKED_AT, _SAMPLED = 256, 64  # inputs that stand for all, and where each is looked at for every model
_FINE = 0.1  # of the reference's signal: for what the support points can just tell apart


def support_points(
    X: FloatArray, inducing: int | FloatArray | None, categories: Sequence[int] = ()
) -> FloatArray | None:
    """Inputs that stand for all; None where each of X stands for itself. Some columns may hold levels."""
    if inducing is None and len(X) <= MOST_EXACT:
        return None
    if isinstance(inducing, np.ndarray):
        return inducing
    # Few enough for hundreds of models; on a line there are six for each of the shortest lengthscales.
    n = (192 if X.shape[1] == 1 else 320) if inducing is None else inducing
    return _of_levels(X, n, list(categories)) if categories else choose_inducing(X, n)


def _of_levels(X: FloatArray, n: int, categories: list[int]) -> FloatArray:
    """About n inputs that stand for all, with one at least for each combination of levels.

    If there are more of these than n, one for each level, and then the most frequent combinations.
    """
    found, who, counts = np.unique(X[:, categories], axis=0, return_inverse=True, return_counts=True)
    who, order = who.ravel(), np.argsort(-counts, kind="stable")
    if len(found) > n:
        seen: set[tuple[int, float]] = set()
        first: list[int] = []
        others: list[int] = []
        for one in order.tolist():
            new = set(enumerate(found[one].tolist())) - seen
            (first if new else others).append(one)
            seen |= new
        order = np.array((first + others)[: max(n, min(len(first), MOST_EXACT))])
    spare = max(n - len(order), 0)
    shares = (spare * counts[order]) // counts[order].sum()
    parts = []
    for one, share in zip(order.tolist(), shares.tolist(), strict=True):
        points = np.array(choose_inducing(X[who == one], 1 + share))
        points[:, categories] = found[one]  # a mean of equal numbers may round
        parts.append(points)
    return frozen(np.vstack(parts))


class Support:
    """Support points Z, and the interpolation from them.

    Parameters
    ----------
    X, X_star : (U, D) and (P, D) arrays
        Distinct inputs, and test points.
    reference, fine : Candidate
        Whose kernels interpolate: what the best setting expects, and what the points can just tell apart.
    Z : (m, D) array, optional
        The support points; all inputs if absent.
    """

    def __init__(
        self,
        X: FloatArray,
        X_star: FloatArray,
        reference: Candidate,
        fine: Candidate,
        Z: FloatArray | None = None,
    ) -> None:
        self.X, self.X_star, self._reference, self._fine = X, X_star, reference, fine
        self.exact = Z is None
        self.Z = X if Z is None else Z
        self.looked_at, self.sampled = (
            np.linspace(0, len(X) - 1, min(len(X), most)).astype(np.intp) for most in (_LOOKED_AT, _SAMPLED)
        )
        self.P: FloatArray | None = None if self.exact else self._interpolation(X)

    def again(self, reference: Candidate) -> Support:
        """The same points with another setting's interpolation."""
        return self if self.exact else Support(self.X, self.X_star, reference, self._fine, self.Z)

    def inner(self, setting: Candidate) -> FloatArray:
        """(m, m) the setting's smooth part with variance 1, among the support points."""
        shape = setting.shape
        few = len(self.Z) <= MOST_EXACT  # for whose differences there is room
        if few and isinstance(shape, (EQ, Matern32, Matern52)) and shape.active_dims is None:
            gaps, places = self._gaps
            with np.errstate(all="ignore"):  # far apart: simply 0
                return np.asarray(shape.of_gaps(gaps)[places], dtype=np.float64)
        return np.asarray(shape(self.Z), dtype=np.float64)

    @cached_property
    def _gaps(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """Differences of any two support points, by column; and which of them each entry is of."""
        first, second = np.tril_indices(len(self.Z))
        places = np.empty((len(self.Z),) * 2, dtype=np.intp)
        places[first, second] = places[second, first] = np.arange(len(first))
        return (self.Z[first] - self.Z[second]).T.copy(), places

    def exactly(self, setting: Candidate) -> FloatArray:
        """(m + P, m + P) the same among support and test points, by the setting's own kernel."""
        return np.asarray(setting.shape(np.vstack([self.Z, self.X_star])), dtype=np.float64)

    def whole(self, setting: Candidate) -> FloatArray:
        """The same by interpolation, which takes far test points, where it overshoots, for known."""
        if self.exact:
            return self.exactly(setting)
        inner = self.inner(setting)
        cross = inner @ self._star.T
        star = self._star @ cross
        np.fill_diagonal(star, setting.shape.diag(self.X_star))  # what is left out is known to be there
        return np.block([[inner, cross], [cross.T, star]])

    def left_out(self, setting: Candidate, inner: FloatArray) -> float:
        """What the interpolation leaves out of a smooth part with variance 1, on average over the inputs."""
        if self.P is None:
            return 0.0
        X, products = self._few
        variance = float(setting.shape.diag(X).mean()) if setting.known else 1.0
        return max(variance - float(np.vdot(products, inner)), 0.0)

    @cached_property
    def _few(self) -> tuple[FloatArray, FloatArray]:
        """Some of the inputs, and the mean over them of the products of their interpolation's weights."""
        assert self.P is not None
        few = self.sampled
        return self.X[few], self.P[few].T @ self.P[few] / len(few)

    def at(self, A: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        """From columns for support points to columns for these inputs."""
        return np.asarray(A[:, rows] if self.P is None else A @ self.P[rows].T)

    @cached_property
    def _star(self) -> FloatArray:
        return self._interpolation(self.X_star)

    @cached_property
    def _inverse(self) -> FloatArray:
        K = self._covariance(self.Z)
        smooth = self._reference.signal * self._reference.shape.diag(self.Z)
        # Keeps interpolation from overshooting.
        K[np.diag_indices_from(K)] += 1e-3 * smooth
        return np.asarray(np.linalg.inv(K))

    def _covariance(self, X: FloatArray) -> FloatArray:
        """(n, m) with the support points, of f as it is interpolated."""
        K = np.array(self._reference.kernel(X, self.Z), dtype=np.float64)
        if not self._reference.known:
            K += _FINE * self._reference.signal * np.asarray(self._fine.shape(X, self.Z))
        return K

    def _interpolation(self, X: FloatArray) -> FloatArray:
        """(n, m) from f at the support points to f at X."""
        return np.asarray(self._covariance(X) @ self._inverse)
