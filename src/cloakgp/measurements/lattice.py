"""The measurement in integers: public, exact, and the only thing that the noise is scaled to.

Real measurements B and outcomes y become integers,

    B_int = rint(2^a B),    y_int = round (y - lo) / d to multiples of 2^-b, clamped to [0, 2^b],

so that B_int y_int, its sensitivity 2^b max_i |column i of B_int|, and the noise are exact: no
rounding error can add to what one row of y can change (Mironov 2012; Casacuberta et al. 2022).

Bounds may differ from row to row: row i has a window [lo_i, lo_i + d_i]. Then d_i goes into its column,
rint(2^a B_i d_i / d) with d the widest, and y_int is an integer in [0, 2^b] as before, whatever y is: nothing
else changes.

Where an outcome is one of several classes, y_int is a column of integers for each class, with 2^b for the
class that an outcome is and 0 for the others, and all of them are multiplied by the same B_int: lemma 22 of
``docs/proofs.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.calibration import SIGMA_FLOOR, total_delta
from cloakgp.checks import FloatArray, frozen
from cloakgp.measurements.one_person import largest_squared_move
from cloakgp.measurements.unit import OUTCOME, PERSON, Unit
from cloakgp.rows.chunks import in_threads, steps
from cloakgp.rows.merging import Groups, Labels
from cloakgp.rows.people import People

IntArray = NDArray[np.int64]

HEADROOM = 2**62
"""Every sum that is formed, plus noise of so many times its scale, stays below this."""
NOISE_SCALES = 64
"""Times its scale beyond which noise is hardly ever."""
Y_BITS, MATRIX_BITS = 24, 30  # finest lattice: beyond it nothing is gained
_LARGE = 2**16  # entries of a matrix beyond which files gain by a coarser one
_COARSE = 13  # its bits, at least


Limits = float | FloatArray
"""One number for all rows, or one for each column of a matrix."""


class Lattice(NamedTuple):
    """The public bounds, and how finely y is rounded within them: to integers in [0, 2^y_bits]."""

    lower: Limits
    upper: Limits
    y_bits: int
    centre: FloatArray | None = None
    """If given, what is rounded is how far y, clipped to the bounds, is from it: at most `limit`."""
    limit: float = 0.0
    centred: bool = False
    """Whether integers are counted from the middle of the bounds, and so at most 2^(y_bits - 1) in size."""

    def at(self, labels: Labels, windows: FloatArray | None = None) -> Lattice:
        """The same for rows that have these columns; or, if they are given, these limits."""
        if windows is not None:
            return self._replace(lower=windows[:, 0], upper=windows[:, 1])
        lower, upper = of_rows(self.lower, labels), of_rows(self.upper, labels)
        centre = None if self.centre is None else self.centre[labels]
        return self._replace(lower=lower, upper=upper, centre=centre)


class Part(NamedTuple):
    """What a measurement may spend of a promise that several keep together: Gaussian DP adds mu squared."""

    share: float
    """Of the whole promise's mu squared."""
    n_measurements: int
    """At most how many numbers there will be in all."""


