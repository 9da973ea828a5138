"""Many rows as few: each row belongs to a cell, and the rows of a cell are treated alike.

Cells are made from X alone: rows spread evenly over it are split at medians until there are some thousand
leaves, whose means are the cells' centres; a row belongs to the nearest. Levels of a category are never in
one cell, however few rows they have. What f does within a cell counts as noise. One row still moves one sum,
so privacy is counted as for equal rows (``docs/proofs.md``, lemma 13).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.checks import FloatArray, frozen
from cloakgp.errors import ArgumentError
from cloakgp.rows.chunks import spread_evenly
from cloakgp.rows.merging import Groups, Inputs
from cloakgp.rows.passes import sweep
from cloakgp.rows.people import People

MOST_CELLS = 2**12
_APART = 1e6  # how far levels are from each other, in ranges of the numbers
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


def make_cells(X: Any, people: People | None = None, categories: Sequence[int] = ()) -> Cells:
    """Cells for these rows: the same X gives the same cells. Some columns may hold levels."""
    some, levels = spread_evenly(X, _SAMPLE), list(categories)
    leaves = _leaves_of_levels(X, some, levels) if levels else _leaves(some, MOST_CELLS)
    centres = np.array([leaf.mean(axis=0) for leaf in leaves])
    if levels:  # a mean of equal numbers may round
        centres[:, levels] = [leaf[0, levels] for leaf in leaves]
    return _owned(_filled(X, frozen(centres), levels, drop=True), people)


def fill_cells(
    X: Any, centres: FloatArray, people: People | None = None, categories: Sequence[int] = ()
) -> Cells:
    """These cells, with the rows that belong to them."""
    return _owned(_filled(X, centres, list(categories), drop=False), people)


def _owned(cells: Cells, people: People | None) -> Cells:
    """The same with how many rows people have there."""
    if people is None or people.most_rows == 1 or cells.labels is None:
        return cells
    total = np.bincount(cells.labels, weights=people.own, minlength=len(cells.centres))
    return replace(cells, own=frozen(total / np.maximum(cells.counts, 1)))


def _filled(X: Any, centres: FloatArray, levels: list[int], *, drop: bool) -> Cells:
    from scipy.spatial import cKDTree

    spans = np.ptp(centres, axis=0)
    spans = np.where(spans > 0, spans, 1.0)
    codes = {column: np.unique(centres[:, column]) for column in levels}
    function = partial(_nearest, cKDTree(_scaled(centres, spans, codes)), spans, codes)
    parts, digest = [], hashlib.sha256()
    for labels, own in sweep(function, X, label="sorting rows into cells"):
        parts.append(labels)
        digest.update(own)
    labels = np.concatenate(parts)
    counts = np.bincount(labels, minlength=len(centres)).astype(np.int64)
    if drop and not counts.all():  # a leaf's rows may all be nearer to others
        return _filled(X, frozen(centres[counts > 0]), levels, drop=True)
    return Cells(centres, frozen(counts), frozen(labels), digest.hexdigest())


def _nearest(
    tree: Any, spans: FloatArray, codes: dict[int, FloatArray], X: FloatArray
) -> tuple[NDArray[np.intp], bytes]:
    """The cell of each row of a chunk, and the chunk's digest."""
    labels = np.asarray(tree.query(_scaled(X, spans, codes))[1], dtype=np.intp)
    return labels, hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes()).digest()


def _scaled(X: FloatArray, spans: FloatArray, codes: dict[int, FloatArray]) -> FloatArray:
    """Rows in a scale in which another level is farther away than anything else."""
    scaled = X / spans
    for column, known in codes.items():
        scaled[:, column] = _APART * np.searchsorted(known, X[:, column])
    return scaled


def _leaves_of_levels(X: Any, some: FloatArray, levels: list[int]) -> list[FloatArray]:
    """Parts of some rows, each with one combination of levels; all combinations in X have one."""
    firsts: dict[tuple[float, ...], FloatArray] = {}
    for rows in sweep(partial(_first_rows, levels), X, label="looking for levels"):
        for row in rows:
            firsts.setdefault(tuple(row[levels].tolist()), row)
        if len(firsts) > MOST_CELLS:
            raise ArgumentError(
                "categories",
                f"must have at most {MOST_CELLS} combinations of levels where there are many rows",
                remedy="Join levels with few rows, or leave a category out.",
            )
    found, who, counts = np.unique(some[:, levels], axis=0, return_inverse=True, return_counts=True)
    spare, leaves = MOST_CELLS - len(firsts), []
    for one, (combination, count) in enumerate(zip(found.tolist(), counts.tolist(), strict=True)):
        firsts.pop(tuple(combination))
        leaves += _leaves(some[who.ravel() == one], 1 + spare * count // len(some))
    return leaves + [row[None] for _, row in sorted(firsts.items())]


def _first_rows(levels: list[int], X: FloatArray) -> FloatArray:
    """A row for each combination of levels in a chunk."""
    return np.asarray(X[np.unique(X[:, levels], axis=0, return_index=True)[1]])


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
