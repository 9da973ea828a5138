"""What is believed of a model before anything is known: public, from bounds and the inputs' ranges alone.

Lengthscales are from a thirtieth of each input's range to ten times that: with ten, an input does not matter.
A range is that of the middle nine tenths, so that one outlier does not stretch it. The signal's std is from
0.0001 to 0.4 and the noise's from 0.0001 to 0.3 of the bounds' width, since bounds may be careless. Between
these ends logarithms are nearly uniform: `Hyperprior.log_density` says how far from it. The level is unknown:
a constant with variance width^2 / 12, that of a number anywhere within the bounds. A grid stands for all but
the noise where there is one lengthscale, Sobol's points where there are more.

Before anything is measured, plans are made for what is usual: inputs that matter, and bounds that are not
careless. Otherwise a first stage would be made for curves that hardly differ from a constant.

With categories the smooth part is a sum: of the numbers, of each category, and of all together,

    k = w_0 k_num + w_1 [c_1 = c_1'] + ... + w_C [c_C = c_C'] + w_C+1 k_num (product over categories),

with shares w that add up to 1. Their ratios to the first are log-uniform, from 1/50 to 50. How far different
levels go together needs no number of its own: what they share is the level's and the numbers' part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from operator import add
from typing import Any, ClassVar, cast

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.kernels import EQ, Category, Constant, Kernel, Matern32, Matern52, Periodic
from cloakgp.model.gp import GaussianProcess
from cloakgp.model.point_sets import sobol
from cloakgp.model.windows import check_bounds

FAMILIES: dict[str, type[Any]] = {"EQ": EQ, "Matern32": Matern32, "Matern52": Matern52}
PERIODS = {"day": 1.0, "week": 7.0, "year": 365.25}
"""Of dates, in days."""
MOST_SEASONS = 10
_GRID = (10, 3, 10, 7)  # lengthscales, skews, signal stds, noise stds
_USUAL = {"lengthscale": (0.0, 1.0), "signal": (1 / 16, 1.0), "noise": (1 / 30, 1.0)}
"""Least and most of what is usual: lengthscales in ranges, signal and noise in the largest ones."""
_TILT = 0.3
"""Power of the signal's and the noise's stds in their prior density: bounds are seldom careless."""
_RATIO = 2.0
"""Std of the logarithm of signal over noise: of all sizes, those that are alike are the likeliest."""
_LONG = 1.0
"""Power of a lengthscale beyond one range by which its prior density falls: few inputs are idle."""
_SOBOL = 2**9
_GOLDEN = (math.sqrt(5) - 1) / 2
_SUMMED = 16  # kernels of a sum that stands for the mixture


@dataclass(frozen=True)
class Hyperprior:
    """A distribution over models, each a level, a smooth part and noise.

    Parameters
    ----------
    kernels : names out of {"EQ", "Matern32", "Matern52"}
        Families of the smooth part, all as likely.
    lengthscale : (least, most)
        As shares of each input's range, that of the middle nine tenths. With the most of them, by default ten
        ranges, an input does not matter.
    signal, noise : (least, most)
        Standard deviations as shares of the bounds' width.
    skew : (least, most)
        How much windows misjudge the mean of outcomes that are not Gaussian, in the noise's standard
        deviations.
    """

    kernels: tuple[str, ...] = ("EQ",)
    lengthscale: tuple[float, float] = (1 / 30, 10.0)
    signal: tuple[float, float] = (1e-4, 0.4)
    noise: tuple[float, float] = (1e-4, 0.3)
    skew: tuple[float, float] = (0.1, 3.0)
    categories: tuple[int, ...] = ()
    """Columns of the inputs that hold levels of a category, counted from 0: any two are equally far apart."""
    seasons: tuple[tuple[int, float], ...] = ()
    """Columns in which outcomes may repeat, and after how long: each has a part of its own."""

    gp: ClassVar[None] = None
    """The model, if it is known."""

    def __post_init__(self) -> None:
        if not isinstance(self.kernels, Iterable) or getattr(self.kernels, "ndim", 1) == 0:
            raise ArgumentTypeError("kernels", "must be names of families", type(self.kernels).__name__)
        families = (self.kernels,) if isinstance(self.kernels, str) else tuple(self.kernels)
        if not families:
            remedy = f"There are {', '.join(FAMILIES)}."
            raise ArgumentError("kernels", "must name at least one family", "none", remedy)
        for name in families:
            checks.choice(name, "kernels", FAMILIES)
        if len(set(families)) < len(families):
            raise ArgumentError("kernels", "must name each family once", repr(families))
        object.__setattr__(self, "kernels", families)
        for name in ("lengthscale", "signal", "noise", "skew"):
            least, most = _pair(getattr(self, name), name)
            object.__setattr__(self, name, (least, most))
        object.__setattr__(self, "categories", _columns(self.categories))
        object.__setattr__(self, "seasons", as_seasons(self.seasons, self.categories))

    def spans(self, X: FloatArray) -> FloatArray:
        """Ranges of the inputs that are numbers, in order: as wide as their middle nine tenths suggest."""
        low, high = np.quantile(X, (0.05, 0.95), axis=0, method="inverted_cdf")
        spans: FloatArray = np.where(high > low, (high - low) / 0.9, np.ptp(X, axis=0))
        categories = self.category_columns(X.shape[1])
        return spans[[column for column in range(X.shape[1]) if column not in categories]]

    def category_columns(self, columns: int) -> tuple[int, ...]:
        """Those of so many columns that hold levels."""
        if self.categories and max(self.categories) >= columns:
            raise ArgumentError(
                "categories",
                f"must be columns of X, which has {columns}",
                repr(self.categories),
                "Columns are counted from 0.",
            )
        return self.categories

    def ends(self, lengthscales: int) -> FloatArray:
        """(d, 2) logs of the least and the most: of lengthscales, shares' ratios, skew, signal and noise."""
        ratios = n_parts(lengthscales, len(self.categories), len(self.seasons)) - 1
        pairs = [self.lengthscale] * lengthscales + [(1 / 50, 50.0)] * ratios
        return np.asarray(np.log([*pairs, self.skew, self.signal, self.noise]))

    @property
    def usual(self) -> Hyperprior:
        """The part of it that plans are made for: inputs that matter, and bounds that are not careless."""
        ends = {}
        for name, (low, high) in _USUAL.items():
            least, most = getattr(self, name)
            scale = 1.0 if name == "lengthscale" else most
            ends[name] = (min(max(least, low * scale), most), max(min(most, high * scale), least))
        middle = math.sqrt(self.skew[0] * self.skew[1])
        return replace(self, **ends, skew=(middle, middle))

    def several(self, spans: FloatArray) -> bool:
        """Whether the smooth part's shape has several numbers open: too many for a grid."""
        return len(self.ends(len(spans))) > 4

    def log_density(
        self, points: FloatArray, lengthscales: int, noise: FloatArray | None = None
    ) -> FloatArray:
        """Log of the prior density over the uniform one's, but for a constant.

        `points` (..., d) are logs of shares, as :meth:`points` has them, and `noise` those of the noise. A
        lengthscale beyond one range is the less likely, the longer. With the bounds' width both stds are
        uncertain together, but bounds are seldom careless, so small ones are less likely; and a signal is
        seldom very much smaller or larger than the noise. With a link, whose bounds are no guess, there is
        nothing of that, and `noise` is left out.
        """
        density: FloatArray = -_LONG * np.maximum(points[..., :lengthscales], 0.0).sum(axis=-1)
        if noise is None:
            return density
        signal = points[..., -1]
        return density + _TILT * (signal + noise) - ((signal - noise) / _RATIO) ** 2 / 2

    def points(self, spans: FloatArray) -> FloatArray:
        """(n, d) logs of all that is open but the noise: a grid for one lengthscale, else Sobol's points."""
        return self._evenly(self.ends(len(spans))[:-1], _GRID[:-1])

    def settings(self, spans: FloatArray, width: float) -> list[Setting]:
        """Models that stand for the prior, for inputs of these ranges and outcomes of this width."""
        rows = self._evenly(self.ends(len(spans)), _GRID)
        families = self.kernels if len(spans) else self.kernels[:1]  # of levels alone, all are the same
        return [self.setting_at(family, row, spans, width) for family in families for row in rows]

    def _evenly(self, ends: FloatArray, grid: tuple[int, ...]) -> FloatArray:
        """(n, d) points of this box: one, if it is one."""
        if len(ends) <= len(grid):
            axes = zip(ends.tolist(), grid[-len(ends) :], strict=True)
            return np.array(list(product(*(np.linspace(a, b, n if a < b else 1) for (a, b), n in axes))))
        unit = sobol(len(ends), _SOBOL) + 0.5 / _SOBOL
        points: FloatArray = ends[:, 0] + unit * np.diff(ends).T
        return points if (ends[:, 1] > ends[:, 0]).any() else points[:1]

    def setting_at(self, family: str, logs: FloatArray, spans: FloatArray, width: float) -> Setting:
        """The model that these logs of shares stand for."""
        spans = np.where(spans > 0, spans, 1.0)
        return Setting.of(family, np.exp(logs), spans, width, self.categories, self.seasons)

    def reference(self, spans: FloatArray, width: float, lengthscale: float = 0.2) -> Setting:
        """The model by which f is interpolated while nothing is known; or another, with this lengthscale."""
        alike = [1.0] * (len(self.ends(len(spans))) - len(spans) - 3)
        shares = np.array([lengthscale] * len(spans) + alike + [0.3, 0.2, 0.1])
        return self.setting_at(self.kernels[0], np.log(shares), spans, width)

    def setting(self, **learned: Any) -> Setting:
        """One of its models, by what was learned of it."""
        return Setting(**learned, categories=self.categories, seasons=self.seasons)

    def model(self, X: Any, bounds: Any) -> GaussianProcess:
        """The one GP with the mean and the covariances of the whole mixture: to plan a release with.

        Its kernel is the mean of the kernels, a sum over lengthscales, and its noise the mean of the noises.
        A `posterior` design for it is the best for a reader who will learn the model afterwards, among
        reconstructions that are linear.
        """
        X, (low, high) = checks.matrix(X, "X"), check_bounds(bounds)
        spans = self.spans(X)
        settings = self.usual.settings(spans, high - low)
        # A few: a sum of hundreds of kernels would be slow.
        shapes = list({s.form: s for s in settings}.values())
        shapes = [shapes[i] for i in spread(len(shapes), _SUMMED)]
        signal = float(np.mean([s.signal for s in settings])) / len(shapes)
        smooth = [one.smooth(signal) for one in shapes]
        kernel = reduce(add, smooth) + Constant(settings[0].level)
        return GaussianProcess(kernel, float(np.mean([s.noise for s in settings])), (low, high))


