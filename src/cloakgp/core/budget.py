"""A budget that holds whatever was asked, and however the questions were chosen.

:mod:`cloakgp.core.accounting` says what events cost whose sizes were settled beforehand. A ledger cannot
rely on that: people look at one answer and then decide how much the next may cost. Mixing several
composition bounds then gives less privacy than each of them promises. So a budget fixes its rule
before any answer is known, and keeps to it (theorem 10 of ``docs/proofs.md``):

* the part of epsilon that was *set aside* at the start pays for pure mechanisms, epsilon by epsilon;
* all else is counted in mu, whose squares add up to a limit that only the first event can change. A
  pure mechanism counts with the smallest mu for which it is Gaussian-DP too;
* or nothing but pure mechanisms happened, and their epsilons add up to no more than the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from cloakgp.core import accounting, checks
from cloakgp.core.accounting import MOST_MEASUREMENTS, Event, Exponential, Gaussian, compose
from cloakgp.core.calibration import promise


@dataclass(frozen=True)
class Budget:
    """A total (epsilon, delta), with `pure` of its epsilon set aside for pure mechanisms."""

    epsilon: float
    delta: float
    pure: float = 0.0

    def __post_init__(self) -> None:
        epsilon, delta = promise(self.epsilon, self.delta)
        pure = checks.number(self.pure, "pure", least=0.0, below=epsilon)
        for name, value in (("epsilon", epsilon), ("delta", delta), ("pure", pure)):
            object.__setattr__(self, name, value)

    def allows(self, spent: Sequence[Event], event: Event) -> bool:
        """Whether `event` may follow the events `spent`, which were allowed one after another."""
        events = [*spent, event]
        compose(events)  # refuses what is not an event
        if all(e.pure for e in events) and math.fsum(e.epsilon for e in events) <= self.epsilon:
            return True
        if sum(e.n_measurements for e in events) > MOST_MEASUREMENTS:
            return False
        first, later = self._counted(events)
        if not later:
            return first is None or compose([first]).fits(self._rest, self.delta)
        mus = [gaussian_mu(e) for e in later]
        limit = _limit_after(self._rest, self.delta, first)
        return math.inf not in mus and sum(Fraction(mu) ** 2 for mu in mus) <= Fraction(limit) ** 2

    def largest(self, spent: Sequence[Event], kind: Callable[[float], Event]) -> float:
        """The largest size for which ``kind(size)`` may follow, rounded down; 0 if there is none."""
        return accounting.largest(lambda size: self.allows(spent, kind(size)))

    @property
    def _rest(self) -> float:
        """The epsilon that is not set aside, rounded down."""
        return math.nextafter(self.epsilon - self.pure, 0.0) if self.pure else self.epsilon

    def _counted(self, events: Sequence[Event]) -> tuple[Event | None, list[Event]]:
        """What is not paid from the part set aside: the very first event, if it has a rule of its own,
        and those to be counted in mu."""
        first, later, aside = None, [], self.pure
        for position, event in enumerate(events):
            if event.pure and event.epsilon <= aside:
                aside = math.nextafter(aside - event.epsilon, 0.0)
            elif position == 0 and event.epsilon:
                first = event
            else:
                later.append(event)
        return first, later


def gaussian_mu(event: Event) -> float:
    """The smallest mu for which an event is mu-Gaussian-DP (lattice aside), rounded up; inf if none."""
    if not event.pure:
        return event.mu or math.inf
    half_span = event.half_span
    if half_span > 600:
        return math.inf
    if half_span < 1e-3:  # where the formula below cancels: its tangent at 0, which lies above it
        return half_span * math.sqrt(math.pi / 2) * (1 + 1e-9)
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(half_span))) * (1 + 1e-9)


@lru_cache(maxsize=1024)
def _limit_after(epsilon: float, delta: float, first: Event | None) -> float:
    """The largest total mu that may follow `first`."""
    if first is None or isinstance(first, Exponential):  # after a selection, composition is exact
        before = [] if first is None else [first]
        return accounting.largest(
            lambda mu: compose([*before, Gaussian(mu, MOST_MEASUREMENTS)]).fits(epsilon, delta)
        )
    left = [math.nextafter(epsilon - first.epsilon, 0.0), math.nextafter(delta - first.delta, 0.0)]
    basic = _limit_after(left[0], left[1], None) if min(left) > 1e-290 else 0.0
    squares = _limit_after(epsilon, delta, None) ** 2 - gaussian_mu(first) ** 2
    return max(basic, math.sqrt(max(0.0, squares * (1 - 1e-12))))