class Measured(ABC):
    """Integer columns times y_int, plus noise; and the promise that this must keep."""

    y_bits: int
    matrix_bits: int
    sigma: int  # noise std in lattice steps
    lower: Limits
    upper: Limits
    epsilon: float
    delta: float
    groups: Groups | None
    """Which rows of y share a column, being equal in all that is public; None if no two do."""
    part: Part | None
    """If it is one of several measurements that keep the promise together; None if it keeps it alone."""
    people: People | None
    """Who has which rows, if the promise is to each person; None if it is to each row."""

    @property
    @abstractmethod
    def n_measurements(self) -> int: ...

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of y."""

    @property
    @abstractmethod
    def column_sum(self) -> IntArray:
        """(q,) the sum of the columns over all rows of y."""

    @abstractmethod
    def sensitivity(self) -> int:
        """How far one row of y, or all of one person's, can move the measurements: in steps, rounded up."""

    @abstractmethod
    def largest_sum(self) -> int:
        """Largest absolute value that the measurements or a partial sum of them can take."""

    @property
    def unit(self) -> Unit:
        """Whom the noise is made for."""
        return OUTCOME if self.people is None else PERSON

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.lower, self.upper, self.y_bits)

    @property
    def width(self) -> float:
        """Of the bounds; of the widest, where rows have their own."""
        return float(np.max(self.upper - self.lower))

    @property
    def step(self) -> float:
        """What one lattice step of a measurement is worth, in y's unit."""
        return math.ldexp(self.width, -(self.y_bits + self.matrix_bits))

    @property
    def noise_scale(self) -> float:
        """Std of the noise on each measurement, in y's unit."""
        return self.sigma * self.step

    @property
    def total(self) -> FloatArray:
        """The measurements of y - lo = 1 everywhere."""
        return np.ldexp(self.column_sum.astype(np.float64), -self.matrix_bits)

    @property
    def midpoint(self) -> IntArray:
        """The measurements of y = midpoint of the bounds everywhere."""
        result: IntArray = self.column_sum * 2 ** (self.y_bits - 1)
        return result

    def middle_less(self, mean: Limits) -> FloatArray:
        """(q,) what would be measured of how far the middle of the bounds is from a mean.

        The mean is one number, or one for each column.
        """
        assert isinstance(mean, float)
        assert not isinstance(self.lower, np.ndarray)
        result: FloatArray = (self.lower + (self.upper - self.lower) / 2 - mean) * self.total
        return result

    def mu(self) -> float:
        """Sensitivity over noise std, rounded up."""
        exact = Fraction(self.sensitivity(), self.sigma)
        value = float(exact)
        return value if Fraction(value) >= exact else math.nextafter(value, math.inf)

    def check(self) -> None:
        """Raise unless this measurement provably keeps its promise; y is not needed to tell."""
        if self.sigma < SIGMA_FLOOR:
            raise AssertionError("measurement is not on a fine enough integer lattice")
        if not np.all(self.upper > self.lower):
            raise AssertionError("a row's bounds hold nothing")
        if self.largest_sum() + NOISE_SCALES * self.sigma >= HEADROOM:
            raise AssertionError("measurement could overflow 64-bit integers")
        if float(self.sigma) != self.sigma:
            raise AssertionError("noise scale is not a floating-point number")
        whole, q = self.mu(), self.n_measurements
        if self.part is not None:
            whole, q = whole / math.sqrt(self.part.share), max(q, self.part.n_measurements)
        # "not <=" rather than ">": it must fail for NaN too.
        if not total_delta(whole, self.epsilon, self.delta, q) <= self.delta:
            raise AssertionError("noise is too small for (epsilon, delta)")


