"""A measurement in integers: columns x statistic x unit x noise. The only thing that the noise is scaled to.

Real columns B and outcomes y become integers,

    B_int = rint(2^a B),    s(y) by a statistic, of b bits (:mod:`cloakgp.measure.statistics`),

so that sum_i B_int,i s(y_i), how far one unit of protection can move it
(:mod:`cloakgp.measure.sensitivity`) and the noise are exact: no rounding error can add to what one row of y
can change (Mironov 2012; Casacuberta et al. 2022).

Bounds may differ from row to row: row i has a window [lo_i, lo_i + d_i]. Then d_i goes into its column,
rint(2^a B_i d_i / d) with d the widest, and its integer is in [0, 2^b] as before, whatever y is: nothing else
changes. Where a statistic makes several integers of an outcome, all are multiplied by the same B_int.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakgp.core.calibration import SIGMA_FLOOR, total_delta
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.data.chunks import in_threads, steps
from cloakgp.data.merging import Groups, Labels
from cloakgp.data.people import People
from cloakgp.measure.sensitivity import MOST_COUNTED, largest_entry, root_up, squared_sensitivity
from cloakgp.measure.statistics import MATRIX_BITS, Y_BITS, Limits, Statistic
from cloakgp.measure.unit import OUTCOME, PERSON, Population, Unit

GAUSSIAN, LAPLACE = "gaussian", "laplace"
NOISES = (LAPLACE, GAUSSIAN)
"""Laws of the noise: Laplace's is scaled to what one unit moves in L1, and has no delta."""
HEADROOM = 2**62
"""Every sum that is formed, plus noise of so many times its scale, stays below this."""
NOISE_SCALES = 64
"""Times its scale beyond which noise is hardly ever."""


