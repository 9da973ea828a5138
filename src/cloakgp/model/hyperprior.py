"""What is believed of a model before anything is known: public, from bounds and the inputs' ranges alone.

Lengthscales are log-uniform from a thirtieth of each input's range to all of it, the signal's std from 0.025
to 0.4 and the noise's from 0.01 to 0.3 of the bounds' width. The level is unknown: a constant with variance
width^2 / 12, that of a number anywhere within the bounds. A grid stands for it where there is one
lengthscale, Sobol's points where there are more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import add, mul
from typing import Any, Protocol, cast

import numpy as np

from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.errors import ArgumentError
from cloakgp.kernels import EQ, Category, Constant, Kernel, Matern32, Matern52
from cloakgp.model.gp import GP, check_bounds

FAMILIES: dict[str, type[Any]] = {"EQ": EQ, "Matern32": Matern32, "Matern52": Matern52}
_GRID = (6, 5, 7)  # lengthscales, signal stds, noise stds
_SOBOL = 2**9
_LEVELS_SPAN = 3.0  # of a category, in distances of levels: the longest lengthscale makes them nearly alike
_SUMMED = 16  # kernels of a sum that stands for the mixture


@dataclass(frozen=True)
class Hyperprior:
    """A distribution over models, each a level, a smooth part and noise.

    Parameters
    ----------
    kernels : names out of {"EQ", "Matern32", "Matern52"}
        Families of the smooth part, all as likely.
    lengthscale : (least, most)
        As shares of each input's range.
    signal, noise : (least, most)
        Standard deviations as shares of the bounds' width.
    """

    kernels: tuple[str, ...] = ("EQ",)
    lengthscale: tuple[float, float] = (1 / 30, 1.0)
    signal: tuple[float, float] = (0.025, 0.4)
    noise: tuple[float, float] = (0.01, 0.3)
    categories: tuple[int, ...] = ()
    """Columns of the inputs that hold levels of a category: any two are equally far apart."""

    def __post_init__(self) -> None:
        families = (self.kernels,) if isinstance(self.kernels, str) else tuple(self.kernels)
        if not families:
            remedy = f"There are {', '.join(FAMILIES)}."
            raise ArgumentError("kernels", "must name at least one family", "none", remedy)
        for name in families:
            checks.choice(name, "kernels", FAMILIES)
        if len(set(families)) < len(families):
            raise ArgumentError("kernels", "must name each family once", repr(families))
        object.__setattr__(self, "kernels", families)
        for name in ("lengthscale", "signal", "noise"):
            least, most = _pair(getattr(self, name), name)
            object.__setattr__(self, name, (least, most))

    def spans(self, X: FloatArray) -> FloatArray:
        """(D,) ranges of inputs; of a category, as many times as far as any two levels are apart."""
        spans = np.ptp(X, axis=0)
        spans[list(self.categories)] = _LEVELS_SPAN
        return np.asarray(spans)

    def settings(self, spans: FloatArray, width: float) -> list[Setting]:
        """Models that stand for the prior, for inputs of these ranges and outcomes of this width."""
        spans = np.where(spans > 0, spans, 1.0)
        if len(spans) == 1:
            axes = (_spread(ends, n) for ends, n in zip(self._ends(), _GRID, strict=True))
            shares = np.array(list(product(*axes)))
        else:
            from scipy.stats import qmc

            unit = qmc.Sobol(len(spans) + 2, scramble=False).random(_SOBOL) + 0.5 / _SOBOL
            shares = self._within(unit, len(spans))
        given = spans, width, self.categories
        return [Setting.of(family, row, *given) for family in self.kernels for row in shares]

    def model(self, X: Any, bounds: Any) -> GP:
        """The one GP with the mean and the covariances of the whole mixture: to plan a release with.

        Its kernel is the mean of the kernels, a sum over lengthscales, and its noise the mean of the noises.
        A `posterior` design for it is the best for a reader who will learn the model afterwards, among
        reconstructions that are linear.
        """
        X, (low, high) = checks.matrix(X, "X"), check_bounds(bounds)
        settings = self.settings(self.spans(X), high - low)
        if X.shape[1] > 1:  # a few that are spread: a sum of hundreds of kernels would be slow
            settings = settings[:: max(1, len(settings) // _SUMMED)]
        shapes = list(dict.fromkeys((s.family, s.lengthscale) for s in settings))
        signal = float(np.mean([s.signal for s in settings])) / len(shapes)
        smooth = [smooth_part(family, lengths, signal, self.categories) for family, lengths in shapes]
        kernel = reduce(add, smooth) + Constant(settings[0].level)
        return GP(kernel, float(np.mean([s.noise for s in settings])), (low, high))

    def _ends(self) -> tuple[tuple[float, float], ...]:
        return self.lengthscale, self.signal, self.noise

    def _within(self, unit: FloatArray, columns: int) -> FloatArray:
        """Points of the unit cube as shares: log-uniform between the ends."""
        ends = np.log([self.lengthscale] * columns + [self.signal, self.noise])
        result: FloatArray = np.exp(ends[:, 0] + unit * (ends[:, 1] - ends[:, 0]))
        return result


class Candidate(Protocol):
    """One model of a mixture: signal times shape, plus a level, plus noise; all variances."""

    @property
    def family(self) -> str: ...
    @property
    def lengthscale(self) -> tuple[float, ...]: ...
    @property
    def signal(self) -> float: ...
    @property
    def level(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def shape(self) -> Kernel: ...
    @property
    def kernel(self) -> Kernel: ...


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
    """Columns that hold levels: as in the hyperprior."""

    @classmethod
    def of(
        cls,
        family: str,
        shares: FloatArray,
        spans: FloatArray,
        width: float,
        categories: tuple[int, ...] = (),
    ) -> Setting:
        *lengths, signal, noise = shares.tolist()
        scales = tuple(float(share * span) for share, span in zip(lengths, spans, strict=True))
        return cls(family, scales, (signal * width) ** 2, width**2 / 12, (noise * width) ** 2, categories)

    @property
    def shape(self) -> Kernel:
        """The smooth part with variance 1."""
        return smooth_part(self.family, self.lengthscale, 1.0, self.categories)

    @property
    def kernel(self) -> Kernel:
        """The whole kernel, level included."""
        smooth = smooth_part(self.family, self.lengthscale, self.signal, self.categories)
        return smooth + Constant(self.level)


def smooth_part(
    family: str, lengthscale: Sequence[float], variance: float, categories: tuple[int, ...] = ()
) -> Kernel:
    """A family's kernel, times one for each category: levels at distance 1, by its lengthscale."""
    kind = FAMILIES[family]
    if not categories:
        return cast(Kernel, kind(list(lengthscale), variance=variance))
    numeric = [column for column in range(len(lengthscale)) if column not in categories]
    factors: list[Kernel] = [
        Category(math.exp(-1 / (2 * lengthscale[column] ** 2)), active_dims=[column]) for column in categories
    ]
    if numeric:
        factors.insert(0, kind([lengthscale[column] for column in numeric], active_dims=numeric))
    return reduce(mul, factors) * variance


