"""The design for predictions that will be denoised: least expected error of the posterior mean.

The reader of a release can do Bayes for free (:meth:`cloakgp.Release.predict`). What then counts
is the variance of the GP's predictions m = C y given the noisy measurements,

    f(B) = tr W C (K^-1 + B'B/s)^-1 C',      K = Kff + S,  s = (d/mu)^2,

over all matrices B whose columns have norm at most 1. More rows that fill the columns up to norm 1
can only help, so every column has norm 1 and there is no constraint left: L-BFGS on unnormalised
columns, started from the `mse` design. Directions that carry more noise than signal are left out
by themselves.

With H = B Kf*, D = B K B' + sI, Y = D^-1 H and E = K*f - Y'BK:  f = tr W C K C' - tr W H'Y, and its
gradient is -2 Y W E. Lemma 6 of ``docs/proofs.md`` turns E into a lower bound on any design.
"""

from __future__ import annotations

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.designs.lbfgs import minimise
from cloakgp.designs.solution import Solution
from cloakgp.smoothers import Smoother

_EVALUATIONS = 400
_CERTIFY_EVERY = 10
_CERTIFY_STEPS = 20
_STALLED = 1e-4  # relative progress over that many evaluations below which the search ends


def posterior(
    smoother: Smoother, start: FloatArray, weights: FloatArray, gap: float, noise_variance: float
) -> Solution:
    """Search from the measurements `start` (q, N), such as the mse design's."""
    search = _Search(smoother, weights, noise_variance, gap)
    search.run(_filled(start))
    B = _without_idle_rows(search.best)
    gain = denoising_gain(smoother, B, noise_variance)
    left = smoother.explained_variance - np.einsum("ij,ji->i", gain, B @ smoother.cross)
    total = float(weights.sum())
    objective = float(weights @ left)
    return Solution(
        design="posterior",
        matrix=B,
        reconstruction=gain,
        objective=objective / total / noise_variance,
        lower_bound=min(search.lower, objective) / total / noise_variance,
        iterations=search.evaluations,
        status="converged" if objective <= search.lower * (1 + gap) else "stopped before the gap was reached",
        unbiased=False,
    )


def denoising_gain(smoother: Smoother, B: FloatArray, noise_variance: float) -> FloatArray:
    """(P, q): how the posterior mean at X* moves with the measurements."""
    D = smoother.times_covariance(B) @ B.T + noise_variance * np.eye(len(B))
    gain: FloatArray = np.linalg.solve(D, B @ smoother.cross).astype(np.float64)
    return gain.T


class _Search:
    def __init__(self, smoother: Smoother, weights: FloatArray, s: float, gap: float) -> None:
        self.times_covariance = smoother.times_covariance
        self.cross = smoother.cross * np.sqrt(weights)  # Kf* W^(1/2)
        self.s, self.gap = s, gap
        self.prior = float(np.sum(weights * smoother.explained_variance))  # tr W C K C'
        self.evaluations, self.next_look, self.value, self.progress = 0, _CERTIFY_EVERY, np.inf, np.inf
        # A first lower bound that is always positive (end of lemma 6).
        explained, reach = smoother.explained_variance, np.abs(smoother.cross).sum(axis=0) ** 2 / s
        self.lower = float(np.sum(weights * explained**2 / np.maximum(explained + reach, 1e-300)))

    def run(self, start: FloatArray) -> None:
        self.shape = start.shape
        minimise(
            self._value_and_gradient,
            start.ravel(),
            first_step=0.1,
            done=self._done,
            shrink=lambda: None,
            evaluations=_EVALUATIONS,
        )
        self._certify()

    def _value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        U = x.reshape(self.shape)
        norms = np.sqrt(np.einsum("ij,ij->j", U, U))
        B = U / norms
        BK = self.times_covariance(B)
        D = BK @ B.T + self.s * np.eye(len(B))
        H = B @ self.cross
        Y = np.linalg.solve((D + D.T) / 2, H)
        value = -float(np.sum(H * Y))
        E = self.cross.T - Y.T @ BK
        slope = -2 * Y @ E
        slope -= B * np.einsum("ij,ij->j", slope, B)  # along the sphere only
        self.evaluations += 1
        if value < self.value:
            self.value, self.best, self.residual = value, B, E
        scale = self.prior / self.shape[1]
        return value / scale, (slope / norms / scale).ravel()

    def _done(self) -> bool:
        if self.evaluations < self.next_look:
            return False
        self.next_look = self.evaluations + _CERTIFY_EVERY
        before, self.progress = self.progress, self.prior + self.value
        self._certify()
        return self.within_gap() or self.progress > before * (1 - _STALLED)

    def within_gap(self) -> bool:
        return self.prior + self.value <= self.lower * (1 + self.gap)

    def _certify(self) -> None:
        """Lemma 6: any v > 0 gives a lower bound. v_i = |R e_i| is best for a fixed point of R <- R X."""
        E, EB = self.residual, self.residual @ self.best.T
        f = self.prior + self.value + float(np.sum(EB**2)) / self.s
        ridge = np.sqrt(1e-6 * np.sum(EB**2) / len(E)) * np.eye(len(E))  # so that R reaches every direction
        R = np.vstack([EB.T, ridge]) / np.sqrt(self.s)
        for _ in range(_CERTIFY_STEPS):
            moved = R @ E
            v = np.sqrt(np.einsum("ij,ij->j", moved, moved) / self.s)
            v = np.maximum(v, 1e-6 * v.mean())
            X = (E / (v * self.s)) @ E.T
            self.lower = max(self.lower, f - float(np.linalg.eigvalsh(X)[-1]) * float(v.sum()))
            if self.within_gap():
                return
            R = R @ X


def _filled(start: FloatArray) -> FloatArray:
    """The start with a few more rows that fill its columns up to norm 1: B'B only grows by that."""
    rows, n = 4, start.shape[1]
    waves = np.sin(
        np.outer(np.arange(1, rows + 1) * np.sqrt(5), np.arange(1, n + 1)) + np.arange(rows)[:, None]
    )
    room = np.sqrt(np.maximum(1 - np.einsum("ij,ij->j", start, start), 1e-12))
    filled = np.vstack([start, waves * (room / np.linalg.norm(waves, axis=0))])
    result: FloatArray = filled / np.linalg.norm(filled, axis=0)
    return result


def _without_idle_rows(B: FloatArray) -> FloatArray:
    """B turned so that its rows are orthogonal, without those that are nearly zero."""
    values, vectors = np.linalg.eigh(B @ B.T)
    keep = values > 1e-4 * values[-1]
    turned = vectors[:, keep].T @ B
    result: FloatArray = turned / np.linalg.norm(turned, axis=0).max()
    return result
