"""The search that the designs share: one multiplier v_i >= 0 on each row of X.

With Q(v) = sum_i v_i c_i c_i', each design has its noise shape M as a function of Q, its
constraints g_i = c_i' M^-1 c_i <= 1, and

    upper bound  size(M) max_i g_i                  (M scaled until every constraint holds)
    lower bound  size(M) (sum_i v_i g_i) / sum_i v_i          (weak duality)

where size(M) is the objective. The lower bound is climbed by L-BFGS on theta = sqrt(v); the
gradient of its logarithm in v is g_i / (v.g) - 1 / sum(v). Rows that provably carry no weight
at the optimum are dropped on the way. For many rows the search runs on a working set, then
scans all rows for violated constraints and adds the worst. The bounds that are returned hold
for all rows. ``docs/proofs.md`` (lemmas 3 to 5) has the derivations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace

from cloakgp.checks import FloatArray
from cloakgp.designs.columns import Columns
from cloakgp.designs.lbfgs import minimise
from cloakgp.model.arrays import Array, is_on_host, like, on_host, squared_lengths, weighted_gram
from cloakgp.model.smoothers import Rows
from cloakgp.rows.chunks import evenly

WORKING_SET = 3000
"""Up to this many rows are searched at once."""
WORKING_SET_ON_GPU = 2**18
"""There a step costs what its r x r matrices cost, however many rows it has."""
_ROUNDS = 20
_INNER, _FIRST = 0.7, 0.05  # share of the gap that a working set's search may use up; gap of the first
_EVALUATIONS = 300  # per round
_LARGEST = 0.4  # share of the rows to add whose constraints are violated most
_SHRINK_EVERY = 8  # evaluations between looks for rows to drop
_SHRINK_SHARE = 0.2  # least share of the rows worth dropping


@dataclass(frozen=True, eq=False)
class Shape:
    """A noise shape M = inverse inverse', with M^-1 = transform' transform."""

    size: float
    transform: Array  # (r, r)
    inverse: Array  # (r, r)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a search stands: multipliers, their shape, and the constraints' values."""

    v: Array
    shape: Shape
    g: Array

    @property
    def upper(self) -> float:
        return self.shape.size * float(self.g.max())

    @property
    def lower(self) -> float:
        return self.shape.size * float(self.v @ self.g) / float(self.v.sum())


class Criterion(Protocol):
    """What makes one design differ from another."""

    def shape(self, Q: Array) -> Shape:
        """The noise shape for Q(v)."""
        ...

    def cannot_matter(self, part: Array, point: Point, upper: float) -> Array:
        """Rows that carry no weight at the optimum, whose objective is at most `upper`."""
        ...


@dataclass(frozen=True, eq=False)
class Found:
    """The best shape that was found, with bounds that hold for all rows."""

    shape: Shape
    largest: float  # max_i g_i over all rows
    upper: float
    lower: float
    iterations: int
    converged: bool
    v: FloatArray
    """(N,) multipliers of all rows."""


def search(
    columns: Columns,
    criterion: Criterion,
    gap: float,
    climb_type: type[Climb] | None = None,
    last: FloatArray | None = None,
) -> Found:
    """A shape whose bounds are within the relative `gap`, or the best found.

    `last` are multipliers of the first rows, from a search that did without the others.
    """
    climb_type = climb_type or Climb
    at_once = WORKING_SET if is_on_host(columns.down) else WORKING_SET_ON_GPU
    everything = columns.n_rows <= at_once and last is None
    if last is not None:
        rows, v = _rows_again(columns, criterion, last, at_once)
    else:
        rows = np.arange(columns.n_rows) if everything else _first_rows(columns, criterion, at_once)
        v = np.ones(len(rows))
    lower, inner = 0.0, gap if everything else max(_INNER * gap, _FIRST)
    best: Found | None = None
    iterations = 0
    for _ in range(_ROUNDS):
        climb = climb_type(columns.take(rows), criterion, inner)
        point, kept = climb.run(like(columns.down, v))
        rows, iterations, lower = rows[kept], iterations + climb.evaluations, max(lower, climb.lower)
        g = columns.squared_norms(point.shape.transform)
        upper = point.shape.size * float(g.max())
        if best is None or upper < best.upper:
            full = np.zeros(columns.n_rows)
            full[rows] = on_host(point.v)
            best = Found(point.shape, float(g.max()), upper, lower, iterations, False, full)
        if best.upper <= lower * (1 + gap):
            break
        # While other rows matter more, there is no use in being exact about these.
        inner = max(_INNER * gap, min(_FIRST, (upper / lower - 1) / 2))
        rows, v = _next_rows(rows, on_host(point.v), g, at_once)
    assert best is not None
    return replace(best, lower=lower, iterations=iterations, converged=best.upper <= lower * (1 + gap))


