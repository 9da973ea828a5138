"""What a statistic makes of an outcome: integers of known range, by a public rule.

A closed set, since those who verify must know it:

========= ======================================================================= =================
statistic an outcome becomes                                                      largest change
========= ======================================================================= =================
Inside    how far it is into its window, clipped: 0 to 2^b, or as far from the    2^b
          window's middle
Outside   how far it is beyond its window, below 0 on the lower side: 0 in it     2^b
Distance  its distance from a public curve, up to a limit: 0 to 2^b               2^b
OneOf     2^b for its class and 0 for each other; or less a K-th of 2^b for all   root 2 times 2^b
Present   1, whatever it is                                                       0
Bin       2^b for the bin that it fell in and 0 for each other; or shares of 2^b  root 2 times 2^b
========= ======================================================================= =================

How y becomes these integers, the private room alone knows (``private/outcomes.py``). What is here is public:
the ranges on which sensitivity rests, and what an integer is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import FloatArray, IntArray
from cloakgp.data.merging import Labels

Limits = float | FloatArray
"""One number for all rows, or one for each column of a matrix."""
Y_BITS = 24
"""Bits of an outcome: beyond them nothing is gained."""
MATRIX_BITS, COUNT_BITS = 30, 40
"""Bits of a matrix, and of one that counts rows: beyond them nothing is gained."""


BIN_ENDS = (0.005, 0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975, 0.995)
"""Between bins, in the law that is expected of an outcome: fine where intervals end, coarse in the middle."""
PLACES, WHOLE = 2**24, 2**30
"""Steps of the bounds' width by which it is told where outcomes fell; a probability of 1, in integers."""
_NOTHING = 1e-6  # of the bounds' width: that this is beyond a window is as if it was not


def of_rows(value: Limits, labels: Labels) -> Limits:
    """What rows have that have these columns; a number stands for all."""
    return value[labels] if isinstance(value, np.ndarray) else value


@dataclass(frozen=True, eq=False)
class Statistic:
    """What all have: the public bounds that outcomes are clipped to, and how finely they are rounded."""

    lower: Limits
    upper: Limits
    y_bits: int = 0
    centred: bool = False
    """Whether integers are counted from the middle, so that a row may be in any cell: theorem 20."""

    width: ClassVar[int] = 1
    """How many integers an outcome becomes."""
    compares: ClassVar[bool] = False
    """Whether columns of two cells are compared, for which their entries must be small enough."""
    cell_reach: ClassVar[float] = 1.0
    """How far a whole row can move sums at most, for columns of norm 1 and in largest integers."""

    @property
    def span(self) -> float:
        """What 2^b steps are worth, in y's unit: the width of the bounds, or of the widest."""
        return float(np.max(self.upper - self.lower))

    @property
    def worth(self) -> Limits:
        """What 2^b is worth in each column, in y's unit."""
        return self.upper - self.lower

    @property
    def origin(self) -> Limits:
        """The outcome that sums are counted from."""
        return self.lower + (self.upper - self.lower) * 0.5

    @property
    def change(self) -> int:
        """The largest squared distance of two outcomes' integers."""
        return 1 << 2 * self.y_bits

    @property
    def largest(self) -> int:
        """The largest integer."""
        return 1 << self.y_bits

    def apart(self, longest: int, furthest: Callable[[bool], int], people: bool) -> int:
        """The largest squared distance of what two whole rows add to sums, each in a cell of its own.

        `longest` is the largest squared norm of a column, and `furthest` gives the largest squared distance
        of two of them, with 0 among them if it is told so.
        """
        return longest << 2 * self.y_bits

    def check(self, matrix: NDArray[np.int64], whole_rows: bool) -> None:
        """Raise unless what is said of changes holds for this matrix."""
        if whole_rows and not (self.centred and self.y_bits):
            raise AssertionError("outcomes have no middle to be counted from")

    def split(self, total: int, near: tuple[int, int, int] | None) -> tuple[int, int]:
        """Bits of y and of the matrix, of so many in all: see :func:`bits_within`."""
        return bits_within(total, *(near or ()))

    def with_bits(self, y_bits: int) -> Self:
        return replace(self, y_bits=y_bits)

    def at(self, labels: Labels, windows: FloatArray | None = None) -> Self:
        """The same for rows that have these columns; or, if they are given, these limits."""
        if windows is not None:
            return replace(self, lower=windows[:, 0], upper=windows[:, 1])
        return replace(self, lower=of_rows(self.lower, labels), upper=of_rows(self.upper, labels))


@dataclass(frozen=True, eq=False)
class Inside(Statistic):
    """Where an outcome is within its window."""


