"""What windows cut off: outcomes that are not Gaussian about f.

Inside and outside of a window add up to the outcome. How much of a mean lies inside is worked out as if
outcomes were Gaussian; by as much as that is wrong for the inside, t(x), it is wrong for the outside the
other way. So t is a Gaussian process of its own: half a constant, a quarter smooth over a third of the
inputs' range, and a quarter of the shape that f is now believed to have. Its std is s / (1 + r / s) times a
number that is learned, where s is the noise's std and r half the window's width: wide windows misjudge
little. Stages have nine tenths of its variance in common, since the same skew recurs in each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import evenly
from cloakgp.model.hyperprior import Candidate

_POINTS = 40  # inputs between which t is interpolated
REACH = 1 / 3
"""Of an input's range, how far t goes on; of several inputs', times the root of their number."""
_COMMON = 0.9  # of t's variance, to all stages


def features(usual: Candidate, best: Candidate, X: FloatArray) -> FloatArray:
    """(U, r) whose products are t's covariances, with variance 1."""
    points = X[np.lexsort(X.T[::-1])][evenly(len(X), _POINTS)]
    inner, cross = (np.asarray(usual.shape(x, points) + best.shape(x, points)) / 2 for x in (points, X))
    values, vectors = np.linalg.eigh(inner)
    kept = values > 1e-4 * values[-1]
    smooth = cross @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.column_stack([np.ones(len(X)), smooth]) * np.sqrt(0.5))


def scale(noise: float, width: FloatArray) -> FloatArray:
    """(U,) t's std in windows of these widths, but for the number that is learned."""
    return np.asarray(noise / (np.sqrt(noise) + width / 2))


def covariance(parts: Sequence[FloatArray]) -> FloatArray:
    """(Q, Q) of what t adds to all stages' sums, each with its (q, r) sums of t's features."""
    each = np.vstack(parts)
    total, at = _COMMON * each @ each.T, 0
    for part in parts:
        own = slice(at, at + len(part))
        total[own, own] += (1 - _COMMON) * part @ part.T
        at += len(part)
    return np.asarray(total)