class Climb:
    """L-BFGS on theta = sqrt(v) over the given columns."""

    def __init__(self, part: Array, criterion: Criterion, gap: float) -> None:
        self.part, self.criterion, self.gap = part, criterion, gap
        self.kept = np.arange(part.shape[1])
        self.evaluations, self.look_again, self.lower, self.upper = 0, _SHRINK_EVERY, 0.0, np.inf

    def run(self, v: Array) -> tuple[Point, Rows]:
        """The point with the smallest upper bound, and which columns it is about."""
        minimise(
            self.negative,
            self.start(v),
            first_step=0.5,  # to first order, the multiplicative step v <- v g^2
            done=lambda: self.upper <= self.lower * (1 + self.gap),
            shrink=self._shrink,
            evaluations=_EVALUATIONS,
        )
        return self.best, self.best_kept

    def start(self, v: Array) -> Array:
        """theta to start from: one multiplicative step moves further than a first gradient step."""
        v = v * self._at(v).g ** 2
        return array_namespace(v).sqrt(v * len(v) / v.sum())

    def negative(self, theta: Array) -> tuple[float, Array]:
        """Minus the logarithm of the lower bound, with its gradient in theta."""
        v = theta**2
        point = self._at(v)
        slope = point.g / (v @ point.g) - 1 / v.sum()
        return -float(np.log(point.lower)) * len(v), -2 * theta * slope * len(v)

    def note(self, point: Point, lower: float) -> bool:
        """Remember the bounds that a point proves; True if it is the best so far."""
        self.evaluations += 1
        self.lower = max(self.lower, lower)
        better = point.upper < self.upper
        if better:
            self.upper, self.best, self.best_kept = point.upper, point, self.kept
        return better

    def _at(self, v: Array) -> Point:
        shape = self.criterion.shape(weighted_gram(self.part, v))
        point = Point(v, shape, squared_lengths(shape.transform, self.part))
        self.note(point, point.lower)
        return point

    def _shrink(self) -> Array | None:
        if self.evaluations < self.look_again or self.best_kept is not self.kept:
            return None
        self.look_again = self.evaluations + _SHRINK_EVERY
        keep = ~on_host(self.criterion.cannot_matter(self.part, self.best, self.upper))
        if keep.mean() > 1 - _SHRINK_SHARE:
            return None
        self.kept = self.kept[keep]
        kept_here = like(self.part, np.flatnonzero(keep))
        self.part = array_namespace(self.part).take(self.part, kept_here, axis=1)
        return kept_here


def _first_rows(columns: Columns, criterion: Criterion, at_once: int) -> Rows:
    """Rows of large leverage and of large norm, and an even sample of all."""
    third = at_once // 3
    evenly = np.linspace(0, columns.n_rows - 1, third).astype(np.intp)
    shape = criterion.shape(weighted_gram(columns.take(evenly), like(columns.down, np.ones(third))))
    leverage = columns.squared_norms(shape.transform)
    norm = columns.squared_norms(like(columns.down, np.eye(columns.rank)))
    return np.unique(np.concatenate([evenly, np.argsort(-leverage)[:third], np.argsort(-norm)[:third]]))


def _rows_again(
    columns: Columns, criterion: Criterion, last: FloatArray, at_once: int
) -> tuple[Rows, FloatArray]:
    """The rows that counted, those that do not keep to their shape, and multipliers to start from."""
    counted = np.flatnonzero(last > 1e-3 * last[last > 0].mean())
    v = last[counted] / last[counted].mean()
    g = columns.squared_norms(criterion.shape(weighted_gram(columns.take(counted), v)).transform)
    bar = np.quantile(g[counted], 0.9)  # these hardly exceed it
    g[counted] = 0.0
    worst = _worst(np.flatnonzero(g > bar), g, at_once // 3)
    return np.concatenate([counted, worst]), np.concatenate([v, np.full(len(worst), 0.03)])


def _next_rows(rows: Rows, v: FloatArray, g: FloatArray, at_once: int) -> tuple[Rows, FloatArray]:
    """Leave out rows that carry no weight and are far from binding; add the worst violators."""
    v = v * len(v) / v.sum()
    bar = g[rows].max()
    keep = (v > 1e-3) | (g[rows] > 0.97 * bar)
    rows, v = rows[keep], v[keep]
    outside = np.ones(len(g), dtype=bool)
    outside[rows] = False
    worst = _worst(np.flatnonzero(outside & (g > 0.98 * bar)), g, at_once // 3)
    return np.concatenate([rows, worst]), np.concatenate([np.maximum(v, 1e-3), np.full(len(worst), 0.03)])


def _worst(rows: Rows, g: FloatArray, n: int) -> Rows:
    """Up to `n` of the rows: a few whose g is largest, and an even sample of the others.

    The largest stand close together, and once one of them counts, its neighbours' are no longer large.
    """
    order = rows[np.argsort(-g[rows])]
    first, others = np.split(order, [math.ceil(_LARGEST * n)])
    return np.concatenate([first, others[evenly(len(others), n - len(first))]])
