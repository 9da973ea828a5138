"""What an outcome is: a number, yes or no, a count, or one of several classes; and how it hangs on f.

A Gaussian process may take any value. A probability may not, nor may a rate; so where outcomes are yes or no
the model is of f with Pr[yes] = Phi(f), and where they are counts, of f with rate exp(f). Of several classes
each is yes or no, with an f of its own. What is measured of outcomes is the same sums as ever: only the
reader's model of them differs.

Whatever differs between outcomes is said here, and everybody else asks the :class:`Outcome`. Only the private
room knows how cells of a table are read, which :attr:`Outcome.cells` names.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError
from cloakgp.model.windows import check_bounds

OutcomeName = Literal["real", "yes/no", "count"]
"""What users say. Where classes are named, it can be left out."""
NUMBERS, ANSWERS = "numbers", "answers"
"""How cells are read where no classes are named: as they are, or as 1 and 0 alone."""
NAMELESS = ("y", "outcome")
"""What outcomes are called that have no name."""
MOST_CLASSES = 100
_COLUMNS = ("", " std", " lower", " upper", " noise_std")  # of a class, after its name
Label = str | bool | int | float
"""What a class may be called."""


@dataclass(frozen=True)
class Outcome(ABC):
    """What outcomes are. Where nothing else is said, it is as for numbers."""

    classes: tuple[Label, ...] = ()
    """All that an outcome may be, where users name that."""

    name: ClassVar[str]
    """In settings and files."""
    words: ClassVar[str]
    """In a sentence: outcomes are ..."""
    plural: ClassVar[str]
    """In messages."""
    lead: ClassVar[str]
    """What a release is of: the beginning of a sentence."""
    told: ClassVar[str] = ""
    """What predictions are of, if not of f: a probability, or a rate."""
    told_as: ClassVar[str] = ""
    """What that is of an outcome."""
    noise_words: ClassVar[str] = "noise"
    """What the model's noise is."""
    cells: ClassVar[str] = NUMBERS
    """How cells of a table are read."""
    class_numbers: ClassVar[Sequence[int]] = (0,)
    """How many classes may be named."""
    fixed_bounds: ClassVar[tuple[float, float] | None] = None
    """If there is no choice."""
    least: ClassVar[float] = -math.inf
    """Bounds are not below it."""
    stages: ClassVar[int] = 7
    """How many there are if nobody says."""
    kappa: ClassVar[float | None] = 1.5
    """Half a window's width, in standard deviations of what is expected of an outcome; None where clipping
    outcomes gains nothing, and stages shape the design only."""

    shaped: ClassVar[bool] = False
    """Whether the shape of their scatter, which does not follow from f, is measured if a model is learned."""

    @property
    def link(self) -> Link | None:
        """How outcomes hang on f, if they are not f and noise."""
        return None

    @property
    def scattered(self) -> bool:
        """Whether noise is the model's, and does not follow from f."""
        return True

    @property
    def percent(self) -> bool:
        """Whether predictions are probabilities, and so shown as shares of all."""
        return self.told == "probability"

    @property
    def labels(self) -> tuple[Label, ...]:
        """What there are probabilities of, in their order."""
        return self.classes

    @property
    def curves(self) -> int:
        """How many functions there are: one for each of several classes."""
        return 1

    @property
    def in_detail(self) -> str:
        """What outcomes are, and what is told of them."""
        named = f": {', '.join(map(str, self.classes))}" if self.classes else ""
        return f"{self.words}, told as {self.told_as}{named}" if self.told else self.words

    def told_of(self, name: str) -> str:
        """What predictions are of, for an outcome of this name."""
        return f"{self.told} of {name}" if self.told else name

    def unit_words(self, name: str) -> str:
        """In what a std is told."""
        return f"as a {self.told}" if self.told else f"in {name}'s unit"

    def named(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of predictions by names that say what they are."""
        return {self.told or name if name == "mean" else name: values for name, values in found.items()}

    def axis(self, low: float, high: float) -> tuple[float, float]:
        """Ends of an axis for predictions, where they reach from `low` to `high`."""
        return low, high

    def bounds_from(self, bounds: Any) -> Any:
        """Bounds that go with it; or why these do not."""
        return bounds

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Between which values f is expected."""
        return bounds

    def noise_and_mean(self, noise: Any, mean: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        """A known model's: of f, where that is not what outcomes are in."""
        return noise, mean

    def check_options(self, **given: Any) -> None:
        """Raise for what a plan cannot be asked for: of numbers, for nothing."""
        return

    def __str__(self) -> str:
        return self.name


class Number(Outcome):
    """f and noise."""

    name, words, plural = "real", "real numbers", "real outcomes"
    lead = "A Gaussian-process regression of"
    shaped = True


class Link(Outcome):
    """Outcomes whose mean is a function of f; `noise` is what their variance is multiplied by."""

    signal: ClassVar[tuple[float, float]]
    """Least and largest std of f about its level, if nobody says others."""
    noise: ClassVar[tuple[float, float]]
    """The same of the noise's factor; equal where it is known."""
    beyond: ClassVar[float]
    """How far beyond :meth:`latent` f's prior mean may be: farther, numbers run out."""

    @property
    def link(self) -> Link:
        return self

    @property
    def scattered(self) -> bool:
        return self.noise[0] < self.noise[1]

    @abstractmethod
    def mean(self, f: FloatArray, bounds: tuple[float, float]) -> FloatArray:
        """E[y | f]: the probability, or the rate."""

    @abstractmethod
    def variance(self, mean: FloatArray, noise: float | FloatArray) -> FloatArray:
        """Var[y | f], from the mean given f."""

    @abstractmethod
    def clipped(
        self, mean: FloatArray, noise: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, given f, of an outcome clipped to [lower, upper]; infinite where it is not."""

    @abstractmethod
    def distance(
        self, mean: FloatArray, variance: FloatArray, centre: FloatArray, limit: float
    ) -> FloatArray:
        """E min(|y - centre|, limit) for an outcome with this mean and variance."""

    def noise_and_mean(self, noise: Any, mean: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        if not (self.scattered or noise is None or (isinstance(noise, float) and noise == 1.0)):
            remedy = "The scatter of an outcome follows from its probability."
            raise ArgumentError("noise", f"must be left out for {self.plural}", repr(noise), remedy)
        noise = 1.0 if noise is None else checks.positive(noise, "noise", "It is the variance over the mean.")
        low, high = self.latent(bounds)
        if mean is None:
            return noise, low + (high - low) / 2
        remedy = "It is f's: of yes/no the probit of the probability, of counts the logarithm of the rate."
        if not isinstance(mean, (int, float)) or isinstance(mean, bool):
            raise ArgumentError("mean", "must be one number", remedy=remedy)
        low, high = low - self.beyond, high + self.beyond
        if not low <= mean <= high:
            expected = f"must be from {low:.3g} to {high:.3g} for {self.plural}"
            raise ArgumentError("mean", expected, repr(mean), remedy)
        return noise, mean

    def check_options(self, **given: Any) -> None:
        allowed: dict[str, tuple[Any, ...]] = {
            "design": ("mse", "posterior"),  # the first is what is there if nobody says anything
            "calibration": ("analytic",),
            "device": (None,),
        }
        for name, value in given.items():
            if value not in allowed[name]:
                remedy = "Such a release is made for its denoised predictions, as those in stages are."
                raise ArgumentError(name, f"must be left out for {self.plural}", repr(value), remedy)


class YesNo(Link):
    """Pr[y = 1] = Phi(f)."""

    name, words, plural = "yes/no", "yes or no", "yes/no outcomes"
    lead = "Probabilities of a yes by a Gaussian process, from"
    told, told_as = "probability", "the probability of yes"
    cells, fixed_bounds, least = ANSWERS, (0.0, 1.0), 0.0
    class_numbers: ClassVar[Sequence[int]] = (0, 2)
    stages, kappa = 2, None
    signal, noise, beyond = (0.1, 2.0), (1.0, 1.0), 4.5

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.classes or (False, True)

    @property
    def in_detail(self) -> str:
        if not self.classes:
            return super().in_detail
        no, yes = self.classes
        return f"{self.words}, told as {self.told_as}; {yes!r} is yes, and {no!r} is no"

    def told_of(self, name: str) -> str:
        yes = self.classes[1] if self.classes else "yes" if name in NAMELESS else name
        return f"probability of {yes}"

    def named(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Its std and interval are those of yes."""
        no, yes = self.classes or ("no", "yes")
        rest = {name: values for name, values in found.items() if name != "mean"}
        return {f"probability_{no}": 1 - found["mean"], f"probability_{yes}": found["mean"], **rest}

    def axis(self, low: float, high: float) -> tuple[float, float]:
        # All of it, unless a yes is so rare, or so common, that nothing would be seen.
        return (0.0, 1.0) if high - low > 0.2 else (max(low, 0.0), min(high, 1.0))

    def bounds_from(self, bounds: Any) -> Any:
        if bounds is not None and tuple(np.ravel(np.asarray(bounds, dtype=object))) != self.fixed_bounds:
            remedy = "Leave them out. Outcomes are True and False, 1 and 0, or one of the classes."
            raise ArgumentError("bounds", f"must be (0, 1) for {self.plural}", repr(bounds), remedy)
        return self.fixed_bounds

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        return -3.5, 3.5  # Phi of it is as good as 1

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

    name, words, plural = "classes", "one of several classes", "classes"
    lead, told_as = "Probabilities of classes by a Gaussian process, from", "their probabilities"
    class_numbers = range(3, MOST_CLASSES + 1)
    in_detail = Outcome.in_detail

    @property
    def curves(self) -> int:
        return len(self.classes)

    def told_of(self, name: str) -> str:
        return f"probability of each {'class' if name in NAMELESS else name}"

    def named(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {self._of_class(name): values for name, values in found.items()}

    def _of_class(self, name: str) -> str:
        """A column of predictions of one class: ``bus`` or ``bus lower``, as probability_bus or lower_bus."""
        if name in map(str, self.classes):
            return f"probability_{name}"
        of, _, what = name.rpartition(" ")
        return f"{what}_{of}"


class Count(Link):
    """y has mean exp(f), which is no larger than the upper bound, and variance `noise` times that.

    Where it matters what clipping does, y has a gamma law: whole numbers are not told from others.
    """

    name, words, plural = "count", "counts", "count outcomes"
    lead = "Rates of counts by a Gaussian process, from"
    told, told_as, noise_words = "rate", "their rate", "variance of a count"
    least, stages, kappa = 0.0, 5, 3.0
    signal, noise, beyond = (0.1, 1.5), (0.3, 30.0), 20.0

    def axis(self, low: float, high: float) -> tuple[float, float]:
        return 0.0, high

    def bounds_from(self, bounds: Any) -> Any:
        low, high = check_bounds(bounds)
        if low < self.least or high <= self.least:
            remedy = "Counts are 0, 1, 2 and so on: bounds=(0, 50), for example."
            raise ArgumentError("bounds", "must not be below 0 for counts", repr(bounds), remedy)
        return bounds

    def latent(self, bounds: tuple[float, float]) -> tuple[float, float]:
        low, high = bounds
        return math.log(max(low, high / 1000)), math.log(high)  # a rate so far below is as good as 0

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


REAL = Number()
OUTCOMES: dict[str, type[Outcome]] = {one.name: one for one in (Number, YesNo, Count, OneOf)}
"""All there are: a closed set, since those who verify must know it."""


def as_outcome(outcome: Any, classes: Any = None) -> Outcome:
    """What outcomes are, by a word or by the names of their classes; or why that cannot be.

    Two classes are no and yes, in this order: one number tells which.
    """
    labels = () if classes is None else as_classes(classes)
    if not labels:
        return OUTCOMES[checks.choice(outcome, "outcome", get_args(OutcomeName))]()
    found = outcome_named(outcome, labels)
    if outcome not in (REAL.name, found.name):
        raise ArgumentError("outcome", "must be left out where classes are named", repr(outcome))
    return found


def outcome_named(name: str, classes: Sequence[Label] = ()) -> Outcome:
    """The same from what was checked before."""
    by_number = {0: name, 2: YesNo.name}
    return OUTCOMES[by_number.get(len(classes), OneOf.name)](tuple(classes))


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
