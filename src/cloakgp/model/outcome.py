"""What an outcome is: a real number, yes or no, a count, or one of several classes; and how it hangs on f.

A Gaussian process may take any value. A probability may not, nor may a rate; so where outcomes are yes or no
the model is of f with Pr[yes] = Phi(f), and where they are counts, of f with rate exp(f). Of several classes
each is yes or no, with an f of its own. What is measured of outcomes is the same sums as ever: only the
reader's model of them differs.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError

REAL, YES_NO, COUNT, CLASSES = "real", "yes/no", "count", "classes"
CHANCES = (YES_NO, CLASSES)
"""Those that are zeros and ones."""
NO_YES = (False, True)
"""The two classes of yes/no outcomes, if nobody names others."""
MOST_CLASSES = 100
_COLUMNS = ("", " std", " lower", " upper", " noise_std")  # of a class, after its name
Label = str | bool | int | float
"""What a class may be called."""
_FAR = 3.5  # Phi of it is as good as 1
_RANGE = 1000.0  # a rate this many times below the upper bound is as good as 0


class Link(Protocol):
    """How an outcome hangs on f; `noise` is what its variance is multiplied by."""

    name: str
    signal: tuple[float, float]
    """Least and largest std of f about its level, if nobody says others."""
    noise: tuple[float, float]
    """The same of the noise's factor; equal where it is known."""
    windows: bool
    """Whether clipping outcomes to where they are expected can gain anything."""
    beyond: float
    """How far beyond these values of f (:meth:`latent`) its prior mean may be: farther, numbers run out."""

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Between which values f is expected."""
        ...

    def mean(self, f: FloatArray, bounds: tuple[float, float]) -> FloatArray:
        """E[y | f]: the probability, or the rate."""
        ...

    def variance(self, mean: FloatArray, noise: float | FloatArray) -> FloatArray:
        """Var[y | f], from the mean given f."""
        ...

    def clipped(
        self, mean: FloatArray, noise: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, given f, of an outcome clipped to [lower, upper]; infinite where it is not."""
        ...

    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        """E min(|y - centre|, limit) for an outcome with this mean and variance."""
        ...


