"""The rows of X as the model sees them: equal rows as one.

Rows with the same inputs, noise variance, bounds and prior mean tell the model nothing but the sum of their
outcomes (n rows with variance D act as their mean with variance D/n). So a model is built on the
distinct rows, with the sums as its outcomes: fewer rows, the same predictions. One person still moves a sum
by no more than the width of the bounds, so privacy is counted as before: ``docs/proofs.md``, lemma 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.checks import FloatArray, frozen
from cloakgp.rows.chunks import evenly
from cloakgp.rows.passes import sweep

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


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of X, and what goes with them; ``chunk[rows]`` is the one way to take some of those."""

    X: Any  # (n, D)
    noise: float | FloatArray  # variance of one outcome, or one for each row
    group_counts: float | FloatArray  # how many rows of y each stands for, if not all for as many
    windows: FloatArray | None = None  # (n, 3): lower and upper limit, prior mean; None if all have the same

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Chunk:
        windows = None if self.windows is None else self.windows[rows]
        return Chunk(self.X[rows], _picked(self.noise, rows), _picked(self.group_counts, rows), windows)

    @property
    def variances(self) -> FloatArray:
        """(n,) noise variance of one outcome at each."""
        return _for_each(self.noise, self.X)

    @property
    def counts(self) -> FloatArray:
        """(n,) how many rows of y each stands for."""
        return _for_each(self.group_counts, self.X)


def _picked(value: float | FloatArray, rows: Any) -> float | FloatArray:
    """What some rows have; a number stands for all rows."""
    return value if np.ndim(value) == 0 else value[rows]  # type: ignore[index]


def _for_each(value: float | FloatArray, X: Any) -> FloatArray:
    """One value for each row of X."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(X),))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Distinct rows of X, in the order in which they first appear."""

    X: Any  # (U, D)
    noise: float | FloatArray  # variance of one outcome, or one for each distinct row
    groups: Groups | None
    """None if all rows are distinct."""
    windows: FloatArray | None = None
    """(U, 3) lower and upper limit and prior mean of each; None if all have the same."""

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Chunk:
        return Chunk(self.X, self.noise, self.group_counts, self.windows)[rows]

    def spread_evenly(self, n: int) -> Inputs:
        """Up to `n` of the rows, at even distances, each as one row of y."""
        some = self[evenly(len(self), n)]
        return Inputs(np.asarray(some.X, dtype=np.float64), some.noise, None, some.windows)

    def by_row(self) -> Inputs:
        """The same with every row as often as it occurs, without a copy of them."""
        if self.groups is None:
            return self
        labels = self.groups.labels
        windows = None if self.windows is None else self.windows[labels]
        return Inputs(_Repeated(self.X, labels), _picked(self.noise, labels), None, windows)

    @property
    def group_counts(self) -> FloatArray | float:
        """How many rows of y each stands for; 1 if all are distinct."""
        return 1.0 if self.groups is None else self.groups.counts.astype(np.float64)

    @property
    def variances(self) -> FloatArray:
        """(U,) noise variance of one outcome at each."""
        return _for_each(self.noise, self.X)

    @property
    def counts(self) -> FloatArray:
        """(U,) how many rows of y each stands for."""
        return _for_each(self.group_counts, self.X)


def stacked(parts: Sequence[Inputs | Chunk]) -> Inputs:
    """The rows of several, one after the other, each as one row of y."""
    windows = [part.windows for part in parts if part.windows is not None]
    return Inputs(
        np.vstack([part.X for part in parts]),
        np.concatenate([part.variances for part in parts]),
        None,
        np.vstack(windows) if windows else None,
    )


class _Repeated:
    """Rows of X as often as the labels name them."""

    def __init__(self, X: FloatArray, labels: Labels) -> None:
        self._X, self._labels = X, labels
        self.shape = (len(labels), X.shape[1])

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, rows: Any) -> FloatArray:
        chosen: FloatArray = self._X[self._labels[rows]]
        return chosen


def distinct(X: Any, noise: float | FloatArray, windows: FloatArray | None = None) -> Inputs:
    """X without its repetitions; as it is if it has more than `MOST_DISTINCT` distinct rows."""
    if len(X) > MOST_DISTINCT or not isinstance(X, np.ndarray):
        return _distinct_streamed(X, noise, windows)
    alone = isinstance(noise, float) and windows is None
    return take(X, noise, group(X if alone else _table(X, noise, windows)), windows)


