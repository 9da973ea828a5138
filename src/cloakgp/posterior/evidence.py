"""How well hypotheses explain what was measured, whatever the noise level: that is integrated out.

A hypothesis is a model of all but the noise: a shape, and the size of the signal. Sums over many rows hardly
show the noise; but where distances are measured, too, it is known to a few per cent, so that no grid of noise
levels serves throughout. So for each hypothesis its covariance is made diagonal together with what the noise
adds to it,

    D = L (I + noise V diag(w) V') L',

which gives density and moments at as many noise levels as one likes. First all levels that there may be are
looked at, and then closer ones where the weight is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import in_threads
from cloakgp.model.hyperprior import Candidate, Form, Setting
from cloakgp.posterior.clipping import Law
from cloakgp.posterior.states import SpreadReading, Stacked, lower_solve, roots
from cloakgp.posterior.support import Support

_LEVELS, _LINKED_LEVELS = (33, 24, 24, 24), (17, 14, 14)
"""Of the noise: all over, and then more about the best so far. With a link there are fewer, since an expected
distance takes many times as long."""
_AROUND = 2.5  # gaps to each side of the best level, in which more are looked at
_PEAK = 0.5  # of the weight: a level with less is no peak between others, and the trapezoidal rule is right
_LARGE = 200  # support points from which on threads are worth their while

LogPrior = Callable[[FloatArray, FloatArray], FloatArray]
"""Log prior densities of hypotheses at (n, d) points, with (n, k) logs of noise stds: (n, k) or (n, 1)."""


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Models of all but the noise."""

    settings: tuple[Candidate, ...]
    """Each with the mean of what its noise may be."""
    points: FloatArray
    """(n, d) logs of all that is open but the noise."""
    stay: FloatArray
    """(n,) whether it stands for all that might be, and goes on whatever its weight."""

    @classmethod
    def known(cls, model: Candidate) -> Hypotheses:
        """One, of which nothing is open."""
        return cls((model,), np.empty((1, 0)), np.ones(1, dtype=bool))

    @property
    def families(self) -> list[str]:
        """Of the smooth part of each."""
        return [one.family for one in self.settings]

    def __len__(self) -> int:
        return len(self.settings)

    def take(self, which: Iterable[int]) -> Hypotheses:
        """Those at these places."""
        places = list(which)
        return Hypotheses(tuple(self.settings[i] for i in places), self.points[places], self.stay[places])

    def join(self, more: Hypotheses) -> Hypotheses:
        """These, and more behind them."""
        points, stay = np.vstack([self.points, more.points]), np.concatenate([self.stay, more.stay])
        return Hypotheses(self.settings + more.settings, points, stay)


