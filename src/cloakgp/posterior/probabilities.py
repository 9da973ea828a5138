"""Predictions of probabilities and rates: where outcomes are yes or no, classes or counts.

The models are of f; a probability or a rate is a function of it. So its mean and variance are integrals over
the mixture's law of f, and its quantiles are those of f, carried over. Of several classes each has its own f;
that probabilities add up to one is left to the end (:class:`ClassLearned`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.clipping import Linked
from cloakgp.posterior.conditioning import Posterior, Uncertainty, check_draws, generator_of
from cloakgp.posterior.learning import Learned, check_level

_REMEMBERED = 2**21  # numbers of a law at the inputs that were asked for last: three times 16 MB


class Laws:
    """The law of f at each of n inputs, on a grid: a mixture over models, each Gaussian but for its tails.

    What was measured tells of probabilities or rates, not of f: that f is -3 and not -5 nobody sees, since
    both are hardly ever yes. So a model's law of f is not its Gaussian approximation, but the prior's times
    the likelihood of the probability or rate that the approximation stands for.
    """

    def __init__(
        self, law: Linked, weights: FloatArray, means: FloatArray, variances: FloatArray, priors: FloatArray
    ) -> None:
        mean = weights @ means
        std = np.sqrt(weights @ (variances + (means - mean) ** 2))
        far = 4 * np.sqrt(priors.max(axis=0))
        # Dense where the weight is, and out to where the prior ends.
        t = np.linspace(-1, 1, 161)
        steep = np.arcsinh((far + np.abs(mean)) / std)
        self.f: FloatArray = mean[:, None] + std[:, None] * np.sinh(steep[:, None] * t)
        steps = np.gradient(self.f, axis=1)
        self.rates = law.mean(self.f)
        self.masses = np.zeros_like(self.f)
        bounds = np.broadcast_to(-np.inf, len(mean)), np.broadcast_to(np.inf, len(mean))
        for weight, m, v, k in zip(weights, means, variances, priors, strict=True):
            precision = np.maximum(1 / v - 1 / k, 1e-12 / k)
            line, _ = law.linearise(m, v, 1.0, bounds)
            told = line.centre + line.slope * (m / v / precision - m)
            # What the line leaves over is in it, and stays: without it intervals hold 93 of 95 %.
            noise = line.slope**2 / precision
            log = -((told[:, None] - self.rates) ** 2) / noise[:, None] - self.f**2 / k[:, None]
            density = np.exp((log - log.max(axis=1, keepdims=True)) / 2) * steps
            self.masses += weight * density / density.sum(axis=1, keepdims=True)

    def interval(self, level: float) -> FloatArray:
        """(n, 2) ends of the middle `level` of the law of the probability or rate."""
        below = np.cumsum(self.masses, axis=1) - self.masses / 2
        ends = [(1 - level) / 2, (1 + level) / 2]
        rows = zip(below, self.f, self.rates, strict=True)
        return np.array([np.interp(np.interp(ends, b, f), f, rate) for b, f, rate in rows])


@dataclass(frozen=True, eq=False)
class LinkedLearned(Learned):
    """A mixture over models of f, seen through a link."""

    law: Linked = None  # type: ignore[assignment]

    @property
    def latent(self) -> Learned:
        """The same mixture, of f itself."""
        return Learned(self.settings, self.weights, self.evidence, self.posteriors, self.columns)

    def _laws(self, X: Any) -> Laws:
        """What is known of f at each of X. The last is kept: who wants probabilities wants intervals, too."""
        X = self._points(X)
        means, stds = self._means_and_stds(X)
        last: tuple[FloatArray, Laws] | None = self.__dict__.get("_last_laws")
        if last is not None and last[0] is means:  # which are kept in the same way
            return last[1]
        priors = np.array([np.asarray(one.gp.kernel.diag(X), dtype=np.float64) for one in self.posteriors])
        laws = Laws(self.law, self.weights, means - self.law.middle, stds**2, priors)
        if laws.f.size <= _REMEMBERED:
            self.__dict__["_last_laws"] = means, laws
        return laws

    def _moments(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) mean, variance of the probability or rate, and variance of an outcome about it."""
        laws, noise = self._laws(X), self.noise
        rates = laws.rates
        mean = (laws.masses * rates).sum(axis=1)
        variance = (laws.masses * (rates - mean[:, None]) ** 2).sum(axis=1)
        return mean, variance, (laws.masses * self.law.link.variance(rates, noise)).sum(axis=1)

    def _predict(self, X: FloatArray, std: bool, cov: bool, include_noise: bool | float) -> Any:
        if cov:
            remedy = "Use sample, which draws at all inputs together."
            raise ArgumentError("return_cov", f"must be False for {self.law.link.plural}", remedy=remedy)
        mean, variance, scatter = self._moments(X)
        if not std:
            return mean
        return mean, np.sqrt(variance + (scatter if _noisy(include_noise) else 0.0))

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std of probabilities or rates by its causes, in the same shares as f's."""
        _, variance, scatter = self._moments(X)
        f = self.latent.uncertainty(X, include_noise=False)
        known = variance * (f.gp**2 / np.maximum(f.total**2, 1e-300))
        return Uncertainty.of(variance, known, scatter if _noisy(include_noise) else 0.0)

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which the probability or rate lies, with this probability."""
        if _noisy(include_noise):
            remedy = "An interval is for the probability or the rate."
            raise ArgumentError("include_noise", f"must be False for {self.law.link.plural}", remedy=remedy)
        return self._laws(X).interval(check_level(level))

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of probabilities or rates, by public randomness."""
        return self.law.mean(super().sample(X, n, seed) - self.law.middle)

    def _noise_word(self, setting: Candidate | None = None) -> str:
        """How many times its mean an outcome's variance is; nothing where that follows from the mean."""
        if not self.law.link.scattered:
            return ""
        return "  dispersion" if setting is None else f"  {setting.noise:10.3g}"