def take(
    X: FloatArray, noise: float | FloatArray, groups: Groups | None, windows: FloatArray | None = None
) -> Inputs:
    """The first row of each group."""
    if groups is None:
        return Inputs(X, noise, None, windows)
    some = Inputs(X, noise, None)[groups.first]
    # 0.0 for -0.0, as a pass over chunks has it.
    return Inputs(some.X + 0.0, some.noise, groups, None if windows is None else windows[groups.first] + 0.0)


def _distinct_streamed(X: Any, noise: float | FloatArray, windows: FloatArray | None = None) -> Inputs:
    """The same a chunk at a time: a pass for the distinct rows, and one for which of them each row is."""
    as_they_are = Inputs(X, noise, None, windows)
    found: list[FloatArray] = []
    for rows in sweep(_distinct_rows, X, noise, windows, label="looking for equal rows"):
        found.append(rows)
        if sum(map(len, found)) > 2 * MOST_DISTINCT:
            found = [first_of_equal(np.vstack(found))]
            if len(found[0]) > MOST_DISTINCT:
                return as_they_are
    known = first_of_equal(np.vstack(found))
    if len(known) > MOST_DISTINCT:
        return as_they_are
    hashes = _hashes(known)
    if len(known) == len(X):
        return as_they_are
    order = np.argsort(hashes)
    function = partial(_labels, known, hashes[order], order)
    parts = list(sweep(function, X, noise, windows, label="merging equal rows"))
    labels = np.concatenate(parts)
    if labels.min() < 0:  # unequal rows with one hash: never seen, and no harm in leaving rows as they are
        return as_they_are
    groups = Groups(frozen(labels), frozen(np.bincount(labels).astype(np.int64)))
    columns = X.shape[1]
    return Inputs(
        known[:, :columns],
        noise if isinstance(noise, float) else known[:, columns],
        groups,
        None if windows is None else known[:, -3:],
    )


def _table(X: FloatArray, noise: float | FloatArray, windows: FloatArray | None) -> FloatArray:
    """What makes rows equal, with 0.0 for -0.0."""
    more = [X, *([] if isinstance(noise, float) else [noise]), *([] if windows is None else [windows])]
    table = X if len(more) == 1 else np.column_stack(more)
    result: FloatArray = table + 0.0
    return result


def _distinct_rows(X: FloatArray, noise: float | FloatArray, windows: FloatArray | None) -> FloatArray:
    """The distinct rows of a chunk, in the order in which they first appear."""
    table = _table(X, noise, windows)
    found = group(table)
    return table if found is None else table[found.first]


def first_of_equal(rows: FloatArray, aside: int = 0) -> FloatArray:
    """Rows without repetitions, by their hashes; the first columns are left aside."""
    return rows[np.sort(np.unique(_hashes(rows[:, aside:]), return_index=True)[1])]


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
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return None
    there = np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)
    some = np.flatnonzero(repeated[there] == hashes)  # the others stand for themselves
    _, first, inverse = np.unique(hashes[some], return_index=True, return_inverse=True)
    if not np.array_equal(table[some[first][inverse]], table[some]):  # unequal rows with one hash: never seen
        _, first, inverse = np.unique(table[some], axis=0, return_index=True, return_inverse=True)
    own = np.arange(len(table))
    own[some] = some[first][inverse.reshape(-1)]
    is_first = own == np.arange(len(table))
    if is_first.all():
        return None
    labels = (np.cumsum(is_first) - 1)[own]
    return Groups(frozen(labels), frozen(np.bincount(labels).astype(np.int64)))


def _hashes(table: FloatArray) -> NDArray[np.uint64]:
    """Equal rows have equal hashes, and others hardly ever: far faster to sort than rows."""
    result = np.zeros(len(table), dtype=np.uint64)
    for column in table.T:
        bits = (column + 0.0).view(np.uint64)  # of 0.0 for -0.0, as the two are equal
        result = (result ^ bits) * np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd
        result ^= result >> np.uint64(29)
    return result
