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
from dataclasses import dataclass
from typing import Any

from cloakgp.core import checks
from cloakgp.core.calibration import boundary, delta_of, promise, slack
from cloakgp.core.errors import ArgumentError, ArgumentTypeError


class Event:
    """What happened. Sizes that a kind does not have are 0."""

    mu: float = 0.0
    """Sensitivity over noise std, of Gaussian noise."""
    n_measurements: int = 0
    """On how many integers it is."""
    epsilon: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name, value in [*vars(self).items()]:
            object.__setattr__(self, name, _checked(name, value))

    @property
    def half_span(self) -> float:
        """Half of what the privacy loss spans, at most; 0 for Gaussian noise, of which mu says more."""
        return self.epsilon

    @property
    def pure(self) -> bool:
        """Whether it is pure DP: it has an epsilon, and no delta."""
        return self.epsilon > 0 and self.delta == 0


def _checked(name: str, value: Any) -> float:
    if name == "n_measurements":
        return checks.whole(value, name, least=1)
    if name == "delta":
        return checks.number(value, name, least=0.0, below=1.0)
    return checks.number(value, name, above=1e-100, below=1e7)  # floating point carries the formulas


@dataclass(frozen=True)
class Gaussian(Event):
    """Discrete Gaussian noise on `n_measurements` integers: mu = sensitivity / noise std."""

    mu: float
    n_measurements: int


@dataclass(frozen=True)
class Exponential(Event):
    """The exponential mechanism (Gumbel noisy max) at `epsilon`: pure DP of bounded range."""

    epsilon: float

    @property
    def half_span(self) -> float:
        """Its loss spans epsilon; that of other pure mechanisms up to twice as much."""
        return self.epsilon / 2


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise at `epsilon`."""

    epsilon: float


@dataclass(frozen=True)
class Approximate(Event):
    """Any (epsilon, delta)-DP mechanism; delta = 0 for pure DP."""

    epsilon: float
    delta: float = 0.0


MOST_MEASUREMENTS = 10**7
"""How many numbers may ever be released about one data set: fixes the lattice's slack beforehand."""

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Gaussian, Exponential, Laplace, Approximate)}


def to_spec(event: Event) -> dict[str, Any]:
    """An event as plain JSON."""
    return {"kind": type(event).__name__, **vars(event)}


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
            if not isinstance(event, Event):
                raise ArgumentTypeError(
                    "events",
                    f"must be {', '.join(_KINDS)}",
                    type(event).__name__,
                    "For a release, use Gaussian(certificate.mu, certificate.n_measurements).",
                )

    @property
    def mu(self) -> float | None:
        """Gaussian DP of the events, if all are Gaussian (lattice slack aside); else None."""
        return None if any(event.epsilon for event in self.events) else self._gaussians()[0]

    @property
    def rho(self) -> float | None:
        """Zero-concentrated DP of the events (lattice slack aside); None if one has delta > 0."""
        if any(event.delta for event in self.events):
            return None
        # Of pure DP: Bun & Steinke 2016, proposition 1.4; of bounded range: Cesar & Rogers 2021, lemma 3.4.
        return sum((event.mu**2 + event.half_span**2) / 2 for event in self.events)

    def delta(self, epsilon: float) -> float:
        """The smallest delta proven for this epsilon."""
        epsilon = checks.positive(epsilon, "epsilon")
        if not self.events:
            return 0.0
        rho, (mu, q), (first, *rest) = self.rho, self._gaussians(), self.events
        bounds = [self._basic(epsilon)]
        if rho is not None and self.mu is None:  # of Gaussians alone the first is exact
            bounds.append(_with_slack(lambda e: _concentrated_delta(rho, e), epsilon, q))
        if isinstance(first, Exponential) and rest and all(event.mu for event in rest):  # exact: theorem 9c
            bounds.append(_with_slack(lambda e: _selection_delta(first.epsilon, mu, e), epsilon, q))
        return min(1.0, *bounds)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon proven for this delta, rounded up."""
        delta = promise(1.0, delta)[1]
        if not self.events:
            return 0.0
        high = boundary(lambda epsilon: self.delta(epsilon) > delta)[1]
        return high if high <= 1e6 else math.inf

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether the events together are proven to be (epsilon, delta)-DP."""
        epsilon, delta = promise(epsilon, delta)
        return not self.events or self.delta(epsilon) <= delta

    def _gaussians(self) -> tuple[float, int]:
        mus, numbers = zip(*((event.mu, event.n_measurements) for event in self.events), strict=True)
        return math.sqrt(sum(mu**2 for mu in mus)), sum(numbers)

    def _basic(self, epsilon: float) -> float:
        """Gaussians by adding mu^2; everything else by adding its epsilon and delta on top."""
        left = epsilon - math.fsum(event.epsilon for event in self.events)  # exact but for one rounding
        delta = math.fsum(event.delta for event in self.events)
        mu, q = self._gaussians()
        if left < 0 or (left == 0 and q):
            return 1.0
        # Adaptive basic composition: the parts' epsilons and deltas add (Dwork & Roth 2014, theorem B.1).
        return delta + (_with_slack(lambda e: delta_of(mu, e), left, q) if q else 0.0)


def compose(events: Iterable[Event]) -> Spend:
    """What these events cost together, in the order in which they happened."""
    if isinstance(events, Event):
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
    return boundary(fits)[0]


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
    worst, cells = 0.0, 1000
    for cell in range(cells):
        left, right = chosen * cell / cells, chosen * (cell + 1) / cells
        p = min(1.0, math.expm1(left - chosen) / math.expm1(-chosen) * (1 + 1e-12))
        both = delta_of(mu, epsilon - right), delta_of(mu, epsilon - right + chosen)
        worst = max(worst, p * both[0] + (1 - p) * both[1])
    return worst
