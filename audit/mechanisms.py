"""A small public plan for each mechanism that reads y, chosen so that its sensitivity is reached.

Halved noise can be seen only where one row really moves the release as far as the noise was made for.
So inputs lie where the function's bounds are exact, and the models of the selection are such that one
row moves two scores by the whole sensitivity in opposite directions. In a release in stages one row cannot
move everything at once, windows and distances, as far as each could be moved; but nearly.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from cloakgp import GP, AutoGP, Grid, binning, plan_selection
from cloakgp.core import accounting
from cloakgp.core.calibration import calibrate
from cloakgp.data import cells
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ
from cloakgp.measure.cross_validation import LOSSES
from cloakgp.measure.measurement import NOISES, Part, measurement_of
from cloakgp.measure.statistics import Distance
from cloakgp.private import room
from cloakgp.release.planner import BOUNDS, HIDES_INPUTS

EPSILON, DELTA = 1.0, 0.05
LOW, HIGH = 50.0, 170.0  # heights, in cm
BELOW, ABOVE = -70.0, 290.0  # of neighbours: outside the bounds, so that clipping is attacked too
VARIANCE = 25.0**2


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A plan, and what the outcomes are."""

    plan: Any
    pair: tuple[Any, Any] | None = None
    """The worst neighbours, where they are known; else they are looked for, row by row."""
    kept: Callable[[Any], Any] = np.asarray
    """Where y is: in memory, or elsewhere."""
    fewer: int = 1
    """By how much fewer releases are drawn than of others, where each takes long."""

    @property
    def epsilon(self) -> float:
        """What the certificate claims."""
        return self.plan.certificate.epsilon

    @property
    def delta(self) -> float:
        return getattr(self.plan.certificate, "delta", 0.0)

    def release(self, y: Any) -> Any:
        """What y leaves behind: integers, or the index of a model; of stages, with what each measured."""
        chosen = isinstance(self.plan.cost, accounting.Exponential)
        released = (self.plan.select if chosen else self.plan.release)(self.kept(y))
        return released.stages if self.staged else released.z

    @property
    def staged(self) -> bool:
        """Whether a release chooses what it measures by what it answered before."""
        return getattr(self.plan, "stages", 1) > 1

    def numbers(self, released: Any) -> tuple[int, ...]:
        """All numbers in a release."""
        return tuple(np.concatenate([stage.answer for stage in released]) if self.staged else released)


