"""The design for predictions that will be denoised: least expected error of the posterior mean.

The reader of a release can do Bayes for free (:meth:`cloakgp.Release.predict`). What then counts
is the variance of the GP's predictions m = C y given the noisy measurements,

    f(B) = tr W C (K^-1 + B'B/s)^-1 C',      K = Kff + S,  s = (d/mu)^2,

over all matrices B whose columns have norm at most 1. More rows that fill the columns up to norm 1
can only help, so every column has norm 1 and there is no constraint left: a few multiplicative
steps from the `mse` design, then L-BFGS on unnormalised columns. Directions that carry more noise
than signal are left out by themselves.

With H = B Kf*, D = B K B' + sI, Y = D^-1 H and E = K*f - Y'BK:  f = tr W C K C' - tr W H'Y, and its
gradient is -2 Y W E. Only B K costs more than a pass over C's columns, so steps are few, and each
is certified: :func:`lower_bound` turns E into a bound on any design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from cloakgp.core.checks import FloatArray
from cloakgp.designs.lbfgs import minimise
from cloakgp.designs.solution import Solution
from cloakgp.model.arrays import Array, column_dots, like, on_host, times_wide, wide_dots
from cloakgp.model.smoothers import Smoother, blocks

_EVALUATIONS = 400
_MULTIPLICATIVE = 1  # steps before L-BFGS takes over
_STALL_AFTER = 10  # evaluations without progress worth a hundredth of the gap end the search
_IDLE = 1e-2  # share of the noise variance below which a start direction carries no signal
_FILL = 4  # rows that are added to a start, at least
_ROOM = 2  # measurements for each that tells more than noise: with fewer a search takes many detours
_HALVINGS = 1.5  # of the excess over the lower bound, in a step that goes well
_SEARCHED = 0.95  # share of the gap that a search may use up; the rest is for what it leaves out
_APART = 2  # evaluations between looks if it went less well since the last
_UNUSED = 1e-4  # share of the gap: of the measurements that predictions use most
_TAIL = 1e-2  # share of the gap that predictions' idle directions may make up
_ROUNDING = 1e-14  # of quantities that are 1 at most


class Aim:
    """The weighted predictions, whatever the noise to come; who asks for several kinds of noise keeps it.

    In coordinates where they are independent of each other beforehand, the most variable first, scaled so
    that their prior variance is 1.
    """

    def __init__(self, smoother: Smoother, weights: FloatArray) -> None:
        self.smoother, self.weights = smoother, weights
        xp = array_namespace(smoother.cross)
        self.explained = on_host(smoother.explained_variance)
        self.C = xp.concat([smoother.columns(block) for block in blocks(smoother.n_rows)], axis=1)
        self.spread = _symmetric(wide_dots(self.C, smoother.cross.T))  # C K C'
        self.reach = on_host(xp.abs(smoother.cross).sum(axis=0)) ** 2
        root = like(self.spread, np.sqrt(weights))
        eigenvalues, U = xp.linalg.eigh(root[:, None] * self.spread * root)
        eigenvalues, U = xp.flip(eigenvalues), xp.flip(U, axis=1)
        keep = eigenvalues > _ROUNDING * eigenvalues[0]  # what is left out only lowers the bound
        self.unit = float(eigenvalues[keep].sum())
        self.prior = eigenvalues[keep] / self.unit
        self.turn = root[:, None] * U[:, keep] / np.sqrt(self.unit)
        self.cross = times_wide(self.turn.T, smoother.cross.T)  # (n, N)

    def left(self, start: Array, s: float) -> float:
        """What measurements `start` C leave unknown under noise of variance s, as a share of the prior's."""
        H = start @ self.spread @ self.turn
        gain = _gain(_symmetric(start @ self.spread @ start.T), H, s)
        return 1 - float((gain.T * H).sum())

    def first(self, tail: float) -> int:
        """How many coordinates are left if those go that have this share of the variance together."""
        beyond = 1 - np.cumsum(on_host(self.prior))
        return int(min((beyond > tail).sum() + 1, len(beyond)))


class Anchor(NamedTuple):
    """Measurements for about the noise to come, and how a search goes on from them."""

    B: Array  # (q, N)
    scale: Array  # (q, N): of steps
    left: float
    """What they leave unknown, as a share of the prior's."""
    evaluations: int


