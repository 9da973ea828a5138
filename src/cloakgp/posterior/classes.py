"""Outcomes that are one of several classes: a function for each class, all with one model.

Class by class it is yes or no: Pr[it is this one] = Phi(f), with an f of its own. Before anything is known
the f's are independent draws from one prior, so that each setting of the model explains all classes' sums
with the sum of its log evidences, and what is learned of lengthscales from one class serves all. That
probabilities add up to one is left to the end (:class:`ClassLearned`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.model.hyperprior import Candidate
from cloakgp.posterior.conditioning import Posterior, Uncertainty, check_draws
from cloakgp.posterior.mixture import Acceleration, Mixture, Reading, SpreadReading, Stacked, State
from cloakgp.posterior.outcomes import LinkedLearned


@dataclass(frozen=True, eq=False)
class ClassReading(Reading):
    """Noisy sums of each class, by the same rows; by itself, those of the first."""

    each: tuple[Reading, ...] = ()


def together(each: Sequence[Reading]) -> ClassReading:
    """One reading for those of all classes."""
    own = {field.name: getattr(each[0], field.name) for field in fields(Reading)}
    return ClassReading(**own, each=tuple(each))


@dataclass(frozen=True, eq=False)
class ClassState(State):
    """What is known of each class's f; by itself, their average, for which the next stage is designed."""

    each: tuple[State, ...] = ()

    def moved_from(self, other: State) -> float:
        """How far the mean of any f is from another state's, at most."""
        assert isinstance(other, ClassState)
        return max(one.moved_from(before) for one, before in zip(self.each, other.each, strict=True))


def averaged(each: Sequence[State]) -> ClassState:
    """One state for those of all classes."""
    own = {field.name: getattr(each[0], field.name) for field in fields(State)}
    own["support_mean"] = np.mean([one.support_mean for one in each], axis=0)
    own["support_covariance"] = np.mean([one.support_covariance for one in each], axis=0)
    return ClassState(**own, each=tuple(each))


class ClassMixture(Mixture):
    """A mixture over the models that all classes share."""

    def __init__(self, n_classes: int, *given: Any) -> None:
        super().__init__(*given)
        self.n_classes = n_classes

    def start(self) -> State:
        return averaged([super().start()] * self.n_classes)

    def state(
        self,
        kept: tuple[Candidate, ...],
        weights: FloatArray,
        readings: Sequence[Reading],
        spreads: Sequence[SpreadReading],
    ) -> State:
        return averaged(
            [super(ClassMixture, self).state(kept, weights, own, spreads) for own in apart(readings)]
        )

    def _conditioned(self, broad: State, readings: Sequence[Reading]) -> State:
        assert isinstance(broad, ClassState)
        pairs = zip(broad.each, apart(readings), strict=True)
        return averaged([super(ClassMixture, self)._conditioned(*pair) for pair in pairs])

    def _stacked(self, readings: Sequence[Reading]) -> Stacked:
        if not isinstance(readings[0], ClassReading):
            return super()._stacked(readings)
        return _Apart([super(ClassMixture, self)._stacked(own) for own in apart(readings)])

    def _evidence(
        self, data: Stacked, settings: Sequence[Candidate], spreads: Sequence[SpreadReading]
    ) -> FloatArray:
        """Log density of all classes' readings under each setting."""
        assert isinstance(data, _Apart)
        found = [super(ClassMixture, self)._evidence(one, settings, spreads) for one in data.each]
        return np.asarray(np.sum(found, axis=0))

    def _acceleration(self) -> Acceleration:
        return _Accelerations(self.n_classes)


class _Apart(Stacked):
    """Readings of each class."""

    def __init__(self, each: Sequence[Stacked]) -> None:
        self.each = each


class _Accelerations(Acceleration):
    """One for each class."""

    def __init__(self, n: int) -> None:
        self._each = [Acceleration() for _ in range(n)]

    def next(self, old: State, new: State) -> State:
        assert isinstance(old, ClassState)
        assert isinstance(new, ClassState)
        steps = zip(self._each, old.each, new.each, strict=True)
        return averaged([faster.next(*states) for faster, *states in steps])


def apart(readings: Sequence[Reading]) -> list[list[Reading]]:
    """The readings of each class."""
    each = [reading.each for reading in readings if isinstance(reading, ClassReading)]
    return [list(own) for own in zip(*each, strict=True)]


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

    def predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        include_noise: bool | float = False,
    ) -> Any:
        """(n, K) probabilities of the classes at `X`, with their std if asked."""
        more: Any = {"return_std": return_std, "return_cov": return_cov, "include_noise": include_noise}
        found = [own.predict(X, **more) for own in self.each]
        if not return_std:
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
        generator = np.random.default_rng(seed)
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
