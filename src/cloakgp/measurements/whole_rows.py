"""What is measured of whole rows, inputs and outcomes: one column for each cell of a public grid.

Row i is in cell c(i), and u_i is its outcome, centred in the cell's window, an integer of at most 2^(b-1):

    counts  z_0 = sum_i b0_c(i),      sums  z = sum_i b_c(i) u_i.

Replacing a row by any other moves the sums by at most 2^b max |b_c|, wherever the row goes, and the counts
by at most the largest distance of two columns. Where people have up to k rows, each k times that, and the
zero column is one of them for the counts. Of several classes u_i is a number for each, less about 1/K of
2^b. No number here, the room for sums included, depends on how many rows a cell really has:
``docs/proofs.md``, theorems 20 and 21, lemma 23.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import sub
from typing import NamedTuple, TypeVar

import numpy as np

from cloakgp.calibration import SIGMA_FLOOR
from cloakgp.checks import FloatArray, frozen
from cloakgp.measurements.lattice import (
    MATRIX_BITS,
    NOISE_SCALES,
    Y_BITS,
    IntArray,
    Lattice,
    Limits,
    Measurement,
    Part,
    bits_within,
    integer_float_at_least,
    largest_squared_norm,
)
from cloakgp.measurements.spread import Spread
from cloakgp.measurements.unit import PERSON_ROWS, ROW, Unit
from cloakgp.rows.grid import Grid
from cloakgp.rows.merging import Labels

MOST_PAIRED = 5000
"""Cells up to which all pairs of columns are compared; beyond, twice the longest column is taken."""
_COUNT_BITS = 40
_MOST_COUNTED = 2**42
"""Entries of a matrix whose columns are compared are below: twice 21 bits."""
_MOST_SUMMED = 2**11
_HALF, _MASK = 21, 2**21 - 1
_BLOCK = 512  # columns that are compared with all at once


T = TypeVar("T", bound="RowSums")


class Population(NamedTuple):
    """Who is protected: so many rows; or so many people, each with at most `max_rows`."""

    size: int
    """How many there are: public."""
    max_rows: int | None = None
    """Rows of one person; None if each row is protected by itself."""

    @property
    def each(self) -> int:
        """Rows that go together, at most."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def most(self) -> int:
        """Rows in all, at most."""
        return self.size * self.each

    @property
    def unit(self) -> Unit:
        return ROW if self.max_rows is None else PERSON_ROWS


NOBODY = Population(0)


@dataclass(frozen=True, eq=False)
class RowSums(Measurement):
    """Release ``sum of matrix[:, cell] * u + noise`` over all rows."""

    population: Population = NOBODY
    grid: Grid = None  # type: ignore[assignment]
    """Whose cells have the columns."""
    estimated: FloatArray = field(default_factory=lambda: np.zeros(0))
    """(M,) how many rows each cell has, by what was measured of it: public, and only for predictions."""

    @property
    def unit(self) -> Unit:
        return self.population.unit

    @property
    def n_rows(self) -> int:
        """At most how many rows there are."""
        return self.population.most

    @property
    def labels(self) -> Labels:
        """None: which cell a row is in is private."""
        raise AssertionError("rows of a grid have no public labels")

    @property
    def counts(self) -> FloatArray:  # type: ignore[override]
        """(M,) how many rows each cell has, as estimated."""
        return self.estimated

    @property
    def lattice(self) -> Lattice:
        return super().lattice._replace(centred=True)

    @property
    def midpoint(self) -> IntArray:
        """Nothing: outcomes are counted from the middle of their windows."""
        return np.zeros(len(self.matrix), dtype=np.int64)

    @property
    def share(self) -> int:
        """What is taken from a row's integer for each class, so that they add up to about 0."""
        return (1 << self.y_bits) // self.classes

    @property
    def origin(self) -> Limits:
        """The outcome whose integer is 0: the middle of the window, or the share of each class."""
        part = 0.5 if self.classes == 1 else math.ldexp(self.share, -self.y_bits)
        return self.lower + (self.upper - self.lower) * part

    def sensitivity(self) -> int:
        """How far one row, or one person's rows, can move the sums, in lattice steps, rounded up."""
        squared = 4**self.y_bits * largest_squared_norm(self.matrix)
        if self.classes > 1:
            # Lemma 23: a row changes its class, or keeps it and goes to a cell with an opposite column.
            own = 4**self.y_bits - self.share * (2 ** (self.y_bits + 1) - self.classes * self.share)
            squared = max(2 * squared, own * furthest_squared(self.matrix, origin=False))
        return _root_up(self.population.each**2 * squared)

    def largest_sum(self) -> int:
        """Largest absolute value that a sum can take, wherever rows are."""
        return (self.population.most * _largest(self.matrix)) << self.y_bits

    def check(self) -> None:
        if self.population.size < 1 or self.population.each < 1:
            raise AssertionError("nobody is protected")
        if self.matrix.shape[1] != len(self.grid):
            raise AssertionError("columns are not for the grid's cells")
        if self.y_bits < 1 and not isinstance(self, Counts):
            raise AssertionError("outcomes have no middle to be counted from")
        distances = self.classes > 1 or isinstance(self, Counts)
        if distances and _largest(self.matrix) >= _MOST_COUNTED:
            raise AssertionError("a column is too long for exact distances")
        super().check()


