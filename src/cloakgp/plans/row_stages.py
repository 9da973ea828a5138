"""Stages where inputs are private, too: first how many rows each cell of a public grid has, then sums.

Once the counts are estimated, cells are what equal rows are elsewhere, and stages go on as they always do
(:mod:`cloakgp.plans.stages`); what the counts may be wrong by is counted as noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp.checks import FloatArray, frozen
from cloakgp.files.container import Array
from cloakgp.measurements.lattice import Part
from cloakgp.measurements.whole_rows import (
    NOBODY,
    Counts,
    Population,
    RowSpread,
    RowSums,
    equal_columns,
    make_counts,
    make_row_spread,
    make_sums,
)
from cloakgp.plans.stages import Rule, Stage, StagePlan, Walk, lattice_of
from cloakgp.posterior import staging
from cloakgp.posterior.conditioning import Line
from cloakgp.posterior.density import Density, DensityPrior, estimate
from cloakgp.posterior.mixture import State
from cloakgp.rows.grid import Grid
from cloakgp.rows.merging import Groups, Inputs
from cloakgp.rows.people import times_noise

_TWICE = 4.0  # a row leaves one cell and enters another: twice the noise std, for a design


@dataclass(frozen=True, eq=False)
class RowRule(Rule):
    """All that decides how stages follow from each other, where all that is known of rows is a grid."""

    grid: Grid = None  # type: ignore[assignment]
    population: Population = NOBODY
    counts: FloatArray | None = None
    """(M,) how many rows each cell has, once that is estimated."""

    @cached_property
    def density_prior(self) -> DensityPrior:
        """What is believed of the counts beforehand."""
        people, k = self.population.size, self.population.each
        # Everyone has a row, and no more than k: a number anywhere between.
        return DensityPrior(self.grid, people * (1 + k) / 2, people * (k - 1) / np.sqrt(12))

    @cached_property
    def inputs(self) -> Inputs:
        """The cells, with as many rows as is known."""
        counts = np.full(len(self.grid), self.density_prior.level) if self.counts is None else self.counts
        return Inputs(self.grid.centres, 0.0, Groups(np.empty(0, dtype=np.intp), counts))  # type: ignore[arg-type]

    @property
    def factor(self) -> float:
        """What the noise variance is multiplied by: rows of a person go together, as many as people have."""
        each = float(self.inputs.counts.sum()) / self.population.size
        return float(times_noise(max(each, 1.0), self.within))

    def all_stages(self, own: Any) -> list[Stage]:
        """Those that measure outcomes: not the counts."""
        return list(own[1:])

    def has_windows(self, number: int) -> bool:
        return number > 0

    def measures_noise(self, number: int) -> bool:
        return super().measures_noise(number) and number > 1

    def walk(self, start: State | None = None) -> RowWalk:
        """From stage to stage by this rule."""
        return RowWalk(self, start)

    def stage_plan(self, words: dict[str, Any], arrays: dict[str, Array], number: int) -> StagePlan:
        """What a stage's plan describes itself as; whatever it says, the private room checks the integers."""
        return _described_stage(self, words, arrays, number)

    def counted(self, stages: Sequence[Stage]) -> RowRule:
        """The same with the counts that these stages were made with."""
        if len(stages) == 1:
            return replace(self, counts=self.density(stages[0]).counts)
        measurement = stages[1].plan.measurement
        assert isinstance(measurement, RowSums)
        return replace(self, counts=measurement.estimated)

    def density(self, counted: Stage) -> Density:
        """How many rows each cell has, by the first stage's answer."""
        m = counted.plan.measurement
        return estimate(
            self.density_prior, m.real_matrix(), counted.z.astype(np.float64) * m.step, m.noise_scale**2
        )


