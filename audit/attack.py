"""The best attack on a pair of neighbours, and what it scores on many releases.

By Neyman & Pearson's lemma the likelihood ratio tells two data sets apart best. Where noise is added, it is
worked out from what would be released without noise, which is looked up by taking the noise away.
The auditor's bound holds for any score: a poor one would find less, never more than there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np

from audit.mechanisms import ABOVE, BELOW, HIGH, LOW, MECHANISMS, Mechanism
from cloakgp.core import accounting
from cloakgp.private import room


@contextmanager
def noise(times: float) -> Iterator[None]:
    """A planted bug: in this block the private room draws noise of `times` the right size; none for 0."""
    if times == 1:
        yield
        return

    def additive(add: Any, exact: Any, scale: int) -> Any:
        return add(exact, int(scale * times)) if times else exact

    def gumbel(noisy_min: Any, scores: Any) -> Any:
        return noisy_min(replace(scores, epsilon=scores.epsilon / times)) if times else np.argmin

    planted = {"add_noise": additive, "add_laplace": additive, "noisy_minimum": gumbel}
    changes = {name: partial(wrapper, getattr(room, name)) for name, wrapper in planted.items()}
    with mock.patch.multiple(room, **changes):
        yield


@dataclass(frozen=True, eq=False)
class Attack:
    """Two neighbours, and a score that is higher the more likely a release is of the second."""

    mechanism: Mechanism
    pair: tuple[Any, Any]

    @property
    def exact(self) -> tuple[Any, Any]:
        """What the two would release without noise."""
        with noise(0):
            return self.mechanism.release(self.pair[0]), self.mechanism.release(self.pair[1])

    def score(self, z: Any) -> Any:
        """The logarithm of the likelihood ratio, or what rises with it; a row of z for each release."""
        kind = type(self.mechanism.plan.cost)
        if self.mechanism.staged:
            return np.array([self._log_ratio(stages) for stages in z])
        z = np.array(z)
        if kind is accounting.Exponential:
            first, second = (np.log(p) for p in self.probabilities)
            return (second - first)[z[:, 0]]
        first, second = self.exact
        if kind is accounting.Gaussian:
            move = (second - first).astype(float)
            return (z - first).astype(float) @ move / (move @ move)
        if kind is accounting.Laplace:
            return (np.abs(z - first) - np.abs(z - second)).sum(axis=1) / np.abs(second - first).sum()
        raise NotImplementedError(f"no attack is known here for {kind.__name__}; add its likelihood ratio.")

    def _moves(self, stages: Any) -> Iterator[tuple[Any, Any]]:
        """Of each measurement in stages as they were chosen: what came out, less what the first neighbour
        would give without noise; and how far the second is from there; both in units of the noise."""
        for stage in stages:
            answer = stage.answer
            for part in stage.parts:
                with noise(0):
                    first, second = (room.measure(part, y, "error") for y in self.pair)
                out, answer = answer[: len(first)], answer[len(first) :]
                yield (out - first) / part.sigma, (second - first) / part.sigma

    def _log_ratio(self, stages: Any) -> float:
        """How one stage is chosen is the same for both neighbours, given the answers before it."""
        return float(sum(out @ move - move @ move / 2 for out, move in self._moves(stages)))

    @property
    def probabilities(self) -> tuple[Any, Any]:
        """With which each candidate of a selection is chosen, from either neighbour."""
        plan = self.mechanism.plan
        first, second = (plan.custodian_probabilities(y).probabilities for y in self.pair)
        return first, second

    @property
    def strength(self) -> float:
        """What the plan's noise lets an attack on this pair find, given endless draws: how far the pair moves
        the release in units of the Gaussian noise's std; for other mechanisms the epsilon itself."""
        plan, kind = self.mechanism.plan, type(self.mechanism.plan.cost)
        if kind is accounting.Exponential:
            first, second = self.probabilities
            return float(np.abs(np.log(second / first)).max())
        first, second = self.exact
        if self.mechanism.staged:
            return float(np.sqrt(sum(move @ move for _, move in self._moves(first))))
        if kind is accounting.Laplace:
            return float(np.abs(second - first).sum() / plan.measurement.sigma)
        return float(np.linalg.norm((second - first).astype(float)) / plan.measurement.sigma)


def worst_pair(mechanism: Mechanism) -> tuple[Any, Any]:
    """All outcomes in the middle but one, beyond either bound: in the row that moves the release most."""
    middle = np.full(mechanism.plan.certificate.n_rows, (LOW + HIGH) / 2)
    pairs = []
    for row in range(len(middle)):
        low, high = middle.copy(), middle.copy()
        low[row], high[row] = BELOW, ABOVE
        pairs.append((low, high))
    with noise(0):
        moves = [(mechanism.release(high) - mechanism.release(low)).astype(float) for low, high in pairs]
    return pairs[int(np.argmax([move @ move for move in moves]))]


@cache
def attack_on(name: str) -> Attack:
    mechanism = MECHANISMS[name]()
    return Attack(mechanism, mechanism.pair or worst_pair(mechanism))


def draw(name: str, times: float, which: int, n: int) -> Any:
    """The scores of `n` real releases of one neighbour, with noise of `times` the right size."""
    attack = attack_on(name)
    with noise(times):
        z = [attack.mechanism.release(attack.pair[which]) for _ in range(n)]
    return attack.score(z)
