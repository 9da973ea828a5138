"""Which of many rows would have long columns, going by a rough design for a few.

A design is decided by the rows whose columns are longest. So a pass over all rows draws some for the pilot,
and more in reserve, on which a design is tried before it is on all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.checks import FloatArray
from cloakgp.model.arrays import squared_lengths
from cloakgp.model.factors import Root
from cloakgp.plans.pilot import Rough
from cloakgp.rows.merging import first_of_equal

EXACT, LEAST = 2**21, 64
"""Rows up to which lengths are exact; for many more, directions by which lengths are told."""
_POWER = 4
"""Of squared lengths, by which rows are drawn.

A place that the rough design has nearly right is the final one's longest rather than one that it has far too
short; and where few rows are, most of them need to be drawn for one to be.
"""


class Draw(NamedTuple):
    """Rows whose columns' squared lengths reach a bar, and a share of others, times a power of how near."""

    bar: float
    share: float

    def of(self, squares: FloatArray) -> NDArray[np.bool_]:
        """Which rows these are: as good as random, and the same everywhere."""
        likely = np.where(squares >= self.bar, 1.0, np.minimum(self.share * self.nearness(squares), 1.0))
        drawn: NDArray[np.bool_] = np.diff(np.floor(np.cumsum(likely)), prepend=0.0) > 0
        return drawn

    def nearness(self, squares: FloatArray) -> FloatArray:
        """1 at the bar."""
        with np.errstate(over="ignore", under="ignore"):
            near: FloatArray = np.minimum(squares / max(self.bar, 1e-300), 1.0) ** _POWER
        return near


class Screen(NamedTuple):
    """What a pass needs to know for drawing rows."""

    measured: NDArray[np.float32]
    """(r, n) what a rough design measures of B k / D, or some directions of it: see :class:`Root`."""
    draws: list[Draw]

    def squares(self, begun: FloatArray, scale: float | FloatArray) -> FloatArray:
        """About the squared lengths of the columns of rows B k, times their scale, which is 1 / D."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            seen = begun.astype(np.float32) @ self.measured
            squares: FloatArray = np.einsum("ij,ij->i", seen, seen) * np.square(scale)
        return np.where(np.isfinite(squares), squares, 0.0)

    def drawn(self, table: FloatArray) -> list[FloatArray]:
        """The rows that each draw takes from a table whose first column has squared lengths."""
        return [first_of_equal(table[draw.of(table[:, 0])], aside=1) for draw in self.draws]


def screen(rough: Rough, root: Root, n_rows: int, wanted: tuple[int, ...]) -> Screen:
    """For drawing about as many of all rows as are wanted; half of them the longest."""
    some = _directions(rough.measured, n_rows)
    squares = squared_lengths(some, rough.pilot.features[:, len(root.diagonal) :])
    halves = [min(n / n_rows, 1.0) / 2 for n in wanted]
    draws = [_draw(squares, half) for half in halves]
    return Screen(np.ascontiguousarray((some @ root.diagonal).T, np.float32), draws)


def _draw(squares: FloatArray, half: float) -> Draw:
    """For drawing twice this share of such rows."""
    draw = Draw(float(np.quantile(squares, 1 - half)), 1.0)
    others = float(draw.nearness(squares[squares < draw.bar]).sum())
    return draw._replace(share=half * len(squares) / max(others, 1.0))


def _directions(measured: FloatArray, n_rows: int) -> FloatArray:
    """All that is measured, or, where there are very many rows, some directions, as good as random.

    Many rows are like each of them then, and it hardly matters which of these seem to be longest.
    """
    n = max(LEAST, len(measured) * EXACT // n_rows)
    if n >= len(measured):
        return measured
    angles = np.outer(np.sqrt(5) * np.arange(1, n + 1), np.arange(1, len(measured) + 1) ** 2)
    some: FloatArray = np.sin(angles) @ measured * np.sqrt(2 / n)
    return some


def longest(table: FloatArray, n: int) -> FloatArray:
    """Up to `n` rows of a table, those with the largest first entries, in the order that they had."""
    return table if len(table) <= n else table[np.sort(np.argpartition(-table[:, 0], n)[:n])]
