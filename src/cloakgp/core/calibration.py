"""From a promise (epsilon, delta) to the noise that keeps it, and back.

Everything is said in terms of mu = sensitivity / noise std. Gaussian noise keeps the promise
exactly when ``delta >= delta_of(mu, epsilon)`` (Balle & Wang 2018, theorem 8), so `analytic`
inverts that; `classic` is the paper's c(delta) = sqrt(2 log(2/delta)), kept for comparison.

The noise that is really drawn is a *discrete* Gaussian on the integers. ``docs/proofs.md``
(lemma 2) bounds what that costs, given that its standard deviation is at least `SIGMA_FLOOR`
lattice steps; :class:`Slack` holds the three numbers of that lemma.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloakgp.core import checks
from cloakgp.core.errors import Argument, Message

CALIBRATIONS = ("analytic", "classic")
SIGMA_FLOOR = 2**30
"""Least noise std, in lattice steps, for which the slack below is claimed."""
EPSILON_LIMIT = 1e6
"""Beyond this a promise is empty, and floating point no longer carries the formulas."""

DELTA_FLOOR = 1e-300
"""Below this, floating point no longer carries the formulas."""


@dataclass(frozen=True)
class Slack:
    """What discrete noise costs beside continuous noise: lemma 2 of ``docs/proofs.md``."""

    eta: float  # P(x) <= e^eta R(x) everywhere
    eta_ball: float  # R(x) <= e^eta_ball P(x) inside the ball
    log_tail: float  # log Pr[noise outside the ball]


def slack(n_measurements: int, epsilon: float, delta: float, sigma: float = SIGMA_FLOOR) -> Slack:
    """Slack of `n_measurements` discrete Gaussians with std `sigma` lattice steps."""
    q = n_measurements
    # Laurent & Massart (2000), lemma 1: Pr[chi2_q >= q + 2 sqrt(q x) + 2 x] <= exp(-x).
    tail_share = 1e-6  # share of delta given to the event that the noise leaves its ball
    x = epsilon - math.log(delta) - math.log(tail_share)
    radius = math.sqrt(q + 2 * math.sqrt(q * x) + 2 * x) + math.sqrt(q) / (2 * sigma)
    return Slack(eta=q / (24 * sigma**2), eta_ball=radius**2 / (24 * sigma**2), log_tail=-x)


def delta_of(mu: float, epsilon: float) -> float:
    """Upper bound on the delta of continuous Gaussian noise: the exact value, plus its rounding error.

    delta = Phi(a) - e^eps Phi(b) with a = mu/2 - eps/mu and b = -mu/2 - eps/mu.
    """
    a = mu / 2 - epsilon / mu
    b = -mu / 2 - epsilon / mu
    first = math.erfc(-a / math.sqrt(2)) / 2
    tail = math.erfc(-b / math.sqrt(2)) / 2
    # Where the tail underflows, or is subnormal and has lost its digits, leaving it out only makes the
    # bound larger.
    second = 0.0
    if tail >= sys.float_info.min:
        second = math.exp(epsilon) * tail if epsilon < 700 else math.exp(epsilon + math.log(tail))
    # erfc(x) is good to a few units in the last place, and a rounded x changes it by 2 x^2 units: each
    # term is within 1e-15 (1 + b^2) of itself, and the second is at most the first.
    safety = 1e-9  # relative margin, far above the rounding errors
    return (first - second) * (1 + safety) + 1e-14 * (1 + b**2) * first


def total_delta(mu: float, epsilon: float, delta: float, n_measurements: int) -> float:
    """Upper bound on the delta of the discrete mechanism, for noise std >= SIGMA_FLOOR steps."""
    s = slack(n_measurements, epsilon, delta)
    epsilon_left = math.nextafter(epsilon - (s.eta + s.eta_ball), 0.0)
    if epsilon_left <= 0:
        return 1.0
    return math.exp(s.eta) * (delta_of(mu, epsilon_left) + math.exp(epsilon_left + s.log_tail)) * (1 + 1e-15)


def delta_slack(mu: float, epsilon: float, delta: float, n_measurements: int) -> float:
    """The part of `delta` set aside for drawing the noise on a lattice."""
    return max(0.0, total_delta(mu, epsilon, delta, n_measurements) - delta_of(mu, epsilon))


class WeakPromiseWarning(UserWarning):
    """A promise is kept, and says little: its epsilon or its delta is large. Nothing private decides this."""


def default_delta(n: int) -> float:
    """The delta of a promise if nobody names one: the largest power of ten below 1 / (10 n).

    Parameters
    ----------
    n : int
        To how many the promise is made: people where they are the unit, else rows. Public.

    Examples
    --------
    >>> default_delta(287)
    0.0001
    """
    return float(f"1e-{len(str(10 * n))}")


def promise(epsilon: Any, delta: Any, n: int | None = None) -> tuple[float, float]:
    """epsilon and delta as floats, or a clear error.

    With `n`, to how many it is made, delta may be None, for :func:`default_delta`; and a weak promise warns.
    """
    epsilon = checks.number(
        epsilon, "epsilon", above=0.0, below=EPSILON_LIMIT, remedy="1 is a common choice."
    )
    if delta is None and n is not None:
        delta = default_delta(n)
    delta = checks.number(delta, "delta", above=DELTA_FLOOR, below=1.0, remedy="1e-5 is a common choice.")
    for said in [] if n is None else weaknesses(epsilon, delta, n):
        warnings.warn(said, WeakPromiseWarning, stacklevel=_outside())
    return epsilon, delta


def weaknesses(epsilon: float, delta: float, n: int) -> list[str]:
    """What is weak about a promise to `n`, in sentences."""
    said, weak = [], 5.0  # above which it is said, as OpenDP does
    if epsilon > weak:
        times = f"{math.exp(epsilon):.3g} times" if epsilon < 20 else "any number of times"
        said.append(
            f"epsilon {epsilon:g} is a weak promise: a result may become {times} as likely through one of "
            f"those it is made to. Above {weak:g} little is left of it; 1 is a common choice."
        )
    if delta > 1 / n:
        said.append(
            f"delta {delta:g} is a weak promise to {n}: above 1/{n}, it would be kept even by publishing one "
            f"of them, drawn by lot. The default is {default_delta(n):g}, the power of ten below 1/(10 n)."
        )
    return said


def _outside() -> int:
    """How far up the stack the first caller outside of this package is: whom a warning is for."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("cloakgp."):
        level, frame = level + 1, frame.f_back
    return level


