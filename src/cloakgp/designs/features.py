"""`posterior` for rows in any number: what is measured is a recipe's, R phi(x) / D(x).

With inducing inputs all that the model takes from y is u = sum_i phi_i y_i / D_i, whose prior covariance is
S = I^2 + I, I being the rows' information. For measurements R u with noise of variance s, what denoised
predictions leave unknown depends on the rows through I alone,

    f(X) = tr L' (1 + X/s)^-1 L,     X = R'R,  in coordinates where S = 1,

and the rows are constraints: a_i' X a_i <= 1 for each column a_i = phi_i / D_i. f is convex. The largest
constraint is replaced by a p-norm of all, and R is sought by L-BFGS for one p after the other; the
constraints' shares in that norm are multipliers w, and :func:`bound` turns them into a bound on all recipes.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from cloakgp.checks import FloatArray
from cloakgp.designs.lbfgs import minimise
from cloakgp.designs.posterior import best_bound
from cloakgp.designs.solution import Solution
from cloakgp.model.arrays import column_dots, r_factor
from cloakgp.model.smoothers import Rows

_POWERS = (8, 16, 32, 64, 128, 256, 512)
_EVALUATIONS = 60  # for one power
_STALL_AFTER = 10  # evaluations without progress worth a five-hundredth of the gap end it
_WORKING_SET = 6000
_ROUNDS = 10  # more for the last power, with columns that were lacking
_FORGET = 0.5  # share of the last multipliers: a mean over rounds bounds better than those of any one
_FLOOR, _IN_BOUND = 1e-3, 4e-3  # of the mean multiplier: no direction is without one
_IDLE = 1e-13  # of the largest measurement's variance: it will not come back
_IDLE_AT_LAST = 1e-6  # of the noise's


class Space:
    """The features, in units of what the rows tell of them; and what predictions make of these.

    Parameters
    ----------
    information : (r, r) array
    T : (P, r) array
        Predictions are T u.
    weights : (P,) array
        Of the predictions' errors; their mean is weighted by them.
    """

    def __init__(self, information: FloatArray, T: FloatArray, weights: FloatArray) -> None:
        values, vectors = np.linalg.eigh(information)
        keep = values > 1e-14 * values[-1]
        root = np.sqrt(values[keep] ** 2 + values[keep])
        self.up: FloatArray = vectors[:, keep] * root
        self.down: FloatArray = (vectors[:, keep] / root).T
        shares = np.sqrt(weights / weights.sum())
        self.signal: FloatArray = r_factor(shares[:, None] * (T @ self.up)).T
        self.prior = float((self.signal**2).sum())

    def left(self, R: FloatArray, s: float) -> float:
        """f: the weighted mean variance that measurements R leave unknown, for noise of variance `s`."""
        H = R @ self.signal
        return self.prior - float((H * np.linalg.solve(R @ R.T + s * np.eye(len(R)), H)).sum())


def posterior_recipe(
    space: Space,
    columns: FloatArray,
    start: FloatArray,
    gap: float,
    noise_variance: float,
    fresh: bool = True,
) -> Solution:
    """Measurements for these columns phi / D (r, n), starting from `start` (q, r).

    A start that is not `fresh` is a design's for most of these columns: small powers are left out.
    """
    search = _Search(space, space.down @ columns, gap, noise_variance)
    R, value, lower = search.run(start @ space.up, fresh)
    R = _without_idle(R, _IDLE_AT_LAST * noise_variance)
    return Solution(
        design="posterior",
        reconstruction=np.empty((0, len(R))),  # depends on the noise that integers will have
        features=R @ space.down,
        objective=value / noise_variance,
        lower_bound=min(lower, value) / noise_variance,
        iterations=search.evaluations,
        status="converged" if value <= lower * (1 + gap) else "stopped before the gap was reached",
        unbiased=False,
    )


class _Search:
    def __init__(self, space: Space, columns: FloatArray, gap: float, s: float) -> None:
        self.space, self.columns, self.gap, self.s, self.evaluations = space, columns, gap, s, 0

    def run(self, R: FloatArray, fresh: bool) -> tuple[FloatArray, float, float]:
        """The best measurements found, what they leave unknown, and a bound on that of all."""
        powers = _POWERS if fresh else _POWERS[-2:]
        R, g = self._scaled(_full(R) if fresh else R)
        rows = self._first_rows(g) if fresh else np.argsort(-g)[:_WORKING_SET]
        best, lower = (R, self.space.left(R, self.s)), float(np.finfo(float).tiny)
        multipliers = np.zeros(len(g))
        for p in (*powers, *[powers[-1]] * _ROUNDS):
            climb = _Climb(self.space, self.columns[:, rows], R, p, self.s, self.gap)
            R, w = climb.run()
            self.evaluations += climb.evaluations
            multipliers *= _FORGET
            multipliers[rows] += w
            some = np.flatnonzero(multipliers)
            for which, each in ((rows, w), (some, multipliers[some])):
                lower = max(lower, bound(self.space, self.columns[:, which], R, each, self.s))
            R, g = self._scaled(_without_idle(R))
            value = self.space.left(R, self.s)
            if value < best[1]:
                best = R, value
            if best[1] <= lower * (1 + self.gap):
                break
            rows = _with_worst(rows, g)
            if value > best[1] * (1 + self.gap) and p == powers[-1]:
                R = best[0]  # without rows that matter it went astray: with them, from there
        return *best, lower

    def _scaled(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With the longest column of length 1, and every column's squared length."""
        moved = R @ self.columns
        g = column_dots(moved, moved)
        return R / np.sqrt(g.max()), g / g.max()

    def _first_rows(self, g: FloatArray) -> Rows:
        """The longest columns, an even sample, and the longest before any measurement."""
        n, third = len(g), _WORKING_SET // 3
        if n <= _WORKING_SET:
            return np.arange(n)
        own = column_dots(self.columns, self.columns)
        evenly = np.linspace(0, n - 1, third).astype(np.intp)
        return np.unique(np.concatenate([evenly, np.argsort(-g)[:third], np.argsort(-own)[:third]]))