def anchor(aim: Aim, start: Array, gap: float, noise_variance: float) -> Anchor:
    """From the measurements `start` C, such as the mse design's."""
    search = Search(aim, noise_variance, gap, aim.left(start, noise_variance))
    search.run(search.signal(start))
    return Anchor(search.best.B, search.scale, search.best.value, search.evaluations)


def posterior(aim: Aim, start: Array | Anchor, gap: float, noise_variance: float) -> Solution:
    """Search from an anchor, or from the measurements `start` C."""
    if isinstance(start, Anchor):
        search = Search(aim, noise_variance, _SEARCHED * gap, start.left)
        search.go_on(start.B, start.scale)
    else:
        search = Search(aim, noise_variance, _SEARCHED * gap, aim.left(start, noise_variance))
        search.run(search.signal(start))
    before = start.evaluations if isinstance(start, Anchor) else 0
    return solution(aim, search.best, search.lower, gap, noise_variance, before + search.evaluations)


def solution(
    aim: Aim, point: Point, lower: float, gap: float, noise_variance: float, evaluations: int
) -> Solution:
    """What is made of the best point, and of a bound on all."""
    smoother, weights = aim.smoother, aim.weights
    B = _worth_measuring(point, gap)
    gain, left = denoising(smoother, B, noise_variance)
    total = float(weights.sum())
    objective = float(weights @ on_host(left))
    lower = min(lower, objective)
    return Solution(
        design="posterior",
        matrix=B,
        reconstruction=gain,
        objective=objective / total / noise_variance,
        lower_bound=lower / total / noise_variance,
        iterations=evaluations,
        status="converged" if objective <= lower * (1 + gap) else "stopped before the gap was reached",
        unbiased=False,
    )


def denoising(smoother: Smoother, B: Array, noise_variance: float) -> tuple[Array, Array]:
    """How the posterior mean at X* moves with measurements B y, (P, q); and its variances, (P,).

    These are of what the measurements leave unknown beside what y itself does.
    """
    B = like(smoother.cross, B)
    H = B @ smoother.cross
    gain = _gain(smoother.times_covariance(B) @ B.T, H, noise_variance)
    return gain, smoother.explained_variance - column_dots(gain.T, H)


def _gain(covariance: Array, H: Array, noise_variance: float) -> Array:
    xp = array_namespace(H)
    noise = noise_variance * xp.eye(len(H), dtype=H.dtype, device=device(H))
    return xp.linalg.solve(covariance + noise, H).T


@dataclass(frozen=True, eq=False)
class Point:
    """Measurements with unit columns, and what they leave unknown, as a share of the prior's."""

    B: Array  # (q, N)
    BK: Array  # (q, N)
    covariance: Array  # (q, q): B K B'
    H: Array  # (q, r)
    Y: Array  # (q, r)
    pull: Array  # (q, N): Y E, half of minus the gradient
    value: float

    def turned(self, turn: Array) -> Point:
        """The same measurements up to a rotation of their rows."""
        t = turn.T
        return replace(
            self,
            B=times_wide(t, self.B),
            BK=times_wide(t, self.BK),
            covariance=t @ self.covariance @ turn,
            H=t @ self.H,
            Y=t @ self.Y,
            pull=times_wide(t, self.pull),
        )