@dataclass(frozen=True, eq=False)
class Outside(Statistic):
    """How far an outcome, clipped to the bounds, is beyond its window: what :class:`Inside` cuts off.

    An outcome may be beyond either end, but not beyond both: its integer is from -`below` to 2^b - `below`,
    where `below` is the lower side's part of what the bounds have beyond the window.
    """

    bounds: tuple[float, float] = (0.0, 1.0)
    centred: bool = True  # nothing is beyond a window that holds the outcome

    cell_reach: ClassVar[float] = 2.0

    @property
    def full(self) -> float:
        """The bounds' width."""
        return self.bounds[1] - self.bounds[0]

    @property
    def nothing(self) -> NDArray[np.bool_]:
        """Where a window is the bounds, or as good as that: nothing is beyond, so nothing is measured."""
        return np.asarray(self.full - (self.upper - self.lower) < _NOTHING * self.full)

    @property
    def worth(self) -> Limits:
        """All of the bounds but the window."""
        return np.maximum(self.full - (self.upper - self.lower), _NOTHING * self.full)

    @property
    def span(self) -> float:
        return float(np.max(self.worth))

    @property
    def below(self) -> IntArray:
        """How far integers go below 0; above, as far as is left of 2^b."""
        share = np.clip((self.lower - self.bounds[0]) / self.worth, 0.0, 1.0)
        return np.asarray(np.rint(share * self.largest), dtype=np.int64)

    @property
    def origin(self) -> Limits:
        return 0.0

    def check(self, matrix: NDArray[np.int64], whole_rows: bool) -> None:
        super().check(matrix, whole_rows)
        if not (self.centred and self.full > 0):
            raise AssertionError("nothing is beyond bounds that hold nothing")
        if self.nothing.shape not in ((), matrix.shape[1:]):
            raise AssertionError("windows are not those of the columns")
        # There 2^b would be worth next to nothing, and whoever reads sums divides by that.
        if (matrix.any(axis=0) & self.nothing).any():
            raise AssertionError("what is beyond a window is measured where nothing is")

    def apart(self, longest: int, furthest: Callable[[bool], int], people: bool) -> int:
        """Each of two rows adds at most 2^b times its column, one the opposite of the other: lemma 25."""
        return longest << 2 * self.y_bits + 2


@dataclass(frozen=True, eq=False)
class Distance(Statistic):
    """How far an outcome, clipped to the bounds, is from a curve."""

    centre: FloatArray | None = None
    """The curve: one number for each column."""
    limit: float = 0.0
    """Distances beyond count as this."""

    @property
    def span(self) -> float:
        return self.limit

    @property
    def worth(self) -> Limits:
        return self.limit

    def check(self, matrix: NDArray[np.int64], whole_rows: bool) -> None:
        if len(matrix) != 1 or matrix.min() < 0 or matrix.min() != matrix.max():
            raise AssertionError("distances are not summed as they are")

    def split(self, total: int, near: tuple[int, int, int] | None) -> tuple[int, int]:
        y_bits = min(Y_BITS, total)
        return y_bits, total - y_bits

    def at(self, labels: Labels, windows: FloatArray | None = None) -> Self:
        assert self.centre is not None
        return replace(super().at(labels, windows), centre=self.centre[labels])


@dataclass(frozen=True, eq=False)
class OneOf(Statistic):
    """Which of several classes an outcome is."""

    classes: int = 3

    compares: ClassVar[bool] = True
    cell_reach: ClassVar[float] = 2.0

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.classes

    @property
    def change(self) -> int:
        """It leaves the sums of one class and enters those of another: lemma 22."""
        return 2 << 2 * self.y_bits

    @property
    def share(self) -> int:
        """What is taken from each class's integer, so that a row's add up to about 0: lemma 23."""
        return (1 << self.y_bits) // self.classes if self.centred else 0

    @property
    def origin(self) -> Limits:
        part = math.ldexp(self.share, -self.y_bits) if self.centred else 0.5
        return self.lower + (self.upper - self.lower) * part

    def apart(self, longest: int, furthest: Callable[[bool], int], people: bool) -> int:
        """A row changes its class, or keeps it and goes to a cell with an opposite column: lemma 23."""
        own = (1 << 2 * self.y_bits) - self.share * ((2 << self.y_bits) - self.classes * self.share)
        return max(longest << 2 * self.y_bits + 1, own * furthest(False))