class Part(NamedTuple):
    """What a measurement may spend of a promise that several keep together: Gaussian DP adds mu squared."""

    share: float
    """Of the whole promise's mu squared."""
    n_measurements: int
    """At most how many numbers there will be in all."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Release ``sum of matrix[:, column of a row] * statistic(y) + noise`` over all rows.

    And the promise that this must keep. A measurement may be one of several that keep it together.
    """

    matrix: IntArray  # (q, U): a column for each group of rows, or cell of a box; sparse for bins
    matrix_bits: int
    statistic: Statistic
    sigma: int  # noise std in lattice steps; the scale, of Laplace noise
    epsilon: float
    delta: float
    declared: int = 0
    """Sensitivity that the noise is scaled to where it is larger than the matrix's own."""
    groups: Groups | None = None
    """Which rows of y share a column, since they are equal or in one cell; None if no two do."""
    part: Part | None = None
    """If it is one of several measurements that keep the promise together; None if it keeps it alone."""
    people: People | None = None
    """Who has which rows, if the promise is to each person; None if it is to each row."""
    population: Population | None = None
    """Whose whole rows are protected, if the promise is to these. Then `groups` has estimated counts only."""
    noise: str = GAUSSIAN

    @property
    def n_measurements(self) -> int:
        return self.statistic.width * int(self.matrix.shape[0])

    @property
    def n_rows(self) -> int:
        """Rows of y; at most so many, where whole rows are private."""
        if self.population is not None:
            return self.population.most
        return int(self.matrix.shape[1]) if self.groups is None else self.groups.n_rows

    @property
    def unit(self) -> Unit:
        """Whom the noise is made for."""
        if self.population is not None:
            return self.population.unit
        return OUTCOME if self.people is None else PERSON

    @property
    def labels(self) -> Labels:
        """(N,) which column each row of y has."""
        if self.population is not None:
            raise AssertionError("rows of a grid have no public labels")
        return np.arange(self.n_rows) if self.groups is None else self.groups.labels

    @property
    def counts(self) -> NDArray[Any]:
        """How many rows of y each column belongs to; estimates, where whole rows are private."""
        return np.ones(self.matrix.shape[1], dtype=np.int64) if self.groups is None else self.groups.counts

    @property
    def partition(self) -> str:
        """The digest of who has which rows; empty if the promise is to each row."""
        return "" if self.people is None else self.people.digest

    @property
    def y_bits(self) -> int:
        return self.statistic.y_bits

    @property
    def lower(self) -> Limits:
        """Lower edges of what outcomes are clipped to."""
        return self.statistic.lower

    @property
    def upper(self) -> Limits:
        return self.statistic.upper

    @property
    def width(self) -> float:
        """Of the bounds; of the widest, where rows have their own."""
        return float(np.max(self.upper - self.lower))

    @property
    def step(self) -> float:
        """What one lattice step of a measurement is worth, in y's unit."""
        return math.ldexp(self.statistic.span, -(self.y_bits + self.matrix_bits))

    @property
    def noise_scale(self) -> float:
        """Std of the noise on each measurement, in y's unit."""
        return self.sigma * self.step * (math.sqrt(2) if self.noise == LAPLACE else 1.0)

    @property
    def column_sum(self) -> IntArray:
        """(q,) the sum of the columns over all rows of y."""
        return np.asarray(self.matrix @ self.counts)

    @property
    def midpoint(self) -> IntArray:
        """The measurements of y = the statistic's origin everywhere."""
        middle: IntArray = self.column_sum * (0 if self.statistic.centred else 2 ** (self.y_bits - 1))
        return middle.astype(np.int64)

    def real_matrix(self, rows: slice = slice(None)) -> FloatArray:
        """The matrix as real numbers: what is measured of y - lo, summed over the rows of a group."""
        real = np.ldexp(self.matrix[:, rows].astype(np.float64), -self.matrix_bits)
        worth = self.statistic.worth
        if isinstance(worth, np.ndarray):
            real *= self.statistic.span / worth[rows]
        return real

    def by_row(self) -> FloatArray:
        """(q, N) the same with a column for each row of y."""
        real = self.real_matrix()
        return real if self.groups is None else real[:, self.groups.labels]

    @property
    def total(self) -> FloatArray:
        """The measurements of y - lo = 1 everywhere, where rows have the same bounds."""
        return np.ldexp(self.column_sum.astype(np.float64), -self.matrix_bits)

    def middle_less(self, mean: Limits) -> FloatArray:
        """(q,) what would be measured of how far the middle of the bounds is from a mean.

        The mean is one number, or one for each column. Where columns differ, the same on every machine, to
        the last bit: each sum is rounded once.
        """
        width = self.upper - self.lower
        middle: Limits = self.lower + width / 2 - mean
        if not isinstance(middle, np.ndarray):
            return np.asarray(middle * self.total)
        each = self.counts * (middle * (self.width / width))
        units = [math.fsum((row.astype(np.float64) * each).tolist()) for row in self.matrix]
        return np.ldexp(units, -self.matrix_bits)

    def sensitivity(self) -> int:
        """How far one unit of protection can move the measurements: in steps, rounded up."""
        labels = self.labels if self.people is not None else None
        who, norm = (self.people, self.population), 1 if self.noise == LAPLACE else 2
        squared = squared_sensitivity(self.matrix, labels, self.statistic, *who, norm)
        return max(root_up(squared), self.declared)

    def largest_sum(self) -> int:
        """Largest absolute value that the measurements or a partial sum of them can take."""
        largest = self.statistic.largest
        if self.population is not None:  # wherever rows are
            return self.population.most * largest_entry(self.matrix) * largest
        magnitudes = _absolute_sums(self.matrix, self.counts)
        return math.ceil(float(magnitudes.max(initial=0.0)) * (1 + 1e-6)) * largest

    def mu(self) -> float:
        """Sensitivity over noise std, or over Laplace's scale, rounded up."""
        exact = Fraction(self.sensitivity(), self.sigma)
        value = float(exact)
        return value if Fraction(value) >= exact else math.nextafter(value, math.inf)

    def check(self) -> None:
        """Raise unless this measurement provably keeps its promise; y is not needed to tell."""
        if self.matrix.dtype != np.int64 or self.statistic.width < 1:
            raise AssertionError("measurement is not on a fine enough integer lattice")
        if self.noise == LAPLACE and (self.statistic.width > 1 or self.population is not None):
            raise AssertionError("Laplace noise is for one number per row, of rows whose inputs are public")
        self.statistic.check(self.matrix, self.population is not None)
        if self.population is not None:
            self._check_population(self.population)
        else:
            self._check_rows()
        if self.noise not in NOISES or self.sigma < (SIGMA_FLOOR if self.noise == GAUSSIAN else 1):
            raise AssertionError("measurement is not on a fine enough integer lattice")
        if not np.all(self.upper > self.lower):
            raise AssertionError("a row's bounds hold nothing")
        if self.largest_sum() + NOISE_SCALES * self.sigma >= HEADROOM:
            raise AssertionError("measurement could overflow 64-bit integers")
        if float(self.sigma) != self.sigma:
            raise AssertionError("noise scale is not a floating-point number")
        if not self.keeps_promise():
            raise AssertionError("noise is too small for (epsilon, delta)")

    def _check_rows(self) -> None:
        # Counts decide whether a sum can wrap. Without labels, which a file may lack, no y can be measured.
        labels = np.empty(0, dtype=np.intp) if self.groups is None else self.groups.labels
        found = np.bincount(labels, minlength=self.matrix.shape[1])
        if len(labels) and not (len(found) == self.matrix.shape[1] and np.array_equal(found, self.counts)):
            raise AssertionError("columns are not for as many rows of y as was counted")
        if self.people is not None and self.people.n_rows != len(self.labels):
            raise AssertionError("people are not those of as many rows of y")

    def _check_population(self, population: Population) -> None:
        if population.size < 1 or population.each < 1:
            raise AssertionError("nobody is protected")
        if self.matrix.shape[1] != len(population.grid):
            raise AssertionError("columns are not for the grid's cells")
        if self.people is not None:
            raise AssertionError("whole rows are not measured like that")
        if self.statistic.compares and largest_entry(self.matrix) >= MOST_COUNTED:
            raise AssertionError("a column is too long for exact distances")

    def keeps_promise(self) -> bool:
        """Whether noise is as large as the sensitivity needs; for NaN, no."""
        if self.noise == LAPLACE:
            # As fractions: a product of floats may be rounded up to what it must reach.
            pure = self.delta == 0 and 0 < self.epsilon < math.inf and self.part is None
            return pure and self.sensitivity() <= Fraction(self.epsilon) * self.sigma
        whole, q = self.mu(), self.n_measurements
        if self.part is not None:
            whole, q = whole / math.sqrt(self.part.share), max(q, self.part.n_measurements)
        return total_delta(whole, self.epsilon, self.delta, q) <= self.delta