def calibrate(epsilon: float, delta: float, method: str = "analytic", n_measurements: int = 1) -> float:
    """Largest mu for which (epsilon, delta) is proven, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        The promise: epsilon > 0 and 0 < delta < 1.
    method : {"analytic", "classic"}
        "classic" is the paper's formula. It is proven for epsilon <= 1 only and refused above.
    n_measurements : int
        How many numbers the release holds; each adds to the lattice's (tiny) slack.
    """
    epsilon, delta = promise(epsilon, delta)
    checks.choice(method, "calibration", CALIBRATIONS)
    analytic = _largest_mu(epsilon, delta, n_measurements)
    if method == "analytic":
        return analytic
    if epsilon > 1:
        raise ValueError(
            Message(
                Argument("calibration", "classic"),
                f" is proven only for epsilon <= 1; got epsilon={epsilon:g}. Above that its noise is too "
                "small for its promise. Use ",
                Argument("calibration", "analytic"),
                ", right for every epsilon.",
            )
        )
    return min(math.nextafter(epsilon / math.sqrt(2 * math.log(2 / delta)), 0.0), analytic)


def _largest_mu(epsilon: float, delta: float, n_measurements: int) -> float:
    def kept(mu: float) -> bool:  # a little less than delta, so that a slightly smaller mu is as good
        return total_delta(mu, epsilon, delta, n_measurements) <= delta * (1 - 1e-7)

    mu = boundary(kept)[0]
    if mu < 1e-12:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} are too small for noise on the lattice; "
            "ask for a larger epsilon or delta."
        )
    return mu


def boundary(fits: Callable[[float], bool]) -> tuple[float, float]:
    """The largest size that fits and the smallest that does not, which is the next float; from 1e-18 to 1e6.

    0 counts as fitting, without being tried.
    """
    low, high = 0.0, 1.0
    while high <= 1e6 and fits(high):
        low, high = high, 2 * high
    while high > 1e-18 and (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, high
