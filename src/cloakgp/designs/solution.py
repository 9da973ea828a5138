"""What a design returns."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.checks import FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """Measurements B = `reduce` C whose columns have norm at most 1, and C = `reconstruction` B.

    `objective` and `lower_bound` are variances, for noise of unit std on each measurement: the
    design's own size of noise, and a proven lower bound on the best that any design could reach.
    """

    design: str
    reduce: FloatArray  # (q, P)
    reconstruction: FloatArray  # (P, q)
    objective: float
    lower_bound: float
    iterations: int
    status: str
    """"converged", or why the search ended before the gap was reached."""

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        return self.objective / self.lower_bound - 1