@dataclass(frozen=True, eq=False)
class ClassLearned(LinkedLearned):
    """A mixture over models of each class's f, and probabilities that add up to one.

    Each class's probability is told by its own sums. Their total is 1 but for noise, and all are divided by
    it. That changes a class's odds by some factor; ends of its interval are changed by the same.
    """

    each: tuple[LinkedLearned, ...] = ()

    @property
    def curves(self) -> tuple[tuple[Posterior, ...], ...]:
        """The models' posteriors, of each class."""
        return tuple(own.posteriors for own in self.each)

    def _predict(self, X: FloatArray, std: bool, cov: bool, include_noise: bool | float) -> Any:
        """(n, K) probabilities of the classes, with their std if asked."""
        found = [own._predict(X, std, cov, include_noise) for own in self.each]
        if not std:
            return _Shares(found).means
        means, stds = zip(*found, strict=True)
        shares = _Shares(means)
        return shares.means, shares.stds(stds)

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, K, 2) within which each class's probability lies, with this probability."""
        ends = [own.interval(X, level, include_noise=include_noise) for own in self.each]
        return _Shares([own.predict(X) for own in self.each]).moved(np.stack(ends, axis=1))

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """(n, K) std of the probabilities by its causes."""
        found = [own.uncertainty(X, include_noise=include_noise) for own in self.each]
        shares = _Shares([own.predict(X) for own in self.each])
        names = [field.name for field in fields(Uncertainty)]
        return Uncertainty(**{name: shares.stds([getattr(one, name) for one in found]) for name in names})

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X), K) draws of probabilities, by public randomness."""
        check_draws(n, len(self._points(X)) * len(self.each))
        generator = generator_of(seed)
        draws = np.stack([own.sample(X, n, generator) for own in self.each], axis=-1)
        return np.asarray(draws / draws.sum(axis=-1, keepdims=True))


class _Shares:
    """(n, K) probabilities, divided by their total."""

    def __init__(self, each: Sequence[FloatArray]) -> None:
        self.own: FloatArray = np.array(each).T
        self.means: FloatArray = self.own / self.own.sum(axis=1, keepdims=True)

    def stds(self, each: Sequence[FloatArray]) -> FloatArray:
        """What becomes of a small change of each."""
        return np.asarray(np.array(each).T * self.means * (1 - self.means) / (self.own * (1 - self.own)))

    def moved(self, ends: FloatArray) -> FloatArray:
        """(n, K, 2) ends of intervals, with their odds changed as the probabilities' are."""
        ratio = (self.means * (1 - self.own) / ((1 - self.means) * self.own))[:, :, None]
        return np.asarray(ends * ratio / (ends * ratio + 1 - ends))


def _noisy(include_noise: bool | float) -> bool:
    if not isinstance(include_noise, (bool, np.bool_)):
        remedy = "The scatter of an outcome follows from its probability or rate: give True or False."
        raise ArgumentError("include_noise", "must be True or False", repr(include_noise), remedy)
    return bool(include_noise)
