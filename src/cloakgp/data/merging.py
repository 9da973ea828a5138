"""The rows of X as the model sees them: equal rows as one.

Rows with the same inputs, noise variance, bounds and prior mean tell the model nothing but the sum of their
outcomes (n rows with variance D act as their mean with variance D/n). So a model is built on the
distinct rows, with the sums as its outcomes: fewer rows, the same predictions. One person still moves a sum
by no more than the width of the bounds, so privacy is counted as before: ``docs/proofs.md``, lemma 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import FloatArray, frozen
from cloakgp.data.passes import sweep

Labels = NDArray[np.intp]
MOST_DISTINCT = 2**20
"""Distinct rows up to which rows are merged: more are passed over as they are."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which rows of y are summed."""

    labels: Labels  # (N,): the group of each row
    counts: NDArray[np.int64]  # (U,): how many rows a group has

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def first(self) -> Labels:
        """(U,) the first row of each group."""
        first = np.empty(len(self.counts), dtype=np.intp)
        first[self.labels[::-1]] = np.arange(len(self.labels) - 1, -1, -1)
        return first


def _for_each(value: float | NDArray[Any], X: Any) -> FloatArray:
    """One value for each row of X; a number stands for all."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(X),))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Distinct rows of X, in the order in which they first appear; or cells of rows, by their means."""

    X: Any  # (U, D)
    noise: float | FloatArray  # variance of one outcome, or one for each distinct row
    groups: Groups | None
    """None if all rows are distinct."""
    windows: FloatArray | None = None
    """(U, 3) lower and upper limit and prior mean of each; None if all have the same."""
    spreads: FloatArray | None = None
    """(U, D) std of the rows that each stands for, column by column; None if these are equal."""

    def __len__(self) -> int:
        return len(self.X)

    @property
    def variances(self) -> FloatArray:
        """(U,) noise variance of one outcome at each."""
        return _for_each(self.noise, self.X)

    @property
    def counts(self) -> FloatArray:
        """(U,) how many rows of y each stands for."""
        return _for_each(1.0 if self.groups is None else self.groups.counts, self.X)


def distinct(
    X: Any, noise: float | FloatArray, windows: FloatArray | None = None, most: int = MOST_DISTINCT
) -> Inputs:
    """X without its repetitions; as it is if it has more than so many distinct rows."""
    if len(X) > most or not isinstance(X, np.ndarray):
        return _distinct_in_passes(X, noise, windows, most)
    alone = isinstance(noise, float) and windows is None
    groups = group(X if alone else _table(X, noise, windows))
    if groups is None:
        return Inputs(X, noise, None, windows)
    first = groups.first
    own = noise if isinstance(noise, float) else noise[first]
    # 0.0 for -0.0, as a pass over chunks has it.
    return Inputs(X[first] + 0.0, own, groups, None if windows is None else windows[first] + 0.0)


def _distinct_in_passes(X: Any, noise: float | FloatArray, windows: FloatArray | None, most: int) -> Inputs:
    """The same a chunk at a time: a pass for the distinct rows, and one for which of them each row is."""
    as_they_are = Inputs(X, noise, None, windows)
    found: list[FloatArray] = []
    for rows in sweep(_distinct_rows, X, noise, windows, label="looking for equal rows"):
        found.append(rows)
        if sum(map(len, found)) > most:
            found = [_first_of_equal(np.vstack(found))]
            if len(found[0]) > most:
                return as_they_are
    known = _first_of_equal(np.vstack(found))
    hashes = _hashes(known)
    if len(known) == len(X):
        return as_they_are
    order = np.argsort(hashes)
    function = partial(_labels, known, hashes[order], order)
    parts = list(sweep(function, X, noise, windows, label="merging equal rows"))
    labels = np.concatenate(parts)
    if labels.min() < 0:  # unequal rows with one hash: never seen, and no harm in leaving rows as they are
        return as_they_are
    columns = X.shape[1]
    return Inputs(
        known[:, :columns],
        noise if isinstance(noise, float) else known[:, columns],
        _groups(frozen(labels)),
        None if windows is None else known[:, -3:],
    )


def _table(X: FloatArray, noise: float | FloatArray, windows: FloatArray | None) -> FloatArray:
    """What makes rows equal, with 0.0 for -0.0."""
    more = [X, *([] if isinstance(noise, float) else [noise]), *([] if windows is None else [windows])]
    table = X if len(more) == 1 else np.column_stack(more)
    return np.asarray(table + 0.0)


def _distinct_rows(X: FloatArray, noise: float | FloatArray, windows: FloatArray | None) -> FloatArray:
    """The distinct rows of a chunk, in the order in which they first appear."""
    table = _table(X, noise, windows)
    found = group(table)
    return table if found is None else table[found.first]


def _first_of_equal(rows: FloatArray) -> FloatArray:
    """Rows without repetitions, by their hashes."""
    return rows[np.sort(np.unique(_hashes(rows), return_index=True)[1])]


def _labels(
    known: FloatArray,
    hashes: NDArray[np.uint64],
    order: Labels,
    X: FloatArray,
    noise: float | FloatArray,
    windows: FloatArray | None,
) -> Labels:
    """Which of the known rows, ordered by their hashes, each row of a chunk is; -1 if none."""
    table = _table(X, noise, windows)
    found = np.searchsorted(hashes, _hashes(table))
    labels = order[np.minimum(found, len(order) - 1)]
    return np.where((known[labels] == table).all(axis=1), labels, -1)


def group(table: FloatArray) -> Groups | None:
    """The groups of equal rows, in the order of their first rows; None if no two rows are equal."""
    hashes = _hashes(table)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():  # far faster than to order rows by them
        return None
    found = _groups(by_first(hashes))
    if not np.array_equal(table[found.first][found.labels], table):  # unequal rows with one hash: never seen
        found = _groups(by_first(np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)))
    return None if len(found.counts) == len(table) else found


def by_first(values: NDArray[Any]) -> Labels:
    """Equal values as equal numbers, by first appearance."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return frozen(rank[inverse.reshape(-1)])


def _groups(labels: Labels) -> Groups:
    return Groups(labels, frozen(np.bincount(labels).astype(np.int64)))


def _hashes(table: FloatArray) -> NDArray[np.uint64]:
    """Equal rows have equal hashes, and others hardly ever: far faster to sort than rows."""
    result = np.zeros(len(table), dtype=np.uint64)
    for column in table.T:
        bits = (column + 0.0).view(np.uint64)  # of 0.0 for -0.0, as the two are equal
        result = (result ^ bits) * np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd
        result ^= result >> np.uint64(29)
    return result
