"""The search that the designs share: one multiplier v_i >= 0 on each row of X.

With Q(v) = sum_i v_i c_i c_i', each design has its noise shape M as a function of Q, its
constraints g_i = c_i' M^-1 c_i <= 1, and

    upper bound  size(M) max_i g_i                  (M scaled until every constraint holds)
    lower bound  size(M) (sum_i v_i g_i) / sum_i v_i          (weak duality)

where size(M) is the objective. For many rows the search runs on a working set, then scans all rows for
violated constraints and adds the worst. The bounds that are returned hold for all rows. ``docs/proofs.md``
(lemmas 3 to 5) has the derivations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import evenly
from cloakgp.designs.columns import Columns
from cloakgp.designs.newton import NewtonClimb
from cloakgp.designs.shapes import Climb, Criterion, Shape
from cloakgp.model.arrays import like, on_host, weighted_gram
from cloakgp.model.smoothers import Rows

WORKING_SET = 6000
"""Up to this many rows are searched at once."""
_ROUNDS = 20
_INNER = 0.9  # share of the gap that a working set's search may use up
_LARGEST = 0.4  # share of the rows to add whose constraints are violated most


@dataclass(frozen=True, eq=False)
class Found:
    """The best shape that was found, with bounds that hold for all rows."""

    shape: Shape
    largest: float  # max_i g_i over all rows
    upper: float
    lower: float
    iterations: int
    converged: bool


def search(
    columns: Columns,
    criterion: Criterion,
    gap: float,
    climb_type: type[Climb] = NewtonClimb,
) -> Found:
    """A shape whose bounds are within the relative `gap`, or the best found."""
    at_once = WORKING_SET // climb_type.slower
    lower, inner = 0.0, _INNER * gap
    if columns.n_rows > at_once:
        rows = _first_rows(columns, criterion, at_once)
        v = np.ones(len(rows))
    else:
        rows, v, inner = np.arange(columns.n_rows), np.ones(columns.n_rows), gap
    best: Found | None = None
    iterations = 0
    for _ in range(_ROUNDS):
        climb = climb_type(columns.take(rows), criterion, inner)
        point = climb.run(v)
        iterations, lower = iterations + climb.evaluations, max(lower, climb.lower)
        g = columns.squared_norms(point.shape.transform)
        upper = point.shape.size * float(g.max())
        if best is None or upper < best.upper:
            best = Found(point.shape, float(g.max()), upper, lower, iterations, False)
        if best.upper <= lower * (1 + gap):
            break
        inner = _INNER * gap
        rows, v = _next_rows(rows, on_host(point.v), g, at_once)
    assert best is not None
    return replace(best, lower=lower, iterations=iterations, converged=best.upper <= lower * (1 + gap))


def _first_rows(columns: Columns, criterion: Criterion, at_once: int) -> Rows:
    """Rows of large leverage and of large norm, and an even sample of all."""
    third = at_once // 3
    evenly = np.linspace(0, columns.n_rows - 1, third).astype(np.intp)
    shape = criterion.shape(weighted_gram(columns.take(evenly), like(columns.down, np.ones(third))))
    leverage = columns.squared_norms(shape.transform)
    norm = columns.squared_norms(like(columns.down, np.eye(columns.rank)))
    return np.unique(np.concatenate([evenly, np.argsort(-leverage)[:third], np.argsort(-norm)[:third]]))


def _next_rows(rows: Rows, v: FloatArray, g: FloatArray, at_once: int) -> tuple[Rows, FloatArray]:
    """Leave out rows that carry no weight and are far from binding; add the worst violators."""
    v = v * len(v) / v.sum()
    bar = g[rows].max()
    keep = (v > 1e-3) | (g[rows] > 0.8 * bar)
    rows, v = rows[keep], v[keep]
    outside = np.ones(len(g), dtype=bool)
    outside[rows] = False
    worst = _worst(np.flatnonzero(outside & (g > 0.98 * bar)), g, at_once // 3)
    return np.concatenate([rows, worst]), np.concatenate([v, np.zeros(len(worst))])


def _worst(rows: Rows, g: FloatArray, n: int) -> Rows:
    """Up to `n` of the rows: a few whose g is largest, and an even sample of the others.

    The largest stand close together, and once one of them counts, its neighbours' are no longer large.
    """
    order = rows[np.argsort(-g[rows])]
    first, others = np.split(order, [math.ceil(_LARGEST * n)])
    return np.concatenate([first, others[evenly(len(others), n - len(first))]])
