"""The mixture over a hyperprior's models, given all that was measured of the same rows, stage by stage.

f at the U distinct inputs is P times f at m support points: the inputs themselves, and P the identity, or a
few hundred, and P an interpolation that does not depend on the setting, so that every one costs m x m.
Numbers here are less the middle of the bounds; the prior mean is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtr

from cloakgp.checks import FloatArray
from cloakgp.model.hyperprior import Candidate, Hyperprior, Known
from cloakgp.model.inducing import choose_inducing
from cloakgp.posterior.resampling import about_the_best

MOST_EXACT = 800
"""Distinct inputs up to which each is a support point."""
_SUPPORT = 320
_KEPT = 10  # settings that predictions are made with
_NEGLIGIBLE = 12.0  # log odds against the best beyond which a setting is looked at no more
_MOST = 192  # settings that go on to the next stage
_ENTRIES = 2**21  # of a stack of matrices
_LOOKED_AT = 256  # rows whose spread stands for all


def support_points(X: FloatArray, inducing: int | FloatArray | None) -> FloatArray | None:
    """Inputs that stand for all; None where each of X stands for itself."""
    if inducing is None and len(X) <= MOST_EXACT:
        return None
    if isinstance(inducing, np.ndarray):
        return inducing
    return choose_inducing(X, _SUPPORT if inducing is None else inducing)


@dataclass(frozen=True, eq=False)
class Reading:
    """Noisy sums: value = rows @ (sums over each input's rows of slope y) + noise."""

    rows: FloatArray  # (q, U)
    slope: FloatArray  # (U,)
    """How far an outcome moves what was measured of it: less than 1 where it may be clipped."""
    value: FloatArray  # (q,)
    covariance: FloatArray  # (q, q)
    """Of the noise, and of what clipping adds to it."""


@dataclass(frozen=True, eq=False)
class SpreadReading:
    """Noisy mean over all rows of min(|y - centre|, limit)."""

    centre: FloatArray  # (U,)
    limit: float
    value: float
    variance: float


class Mixture:
    """All settings that still matter, and what does not depend on what was measured.

    Parameters
    ----------
    prior : Hyperprior
    X, counts : (U, D) and (U,) arrays
        The distinct inputs, and how many rows have them.
    X_star : (P, D) array
        Test points.
    width : float
        Of the outer bounds.
    support : (m, D) array, optional
        Inputs that stand for all, where there are many: see :func:`support_points`.
    """

    def __init__(
        self,
        prior: Hyperprior | Known,
        X: FloatArray,
        counts: FloatArray,
        X_star: FloatArray,
        width: float,
        support: FloatArray | None = None,
    ) -> None:
        self.prior, self.X, self.counts, self.X_star, self.width = prior, X, counts, X_star, width
        self.spans = np.ptp(X, axis=0)
        self.settings: list[Candidate] = [*prior.settings(self.spans, width)]
        self.log_prior = np.zeros(len(self.settings))
        self.Z = X if support is None else support
        self.P: FloatArray | None = None if support is None else self._interpolation()
        looked_at = np.linspace(0, len(X) - 1, min(len(X), _LOOKED_AT)).astype(np.intp)
        self._looked_at = looked_at
        self._shapes: dict[tuple[str, tuple[float, ...]], FloatArray] = {}

    @property
    def n_support(self) -> int:
        return len(self.Z)

    def _interpolation(self) -> FloatArray:
        kernel = self.prior.model(self.X, (0.0, self.width)).kernel
        K = np.asarray(kernel(self.Z))
        K[np.diag_indices_from(K)] += 1e-6 * K[0, 0]
        P: FloatArray = np.linalg.solve(K, np.asarray(kernel(self.Z, self.X))).T
        return P

    def start(self) -> State:
        """Before anything is measured: the mean of the kernels."""
        points = np.vstack([self.Z, self.X_star])
        chosen = self.settings
        if len(self.spans) > 1:  # hundreds of lengthscales: a few stand for all
            chosen = chosen[:: max(1, len(chosen) // 16)]
        shapes = dict.fromkeys((s.family, s.lengthscale) for s in chosen)
        mean_shape = np.zeros((len(points), len(points)))
        for key in shapes:
            one = next(s for s in chosen if (s.family, s.lengthscale) == key)
            mean_shape += self._shape(one) / len(shapes)
        signal = float(np.mean([s.signal for s in self.settings]))
        noise = float(np.mean([s.noise for s in self.settings]))
        F = chosen[0].level + signal * mean_shape
        return State(self, (), np.empty(0), (), (), np.zeros(len(points)), F, noise)

    def fit(self, readings: Sequence[Reading], spreads: Sequence[SpreadReading] = ()) -> State:
        """What all readings together say; settings that they rule out are forgotten."""
        if isinstance(self.prior, Known):
            return self.state(tuple(self.settings), np.ones(1), readings, spreads)
        data = _Stacked(self, readings)
        scores = self._evidence(data, self.settings, spreads)
        if len(self.spans) > 1:
            for round_ in range(2 if len(readings) == 1 else 1):
                more, density = about_the_best(
                    self.settings, scores + self.log_prior, self.prior, self.spans, self.width, round_
                )
                self.settings = [*self.settings, *more]
                self.log_prior = np.concatenate([self.log_prior, density])
                scores = np.concatenate([scores, self._evidence(data, more, spreads)])
        total = scores + self.log_prior
        order = np.argsort(-total, kind="stable")
        go_on = [i for i in order[:_MOST] if total[i] > total[order[0]] - _NEGLIGIBLE]
        self.settings = [self.settings[i] for i in go_on]
        self.log_prior = self.log_prior[go_on]
        best = order[:_KEPT]
        kept = tuple(self.settings[: min(_KEPT, len(go_on))])
        weights = np.exp(total[best[: len(kept)]] - total[best[0]])
        return self.state(kept, weights / weights.sum(), readings, spreads)

    def state(
        self,
        kept: tuple[Candidate, ...],
        weights: FloatArray,
        readings: Sequence[Reading],
        spreads: Sequence[SpreadReading],
    ) -> State:
        """The mixture of these settings, each conditioned on the readings."""
        data = _Stacked(self, readings)
        means, F, noise = [], np.zeros((len(self.Z) + len(self.X_star),) * 2), 0.0
        for setting, weight in zip(kept, weights, strict=True):
            k = setting.signal * self._shape(setting) + setting.level
            H = data.G @ k[: len(self.Z)]
            D = H[:, : len(self.Z)] @ data.G.T + data.noise(setting.noise)
            L = _factor(D)
            W = _lower_solve(L, np.column_stack([H, data.z]))
            means.append(W[:, :-1].T @ W[:, -1])
            F += weight * (k - W[:, :-1].T @ W[:, :-1])
            noise += weight * setting.noise
        mean = weights @ np.array(means)
        for weight, one in zip(weights, means, strict=True):
            F += weight * np.outer(one - mean, one - mean)
        return State(self, kept, weights, tuple(readings), tuple(spreads), mean, (F + F.T) / 2, noise)

    def _shape(self, setting: Candidate) -> FloatArray:
        """(m + P, m + P) the smooth part with variance 1, at support and test points."""
        key = (setting.family, setting.lengthscale)
        if key not in self._shapes:
            points = np.vstack([self.Z, self.X_star])
            made = np.asarray(setting.shape(points), dtype=np.float64)
            if len(self.spans) > 1 or len(points) > 2000:
                return made
            self._shapes[key] = made  # a grid's few
        return self._shapes[key]

    def _evidence(
        self, data: _Stacked, settings: Sequence[Candidate], spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        """Log density of the readings under each setting."""
        found = np.empty(len(settings))
        by_shape: dict[tuple[str, tuple[float, ...]], list[int]] = {}
        for i, setting in enumerate(settings):
            by_shape.setdefault((setting.family, setting.lengthscale), []).append(i)
        most = max(1, _ENTRIES // data.G.shape[0] ** 2)
        m = len(self.Z)
        for members in by_shape.values():
            if len(self.spans) > 1:
                k = np.asarray(settings[members[0]].shape(self.Z), dtype=np.float64)
            else:
                k = self._shape(settings[members[0]])[:m, :m]
            A = data.G @ k
            AG = A @ data.G.T
            at_rows = self._at_looked(A) if spreads else None
            for some in (members[i : i + most] for i in range(0, len(members), most)):
                signal, level, noise = (
                    np.array([getattr(settings[i], name) for i in some])[:, None, None]
                    for name in ("signal", "level", "noise")
                )
                D = signal * AG + level * np.outer(data.total, data.total) + noise * data.own + data.rest
                if at_rows is None:
                    right = np.broadcast_to(data.z[:, None], (len(some), len(data.z), 1))
                else:
                    H = signal * at_rows + level * data.total[:, None]
                    z = np.broadcast_to(data.z[:, None], (len(some), len(data.z), 1))
                    right = np.concatenate([z, H], axis=2)
                L = _factors(D)
                W = np.linalg.solve(L, right)
                sizes = np.log(np.einsum("sii->si", L)).sum(axis=1)
                score = -np.einsum("sq,sq->s", W[:, :, 0], W[:, :, 0]) / 2 - sizes
                if at_rows is not None:
                    mean = np.einsum("sqn,sq->sn", W[:, :, 1:], W[:, :, 0])
                    variance = signal[:, 0] + level[:, 0] - np.einsum("sqn,sqn->sn", W[:, :, 1:], W[:, :, 1:])
                    for spread in spreads:
                        score = score + self._spread_evidence(
                            spread, mean, np.maximum(variance, 0.0) + noise[:, 0]
                        )
                found[some] = score
        found[~np.isfinite(found)] = -np.inf
        return found

    def _at_looked(self, A: FloatArray) -> FloatArray:
        """From support points (columns) to the rows that are looked at."""
        result: FloatArray = A[:, self._looked_at] if self.P is None else A @ self.P[self._looked_at].T
        return result

    def _spread_evidence(self, spread: SpreadReading, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Log density of a noisy mean distance, for settings with these means and variances of outcomes."""
        n, T = self.counts[self._looked_at], spread.limit
        r = np.sqrt(variance + (mean - spread.centre[self._looked_at]) ** 2)
        expected = folded(r, T) @ n / n.sum()
        sampling = 0.36 * (np.minimum(r, T) ** 2 @ n) / n.sum() / self.counts.sum()
        total = spread.variance + sampling
        result: FloatArray = -((spread.value - expected) ** 2) / total / 2 - np.log(total) / 2
        return result


@dataclass(frozen=True, eq=False)
class State:
    """What is known of f after some stages."""

    mixture: Mixture
    settings: tuple[Candidate, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    readings: tuple[Reading, ...]
    spreads: tuple[SpreadReading, ...]
    support_mean: FloatArray  # (m + P,): at support points, then at test points
    support_covariance: FloatArray  # (m + P, m + P)
    noise: float
    """Variance of one outcome about f."""

    @cached_property
    def mean(self) -> FloatArray:
        """(U,) of f at the inputs."""
        at, P = self.support_mean[: self.mixture.n_support], self.mixture.P
        return at if P is None else np.asarray(P @ at)

    @cached_property
    def variance(self) -> FloatArray:
        """(U,) of f at the inputs."""
        m, P = self.mixture.n_support, self.mixture.P
        S = self.support_covariance[:m, :m]
        own: FloatArray = np.diag(S) if P is None else np.einsum("ij,ij->i", P @ S, P)
        return np.maximum(own, 0.0)

    @property
    def covariance(self) -> FloatArray:
        """(m, m) of f at the support points."""
        m = self.mixture.n_support
        return self.support_covariance[:m, :m]

    @property
    def cross(self) -> FloatArray:
        """(m, P) of f at support and test points."""
        m = self.mixture.n_support
        return self.support_covariance[:m, m:]

    @property
    def at_test_points(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f at X*."""
        m = self.mixture.n_support
        return self.support_mean[m:], np.maximum(np.diag(self.support_covariance)[m:], 0.0)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f at `X`, less the middle of the bounds."""
        mixture = self.mixture
        data = _Stacked(mixture, self.readings)
        means, variances = [], []
        for setting in self.settings:
            kernel = setting.kernel
            H = data.G @ np.asarray(kernel(mixture.Z))
            L = _factor(H @ data.G.T + data.noise(setting.noise))
            link = data.G @ np.asarray(kernel(mixture.Z, X))
            W = _lower_solve(L, np.column_stack([link, data.z]))
            means.append(W[:, :-1].T @ W[:, -1])
            variances.append(setting.signal + setting.level - np.einsum("qn,qn->n", W[:, :-1], W[:, :-1]))
        mean = self.weights @ np.array(means)
        spread = np.maximum(np.array(variances), 0.0) + (np.array(means) - mean) ** 2
        return mean, np.asarray(self.weights @ spread)


class _Stacked:
    """Readings of all stages as one linear Gaussian measurement of f at the support points."""

    def __init__(self, mixture: Mixture, readings: Sequence[Reading]) -> None:
        n = mixture.counts
        sloped = [r.rows * (n * r.slope) for r in readings]
        rows = np.vstack(sloped)
        self.G = rows if mixture.P is None else rows @ mixture.P
        self.z = np.concatenate([r.value for r in readings])
        self.total = self.G.sum(axis=1)
        self.own: FloatArray = (rows / n) @ rows.T
        self.rest: FloatArray = block_diag(*(r.covariance for r in readings))

    def noise(self, variance: float) -> FloatArray:
        """Covariance of all that is not f."""
        return np.asarray(variance * self.own + self.rest)


def folded(std: FloatArray, limit: float) -> FloatArray:
    """E min(|r|, limit), r ~ N(0, std^2)."""
    at = limit / std
    result: FloatArray = std * np.sqrt(2 / np.pi) * -np.expm1(-(at**2) / 2) + 2 * limit * ndtr(-at)
    return result


def _factor(D: FloatArray) -> FloatArray:
    return np.asarray(_factors(D[None])[0])


def _factors(D: FloatArray) -> FloatArray:
    """Cholesky factors of (S, q, q), with a little on the diagonal where rounding needs it."""
    D = (D + np.swapaxes(D, 1, 2)) / 2
    try:
        return np.asarray(np.linalg.cholesky(D))
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(D)
    values = np.maximum(values, 1e-12 * values[:, -1:])
    _, R = np.linalg.qr(np.sqrt(values)[:, :, None] * np.swapaxes(vectors, 1, 2))
    signs = np.sign(np.einsum("sii->si", R))
    result: FloatArray = np.swapaxes(R * np.where(signs == 0, 1.0, signs)[:, :, None], 1, 2)
    return result


def _lower_solve(L: FloatArray, right: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular

    result: FloatArray = solve_triangular(L, right, lower=True, check_finite=False)
    return result