@dataclass(frozen=True, eq=False)
class Measurement(Measured):
    """Release ``matrix @ y_int + noise``: integers, and the promise that they must keep."""

    matrix: IntArray  # (q, U): a column for each group of rows
    y_bits: int
    matrix_bits: int
    sigma: int
    lower: Limits
    upper: Limits
    epsilon: float
    delta: float
    declared: int = 0
    """Sensitivity that the noise is scaled to where it is larger than the matrix's own."""
    groups: Groups | None = None
    part: Part | None = None
    people: People | None = None
    classes: int = 1
    """How many columns of integers an outcome has: one for each class, where it is one of several."""

    @property
    def n_measurements(self) -> int:
        return self.classes * len(self.matrix)

    @property
    def n_rows(self) -> int:
        return int(self.matrix.shape[1]) if self.groups is None else self.groups.n_rows

    @property
    def labels(self) -> Labels:
        """(N,) which column each row of y has."""
        return np.arange(self.n_rows) if self.groups is None else self.groups.labels

    @property
    def counts(self) -> IntArray:
        """How many rows of y each column belongs to."""
        return np.ones(self.matrix.shape[1], dtype=np.int64) if self.groups is None else self.groups.counts

    @property
    def partition(self) -> str:
        """The digest of who has which rows; empty if the promise is to each row."""
        return "" if self.people is None else self.people.digest

    def real_matrix(self, rows: slice = slice(None)) -> FloatArray:
        """The matrix as real numbers: what is measured of y - lo, summed over the rows of a group."""
        real = np.ldexp(self.matrix[:, rows].astype(np.float64), -self.matrix_bits)
        if isinstance(self.lower, np.ndarray):
            real *= self.width / (self.upper - self.lower)[rows]
        return real

    @property
    def total(self) -> FloatArray:
        """The measurements of y - lo = 1 everywhere."""
        return self.real_matrix() @ self.counts if isinstance(self.lower, np.ndarray) else super().total

    def middle_less(self, mean: Limits) -> FloatArray:
        """(q,) what would be measured of how far the middle of the bounds is from a mean.

        Where rows differ, the same on every machine, to the last bit: each sum is rounded once.
        """
        if isinstance(mean, float) and not isinstance(self.lower, np.ndarray):
            return super().middle_less(mean)
        width = self.upper - self.lower
        each = self.counts * ((self.lower + width / 2 - mean) * (self.width / width))
        units = [math.fsum((row.astype(np.float64) * each).tolist()) for row in self.matrix]
        return np.ldexp(units, -self.matrix_bits)

    def by_row(self) -> FloatArray:
        """(q, N) the same with a column for each row of y."""
        real = self.real_matrix()
        return real if self.groups is None else real[:, self.groups.labels]

    @property
    def column_sum(self) -> IntArray:
        """(q,) the sum of the columns over all rows of y."""
        result: IntArray = self.matrix @ self.counts
        return result

    def sensitivity(self) -> int:
        """How far one row of y, or all of one person's, can move the measurements: in steps, rounded up."""
        several = self.classes > 1
        if self.people is None:
            squared = 4**self.y_bits * largest_squared_norm(self.matrix)
        else:
            squared = 4**self.y_bits * largest_squared_move(
                self.matrix, self.labels, self.people, signs=not several
            )
        # Lemma 22: an outcome that changes leaves the sums of one class and enters those of another.
        squared *= 2 if several else 1
        root = math.isqrt(squared)
        return max(root if root**2 == squared else root + 1, self.declared)

    def check(self) -> None:
        if self.matrix.dtype != np.int64 or self.classes < 1:
            raise AssertionError("measurement is not on a fine enough integer lattice")
        # Counts decide whether a sum can wrap. Without labels, which a file may lack, no y can be measured.
        labels = np.empty(0, dtype=np.intp) if self.groups is None else self.groups.labels
        if len(labels) and not np.array_equal(
            np.bincount(labels, minlength=self.matrix.shape[1]), self.counts
        ):
            raise AssertionError("columns are not for as many rows of y as was counted")
        if self.people is not None and self.people.n_rows != len(self.labels):
            raise AssertionError("people are not those of as many rows of y")
        super().check()

    def largest_sum(self) -> int:
        """Largest absolute value that the measurements or a partial sum of them can take."""
        magnitudes = _absolute_sums(self.matrix, self.counts)
        return math.ceil(float(magnitudes.max(initial=0.0)) * (1 + 1e-6)) << self.y_bits


def of_rows(value: Limits, labels: Labels) -> Limits:
    """What rows have that have these columns; a number stands for all."""
    return value[labels] if isinstance(value, np.ndarray) else value


def to_integers(
    B: FloatArray,
    bounds: tuple[Limits, Limits],
    epsilon: float,
    delta: float,
    mu: float,
    *,
    groups: Groups | None = None,
    full_scale: bool = False,
    hide_inputs: bool = False,
    part: Part | None = None,
    people: People | None = None,
    classes: int = 1,
    any_near: bool = False,
) -> Measurement:
    """Quantise measurements B, whose columns have norm at most 1, and scale the noise to the integers.

    Where rows have bounds of their own, B is for outcomes in units of these, times the widest's width.

    `groups` says which rows of y each column is for, if it is for more than one, and `people` whose rows they
    are, if the promise is to people: then the columns of one person together are about that long. Of
    `classes` an outcome is one, if it is one of several. With `full_scale` the noise is that for columns of
    norm 1, however short B's are. With `hide_inputs` the lattice does not depend on B either. With `any_near`
    predictions are made from the very integers, so that any matrix near B is about as good: see
    :func:`bits_within`.
    """
    q = len(B)
    counts = np.ones(B.shape[1]) if groups is None else groups.counts.astype(np.float64)
    n_rows = int(counts.sum())
    rows = float(n_rows) if hide_inputs else float(_absolute_sums(B, counts).max())
    # Bits such that row sums of |B_int| y_int and 64 sigma stay below 2^61, a bit under the limit.
    reach = 1.0 if people is None else _longest_together(B, groups, people)
    reach *= math.sqrt(2) if classes > 1 else 1.0
    total = math.floor(61 - math.log2(rows + NOISE_SCALES * reach / mu))
    near = (B.size, n_rows, 1 if people is None else people.most_rows) if any_near else ()
    y_bits, matrix_bits = bits_within(total, *near)
    declared = full_scale_sensitivity(q, y_bits, matrix_bits) if full_scale else 0
    matrix = frozen(_rounded(B, matrix_bits))
    fixed = (*bounds, epsilon, delta, declared, groups, part, people, classes)
    sensitivity = Measurement(matrix, y_bits, matrix_bits, 1, *fixed).sensitivity()
    sigma = integer_float_at_least(Fraction(sensitivity) / Fraction(mu))
    if sigma < SIGMA_FLOOR:
        raise ValueError(
            f"epsilon={epsilon:g} with {n_rows} rows leaves too few bits for exact noise; "
            "use a smaller epsilon, or inducing inputs to combine rows."
        )
    measurement = Measurement(matrix, y_bits, matrix_bits, sigma, *fixed)
    measurement.check()
    return measurement