class Search:
    """In the aim's coordinates, without those that hardly matter beside `left`: about what will be."""

    def __init__(self, aim: Aim, s: float, gap: float, left: float) -> None:
        self.aim, self.s, self.gap, self.unit = aim, s, gap, aim.unit
        self.xp = xp = array_namespace(aim.spread)
        n = aim.first(_TAIL * gap * left)
        self.cross, self.prior = aim.cross[:n], xp.diag(aim.prior[:n])
        self.known_share = float(aim.prior[:n].sum())
        self.evaluations, self.looked, self.look_at = 0, 0, 0
        self.progress = self.seen = self.excess = np.inf
        self.known: Point | None = None  # where L-BFGS starts
        # A first lower bound that is always positive (end of lemma 6).
        weights, explained, bound = aim.weights, aim.explained, aim.reach / s
        self.lower = float(np.sum(weights * explained**2 / np.maximum(explained + bound, 1e-300)))

    def signal(self, start: Array) -> Array:
        """The start's directions that carry signal, in unit columns."""
        values, vectors = self.xp.linalg.eigh(_symmetric(start @ self.aim.spread @ start.T))  # B K B'
        signal = vectors[:, values > min(_IDLE * self.s, 0.1 * float(values[-1]))]
        room = _ROOM * int((values > self.s).sum()) - signal.shape[1]
        return filled((signal.T @ start) @ self.aim.C, max(room, _FILL))

    def run(self, start: Array) -> None:
        """From measurements with unit columns."""
        point = self.best = self.at(start)
        for _ in range(_MULTIPLICATIVE):
            if self._done():
                break
            point, scale = preconditioned(point, self.s)
            along = point.pull - point.B * column_dots(point.pull, point.B)
            point = self.at(point.B + scale**2 * along)
        self.best, self.scale = preconditioned(self.best, self.s)
        self.climb()

    def go_on(self, B: Array, scale: Array) -> None:
        """From where another search ended, with its steps."""
        self.best, self.scale = self.at(B), scale
        self.climb()

    def climb(self) -> None:
        """Downhill from the best point."""
        self.known = self.best
        minimise(
            self._value_and_gradient,
            (self.best.B / self.scale).ravel(),
            first_step=0.5,
            done=self._done,
            evaluations=_EVALUATIONS - self.evaluations,
        )
        self._done(last=True)

    def bound(self, point: Point) -> float:
        """On what any measurements leave unknown."""
        v = self.xp.sqrt(column_dots(point.pull, point.pull))
        left = self.prior - point.Y.T @ point.H
        E = self.cross - times_wide(point.Y.T, point.BK)
        return lower_bound(E, v, left, left - self.s * point.Y.T @ point.Y, self.s)

    def at(self, raw: Array) -> Point:
        """What measurements in these columns, each made 1 long, leave unknown."""
        B = raw / self.xp.sqrt(column_dots(raw, raw))
        BK = self.aim.smoother.times_covariance(B)
        covariance, H = _symmetric(wide_dots(BK, B)), wide_dots(B, self.cross)
        Y = _gain(covariance, H, self.s).T
        pull = times_wide(Y, self.cross)
        pull -= times_wide(Y @ Y.T, BK)
        value = self.known_share - float((H * Y).sum())
        point = Point(B, BK, covariance, H, Y, pull, value)
        self.evaluations += 1
        if self.evaluations == 1 or value < self.best.value:
            self.best = point
        return point

    def _value_and_gradient(self, x: Array) -> tuple[float, Array]:
        raw = x.reshape(self.scale.shape) * self.scale
        point, self.known = self.known or self.at(raw), None
        slope = point.B * column_dots(point.pull, point.B) - point.pull  # along the sphere only
        slope *= 2 * self.scale / self.xp.sqrt(column_dots(raw, raw))
        return point.value, slope.ravel()

    def _done(self, last: bool = False) -> bool:
        if last or self.evaluations >= self.look_at:
            self._look()
        if self.excess <= self.gap:
            return True
        if self.evaluations < self.looked + _STALL_AFTER:
            return False
        self.looked, before, self.progress = self.evaluations, self.progress, self.best.value
        return self.progress > before * (1 - 0.01 * self.gap)

    def _look(self) -> None:
        """Find out how far above the lower bound the best point is at most."""
        best, before = self.best, self.excess
        if best.value < self.seen:
            self.lower, self.seen = max(self.lower, self.bound(best) * self.unit), best.value
            self.excess = best.value * self.unit / self.lower - 1
        # A look costs about as much as a step, and few steps halve the excess twice.
        well = int(np.log2(max(self.excess / self.gap, 1)) / _HALVINGS)
        self.look_at = self.evaluations + max(1 if 2 * self.excess < before else _APART, well)


def lower_bound(E: Array, v: Array, EC: Array, EKE: Array, s: float) -> float:
    """A bound on f(B) for every B with columns of norm at most 1, from any E (r, N) and any v > 0.

    For every r x N matrix F and every X = B'B, completing the square gives

        f(B) = tr C (K^-1 + X/s)^-1 C' >= 2 tr F C' - tr F K^-1 F' - tr F X F'/s,

    with equality at F = C (K^-1 + X/s)^-1. If F'F <= s t diag(v), the last term is at most
    t sum_i v_i X_ii <= t sum(v). Take F = M E with M = U diag(m) U', where U holds the
    eigenvectors of E diag(1/v) E'/s: that condition on F is m_j^2 lambda_j <= t, and the bound

        sum_j (2 m_j a_j - m_j^2 b_j) - t sum(v),    a = diag U'EC'U,  b = diag U'EK^-1E'U.

    For given t the best m_j is the smaller of a_j / b_j and sqrt(t / lambda_j), so the bound is a
    concave, piecewise quadratic function of sqrt(t); one of its pieces has the maximum.

    Weights are part of C here, and the prior variance tr C K C' is 1. `EC` = E C' and `EKE` = E K^-1 E'
    are given: if E belongs to some B as above, they are C K C' - Y'H and that less s Y'Y. Then m = 1 at
    t = lambda_max gives lemma 6, and at the optimum v_i = |(Y E)_i| is best and the bound is exact.
    """
    v = _at_least(max(1e-6 * float(v.mean()), 1e-300), v)
    scaled = E / array_namespace(v).sqrt(v * s)
    return best_bound(
        on_host(wide_dots(scaled, scaled)), float(v.sum()), on_host(EC), on_host(EKE)
    )  # small from here on


