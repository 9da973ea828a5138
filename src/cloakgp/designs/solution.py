"""What a design returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cloakgp.model.arrays import Array, on_host
from cloakgp.model.smoothers import Rows, Smoother


@dataclass(frozen=True, eq=False)
class Solution:
    """Measurements B whose columns have norm at most 1, and predictions from them.

    B is either `reduce` C, or given outright as `matrix`. `objective` and `lower_bound` are
    variances, for noise of unit std on each measurement: the design's own size of noise, and a
    proven lower bound on the best that any design could reach. The arrays live where the
    smoother's do.
    """

    design: str
    reconstruction: Array  # (P, q)
    objective: float
    lower_bound: float
    iterations: int
    status: str
    """"converged", or why the search ended before the gap was reached."""
    reduce: Array | None = None  # (q, P)
    matrix: Array | None = None  # (q, N)
    unbiased: bool = True
    """Whether `reconstruction` B = C, so that noise is the only error of the predictions."""

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        return self.objective / self.lower_bound - 1

    def columns(self, smoother: Smoother, rows: slice | Rows) -> Array:
        """Columns of B that belong to these rows of X."""
        if self.matrix is not None:
            return self.matrix[:, rows]
        assert self.reduce is not None
        return self.reduce @ smoother.columns(rows)

    def on_host(self) -> Solution:
        """The same with numpy arrays."""
        reduce, matrix = (None if a is None else on_host(a) for a in (self.reduce, self.matrix))
        return replace(self, reconstruction=on_host(self.reconstruction), reduce=reduce, matrix=matrix)