@dataclass(frozen=True, eq=False)
class Counts(RowSums):
    """Release ``sum of matrix[:, cell] + noise`` over all rows: how many there are, and where."""

    def sensitivity(self) -> int:
        """How far one row, or one person's rows, can move the counts, in lattice steps, rounded up."""
        squared = furthest_squared(self.matrix, origin=self.population.max_rows is not None)
        return _root_up(self.population.each**2 * squared)

    def check(self) -> None:
        if self.y_bits != 0 or (self.lower, self.upper) != (0.0, 1.0) or self.classes != 1:
            raise AssertionError("a row does not count as one")
        super().check()


@dataclass(frozen=True, eq=False)
class RowSpread(RowSums, Spread):
    """Release the summed distances of outcomes from their cells' `centre`, each at most `limit`."""

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.lower, self.upper, self.y_bits, self.centre, self.limit)

    def mean_distance(self, z: IntArray) -> float:
        return float(z[0]) * self.step / float(self.estimated.sum())

    @property
    def std(self) -> float:
        return self.noise_scale / float(self.estimated.sum())


def make_counts(
    B: FloatArray, grid: Grid, population: Population, epsilon: float, delta: float, mu: float, part: Part
) -> Counts:
    """Counts on a fine lattice, with noise for this mu; B has columns of norm at most 1."""
    bits = min(_COUNT_BITS, _room(population, 2.0 / mu))
    return _with_noise(
        Counts(
            matrix=frozen(np.rint(np.ldexp(B, bits)).astype(np.int64)),
            y_bits=0,
            matrix_bits=bits,
            sigma=1,
            lower=0.0,
            upper=1.0,
            epsilon=epsilon,
            delta=delta,
            part=part,
            population=population,
            grid=grid,
        ),
        mu,
    )


def make_sums(
    B: FloatArray,
    windows: tuple[Limits, Limits],
    estimated: FloatArray,
    grid: Grid,
    population: Population,
    epsilon: float,
    delta: float,
    mu: float,
    part: Part,
    classes: int = 1,
) -> RowSums:
    """Sums on a fine lattice, with noise for this mu; of several `classes`, those of each.

    B has columns of norm at most 1, for outcomes in units of their windows, times the widest's width.
    """
    total = _room(population, _reach(classes) / mu)
    y_bits, matrix_bits = bits_within(total, B.size, population.most)
    return _with_noise(
        RowSums(
            matrix=frozen(np.rint(np.ldexp(B, matrix_bits)).astype(np.int64)),
            y_bits=y_bits,
            matrix_bits=matrix_bits,
            sigma=1,
            lower=windows[0],
            upper=windows[1],
            epsilon=epsilon,
            delta=delta,
            part=part,
            population=population,
            grid=grid,
            estimated=estimated,
            classes=classes,
        ),
        mu,
    )


def make_row_spread(
    centre: FloatArray,
    limit: float,
    bounds: tuple[float, float],
    estimated: FloatArray,
    grid: Grid,
    population: Population,
    epsilon: float,
    delta: float,
    mu: float,
    part: Part,
) -> RowSpread:
    """Distances on a lattice as fine as 64 bits allow, with noise for this mu."""
    total = _room(population, 1 / mu)
    y_bits = min(Y_BITS, total)
    return _with_noise(
        RowSpread(
            matrix=equal_columns(total - y_bits, len(centre)),
            y_bits=y_bits,
            matrix_bits=total - y_bits,
            sigma=1,
            lower=bounds[0],
            upper=bounds[1],
            epsilon=epsilon,
            delta=delta,
            part=part,
            population=population,
            grid=grid,
            estimated=estimated,
            centre=frozen(np.array(centre, dtype=np.float64)),
            limit=limit,
        ),
        mu,
    )


