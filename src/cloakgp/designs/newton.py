"""The search over the multipliers of some rows, by Newton's method.

In the scale where sum(v g) = sum(v), the best multipliers have v_i (1 - g_i) = 0 and g_i <= 1 for each row.
An interior point method (Wright 1997, "Primal-dual interior-point methods") follows v_i z_i = mu, z = 1 - g
to where mu is small enough: with n rows the bounds are then about n mu / sum(v) apart (lemma 5). Lemma 4 has
the derivatives of g. Few rows carry weight, so steps are made for those that do or should, and then all
are looked at.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from cloakgp.core.checks import FloatArray
from cloakgp.designs.shapes import Climb, Point, Shape, Smooth
from cloakgp.model.arrays import (
    Array,
    column_dots,
    like,
    on_host,
    squared_dots,
    squared_lengths,
    times_wide,
    weighted_gram,
)
from cloakgp.model.smoothers import Rows

_LOOKS = 40  # at all rows
_STEPS = 40  # between two looks
_FAR = 0.3  # gap above which multiplicative steps do as well as Newton's
_LONG = 1.8  # power of every other multiplicative step; those between damp what it overshoots
_PART = 12.0  # part of the gap over all rows that active ones are searched to
_INNER = 0.85  # the same of the gap to reach
_MU = 0.8  # share of the gap that n mu / sum(v) takes
_FASTEST = 0.1  # share of mu that a step may aim at
_KINDER = 5  # steps at the end
_SHORT_OF = 0.95  # of the boundary
_WEIGHTY = 0.01  # v_i (-dg_i/dv_i) of a row that carries weight
_MOST = 6  # times the rank: such rows, at most
_LEAST = 16  # rows, of which each look may add the rank
_FIRST = 0.06, 0.3  # v_i (-dg_i/dv_i) of a row that joins: at least and at most
_ALIKE = 0.85  # squared cosine of two rows of which one is enough
_APART = 0.2  # v_i (-dg_i/dv_i) / z_i of a row whose step hardly depends on the others'


class NewtonClimb(Climb):
    """Newton steps for active rows among the given columns."""

    criterion: Smooth

    def __init__(self, part: Array, criterion: Smooth, gap: float) -> None:
        super().__init__(part, criterion, gap)
        self._seen, self._stays = np.zeros((2, part.shape[1]), dtype=bool)

    def run(self, v: FloatArray) -> Point:
        active = np.flatnonzero(v)
        found = self._nearer(_take(self.part, active), v[active], _FAR)
        for _ in range(_LOOKS):
            v = np.zeros(len(v))
            v[active] = found.v
            point = Point(v, found.shape, on_host(squared_lengths(found.shape.transform, self.part)))
            self.note(point)
            if self.gap_to(self.upper) <= self.gap:
                break
            active, start = self._active(point)
            inner = max(_INNER * self.gap, min(_FAR, self.gap_to(point.upper) / _PART))
            found = self._central(_take(self.part, active), start, inner)
        return self._kinder(self.best)

    def _kinder(self, point: Point) -> Point:
        """Multiplicative steps while the gap allows: less noise where the objective hardly sees it."""
        for _ in range(_KINDER):
            v, g = self._scaled(point)
            kinder = self._at(self.part, v * np.minimum(g, 1.0))
            if self.gap_to(kinder.upper) > self.gap:
                break
            point = kinder
        return point

    def _at(self, part: Array, v: FloatArray) -> Point:
        shape = self.criterion.shape(weighted_gram(part, like(part, v)))
        point = Point(v, shape, on_host(squared_lengths(shape.transform, part)))
        self.evaluations += 1
        self.lower = max(self.lower, point.lower)
        return point

    def _scaled(self, point: Point) -> tuple[FloatArray, FloatArray]:
        """v and g in the scale where sum(v g) = sum(v)."""
        mean = float(point.v @ point.g) / float(point.v.sum())
        return point.v * mean ** (1 / self.criterion.degree), point.g / mean

    def _nearer(self, part: Array, v: FloatArray, gap: float) -> Point:
        """The best of some multiplicative steps, which need no derivatives.

        By its own bounds: where others' are better, its multipliers may still be far from the best.
        """
        best = point = self._at(part, v)
        for i in range(_STEPS):
            if best.upper <= best.lower * (1 + gap):
                break
            v, g = self._scaled(point)
            point = self._at(part, v * np.clip(g, 1e-3, 1e3) ** (1.0 if i % 2 else _LONG))
            best = min(best, point, key=lambda p: p.upper / p.lower)
        return best

    def _central(self, part: Array, v: FloatArray, gap: float) -> Point:
        """The best of some Newton steps, until the bounds over these rows alone are within `gap`."""
        best = self._nearer(part, v, _FAR)
        point = self._at(part, self._scaled(best)[0])
        z = np.clip(1 - point.g, _MU * gap * point.v.mean() / point.v, 1.0)
        for _ in range(_STEPS):
            best = min(best, point, key=lambda p: p.upper)
            if self.gap_to(best.upper) <= gap:
                break
            mu = max(_MU * gap * point.v.mean(), _FASTEST * float(np.mean(point.v * z)))
            v, z = self._step(part, point, z, mu)
            point = self._at(part, v)
        return best

    def _step(self, part: Array, point: Point, z: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
        """(A + diag(z / v)) dv = g - 1 + mu / v, with A_ij = -dg_i/dv_j."""
        v, right = point.v, point.g - 1 + mu / point.v
        dv = right * v / z  # what it is where A hardly counts
        h, weights = times_wide(point.shape.transform, part), self.criterion.curvature(point.shape)
        some = np.flatnonzero(v * _own(h, weights) > _APART * z)
        scale = np.sqrt(v / z)[some]
        A = squared_dots(_take(h, some), weights)
        xp, scaled = array_namespace(A), like(A, scale)
        A = A * scaled * scaled[:, None] + like(A, np.eye(len(some)))
        dv[some] = scale * on_host(xp.linalg.solve(A, like(A, scale * right[some])))
        dz = mu / v - z - z / v * dv
        return v + _length(v, dv) * dv, z + _length(z, dz) * dz

    def _active(self, point: Point) -> tuple[Rows, FloatArray]:
        """Rows that carry weight, some that violate their constraints, and multipliers for all of them."""
        v, g = self._scaled(point)
        rows = np.flatnonzero(v)
        weight = v[rows] * self._own_of(point, rows)
        enough = np.sort(weight)[-_MOST * max(len(self.part), _LEAST) :][0]
        rows = rows[(weight >= max(enough, _WEIGHTY)) | self._stays[rows]]
        others = np.ones(len(v), dtype=bool)
        others[rows] = False
        others = np.flatnonzero(others & (g > 1 - self.gap))
        joining = others[self._apart(point.shape, others, g)]
        self._stays[joining] |= self._seen[joining]  # one that was left out and is missed: or it could go on
        self._seen[rows] = self._seen[joining] = True
        first = np.clip(g[joining] - 1, *_FIRST) / self._own_of(point, joining)
        return np.concatenate([rows, joining]), np.concatenate([v[rows], first])

    def _own_of(self, point: Point, rows: Rows) -> FloatArray:
        """-dg_i/dv_i in the scale of `_scaled`."""
        mean = float(point.v @ point.g) / float(point.v.sum())
        h = point.shape.transform @ _take(self.part, rows)
        own = _own(h, self.criterion.curvature(point.shape))
        return np.asarray(own / mean ** (1 + 1 / self.criterion.degree))

    def _apart(self, shape: Shape, rows: Rows, g: FloatArray) -> Rows:
        """Which of the rows are to join: those with the largest g, but none that is like one before it."""
        most = max(len(self.part), _LEAST)
        order = np.argsort(-g[rows], kind="stable")[: 4 * most]
        h = shape.transform @ _take(self.part, rows[order])
        h = h / array_namespace(h).sqrt(column_dots(h, h))
        alike = on_host(h.T @ h) ** 2 > _ALIKE
        free = np.ones(len(order), dtype=bool)
        chosen: list[int] = []
        for i in range(len(order)):
            if free[i] and len(chosen) < most:
                chosen.append(i)
                free &= ~alike[i]
        return order[chosen]


def _own(h: Array, weights: Array) -> FloatArray:
    """-dg_i/dv_i"""
    own: FloatArray = on_host(((weights @ h**2) ** 2).sum(axis=0))
    return own


def _length(x: FloatArray, dx: FloatArray) -> float:
    """Of a step that keeps x positive."""
    return min(1.0, _SHORT_OF / max(float((-dx / x).max()), 1e-300))


def _take(part: Array, rows: Rows) -> Array:
    return array_namespace(part).take(part, like(part, rows), axis=1)