Form = tuple[str, tuple[float, ...], tuple[float, ...]]
"""All that a shape hangs on: family, lengthscales, shares of its parts."""


@dataclass(frozen=True)
class Setting:
    """One model: all that the hyperprior leaves open."""

    family: str
    lengthscale: tuple[float, ...]
    signal: float
    """Variance of the smooth part."""
    level: float
    """Variance of the unknown level."""
    noise: float
    """Variance of one outcome about f."""
    categories: tuple[int, ...] = ()
    """Columns that hold levels: as in the hyperprior. They have no lengthscale."""
    shares: tuple[float, ...] = ()
    """Of the smooth part's variance: the numbers', each category's, all together's, and then each season's;
    none if it is one."""
    seasons: tuple[tuple[int, float], ...] = ()
    """Columns and periods: as in the hyperprior."""
    skew: float = 0.0
    """How much windows misjudge outcomes: see :mod:`cloakgp.posterior.skew`."""

    known: ClassVar[bool] = False
    """Whether it was not learned."""

    @classmethod
    def of(
        cls,
        family: str,
        numbers: FloatArray,
        spans: FloatArray,
        width: float,
        categories: tuple[int, ...] = (),
        seasons: tuple[tuple[int, float], ...] = (),
    ) -> Setting:
        """From lengthscales, signal and noise as shares of ranges and width, and the parts' ratios."""
        *first, skew, signal, noise = numbers.tolist()
        lengths, ratios = first[: len(spans)], first[len(spans) :]
        scales = tuple(float(share * span) for share, span in zip(lengths, spans, strict=True))
        variances = (signal * width) ** 2, width**2 / 12, (noise * width) ** 2
        parts = [1.0, *ratios] if ratios else []
        shares = tuple(part / sum(parts) for part in parts)
        return cls(family, scales, *variances, categories, shares, seasons, skew)

    @property
    def form(self) -> Form:
        """All that its shape hangs on."""
        return self.family, self.lengthscale, self.shares

    @cached_property
    def shape(self) -> Kernel:
        """The smooth part with variance 1."""
        return self.smooth(1.0)

    @property
    def kernel(self) -> Kernel:
        """The whole kernel, level included."""
        return self.smooth(self.signal) + Constant(self.level)

    def smooth(self, variance: float) -> Kernel:
        """The smooth part with this variance."""
        kind, columns, n = FAMILIES[self.family], self.categories, len(self.seasons)
        variances = [share * variance for share in self.shares] or [variance]
        own, repeated = variances[: len(variances) - n], variances[len(variances) - n :]
        if not columns:
            smooth = cast(Kernel, kind(list(self.lengthscale), variance=own[0]))
        elif len(own) == 1:  # one category, and nothing else
            smooth = Category(variance=own[0], active_dims=columns)
        else:  # of several categories, one is expected to matter beside the numbers
            smooth = Category(1 - 1 / len(columns), variance=own.pop(), active_dims=columns)
            if self.lengthscale:
                numbers = kind(list(self.lengthscale), active_dims=self.numeric)
                smooth = numbers * (Constant(own.pop(0)) + smooth)
            each = zip(columns, own, strict=True)
            smooth = reduce(add, (Category(variance=v, active_dims=[c]) for c, v in each), smooth)
        # A season's lengthscale stands for one or two rises and falls in each period.
        parts = (
            Periodic(1.0, variance=v, period=period, active_dims=[column])
            for v, (column, period) in zip(repeated, self.seasons, strict=True)
        )
        return reduce(add, parts, smooth)

    @property
    def numeric(self) -> tuple[int, ...]:
        """Columns that hold numbers, each with its lengthscale."""
        columns = range(len(self.lengthscale) + len(self.categories))
        return tuple(column for column in columns if column not in self.categories)

    def parts(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """What the shares are of, in words, for columns of these names."""
        if not self.shares:
            return ()
        if names is None:
            names = [f"column {place}" for place in range(1, 1 + len(self.lengthscale + self.categories))]
        numbers = ("numbers",) if self.lengthscale else ()
        together = ("together",) if self.categories else ()
        seasons = (f"{_in_words(period)} of {names[column]}" for column, period in self.seasons)
        return (*numbers, *(names[column] for column in self.categories), *together, *seasons)


def n_parts(lengthscales: int, categories: int, seasons: int = 0) -> int:
    """How many parts the smooth part has: numbers', each category's, that of all together, each season's."""
    alone = (lengthscales > 0) + categories
    return seasons + (alone if not categories or alone == 1 else alone + 1)


def as_seasons(seasons: Any, categories: Sequence[int] = ()) -> tuple[tuple[int, float], ...]:
    """Columns that hold numbers, and a period for each."""
    pairs = [tuple(pair) for pair in seasons]
    good = all(len(pair) == 2 and type(pair[0]) is int and pair[0] >= 0 for pair in pairs)
    if not good or len(set(pairs)) < len(pairs) or len(pairs) > MOST_SEASONS:
        expected = f"must be at most {MOST_SEASONS} different pairs of a column, counted from 0, and a period"
        raise ArgumentError("seasons", expected, repr(seasons)[:100])
    if any(column in categories for column, _ in pairs):
        raise ArgumentError("seasons", "must be of columns that hold numbers or dates, not levels")
    return tuple((column, checks.positive(period, "seasons")) for column, period in pairs)


def _in_words(period: float) -> str:
    return next((word for word, days in PERIODS.items() if days == period), f"period {period:g}")


@dataclass(frozen=True, eq=False)
class Known:
    """A model that is known: a hyperprior that leaves nothing open, and the one model of its mixture."""

    gp: GaussianProcess

    known: ClassVar[bool] = True
    family: ClassVar[str] = "known"
    kernels: ClassVar[tuple[str, ...]] = ()
    lengthscale: ClassVar[tuple[float, ...]] = ()
    signal: ClassVar[float] = 1.0
    level: ClassVar[float] = 0.0
    skew: ClassVar[float] = 0.0
    form: ClassVar[Form] = ("known", (), ())

    def spans(self, X: FloatArray) -> FloatArray:
        """(D,) ranges of inputs."""
        return np.asarray(np.ptp(X, axis=0))

    def category_columns(self, columns: int) -> tuple[int, ...]:
        """Those of so many columns that hold levels."""
        return self.gp.kernel.category_columns(columns)

    def several(self, spans: FloatArray) -> bool:
        """Whether there are several columns."""
        return len(spans) > 1

    @property
    def usual(self) -> Known:
        """Itself."""
        return self

    def settings(self, spans: FloatArray, width: float) -> list[Known]:
        """The one model."""
        return [self]

    def reference(self, spans: FloatArray, width: float, lengthscale: float = 0.2) -> Known:
        """The model by which f is interpolated while nothing is known."""
        return self

    def model(self, X: Any, bounds: Any) -> GaussianProcess:
        """The model itself."""
        return self.gp

    def parts(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """It has none that are told apart."""
        return ()

    @property
    def noise(self) -> float:
        assert isinstance(self.gp.noise, float)
        return self.gp.noise

    @property
    def shape(self) -> Kernel:
        return self.gp.kernel

    @property
    def kernel(self) -> Kernel:
        return self.gp.kernel


Prior = Hyperprior | Known
"""What is believed of a model beforehand."""
Candidate = Setting | Known
"""One model of a mixture: signal times shape, plus a level, plus noise; all variances."""


def spread(n: int, most: int) -> list[int]:
    """Up to so many of n places, in order and about evenly.

    By the golden ratio: at equal distances, of Sobol's points each 32nd, say, is in the same corner.
    """
    shares = np.arange(most) * _GOLDEN % 1.0
    return list(range(n)) if n <= most else sorted({int(share * n) for share in shares})


def _columns(value: Any) -> tuple[int, ...]:
    whole = isinstance(value, Sequence) and all(type(column) is int and column >= 0 for column in value)
    if not whole or len(set(value)) < len(value):
        expected = "must be different columns of X, counted from 0"
        raise ArgumentError("categories", expected, repr(value)[:100], "Such as categories=(2,).")
    return tuple(sorted(value))


def _pair(value: Any, name: str) -> tuple[float, float]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise ArgumentError(name, "must be two numbers, the least and the most", repr(value))
    least, most = (checks.positive(end, name) for end in value)
    if not least <= most or not math.isfinite(most):
        raise ArgumentError(name, "must have the least before the most, or both alike", repr(value))
    return least, most
