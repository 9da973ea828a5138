"""Predictions where outcomes are yes or no, or counts: of probabilities or rates, and within what these can be.

The models are of f; a probability or a rate is a function of it. So its mean and variance are integrals over
the mixture's law of f, and its quantiles are those of f, carried over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.posterior.conditioning import Uncertainty
from cloakgp.posterior.learning import Learned
from cloakgp.posterior.linking import Linked

_HALVINGS = 60  # of an interval, for a quantile: to the last bits


def check_level(level: Any) -> float:
    """The share that an interval is to hold."""
    level = checks.positive(level, "level", "Such as 0.95.")
    if not level < 1:
        raise ArgumentError("level", "must be below 1", repr(level), "Such as 0.95.")
    return level


def quantiles(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> FloatArray:
    """(2, n) ends of the middle `level` of mixtures of normals: (S,) weights, (S, n) means and stds."""
    ends = []
    for p in ((1 - level) / 2, (1 + level) / 2):
        low = (means + ndtri(p) * stds).min(axis=0)  # a mixture's quantile is between its parts'
        high = (means + ndtri(p) * stds).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = weights @ ndtr((middle - means) / np.maximum(stds, 1e-300)) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append((low + high) / 2)
    return np.array(ends)


@dataclass(frozen=True, eq=False)
class LinkedLearned(Learned):
    """A mixture over models of f, seen through a link."""

    link: Linked = None  # type: ignore[assignment]

    @property
    def latent(self) -> Learned:
        """The same mixture, of f itself."""
        return Learned(self.settings, self.weights, self.evidence, self.posteriors)

    def _laws(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """(S, n) means, less what f is counted from, and variances of f under each model."""
        found = [posterior.predict(X, return_std=True) for posterior in self.posteriors]
        means, stds = (np.array(each) for each in zip(*found, strict=True))
        return means - self.link.middle, stds**2

    def _moments(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) mean, variance of the probability or rate, and variance of an outcome about it."""
        means, variances = self._laws(X)
        noise = np.array([setting.noise for setting in self.settings])[:, None]
        centre, apart, scatter = self.link.moments(means, variances, noise)
        mean = self.weights @ centre
        return mean, self.weights @ (apart + (centre - mean) ** 2), self.weights @ scatter

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
            raise ArgumentError("include_noise", f"must be False for {self.link.link.name} outcomes", remedy=remedy)
        means, variances = self._laws(X)
        ends = quantiles(self.weights, means, np.sqrt(variances), check_level(level))
        return self.link.mean(ends).T

    def sample(self, X: Any, n: int, seed: Any = None) -> FloatArray:
        """(n, len(X)) draws of probabilities or rates, by public randomness."""
        return self.link.mean(super().sample(X, n, seed) - self.link.middle)


def _noisy(include_noise: bool | float) -> bool:
    if not isinstance(include_noise, (bool, np.bool_)):
        remedy = "The scatter of an outcome follows from its probability or rate: give True or False."
        raise ArgumentError("include_noise", "must be True or False", repr(include_noise), remedy)
    return bool(include_noise)
