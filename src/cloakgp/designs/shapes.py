"""Noise shapes, what makes one design differ from another, and how far a search has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloakgp.core.checks import FloatArray
from cloakgp.model.arrays import Array


@dataclass(frozen=True, eq=False)
class Shape:
    """A noise shape M = inverse inverse', with M^-1 = transform' transform."""

    size: float
    transform: Array  # (r, r)
    inverse: Array  # (r, r)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a search stands: multipliers, their shape, and the constraints' values."""

    v: Array
    shape: Shape
    g: Array

    @property
    def upper(self) -> float:
        return self.shape.size * float(self.g.max())

    @property
    def lower(self) -> float:
        return self.shape.size * float(self.v @ self.g) / float(self.v.sum())


class Criterion(Protocol):
    """What makes one design differ from another."""

    def shape(self, Q: Array) -> Shape:
        """The noise shape for Q(v)."""
        ...


class Smooth(Criterion, Protocol):
    """A criterion whose constraints' derivatives are known."""

    degree: float
    """M is this homogeneous in v."""

    def curvature(self, shape: Shape) -> Array:
        """(q, r) such that -dg_i/dv_j is the sum over rows d of (h_i' diag(d) h_j)^2, h = transform c."""
        ...


class Climb:
    """A search over the multipliers of the given columns, until its bounds are within the relative `gap`."""

    slower = 1
    """Of so many times fewer rows at once."""

    def __init__(self, part: Array, criterion: Criterion, gap: float) -> None:
        self.part, self.criterion, self.gap = part, criterion, gap
        self.evaluations, self.lower, self.upper = 0, 0.0, np.inf

    def run(self, v: FloatArray) -> Point:
        """The point with the smallest upper bound; `v` is where to start, and zero for a row that is new."""
        raise NotImplementedError

    def note(self, point: Point) -> bool:
        """Remember the upper bound that a point proves; True if it is the best so far."""
        better = point.upper < self.upper
        if better:
            self.upper, self.best = point.upper, point
        return better

    def gap_to(self, upper: float) -> float:
        return upper / self.lower - 1