def measurement_of(
    B: FloatArray,
    statistic: Statistic,
    epsilon: float,
    delta: float,
    mu: float,
    *,
    groups: Groups | None = None,
    people: People | None = None,
    population: Population | None = None,
    part: Part | None = None,
    full_scale: bool = False,
    hide_inputs: bool = False,
    any_near: bool = False,
) -> Measurement:
    """Quantise measurements B, whose columns have norm at most 1, and scale the noise to the integers.

    Where rows have bounds of their own, B is for outcomes in units of these, times the widest's width.

    `groups` says which rows of y each column is for, if it is for more than one, and `people` whose rows they
    are, if the promise is to people: then the columns of one person together are about that long. With
    `population`, columns are for the cells of its grid. With `full_scale` the noise is that for columns of
    norm 1, however short B's are. With `hide_inputs` the lattice does not depend on B either. With `any_near`
    predictions are made from the very integers, so that any matrix near B is about as good: see
    :func:`cloakgp.measure.statistics.bits_within`.
    """
    if population is None:
        counts = np.ones(B.shape[1]) if groups is None else groups.counts.astype(np.float64)
        n_rows, each = int(counts.sum()), 1 if people is None else people.most_rows
        sums = float(n_rows) if hide_inputs else float(_absolute_sums(B, counts).max())
        reach = math.sqrt(statistic.change / 4**statistic.y_bits)
        reach *= 1.0 if people is None else _longest_together(B, groups, people)
    else:
        n_rows, each = population.most, 1
        sums, reach = float(n_rows), population.each * statistic.cell_reach
    total = room(sums, reach / mu)
    y_bits, matrix_bits = statistic.split(total, (B.size, n_rows, each) if any_near else None)
    draft = Measurement(
        matrix=_rounded(B, matrix_bits),
        matrix_bits=matrix_bits,
        statistic=statistic.with_bits(y_bits),
        sigma=1,
        epsilon=epsilon,
        delta=delta,
        declared=full_scale_sensitivity(len(B), y_bits, matrix_bits) if full_scale else 0,
        groups=groups,
        part=part,
        people=people,
        population=population,
    )
    sigma = integer_float_at_least(Fraction(draft.sensitivity()) / Fraction(mu))
    if sigma < SIGMA_FLOOR:
        raise ValueError(
            f"epsilon={epsilon:g} with {n_rows} rows leaves too few bits for exact noise; use a smaller "
            "epsilon, or a larger one if it is tiny, or inducing inputs to combine rows."
        )
    measurement = replace(draft, sigma=sigma)
    measurement.check()
    return measurement