class Evidence:
    """Of hypotheses about curves that were measured together.

    Parameters
    ----------
    data : one Stacked for each curve
    spreads : measured distances
    support, law : as the mixture has them
    scatter : (U,) array
        Variance of a sum over an input's rows, in units of one outcome's, per row.
    ends : (least, most)
        Logs of the noise's std.
    log_prior : function
    """

    def __init__(
        self,
        data: Sequence[Stacked],
        spreads: Sequence[SpreadReading],
        support: Support,
        law: Law,
        scatter: FloatArray,
        ends: tuple[float, float],
        log_prior: LogPrior,
    ) -> None:
        self.data, self.spreads, self.support, self.law = data, spreads, support, law
        self.scatter, self.ends, self.log_prior = scatter, ends, log_prior

    def of(self, hypotheses: Hypotheses) -> tuple[FloatArray, Hypotheses]:
        """(n,) logs of their evidences times their prior densities; and them, with the noise they have."""
        groups = by_shape(hypotheses.settings)
        score, noise = np.empty(len(hypotheses)), np.empty(len(hypotheses))
        work = in_threads if len(self.support.Z) >= _LARGE else map
        for members, found in zip(groups, work(partial(self._of_shape, hypotheses), groups), strict=True):
            score[members], noise[members] = found
        score[~np.isfinite(score)] = -np.inf
        pairs = zip(hypotheses.settings, noise.tolist(), strict=True)
        settings = tuple(replace(cast(Setting, one), noise=variance) for one, variance in pairs)
        return score, replace(hypotheses, settings=settings)

    def _of_shape(self, hypotheses: Hypotheses, members: list[int]) -> tuple[FloatArray, FloatArray]:
        """Score and mean noise variance of those members, all of one shape."""
        settings = [hypotheses.settings[i] for i in members]
        inner = self.support.inner(settings[0])
        curves = [_Turned(one, self, settings, inner) for one in self.data]
        start, end = self.ends
        first, *closer = (_LEVELS if self.law.exact else _LINKED_LEVELS) if start < end else (1,)
        levels, gap = (
            np.tile(np.linspace(start, end, first), (len(members), 1)),
            (end - start) / max(1, first - 1),
        )

        def density_at(levels: FloatArray) -> FloatArray:
            prior = self.log_prior(hypotheses.points[members], levels)
            return prior + self._density(curves, np.exp(2 * levels))

        density = density_at(levels)
        for n in closer:
            if _weights(levels, density)[1].max() < _PEAK:
                break
            best = np.take_along_axis(levels, density.argmax(axis=1)[:, None], axis=1)
            more = np.clip(best + _AROUND * gap * np.linspace(-1, 1, n), start, end)
            gap *= 2 * _AROUND / (n - 1)
            levels, density = np.hstack([levels, more]), np.hstack([density, density_at(more)])
            order = np.argsort(levels, axis=1, kind="stable")
            levels, density = (np.take_along_axis(one, order, axis=1) for one in (levels, density))
        score, weights = _weights(levels, density)
        return score, (weights * np.exp(2 * levels)).sum(axis=1)

    def _density(self, curves: Sequence[_Turned], noise: FloatArray) -> FloatArray:
        """(S, k) log density of all that was measured, for these noise variances."""
        density = np.zeros_like(noise)
        for one in curves:
            density += one.log_density(noise)
        if self.spreads:
            # Distances are measured for one curve only.
            mean, variance = curves[-1].moments(noise)
            for spread in self.spreads:
                density += self._spread(spread, mean, variance, noise)
        return density

    def _spread(
        self, spread: SpreadReading, mean: FloatArray, variance: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Log density of a noisy mean distance, for f's with these means and variances and these noises."""
        some, T = self.support.sampled, spread.limit
        n, centre = spread.counts[some], spread.centre[some]
        at, apart, scatter = self.law.moments(mean, variance, noise[..., None])
        r = np.sqrt(apart + scatter + (at - centre) ** 2)
        expected = self.law.distance(at, apart + scatter, centre, T) @ n / n.sum()
        # A Gaussian's distance has 0.36 times its mean square as variance.
        sampling = 0.36 * (np.minimum(r, T) ** 2 @ (n * self.scatter[some])) / n.sum() / spread.counts.sum()
        total = spread.variance + sampling
        return np.asarray(-((spread.value - expected) ** 2) / total / 2 - np.log(total) / 2)


class _Turned:
    """One curve's measurements under hypotheses of one shape, turned until nothing in them goes together."""

    def __init__(
        self, data: Stacked, evidence: Evidence, settings: Sequence[Candidate], inner: FloatArray
    ) -> None:
        support = evidence.support
        A = data.G @ inner
        left_out = support.left_out(settings[0], inner)
        shape, level = A @ data.G.T + left_out * data.blurred, np.outer(data.total, data.total)
        at = support.at(A, support.sampled) if evidence.spreads else np.empty((len(A), 0))
        each = [s.signal * shape + s.level * level + s.skew**2 * data.skewed for s in settings]
        L = roots(np.array(each) + data.rest)
        q, white = len(data.z), []
        for factor, s in zip(L, settings, strict=True):
            right = s.signal * at + s.level * data.total[:, None]
            white.append(lower_solve(factor, np.column_stack([data.own, data.z, right])))
        found = np.array(white)
        own = np.array(
            [lower_solve(*pair) for pair in zip(L, np.swapaxes(found[:, :, :q], 1, 2), strict=True)]
        )
        values, vectors = np.linalg.eigh(own)
        turned = np.swapaxes(vectors, 1, 2) @ found[:, :, q:]
        self.values = np.maximum(values, 0.0)
        self.z, self.at = turned[:, None, :, 0], turned[:, :, 1:]
        self.size = np.log(np.einsum("sii->si", L)).sum(axis=1, keepdims=True)
        self.before = np.array([s.signal + s.level for s in settings])[:, None, None]

    def _scales(self, noise: FloatArray) -> FloatArray:
        """(S, k, q) variances."""
        return np.asarray(1 + noise[:, :, None] * self.values[:, None])

    def log_density(self, noise: FloatArray) -> FloatArray:
        """(S, k) of the measurements, but for a constant."""
        scales = self._scales(noise)
        return np.asarray(-(self.z**2 / scales + np.log(scales)).sum(axis=2) / 2 - self.size)

    def moments(self, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(S, k, n) mean and variance of f at some of the inputs, given the measurements."""
        scales = self._scales(noise)
        mean: FloatArray = self.z / scales @ self.at
        return mean, np.maximum(self.before - 1 / scales @ self.at**2, 0.0)


def by_shape(settings: Sequence[Candidate]) -> list[list[int]]:
    """Places of the settings, those together that share a shape."""
    found: dict[Form, list[int]] = {}
    for i, setting in enumerate(settings):
        found.setdefault(setting.form, []).append(i)
    return list(found.values())


def _weights(levels: FloatArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) logs of the densities' means over the levels, by the trapezoidal rule; and each level's share."""
    steps = np.diff(levels, axis=1) / 2
    none = np.zeros((len(levels), 1))
    sizes = np.hstack([none, steps]) + np.hstack([steps, none])
    sizes = sizes / sizes.sum(axis=1, keepdims=True) if levels.shape[1] > 1 else np.ones_like(levels)
    best = density.max(axis=1, keepdims=True)
    weights = sizes * np.exp(density - best)
    total = weights.sum(axis=1)
    return best[:, 0] + np.log(total), weights / total[:, None]
