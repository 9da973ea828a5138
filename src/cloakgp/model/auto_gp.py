"""A Gaussian process of which nothing must be known but bounds: the rest is learned, privately, in stages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.columns import DATE, Columns
from cloakgp.model.hyperprior import PERIODS, Hyperprior
from cloakgp.model.inducing import check_inducing
from cloakgp.model.outcome import REAL, Label, Outcome, as_outcome
from cloakgp.model.windows import check_bounds

MOST_STAGES = 12


@dataclass(frozen=True, eq=False)
class LearnedGP:
    """All that is said of a model that is learned: see :class:`cloakgp.AutoGP`, which plans with it."""

    bounds: tuple[float, float]
    prior: Hyperprior
    stages: int | None
    inducing: int | FloatArray | None
    seasons: tuple[tuple[str | int, str | float], ...]
    outcome: str
    classes: tuple[Label, ...]

    def __init__(
        self,
        bounds: Any = None,
        *,
        outcome: str = REAL.name,
        classes: Any = None,
        kernels: Any = None,
        prior: Hyperprior | None = None,
        categories: Any = None,
        seasons: Mapping[str | int, Any] | None = None,
        stages: int | None = None,
        inducing: Any = None,
    ) -> None:
        if prior is not None and not isinstance(prior, Hyperprior):
            raise ArgumentTypeError("prior", "must be a cloakgp.Hyperprior", type(prior).__name__)
        if prior is not None and kernels is not None:
            raise ArgumentError("kernels", "must be left out where prior is given, which names them too")
        kind = as_outcome(outcome, classes)
        bounds = check_bounds(kind.bounds_from(bounds))
        prior = _prior(prior, kernels, kind, bounds)
        if categories is not None:
            prior = replace(prior, categories=categories)
        vars(self).update(
            bounds=bounds,
            prior=prior,
            stages=None if stages is None else checks.whole(stages, "stages", 1, MOST_STAGES),
            inducing=check_inducing(inducing),
            seasons=_pairs(seasons),
            outcome=kind.name,
            classes=kind.classes,
        )

    def prior_for(self, columns: Columns | None, width: int) -> Hyperprior:
        """What is believed beforehand of a table with these columns."""
        prior = self.prior
        if columns is not None and columns.categories:
            prior = replace(prior, categories=columns.categories)
        if not self.seasons:
            return prior
        return replace(prior, seasons=tuple(_season(*pair, columns, width) for pair in self.seasons))

    def __repr__(self) -> str:
        shown = f"bounds={self.bounds}, kernels={self.prior.kernels}"
        if self.classes:
            shown += f", classes={self.classes}"
        elif self.outcome != REAL.name:
            shown += f", outcome={self.outcome!r}"
        if self.prior.categories:
            shown += f", categories={self.prior.categories}"
        if self.stages is not None:
            shown += f", stages={self.stages}"
        return f"AutoGP({shown})"


def _prior(
    prior: Hyperprior | None, kernels: Any, outcome: Outcome, bounds: tuple[float, float]
) -> Hyperprior:
    """What is believed beforehand; of the noise of yes/no and counts, what they allow."""
    given = prior is not None
    if prior is None:
        prior = Hyperprior() if kernels is None else Hyperprior(kernels=kernels)
    link = outcome.link
    if link is None:
        return prior
    low, high = link.latent(bounds)
    least, most = (math.sqrt(factor) / (high - low) for factor in link.noise)
    signal = prior.signal if given else (link.signal[0] / (high - low), link.signal[1] / (high - low))
    return replace(prior, signal=signal, noise=(least, most), skew=(1.0, 1.0))  # windows are no lines there


def _pairs(seasons: Any) -> tuple[tuple[str | int, str | float], ...]:
    remedy = 'Such as {"date": ["week", "year"]}, or {0: 24.0} for a period in the unit of the first column.'
    if seasons is None:
        return ()
    if not isinstance(seasons, (Mapping, tuple)):
        raise ArgumentTypeError("seasons", "must say the periods of columns", type(seasons).__name__, remedy)
    listed = seasons.items() if isinstance(seasons, Mapping) else seasons  # a tuple of pairs is one's own
    each = ((name, [one] if isinstance(one, (str, int, float)) else one) for name, one in listed)
    pairs = tuple((name, period) for name, periods in each for period in periods)
    for name, period in pairs:
        if not isinstance(name, (str, int)) or (isinstance(period, str) and period not in PERIODS):
            expected = f"must be columns, and {', '.join(PERIODS)} or numbers as their periods"
            raise ArgumentError("seasons", expected, f"{name!r}: {period!r}"[:100], remedy)
    return pairs


def _season(name: str | int, period: str | float, columns: Columns | None, width: int) -> tuple[int, float]:
    """A column's number, and a period in its unit."""
    if isinstance(name, str):
        if columns is None:
            raise ArgumentError("seasons", "must count columns, since X has no names", repr(name))
        place = columns.place(name)
    else:
        place = name
    if not 0 <= place < width:
        raise ArgumentError("seasons", f"must be of columns of X, which has {width}", repr(name))
    if not isinstance(period, str):
        return place, float(period)
    if columns is not None and columns.inputs[place].kind != DATE:
        remedy = "Give the period as a number, in the column's unit."
        raise ArgumentError("seasons", f"must be a number for {columns.names[place]!r}", repr(period), remedy)
    return place, PERIODS[period]
