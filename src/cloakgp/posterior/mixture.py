"""The mixture over a hyperprior's models, given all that was measured of the same rows, stage by stage.

f is followed at support points (:mod:`cloakgp.posterior.support`): where these are fewer than the inputs, the
interpolation between them is the best setting's, for all settings, so that each costs little; what it leaves
out of f counts as noise of its own. Numbers here are less the middle of the bounds; the prior mean is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import block_diag

from cloakgp.checks import FloatArray
from cloakgp.model.hyperprior import Candidate, Form, Hyperprior, Known, Setting
from cloakgp.posterior.linking import Linked
from cloakgp.posterior.resampling import about_the_best
from cloakgp.posterior.support import Support
from cloakgp.rows.chunks import in_threads

_KEPT = 128  # settings that predictions are made with, at most
_WEIGHT = 0.99  # that they hold together
_NEGLIGIBLE = 9.0  # log odds against the best beyond which a setting is looked at no more
_MOST = 192  # settings that go on to the next stage
_MANY = 192  # numbers, beyond which only directions that tell of f are looked at
_FAINT = 1e-3  # of the noise variance: directions with less signal tell nothing
_BROAD = 16  # settings that stand for all that might be
_ENTRIES = 2**21  # of a stack of matrices
_LARGE = 200  # support points from which on threads are worth their while
_SETTLED = 1e-8  # of the prior's width: readings are linearised again until f moves no further
_PATIENCE = 40  # times that they are, at most
_ON_THE_WAY = 8  # the same where models are still weighed
_MEMORY, _BOLD = 4, 20.0  # of the acceleration: steps, and the largest sum of shares
_FEW = 32  # settings that predictions are made with, at most, where readings are linearised
_REFERENCE = (0.2, 0.2, 0.1)  # shares of a first setting to interpolate by: lengthscales, signal, noise


@dataclass(frozen=True, eq=False)
class Reading:
    """Noisy sums: value = rows @ (sums over each input's rows of slope y) + noise."""

    rows: FloatArray  # (q, U)
    slope: FloatArray  # (U,)
    """How far an outcome moves what was measured of it: less than 1 where it may be clipped."""
    value: FloatArray  # (q,)
    covariance: FloatArray  # (q, q)
    """Of the noise, and of what clipping adds to it."""
    own: FloatArray | None = None
    """(U,) variance of one outcome about f, as measured, in units of the noise; slope squared if absent."""


@dataclass(frozen=True, eq=False)
class SpreadReading:
    """Noisy mean over all rows of min(|y - centre|, limit)."""

    centre: FloatArray  # (U,)
    limit: float
    value: float
    variance: float
    counts: FloatArray | None = None
    """(U,) how many rows at each input it is of, if not of all."""


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
        Inputs that stand for all, where there are many: see :func:`cloakgp.posterior.support.support_points`.
    factor : float or (U,) array
        What the noise variance is multiplied by, in sums over an input's rows: above 1 where people have
        several rows, whose noise goes together.
    limits : (U,) array, optional
        How many rows these people have: columns are to be so many times shorter.
    link : Linked, optional
        How outcomes hang on f, if they are not f and noise; `width` is then f's.
    """

    def __init__(
        self,
        prior: Hyperprior | Known,
        X: FloatArray,
        counts: FloatArray,
        X_star: FloatArray,
        width: float,
        support: FloatArray | None = None,
        factor: FloatArray | float = 1.0,
        limits: FloatArray | None = None,
        link: Linked | None = None,
    ) -> None:
        self.link = link
        self.prior, self.X, self.counts, self.X_star, self.width = prior, X, counts, X_star, width
        self.scatter: FloatArray = counts * factor
        self.limits = np.ones(len(counts)) if limits is None else limits
        self.spans = prior.spans(X)
        self.several = prior.several(self.spans)
        self.settings: list[Candidate] = [*prior.settings(self.spans, width)]
        self.log_prior = np.zeros(len(self.settings))
        reference = self.settings[0]
        if isinstance(prior, Hyperprior):
            lengths, signal, noise = _REFERENCE
            alike = [1.0] * (len(prior.ends(len(self.spans))) - len(self.spans) - 2)
            shares = np.array([lengths] * len(self.spans) + alike + [signal, noise])
            spans = np.where(self.spans > 0, self.spans, 1.0)
            reference = Setting.of(prior.kernels[0], shares, spans, width, prior.categories)
        self.support = Support(X, X_star, reference, support)
        self._shapes: dict[Form, FloatArray] = {}

    def start(self) -> State:
        """Before anything is measured: the mean of the kernels."""
        chosen, m = self.settings, len(self.support.Z)
        if self.several:  # hundreds of lengthscales: a few stand for all
            chosen = chosen[:: max(1, len(chosen) // 16)]
        shapes = [self._shape(chosen[members[0]]) for members in _by_shape(chosen)]
        shape = np.mean(shapes, axis=0)
        signal = float(np.mean([s.signal for s in self.settings]))
        noise = float(np.mean([s.noise for s in self.settings]))
        F, rest = chosen[0].level + signal * shape, signal * self.support.left_out(chosen[0], shape[:m, :m])
        known = (), np.empty(0), (), (), np.zeros(len(F)), F, noise, rest
        return State(self.counts, self.scatter, self.limits, self.support, *known)

    def believed(self) -> tuple[tuple[Candidate, ...], FloatArray]:
        """A few models that stand for all, with equal weights: what there is while nothing is learned."""
        few = tuple(self.settings[:: max(1, len(self.settings) // _BROAD)])
        return few, np.full(len(few), 1 / len(few))

    def fit(self, readings: Sequence[Reading], spreads: Sequence[SpreadReading] = ()) -> State:
        """What all readings together say; settings that they rule out are forgotten."""
        if isinstance(self.prior, Known):
            return self.state(tuple(self.settings), np.ones(1), readings, spreads)
        data = self._stacked(readings)
        scores = self._evidence(data, self.settings, spreads)
        if self.several:
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
        weights = np.exp(total[go_on] - total[order[0]])
        held = np.cumsum(weights) / weights.sum()
        n = min(_KEPT if self.link is None else _FEW, 1 + int(np.searchsorted(held, _WEIGHT)))
        kept = tuple(self.settings[:n])
        return self.state(kept, weights[:n] / weights[:n].sum(), readings, spreads)

    def follow(
        self,
        readings: Callable[[State], list[Reading]],
        spreads: Sequence[SpreadReading],
        state: State,
    ) -> State:
        """What readings say that are lines only about what is known of f, from where that was.

        Lines are drawn anew about what they say, until that stays: a fixed point, which does not depend on
        where it began. Models are weighed again there.
        """
        state = self._settled(readings, spreads, state, rounds=_ON_THE_WAY)
        if not isinstance(self.prior, Known):
            state = self.fit(readings(state), spreads)
            state = self._settled(readings, spreads, state, rounds=_ON_THE_WAY)
        return self._settled(readings, spreads, self.fit(readings(state), spreads))

    def settled(
        self,
        readings: Callable[[State], list[Reading]],
        kept: tuple[Candidate, ...],
        weights: FloatArray,
        state: State,
    ) -> State:
        """The fixed point for models with weights that are known, from a state before all of them."""
        state = self._settled(readings, (), state)
        return self._settled(readings, (), self.state(kept, weights, readings(state), ()), weights)

    def _settled(
        self,
        readings: Callable[[State], list[Reading]],
        spreads: Sequence[SpreadReading],
        state: State,
        known: FloatArray | None = None,
        rounds: int | None = None,
    ) -> State:
        """The fixed point for the models of a state, their weights included unless they are known."""
        broad = None if state.settings else state
        faster = self._acceleration()
        for _ in range(_PATIENCE if rounds is None else rounds):
            lines = readings(state)
            if broad is not None:
                new = self._conditioned(broad, lines)
            else:
                weights = self._weights(state.settings, lines, spreads) if known is None else known
                new = self.state(state.settings, weights, lines, spreads)
            if new.moved_from(state) <= _SETTLED * self.width:
                return new
            state = faster.next(state, new)
        return state

    def _acceleration(self) -> Acceleration:
        return Acceleration()

    def _weights(
        self, settings: tuple[Candidate, ...], readings: Sequence[Reading], spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        if len(settings) == 1:
            return np.ones(1)
        before = {id(one): density for one, density in zip(self.settings, self.log_prior, strict=True)}
        total = self._evidence(self._stacked(readings), settings, spreads)
        total = total + [before[id(one)] for one in settings]
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def _conditioned(self, broad: State, readings: Sequence[Reading]) -> State:
        """What readings say where one Gaussian process stands for all models."""
        data, m = self._stacked(readings), len(self.support.Z)
        H = data.G @ broad.support_covariance[:m]
        D = H[:, :m] @ data.G.T + data.noise(broad.noise, broad.rest)
        W = _lower_solve(_factor(D), np.column_stack([H, data.z]))
        F = broad.support_covariance - W[:, :-1].T @ W[:, :-1]
        return replace(broad, support_mean=W[:, :-1].T @ W[:, -1], support_covariance=(F + F.T) / 2)

    def state(
        self,
        kept: tuple[Candidate, ...],
        weights: FloatArray,
        readings: Sequence[Reading],
        spreads: Sequence[SpreadReading],
    ) -> State:
        """The mixture of these settings, each conditioned on the readings."""
        self.support = self.support.again(kept[0])
        data, m = self._stacked(readings), len(self.support.Z)
        means, F = np.empty((len(kept), m + len(self.X_star))), np.zeros((m + len(self.X_star),) * 2)
        rest = 0.0
        for members in _by_shape(kept):
            k = self._shape(kept[members[0]])
            A = data.G @ k[:m]
            AG = A[:, :m] @ data.G.T
            left_out = self.support.left_out(kept[members[0]], k[:m, :m])
            for i in members:
                s = kept[i]
                D = s.signal * AG + s.level * np.outer(data.total, data.total)
                D += data.noise(s.noise, s.signal * left_out)
                H = s.signal * A + s.level * data.total[:, None]
                W = _lower_solve(_factor(D), np.column_stack([H, data.z]))
                means[i] = W[:, :-1].T @ W[:, -1]
                F -= weights[i] * (W[:, :-1].T @ W[:, :-1])
            signal = float(sum(weights[i] * kept[i].signal for i in members))
            F += signal * k
            rest += signal * left_out
        mean = weights @ means
        F += float(weights @ [s.level for s in kept]) + (means - mean).T @ ((means - mean) * weights[:, None])
        noise = float(weights @ [s.noise for s in kept])
        given = tuple(readings), tuple(spreads)
        known = kept, weights, *given, mean, (F + F.T) / 2, noise, rest
        return State(self.counts, self.scatter, self.limits, self.support, *known)

    def _stacked(self, readings: Sequence[Reading]) -> Stacked:
        """All readings; where they are many, only in directions that may tell of f."""
        data = Stacked(self.counts, self.scatter, self.support, readings)
        if len(data.z) > _MANY:
            best = self.settings[0]
            data.reduce(self._broad, best.noise)
        return data

    @cached_property
    def _broad(self) -> FloatArray:
        """(m, m) covariance of f at the support points before anything is known."""
        chosen = self.settings[:: max(1, len(self.settings) // _BROAD)]
        largest = max(chosen, key=lambda s: s.signal).signal
        return np.asarray(chosen[0].level + largest * np.mean([self._inner(s) for s in chosen], axis=0))

    def _shape(self, setting: Candidate) -> FloatArray:
        """(m + P, m + P) the smooth part with variance 1, at support and test points."""
        if self.several or not self.support.exact:
            return self.support.whole(setting)
        if setting.form not in self._shapes:  # a grid's few are kept
            self._shapes[setting.form] = self.support.whole(setting)
        return self._shapes[setting.form]

    def _inner(self, setting: Candidate) -> FloatArray:
        kept = self._shapes.get(setting.form)
        return (
            self.support.inner(setting)
            if kept is None
            else kept[: len(self.support.Z), : len(self.support.Z)]
        )

    def _evidence(
        self, data: Stacked, settings: Sequence[Candidate], spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        """Log density of the readings under each setting."""
        groups = _by_shape(settings)
        each = partial(self._evidence_of_shape, data, settings, spreads)
        together = in_threads if len(self.support.Z) >= _LARGE else map
        found = np.empty(len(settings))
        for members, scores in zip(groups, together(each, groups), strict=True):
            found[members] = scores
        found[~np.isfinite(found)] = -np.inf
        return found

    def _evidence_of_shape(
        self,
        data: Stacked,
        settings: Sequence[Candidate],
        spreads: Sequence[SpreadReading],
        members: list[int],
    ) -> FloatArray:
        """The same of those settings, all of one shape."""
        found, most = [], max(1, _ENTRIES // data.G.shape[0] ** 2)
        k = self._inner(settings[members[0]])
        A = data.G @ k
        AG = A @ data.G.T
        at_rows = self.support.at_looked(A) if spreads else None
        left_out = self.support.left_out(settings[members[0]], k)
        for some in (members[i : i + most] for i in range(0, len(members), most)):
            signal, level, noise = (
                np.array([getattr(settings[i], name) for i in some])[:, None, None]
                for name in ("signal", "level", "noise")
            )
            D = signal * AG + level * np.outer(data.total, data.total) + data.rest
            D += noise * data.own + signal * left_out * data.blurred
            right = np.broadcast_to(data.z[:, None], (len(some), len(data.z), 1))
            if at_rows is not None:
                right = np.concatenate([right, signal * at_rows + level * data.total[:, None]], axis=2)
            L = _factors(D)
            W = np.stack([_lower_solve(*pair) for pair in zip(L, right, strict=True)])
            sizes = np.log(np.einsum("sii->si", L)).sum(axis=1)
            score = -np.einsum("sq,sq->s", W[:, :, 0], W[:, :, 0]) / 2 - sizes
            if at_rows is not None:
                mean = np.einsum("sqn,sq->sn", W[:, :, 1:], W[:, :, 0])
                variance = signal[:, 0] + level[:, 0] - np.einsum("sqn,sqn->sn", W[:, :, 1:], W[:, :, 1:])
                for spread in spreads:
                    score = score + self._spread_evidence(
                        spread, mean, np.maximum(variance, 0.0), noise[:, 0]
                    )
            found.append(score)
        return np.concatenate(found)

    def _spread_evidence(
        self, spread: SpreadReading, mean: FloatArray, variance: FloatArray, noise: FloatArray | float = 0.0
    ) -> FloatArray:
        """Log density of a noisy mean distance, for settings with these means and variances of f."""
        counts, T = self.counts if spread.counts is None else spread.counts, spread.limit
        n = counts[self.support.looked_at]
        centre = spread.centre[self.support.looked_at]
        if self.link is None:
            r = np.sqrt(variance + noise + (mean - centre) ** 2)
            expected = folded(r, T) @ n / n.sum()
        else:
            at, apart, scatter = self.link.moments(mean, variance, noise)
            r = np.sqrt(apart + scatter + (at - centre) ** 2)
            expected = self.link.link.distance(at, apart + scatter, centre, T) @ n / n.sum()
        factor = (self.scatter / self.counts)[self.support.looked_at]
        sampling = 0.36 * (np.minimum(r, T) ** 2 @ (n * factor)) / n.sum() / counts.sum()
        total = spread.variance + sampling
        result: FloatArray = -((spread.value - expected) ** 2) / total / 2 - np.log(total) / 2
        return result


@dataclass(frozen=True, eq=False)
class State:
    """What is known of f after some stages."""

    counts: FloatArray  # (U,): rows at each input
    scatter: FloatArray
    """(U,) variance of a sum over them of outcomes about f, in units of one outcome's."""
    limits: FloatArray
    """(U,) how many times shorter than others columns are to be there."""
    support: Support
    settings: tuple[Candidate, ...]
    """Those that hold the weight, the best first."""
    weights: FloatArray
    readings: tuple[Reading, ...]
    spreads: tuple[SpreadReading, ...]
    support_mean: FloatArray  # (m + P,): at support points, then at test points
    support_covariance: FloatArray  # (m + P, m + P)
    noise: float
    """Variance of one outcome about f."""
    rest: float
    """Variance of f at an input that the support points do not tell of."""

    @cached_property
    def mean(self) -> FloatArray:
        """(U,) of f at the inputs."""
        at, P = self.support_mean[: len(self.support.Z)], self.support.P
        return at if P is None else np.asarray(P @ at)

    @cached_property
    def variance(self) -> FloatArray:
        """(U,) of f at the inputs."""
        m, P = len(self.support.Z), self.support.P
        S = self.support_covariance[:m, :m]
        own: FloatArray = np.diag(S) if P is None else np.einsum("ij,ij->i", P @ S, P)
        return np.maximum(own, 0.0) + self.rest

    @property
    def covariance(self) -> FloatArray:
        """(m, m) of f at the support points."""
        m = len(self.support.Z)
        return self.support_covariance[:m, :m]

    @property
    def cross(self) -> FloatArray:
        """(m, P) of f at support and test points."""
        m = len(self.support.Z)
        return self.support_covariance[:m, m:]

    def moved_from(self, other: State) -> float:
        """How far f's mean is from another state's, at most."""
        return float(np.max(np.abs(self.support_mean - other.support_mean)))

    @property
    def at_test_points(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f at X*."""
        m = len(self.support.Z)
        return self.support_mean[m:], np.maximum(np.diag(self.support_covariance)[m:], 0.0)


class Stacked:
    """Readings of all stages as one linear Gaussian measurement of f at the support points."""

    def __init__(
        self, n: FloatArray, scatter: FloatArray, support: Support, readings: Sequence[Reading]
    ) -> None:
        sloped = [r.rows * (n * r.slope) for r in readings]
        rows = np.vstack(sloped)
        each = [r.rows * np.sqrt(scatter * (r.slope**2 if r.own is None else r.own)) for r in readings]
        own = np.vstack(each)
        self.G = rows if support.P is None else rows @ support.P
        self.z = np.concatenate([r.value for r in readings])
        self.total = self.G.sum(axis=1)
        self.blurred: FloatArray = (rows / n * (scatter / n)) @ rows.T
        self.own: FloatArray = self.blurred if all(r.own is None for r in readings) else own @ own.T
        self.rest: FloatArray = block_diag(*(r.covariance for r in readings))

    def reduce(self, covariance: FloatArray, noise: float) -> None:
        """Keep the directions in which f, with this covariance, shows beside noise of this variance."""
        factor = _factor(self.noise(noise, 0.0))
        white = _lower_solve(factor, self.G)
        values, turn = np.linalg.eigh(white @ covariance @ white.T)
        kept = np.argsort(-values)[:_MANY]
        kept = kept[values[kept] > _FAINT]
        T = _lower_solve(factor, np.eye(len(factor))).T @ turn[:, kept]
        self.G, self.z, self.total = T.T @ self.G, T.T @ self.z, T.T @ self.total
        self.own, self.blurred = T.T @ self.own @ T, T.T @ self.blurred @ T
        self.rest = T.T @ self.rest @ T

    def noise(self, variance: float, left_out: float) -> FloatArray:
        """Covariance of all that is not f, or is left out of it."""
        return np.asarray(variance * self.own + left_out * self.blurred + self.rest)


class Acceleration:
    """Anderson's: the next guess at a fixed point from the last few, by what they were wrong by."""

    def __init__(self) -> None:
        self._steps: list[tuple[FloatArray, FloatArray, FloatArray]] = []

    def next(self, old: State, new: State) -> State:
        wrong = np.concatenate(
            [
                new.support_mean - old.support_mean,
                np.diag(new.support_covariance) - np.diag(old.support_covariance),
            ]
        )
        self._steps = [*self._steps[-_MEMORY:], (wrong, new.support_mean, new.support_covariance)]
        wrongs = np.array([step[0] for step in self._steps])
        shares = np.zeros(len(wrongs))
        shares[-1] = 1.0
        if len(wrongs) > 1:
            apart = np.diff(wrongs, axis=0)
            found = np.linalg.lstsq(apart.T, wrong, rcond=1e-8)[0]
            shares[1:] -= found
            shares[:-1] += found
        mean = sum(share * step[1] for share, step in zip(shares, self._steps, strict=True))
        covariance = sum(share * step[2] for share, step in zip(shares, self._steps, strict=True))
        least = np.diag(new.support_covariance) / _BOLD
        guess = replace(new, support_mean=np.asarray(mean), support_covariance=np.asarray(covariance))
        sound = (np.diag(covariance) >= least).all() and (guess.variance >= new.variance / _BOLD).all()
        # "not sound" for NaN, too; and no guess too far beyond what was seen.
        return guess if sound and np.abs(shares).sum() <= _BOLD else new


def _by_shape(settings: Sequence[Candidate]) -> list[list[int]]:
    """Places of the settings that share a shape."""
    found: dict[Form, list[int]] = {}
    for i, setting in enumerate(settings):
        found.setdefault(setting.form, []).append(i)
    return list(found.values())


def folded(std: FloatArray, limit: float) -> FloatArray:
    """E min(|r|, limit), r ~ N(0, std^2)."""
    from scipy.special import ndtr  # here: slow to import

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
