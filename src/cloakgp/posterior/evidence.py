"""How well hypotheses explain what was measured, whatever the noise level: that is integrated out.

A hypothesis is a model of all but the noise: a shape, and the size of the signal. Sums over many rows hardly
show the noise, and then, with distances measured, it is known to a few per cent, so that no grid of noise
levels serves throughout. Each hypothesis is looked at with a few levels of its own; between them its log
evidence, and what it says of f, are cubic curves, on which measured distances are weighed in finer steps.
Where the noise turns out to be known more closely than its levels are, closer ones are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.data.chunks import in_threads
from cloakgp.model.hyperprior import Candidate, Form
from cloakgp.posterior.clipping import Law
from cloakgp.posterior.states import SpreadReading, Stacked, lower_solve, roots
from cloakgp.posterior.support import Support

_LEVELS = 7  # of the noise, at which a hypothesis is looked at
_STEPS = 61  # between the first and the last of them
_LOOKS = 3  # with closer levels each time
_CLOSE = 20.0  # in log evidence from the best: others are not looked at again
_WIDE, _SURE = 6.0, 2.5  # standard deviations of the noise's logarithm: levels reach so far, and must
_RATIO = 2.0  # std of the logarithm of signal over noise, beforehand
_TILT = 0.3  # power of signal's and noise's stds in their prior density: bounds are seldom careless
_LARGE = 200  # support points from which on threads are worth their while
_EVERY = 4  # one of so many inputs that stand for all is asked for its distances


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Where each hypothesis is looked at: log stds of the noise."""

    centre: FloatArray
    half: FloatArray
    """From the centre to the last level; 0 where the noise is known."""

    @classmethod
    def between(cls, least: float, most: float, n: int) -> NoiseLevels:
        """All that the noise may be, for n hypotheses."""
        return cls(np.full(n, (least + most) / 2), np.full(n, (most - least) / 2))

    def __getitem__(self, which: FloatArray | Sequence[int]) -> NoiseLevels:
        return NoiseLevels(self.centre[which], self.half[which])

    def and_(self, more: NoiseLevels) -> NoiseLevels:
        """Those of more hypotheses behind these."""
        return NoiseLevels(np.r_[self.centre, more.centre], np.r_[self.half, more.half])


@dataclass(frozen=True, eq=False)
class Explained:
    """What hypotheses make of the measurements."""

    score: FloatArray
    """(S,) log evidence, with the noise integrated over its prior."""
    noise: FloatArray
    """(S,) mean of its variance."""
    levels: NoiseLevels
    """Where to look next time."""