@dataclass(frozen=True, eq=False)
class Present(Statistic):
    """That there is a row: what counts rows by their cells."""

    lower: Limits = 0.0
    upper: Limits = 1.0
    centred: bool = True  # no outcome is half there

    compares: ClassVar[bool] = True
    cell_reach: ClassVar[float] = 2.0

    def check(self, matrix: NDArray[np.int64], whole_rows: bool) -> None:
        if not whole_rows or self.y_bits != 0 or (self.lower, self.upper) != (0.0, 1.0):
            raise AssertionError("a row does not count as one")

    @property
    def change(self) -> int:
        return 0

    def apart(self, longest: int, furthest: Callable[[bool], int], people: bool) -> int:
        """A row goes to another cell; a person's rows may become fewer, too: theorems 20 and 21."""
        return furthest(people)

    def split(self, total: int, near: tuple[int, int, int] | None) -> tuple[int, int]:
        return 0, min(COUNT_BITS, total)


@dataclass(frozen=True, eq=False)
class Bin(Statistic):
    """In which of ten bins an outcome fell, whose edges are public; without an outcome, in none.

    Where many outcomes are expected at a bound, which is in several bins then, each of these gets a share of
    a row there, by how much of the bound's probability is in it.
    """

    edges: IntArray | None = None
    """(U, 9) for each column, in steps of the bounds' width: an outcome there is in the bin above."""
    atoms: IntArray | None = None
    """(U, 2) probabilities of an outcome at the lower and at the upper bound, of `WHOLE`."""

    width: ClassVar[int] = len(BIN_ENDS) + 1
    cell_reach: ClassVar[float] = math.sqrt(2)

    @property
    def span(self) -> float:
        """A row counts as 1."""
        return 1.0

    @property
    def change(self) -> int:
        """It leaves one bin and enters another; shares are nearer to each other: lemma 24."""
        return 2 << 2 * self.y_bits

    def apart(self, longest: int, furthest: Callable[[bool], int], people: bool) -> int:
        """The same, as columns are all alike."""
        return longest << 2 * self.y_bits + 1

    def check(self, matrix: NDArray[np.int64], whole_rows: bool) -> None:
        edges, atoms = self.edges, self.atoms
        if len(matrix) != 1 or matrix.min() < 0 or matrix.min() != matrix.max():
            raise AssertionError("rows in bins are not counted as they are")
        if edges is None or edges.shape != (matrix.shape[1], len(BIN_ENDS)) or edges.dtype != np.int64:
            raise AssertionError("bins have no edges")
        if atoms is None or atoms.shape != (matrix.shape[1], 2) or atoms.dtype != np.int64:
            raise AssertionError("bounds have no probabilities")
        if atoms.min() < 1 or atoms.max() > WHOLE or self.y_bits > Y_BITS:
            raise AssertionError("shares of a row do not add up to one row")

    @cached_property
    def shares(self) -> IntArray:
        """(2, U, 10) what bins get of a row at the lower bound, and at the upper; each adds up to 2^b."""
        assert self.atoms is not None
        ends = np.rint(np.multiply(BIN_ENDS, WHOLE)).astype(np.int64)
        at, b = self.atoms[:, :, None], self.y_bits
        inner = np.minimum(ends, at) * 2**b // at  # of the probability from the bound to each end
        first, last = np.zeros_like(at), np.full_like(at, 2**b)
        each = np.diff(np.concatenate([first, inner, last], axis=2), axis=2)
        return np.array([each[:, 0], each[:, 1, ::-1]])  # the ends are the same from above

    def at(self, labels: Labels, windows: FloatArray | None = None) -> Self:
        assert self.edges is not None
        assert self.atoms is not None
        found = replace(super().at(labels, windows), edges=self.edges[labels], atoms=self.atoms[labels])
        found.__dict__["shares"] = self.shares[:, labels]  # not worked out for every row
        return found


def bits_within(total: int, entries: int = 0, n_rows: int = 0, of_each: int = 1) -> tuple[int, int]:
    """Bits of y and of the matrix, of so many in all.

    If `entries` is given, for a matrix that need not be B to many digits, since predictions take it as it is:
    of a large one the last bits would only fill files. Rounding makes the longest column longer by some
    2^-13, and moves sums over all rows by two widths of the bounds at the very most, which is less than their
    noise. Columns are shorter where `of_each` of them, a person's, have length 1 together.
    """
    y_bits = min(Y_BITS, total * 4 // 9)
    if entries <= 2**16:
        return y_bits, min(MATRIX_BITS, total - y_bits)
    matrix_bits = min(max(13 + (of_each - 1).bit_length(), n_rows.bit_length() - 2), total - y_bits)
    return min(Y_BITS, total - matrix_bits), matrix_bits


def for_outcomes(limits: tuple[Limits, Limits], classes: int = 1, whole_rows: bool = False) -> Statistic:
    """What is measured of outcomes within limits: numbers, or one of several classes."""
    if classes > 1:
        return OneOf(*limits, centred=whole_rows, classes=classes)
    return Inside(*limits, centred=whole_rows)