class YesNo:
    """Pr[y = 1] = Phi(f)."""

    name = YES_NO
    signal, noise, windows, beyond = (0.1, 2.0), (1.0, 1.0), False, 4.5

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        return -_FAR, _FAR

    def mean(self, f: FloatArray, bounds: tuple[float, float]) -> FloatArray:
        from scipy.special import ndtr  # here: slow to import

        return np.asarray(ndtr(f))

    def variance(self, mean: FloatArray, noise: float | FloatArray) -> FloatArray:
        return np.asarray(noise * mean * (1 - mean))

    def clipped(
        self, mean: FloatArray, noise: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        no, yes = np.clip(0.0, lower, upper), np.clip(1.0, lower, upper)
        return no + (yes - no) * mean, (yes - no) ** 2 * self.variance(mean, noise)

    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        no, yes = np.minimum(np.abs(centre), limit), np.minimum(np.abs(1 - centre), limit)
        return np.asarray(no + (yes - no) * mean)


class OneOf(YesNo):
    """The same of each of several classes: is it this one? The f's know nothing of each other."""

    name = CLASSES


class Count:
    """y has mean exp(f), which is no larger than the upper bound, and variance `noise` times that.

    Where it matters what clipping does, y has a gamma law: whole numbers are not told from others.
    """

    name = COUNT
    signal, noise, windows, beyond = (0.1, 1.5), (0.3, 30.0), True, 20.0

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        return math.log(max(bounds[0], bounds[1] / _RANGE)), math.log(bounds[1])

    def mean(self, f: FloatArray, bounds: tuple[float, float]) -> FloatArray:
        return np.exp(np.minimum(f, math.log(bounds[1])))

    def variance(self, mean: FloatArray, noise: float | FloatArray) -> FloatArray:
        return np.asarray(noise * mean)

    def clipped(
        self, mean: FloatArray, noise: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        law = _Gamma(mean, noise * mean)
        below, above = law.up_to(lower), law.up_to(upper)
        low, high = np.where(np.isfinite(lower), lower, 0.0), np.where(np.isfinite(upper), upper, 0.0)
        moments = [low**k * below[0] + (above[k] - below[k]) + high**k * (1 - above[0]) for k in (1, 2)]
        return moments[0], np.maximum(moments[1] - moments[0] ** 2, 0.0)

    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        law = _Gamma(mean, variance)
        low, middle, high = (law.up_to(np.asarray(centre + part)) for part in (-limit, 0.0, limit))
        under = centre * (middle[0] - low[0]) - (middle[1] - low[1])
        over = (high[1] - middle[1]) - centre * (high[0] - middle[0])
        return np.asarray(under + over + limit * (low[0] + 1 - high[0]))


class _Gamma:
    """Gamma laws with these means and variances."""

    def __init__(self, mean: FloatArray, variance: FloatArray) -> None:
        mean = np.maximum(mean, 1e-12)
        self.mean, self.scale = mean, np.maximum(variance / mean, 1e-12)
        self.shape = mean / self.scale

    def up_to(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E[y^k; y < x] for k = 0, 1, 2."""
        from scipy.special import gammainc

        at = np.maximum(x, 0.0) / self.scale
        second = self.mean * (self.mean + self.scale)
        return (
            np.asarray(gammainc(self.shape, at)),
            np.asarray(self.mean * gammainc(self.shape + 1, at)),
            np.asarray(second * gammainc(self.shape + 2, at)),
        )


LINKS: dict[str, Link] = {YES_NO: YesNo(), COUNT: Count(), CLASSES: OneOf()}
OUTCOMES = (REAL, YES_NO, COUNT)


def as_outcome(outcome: Any, classes: Any = None) -> tuple[str, tuple[Label, ...]]:
    """The word for what outcomes are, and the classes that they are of, if these are named.

    Two classes are no and yes, in this order: one number tells which.
    """
    named = () if classes is None else as_classes(classes)
    found = {0: outcome, 2: YES_NO}.get(len(named), CLASSES)
    if not named:
        return checks.choice(outcome, "outcome", OUTCOMES), ()
    if outcome not in (REAL, found):
        raise ArgumentError("outcome", "must be left out where classes are named", repr(outcome))
    return found, named


def as_classes(classes: Any) -> tuple[Label, ...]:
    """Public names of classes: two or more, all different; an empty tuple is none."""
    remedy = (
        'Such as ("no", "yes"), or ("red", "green", "blue"): all that outcomes may be, from public knowledge.'
    )
    try:
        named = tuple(one.item() if isinstance(one, np.generic) else one for one in classes)
        fine = not isinstance(classes, str) and all(_is_label(one) for one in named)
    except TypeError:
        named, fine = (), False
    if not fine or len(named) == 1 or len(named) > MOST_CLASSES or len(set(named)) < len(named):
        expected = f"must be 2 to {MOST_CLASSES} different values: texts, whole numbers or truth values"
        raise ArgumentError("classes", expected, repr(classes)[:100], remedy)
    columns = [f"{one}{more}" for one in named for more in _COLUMNS]
    if len(set(columns)) < len(columns):
        remedy = "Tables of releases have columns such as 'bus' and 'bus std': name them otherwise."
        raise ArgumentError("classes", "must be told apart in tables", repr(classes)[:100], remedy)
    return named


def _is_label(one: Any) -> bool:
    return type(one) in (str, bool, int) or (type(one) is float and math.isfinite(one))


def _named(outcome: str) -> str:
    return CLASSES if outcome == CLASSES else f"{outcome} outcomes"


def bounds_for(outcome: str, bounds: Any) -> Any:
    """Bounds that go with an outcome: (0, 1) for yes and no, and no others."""
    if outcome in CHANCES:
        if bounds is None:
            return (0.0, 1.0)
        if tuple(np.ravel(np.asarray(bounds, dtype=object))) != (0, 1):
            remedy = "Leave them out. Outcomes are True and False, 1 and 0, or one of the classes."
            raise ArgumentError("bounds", f"must be (0, 1) for {_named(outcome)}", repr(bounds), remedy)
        return (0.0, 1.0)
    if outcome == COUNT:
        from cloakgp.model.windows import check_bounds

        low, high = check_bounds(bounds)
        if low < 0 or high <= 0:
            remedy = "Counts are 0, 1, 2 and so on: bounds=(0, 50), for example."
            raise ArgumentError("bounds", "must not be below 0 for counts", repr(bounds), remedy)
    return bounds


def of_outcome(outcome: str, noise: Any, mean: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    """A known model's noise and mean: of f, where outcomes are yes or no, or counts."""
    if outcome not in LINKS:
        return noise, mean
    if outcome in CHANCES and not (noise is None or (isinstance(noise, float) and noise == 1.0)):
        remedy = "The scatter of an outcome follows from its probability."
        raise ArgumentError("noise", f"must be left out for {_named(outcome)}", repr(noise), remedy)
    noise = 1.0 if noise is None else checks.positive(noise, "noise", "It is the variance over the mean.")
    link = LINKS[outcome]
    low, high = link.latent(bounds)
    if mean is None:
        mean = low + (high - low) / 2
        return noise, mean
    remedy = "It is f's: of yes/no the probit of the probability, of counts the logarithm of the rate."
    if not isinstance(mean, (int, float)) or isinstance(mean, bool):
        raise ArgumentError("mean", "must be one number", remedy=remedy)
    if not low - link.beyond <= mean <= high + link.beyond:
        expected = f"must be from {low - link.beyond:.3g} to {high + link.beyond:.3g} for {_named(outcome)}"
        raise ArgumentError("mean", expected, repr(mean), remedy)
    return noise, mean


def check_options(outcome: str, **given: Any) -> None:
    """Raise for what a plan cannot be asked for where outcomes are not real numbers."""
    allowed: dict[str, tuple[Any, ...]] = {
        "design": ("mse", "posterior"),  # the first is what is there if nobody says anything
        "calibration": ("analytic",),
        "device": (None,),
    }
    for name, value in given.items():
        if value not in allowed[name]:
            remedy = "Such a release is made for its denoised predictions, as those in stages are."
            raise ArgumentError(name, f"must be left out for {_named(outcome)}", repr(value), remedy)
