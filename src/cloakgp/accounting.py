"""What has been spent together: frozen events, and the tightest bound that is proven for them.

An *event* says what happened; its meaning never changes. :func:`compose` says what events cost
together, as a :class:`Spend` with views in (epsilon, delta), in rho (zero-concentrated DP) and in mu
(Gaussian DP). Each view is an upper bound with a proof in ``docs/proofs.md`` (theorem 9), and the
smallest is reported. A rho never becomes a mu: zCDP does not give back a Gaussian curve.

Which questions the events answer may be chosen one after another, each with knowledge of the earlier
answers. What each may cost (its mu or epsilon) must not depend on them, except that spending may
stop before a limit fixed in advance. The exact bound for a selection asks that it came first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

from cloakgp import checks
from cloakgp.calibration import delta_of, promise, slack
from cloakgp.errors import ArgumentError, ArgumentTypeError


def _size(value: Any, name: str) -> float:
    """A size that floating point carries through the formulas."""
    return checks.number(value, name, above=1e-100, below=1e7)


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise on `n_measurements` integers: mu = sensitivity / noise std."""

    mu: float
    n_measurements: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _size(self.mu, "mu"))
        count = self.n_measurements
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ArgumentError("n_measurements", "must be a whole number above 0", repr(count))
        object.__setattr__(self, "n_measurements", int(count))


@dataclass(frozen=True)
class Exponential:
    """The exponential mechanism (Gumbel noisy max) at `epsilon`: pure DP of bounded range."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _size(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Laplace:
    """Laplace noise at `epsilon`."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _size(self.epsilon, "epsilon"))


@dataclass(frozen=True)
class Approximate:
    """Any (epsilon, delta)-DP mechanism; delta = 0 for pure DP."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _size(self.epsilon, "epsilon"))
        if not 0 <= checks.number(self.delta, "delta") < 1:
            raise ArgumentError("delta", "must be at least 0 and below 1", repr(self.delta))
        object.__setattr__(self, "delta", float(self.delta))


MOST_MEASUREMENTS = 10**7
"""How many numbers may ever be released about one data set: fixes the lattice's slack beforehand."""
_CELLS = 1000  # of the grid in the exact bound for a selection

Event = Gaussian | Exponential | Laplace | Approximate
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Gaussian, Exponential, Laplace, Approximate)}


def to_spec(event: Event) -> dict[str, Any]:
    """An event as plain JSON."""
    return {"kind": type(event).__name__, **asdict(event)}


def from_spec(spec: dict[str, Any]) -> Event:
    """An event from :func:`to_spec`'s description."""
    values = dict(spec) if isinstance(spec, dict) else {}
    name = values.pop("kind", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"event kind must be one of {', '.join(_KINDS)}; got {name!r}.")
    try:
        event: Event = kind(**values)
    except TypeError:
        raise ValueError(f"event of kind {kind.__name__} has the wrong values: {sorted(values)}.") from None
    return event


@dataclass(frozen=True)
class Spend:
    """What events cost together."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        for event in self.events:
            if not isinstance(event, tuple(_KINDS.values())):
                raise ArgumentTypeError(
                    "events",
                    f"must be {', '.join(_KINDS)}",
                    type(event).__name__,
                    "For a release, use Gaussian(certificate.mu, certificate.n_measurements).",
                )

    @property
    def mu(self) -> float | None:
        """Gaussian DP of the events, if all are Gaussian (lattice slack aside); else None."""
        if not all(isinstance(event, Gaussian) for event in self.events):
            return None
        return math.sqrt(sum(event.mu**2 for event in self.events if isinstance(event, Gaussian)))

    @property
    def rho(self) -> float | None:
        """Zero-concentrated DP of the events (lattice slack aside); None if one has delta > 0."""
        total = 0.0
        for event in self.events:
            if isinstance(event, Gaussian):
                total += event.mu**2 / 2
            elif isinstance(event, Exponential):
                total += event.epsilon**2 / 8  # bounded range: Cesar & Rogers 2021, lemma 3.4
            elif isinstance(event, Laplace) or event.delta == 0:
                total += event.epsilon**2 / 2  # Bun & Steinke 2016, proposition 1.4
            else:
                return None
        return total

    def delta(self, epsilon: float) -> float:
        """The smallest delta proven for this epsilon."""
        epsilon = checks.positive(epsilon, "epsilon")
        if not self.events:
            return 0.0
        return min(1.0, *(bound(epsilon) for bound in self._bounds()))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon proven for this delta, rounded up."""
        delta = promise(1.0, delta)[1]
        if not self.events:
            return 0.0
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
        for _ in range(80):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether the events together are proven to be (epsilon, delta)-DP."""
        epsilon, delta = promise(epsilon, delta)
        return not self.events or self.delta(epsilon) <= delta

    def _bounds(self) -> list[Callable[[float], float]]:
        bounds: list[Callable[[float], float]] = [self._basic]
        if self.rho is not None and self.mu is None:  # of Gaussians alone the first is exact
            bounds.append(self._concentrated)
        first, rest = self.events[0], self.events[1:]
        if isinstance(first, Exponential) and rest and all(isinstance(event, Gaussian) for event in rest):
            bounds.append(self._selection_first)
        return bounds

    def _gaussians(self) -> tuple[float, int]:
        gaussians = [event for event in self.events if isinstance(event, Gaussian)]
        return math.sqrt(sum(event.mu**2 for event in gaussians)), sum(g.n_measurements for g in gaussians)

    def _basic(self, epsilon: float) -> float:
        """Gaussians by adding mu^2; everything else by adding its epsilon and delta on top."""
        others = [event for event in self.events if not isinstance(event, Gaussian)]
        left = epsilon - math.fsum(event.epsilon for event in others)  # exact but for one rounding
        delta = math.fsum(event.delta for event in others if isinstance(event, Approximate))
        mu, q = self._gaussians()
        if left < 0 or (left == 0 and q):
            return 1.0
        # Adaptive basic composition: the parts' epsilons and deltas add (Dwork & Roth 2014, theorem B.1).
        return delta + (_discrete(mu, left, q) if q else 0.0)

    def _concentrated(self, epsilon: float) -> float:
        rho = self.rho
        assert rho is not None
        _, q = self._gaussians()
        return _with_slack(lambda e: _concentrated_delta(rho, e), epsilon, q)

    def _selection_first(self, epsilon: float) -> float:
        """One exponential mechanism before Gaussians: exact (theorem 9c)."""
        assert isinstance(self.events[0], Exponential)
        mu, q = self._gaussians()
        chosen = self.events[0].epsilon
        return _with_slack(lambda e: _selection_delta(chosen, mu, e), epsilon, q)


def compose(events: Iterable[Event]) -> Spend:
    """What these events cost together, in the order in which they happened."""
    if isinstance(events, tuple(_KINDS.values())):
        raise ArgumentTypeError("events", "must be a list of events", "one event", "Write compose([event]).")
    return Spend(tuple(events))


@dataclass(frozen=True)
class Split:
    """A budget shared between a selection and the release that follows it: see :func:`split`."""

    selection: float
    """epsilon of the selection."""
    epsilon: float
    """epsilon of the release, for its plan, at the whole budget's delta."""
    delta: float
    release: Gaussian
    """The largest Gaussian event that may follow the selection."""


