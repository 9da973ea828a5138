"""What one person's rows can do together, from the file's integers alone: exact, and by its own arithmetic.

The rule is that of lemma 19 of ``docs/proofs.md``: for up to 12 different columns the longest sum with any
signs, for up to 2,048 the sum of all absolute inner products, and beyond that the sum of the norms, each
rounded up. Every inner product is an exact integer. Everybody is looked at, and only trying signs stops at
who cannot be the longest any more.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.rows.people import ALIKE, as_people
from cloakgp.verification import reasons
from cloakgp.verification.reasons import Reason

IntArray = NDArray[np.int64]
_FEW, _MANY = 12, 2048
_BLOCK = 2**20  # entries of columns looked at together


def shown(manifest: dict[str, Any], arrays: dict[str, Any], ids: Any) -> IntArray | None:
    """(N,) who has which rows: as the file says, or as is given; None if neither is, or nobody is named."""
    words, claim, found = manifest["people"], manifest["certificate"], arrays.get("people")
    if found is not None:
        reasons.refuse(_digest(found) != words["sha256"], Reason.PEOPLE)
    if ids is not None:
        found = as_people(ids, claim["n_rows"], claim.get("ids", ALIKE)).labels.astype(np.int64)
        reasons.refuse(_digest(found) != words["sha256"], Reason.OTHER_PEOPLE)
    return found


def _digest(labels: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).hexdigest()


def rows_of(people: IntArray) -> IntArray:
    """(N,) how many rows the person of each row has."""
    counts: IntArray = np.bincount(people)[people]
    return counts


def longest_squared(matrix: IntArray, labels: IntArray, people: IntArray, signs: bool = True) -> int:
    """The largest squared length of anyone's columns together, of columns that rows name by labels.

    Without `signs`, as for classes (lemma 22), the largest sum of absolute inner products.
    """
    order = np.lexsort((labels, people))
    own: dict[int, dict[int, int]] = defaultdict(dict)  # of each person: how often each column
    for person, column in zip(people[order].tolist(), labels[order].tolist(), strict=True):
        own[person][column] = own[person].get(column, 0) + 1
    kinds = {(tuple(columns), tuple(columns.values())) for columns in own.values()}
    by_size: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
    longest = 0
    for kind in kinds:
        if len(kind[0]) > _MANY:
            longest = max(longest, _sum_of_norms(matrix, *kind) ** 2)
        else:
            by_size[len(kind[0])].append(kind)
    to_try: list[tuple[int, Any]] = []
    for size, some in by_size.items():
        step = max(1, _BLOCK // (size * max(size, len(matrix))))
        for start in range(0, len(some), step):
            part = some[start : start + step]
            grams = _grams(matrix, np.array([columns for columns, _ in part]), [n for _, n in part])
            sums = abs(grams).sum(axis=(1, 2)).tolist()
            if size > _FEW or not signs:
                longest = max(longest, *sums)
            else:
                to_try += zip(sums, grams, strict=True)
    for most, gram in sorted(to_try, key=lambda one: -one[0]):
        if most <= longest:
            break
        longest = max(longest, _with_signs(gram, most))
    return longest


def _grams(matrix: IntArray, columns: Any, counts: Any) -> Any:
    """(n, d, d) inner products of each person's columns, as often as they count: Python's integers."""
    picked = matrix[:, columns]  # (q, n, d)
    n = np.array(counts, dtype=object)
    if picked.min() <= -(2**31) or picked.max() >= 2**31 or len(matrix) >= 2**28:
        whole = picked.astype(object)
        found = sum(row[:, :, None] * row[:, None, :] for row in whole)
    else:
        # Parts of 16 bits: no sum of products of two of them can leave 64 bits.
        high, low = np.moveaxis(picked >> 16, 0, 1), np.moveaxis(picked & 0xFFFF, 0, 1)
        turned, low_turned = np.swapaxes(high, 1, 2), np.swapaxes(low, 1, 2)
        parts = (turned @ high, turned @ low + low_turned @ high, low_turned @ low)
        first, second, third = (part.astype(object) for part in parts)
        found = first * 2**32 + second * 2**16 + third
    return found * n[:, :, None] * n[:, None, :]


def _with_signs(gram: Any, most: int) -> int:
    """The longest sum with any signs; `most` where flipping some makes all inner products positive."""
    rows, d = gram.tolist(), len(gram)
    # Flip what points away from the first that it meets; then see whether all agree.
    signs, met = [1] * d, [False] * d
    for start in range(d):
        waiting = [] if met[start] else [start]
        met[start] = True
        while waiting:
            i = waiting.pop()
            for j in range(d):
                if rows[i][j] and not met[j]:
                    met[j], signs[j] = True, signs[i] * (1 if rows[i][j] > 0 else -1)
                    waiting.append(j)
    if _length(rows, signs) == most:
        return most
    return max(
        _length(rows, [1, *(1 - 2 * (bits >> i & 1) for i in range(d - 1))]) for bits in range(2 ** (d - 1))
    )


def _length(rows: list[list[int]], signs: list[int]) -> int:
    d = range(len(rows))
    return sum(signs[i] * signs[j] * rows[i][j] for i in d for j in d)


def _sum_of_norms(matrix: IntArray, columns: tuple[int, ...], counts: tuple[int, ...]) -> int:
    total = 0
    for column, n in zip(columns, counts, strict=True):
        squared = sum(entry**2 for entry in matrix[:, column].tolist())
        total += n * (math.isqrt(squared - 1) + 1 if squared else 0)
    return total
