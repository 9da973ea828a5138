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
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cloakgp.checks import FloatArray
from cloakgp.designs.lbfgs import minimise
from cloakgp.designs.posterior import best_bound
from cloakgp.designs.solution import Solution
from cloakgp.model.arrays import column_dots, r_factor
from cloakgp.model.smoothers import Rows
from cloakgp.rows.chunks import evenly, in_threads

_FIRST, _AGAIN = 8, 256  # powers: of a search, of one that starts again
_MOST, _AT_MOST = 512, 2048  # enough for most; if it has converged before the gap is reached
_EVALUATIONS = 100  # for one power
_MEMORY = 60  # steps: measurements are few numbers beside the columns
_STALL_AFTER = 10  # evaluations without progress worth a five-hundredth of the gap end it
_WORKING_SET = 3000
_AT_ONCE = 2**10  # columns
_NEGLIGIBLE = 1e-10  # share of the longest column's weight
_COUNTS = 1e-3  # share of it from which a column joins
_FEW = 100  # columns that join: then all that count are there
_SURE = 2  # times as small a power, for a column to be left out of a round
_ROUNDS = 17  # of a search, each with columns that were lacking
_FORGET = 0.5  # share of the last multipliers: a mean over rounds bounds better than those of any one
_FLOOR, _IN_BOUND = 1e-3, 4e-3  # of the mean multiplier: no direction is without one
_NEW = 3e-3  # of the largest: how much measurements that are new to a start count at first
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
    lower_bound: float = 0.0,
) -> Solution:
    """Measurements for these columns phi / D (r, n), starting from `start` (q, r).

    A start that is not `fresh` is a design's for most of these columns: small powers are left out. Its
    `lower_bound` still holds.
    """
    search = _Search(space, space.down @ columns, gap, noise_variance, lower_bound * noise_variance)
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
    def __init__(self, space: Space, columns: FloatArray, gap: float, s: float, lower: float) -> None:
        self.space, self.columns, self.gap, self.s, self.evaluations = space, columns, gap, s, 0
        self.lower = max(lower, float(np.finfo(float).tiny))

    def run(self, R: FloatArray, fresh: bool) -> tuple[FloatArray, float, float]:
        """The best measurements found, what they leave unknown, and a bound on that of all."""
        p = _FIRST if fresh else _AGAIN
        R, g = self._scaled(R)
        always = self._spread_evenly()
        rows = self._first_rows(g) if fresh else np.union1d(always, np.argsort(-g)[: 3 * _WORKING_SET])
        if fresh:
            R, g = self._scaled(_full(R, self.columns[:, rows], g[rows]))
        best, lower = (R, self.space.left(R, self.s)), self.lower
        multipliers = np.zeros(len(g))
        for _ in range(_ROUNDS):
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
            astray = value > best[1] * (1 + self.gap) and p >= _MOST  # without rows that matter
            if not astray:
                rows = np.union1d(always, _that_count(rows, g, p / _SURE))
            lacking = _lacking(rows, g, _COUNTS ** (1 / p))
            rows = np.concatenate([rows, lacking])
            if astray:
                R = best[0]  # with them, from there
            elif p < _MOST or (p < _AT_MOST and climb.converged and len(lacking) < _FEW):
                p *= 2
        return *best, lower

    def _scaled(self, R: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With the longest column of length 1, and every column's squared length."""
        moved = R @ self.columns
        g = column_dots(moved, moved)
        return R / np.sqrt(g.max()), g / g.max()

    def _first_rows(self, g: FloatArray) -> Rows:
        """The longest columns, an even sample, and the longest before any measurement."""
        third = _WORKING_SET // 3
        own = column_dots(self.columns, self.columns)
        longest = np.argsort(-g)[:third], np.argsort(-own)[:third]
        return np.unique(np.concatenate([self._spread_evenly(), *longest]))

    def _spread_evenly(self) -> Rows:
        return evenly(self.columns.shape[1], _WORKING_SET // 3)


class _Climb:
    """L-BFGS on R for one p-norm of the squared lengths g, in coordinates where multipliers are even.

    Lengths are in single precision: what is returned is looked at anew.
    """

    def __init__(self, space: Space, part: FloatArray, R: FloatArray, p: int, s: float, gap: float) -> None:
        self.space, self.p, self.s, self.gap = space, p, s, gap
        moved = R @ part
        g: FloatArray = column_dots(moved, moved)
        w = _floored((g / g.max()) ** (p - 1))
        self.lower = np.linalg.cholesky(_ridged((part * w) @ part.T))
        self.order = np.argsort(-g, kind="stable")  # those that hardly count are in pieces of their own
        white = solve_triangular(self.lower, part[:, self.order], lower=True)
        pieces = range(0, white.shape[1], _AT_ONCE)
        self.parts = [np.ascontiguousarray(white[:, i : i + _AT_ONCE], dtype=np.float32) for i in pieces]
        self.signal = solve_triangular(self.lower, space.signal, lower=True)
        self.prior_root = solve_triangular(self.lower, np.eye(len(part)), lower=True)
        self.start, self.evaluations = R @ self.lower, 0
        self.best, self.looked, self.progress = np.inf, 0, np.inf

    @property
    def converged(self) -> bool:
        return self.evaluations < _EVALUATIONS

    def run(self) -> tuple[FloatArray, FloatArray]:
        """Measurements scaled to p-norm 1, and a multiplier for each column."""
        minimise(
            self._value_and_gradient,
            self.start.ravel(),
            first_step=0.25 / self.start.shape[1],
            done=self._done,
            evaluations=_EVALUATIONS,
            memory=_MEMORY,
        )
        R, shares = self.found
        w = np.empty(len(shares))
        w[self.order] = shares
        return R @ self.prior_root, w

    def _value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        R = x.reshape(self.start.shape)  # times what makes the multipliers' gram 1
        short = R.astype(np.float32)

        def lengths(part: NDArray[np.float32]) -> tuple[NDArray[np.float32], FloatArray]:
            moved = short @ part
            return moved, np.square(moved).sum(axis=0).astype(np.float64)

        moved, g_of = zip(*in_threads(lengths, self.parts), strict=True)
        g = np.concatenate(g_of)
        largest = float(g.max())
        share = (g / largest) ** (self.p - 1)
        total = float(share @ g) / largest

        def slopes(i: int) -> FloatArray | float:
            its = share[i * _AT_ONCE : (i + 1) * _AT_ONCE]
            if its.max() < _NEGLIGIBLE:
                return 0.0
            part: FloatArray = ((moved[i] * its.astype(np.float32)) @ self.parts[i].T).astype(np.float64)
            return part

        along = sum(in_threads(slopes, range(len(moved))))
        norm = largest * total ** (1 / self.p)  # squared length that counts as 1
        flat = R @ self.prior_root
        H = flat @ self.space.signal
        Y = np.linalg.solve(flat @ flat.T + self.s * norm * np.eye(len(R)), H)
        E = self.space.signal - flat.T @ Y  # (1 + X/s)^-1 L
        value = self.space.prior - float((H * Y).sum())
        # R times minus the slope of f in X is Y E', as for every column in :mod:`posterior`.
        pull = Y @ (self.prior_root @ E).T
        slack = float((pull * R).sum())
        slope = 2 * (slack / (largest * total) * along - pull)
        self.evaluations += 1
        if value < self.best:
            self.best = value
            self.found = R / np.sqrt(norm), share * (slack / total)
        n = len(self.start.T)
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


def _full(R: FloatArray, columns: FloatArray, g: FloatArray) -> FloatArray:
    """As many measurements as there are directions: none that a search may want is left out.

    New ones are short where columns are long, so that columns of squared length `g` grow little.
    """
    root = np.linalg.cholesky(_ridged((columns * _floored(g)) @ columns.T))
    values, vectors = np.linalg.eigh(root.T @ (R.T @ R) @ root)
    full = (vectors * np.sqrt(np.maximum(values, _NEW * values[-1]))).T
    result: FloatArray = solve_triangular(root, full.T, lower=True, trans="T").T
    return result


def _without_idle(R: FloatArray, least: float = 0.0) -> FloatArray:
    """The same without measurements whose signal has next to no variance."""
    values, vectors = np.linalg.eigh(R @ R.T)
    keep = values > max(_IDLE * values[-1], min(least, 0.1 * values[-1]))
    result: FloatArray = vectors[:, keep].T @ R
    return result


def _that_count(rows: Rows, g: FloatArray, p: float) -> Rows:
    """Rows whose columns count beside the longest of these: any that is lacking may be longer still."""
    counted: Rows = rows[g[rows] > _NEGLIGIBLE ** (1 / p) * g[rows].max()]
    return counted


def _lacking(rows: Rows, g: FloatArray, least: float) -> Rows:
    """The longest columns that are not among the rows: any may count once these are shorter."""
    outside = np.ones(len(g), dtype=bool)
    outside[rows] = False
    candidates = np.flatnonzero(outside & (g > least * g[rows].max()))
    return candidates[np.argsort(-g[candidates])[: _WORKING_SET // 3]]
