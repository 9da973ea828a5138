"""A public grid over a box: all that is known of inputs which are private.

Nothing here ever sees an input. Which cell a row belongs to is found out in the private room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.columns import DATE, LEVEL, NUMBER, Column, Columns
from cloakgp.data.dates import ORIGIN, day_of

MOST_CELLS = 100_000
_REMEDY = (
    "Give a range as (low, high), of numbers or dates, or levels as a list, such as "
    '{"age": (0, 90), "sex": ["f", "m"]}.'
)


@dataclass(frozen=True)
class Axis(Column):
    """One input: a range that is cut into equal cells, or the levels of a category, each a cell."""

    low: float = 0.0
    high: float = 0.0
    cells: int = 0

    @property
    def category(self) -> bool:
        """Whether it has levels instead of a range."""
        return bool(self.levels)

    @property
    def column(self) -> Column:
        """The input as a column of a table."""
        return Column(self.name, self.kind, self.levels, self.origin)

    @property
    def has_texts(self) -> bool:
        """Whether a level is a text."""
        return any(isinstance(level, str) for level in self.levels)

    @property
    def centres(self) -> FloatArray:
        """Where its cells are; levels are numbered from 0."""
        if self.category:
            return np.arange(float(self.cells))
        steps = np.arange(self.cells, dtype=np.float64) + 0.5
        return self.low + steps * ((self.high - self.low) / self.cells)

    @property
    def middle(self) -> int:
        """The cell for what is missing."""
        return 0 if self.category else self.cells // 2


class Grid:
    """Cells of a public box, for inputs that are private.

    Parameters
    ----------
    box : mapping of names to ranges or levels
        A tuple of two numbers, or of two dates, such as ``("2024-01-01", "2024-12-31")``, is a range; a list
        holds the levels of a category (texts or whole numbers). All from public knowledge: from the data,
        they would tell of it. Values outside of a range count as at its edge.
    cells : int, or mapping of names to int
        How many cells each range is cut into; 40 if absent. What the outcome does within a cell counts as
        noise.

    Examples
    --------
    >>> grid = Grid({"age": (0, 90), "sex": ["f", "m"]}, cells=45)
    >>> len(grid), grid.names
    (90, ('age', 'sex'))
    >>> grid.centres[:3].tolist()
    [[1.0, 0.0], [1.0, 1.0], [3.0, 0.0]]
    """

    def __init__(self, box: Mapping[str, Any], cells: int | Mapping[str, int] = 40) -> None:
        if not isinstance(box, Mapping) or not box:
            expected = "must say the range or the levels of each input"
            raise ArgumentTypeError("box", expected, repr(box)[:100], _REMEDY)
        if not isinstance(cells, Mapping):
            cells = dict.fromkeys(box, cells)
        elif unknown := [name for name in cells if not isinstance(box.get(name), tuple)]:
            raise ArgumentError("cells", "must be for ranges of the box", repr(unknown[0])[:100])
        self.axes = tuple(_axis(name, extent, cells.get(name, 40)) for name, extent in box.items())
        if len(self) > MOST_CELLS:
            got = f"{' x '.join(map(str, self.shape))} = {len(self):,}"
            remedy = "Give fewer for each range, join levels, or leave an input out."
            raise ArgumentError("cells", f"must make at most {MOST_CELLS:,} cells in all", got, remedy)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the inputs, in the order of the columns of X."""
        return tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each input has."""
        return tuple(axis.cells for axis in self.axes)

    @cached_property
    def columns(self) -> Columns:
        """The inputs as columns of a table."""
        return Columns(tuple(axis.column for axis in self.axes))

    def ends(self, axis: Axis) -> tuple[Any, Any]:
        """The two ends of a range: numbers, or dates as texts."""
        if not axis.origin:
            return axis.low, axis.high
        shown = Columns((axis.column,)).shown([[axis.low], [axis.high]])
        first, last = (str(one).removesuffix("T00:00:00.000000") for one in shown[axis.name])
        return first, last

    @cached_property
    def centres(self) -> FloatArray:
        """(M, D) where the cells are; levels by their numbers, from 0."""
        mesh = np.meshgrid(*(axis.centres for axis in self.axes), indexing="ij")
        return frozen(np.column_stack([column.ravel() for column in mesh]))

    @property
    def spare(self) -> int:
        """The cell for rows with a missing input or an unknown level."""
        return int(np.ravel_multi_index([axis.middle for axis in self.axes], self.shape))

    def cover(self, n_points: int = 100) -> FloatArray:
        """Test points if nobody names others: cells' centres, spread evenly over the box."""
        chosen = np.unique(np.linspace(0, len(self) - 1, n_points).astype(np.intp))
        if len(self.axes) == 1 or len(self) <= n_points:
            return frozen(self.centres[chosen])
        # An additive lattice: its points are spread evenly in every direction.
        steps = np.arange(n_points)[:, None] * _golden(len(self.axes)) % 1.0
        places = (steps * np.array(self.shape)).astype(np.intp)
        rows = np.unique(np.ravel_multi_index(tuple(places.T), self.shape))
        return frozen(self.centres[rows])

    def words(self) -> list[dict[str, Any]]:
        """For files."""
        return [
            {"name": axis.name, "levels": list(axis.levels)}
            if axis.category
            else {"name": axis.name, "low": axis.low, "high": axis.high, "cells": axis.cells}
            | ({"origin": axis.origin} if axis.origin else {})
            for axis in self.axes
        ]

    @classmethod
    def from_words(cls, words: Sequence[dict[str, Any]]) -> Grid:
        """What :meth:`words` gave."""
        ranges = [one for one in words if "levels" not in one]
        box = {one["name"]: one.get("levels") or (one["low"], one["high"]) for one in words}
        if len(box) != len(words):
            raise ArgumentError("box", "must name each input once")
        grid = cls(box, {one["name"]: one["cells"] for one in ranges})
        dates = {one["name"]: {"kind": DATE, "origin": one["origin"]} for one in ranges if "origin" in one}
        grid.axes = tuple(replace(axis, **dates.get(axis.name, {})) for axis in grid.axes)
        return grid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def __repr__(self) -> str:
        box = {a.name: list(a.levels) if a.category else self.ends(a) for a in self.axes}
        cells = {axis.name: axis.cells for axis in self.axes if not axis.category}
        return f"Grid({box!r}, cells={cells!r})"


