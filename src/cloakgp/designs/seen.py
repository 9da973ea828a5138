"""What measurements B of y see: products with y's covariance K, by a smoother or by its factors."""

from __future__ import annotations

from copy import copy
from typing import Protocol

from cloakgp.model.arrays import Array, times_wide, wide_dots
from cloakgp.model.factored import Factored
from cloakgp.model.smoothers import Smoother


class Seen(Protocol):
    """B K in some form, and what follows from it; predictions are in a few coordinates."""

    @property
    def C(self) -> Array:
        """(P, N) how y becomes predictions."""
        ...

    def first(self, n: int) -> Seen:
        """The same for the first `n` coordinates of predictions."""
        ...

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B K in some form with as many rows; B K B'; and H (q, n), covariances with the coordinates."""
        ...

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """(q, N) Y E, without making E."""
        ...

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """(n, N) E: the covariance of predictions and y, given the measurements."""
        ...


class BySmoother:
    """For any smoother."""

    def __init__(self, C: Array, smoother: Smoother, turn: Array) -> None:
        self.C, self._smoother = C, smoother
        self._cross = times_wide(turn.T, smoother.cross.T)  # (n, N)

    def first(self, n: int) -> BySmoother:
        """The same for fewer coordinates."""
        result = copy(self)
        result._cross = self._cross[:n]
        return result

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B K, B K B' and H."""
        BK = self._smoother.times_covariance(B)
        return BK, wide_dots(BK, B), wide_dots(B, self._cross)

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """Y E."""
        pull = times_wide(Y, self._cross)
        pull -= times_wide(Y @ Y.T, BK)
        return pull

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """E."""
        return self._cross - times_wide(Y.T, BK)


class ByFactors:
    """For K = F'F + diag(d): B F' is all that is needed of B K."""

    def __init__(self, factored: Factored, turn: Array) -> None:
        self.factored, self.A = factored, factored.star @ turn  # (r, n)

    @property
    def C(self) -> Array:
        return self.factored.columns(slice(None))

    def first(self, n: int) -> ByFactors:
        """The same for fewer coordinates."""
        result = copy(self)
        result.A = self.A[:, :n]
        return result

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B F', B K B' and H."""
        BF, own = self.factored.measured(B)
        return BF, BF @ BF.T + own, BF @ self.A

    def pull(self, Y: Array, B: Array, BK: Array) -> Array:
        """Y E."""
        L = Y @ Y.T
        return self.factored.back(Y @ self.A.T - L @ BK, L, B)

    def rest(self, Y: Array, B: Array, BK: Array) -> Array:
        """E."""
        return self.factored.back(self.A.T - Y.T @ BK, Y.T, B)


class Cells(ByFactors):
    """For cells of rows, and all rows measured alike: what those have beyond the cells' sums is added."""

    BF: Array | float = 0.0  # (q, r)
    own: Array | float = 0.0  # (q, q): of B diag(d) B'
    gram: Array | float = 0.0  # (n, n): of the bound's
    total: float = 0.0  # of its multipliers

    def of(self, B: Array) -> tuple[Array, Array, Array]:
        """B F', B K B' and H, as of all rows."""
        BF, own = self.factored.measured(B)
        BF = BF + self.BF
        return BF, BF @ BF.T + own + self.own, BF @ self.A
