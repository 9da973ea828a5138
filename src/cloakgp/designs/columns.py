"""The columns of C in the few directions that matter.

C is P x N, but its rank r is often far below both (200 test ages of !Kung women: 11). A design
works on the r x N matrix of coordinates, a block of rows of X at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from array_api_compat import array_namespace, device

from cloakgp.checks import FloatArray
from cloakgp.errors import Argument, Message
from cloakgp.model.arrays import Array, like, on_host, r_factor, squared_lengths, times_wide
from cloakgp.model.smoothers import Rows, Smoother, blocks

RANK_CUT = 1e-6
"""Directions whose singular value is below this share of the largest are left out.

What that does to the predictions is part of the certificate's `bias`.
"""

_NO_DOUBT = 10 * RANK_CUT  # if no singular value is below, C C' has them well enough, in half the time
_KEPT = 2**24  # coordinates of all rows together


@dataclass(frozen=True, eq=False)
class Columns:
    """C in coordinates: column i is `down` c_i, and c_i = `up` (down c_i) up to the rank cut."""

    smoother: Smoother
    down: Array  # (r, P)
    up: Array  # (P, r)

    @property
    def n_rows(self) -> int:
        return self.smoother.n_rows

    @property
    def rank(self) -> int:
        return len(self.down)

    @cached_property
    def _kept(self) -> Array | None:
        """(r, N) all coordinates, where they are few enough to keep: a search asks again and again."""
        if self.n_rows * self.rank > _KEPT:
            return None
        shape, down = (self.rank, self.n_rows), self.down
        kept = array_namespace(down).empty(shape, dtype=down.dtype, device=device(down))
        for block in blocks(self.n_rows):
            kept[:, block] = times_wide(down, self.smoother.columns(block))
        return kept

    def take(self, rows: Rows) -> Array:
        """Coordinates (r, len(rows)) of the given rows of X."""
        if self._kept is None:
            return self.down @ self.smoother.columns(rows)
        return array_namespace(self._kept).take(self._kept, like(self._kept, rows), axis=1)

    def squared_norms(self, transform: Array) -> FloatArray:
        """Squared norm of transform @ column for every row of X, on the host."""
        joint = transform if self._kept is not None else transform @ self.down
        norms = []
        for block in blocks(self.n_rows):
            part = self.smoother.columns(block) if self._kept is None else self._kept[:, block]
            norms.append(squared_lengths(joint, part))
        return on_host(array_namespace(joint).concat(norms))


def reduced(smoother: Smoother, weights: FloatArray, whiten: bool = False) -> Columns:
    """Thin SVD of C, streamed: from C C', or by QR of each block stacked on the last R, then SVD of R.

    The coordinates are orthonormal for the weighted predictions, sqrt(W) c; which directions are kept
    does not depend on the weights. With `whiten` the coordinates are divided by the singular values
    instead, for objectives that do not depend on the coordinates used.
    """
    kind, left, singular = _left_vectors(smoother)
    if singular[0] < 1e-100:
        raise ValueError(
            Message(
                Argument("X_star"),
                ": no test point is influenced by the data (every prediction there is the prior mean), so "
                "there is nothing to release. Choose test points nearer to X, or a kernel that reaches "
                "further.",
            )
        )
    keep = singular > RANK_CUT * singular[0]
    basis, scale = left[:, keep], singular[keep]
    if whiten:
        down, up = (basis / scale).T, basis * scale
    else:
        R = r_factor(np.sqrt(weights)[:, None] * basis)
        down, up = R @ basis.T, np.linalg.solve(R.T, basis.T).T
    return Columns(smoother, like(kind, down), like(kind, up))


def _left_vectors(smoother: Smoother) -> tuple[Array, FloatArray, FloatArray]:
    """Left singular vectors of C and their values, on the host; and an array of the smoother's kind."""
    gram = sum(part @ part.T for part in map(smoother.columns, blocks(smoother.n_rows)))
    values, vectors = np.linalg.eigh(on_host(gram))
    if values[0] > _NO_DOUBT**2 * values[-1] > 0:
        return gram, vectors[:, ::-1], np.sqrt(values[::-1])
    upper = None
    for block in blocks(smoother.n_rows):
        part = smoother.columns(block).T
        upper = r_factor(part if upper is None else array_namespace(part).concat([upper, part]))
    left, singular, _ = np.linalg.svd(on_host(upper).T, full_matrices=False)  # small: on the host
    return upper, left, singular
