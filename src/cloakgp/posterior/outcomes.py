"""Predictions where outcomes are yes or no, or counts: probabilities or rates, within what these can be.

The models are of f; a probability or a rate is a function of it. So its mean and variance are integrals over
the mixture's law of f, and its quantiles are those of f, carried over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.conditioning import Uncertainty
from cloakgp.posterior.learning import Learned, check_level
from cloakgp.posterior.linking import Linked

_POINTS = 161  # of the grid of f at each input
_REMEMBERED = 2**21  # numbers of a law at the inputs that were asked for last: three times 16 MB
_FAR = 4.0  # standard deviations of the prior that it covers


class Laws:
    """The law of f at each of n inputs, on a grid: a mixture over models, each Gaussian but for its tails.

    What was measured tells of probabilities or rates, not of f: that f is -3 and not -5 nobody sees, since
    both are hardly ever yes. So a model's law of f is not its Gaussian approximation, but the prior's times
    the likelihood of the probability or rate that the approximation stands for.
    """

    def __init__(
        self, link: Linked, weights: FloatArray, means: FloatArray, variances: FloatArray, priors: FloatArray
    ) -> None:
        mean = weights @ means
        std = np.sqrt(weights @ (variances + (means - mean) ** 2))
        far = _FAR * np.sqrt(priors.max(axis=0))
        # Dense where the weight is, and out to where the prior ends.
        t = np.linspace(-1, 1, _POINTS)
        steep = np.arcsinh((far + np.abs(mean)) / std)
        self.f: FloatArray = mean[:, None] + std[:, None] * np.sinh(steep[:, None] * t)
        steps = np.gradient(self.f, axis=1)
        self.rates = link.mean(self.f)
        self.masses = np.zeros_like(self.f)
        bounds = np.broadcast_to(-np.inf, len(mean)), np.broadcast_to(np.inf, len(mean))
        for weight, m, v, k in zip(weights, means, variances, priors, strict=True):
            precision = np.maximum(1 / v - 1 / k, 1e-12 / k)
            line, _ = link.linearise(m, v, 1.0, bounds)
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

    link: Linked = None  # type: ignore[assignment]

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
        laws = Laws(self.link, self.weights, means - self.link.middle, stds**2, priors)
        if laws.f.size <= _REMEMBERED:
            self.__dict__["_last_laws"] = means, laws
        return laws

    def _moments(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) mean, variance of the probability or rate, and variance of an outcome about it."""
        laws, noise = self._laws(X), self.noise
        rates = laws.rates
        mean = (laws.masses * rates).sum(axis=1)
        variance = (laws.masses * (rates - mean[:, None]) ** 2).sum(axis=1)
        return mean, variance, (laws.masses * self.link.link.variance(rates, noise)).sum(axis=1)

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """Probabilities or rates at `X`, with their std if asked; `include_noise` adds a single outcome's."""
        if return_cov:
            raise ArgumentError(
                "return_cov",
                f"must be False for {self.link.link.name} outcomes",
                remedy="Use sample, which draws at all inputs together.",
            )
        mean, variance, scatter = self._moments(X)
        if not return_std:
            return mean
        return mean, np.sqrt(variance + (scatter if _noisy(include_noise) else 0.0))

    def uncertainty(self, X: Any, *, include_noise: bool | float = True) -> Uncertainty:
        """Std of probabilities or rates by its causes, in the same shares as f's."""
        _, variance, scatter = self._moments(X)
        f = self.latent.uncertainty(X, include_noise=False)
        gp = variance * np.minimum(f.gp**2 / np.maximum(f.total**2, 1e-300), 1.0)
        observation = scatter if _noisy(include_noise) else np.zeros(len(scatter))
        return Uncertainty(
            privacy=np.sqrt(variance - gp),
            gp=np.sqrt(gp),
            observation=np.sqrt(observation),
            total=np.sqrt(variance + observation),
        )

    def interval(self, X: Any, level: float = 0.95, *, include_noise: bool | float = False) -> FloatArray:
        """(n, 2) within which the probability or rate lies, with this probability."""
        if _noisy(include_noise):
            remedy = "An interval is for the probability or the rate."
            raise ArgumentError(
                "include_noise", f"must be False for {self.link.link.name} outcomes", remedy=remedy
            )
        return self._laws(X).interval(check_level(level))

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of probabilities or rates, by public randomness."""
        return self.link.mean(super().sample(X, n, seed) - self.link.middle)

    def _noise_word(self, setting: Candidate | None = None) -> str:
        """How many times its mean an outcome's variance is; nothing where that follows from the mean."""
        least, most = self.link.link.noise
        if least == most:
            return ""
        return "  dispersion" if setting is None else f"  {setting.noise:10.3g}"


def _noisy(include_noise: bool | float) -> bool:
    if not isinstance(include_noise, (bool, np.bool_)):
        remedy = "The scatter of an outcome follows from its probability or rate: give True or False."
        raise ArgumentError("include_noise", "must be True or False", repr(include_noise), remedy)
    return bool(include_noise)