def equal_columns(bits: int, n: int) -> IntArray:
    """(1, n) a power of two for everyone."""
    return frozen(np.full((1, n), 2**bits, dtype=np.int64))


def has_room(population: Population, mu: float, classes: int = 1) -> bool:
    """Whether integers have room for sums with this mu, whatever their matrix will be."""
    bits = min(_room(population, _reach(classes) / mu), Y_BITS + MATRIX_BITS)
    return bits >= 20 and 2.0 ** (bits - 1) * population.each / mu >= SIGMA_FLOOR


def _reach(classes: int) -> float:
    """How far one row can move sums at most, for columns of norm 1 and outcomes in [0, 1]."""
    return 1.0 if classes == 1 else 2.0


def _room(population: Population, scale: float) -> int:
    """Bits such that sums over all rows, and the noise, stay below 2^61.

    `scale` is the noise's, for one row and columns of norm 1.
    """
    # Rounding makes an entry larger than 1 by half a step: a bit is left over for that and more.
    return math.floor(61 - math.log2(population.most + NOISE_SCALES * population.each * scale))


def _with_noise(m: T, mu: float) -> T:
    sigma = integer_float_at_least(Fraction(m.sensitivity()) / Fraction(mu))
    if sigma < SIGMA_FLOOR:
        raise ValueError(
            f"epsilon={m.epsilon:g} for a population of {m.population.size} leaves too few bits for exact "
            "noise; use a smaller epsilon, or a larger one if it is tiny."
        )
    made = replace(m, sigma=sigma)
    made.check()
    return made


def furthest_squared(matrix: IntArray, origin: bool) -> int:
    """Largest squared distance of two columns, exactly; with `origin`, 0 is one of them.

    With very many columns four times the largest squared norm, which is no less.
    """
    if origin:
        matrix = np.column_stack([matrix, np.zeros(len(matrix), dtype=np.int64)])
    if matrix.shape[1] > MOST_PAIRED:
        return 4 * largest_squared_norm(matrix)
    if len(matrix) > _MOST_SUMMED or _largest(matrix) >= _MOST_COUNTED:  # only a file can hold such
        columns = matrix.T.tolist()
        return max(_squared_norm(map(sub, one, other)) for one in columns for other in columns)
    # An entry is h 2^21 + l, with |h| and l at most 2^21: sums of up to 2^11 products of two such are
    # integers below 2^53, which floating point adds up exactly, in whatever order.
    high, low = ((matrix >> _HALF).astype(np.float64), (matrix & _MASK).astype(np.float64))
    blocks = [slice(start, start + _BLOCK) for start in range(0, matrix.shape[1], _BLOCK)]
    return max(_furthest_of(high, low, some) for some in blocks)


def _furthest_of(high: FloatArray, low: FloatArray, some: slice) -> int:
    """Largest squared distance of some columns from all, with differences h 2^21 + l."""
    hh, ll = _products(high, high, some), _products(low, low, some)
    hl = _products(high, low, some) + _products(low, high, some)
    # Carried over, so that the largest is the one whose digits are.
    hl += ll >> _HALF
    hh += hl >> _HALF
    digits = hh.ravel(), (hl & _MASK).ravel(), (ll & _MASK).ravel()
    first = int(digits[0].max())
    rest = digits[0] == first
    second = int(digits[1][rest].max())
    third = int(digits[2][rest & (digits[1] == second)].max())
    return (first << 2 * _HALF) + (second << _HALF) + third


def _products(one: FloatArray, other: FloatArray, some: slice) -> IntArray:
    """(n, M) <x - x', y - y'> for some columns with all."""
    whole = np.einsum("ij,ij->j", one, other).astype(np.int64)
    between = (one[:, some].T @ other).astype(np.int64) + (other[:, some].T @ one).astype(np.int64)
    return np.asarray(whole[some, None] + whole - between)


def _squared_norm(column: Iterable[int]) -> int:
    return sum(entry**2 for entry in column)


def _largest(matrix: IntArray) -> int:
    return max(-int(matrix.min(initial=0)), int(matrix.max(initial=0)))  # abs would wrap for -2^63


def _root_up(squared: int) -> int:
    root = math.isqrt(squared)
    return root if root**2 == squared else root + 1
