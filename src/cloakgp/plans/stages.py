"""One stage of a release that is made in several: what it measures, and the walk from one to the next.

A stage is planned from what the stages before it made public, and from nothing else: windows close in on
where outcomes are expected, and the measurement is designed for what is still unknown. So all of this file is
public, and anybody who holds the answers can walk again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp.calibration import total_delta
from cloakgp.checks import FloatArray, frozen
from cloakgp.files import container
from cloakgp.files.container import Array
from cloakgp.measurements.lattice import IntArray, Measurement, Part, to_integers
from cloakgp.measurements.spread import Spread, make_spread
from cloakgp.model.hyperprior import Hyperprior
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import Line
from cloakgp.posterior.mixture import Mixture, Reading, SpreadReading, State
from cloakgp.rows.merging import Inputs, distinct

ARRAYS = ("matrix", "lower", "upper", "slope", "shift", "extra", "centre")
"""Of a stage, in a file."""
_ROUNDING = 1e-12  # far above the rounding errors in a dozen shares, far below what noise could show


@dataclass(frozen=True, eq=False)
class StagePlan:
    """What a stage will measure: public, and fixed before y is read."""

    measurement: Measurement
    spread: Spread | None
    """One more number, for the noise level; not in a first stage."""
    line: Line | None
    """What its windows do to outcomes; None where they are the bounds."""

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """What is measured, in the order of the answer."""
        return (self.measurement,) if self.spread is None else (self.measurement, self.spread)

    @property
    def n_measurements(self) -> int:
        return sum(part.n_measurements for part in self.parts)

    @property
    def mu_squared(self) -> float:
        """What it spends."""
        return sum(part.mu() ** 2 for part in self.parts)

    def described(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """As words and arrays."""
        m, s = self.measurement, self.spread
        arrays: dict[str, Any] = {"matrix": m.matrix}
        if self.line is not None:
            arrays |= {"lower": m.lower, "upper": m.upper}
            arrays |= {"slope": self.line.slope, "shift": self.line.shift, "extra": self.line.extra}
        words: dict[str, Any] = {**_lattice_words(m), "spread": None}
        if s is not None:
            words["spread"] = {**_lattice_words(s), "limit": s.limit}
            arrays["centre"] = s.centre
        return words, {name: np.asarray(array) for name, array in arrays.items()}

    def to_bytes(self) -> bytes:
        """For a ledger, which keeps it until the stage is answered."""
        return container.pack(*self.described())

    @classmethod
    def from_bytes(cls, contents: bytes, rule: Rule, number: int) -> StagePlan:
        """What :meth:`to_bytes` wrote."""
        words, arrays, _ = container.unpack(contents)
        return cls.from_described(words, arrays, rule, number)

    @classmethod
    def from_described(
        cls, words: dict[str, Any], arrays: dict[str, Array], rule: Rule, number: int
    ) -> StagePlan:
        """What :meth:`described` gave; whatever it says, the private room checks the integers."""
        shares = rule.shares_of(number)
        groups, low, high = rule.inputs.groups, *rule.bounds
        promise: dict[str, Any] = {"epsilon": rule.epsilon, "delta": rule.delta, "groups": groups}
        line = None
        if "slope" in arrays:
            line = Line(arrays["slope"], arrays["shift"], arrays["extra"])
        measurement = Measurement(
            matrix=arrays["matrix"],
            lower=arrays.get("lower", low),
            upper=arrays.get("upper", high),
            part=Part(shares[0], rule.most),
            **_lattice_of(words),
            **promise,
        )
        spread = None
        if words["spread"] is not None:
            spread = Spread(
                matrix=_equal_columns(words["spread"], len(arrays["centre"])),
                lower=low,
                upper=high,
                part=Part(shares[1], rule.most),
                centre=arrays["centre"],
                limit=words["spread"]["limit"],
                **_lattice_of(words["spread"]),
                **promise,
            )
        return cls(measurement, spread, line)


def _lattice_words(m: Measurement) -> dict[str, Any]:
    names = ("y_bits", "matrix_bits", "sigma")
    return {name: getattr(m, name) for name in names} | {"sensitivity_steps": m.sensitivity()}


def _lattice_of(words: dict[str, Any]) -> dict[str, Any]:
    return {name: words[name] for name in ("y_bits", "matrix_bits", "sigma")}


def _equal_columns(words: dict[str, Any], n: int) -> IntArray:
    return frozen(np.full((1, n), 2 ** words["matrix_bits"], dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage that was answered: what it measured, in which windows, and what came out."""

    plan: StagePlan
    answer: IntArray
    """Noisy integers: all that this stage left behind of y."""

    @property
    def z(self) -> IntArray:
        """(q,) noisy measurements."""
        return self.answer[: self.plan.measurement.n_measurements]

    @property
    def lower(self) -> float | FloatArray:
        """Lower edges of the windows, one for each distinct row of X; the bound in a first stage."""
        return self.plan.measurement.lower

    @property
    def upper(self) -> float | FloatArray:
        """Upper edges of the windows."""
        return self.plan.measurement.upper

    @property
    def mu(self) -> float:
        """What it spent."""
        return math.sqrt(self.plan.mu_squared)

    @property
    def distance(self) -> float | None:
        """Mean distance of outcomes from what was expected, with noise, if this stage measured it."""
        spread = self.plan.spread
        return None if spread is None else spread.mean_distance(self.answer[-1:])

    def reading(self, middle: float) -> Reading:
        """What it says of f less the middle of the bounds."""
        m, line = self.plan.measurement, self.plan.line
        rows, n = m.real_matrix(), m.counts
        edge = m.lower + (m.upper - m.lower) / 2
        value = (self.z - m.midpoint).astype(np.float64) * m.step
        covariance = m.noise_scale**2 * np.eye(len(rows))
        if line is None:
            return Reading(rows, np.ones(len(n)), value + rows @ (n * (edge - middle)), covariance)
        value = value - line.shift + rows @ (n * (edge - line.slope * middle))
        return Reading(rows, line.slope, value, covariance + line.extra)

    def spread_reading(self, middle: float) -> SpreadReading | None:
        """What it says of the noise level."""
        s, distance = self.plan.spread, self.distance
        if s is None or distance is None:
            return None
        return SpreadReading(s.centre - middle, s.limit, distance, s.std**2)


