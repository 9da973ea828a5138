"""The mixture over a hyperprior's models, given all that was measured of the same rows, stage by stage.

f is followed at support points (:mod:`cloakgp.posterior.support`): where these are fewer than the inputs, one
interpolation between them serves all settings, so that each costs little; what it leaves
out of f counts as noise of its own. Numbers here are less the middle of the bounds; the prior mean is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import in_threads
from cloakgp.model.hyperprior import Candidate, Form, Prior, Setting
from cloakgp.model.point_sets import sobol
from cloakgp.posterior.clipping import Law
from cloakgp.posterior.states import (
    MANY,
    Acceleration,
    Reading,
    Readings,
    SpreadReading,
    Stacked,
    State,
    averaged,
    lower_solve,
    root,
    roots,
)
from cloakgp.posterior.support import Support

_DRAWN = 2**7  # settings in each round about the best
_KEPT = 128  # settings that predictions are made with, at most
_MOST = 192  # settings that go on to the next stage
_BROAD = 16  # settings that stand for all that might be
_LARGE = 200  # support points from which on threads are worth their while
_SETTLED = 1e-8  # of the prior's width: readings are linearised again until f moves no further
_ON_THE_WAY = 8  # the same where models are still weighed
_DENSE = 2.0  # distances between support points that a lengthscale must span to show between them
_FEW = 32  # settings that predictions are made with, at most, where readings are linearised


class Mixture:
    """All settings that still matter, and what does not depend on what was measured.

    Parameters
    ----------
    prior : Hyperprior or Known
    X, counts : (U, D) and (U,) arrays
        The distinct inputs, and how many rows have them.
    X_star : (P, D) array
        Test points.
    law : Law
        How outcomes hang on f.
    support : (m, D) array, optional
        Inputs that stand for all, where there are many: see :func:`cloakgp.posterior.support.support_points`.
    factor : float or (U,) array
        What the noise variance is multiplied by, in sums over an input's rows: above 1 where people have
        several rows, whose noise goes together.
    limits : (U,) array, optional
        How many rows these people have: columns are to be so many times shorter.
    curves : int
        How many functions there are with one model: one for each of several classes. Before anything is known
        they are independent draws from one prior, so that each setting explains all of their readings with
        the sum of its log evidences: what one class tells of lengthscales serves all.
    """

    def __init__(
        self,
        prior: Prior,
        X: FloatArray,
        counts: FloatArray,
        X_star: FloatArray,
        law: Law,
        support: FloatArray | None = None,
        factor: FloatArray | float = 1.0,
        limits: FloatArray | None = None,
        curves: int = 1,
    ) -> None:
        self.prior, self.X, self.counts, self.X_star, self.law = prior, X, counts, X_star, law
        self.curves, self.width = curves, law.width
        self.scatter: FloatArray = counts * factor
        self.limits = np.ones(len(counts)) if limits is None else limits
        self.spans = prior.spans(X)
        self.several = prior.several(self.spans)
        self.settings: list[Candidate] = [*prior.settings(self.spans, self.width)]
        self.log_prior = np.zeros(len(self.settings))
        apart = len(X if support is None else support) ** (-1 / max(1, len(self.spans)))
        fine = prior.reference(self.spans, self.width, _DENSE * apart)
        self.support = Support(X, X_star, prior.reference(self.spans, self.width), fine, support)
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
        known = (), np.empty(0), np.zeros(len(F)), F, noise, rest
        one = State(self.counts, self.scatter, self.limits, self.support, *known)
        return averaged([one] * self.curves)

    def believed(self) -> tuple[tuple[Candidate, ...], FloatArray]:
        """A few models that stand for all, with equal weights: what there is while nothing is learned."""
        few = tuple(self.settings[:: max(1, len(self.settings) // _BROAD)])
        return few, np.full(len(few), 1 / len(few))

    def fit(self, readings: Readings, spreads: Sequence[SpreadReading] = ()) -> State:
        """What all readings together say; settings that they rule out are forgotten."""
        if self.prior.gp is not None:
            return self.state(tuple(self.settings), np.ones(1), readings)
        return self.state(*self._weigh(readings, spreads), readings)

    def _weigh(
        self, readings: Readings, spreads: Sequence[SpreadReading]
    ) -> tuple[tuple[Candidate, ...], FloatArray]:
        """The settings that hold nearly all of the weight, the best first, with their weights."""
        data = [self._stacked(own) for own in readings]
        scores = self._evidence(data, self.settings, spreads)
        if self.several:
            for round_ in range(2 if len(readings[0]) == 1 else 1):
                more, density = _about_the_best(
                    self.settings, scores + self.log_prior, self.prior, self.spans, self.width, round_
                )
                self.settings = [*self.settings, *more]
                self.log_prior = np.concatenate([self.log_prior, density])
                scores = np.concatenate([scores, self._evidence(data, more, spreads)])
        total = scores + self.log_prior
        order = np.argsort(-total, kind="stable")
        # With odds of e^9 against it a setting is looked at no more.
        go_on = [i for i in order[:_MOST] if total[i] > total[order[0]] - 9.0]
        self.settings = [self.settings[i] for i in go_on]
        self.log_prior = self.log_prior[go_on]
        weights = np.exp(total[go_on] - total[order[0]])
        held = np.cumsum(weights) / weights.sum()
        n = min(_KEPT if self.law.exact else _FEW, 1 + int(np.searchsorted(held, 0.99)))
        return tuple(self.settings[:n]), weights[:n] / weights[:n].sum()

    def follow(
        self,
        readings: Callable[[State], Readings],
        spreads: Sequence[SpreadReading],
        state: State,
    ) -> State:
        """What readings say that may be lines only about what is known of f, from where that was.

        Lines are drawn anew about what they say, until that stays: a fixed point, which does not depend on
        where it began. Models are weighed again there.
        """
        if self.law.exact:
            return self.fit(readings(state), spreads)
        state = self._converge(readings, spreads, state, rounds=_ON_THE_WAY)
        if self.prior.gp is None:
            state = self.fit(readings(state), spreads)
            state = self._converge(readings, spreads, state, rounds=_ON_THE_WAY)
        return self._converge(readings, spreads, self.fit(readings(state), spreads))

    def weighed(
        self,
        readings: Callable[[State], Readings],
        kept: tuple[Candidate, ...],
        weights: FloatArray,
        state: State,
    ) -> State:
        """The fixed point for models with weights that are known, from a state before all of them."""
        state = self._converge(readings, (), state)
        return self._converge(readings, (), self.state(kept, weights, readings(state)), weights)

    def _converge(
        self,
        readings: Callable[[State], Readings],
        spreads: Sequence[SpreadReading],
        state: State,
        known: FloatArray | None = None,
        rounds: int | None = None,
    ) -> State:
        """The fixed point for the models of a state, their weights included unless they are known."""
        broad = None if state.settings else state
        faster = [Acceleration() for _ in range(self.curves)]
        for _ in range(40 if rounds is None else rounds):
            lines = readings(state)
            if broad is not None:
                new = self._conditioned(broad, lines)
            else:
                weights = self._weights(state.settings, lines, spreads) if known is None else known
                new = self.state(state.settings, weights, lines)
            if new.moved_from(state) <= _SETTLED * self.width:
                return new
            steps = zip(faster, state.each, new.each, strict=True)
            state = averaged([one.next(*states) for one, *states in steps])
        return state

    def _weights(
        self, settings: tuple[Candidate, ...], readings: Readings, spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        if len(settings) == 1:
            return np.ones(1)
        before = {id(one): density for one, density in zip(self.settings, self.log_prior, strict=True)}
        total = self._evidence([self._stacked(own) for own in readings], settings, spreads)
        total = total + [before[id(one)] for one in settings]
        weights = np.exp(total - total.max())
        return np.asarray(weights / weights.sum())

    def _conditioned(self, broad: State, readings: Readings) -> State:
        """What readings say where one Gaussian process stands for all models."""
        pairs = zip(broad.each, readings, strict=True)
        return averaged([self._condition(*pair) for pair in pairs])

    def _condition(self, broad: State, readings: Sequence[Reading]) -> State:
        data, m = self._stacked(readings), len(self.support.Z)
        H = data.G @ broad.support_covariance[:m]
        D = H[:, :m] @ data.G.T + data.noise(broad.noise, broad.rest)
        W = lower_solve(root(D), np.column_stack([H, data.z]))
        F = broad.support_covariance - W[:, :-1].T @ W[:, :-1]
        return replace(broad, support_mean=W[:, :-1].T @ W[:, -1], support_covariance=(F + F.T) / 2)

    def state(self, kept: tuple[Candidate, ...], weights: FloatArray, readings: Readings) -> State:
        """The mixture of these settings, each conditioned on the readings."""
        self.support = self.support.again(kept[0])
        return averaged([self._of_curve(kept, weights, own) for own in readings])

    def _of_curve(
        self, kept: tuple[Candidate, ...], weights: FloatArray, readings: Sequence[Reading]
    ) -> State:
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
                W = lower_solve(root(D), np.column_stack([H, data.z]))
                means[i] = W[:, :-1].T @ W[:, -1]
                F -= weights[i] * (W[:, :-1].T @ W[:, :-1])
            signal = float(sum(weights[i] * kept[i].signal for i in members))
            F += signal * k
            rest += signal * left_out
        mean = weights @ means
        F += float(weights @ [s.level for s in kept]) + (means - mean).T @ ((means - mean) * weights[:, None])
        noise = float(weights @ [s.noise for s in kept])
        known = kept, weights, mean, (F + F.T) / 2, noise, rest
        return State(self.counts, self.scatter, self.limits, self.support, *known)

    def _stacked(self, readings: Sequence[Reading]) -> Stacked:
        """All readings; where they are many, only in directions that may tell of f."""
        data = Stacked(self.counts, self.scatter, self.support, readings)
        if len(data.z) > MANY:
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
        self, data: Sequence[Stacked], settings: Sequence[Candidate], spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        """Log density of all curves' readings under each setting."""
        groups = _by_shape(settings)
        work = in_threads if len(self.support.Z) >= _LARGE else map
        found = np.empty((len(data), len(settings)))
        for own, one in zip(found, data, strict=True):
            each = partial(self._evidence_of_shape, one, settings, spreads)
            for members, scores in zip(groups, work(each, groups), strict=True):
                own[members] = scores
        found[~np.isfinite(found)] = -np.inf
        return np.asarray(found.sum(axis=0))

    def _evidence_of_shape(
        self,
        data: Stacked,
        settings: Sequence[Candidate],
        spreads: Sequence[SpreadReading],
        members: list[int],
    ) -> FloatArray:
        """The same of those settings, all of one shape."""
        # So many entries in a stack of matrices: 16 MB.
        found, most = [], max(1, 2**21 // data.G.shape[0] ** 2)
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
            L = roots(D)
            W = np.stack([lower_solve(*pair) for pair in zip(L, right, strict=True)])
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
        counts, T = spread.counts, spread.limit
        n = counts[self.support.looked_at]
        centre = spread.centre[self.support.looked_at]
        at, apart, scatter = self.law.moments(mean, variance, noise)
        r = np.sqrt(apart + scatter + (at - centre) ** 2)
        expected = self.law.distance(at, apart + scatter, centre, T) @ n / n.sum()
        factor = (self.scatter / self.counts)[self.support.looked_at]
        sampling = 0.36 * (np.minimum(r, T) ** 2 @ (n * factor)) / n.sum() / counts.sum()
        total = spread.variance + sampling
        result: FloatArray = -((spread.value - expected) ** 2) / total / 2 - np.log(total) / 2
        return result


def _about_the_best(
    settings: Sequence[Candidate],
    total: FloatArray,
    prior: Any,
    spans: FloatArray,
    width: float,
    round_: int,
) -> tuple[list[Setting], FloatArray]:
    """More settings where the weight is, by a normal law about it, and what corrects for its density."""
    from scipy.special import ndtri  # here: slow to import

    family = settings[int(np.argmax(total))].family
    own = np.array([setting.family == family for setting in settings])
    logs = np.array([_logs(setting) for setting in settings])[own]
    weights = np.exp(total[own] - total[own].max())
    weights /= weights.sum()
    centre = weights @ logs
    spread = (logs - centre).T @ ((logs - centre) * weights[:, None])
    ends = prior.ends(len(spans))
    free = ends[:, 1] > ends[:, 0]
    least = np.diag(((ends[:, 1] - ends[:, 0]) / 12) ** 2)  # of one point: not a spread of 0
    factor = np.linalg.cholesky((spread + least)[np.ix_(free, free)])
    unit = sobol(int(free.sum()), _DRAWN * (round_ + 1))[_DRAWN * round_ :]
    normals = ndtri(np.clip(unit + 0.5 / len(unit), 1e-6, 1 - 1e-6))
    drawn = np.tile(centre, (len(normals), 1))
    drawn[:, free] += normals @ factor.T
    ratios = np.zeros(len(ends) - len(spans) - 2)
    offset = np.concatenate([np.log(np.where(spans > 0, spans, 1.0)), ratios, [np.log(width)] * 2])
    inside = (drawn - offset >= ends[:, 0]) & (drawn - offset <= ends[:, 1])
    kept = np.all(inside[:, free], axis=1)
    drawn, normals = drawn[kept], normals[kept]
    if not len(drawn):
        return [], np.empty(0)
    uniform = -np.log((ends[:, 1] - ends[:, 0])[free]).sum()
    given = np.where(spans > 0, spans, 1.0), width, prior.categories, prior.seasons
    more = [Setting.of(family, np.exp(row - offset), *given) for row in drawn]
    # The normal law's log density, at the points that were drawn by it.
    law = -((normals**2).sum(axis=1) + len(factor) * np.log(2 * np.pi)) / 2 - np.log(np.diag(factor)).sum()
    density: FloatArray = uniform - law
    return more, density


def _logs(setting: Candidate) -> list[float]:
    """Of all that the hyperprior leaves open, each log-uniform there."""
    _, lengths, shares = setting.form
    ratios = np.log(shares[1:]) - np.log(shares[0]) if shares else ()
    return [*np.log(lengths), *ratios, np.log(setting.signal) / 2, np.log(setting.noise) / 2]


def _by_shape(settings: Sequence[Candidate]) -> list[list[int]]:
    """Places of the settings that share a shape."""
    found: dict[Form, list[int]] = {}
    for i, setting in enumerate(settings):
        found.setdefault(setting.form, []).append(i)
    return list(found.values())
