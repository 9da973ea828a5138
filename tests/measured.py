"""One small measurement of every kind: columns x statistic x unit; and what the private room makes of y."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations_with_replacement, product
from typing import Any
from unittest import mock

import numpy as np

from cloakgp import Grid, binning
from cloakgp.core.calibration import calibrate
from cloakgp.data.merging import Groups
from cloakgp.data.people import as_people
from cloakgp.measure.measurement import LAPLACE, Part, measurement_of
from cloakgp.measure.statistics import BIN_ENDS, WHOLE, Bin, Distance, Inside, OneOf, Outside, Present
from cloakgp.measure.statistics import PLACES as STEPS
from cloakgp.measure.unit import Population
from cloakgp.private import room

EPSILON, DELTA = 1.0, 0.01
PART = Part(0.9, 50)
MU = calibrate(EPSILON, DELTA, n_measurements=50) * PART.share**0.5 * (1 - 1e-9)
LOW, HIGH = -1.0, 4.0
IDS = [0, 1, 0, 1, 2]
LABELS = np.array([0, 1, 2, 2, 0])
GRID = Grid({"x": (0.0, 1.0)}, cells=4)
PLACES = (0.1, 0.4, 0.6, 0.9, np.nan)  # one in each cell, and one that is not known
MOST = 2
B = np.array([[1.0, -1.0, 0.5, 0.0, 0.3], [0.0, 0.0, 0.6, -0.7, 0.1]])  # two are opposite
LOWER, UPPER = np.array([-1.0, 0.0, 2.0, 2.0, -3.0]), np.array([4.0, 0.5, 2.1, 9.0, 0.0])
WITHIN = (-3.0, 9.0)  # bounds that all of these windows lie in
NAN = float("nan")


def exact(m: Any, y: Any, missing: str = "midpoint", **how: Any) -> Any:
    """What noise would be added to: through the door, and with the scale that was checked."""
    drawn: list[tuple[str, int]] = []

    def unchanged(law: str) -> Any:
        return lambda sums, scale: drawn.append((law, scale)) or sums

    with mock.patch.multiple(room, add_noise=unchanged("gaussian"), add_laplace=unchanged(LAPLACE)):
        found = room.measure(m, room.Outcomes(y, **how) if how else y, missing)
    assert drawn == [(part.noise, part.sigma) for part in (m if isinstance(m, list) else [m])]
    return found


def squared_distance(one: Any, other: Any) -> int:
    """Squared L2 distance in Python integers."""
    return sum((int(p) - int(q)) ** 2 for p, q in zip(one, other, strict=True))


def squared_l1(one: Any, other: Any) -> int:
    """The square of the L1 distance, likewise."""
    return sum(abs(int(p) - int(q)) for p, q in zip(one, other, strict=True)) ** 2


@dataclass(frozen=True)
class Case:
    """A measurement, and the outcomes that can be farthest apart."""

    m: Any
    values: tuple[float, ...]
    least: float = 1.0
    """Of the sensitivity, which somebody reaches."""

    @property
    def whole(self) -> bool:
        return getattr(self.m, "population", None) is not None

    def table(self, own: Any, who: int = 0) -> Any:
        """All outcomes, or whole rows, where those of one unit are its own and others stay."""
        if not self.whole:
            y = np.full(5, self.values[0])
            y[units(self.m)[who]] = own
            return y
        people = None if self.m.population.max_rows is None else [0] * len(own) + [1, 2]
        x, y = zip(*own, (0.4, self.values[0]), (0.9, self.values[1]), strict=True)
        return room.PrivateRows(np.array(x)[:, None], np.array(y), people)

    def states(self) -> list[list[Any]]:
        """Each unit's own outcomes, or rows, at all that they can be."""
        if not self.whole:
            return [list(product(self.values, repeat=len(own))) for own in units(self.m)]
        rows = list(product(PLACES, self.values))
        most = 1 if self.m.population.max_rows is None else MOST + 1  # one row too many is not counted
        several = (combinations_with_replacement(rows, k) for k in range(1, MOST + 1))
        many = [[row] * MOST + [other] for row in rows[::4] for other in rows[::5]]
        return [list(chain(*several, many)) if most > 1 else [[row] for row in rows]]

    def furthest(self) -> int:
        """How far one unit moves the exact measurements at most, squared: by trying."""
        moved = 0
        for who, states in enumerate(self.states()):
            found = {tuple(exact(self.m, self.table(own, who)).tolist()) for own in states}
            distance = squared_l1 if self.m.noise == LAPLACE else squared_distance
            moved = max(moved, *(distance(one, other) for one in found for other in found))
        return moved