def best_bound(gram: FloatArray, total: float, EC: FloatArray, EKE: FloatArray) -> float:
    """The best of the bounds above, by what they depend on: `gram` = E diag(1/v) E'/s, `total` = sum(v)."""
    eigenvalues, U = np.linalg.eigh(gram)
    keep = eigenvalues > _ROUNDING * eigenvalues[-1]
    root, U = np.sqrt(eigenvalues[keep]), U[:, keep]
    # Rounding must not raise the bound.
    a = np.maximum(np.einsum("ij,ij->j", U, EC @ U) - _ROUNDING, 0.0)
    b = np.maximum(np.einsum("ij,ij->j", U, EKE @ U), 0.0) + _ROUNDING
    order = np.argsort(-(a / b) * root)
    tau = np.cumsum((a / root)[order]) / (np.cumsum((b / root**2)[order]) + total)
    m = np.minimum(a / b, tau[:, None] / root)
    return float(np.max(2 * m @ a - m**2 @ b - tau**2 * total, initial=0.0))


def preconditioned(point: Point, s: float) -> tuple[Point, Array]:
    """The point, turned, and the square root of how far to step along Y E in each of its entries.

    Where B K B', C K C' and the constraint are diagonal, direction j with weight x has error
    p / (1 + kx/s), and at the optimum minus its slope equals its multiplier c. Multiplying
    x + s/k by sqrt(slope / c) gets there; to first order a row of B, sqrt(x), is then multiplied by
    1 + (1 + s/(kx)) (slope / c - 1) / 4. The multiplier of row i of X is |(Y E)_i|.
    """
    xp = array_namespace(point.B)
    eigenvalues, turn = xp.linalg.eigh(point.covariance)
    along = 0.25 * (1 + s / xp.maximum(eigenvalues, 1e-12 * eigenvalues[-1]))
    along = xp.minimum(along, xp.ones_like(along))
    v = xp.sqrt(column_dots(point.pull, point.pull))
    v = _at_least(max(float(v.mean()), 1e-300), v)  # rows that hardly matter would wander
    return point.turned(turn), xp.sqrt(along[:, None] / v)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def _at_least(floor: float, values: Array) -> Array:
    xp = array_namespace(values)
    return xp.maximum(values, xp.full_like(values, floor))


def filled(start: Array, rows: int = _FILL) -> Array:
    """The start with some more rows that fill its columns up to norm 1: B'B only grows by that."""
    xp, n = array_namespace(start), start.shape[1]
    waves = np.sin(
        np.outer(np.arange(1, rows + 1) * np.sqrt(5), np.arange(1, n + 1)) + np.arange(rows)[:, None]
    )
    waves = like(start, waves)
    room = xp.sqrt(_at_least(1e-12, 1 - column_dots(start, start)))
    filled = xp.concat([start, waves * (room / xp.linalg.vector_norm(waves, axis=0))])
    return filled / xp.linalg.vector_norm(filled, axis=0)


def used(point: Point, gap: float) -> Array:
    """(q, m) the directions of measurements that predictions use: no more than there are predictions."""
    values, vectors = array_namespace(point.Y).linalg.eigh(point.Y @ point.Y.T)
    return vectors[:, values >= _UNUSED * gap * values[-1]]


def _worth_measuring(point: Point, gap: float) -> Array:
    """B without what predictions do not use, turned so that its rows are orthogonal; its longest column is 1.

    Where that leaves columns shorter, a few more rows fill them: they cost no noise, and what they tell of
    outcomes that these predictions hardly use, others may.
    """
    B = filled(times_wide(used(point, gap).T, point.B))
    values, vectors = array_namespace(B).linalg.eigh(wide_dots(B, B))
    B = times_wide(vectors[:, values > 1e-4 * values[-1]].T, B)
    return B / np.sqrt(float(column_dots(B, B).max()))