def room(rows: float, scale: float) -> int:
    """Bits such that sums over so many rows, and noise of this scale, stay below 2^61, a bit under the limit.

    In units of the largest integer and of columns of norm 1.
    """
    return math.floor(61 - math.log2(rows + NOISE_SCALES * scale))


def has_room(rows: int, mu: float, most: float, least: float) -> bool:
    """Whether integers have room, whatever the matrix will be: nothing may fail once it is paid for.

    `most` and `least` say how far a unit can move a measurement, in longest columns.
    """
    bits = min(room(rows, most / mu), Y_BITS + MATRIX_BITS)
    return bits >= 20 and 2.0 ** (bits - 1) * least / mu >= SIGMA_FLOOR


def _longest_together(B: FloatArray, groups: Groups | None, people: People) -> float:
    """The largest sum of one person's column norms, if it is above 1; about."""
    if people.most_rows == 1:
        return 1.0
    norms = np.linalg.norm(B, axis=0)
    sums = np.bincount(people.labels, norms if groups is None else norms[groups.labels])
    return max(float(sums.max()), 1.0)


def exact_product(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """A matrix times a vector, each sum rounded once: the same on every machine, to the last bit."""
    return np.array([math.fsum(row) for row in np.multiply(matrix, vector).tolist()])


def full_scale_sensitivity(q: int, y_bits: int, matrix_bits: int) -> int:
    """Sensitivity of any matrix with columns of norm at most 1: rounding adds at most sqrt(q)/2."""
    longest: int = 2**matrix_bits + math.isqrt(q) + 1
    return longest << y_bits


def _rounded(B: FloatArray, bits: int) -> IntArray:
    """In units of 2^-bits, a few columns at a time: a large matrix is not copied over and over."""
    matrix = np.empty(B.shape, np.int64)

    def work(some: slice) -> None:
        matrix[:, some] = np.rint(np.ldexp(B[:, some], bits))

    in_threads(work, list(steps(B.shape[1])))
    return frozen(matrix)


def _absolute_sums(matrix: NDArray[Any], counts: NDArray[Any]) -> FloatArray:
    """(q,) about the sum over all rows of y of the columns' absolute values."""
    if sparse.issparse(matrix):
        return np.asarray(abs(matrix.astype(np.float64)) @ counts)

    def work(some: slice) -> FloatArray:
        return np.asarray(np.abs(matrix[:, some].astype(np.float64)) @ counts[some])

    return np.asarray(sum(in_threads(work, list(steps(matrix.shape[1]))), np.zeros(len(matrix))))


def integer_float_at_least(value: Fraction) -> int:
    """Smallest integer >= value that is also a float64."""
    candidate = float(math.ceil(value))
    while Fraction(candidate) < value:
        candidate = math.nextafter(candidate, math.inf)
    return int(candidate) if candidate.is_integer() else math.ceil(candidate)