def _golden(columns: int) -> FloatArray:
    """(D,) steps of an additive lattice: powers of the root of x^(D+1) = x + 1."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (columns + 1))
    return root ** -np.arange(1.0, columns + 1)


def _axis(name: Any, extent: Any, cells: Any) -> Axis:
    if not checks.is_printable(name):
        raise ArgumentTypeError("box", "must name each input by a text", repr(name)[:100], _REMEDY)
    if isinstance(extent, list):
        plain = all(isinstance(level, (str, int)) and not isinstance(level, bool) for level in extent)
        if not plain or len(extent) < 2 or len(set(extent)) < len(extent):
            expected = f"must have two or more different texts or whole numbers as levels of {name!r}"
            raise ArgumentError("box", expected, remedy=_REMEDY)
        return Axis(name, LEVEL, tuple(extent), cells=len(extent))
    ends = list(extent) if isinstance(extent, tuple) and len(extent) == 2 else []
    days: list[Any] = [day_of(end) for end in ends]
    of_dates = bool(days) and None not in days
    low, high = (days if of_dates else ends) or (math.nan, math.nan)
    good = all(isinstance(end, Real) and math.isfinite(end) for end in (low, high))
    if not good or not 0 < float(high) - float(low) < math.inf:
        expected = f"must have a range, low below high, or levels for {name!r}"
        raise ArgumentError("box", expected, repr(extent)[:100], _REMEDY)
    kind, origin = (DATE, ORIGIN) if of_dates else (NUMBER, "")
    cells = checks.whole(cells, "cells", 1, MOST_CELLS)
    return Axis(name, kind, origin=origin, low=float(low), high=float(high), cells=cells)
