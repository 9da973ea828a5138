"""Sums of y over bins, in integers: public, exact, and what the noise of binning is scaled to.

Each row is in exactly one bin, so replacing one y moves one sum, by at most 2^y_bits: that is the
sensitivity of all sums together, in L1 and in L2 (lemma 12 of ``docs/proofs.md``). All outcomes of a person
who has c_j rows in bin j move sum j by at most c_j 2^y_bits: then it is 2^y_bits times the largest sum of a
person's c_j in L1, and the root of the largest sum of their squares in L2. Both are reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cloakgp.calibration import SIGMA_FLOOR, calibrate, total_delta
from cloakgp.checks import frozen
from cloakgp.measurements.lattice import HEADROOM, NOISE_SCALES, IntArray, Lattice, integer_float_at_least
from cloakgp.rows.people import People

MECHANISMS = ("laplace", "gaussian")
_Y_BITS, _LEAST_BITS = 40, 10


@dataclass(frozen=True, eq=False)
class BinSums:
    """Release the sums of y_int over bins, plus noise: integers, and the promise that they must keep."""

    labels: IntArray  # (N,) which bin each row is in
    n_bins: int
    y_bits: int
    lower: float
    upper: float
    epsilon: float
    delta: float
    mechanism: str
    scale: int  # of the noise, in steps: Laplace's scale, or the Gaussian's std
    people: People | None = None  # who has which rows, if the promise is to each person

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def matrix(self) -> Any:
        """(q, q) sparse: a bin's column is a unit vector."""
        from scipy import sparse

        return sparse.eye(self.n_bins, dtype=np.int64, format="csc")

    @property
    def sensitivity(self) -> int:
        """How far one row of y, or all of one person's, can move the sums: in steps, rounded up."""
        squared = squared_reach(self.labels, self.people, self.mechanism) << 2 * self.y_bits
        root = math.isqrt(squared)
        return root if root**2 == squared else root + 1

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.lower, self.upper, self.y_bits)

    @property
    def step(self) -> float:
        """What one step is worth, in y's unit."""
        return math.ldexp(self.upper - self.lower, -self.y_bits)

    @property
    def mu(self) -> float:
        """Sensitivity over noise std, for Gaussian noise, rounded up."""
        return math.nextafter(self.sensitivity / self.scale, math.inf)

    @property
    def noise_std(self) -> float:
        """Std of the noise on each sum, in y's unit."""
        return self.scale * self.step * (math.sqrt(2.0) if self.mechanism == "laplace" else 1.0)

    def check(self) -> None:
        """Raise unless these sums provably keep their promise; y is not needed to tell."""
        if self.labels.dtype != np.int64 or self.labels.min() < 0 or self.labels.max() >= self.n_bins:
            raise AssertionError("a row is in no bin")
        if self.people is not None and self.people.n_rows != self.n_rows:
            raise AssertionError("people are not those of as many rows")
        largest = int(np.bincount(self.labels).max())
        if (largest << self.y_bits) + NOISE_SCALES * self.scale >= HEADROOM:
            raise AssertionError("sums could overflow 64-bit integers")
        if float(self.scale) != self.scale:
            raise AssertionError("noise scale is not a floating-point number")
        if not self._keeps_promise():
            raise AssertionError("noise is too small for the promise")

    def _keeps_promise(self) -> bool:
        if self.mechanism == "laplace":
            # As fractions: a product of floats may be rounded up to what it must reach.
            possible = self.delta == 0 and 0 < self.epsilon < math.inf
            return possible and self.sensitivity <= Fraction(self.epsilon) * self.scale
        if self.scale < SIGMA_FLOOR:
            return False
        return total_delta(self.mu, self.epsilon, self.delta, self.n_bins) <= self.delta


def squared_reach(labels: IntArray, people: People | None, mechanism: str) -> int:
    """The square of how far one person can move the sums, where one outcome moves by 1; exact.

    In L1, the norm that Laplace noise goes by, or in L2, that of Gaussian noise.
    """
    if people is None:
        return 1
    if mechanism == "laplace":
        return people.most_rows**2
    n_bins = int(labels.max()) + 1
    pairs, counts = np.unique(people.labels * n_bins + labels, return_counts=True)
    squares = np.zeros(people.n_people, dtype=np.int64)  # no more than the rows squared
    np.add.at(squares, pairs // n_bins, counts.astype(np.int64) ** 2)
    return int(squares.max())


def make_sums(
    labels: IntArray,
    n_bins: int,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float,
    mechanism: str,
    people: People | None = None,
) -> BinSums:
    """Sums on a lattice as fine as 64 bits allow, with the least noise that keeps the promise."""
    rate = epsilon if mechanism == "laplace" else calibrate(epsilon, delta, n_measurements=n_bins)
    largest = int(np.bincount(labels).max())
    squared = squared_reach(labels, people, mechanism)
    room = 61 - math.log2(largest + NOISE_SCALES * math.sqrt(squared) / rate)
    if room < _LEAST_BITS:
        raise ValueError(f"epsilon={epsilon:g} is too small for exact noise on sums of {largest} rows.")
    y_bits = min(_Y_BITS, math.floor(room))
    draft = BinSums(frozen(labels), n_bins, y_bits, *bounds, epsilon, delta, mechanism, 1, people)
    sensitivity = draft.sensitivity
    for less in (0.0, 1e-9, 1e-6, 1e-3):  # at the far ends, mu's own rounding errors can break the promise
        scale = integer_float_at_least(Fraction(sensitivity) / Fraction(rate * (1 - less)))
        if scale < (SIGMA_FLOOR if mechanism == "gaussian" else 2**_LEAST_BITS):
            raise ValueError(f"epsilon={epsilon:g} is too large for exact noise on sums of {largest} rows.")
        sums = replace(draft, scale=scale)
        if sums._keeps_promise():
            break
    sums.check()
    return sums
