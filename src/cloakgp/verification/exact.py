"""Sums of integers, none of them wrong by one: the arithmetic of whoever verifies, apart from what measured.

Everything here is the largest of many sums of products. They are worked out twice: in floating point, which
is wrong by a known amount, below 2^60; and in 64-bit integers, which are right but for multiples of 2^64,
however often they wrap. Together that is exact. Where floating point is not that good, sums are Python's
integers: slow, and only a forged file has such.

What is shared with those who plan is which bound is used for how many columns. Each of them is one, so no
number there can make a promise weaker.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.checks import IntArray
from cloakgp.measure.sensitivity import FEW, MANY, MOST_PAIRED, MOST_SIGNS


def root_rounded_up(value: int) -> int:
    """The smallest integer whose square is at least this."""
    return math.isqrt(value - 1) + 1 if value > 0 else 0


def largest_sum(matrix: IntArray, counts: IntArray) -> int:
    """Largest sum of a row's absolute entries, each times its count."""
    kind = np.int64 if largest_entry(matrix) * int(counts.sum()) < 2**62 else object
    each = [np.abs(matrix[:, some].astype(kind)) @ counts[some].astype(kind) for some in _blocks(matrix)]
    return int(max(np.sum(each, axis=0).tolist()))


def largest_entry(matrix: IntArray) -> int:
    """In size, where int64 would wrap, too."""
    return max(-int(matrix.min()), int(matrix.max()))


def longest_squared(matrix: IntArray) -> int:
    """Largest squared norm of a column."""
    longest = 0
    for some in _blocks(matrix):
        norms = partial(_norms, matrix[:, some])
        longest = _larger(longest, norms, float(norms(np.float64).max()) * len(matrix))
    return longest


def furthest_squared(matrix: IntArray, origin: bool) -> int:
    """Largest squared distance of two columns; with `origin`, 0 is one of the columns."""
    if origin:
        matrix = np.hstack([matrix, np.zeros((len(matrix), 1), dtype=np.int64)])
    if matrix.shape[1] > MOST_PAIRED:
        return 4 * longest_squared(matrix)
    furthest, size = 0, 4 * float(_norms(matrix, np.float64).max()) * len(matrix)
    for start in range(0, matrix.shape[1], 256):
        furthest = _larger(furthest, partial(_distances, matrix[:, start : start + 256], matrix), size)
    return furthest


def longest_together(matrix: IntArray, labels: IntArray, people: IntArray, signs: bool = True) -> int:
    """The largest squared length of anyone's columns together, of columns that rows name by labels.

    The rule is that of lemma 19 of ``docs/proofs.md``: for few different columns the longest sum with any
    signs, for many the sum of all absolute inner products, and beyond that the square of the sum of the
    norms, each rounded up. Without `signs`, as for classes (lemma 22), there are no few.
    """
    longest, q = 0, len(matrix)
    by_size = _owned(labels, people)
    tried = sum(len(some) << size - 1 for size, some in by_size.items() if size <= FEW)
    few = FEW if signs and tried <= MOST_SIGNS else 0
    norms = np.sqrt(np.concatenate([_norms(matrix[:, part], np.float64) for part in _blocks(matrix)]))
    for size, some in by_size.items():
        if size > MANY:
            longest = max(longest, *(_sum_of_norms(matrix, *one) ** 2 for one in some))
            continue
        step = max(1, 2**20 // (size * max(size, q, 2 ** (size - 1) if size <= few else 0)))
        for start in range(0, len(some), step):
            columns, counts = np.moveaxis(np.array(some[start : start + step]), 1, 0)
            moves = partial(_with_signs if size <= few else _absolute, matrix, columns, counts)
            most = float((norms[columns] * counts).sum(axis=1).max())
            longest = _larger(longest, moves, most**2 * (q + size**2))
    return longest


def _larger(best: int, sums: Callable[[Any], NDArray[Any]], size: float) -> int:
    """The largest of sums, if it is above the best so far: exactly.

    `sums` gives them in numbers of a kind. `size` is at least all terms of a sum in absolute value, times
    their number: floating point is wrong by no more than 2^-50 of that.
    """
    error = size * 2.0**-50 + 1
    if not error < 2.0**60:
        return int(max(best, *sums(object).ravel().tolist()))
    about = sums(np.float64)
    top = int(about.max())
    if top + error < best:
        return best
    near = about >= top - 2 * error
    base = np.uint64(top & 2**64 - 1).astype(np.int64)
    return max(best, top + int((sums(np.int64)[near] - base).max()))


def _blocks(matrix: IntArray) -> list[slice]:
    width = max(1, 2**17 // len(matrix))
    return [slice(start, start + width) for start in range(0, matrix.shape[1], width)]


def _norms(matrix: IntArray, kind: Any) -> NDArray[Any]:
    own = matrix.astype(kind)
    return np.asarray((own * own).sum(axis=0))


def _distances(some: IntArray, matrix: IntArray, kind: Any) -> NDArray[Any]:
    """(m, n) squared distances of columns."""
    both = some.T.astype(kind) @ matrix.astype(kind)
    return np.asarray(_norms(some, kind)[:, None] + _norms(matrix, kind) - 2 * both)


def _owned(labels: IntArray, people: IntArray) -> dict[int, list[Any]]:
    """By their number: the columns that somebody has, and for how many rows each; who has the same, once."""
    n = int(labels.max()) + 1
    pairs, counts = np.unique(people * n + labels, return_counts=True)
    starts = np.flatnonzero(np.diff(pairs // n, prepend=-1))[1:]
    kinds = {
        (tuple(columns.tolist()), tuple(times.tolist()))
        for columns, times in zip(np.split(pairs % n, starts), np.split(counts, starts), strict=True)
    }
    by_size = defaultdict(list)
    for kind in kinds:
        by_size[len(kind[0])].append(kind)
    return by_size


def _gram(matrix: IntArray, columns: IntArray, counts: IntArray, kind: Any) -> NDArray[Any]:
    """(n, d, d) inner products of each person's columns, as often as they count."""
    own = np.moveaxis(matrix[:, columns], 0, 2).astype(kind) * counts[:, :, None].astype(kind)
    return np.asarray(own @ np.swapaxes(own, 1, 2))


def _with_signs(matrix: IntArray, columns: IntArray, counts: IntArray, kind: Any) -> NDArray[Any]:
    """(n, 2^(d-1)) squared lengths of each person's columns: of two choices that are opposites, one."""
    d = columns.shape[1]
    signs = (1 - 2 * (np.arange(2 ** (d - 1)) >> np.arange(d)[:, None] & 1)).astype(kind)
    return np.asarray((signs * (_gram(matrix, columns, counts, kind) @ signs)).sum(axis=1))


def _absolute(matrix: IntArray, columns: IntArray, counts: IntArray, kind: Any) -> NDArray[Any]:
    """(n,) sums of the absolute inner products of each person's columns."""
    gram = _gram(matrix, columns, counts, kind)
    down = gram < 0
    if kind is np.int64:  # large ones may have wrapped
        real = _gram(matrix, columns, counts, np.float64)
        down = np.where(np.abs(real) < 2.0**62, down, real < 0)
    return np.asarray(np.where(down, -gram, gram).sum(axis=(1, 2)))


def _sum_of_norms(matrix: IntArray, columns: Any, counts: Any) -> int:
    each = (matrix[:, column].tolist() for column in columns)
    return sum(n * root_rounded_up(sum(v * v for v in own)) for n, own in zip(counts, each, strict=True))
