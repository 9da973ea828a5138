"""Many rows as few: each row belongs to a cell, and the rows of a cell are treated alike.

Cells are made from X alone: rows spread evenly over it are split at medians until there are some thousand
leaves, whose means are the cells' centres; a row belongs to the nearest. What f does within a cell counts as
noise. One row still moves one sum, so privacy is counted as for equal rows (``docs/proofs.md``, lemma 13).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cloakgp.checks import FloatArray, frozen
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.merging import Groups, Inputs
from cloakgp.rows.passes import sweep
from cloakgp.rows.people import People

MOST_CELLS = 2**12
_SAMPLE = 2**17  # rows that are looked at for the centres


@dataclass(frozen=True, eq=False)
class Cells:
    """Where cells are, how many rows each has, and which rows they are."""

    centres: FloatArray  # (U, D)
    counts: NDArray[np.int64]  # (U,)
    labels: NDArray[np.intp] | None
    """(N,) the cell of each row; None if only the digest of X is known."""
    digest: str
    """SHA-256 of X."""
    own: FloatArray | None = None
    """(U,) how many rows people have, on average over a cell's rows; None if each has one."""

    @property
    def inputs(self) -> Inputs:
        """The centres, as distinct rows with their counts."""
        labels = np.empty(0, dtype=np.intp) if self.labels is None else self.labels
        return Inputs(self.centres, 0.0 if self.own is None else self.own, Groups(labels, self.counts))


def make_cells(X: Any, people: People | None = None) -> Cells:
    """Cells for these rows: the same X gives the same cells."""
    some = spread_evenly(X, _SAMPLE)
    centres = frozen(np.array([leaf.mean(axis=0) for leaf in _leaves(some, MOST_CELLS)]))
    return _owned(_filled(X, centres, drop=True), people)


def fill_cells(X: Any, centres: FloatArray, people: People | None = None) -> Cells:
    """These cells, with the rows that belong to them."""
    return _owned(_filled(X, centres, drop=False), people)


def _owned(cells: Cells, people: People | None) -> Cells:
    """The same with how many rows people have there."""
    if people is None or people.most_rows == 1 or cells.labels is None:
        return cells
    total = np.bincount(cells.labels, weights=people.own, minlength=len(cells.centres))
    return replace(cells, own=frozen(total / np.maximum(cells.counts, 1)))


def _filled(X: Any, centres: FloatArray, *, drop: bool) -> Cells:
    spans = np.ptp(centres, axis=0)
    spans = np.where(spans > 0, spans, 1.0)
    function = partial(_nearest, cKDTree(centres / spans), spans)
    parts, digest = [], hashlib.sha256()
    for labels, own in sweep(function, X, label="sorting rows into cells"):
        parts.append(labels)
        digest.update(own)
    labels = np.concatenate(parts)
    counts = np.bincount(labels, minlength=len(centres)).astype(np.int64)
    if drop and not counts.all():  # a leaf's rows may all be nearer to others' centres
        return _filled(X, frozen(centres[counts > 0]), drop=False)
    return Cells(centres, frozen(counts), frozen(labels), digest.hexdigest())


def _nearest(tree: Any, spans: FloatArray, X: FloatArray) -> tuple[NDArray[np.intp], bytes]:
    """The cell of each row of a chunk, and the chunk's digest."""
    labels = np.asarray(tree.query(X / spans)[1], dtype=np.intp)
    return labels, hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes()).digest()


def _leaves(rows: FloatArray, n: int) -> list[FloatArray]:
    """Up to n parts of the rows, split at medians along the column that is widest there."""
    spans = np.ptp(rows, axis=0)
    whole = np.where(spans > 0, spans, 1.0)
    leaves = [rows]
    while 2 * len(leaves) <= n:
        halves = []
        for leaf in leaves:
            widths = np.ptp(leaf, axis=0) / whole
            column = int(np.argmax(widths))
            if widths[column] == 0:
                halves.append(leaf)
                continue
            order = np.argsort(leaf[:, column], kind="stable")
            middle = len(leaf) // 2
            halves += [leaf[order[:middle]], leaf[order[middle:]]]
        if len(halves) == len(leaves):
            break
        leaves = halves
    return leaves
