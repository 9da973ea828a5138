"""The design for the worst test point: the smallest largest noise std over X*.

max_j M_jj is at least tr(W M) for any weights w >= 0 that sum to 1, so every w turns the lower bound
of `mse` into one for this design, and the best w makes it tight. With Q(v) = sum v_i c_i c_i' and
W(w) = sum w_j u_j u_j' (u_j: test point j in coordinates), the bound is

    F(v, w)^2 / (sum v sum w),     F = tr (W^(1/2) Q W^(1/2))^(1/2),

the fidelity of Q and W, which is concave in both together (lemma 3). So rows and test points are
searched at once, by L-BFGS on the roots of both. The noise shape is the M with M W M = Q.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from cloakgp.core.checks import FloatArray
from cloakgp.designs.lbfgs import minimise
from cloakgp.designs.shapes import Climb, Point, Shape
from cloakgp.model.arrays import Array, like, r_factor, squared_lengths, weighted_gram

_FLOOR = 1e-6  # least weight of a test point, relative to the mean: keeps W invertible
_NEW = 0.03  # first multiplier of a row, relative to the mean; and the least of others is
_LEAST = 1e-3
_EVALUATIONS = 300
_SHARES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the mean weight, tried for points that do not bind


class WorstPoint:
    """M with M W M = Q, size max_j M_jj; the weights are part of the search."""

    def __init__(self, points: Array) -> None:
        self.points = points  # (P, r): u_j
        self.weights = like(points, np.ones(len(points)))

    def shape(self, Q: Array) -> Shape:
        return self.shape_for(Q, self.floored(self.weights))[0]

    def floored(self, weights: Array) -> Array:
        """Weights that leave no test point out."""
        return array_namespace(weights).maximum(weights, _FLOOR * weights.mean())

    def shape_for(self, Q: Array, weights: Array) -> tuple[Shape, Array]:
        """The shape for these weights, and M_jj at every test point."""
        xp = array_namespace(Q)
        # W = G'G, N = G Q G', M = G^-1 N^(1/2) G^-T
        G = r_factor(xp.sqrt(weights)[:, None] * self.points)
        eigenvalues, vectors = xp.linalg.eigh(G @ Q @ G.T)
        quarter = xp.maximum(eigenvalues, 1e-16 * eigenvalues[-1]) ** 0.25
        inverse = xp.linalg.solve(G, vectors * quarter)
        spread = self.points @ inverse
        variances = xp.einsum("ij,ij->i", spread, spread)
        return Shape(float(variances.max()), (vectors / quarter).T @ G, inverse), variances


class JointClimb(Climb):
    """The climb over rows' multipliers and test points' weights together."""

    criterion: WorstPoint
    slower = 2

    def __init__(self, part: Array, criterion: WorstPoint, gap: float) -> None:
        super().__init__(part, criterion, gap / 2)  # the rest is for being kinder
        self.allowed_gap = gap

    def start(self, v: FloatArray) -> Array:
        """Roots to start from: none is zero, or it would stay so."""
        v = np.where(v > 0, np.maximum(v, _LEAST * v.mean()), _NEW * v.mean())
        xp, weights = array_namespace(self.part), self.criterion.weights
        # Both parts sum to the number of rows, so that one step suits both.
        return xp.sqrt(xp.concat([like(self.part, v * len(v) / v.sum()), weights * len(v) / weights.sum()]))

    def negative(self, theta: Array) -> tuple[float, Array]:
        n = self.part.shape[1]
        v, weights = theta[:n] ** 2, self.criterion.floored(theta[n:] ** 2)
        shape, variances = self.criterion.shape_for(weighted_gram(self.part, v), weights)
        g = squared_lengths(shape.transform, self.part)
        fidelity = float(v @ g)
        lower = fidelity**2 / float(v.sum() * weights.sum())
        self.evaluations += 1
        self.lower = max(self.lower, lower)
        if self.note(Point(v, shape, g)):
            self.best_weights = weights
        slopes = [g / fidelity - 1 / v.sum(), variances / fidelity - 1 / weights.sum()]
        slope = array_namespace(g).concat(slopes)
        return -float(np.log(lower)) * n, -2 * theta * slope * n

    def run(self, v: FloatArray) -> Point:
        minimise(
            self.negative,
            self.start(v),
            first_step=0.5,  # to first order, the multiplicative step v <- v g^2
            done=lambda: self.gap_to(self.upper) <= self.gap,
            evaluations=_EVALUATIONS,
        )
        self.criterion.weights = self.best_weights
        return self._kinder(self.best)

    def _kinder(self, point: Point) -> Point:
        """The same multipliers with more weight on test points that do not bind, where the gap allows.

        How noisy those points are does not count for the objective, but it does for people.
        """
        Q = weighted_gram(self.part, point.v)
        allowed = max(point.upper, self.lower * (1 + self.allowed_gap))
        for share in _SHARES:
            weights = self.best_weights + share * self.best_weights.mean()
            shape = self.criterion.shape_for(Q, weights)[0]
            kinder = Point(point.v, shape, squared_lengths(shape.transform, self.part))
            if kinder.upper <= allowed:
                return kinder
        return point