class _Climb:
    """L-BFGS on R for one p-norm of the squared lengths g, in coordinates where multipliers are even."""

    def __init__(self, space: Space, part: FloatArray, R: FloatArray, p: int, s: float, gap: float) -> None:
        self.space, self.p, self.s, self.gap = space, p, s, gap
        moved = R @ part
        g: FloatArray = column_dots(moved, moved)
        w = _floored((g / g.max()) ** (p - 1))
        self.lower = np.linalg.cholesky(_ridged((part * w) @ part.T))
        self.part = solve_triangular(self.lower, part, lower=True)
        self.signal = solve_triangular(self.lower, space.signal, lower=True)
        self.prior_root = solve_triangular(self.lower, np.eye(len(part)), lower=True)
        self.start, self.evaluations = R @ self.lower, 0
        self.best, self.looked, self.progress = np.inf, 0, np.inf

    def run(self) -> tuple[FloatArray, FloatArray]:
        """Measurements scaled to p-norm 1, and a multiplier for each column."""
        minimise(
            self._value_and_gradient,
            self.start.ravel(),
            first_step=0.25 / self.start.shape[1],
            done=self._done,
            shrink=lambda: None,
            evaluations=_EVALUATIONS,
        )
        R, w = self.found
        return R @ self.prior_root, w

    def _value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        R = x.reshape(self.start.shape)  # times what makes the multipliers' gram 1
        moved = R @ self.part
        g = column_dots(moved, moved)
        largest = g.max()
        share = (g / largest) ** (self.p - 1)
        total = float(share @ g) / largest
        norm = largest * total ** (1 / self.p)  # squared length that counts as 1
        flat = R @ self.prior_root
        H = flat @ self.space.signal
        Y = np.linalg.solve(flat @ flat.T + self.s * norm * np.eye(len(R)), H)
        E = self.space.signal - flat.T @ Y  # (1 + X/s)^-1 L
        value = self.space.prior - float((H * Y).sum())
        # R times minus the slope of f in X is Y E', as for every column in :mod:`posterior`.
        pull = Y @ (self.prior_root @ E).T
        slack = float((pull * R).sum())
        slope = 2 * (slack / (largest * total) * ((moved * share) @ self.part.T) - pull)
        self.evaluations += 1
        if value < self.best:
            self.best = value
            self.found = R / np.sqrt(norm), share * (slack / total)
        n = len(self.part)
        return float(np.log(value)) * n, (slope * (n / value)).ravel()

    def _done(self) -> bool:
        if self.evaluations < self.looked + _STALL_AFTER:
            return False
        self.looked, before, self.progress = self.evaluations, self.progress, self.best
        return self.progress > before * (1 - 0.002 * self.gap)


def bound(space: Space, part: FloatArray, R: FloatArray, w: FloatArray, s: float) -> float:
    """At most f(X) for every X with a' X a <= 1 for the columns a in `part`, from any R and any w > 0.

    As :func:`cloakgp.designs.posterior.lower_bound`: f(X) >= 2 tr F L - tr F F' - tr F X F'/s for every F,
    and F'F <= s t sum_i w_i a_i a_i' makes the last term at most t sum(w).
    """
    w = _floored(w, _IN_BOUND)
    E = space.signal - R.T @ np.linalg.solve(R @ R.T + s * np.eye(len(R)), R @ space.signal)
    try:
        Q = np.linalg.cholesky((part * w) @ part.T)
    except np.linalg.LinAlgError:  # too few columns for any bound
        return 0.0
    moved, prior = solve_triangular(Q, E, lower=True), space.prior
    found = best_bound(
        moved.T @ moved / s, float(w.sum()) / prior, E.T @ space.signal / prior, E.T @ E / prior
    )
    return found * prior


def _floored(w: FloatArray, floor: float = _FLOOR) -> FloatArray:
    result: FloatArray = w + floor * max(float(w.mean()), 1e-300)
    return result


def _ridged(gram: FloatArray) -> FloatArray:
    """Positive definite, whatever rounding did."""
    result: FloatArray = gram + 1e-13 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return result


def _full(R: FloatArray) -> FloatArray:
    """As many measurements as there are directions: none that a search may want is left out."""
    values, vectors = np.linalg.eigh(R.T @ R)
    result: FloatArray = (vectors * np.sqrt(np.maximum(values, 1e-3 * values[-1]))).T
    return result


def _without_idle(R: FloatArray, least: float = 0.0) -> FloatArray:
    """The same without measurements whose signal has next to no variance."""
    values, vectors = np.linalg.eigh(R @ R.T)
    keep = values > max(_IDLE * values[-1], min(least, 0.1 * values[-1]))
    result: FloatArray = vectors[:, keep].T @ R
    return result


def _with_worst(rows: Rows, g: FloatArray) -> Rows:
    """The rows, and the longest columns that are not among them: any may count once these are shorter."""
    outside = np.ones(len(g), dtype=bool)
    outside[rows] = False
    candidates = np.flatnonzero(outside & (g > 0.9 * g[rows].max()))
    return np.concatenate([rows, candidates[np.argsort(-g[candidates])[: _WORKING_SET // 3]]])