def _described_stage(
    rule: RowRule, words: dict[str, Any], arrays: dict[str, Array], number: int
) -> StagePlan:
    """The stage that :meth:`StagePlan.described` describes: the first counts, the others measure outcomes."""
    promise, shares = rule.promise, rule.promise.shares_of(number, words["spread"] is not None)
    kept: dict[str, Any] = {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "part": Part(shares[0], promise.most),
        "population": rule.population,
        "grid": rule.grid,
        **lattice_of(words),
    }
    if number == 0:
        return StagePlan(Counts(matrix=arrays["matrix"], lower=0.0, upper=1.0, **kept), None, None)
    kept["estimated"] = arrays["counts"]
    kept["classes"] = rule.n_curves
    measurement = RowSums(matrix=arrays["matrix"], lower=arrays["lower"], upper=arrays["upper"], **kept)
    line, spread = Line(arrays["slope"], arrays["shift"], arrays["extra"]), None
    if words["spread"] is not None:
        spread = RowSpread(
            matrix=equal_columns(words["spread"]["matrix_bits"], len(arrays["centre"])),
            lower=rule.bounds[0],
            upper=rule.bounds[1],
            centre=arrays["centre"],
            limit=words["spread"]["limit"],
            **{**kept, **lattice_of(words["spread"]), "part": Part(shares[1], promise.most), "classes": 1},
        )
    return StagePlan(measurement, spread, line)


class RowWalk(Walk):
    """From stage to stage, the first of which counts rows."""

    rule: RowRule

    def __init__(self, rule: RowRule, start: State | None = None) -> None:
        super().__init__(rule, start)
        self.density: Density | None = None

    def windows(self) -> tuple[FloatArray, FloatArray]:
        """(M,) lower and upper edges for the next stage: the bounds, while nothing is known of outcomes."""
        if self.taken and self.rule.kappa is not None:
            return super().windows()
        same = np.ones(len(self.rule.grid))
        return frozen(self.rule.bounds[0] * same), frozen(self.rule.bounds[1] * same)

    def stage(self, lower: Any, upper: Any, mu: float, state: State | None = None) -> staging.Stage:
        stage = super().stage(lower, upper, mu, state)
        stage.errors = None if self.density is None else self.density.errors
        if self.rule.n_curves > 1:
            stage.origin = np.full(len(stage.origin), 1 / self.rule.n_curves)  # as near as integers allow
        return stage

    def next_stage(self, number: int) -> StagePlan:
        """The plan of a stage, from all that was answered before it."""
        rule, promise, population = self.rule, self.rule.promise, self.rule.population
        kept = (promise.epsilon, promise.delta)
        share, spread_share = promise.shares_of(number, rule.measures_noise(number))
        mu, part = promise.mu_of(share), Part(share, promise.most)
        if number == 0:
            B = rule.density_prior.design(_TWICE * population.each**2 / mu**2)
            return StagePlan(make_counts(B, rule.grid, population, *kept, mu, part), None, None)
        assert rule.counts is not None
        windows = self.windows()
        stage = self.stage(*windows, mu / population.each)
        B = stage.rows() * (stage.window[1] - stage.window[0])
        m = make_sums(B, windows, rule.counts, rule.grid, population, *kept, mu, part, rule.n_curves)
        line = self.line(stage, m)
        if not spread_share:
            return StagePlan(m, None, line)
        mu, part = promise.mu_of(spread_share), Part(spread_share, promise.most)
        distances = (*self.distances(), rule.bounds, rule.counts, rule.grid, population)
        return StagePlan(m, make_row_spread(*distances, *kept, mu, part), line)

    def take(self, stage: Stage) -> None:
        """Learn from a stage's answer."""
        self.note(stage)
        if not isinstance(stage.plan.measurement, Counts):
            self._learn()

    def note(self, stage: Stage) -> None:
        """Keep a stage's answer, to learn from it later; of counts there is no later."""
        if not isinstance(stage.plan.measurement, Counts):
            super().note(stage)
            return
        self.density = self.rule.density(stage)
        self.rule = replace(self.rule, counts=self.density.counts)
        self.mixture = self._mixture()
        self.state = self.mixture.start()
