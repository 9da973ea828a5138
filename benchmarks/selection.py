"""How long a private selection takes: 5 x 5 models, 287 rows, 100 Monte Carlo folds.

    python benchmarks/selection.py

Beside it, the same cross-validation weights in two plainer ways: a Cholesky factor for each candidate in
each fold, and an eigendecomposition for each kernel in each fold that serves all noise levels. All run
on one thread: for matrices of this size more only cost time.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.model_selection import ShuffleSplit

import cloakgp
from cloakgp.data.blas import one_blas_thread
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ
from cloakgp.measure.cross_validation import as_folds, residuals

LENGTHSCALES = np.geomspace(3.0, 81.0, 5)
NOISES = np.geomspace(1.1, 12.7, 5) ** 2


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def by_cholesky(gps, X, folds):
    for gp in gps:
        for train, test in folds:
            gram = gp.kernel(X[train]) + gp.noise * np.eye(len(train))
            yield cho_solve(cho_factor(gram, lower=True), gp.kernel(X[train], X[test])).T


def by_eigenvectors(X, folds):
    for lengthscale in LENGTHSCALES:
        gram = EQ(lengthscale, variance=25.74**2)(X)
        for train, test in folds:
            values, Q = eigh(gram[np.ix_(train, train)])
            left = gram[np.ix_(test, train)] @ Q
            for noise in NOISES:
                yield (left / (np.maximum(values, 0) + noise)) @ Q.T


def last(items):
    for item in items:
        result = item
    return result


def main():
    X, y = make_kung_like()
    gps = cloakgp.candidates(
        kernel=EQ, lengthscale=LENGTHSCALES, variance=25.74**2, noise=NOISES, bounds=(58.27, 158.27)
    )
    splitter = ShuffleSplit(100, test_size=0.2, random_state=0)
    folds = as_folds(splitter, X)
    plain, expected = timed(lambda: last(by_cholesky(gps, X, folds)))
    eigen, _ = timed(lambda: last(by_eigenvectors(X, folds)))
    ours, found = timed(lambda: last(residuals(gps, X, folds, lambda: None)))
    train, test = folds[-1]
    assert np.allclose(-found[-len(test) :, train], expected, atol=1e-8)
    planning, plan = timed(lambda: cloakgp.plan_selection(gps, X, epsilon=1.0, folds=splitter))
    selecting, _ = timed(lambda: plan.select(y))
    size = sum(matrix.nbytes for matrix in plan.scores.matrices)
    print(f"{len(gps)} candidates, {len(X)} rows, {len(folds)} folds")
    rows = {
        "weights: blocks of one inverse per candidate": (ours, ""),
        "weights: a Cholesky factor per candidate and fold": (plain, f"{plain / ours:.1f} x"),
        "weights: an eigendecomposition per kernel and fold": (eigen, f"{eigen / ours:.1f} x"),
        "plan_selection in all": (planning, ""),
        "select": (selecting, ""),
    }
    for what, (seconds, ratio) in rows.items():
        print(f"  {what:52}{seconds:8.2f} s   {ratio}")
    print(f"  {'integers kept':52}{size / 2**20:8.0f} MiB")


if __name__ == "__main__":
    with one_blas_thread():
        main()
