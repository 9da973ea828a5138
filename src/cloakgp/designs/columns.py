"""The columns of C in the few directions that matter.

C is P x N, but its rank r is often far below both (200 test ages of !Kung women: 11). A design
works on the r x N matrix of coordinates, a block of rows of X at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import Argument, Message
from cloakgp.model.arrays import Array, like, on_host, r_factor, squared_lengths, times_wide, wide_dots
from cloakgp.model.smoothers import Rows, Smoother, blocks

RANK_CUT = 1e-6
"""Directions whose singular value is below this share of the largest are left out.

What that does to the predictions is part of the certificate's `bias`.
"""

_KEPT = 2**24  # coordinates of all rows together; or entries of their columns, for a while


@dataclass(frozen=True, eq=False)
class Columns:
    """C in coordinates: column i is `down` c_i, and c_i = `up` (down c_i) up to the rank cut."""

    smoother: Smoother
    down: Array  # (r, P)
    up: Array  # (P, r)
    kept: Array | None = None
    """(r, N) all coordinates, where they are few enough to keep: a search asks again and again."""

    @property
    def n_rows(self) -> int:
        return self.smoother.n_rows

    @property
    def rank(self) -> int:
        return len(self.down)

    def take(self, rows: Rows) -> Array:
        """Coordinates (r, len(rows)) of the given rows of X."""
        if self.kept is None:
            return self.down @ self.smoother.columns(rows)
        return array_namespace(self.kept).take(self.kept, like(self.kept, rows), axis=1)

    def squared_norms(self, transform: Array) -> FloatArray:
        """Squared norm of transform @ column for every row of X, on the host."""
        joint = transform if self.kept is not None else transform @ self.down
        norms = []
        for block in blocks(self.n_rows):
            part = self.smoother.columns(block) if self.kept is None else self.kept[:, block]
            norms.append(squared_lengths(joint, part))
        return on_host(array_namespace(joint).concat(norms))


def reduced(smoother: Smoother, weights: FloatArray, whiten: bool = False) -> Columns:
    """Thin SVD of C, by way of C C', a block at a time.

    That loses singular values below 1e-8 times the largest, and those are cut anyway.

    The coordinates are orthogonal for the weighted predictions, sqrt(W) c, in units of the largest singular
    value, so that no power of them is out of range; which directions are kept does not depend on the
    weights. With `whiten` the coordinates are divided by their own singular values instead, for objectives
    that do not depend on the coordinates used.
    """
    known: dict[int, Array] | None = {} if smoother.n_rows * smoother.n_outputs <= _KEPT else None
    gram = 0
    for block in blocks(smoother.n_rows):
        part = smoother.columns(block)
        gram = gram + wide_dots(part, part)
        if known is not None:
            known[block.start] = part
    values, vectors = np.linalg.eigh(on_host(gram))
    left, singular = vectors[:, ::-1], np.sqrt(np.maximum(values[::-1], 0.0))
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
        down, up = R @ basis.T / scale[0], np.linalg.solve(R.T, basis.T).T * scale[0]
    down, up = like(gram, down), like(gram, up)
    if smoother.n_rows * len(down) > _KEPT:
        return Columns(smoother, down, up)
    shape = len(down), smoother.n_rows
    kept = array_namespace(down).empty(shape, dtype=down.dtype, device=device(down))
    for block in blocks(smoother.n_rows):
        part = smoother.columns(block) if known is None else known.pop(block.start)
        kept[:, block] = times_wide(down, part)
    return Columns(smoother, down, up, kept)
