"""k-means: centres of groups of rows near each other (Lloyd 1982).

scikit-learn has it too, but what it takes to load that is several times what the work takes.
"""

from __future__ import annotations

import math

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.smoothers import Rows
from cloakgp.rows.chunks import in_threads, steps

_ROUNDS = 30
_STILL = 1e-4  # of the rows' variance: centres that move by less in all have settled
_SEED = 0  # public: the same rows have the same centres


def centres(rows: FloatArray, n: int) -> FloatArray:
    """(n, D) centres; those that no row is nearest to stay where they began."""
    with np.errstate(under="ignore"):  # rows too alike to tell apart
        return _settled(rows, n)


def _settled(rows: FloatArray, n: int) -> FloatArray:
    middle = rows.mean(axis=0)
    rows = rows - middle
    found, still = _first(rows, n), _STILL * float(rows.var(axis=0).mean())
    for _ in range(_ROUNDS):
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
    rng, squares = np.random.default_rng(_SEED), np.square(rows).sum(axis=1)
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