@dataclass(frozen=True, eq=False)
class Known:
    """A model that is known, as a hyperprior that leaves nothing open."""

    gp: GP

    def spans(self, X: FloatArray) -> FloatArray:
        """(D,) ranges of inputs."""
        return np.asarray(np.ptp(X, axis=0))

    def settings(self, spans: FloatArray, width: float) -> list[KnownSetting]:
        """The one model."""
        return [KnownSetting(self.gp)]

    def model(self, X: Any, bounds: Any) -> GP:
        """The model itself."""
        return self.gp


@dataclass(frozen=True, eq=False)
class KnownSetting:
    """A known model as one of a mixture."""

    gp: GP
    family: str = "known"
    lengthscale: tuple[float, ...] = ()
    signal: float = 1.0
    level: float = 0.0

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


def _spread(ends: tuple[float, float], n: int) -> FloatArray:
    """Numbers between two ends, or the one that both are."""
    return np.geomspace(*ends, n if ends[0] < ends[1] else 1)


def _pair(value: Any, name: str) -> tuple[float, float]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise ArgumentError(name, "must be two numbers, the least and the most", repr(value))
    least, most = (checks.positive(end, name) for end in value)
    if not least <= most or not math.isfinite(most):
        raise ArgumentError(name, "must have the least before the most, or both alike", repr(value))
    return least, most
