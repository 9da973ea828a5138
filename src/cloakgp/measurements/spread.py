"""How far outcomes are from a public curve, on average: one number, which tells the noise level.

    sum_i  2^a  clamp(round(2^b min(|y_i - m_i|, T) / T)),

with y clipped to the bounds first. Every term is an integer in [0, 2^(a+b)] whatever y is: replacing one row
moves the sum by at most 2^(a+b), and replacing a person's k rows by k times that: lemma 16 of
``docs/proofs.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cloakgp.checks import FloatArray, frozen
from cloakgp.measurements.lattice import (
    NOISE_SCALES,
    IntArray,
    Lattice,
    Measurement,
    Part,
    integer_float_at_least,
)
from cloakgp.rows.merging import Groups
from cloakgp.rows.people import People

_Y_BITS = 24


@dataclass(frozen=True, eq=False)
class Spread(Measurement):
    """Release the summed distances of y from `centre`, each at most `limit`, plus noise."""

    centre: FloatArray = field(default_factory=lambda: np.zeros(0))  # one for each group of rows
    limit: float = 0.0

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.lower, self.upper, self.y_bits, self.centre, self.limit)

    def sensitivity(self) -> int:
        """Every row moves the sum by one column at most: lemma 16, and lemma 19 for people."""
        most = 1 if self.people is None else self.people.most_rows
        return max(most * int(np.abs(self.matrix).max()) << self.y_bits, self.declared)

    @property
    def step(self) -> float:
        return math.ldexp(self.limit, -(self.y_bits + self.matrix_bits))

    def mean_distance(self, z: IntArray) -> float:
        """What was measured, per row and in y's unit."""
        return float(z[0]) * self.step / self.n_rows

    @property
    def std(self) -> float:
        """Of the noise in :meth:`mean_distance`."""
        return self.noise_scale / self.n_rows


def spread_bits(n_rows: int, mu: float) -> int:
    """Bits of a summed distance such that sum and noise stay below 2^61."""
    return math.floor(61 - math.log2(n_rows + NOISE_SCALES / mu))


def make_spread(
    centre: FloatArray,
    limit: float,
    bounds: tuple[float, float],
    groups: Groups | None,
    epsilon: float,
    delta: float,
    mu: float,
    part: Part,
    people: People | None = None,
) -> Spread:
    """Distances on a lattice as fine as 64 bits allow, with noise for this mu."""
    n_rows = len(centre) if groups is None else groups.n_rows
    most = 1 if people is None else people.most_rows
    total = spread_bits(n_rows, mu / most)
    y_bits = min(_Y_BITS, total)
    spread = Spread(
        matrix=frozen(np.full((1, len(centre)), 2 ** (total - y_bits), dtype=np.int64)),
        y_bits=y_bits,
        matrix_bits=total - y_bits,
        sigma=integer_float_at_least(Fraction(most * 2**total) / Fraction(mu)),
        lower=bounds[0],
        upper=bounds[1],
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        part=part,
        people=people,
        centre=frozen(np.array(centre, dtype=np.float64)),
        limit=limit,
    )
    spread.check()
    return spread