def split(
    epsilon: float, delta: float, selection: float = 0.3, n_measurements: int = MOST_MEASUREMENTS
) -> Split:
    """Share one (epsilon, delta) between a private selection and the release that follows it.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget.
    selection : float
        Share of epsilon that the selection may use, between 0 and 1.
    n_measurements : int
        At most how many numbers the release will hold; each adds a tiny slack.

    Examples
    --------
    >>> parts = split(1.0, 0.01)
    >>> round(parts.selection, 3), round(parts.epsilon, 3), round(parts.release.mu, 3)
    (0.3, 0.946, 0.511)
    """
    epsilon, delta = promise(epsilon, delta)
    share = checks.number(selection, "selection", above=0.0, below=1.0)
    if n_measurements > MOST_MEASUREMENTS:
        raise ArgumentError("n_measurements", f"must be at most {MOST_MEASUREMENTS}", str(n_measurements))
    chosen = Exponential(share * epsilon)
    mu = largest(lambda mu: compose([chosen, Gaussian(mu, n_measurements)]).fits(epsilon, delta))
    if mu < 1e-12:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} leave nothing for a release after the selection; "
            "ask for larger ones, or for a smaller share of the selection."
        )
    # The plan's own calibration must not come out above mu, so its epsilon is rounded down: one number has
    # the least slack.
    own = compose([Gaussian(mu, 1)]).epsilon(delta) * (1 - 1e-9)
    return Split(chosen.epsilon, own, delta, Gaussian(mu, n_measurements))


def largest(fits: Callable[[float], bool]) -> float:
    """The largest size that fits, rounded down; sizes from 1e-18 on are tried."""
    low, high = 0.0, 1.0
    while high < 1e6 and fits(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _discrete(mu: float, epsilon: float, q: int) -> float:
    return _with_slack(lambda e: delta_of(mu, e), epsilon, q)


def _with_slack(continuous: Callable[[float], float], epsilon: float, q: int) -> float:
    """A bound for continuous noise, carried over to noise on the lattice (theorem 1)."""
    if q == 0:
        return continuous(epsilon)
    share = 1e-290  # of probability, for the noise to leave its ball
    s = slack(q, epsilon, share)
    left = math.nextafter(epsilon - (s.eta + s.eta_ball), 0.0)
    if left <= 0:
        return 1.0
    return math.exp(s.eta) * (continuous(left) + math.exp(min(0.0, left + s.log_tail)))


def _concentrated_delta(rho: float, epsilon: float) -> float:
    """delta of rho-zCDP at epsilon (Canonne, Kamath & Steinke 2020, corollary 13)."""
    low, high = -15.0, 15.0  # of log(alpha - 1); any alpha gives a valid bound
    for _ in range(50):
        alpha = 1 + math.exp((low + high) / 2)
        slope = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)  # of the bound's log, and it grows
        low, high = (low, (low + high) / 2) if slope > 0 else ((low + high) / 2, high)
    log_delta = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    return math.exp(min(0.0, log_delta))


def _selection_delta(chosen: float, mu: float, epsilon: float) -> float:
    """An upper bound on max over t in [0, chosen] of p delta(eps - t) + (1 - p) delta(eps - t + chosen).

    Within a cell of a grid over t, p is at most its value at the left end, and both deltas at most
    theirs at the right end, since delta falls as its epsilon grows.
    """
    worst = 0.0
    for cell in range(_CELLS):
        left, right = chosen * cell / _CELLS, chosen * (cell + 1) / _CELLS
        p = min(1.0, math.expm1(left - chosen) / math.expm1(-chosen) * (1 + 1e-12))
        both = delta_of(mu, epsilon - right), delta_of(mu, epsilon - right + chosen)
        worst = max(worst, p * both[0] + (1 - p) * both[1])
    return worst