def predictions(
    repeats: int = 1, kept: Any = np.asarray, most_cells: int = cells.MOST_CELLS, **options: Any
) -> Mechanism:
    """Predictions at two points; `inducing` and `approximation` go to the model."""
    model = {name: options.pop(name) for name in ("inducing", "approximation") if name in options}
    X = np.repeat(np.linspace(0.0, 1.0, 6 // repeats), repeats)
    gp = GP(EQ(0.5, variance=VARIANCE), 0.3 * VARIANCE, (LOW, HIGH), **model)
    with mock.patch.object(cells, "MOST_CELLS", most_cells):
        plan = gp.plan(X, X_star=[0.2, 0.8], epsilon=EPSILON, delta=DELTA, **options)
    return Mechanism(plan, kept=kept)


def function(bound: str) -> Mechanism:
    """A whole function. Rows are far apart, and as noisy as f varies: then every bound is exact."""
    X = np.array([0.0, 100.0, 200.0])
    gp = GP(EQ(1.0, variance=VARIANCE), VARIANCE, (LOW, HIGH))
    options: dict[str, Any] = {"basis": X} if bound in HIDES_INPUTS else {}
    if bound == "varah":
        options["margin"] = 2 * VARIANCE
    return Mechanism(gp.plan_function(X, epsilon=EPSILON, delta=DELTA, bound=bound, **options))


def bins(noise: str) -> Mechanism:
    """Three bins of two rows."""
    X = np.linspace(0.0, 1.0, 6)
    return Mechanism(
        binning.plan(X, X_star=X, edges=3, bounds=(LOW, HIGH), mechanism=noise, **_promise(noise))
    )


def local(noise: str) -> Mechanism:
    """Noise on each of three outcomes."""
    X = np.linspace(0.0, 1.0, 3)
    kernel = EQ(0.5, variance=VARIANCE)
    return Mechanism(
        binning.local(
            X, X_star=X, kernel=kernel, noise=VARIANCE, bounds=(LOW, HIGH), mechanism=noise, **_promise(noise)
        )
    )


def _promise(noise: str) -> dict[str, float]:
    return {"epsilon": EPSILON} if noise == "laplace" else {"epsilon": EPSILON, "delta": DELTA}


def selection(loss: str) -> Mechanism:
    """Two models that predict one bound each. Whatever one row adds to one score it takes from the other.

    Two more rows are as the second model says, so that the first is a rare choice: only for a rare choice
    does the ratio of the probabilities come near e^epsilon, and nearer for a larger epsilon.
    """
    X = np.array([0.0, 100.0, 200.0])  # far apart: no row tells of another
    models = [GP(EQ(1.0, variance=VARIANCE), VARIANCE, (LOW, HIGH), mean) for mean in (LOW, HIGH)]
    plan = plan_selection(models, X, epsilon=2 * EPSILON, folds=3, loss=loss)
    return Mechanism(plan, pair=(np.array([ABOVE, HIGH, HIGH]), np.array([BELOW, HIGH, HIGH])))


def stages() -> Mechanism:
    """Two stages, the second chosen from the first one's answer."""
    plan = AutoGP(bounds=(LOW, HIGH), stages=2).plan(
        [0.0, 0.5, 1.0], X_star=[0.5], epsilon=EPSILON, delta=DELTA
    )
    middle = (LOW + HIGH) / 2
    pair = np.array([middle, BELOW, middle]), np.array([middle, ABOVE, middle])
    return Mechanism(plan, pair=pair, fewer=2)


def whole_rows(max_rows: int | None = None) -> Mechanism:
    """Three rows, or one person with up to two and two with one, in two cells: the first goes to the other.

    Counts and sums both show that, and how far its outcome is from one end of the bounds to the other.
    """
    grid, model = Grid({"x": (0.0, 1.0)}, cells=2), AutoGP(bounds=(LOW, HIGH), stages=2)
    plan = model.plan_rows(grid, 3, X_star=[0.25, 0.75], epsilon=EPSILON, delta=DELTA, max_rows=max_rows)
    people = None if max_rows is None else [0, 0, 1, 2]
    own, middle = (1 if max_rows is None else 2), (LOW + HIGH) / 2
    pair = tuple(
        room.PrivateRows([place] * own + [0.1, 0.9], [value] * own + [middle] * 2, people)
        for place, value in ((0.1, BELOW), (0.9, ABOVE))
    )
    released = SimpleNamespace(
        certificate=plan.certificate,
        cost=plan.cost,
        stages=plan.stages,
        release=lambda rows: plan.release(rows.X, rows.y, people=rows.people),
    )
    return Mechanism(released, pair=(pair[0], pair[1]), kept=lambda rows: rows, fewer=4)


def distances() -> Mechanism:
    """The noise level's measurement with all of the promise to itself."""
    mu, centre = calibrate(EPSILON, DELTA), np.array([100.0, 110.0, 120.0])
    distance = Distance(LOW, HIGH, centre=centre, limit=30.0)
    spread = measurement_of(np.ones((1, 3)), distance, EPSILON, DELTA, mu, part=Part(1.0, 1))
    plan = SimpleNamespace(
        certificate=SimpleNamespace(epsilon=EPSILON, delta=DELTA, n_rows=3),
        cost=accounting.Gaussian(mu, 1),
        measurement=spread,
        release=lambda y: SimpleNamespace(z=room.measure(spread, y, "error")),
    )
    return Mechanism(plan, pair=(np.array([90.0, 110.0, 120.0]), np.array([90.0, ABOVE, 120.0])))


def on_disk(y: Any) -> Any:
    """y in a memory map."""
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, dtype=np.float64, mode="w+", shape=np.shape(y))
    mapped[:] = y
    return mapped


INDUCING = [[0.1], [0.9]]
MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    **{f"predictions, design {design}": partial(predictions, design=design) for design in DESIGNS},
    "predictions, rows merged": partial(predictions, repeats=3),
    "predictions, inducing inputs (dtc)": partial(predictions, inducing=INDUCING),
    "predictions, inducing inputs (fitc)": partial(predictions, inducing=INDUCING, approximation="fitc"),
    "predictions, outcomes on disk": partial(predictions, kept=on_disk),
    "predictions, rows in cells": partial(predictions, inducing=INDUCING, most_cells=4),
    **{f"function, bound {bound}": partial(function, bound) for bound in BOUNDS},
    **{f"bins, {noise} noise": partial(bins, noise) for noise in NOISES},
    **{f"each outcome, {noise} noise": partial(local, noise) for noise in NOISES},
    **{f"selection, {loss} loss": partial(selection, loss) for loss in LOSSES},
    "AutoGP, all stages": stages,
    "AutoGP, noise level alone": distances,
    "AutoGP, whole rows": whole_rows,
    "AutoGP, whole rows of people": partial(whole_rows, 2),
}
"""By the name that the table shows. A mechanism that is added to the library is added here."""