def bits_within(total: int, entries: int = 0, n_rows: int = 0, of_each: int = 1) -> tuple[int, int]:
    """Bits of y and of the matrix, of so many in all.

    If `entries` is given, for a matrix that need not be B to many digits, since predictions take it as it is:
    of a large one the last bits would only fill files. Rounding makes the longest column longer by some
    2^-13, and moves sums over all rows by two widths of the bounds at the very most, which is less than their
    noise. Columns are shorter where `of_each` of them, a person's, have length 1 together.
    """
    y_bits = min(Y_BITS, total * 4 // 9)
    if entries <= _LARGE:
        return y_bits, min(MATRIX_BITS, total - y_bits)
    matrix_bits = min(max(_COARSE + (of_each - 1).bit_length(), n_rows.bit_length() - 2), total - y_bits)
    return min(Y_BITS, total - matrix_bits), matrix_bits


def _longest_together(B: FloatArray, groups: Groups | None, people: People) -> float:
    """The largest sum of one person's column norms, if it is above 1; about."""
    if people.most_rows == 1:
        return 1.0
    norms = np.linalg.norm(B, axis=0)
    sums = np.bincount(people.labels, norms if groups is None else norms[groups.labels])
    return max(float(sums.max()), 1.0)


def exact_offset(
    reconstruction: FloatArray, total: FloatArray, mean: float, bounds: tuple[float, float]
) -> FloatArray:
    """The prediction if every y were the middle of the bounds: the same on every machine, to the last bit.

    `total` is what the measurements of y = 1 everywhere would be. Each sum is rounded once.
    """
    middle = bounds[0] + (bounds[1] - bounds[0]) / 2
    result: FloatArray = mean + exact_product(reconstruction, total) * (middle - mean)
    return result


def exact_product(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """A matrix times a vector, each sum rounded once."""
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
    return matrix


def _absolute_sums(matrix: NDArray[Any], counts: NDArray[Any]) -> FloatArray:
    """(q,) about the sum over all rows of y of the columns' absolute values."""

    def work(some: slice) -> FloatArray:
        sums: FloatArray = np.abs(matrix[:, some].astype(np.float64)) @ counts[some]
        return sums

    total: FloatArray = sum(in_threads(work, list(steps(matrix.shape[1]))), np.zeros(len(matrix)))
    return total


def largest_squared_norm(matrix: IntArray, real: FloatArray | None = None) -> int:
    """Largest squared column norm, exactly; `real` is the same matrix in float64, if there is one."""

    def work(some: slice) -> int:
        part = matrix[:, some]
        return _largest_of_few(part, part.astype(np.float64) if real is None else real[:, some])

    return max(in_threads(work, list(steps(matrix.shape[1]))), default=0)


def _largest_of_few(matrix: IntArray, real: FloatArray) -> int:
    approximate = np.einsum("ij,ij->j", real, real)
    # A sum of q squares in float64 is within a factor 1 +- (q + 3) 2^-53 of the exact one, so the longest
    # column is among these, and below that bar no int64 partial sum can wrap; above it, Python integers.
    candidates = matrix[:, approximate >= approximate.max() * (1 - 1e-6)]
    if approximate.max() < 2**62:
        return int(np.einsum("ij,ij->j", candidates, candidates).max())
    largest: int = max(sum(entry**2 for entry in column) for column in candidates.T.tolist())
    return largest


def integer_float_at_least(value: Fraction) -> int:
    """Smallest integer >= value that is also a float64."""
    candidate = float(math.ceil(value))
    while Fraction(candidate) < value:
        candidate = math.nextafter(candidate, math.inf)
    return int(candidate) if candidate.is_integer() else math.ceil(candidate)