def residuals(weights: Any, folds: Any, n_rows: int) -> Any:
    """R, by which y is multiplied for its residuals, of folds that predict with these weights."""
    each = [np.eye(n_rows)[test] for _, test in folds]
    for rows, C, (train, _) in zip(each, weights, folds, strict=True):
        rows[:, train] = -C
    return np.vstack(each)


def units(m: Any) -> list[list[int]]:
    """The rows of each unit."""
    ids = list(range(5)) if m.people is None else IDS
    return [[row for row, one in enumerate(ids) if one == who] for who in sorted(set(ids))]


def made(matrix: Any, statistic: Any, **more: Any) -> Any:
    return measurement_of(matrix, statistic, EPSILON, DELTA, MU, part=PART, **more)


def unit_of(name: str, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Columns, and who is protected by them."""
    if name.endswith("whole rows"):
        return B[:, :4], {"population": Population(GRID, 3, MOST if "person" in name else None)}
    people = as_people(IDS, 5) if name == "one person" else None
    groups = None if n_columns == 5 else Groups(LABELS, np.bincount(LABELS))
    return B[:, :n_columns], {"people": people, "groups": groups}


BINS = ("bins, Laplace noise", "bins, Gaussian noise")
UNITS = ("one row", "one person", "whole rows", "one person's whole rows")


@cache
def case(columns: str, kind: str, unit: str) -> Case:
    """One of `CASES`."""
    if columns in BINS:  # Laplace's noise is scaled to L1
        ids, more = IDS if unit == "one person" else None, {"delta": DELTA} if "Gaussian" in columns else {}
        asked = {"X_star": [1.0], "edges": [0.0, 0.5, 1.5, 2.0], "people": ids, "bounds": (LOW, HIGH), **more}
        plan = binning.plan(
            [0, 1, 0, 2, 0], epsilon=EPSILON, mechanism="gaussian" if more else LAPLACE, **asked
        )
        return Case(plan.measurement, (LOW - 1, HIGH + 1, NAN))
    whole = unit.endswith("whole rows")
    matrix, who = unit_of(unit, 3 if columns == "groups" else 5)
    n = matrix.shape[1]
    if columns == "alike":  # fewer rows, or another class, move sums further than another cell does
        matrix = np.array([[1.0, 0.9, 0.8, 0.7]])
    if kind == "Distance":
        centre = np.linspace(LOW, LOW + 0.2, n)
        return Case(
            made(np.ones((1, n)), Distance(LOW, HIGH, centre=centre, limit=3.0), **who), (*centre, 1e300, NAN)
        )
    if kind == "Bin":  # at a bound, a row is shared among all bins, among some, or in the outermost alone
        edges = np.add.outer(np.arange(n) * 1000, np.linspace(0.1, 0.9, len(BIN_ENDS)) * STEPS).astype(
            np.int64
        )
        atoms = np.resize([[WHOLE, WHOLE // 3], [1, WHOLE // 9]], (n, 2)).astype(np.int64)
        statistic = Bin(LOW, HIGH, edges=edges, atoms=atoms)
        return Case(made(np.ones((1, n)), statistic, **who), (0.0, 3.0, -1e300, 1e300, NAN))
    if kind == "OneOf":  # signs do not tell how far three classes move, so some people are given too much
        return Case(made(matrix, OneOf(0.0, 1.0, centred=whole), **who), (0.0, 1.0, 2.0, NAN))
    if kind == "Present":
        return Case(made(matrix, Present(), **who), (0.0, NAN), 0.6 if columns == "alike" else 1.0)
    bounds = (LOWER[:n], UPPER[:n]) if columns == "windows" else (LOW, HIGH)
    if kind == "Outside":  # another cell, where as much is above as here below, moves sums less than twice
        statistic: Any = Outside(*bounds, bounds=WITHIN)
        return Case(made(matrix, statistic, **who), (*WITHIN, 1e300, 2.05, NAN), 0.4 if whole else 1.0)
    return Case(made(matrix, Inside(*bounds, centred=whole), **who), (-1e300, 1e300, NAN))


CASES = [
    (columns, kind, unit)
    for columns, kind, unit in product(
        ("rows", "groups", "windows", *BINS),
        ("Inside", "Outside", "Distance", "OneOf", "Present", "Bin"),
        UNITS,
    )
    if (kind == "Inside" or columns not in BINS)
    and (kind in ("Inside", "Outside") or columns != "windows")
    and (not unit.endswith("whole rows") or columns in ("rows", "windows"))
    and (kind != "Present" or unit.endswith("whole rows"))
] + [("alike", kind, "one person's whole rows") for kind in ("Present", "OneOf")]
"""Every combination that exists."""