class Evidence:
    """Of hypotheses about curves that were measured together."""

    def __init__(
        self,
        data: Sequence[Stacked],
        spreads: Sequence[SpreadReading],
        support: Support,
        law: Law,
        scatter: FloatArray,
        ends: tuple[float, float],
    ) -> None:
        self.data, self.spreads, self.support, self.law = data, spreads, support, law
        self.scatter, self.ends = scatter, ends
        self.looked_at = support.looked_at[::_EVERY]

    def of(self, hypotheses: Sequence[Candidate], levels: NoiseLevels) -> Explained:
        """Their log evidences, and what they say of the noise."""
        n = len(hypotheses)
        score, mean, std, noise = (np.empty(n) for _ in range(4))
        which, centre, half = np.arange(n), levels.centre.copy(), levels.half.copy()
        for look in range(_LOOKS):
            groups = _by_shape(hypotheses, which)
            work = in_threads if len(self.support.Z) >= _LARGE else map
            each = partial(self._of_shape, hypotheses, NoiseLevels(centre, half))
            for members, found in zip(groups, work(each, groups), strict=True):
                score[members], mean[members], std[members], noise[members] = found
            score[~np.isfinite(score)] = -np.inf
            least, most = np.maximum(centre - half, self.ends[0]), np.minimum(centre + half, self.ends[1])
            reach, sure = np.maximum(_WIDE * std, half / 8), _SURE * std
            # What a hypothesis would have the noise be may lie beyond its levels, too.
            shut = (mean - sure < least) & (least > self.ends[0])
            shut |= (mean + sure > most) & (most < self.ends[1])
            again = (half > 0) & (score > score.max() - _CLOSE) & (shut | (reach < half / 2))
            centre, half = np.where(half > 0, mean, centre), np.where(shut, half, np.minimum(reach, half))
            which = np.flatnonzero(again)
            if not len(which) or look == _LOOKS - 1:
                break
        return Explained(score, noise, NoiseLevels(centre, half))

    def _of_shape(
        self, hypotheses: Sequence[Candidate], levels: NoiseLevels, members: list[int]
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Of those members, all of one shape: log evidence, mean and std of the noise's log, mean noise."""
        some = hypotheses[members[0]]
        inner = self.support.inner(some)
        own = levels[members]
        n_levels = _LEVELS if own.half.any() else 1
        at = own.centre[:, None] + own.half[:, None] * np.linspace(-1, 1, n_levels)
        at = np.clip(at, *self.ends) if n_levels > 1 else own.centre[:, None]
        signal = np.repeat([hypotheses[i].signal for i in members], n_levels)
        level = np.repeat([hypotheses[i].level for i in members], n_levels)
        noise = np.exp(2 * at.ravel())
        total = np.zeros(len(noise))
        mean = variance = np.empty((len(noise), 0))
        skew = np.repeat([hypotheses[i].skew for i in members], n_levels)
        for one in self.data:
            log_density, mean, variance = self._densities(one, some, inner, signal, level, noise, skew)
            total += log_density
        shape = (len(members), n_levels)
        if n_levels == 1:
            for spread in self.spreads:
                total = total + self._spread(spread, mean, variance, noise)
            return total, own.centre, np.zeros(len(members)), noise
        fine = _cubic(n_levels, _STEPS if self.law.exact else 2 * n_levels - 1)
        logs = at @ fine.T
        density = total.reshape(shape) @ fine.T
        if self.law.exact:
            size = np.log(signal.reshape(shape)[:, :1]) / 2
            density += (
                _TILT * (logs - self.ends[1] + size - self.ends[1]) - (logs - size) ** 2 / 2 / _RATIO**2
            )
        if self.spreads:
            means, variances = (
                np.einsum("fk,skn->sfn", fine, x.reshape(*shape, -1)) for x in (mean, variance)
            )
            scale = np.exp(2 * logs)
            for spread in self.spreads:
                density = density + self._spread(spread, means, np.maximum(variances, 0.0), scale)
        # Uniform in the noise's logarithm, by the trapezoidal rule.
        step = np.gradient(logs, axis=1) / (self.ends[1] - self.ends[0])
        best = density.max(axis=1, keepdims=True)
        weights = np.exp(density - best) * np.maximum(step, 1e-12)
        mass = weights.sum(axis=1)
        weights /= mass[:, None]
        centre = (weights * logs).sum(axis=1)
        std = np.sqrt(np.maximum((weights * (logs - centre[:, None]) ** 2).sum(axis=1), 0.0))
        return best[:, 0] + np.log(mass), centre, std, (weights * np.exp(2 * logs)).sum(axis=1)

    def _densities(
        self,
        data: Stacked,
        some: Candidate,
        inner: FloatArray,
        signal: FloatArray,
        level: FloatArray,
        noise: FloatArray,
        skew: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log density of a curve's measurements for each (signal, level, noise); mean and variance of f."""
        A = data.G @ inner
        AG, left_out = A @ data.G.T, self.support.left_out(some, inner)
        at = self.support.at(A, self.looked_at) if self.spreads else np.empty((len(A), 0))
        scores, means, variances = [], [], []
        most = max(1, 2**21 // AG.size)  # so many entries in a stack of matrices: 16 MB
        for i in range(0, len(noise), most):
            s, lev, n, t = (x[i : i + most, None, None] for x in (signal, level, noise, skew))
            D = s * (AG + left_out * data.blurred) + lev * np.outer(data.total, data.total)
            D += data.rest + n * data.own + t**2 * data.skewed
            right = s * at + lev * data.total[:, None]
            right = np.concatenate(
                [np.broadcast_to(data.z[:, None], (len(s), len(data.z), 1)), right], axis=2
            )
            L = roots(D)
            W = np.stack([lower_solve(*pair) for pair in zip(L, right, strict=True)])
            sizes = np.log(np.einsum("sii->si", L)).sum(axis=1)
            scores.append(-np.einsum("sq,sq->s", W[:, :, 0], W[:, :, 0]) / 2 - sizes)
            means.append(np.einsum("sqn,sq->sn", W[:, :, 1:], W[:, :, 0]))
            variances.append(s[:, 0] + lev[:, 0] - np.einsum("sqn,sqn->sn", W[:, :, 1:], W[:, :, 1:]))
        return np.concatenate(scores), np.concatenate(means), np.maximum(np.concatenate(variances), 0.0)

    def _spread(
        self, spread: SpreadReading, mean: FloatArray, variance: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Log density of a noisy mean distance, for f's with these means and variances and these noises."""
        counts, T = spread.counts, spread.limit
        n, centre = counts[self.looked_at], spread.centre[self.looked_at]
        at, apart, scatter = self.law.moments(mean, variance, noise[..., None])
        r = np.sqrt(apart + scatter + (at - centre) ** 2)
        expected = self.law.distance(at, apart + scatter, centre, T) @ n / n.sum()
        factor = self.scatter[self.looked_at]
        sampling = 0.36 * (np.minimum(r, T) ** 2 @ (n * factor)) / n.sum() / counts.sum()
        total = spread.variance + sampling
        result: FloatArray = -((spread.value - expected) ** 2) / total / 2 - np.log(total) / 2
        return result


def _by_shape(settings: Sequence[Candidate], which: FloatArray) -> list[list[int]]:
    """Places of the settings that share a shape."""
    found: dict[Form, list[int]] = {}
    for i in which.tolist():
        found.setdefault(settings[i].form, []).append(i)
    return list(found.values())


@cache
def _cubic(n: int, steps: int) -> FloatArray:
    """(steps, n): what curves through n evenly spaced values are in between, by the nearest four of them."""
    x = np.linspace(0, n - 1, steps)
    first = np.clip(np.floor(x).astype(int) - 1, 0, n - 4)
    weights = np.zeros((steps, n))
    for j in range(4):
        others = [k for k in range(4) if k != j]
        part = np.prod([(x - first - k) / (j - k) for k in others], axis=0)
        weights[np.arange(steps), first + j] = part
    return weights
