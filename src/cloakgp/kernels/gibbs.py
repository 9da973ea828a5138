"""A kernel whose lengthscale differs from place to place (Gibbs 1997; Paciorek and Schervish 2004)."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels.base import Array, full, like, registered
from cloakgp.kernels.families import OnColumns

_EXAMPLE = "Give knots (positions, lengthscales), such as ([0, 20, 80], [5, 10, 40])."


@registered
class Gibbs(OnColumns):
    """Like :class:`EQ`, with a lengthscale ℓ(x) that differs from place to place.

    k(x, z) = variance · (2 ℓ(x) ℓ(z) / s)^(D/2) · exp(−|x − z|² / s), where s = ℓ(x)² + ℓ(z)² and D is the
    number of columns, all of which share ℓ. For lengthscales of their own, multiply kernels of one column
    each: ``Gibbs(a, active_dims=[0]) * Gibbs(b, active_dims=[1])``.

    Parameters
    ----------
    lengthscale : (positions, lengthscales)
        Knots: the n positions, numbers for one column and else (n, D), and the n lengthscales there. Between
        the positions of one column, log ℓ goes in straight lines; in more columns it is the mean of the
        knots' log ℓ, weighted by inverse squared distance in units of the box around the knots. Outside that
        box ℓ is as at its edge. They must come from public knowledge, such as X.
    variance, active_dims
        As for :class:`EQ`.

    Examples
    --------
    >>> kernel = Gibbs(([0, 20, 80], [5, 10, 40]), variance=4.0)
    >>> kernel([[0.0], [5.0]], [[0.0], [80.0]]).round(3)
    array([[4.   , 0.039],
           [2.624, 0.069]])
    """

    lengthscale: Any
    _: KW_ONLY
    variance: float = 1.0
    active_dims: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._store(lengthscale=_knots(self.lengthscale))
        self._check_entries(self._width, "knots with one coordinate")

    def _matrix(self, X: Array, Z: Array) -> Array:
        xp = array_namespace(X, Z)
        X_columns = self._columns(X)
        Z_columns = X_columns if Z is X else self._columns(Z)
        a = self._lengthscales(X_columns)[:, None]
        b = a[:, 0][None, :] if Z is X else self._lengthscales(Z_columns)[None, :]
        # Both formulas divided by the longer of the two lengthscales, whose square could be infinite.
        longer = xp.maximum(a, b)
        ratio = xp.minimum(a, b) / longer
        total: Array = 1.0 + ratio * ratio
        # At most 1 however it rounds: where q = ratio > 1/2, 2q − 1 is a float, and q² rounds to no less.
        values = (2.0 * ratio / total) ** (X_columns.shape[1] / 2)
        for d in range(X_columns.shape[1]):
            gap = (X_columns[:, d][:, None] - Z_columns[:, d][None, :]) / longer
            values = values * xp.exp(-(gap * gap) / total)
        return self.variance * values

    def _columns(self, X: Array) -> Array:
        """The columns of X that this kernel reads."""
        self._check_entries(self._width, "knots with one coordinate", X)
        return array_namespace(X).stack([X[:, column] for column in self._dims(X)], axis=1)

    @property
    def _width(self) -> int:
        """How many columns the knots are in."""
        return np.size(self.lengthscale[0][0])

    def _lengthscales(self, X: Array) -> Array:
        """(N,) ℓ(x), for the columns that are read."""
        xp = array_namespace(X)
        positions, scales = (np.asarray(part) for part in self.lengthscale)
        logs = (_between if positions.ndim == 1 else _among)(positions, np.log(scales), X, xp)
        return xp.exp(logs)


def _between(positions: Any, logs: Any, X: Array, xp: Any) -> Array:
    """log ℓ in straight lines between knots in one column: each rise, as far as x is on its way."""
    found = full(X, (X.shape[0],), float(logs[0]))
    for start, end, rise in zip(positions[:-1], positions[1:], np.diff(logs), strict=True):
        found = found + float(rise) * xp.clip((X[:, 0] - float(start)) / float(end - start), 0.0, 1.0)
    return found


def _among(positions: Any, logs: Any, X: Array, xp: Any) -> Array:
    """The mean of the knots' log ℓ by inverse squared distance, x being moved into their box."""
    squared = full(X, (X.shape[0], len(logs)), 0.0)
    for d, knots in enumerate(positions.T):
        low, high = float(knots.min()), float(knots.max())
        gap = (xp.clip(X[:, d], low, high)[:, None] - like(X, knots)[None, :]) / (high - low or 1.0)
        squared = squared + gap * gap
    weights = 1.0 / xp.clip(squared, 1e-30, None)  # nearer to a knot than that is at it
    return xp.sum(weights * like(X, logs), axis=1) / xp.sum(weights, axis=1)


def _knots(value: Any) -> tuple[Any, tuple[float, ...]]:
    """The positions, in order where they are of one column, and the lengthscales; checked."""
    try:
        positions, scales = value
    except (TypeError, ValueError):
        one = isinstance(value, (int, float)) and not isinstance(value, bool)
        remedy = f"{_EXAMPLE} For one lengthscale everywhere use EQ." if one else _EXAMPLE
        raise ArgumentTypeError("lengthscale", "must be knots", reprlib.repr(value), remedy) from None
    places = checks.matrix(positions, "lengthscale's positions")
    lengths = checks.vector(scales, "lengthscale", positive=True, remedy=_EXAMPLE)
    if len(places) != len(lengths):
        raise ArgumentError(
            "lengthscale",
            "must have as many positions as lengthscales",
            f"{len(places)} and {len(lengths)}",
            _EXAMPLE,
        )
    if len(lengths) > 1000:  # each costs as much as a column of X
        raise ArgumentError("lengthscale", "must have at most 1000 knots", str(len(lengths)))
    if np.abs(places).max() > 1e100:  # so that no difference of two is infinite
        raise ArgumentError(
            "lengthscale's positions", "must be at most 1e+100 in size", remedy="Change X's unit."
        )
    if len(np.unique(places, axis=0)) < len(places):
        raise ArgumentError("lengthscale's positions", "must differ from each other")
    if places.shape[1] > 1:
        return tuple(map(tuple, places.tolist())), tuple(lengths.tolist())
    order = np.argsort(places[:, 0])
    return tuple(places[order, 0].tolist()), tuple(lengths[order].tolist())
