"""Public sets of points: that cover the inputs, that stand for many, or that fill a cube evenly.

scikit-learn has k-means (Lloyd 1982), and SciPy has Sobol's points, but to load these takes several times as
long as the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import in_threads, spread_evenly, steps
from cloakgp.model.smoothers import Rows

_BITS = 30
# Joe & Kuo (2008), the first dimensions: a primitive polynomial's bits, and the first direction numbers.
_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
)
MOST = 1 + len(_DIRECTIONS)
"""Dimensions that are known here; beyond them SciPy is asked."""


def cover(X: Any, n_points: int = 100, categories: Sequence[int] = ()) -> FloatArray:
    """Public points that cover X, chosen from X alone: all lie where rows are.

    One column: `n_points` evenly over the range of X. More columns: rows of X. Half are far from each other,
    so that no place is forgotten: each the farthest from those before it, from the one nearest to the middle
    on. The other half are a sample, evenly through the table, so that most are where most rows are. Columns
    of `categories` hold levels; two that differ are a range apart.
    """
    X = checks.matrix(X, "X")
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    if X.shape[1] == 1 and not categories:
        return np.linspace(low, high, n_points if high > low else 1)
    scaled, levels = (X - low) / width, X[:, list(categories)]
    scaled[:, list(categories)] = 0.0
    chosen = [int(np.argmin(((scaled - scaled.mean(axis=0)) ** 2).sum(axis=1)))]
    distance = _distances(scaled, levels, chosen[0])
    while len(chosen) < n_points // 2 and distance.max() > 0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, _distances(scaled, levels, chosen[-1]))
    found: FloatArray = np.vstack([X[chosen], spread_evenly(X, n_points - len(chosen))])
    return found[np.sort(np.unique(found, axis=0, return_index=True)[1])]


def _distances(scaled: FloatArray, levels: FloatArray, one: int) -> FloatArray:
    """Squared, of all rows from one: each level that differs counts 1."""
    differ = (levels != levels[one]).sum(axis=1)
    return np.asarray(((scaled - scaled[one]) ** 2).sum(axis=1) + differ)


def centres(rows: FloatArray, n: int) -> FloatArray:
    """(n, D) centres; those that no row is nearest to stay where they began."""
    with np.errstate(under="ignore"):  # rows too alike to tell apart
        return _converge(rows, n)


def _converge(rows: FloatArray, n: int) -> FloatArray:
    middle = rows.mean(axis=0)
    rows = rows - middle
    # Centres that move by less than this in all have settled.
    found, still = _first(rows, n), 1e-4 * float(rows.var(axis=0).mean())
    for _ in range(30):
        nearest = _nearest(rows, found)
        counts = np.bincount(nearest, minlength=n)
        sums = np.column_stack([np.bincount(nearest, column, n) for column in rows.T])
        last, found = found, np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], found)
        if float(np.square(found - last).sum()) <= still:
            break
    result: FloatArray = found + middle
    return result


def _nearest(rows: FloatArray, centres: FloatArray) -> Rows:
    """(N,) which centre each row is nearest to."""
    halves = np.square(centres).sum(axis=1) / 2

    def work(some: slice) -> Rows:
        scores = rows[some] @ centres.T
        nearest: Rows = np.argmin(np.subtract(halves, scores, out=scores), axis=1)
        return nearest

    return np.concatenate(in_threads(work, list(steps(len(rows)))))


def _first(rows: FloatArray, n: int) -> FloatArray:
    """Rows to begin with: each the best of a few, likely ones far from those before it.

    That is k-means++ (Arthur and Vassilvitskii 2007), in its greedy form.
    """
    seed = 0  # public, and always the same: equal rows give equal points
    rng, squares = np.random.default_rng(seed), np.square(rows).sum(axis=1)
    each = np.empty((2 + int(math.log(n)), len(rows)))  # squared distances, of as many rows that are tried
    chosen = [int(rng.integers(len(rows)))]
    far = np.square(rows - rows[chosen[0]]).sum(axis=1)
    up_to = np.empty_like(far)
    for _ in range(n - 1):
        np.cumsum(far, out=up_to)
        drawn = np.searchsorted(up_to, rng.uniform(size=len(each)) * up_to[-1])
        some = np.minimum(drawn, len(rows) - 1)
        np.matmul(-2 * rows[some], rows.T, out=each)
        each += squares
        each += squares[some, None]
        np.clip(each, 0.0, far, out=each)
        best = int(each.sum(axis=1).argmin())
        chosen.append(int(some[best]))
        far[:] = each[best]
        far[chosen[-1]] = 0.0
    return rows[chosen]


def sobol(dimensions: int, n: int) -> FloatArray:
    """(n, dimensions) the first points, the origin included."""
    if dimensions > MOST:
        from scipy.stats import qmc

        return np.asarray(qmc.Sobol(dimensions, scramble=False).random(n), dtype=np.float64)
    columns = [[1] * _BITS, *(_numbers(*one) for one in _DIRECTIONS)][:dimensions]
    scaled = np.array(columns).T << np.arange(_BITS - 1, -1, -1)[:, None]
    index = np.arange(1, n)
    changed = np.log2(index & -index).astype(np.intp)  # the bit of a Gray code that changes
    steps = np.vstack([np.zeros((1, dimensions), dtype=scaled.dtype), scaled[changed]])
    return np.asarray(np.ldexp(np.bitwise_xor.accumulate(steps), -_BITS), dtype=np.float64)


def _numbers(polynomial: int, first: tuple[int, ...]) -> list[int]:
    """A dimension's direction numbers, by the recurrence that its polynomial is."""
    found, degree = list(first), len(first)
    for j in range(degree, _BITS):
        new = found[j - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                new ^= found[j - k] << k
        found.append(new)
    return found
