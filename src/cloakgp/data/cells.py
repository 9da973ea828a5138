"""Many rows as few: each row belongs to a cell, and the rows of a cell are treated alike.

Cells are made from X alone: rows spread evenly over it are split at medians until there are some thousand
leaves, whose means are the cells' centres; a row belongs to the nearest. Levels of a category are never in
one cell, however few rows they have. What is kept of a cell's rows is how many there are, their mean and, in
each column, their spread. One row still moves one sum, so privacy is counted as for equal rows
(``docs/proofs.md``, lemma 13).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import FloatArray, frozen
from cloakgp.core.errors import ArgumentError
from cloakgp.data.chunks import spread_evenly
from cloakgp.data.merging import Groups, Inputs, Labels, distinct
from cloakgp.data.passes import sweep
from cloakgp.data.people import People

MOST_CELLS = 2**12
"""Distinct rows up to which each is told apart; more are put into so many cells."""
_APART = 1e6  # how far levels are from each other, in ranges of the numbers
_SAMPLE = 2**17  # rows that are looked at for the centres


@dataclass(frozen=True, eq=False)
class Cells:
    """Where cells are, how many rows each has, and which rows they are."""

    centres: FloatArray  # (U, D)
    scale: FloatArray
    """(D,) what a unit of each column counts where the nearest centre is looked for."""
    counts: NDArray[np.int64]  # (U,)
    means: FloatArray  # (U, D) of a cell's rows
    spreads: FloatArray  # (U, D) std of these, column by column
    labels: Labels | None
    """(N,) the cell of each row; None if only the digest of X is known."""
    digest: str
    """SHA-256 of X."""
    own: FloatArray | None = None
    """(U,) how many rows people have, on average over a cell's rows; None if each has one."""

    @property
    def groups(self) -> Groups:
        """Which rows are summed."""
        return Groups(np.empty(0, dtype=np.intp) if self.labels is None else self.labels, self.counts)

    @property
    def inputs(self) -> Inputs:
        """The cells as distinct rows with their counts."""
        return Inputs(self.means, 0.0 if self.own is None else self.own, self.groups, None, self.spreads)

    def average(self, values: NDArray[Any]) -> FloatArray:
        """(U,) the mean over each cell's rows of what there is for every row."""
        total = np.bincount(self.groups.labels, weights=values, minlength=len(self.centres))
        return frozen(total / np.maximum(self.counts, 1))


def told_apart(X: Any, noise: float | FloatArray, windows: FloatArray | None = None) -> Inputs | None:
    """X without its repetitions; None if that is more than there are cells."""
    found = distinct(X, noise, windows, MOST_CELLS)
    return found if len(found) <= MOST_CELLS else None


def make_cells(
    X: Any,
    people: People | None = None,
    categories: Sequence[int] = (),
    scale_of: Callable[[FloatArray], FloatArray] | None = None,
) -> Cells:
    """Cells for these rows: the same X gives the same cells. Some columns may hold levels.

    Distinct rows that are few enough have a cell each. `scale_of` gives, for some of the rows, what a unit of
    each column counts; if absent, ranges are alike.
    """
    some, levels, few = spread_evenly(X, _SAMPLE), list(categories), told_apart(X, 0.0)
    spans = np.ptp(some, axis=0)
    scale = 1 / np.where(spans > 0, spans, 1.0) if scale_of is None else scale_of(some)
    if few is None:
        leaves = _leaves_of_levels(X, some, scale, levels) if levels else _leaves(some, scale, MOST_CELLS)
        centres = np.array([leaf.mean(axis=0) for leaf in leaves])
        if levels:  # a mean of equal numbers may round
            centres[:, levels] = [leaf[0, levels] for leaf in leaves]
    else:
        centres = np.asarray(few.X)
    while True:
        found = fill_cells(X, frozen(centres), frozen(scale), people, categories)
        if found.counts.all():
            return found
        # A leaf's rows may all be nearer to others. Rows as near to two cells may change places then.
        centres = centres[found.counts > 0]


def fill_cells(
    X: Any,
    centres: FloatArray,
    scale: FloatArray,
    people: People | None = None,
    categories: Sequence[int] = (),
) -> Cells:
    """Cells with these centres, and the rows that belong to them."""
    from scipy.spatial import cKDTree

    codes = {column: np.unique(centres[:, column]) for column in categories}
    function = partial(_sorted_into, cKDTree(_scaled(centres, scale, codes)), centres, scale, codes)
    labels, digest = [], hashlib.sha256()
    sums, squares = np.zeros(centres.shape), np.zeros(centres.shape)
    for part in sweep(function, X, label="sorting rows into cells"):
        labels.append(part.labels)
        digest.update(part.digest)
        sums += part.sums
        squares += part.squares
    every = frozen(np.concatenate(labels))
    counts = np.bincount(every, minlength=len(centres)).astype(np.int64)
    each = np.maximum(counts, 1)[:, None]
    spreads = np.sqrt(np.maximum(squares / each - (sums / each) ** 2, 0.0))
    spreads[:, list(codes)] = 0.0
    cells = Cells(
        centres,
        scale,
        frozen(counts),
        frozen(centres + sums / each),
        frozen(spreads),
        every,
        digest.hexdigest(),
    )
    if people is None or people.most_rows == 1:
        return cells
    return replace(cells, own=cells.average(people.own))


class _Sorted(NamedTuple):
    """What a chunk of rows tells of cells."""

    labels: Labels
    sums: FloatArray  # (U, D) of how far rows are from their cell's centre
    squares: FloatArray
    digest: bytes


def _sorted_into(
    tree: Any, centres: FloatArray, scale: FloatArray, codes: dict[int, FloatArray], X: FloatArray
) -> _Sorted:
    labels = np.asarray(tree.query(_scaled(X, scale, codes))[1], dtype=np.intp)
    away = X - centres[labels]

    def added_up(values: FloatArray) -> FloatArray:
        sums = [np.bincount(labels, weights=column, minlength=len(centres)) for column in values.T]
        return np.stack(sums, axis=1)

    return _Sorted(labels, added_up(away), added_up(away**2), _digest(X))


def digest_of(X: Any) -> str:
    """The digest of X, as cells have it."""
    whole = hashlib.sha256()
    for part in sweep(_digest, X, label="reading X"):
        whole.update(part)
    return whole.hexdigest()


def _digest(X: FloatArray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes()).digest()


def _scaled(X: FloatArray, scale: FloatArray, codes: dict[int, FloatArray]) -> FloatArray:
    """Rows in a scale in which another level is farther away than anything else."""
    scaled = X * scale
    for column, known in codes.items():
        scaled[:, column] = _APART * np.searchsorted(known, X[:, column])
    return scaled


def _leaves_of_levels(X: Any, some: FloatArray, scale: FloatArray, levels: list[int]) -> list[FloatArray]:
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
        leaves += _leaves(some[who.ravel() == one], scale, 1 + spare * count // len(some))
    return leaves + [row[None] for _, row in sorted(firsts.items())]


def _first_rows(levels: list[int], X: FloatArray) -> FloatArray:
    """A row for each combination of levels in a chunk."""
    return np.asarray(X[np.unique(X[:, levels], axis=0, return_index=True)[1]])


def _leaves(rows: FloatArray, scale: FloatArray, n: int) -> list[FloatArray]:
    """Up to n parts of the rows, split at medians along the column that is widest there, in this scale."""
    leaves = [rows]
    while 2 * len(leaves) <= n:
        halves = []
        for leaf in leaves:
            widths = np.ptp(leaf, axis=0) * scale
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