@dataclass(frozen=True, eq=False)
class Rule:
    """All that decides how stages follow from each other: public, and fixed before the first."""

    prior: Hyperprior
    bounds: tuple[float, float]
    X: FloatArray
    X_star: FloatArray
    weights: FloatArray
    support: FloatArray | None
    """Inputs that stand for all, where there are many; None where each stands for itself."""
    schedule: staging.Schedule
    epsilon: float
    delta: float
    mu: float
    """Of the whole promise."""
    most: int
    """At most how many numbers will be released."""

    @cached_property
    def inputs(self) -> Inputs:
        """X without its repetitions."""
        return distinct(self.X, 0.0)

    @property
    def middle(self) -> float:
        return self.bounds[0] + (self.bounds[1] - self.bounds[0]) / 2

    @property
    def n_stages(self) -> int:
        return len(self.schedule.shares)

    def shares_of(self, number: int) -> tuple[float, float]:
        """A stage's shares of mu squared: for its measurements, and for the noise level."""
        share = self.schedule.shares[number]
        spread = share * staging.SCALE_SHARE if number else 0.0
        return share - spread, spread

    def mu_of(self, share: float) -> float:
        """What a part may spend: a hair less than its share, so that no rounding adds up to more than all."""
        return self.mu * math.sqrt(share) * (1 - _ROUNDING)

    def check(self, stages: Sequence[StagePlan]) -> None:
        """Raise unless these stages, exactly, and those to come keep the promise: theorem 17.

        That each has the noise that it says, the private room checks.
        """
        shares, parts = self.schedule.shares, [part for stage in stages for part in stage.parts]
        if not sum(part.n_measurements for part in parts) <= self.most:
            raise AssertionError("stages release more numbers than were counted")
        # "not <=" rather than ">": it must fail for NaN too.
        if not (min(shares) > 0 and math.fsum(shares) <= 1 + _ROUNDING):
            raise AssertionError("stages have more than all of the promise between them")
        if not total_delta(self.mu, self.epsilon, self.delta, self.most) <= self.delta:
            raise AssertionError("noise of all stages is too small for (epsilon, delta)")
        if not sum(Fraction(part.mu()) ** 2 for part in parts) <= Fraction(self.mu) ** 2:
            raise AssertionError("stages spend more than was promised")


class Walk:
    """From stage to stage."""

    def __init__(self, rule: Rule, start: State | None = None) -> None:
        self.rule, inputs = rule, rule.inputs
        width = rule.bounds[1] - rule.bounds[0]
        self.mixture = Mixture(rule.prior, inputs.X, inputs.counts, rule.X_star, width, rule.support)
        self.state: State = self.mixture.start() if start is None else start
        self.readings: list[Reading] = []
        self.spreads: list[SpreadReading] = []

    def next_stage(self, number: int) -> StagePlan:
        """The plan of a stage, from all that was answered before it."""
        rule, middle, groups = self.rule, self.rule.middle, self.rule.inputs.groups
        low, high = rule.bounds
        share, spread_share = rule.shares_of(number)
        mu = rule.mu_of(share)
        centred = (low - middle, high - middle)
        if number:
            window = staging.windows(self.state, centred, rule.schedule.kappa)
        else:
            same = np.ones(len(self.mixture.counts))
            window = centred[0] * same, centred[1] * same
        stage = staging.Stage(self.state, window, centred, mu, rule.weights)
        unit = window[1] - window[0]
        B = stage.rows() * unit
        limits: tuple[Any, Any] = (low, high)
        if number:
            lower = np.where(window[0] <= centred[0], low, middle + window[0])
            upper = np.where(window[1] >= centred[1], high, middle + window[1])
            limits = frozen(lower), frozen(upper)
        promise = (rule.epsilon, rule.delta)
        part = Part(share, rule.most)
        m = to_integers(B, limits, *promise, mu, groups=groups, part=part)
        if not number:
            return StagePlan(m, None, None)
        rows, clip = m.real_matrix(), stage.clip
        shift = rows @ (m.counts * (clip.centre - clip.slope * self.state.mean + middle * (1 - clip.slope)))
        line = Line(frozen(clip.slope), frozen(shift), frozen(stage.extra(rows)))
        spread = make_spread(
            middle + self.state.mean,
            staging.scale_limit(self.state, high - low),
            rule.bounds,
            groups,
            *promise,
            rule.mu_of(spread_share),
            Part(spread_share, rule.most),
        )
        return StagePlan(m, spread, line)

    def take(self, stage: Stage) -> None:
        """Learn from a stage's answer."""
        self.readings.append(stage.reading(self.rule.middle))
        spread = stage.spread_reading(self.rule.middle)
        if spread is not None:
            self.spreads.append(spread)
        self.state = self.mixture.fit(self.readings, self.spreads)
