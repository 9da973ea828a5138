"""Columns of a measurement, a step of rows at a time: written down in a matrix, or made by a recipe.

Public: the private room multiplies what comes from here with y, and keeps what was seen of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from cloakgp.rows.chunks import steps


@dataclass
class Seen:
    """What the columns of a chunk of rows were like, seen on the very integers that were handed out."""

    longest: int = 0
    """Largest sum of squares of a column."""
    absolute_sums: Any = 0.0
    """(q,) sums of the columns' absolute values over all rows of y."""
    digest: bytes = b""
    """Of what the columns were made from."""
    norms: list[Any] = field(default_factory=list)
    """For each step, at least the norm of each column, in whole units: people's columns are added up."""


class Columns(Protocol):
    """How rows get their integer columns."""

    @property
    def n_measurements(self) -> int: ...

    def over(self, X: Any, noise: Any, counts: Any, windows: Any, seen: Seen) -> Iterator[tuple[slice, Any]]:
        """Steps through the rows of a chunk, and their (q, n) columns; `seen` is filled on the way."""


@dataclass(frozen=True, eq=False)
class Stored:
    """Columns of a matrix, dense or sparse, whose own check has looked at them all."""

    matrix: Any  # (q, U)

    @property
    def n_measurements(self) -> int:
        return int(self.matrix.shape[0])

    def over(
        self, labels: Any, noise: Any, counts: Any, windows: Any, seen: Seen
    ) -> Iterator[tuple[slice, Any]]:
        """Rows are labels: each names its column, and with it the bounds that are on the lattice."""
        for rows in steps(len(labels)):
            yield rows, self.matrix[:, labels[rows]]
