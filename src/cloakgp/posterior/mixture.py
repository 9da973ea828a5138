"""The mixture over a hyperprior's models, given all that was measured of the same rows, stage by stage.

f is followed at support points (:mod:`cloakgp.posterior.support`): where these are fewer than the inputs, one
interpolation between them serves all settings, so that each costs little; what it leaves
out of f counts as noise of its own. Numbers here are less the middle of the bounds; the prior mean is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.model.hyperprior import Candidate, Form, Hyperprior, Prior, spread
from cloakgp.posterior.clipping import Law
from cloakgp.posterior.evidence import Evidence, Hypotheses, by_shape
from cloakgp.posterior.proposals import Proposals
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
)
from cloakgp.posterior.support import Support


class _Limits(NamedTuple):
    """How many hypotheses, at most."""

    drawn: int
    """In each round, where the weight is."""
    kept: int
    """That make predictions."""
    go_on: int
    """To the next stage."""


_MANY, _LITTLE = _Limits(128, 64, 192), _Limits(16, 24, 48)
"""Where a shape has several numbers open; and where it has one, so that a grid is nearly enough."""
_FEW = 32  # that make predictions where readings are linearised, and each is asked many times
_ODDS = 9.0  # in log: with such odds against it a hypothesis is looked at no more
_HELD = 0.99  # of the weight is held by those that make predictions
_BROAD = 16  # models that stand for all that might be
_SETTLED = 1e-8  # of the prior's width: readings are linearised again until f moves no further
_ON_THE_WAY = 8  # the same where models are still weighed
_DENSE = 2.0  # distances between support points that a lengthscale must span to show between them
_DOUBT = 0.3  # of the noise's variance: what may be a signal yet, for which designs are made, too
_LARGER = 10.0  # times the best model's signal: directions in which even this does not show are left out


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
        self.usual: list[Candidate] = [*prior.usual.settings(self.spans, self.width)]
        """Models for which a release is planned while nothing is known."""
        apart = len(X if support is None else support) ** (-1 / max(1, len(self.spans)))
        fine = prior.reference(self.spans, self.width, _DENSE * apart)
        self.support = Support(X, X_star, prior.reference(self.spans, self.width), fine, support)
        self._shapes: dict[Form, FloatArray] = {}
        self.hypotheses = Hypotheses.known(self.usual[0])
        self._expected = max(s.signal for s in self.usual), min(s.noise for s in self.usual)
        """Signal and noise that measurements may show: see `_stacked`."""
        if isinstance(prior, Hyperprior):
            self._begin(prior)

    @property
    def settings(self) -> tuple[Candidate, ...]:
        """All that still matter; after a fit, the best first."""
        return self.hypotheses.settings

    def _begin(self, prior: Hyperprior) -> None:
        """Hypotheses all over the prior."""
        ends, points = prior.ends(len(self.spans)), prior.points(self.spans)
        families = (
            prior.kernels if len(self.spans) else prior.kernels[:1]
        )  # of levels alone, all are the same
        self.proposals = Proposals(ends[:-1], len(points))
        least, most = ends[-1] + math.log(self.width)
        self.ends = float(least), float(most)
        every = [family for family in families for _ in points]
        self.hypotheses = self._hypotheses(every, np.tile(points, (len(families), 1)))
        self.hypotheses.stay[spread(len(every), _BROAD)] = True

    def _hypotheses(self, families: Sequence[str], points: FloatArray) -> Hypotheses:
        """At these points; their noise is anything yet."""
        assert isinstance(self.prior, Hyperprior)
        logs = np.column_stack([points, np.full(len(points), sum(self.ends) / 2 - math.log(self.width))])
        pairs = zip(families, logs, strict=True)
        settings = tuple(self.prior.setting_at(*pair, self.spans, self.width) for pair in pairs)
        return Hypotheses(settings, points, np.zeros(len(points), dtype=bool))

    def start(self) -> State:
        """Before anything is measured: the mean of the kernels."""
        chosen, m, shape = self.believed()[0], len(self.support.Z), self._usual_shape
        signal = float(np.mean([s.signal for s in self.usual]))
        noise = float(np.mean([s.noise for s in self.usual]))
        F, rest = chosen[0].level + signal * shape, signal * self.support.left_out(chosen[0], shape[:m, :m])
        skew = float(np.mean([s.skew**2 for s in self.usual]))
        known = (), np.empty(0), np.zeros(len(F)), F, noise, rest, skew
        one = State(self.counts, self.scatter, self.limits, self.support, *known)
        return averaged([one] * self.curves)

    @cached_property
    def _usual_shape(self) -> FloatArray:
        """(m + P, m + P) the mean of the shapes that are usual."""
        return np.asarray(np.mean([self._shape(one) for one in self.believed()[0]], axis=0))

    def believed(self) -> tuple[tuple[Candidate, ...], FloatArray]:
        """A few models that stand for all, with equal weights: what there is while nothing is learned."""
        few = tuple(self.usual[i] for i in spread(len(self.usual), _BROAD))
        return few, np.full(len(few), 1 / len(few))

    def fit(self, readings: Readings, spreads: Sequence[SpreadReading] = ()) -> State:
        """What all readings together say; settings that they rule out are forgotten."""
        if self.prior.gp is not None:
            return self.state(self.settings, np.ones(1), readings)
        return self.state(*self._weigh(readings, spreads), readings)

    def _weigh(
        self, readings: Readings, spreads: Sequence[SpreadReading]
    ) -> tuple[tuple[Candidate, ...], FloatArray]:
        """The settings that hold nearly all of the weight, the best first, with their weights."""
        evidence = self._evidence(readings, spreads)
        limits = _MANY if self.several else _LITTLE
        score, found = evidence.of(self.hypotheses)
        for _ in range(2 if len(readings[0]) == 1 else 1):
            total = score + self.proposals.log_weights(found)
            own, more = evidence.of(self._hypotheses(*self.proposals.draw(found, total, limits.drawn)))
            score, found = np.concatenate([score, own]), found.join(more)
        total = score + self.proposals.log_weights(found)
        order = np.argsort(-total, kind="stable")
        best = order[: limits.go_on][total[order[: limits.go_on]] > total[order[0]] - _ODDS]
        go_on = np.concatenate([best, np.setdiff1d(np.flatnonzero(found.stay), best)])
        self.hypotheses = found.take(go_on.tolist())
        self._expected = _LARGER * self.settings[0].signal, self.settings[0].noise
        held = np.cumsum(_shares(total[go_on]))
        n = min(limits.kept if self.law.exact else _FEW, 1 + int(np.searchsorted(held, _HELD)))
        return self.settings[:n], _shares(total[go_on[:n]])

    def _evidence(self, readings: Readings, spreads: Sequence[SpreadReading]) -> Evidence:
        data, scatter = [self._stacked(own) for own in readings], self.scatter / self.counts
        return Evidence(data, spreads, self.support, self.law, scatter, self.ends, self._log_prior)

    def _log_prior(self, points: FloatArray, noise: FloatArray) -> FloatArray:
        """Log prior densities at these points and logs of the noise's std."""
        assert isinstance(self.prior, Hyperprior)
        shares = noise - math.log(self.width) if self.law.exact else None
        return self.prior.log_density(points[:, None], len(self.spans), shares)

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
        """Of the settings that the last fit kept."""
        if len(settings) == 1:
            return np.ones(1)
        score, found = self._evidence(readings, spreads).of(self.hypotheses.take(range(len(settings))))
        return _shares(score + self.proposals.log_weights(found))

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
        for members in by_shape(kept):
            k = self._shape(kept[members[0]])
            A = data.G @ k[:m]
            AG = A[:, :m] @ data.G.T
            left_out = self.support.left_out(kept[members[0]], k[:m, :m])
            for i in members:
                s = kept[i]
                D = s.signal * AG + s.level * np.outer(data.total, data.total)
                D += data.noise(s.noise, s.signal * left_out, s.skew)
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
        skew = float(weights @ [s.skew**2 for s in kept])
        known = kept, weights, mean, (F + F.T) / 2, noise, rest, skew
        learns_noise = self.prior.gp is None and self.law.exact
        doubt = _DOUBT * noise * self._usual_shape if learns_noise else None
        return State(self.counts, self.scatter, self.limits, self.support, *known, doubt)

    def _stacked(self, readings: Sequence[Reading]) -> Stacked:
        """All readings; where they are many, only in directions that may tell of f."""
        data = Stacked(self.counts, self.scatter, self.support, readings)
        if len(data.z) > MANY:
            (signal, noise), m = self._expected, len(self.support.Z)
            data.reduce(self.settings[0].level + signal * self._usual_shape[:m, :m], noise)
        return data

    def _shape(self, setting: Candidate) -> FloatArray:
        """(m + P, m + P) the smooth part with variance 1, at support and test points."""
        if self.several or not self.support.exact:
            return self.support.whole(setting)
        if setting.form not in self._shapes:  # a grid's few are kept
            self._shapes[setting.form] = self.support.whole(setting)
        return self._shapes[setting.form]


def _shares(total: FloatArray) -> FloatArray:
    """Weights that add up to 1, from their logs."""
    weights = np.exp(total - total.max())
    return np.asarray(weights / weights.sum())
