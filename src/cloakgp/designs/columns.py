"""The columns of C in the few directions that matter.

C is P x N, but its rank r is often far below both (200 test ages of !Kung women: 11). A design
works on the r x N matrix of coordinates, a block of rows of X at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.checks import FloatArray
from cloakgp.smoothers import Rows, Smoother, blocks

RANK_CUT = 1e-6
"""Directions whose singular value is below this share of the largest are left out.

What that does to the predictions is part of the certificate's `bias`.
"""


@dataclass(frozen=True, eq=False)
class Columns:
    """C in coordinates: column i is `down` c_i, and c_i = `up` (down c_i) up to the rank cut."""

    smoother: Smoother
    down: FloatArray  # (r, P)
    up: FloatArray  # (P, r)

    @property
    def n_rows(self) -> int:
        return self.smoother.n_rows

    @property
    def rank(self) -> int:
        return len(self.down)

    def take(self, rows: Rows) -> FloatArray:
        """Coordinates (r, len(rows)) of the given rows of X."""
        coordinates: FloatArray = self.down @ self.smoother.columns(rows)
        return coordinates

    def squared_norms(self, transform: FloatArray) -> FloatArray:
        """Squared norm of transform @ column for every row of X."""
        joint = transform @ self.down
        norms = np.empty(self.n_rows)
        for block in blocks(self.n_rows):
            moved = joint @ self.smoother.columns(block)
            norms[block] = np.einsum("ij,ij->j", moved, moved)
        return norms


def reduced(smoother: Smoother, weights: FloatArray, whiten: bool = False) -> Columns:
    """Thin SVD of C, streamed: QR of each block stacked on the last R, then SVD of R.

    The coordinates are orthonormal for the weighted predictions, sqrt(W) c; which directions are kept
    does not depend on the weights. With `whiten` the coordinates are divided by the singular values
    instead, for objectives that do not depend on the coordinates used.
    """
    upper: FloatArray = np.zeros((0, smoother.n_outputs))
    for block in blocks(smoother.n_rows):
        stacked = np.vstack([upper, smoother.columns(block).T])
        upper = np.asarray(np.linalg.qr(stacked, mode="r"))
    left, singular, _ = np.linalg.svd(upper.T, full_matrices=False)
    if singular[0] < 1e-100:
        raise ValueError(
            "X_star: no test point is influenced by the data (every prediction there is the prior "
            "mean), so there is nothing to release. Choose test points nearer to X, or a kernel "
            "that reaches further."
        )
    keep = singular > RANK_CUT * singular[0]
    basis, scale = left[:, keep], singular[keep]
    if whiten:
        return Columns(smoother, down=(basis / scale).T, up=basis * scale)
    R = np.asarray(np.linalg.qr(np.sqrt(weights)[:, None] * basis, mode="r"))
    return Columns(smoother, down=R @ basis.T, up=np.linalg.solve(R.T, basis.T).T)
