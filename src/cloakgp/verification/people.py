"""What one person's rows can do together, from the file's integers alone: exact, and by its own arithmetic.

The rule is that of lemma 19 of ``docs/proofs.md``: for up to 12 different columns the longest sum with any
signs, for up to 2,048 the sum of all absolute inner products, and beyond that the sum of the norms, each
rounded up; signs are tried only if those of all people together are not too many. Every inner product is an
exact integer. Everybody is looked at, and only trying signs stops at who cannot be the longest any more.
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
Kind = tuple[tuple[int, ...], tuple[int, ...]]
"""Different columns of a person, and for how many rows each is."""
_FEW, _MANY = 12, 2048
_MOST_SIGNS = 2**26  # of all people together: more would take minutes, and make no promise better
_BLOCK = 2**20  # entries of columns, or sums with signs, looked at together
_LOW = 2**32 - 1
_DIGIT = 24  # bits: sums of 67 digits are exact as floats, whatever the order


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
    by_size: dict[int, list[Kind]] = defaultdict(list)
    longest = 0
    for kind in kinds:
        if len(kind[0]) > _MANY:
            longest = max(longest, _sum_of_norms(matrix, *kind) ** 2)
        else:
            by_size[len(kind[0])].append(kind)
    tried = sum(len(some) << size - 1 for size, some in by_size.items() if size <= _FEW)
    few = _FEW if signs and tried <= _MOST_SIGNS else 0
    for size, some in by_size.items():
        step = max(1, _BLOCK // (size * max(size, len(matrix))))
        sums: list[int] = []
        for start in range(0, len(some), step):
            sums += _absolute_sums(matrix, some[start : start + step])
        longest = _with_signs(matrix, some, sums, longest) if size <= few else max(longest, *sums)
    return longest


def _with_signs(matrix: IntArray, some: list[Kind], sums: list[int], longest: int) -> int:
    """The longest sum with any signs of people's columns, or `longest` if none is longer.

    `sums` of absolute inner products are what none can be longer than: who has the largest comes first.
    """
    signs = _all_signs(len(some[0][0]))
    order, step = sorted(range(len(some)), key=lambda i: -sums[i]), max(1, _BLOCK // signs.shape[1])
    for start in range(0, len(some), step):
        part = [some[i] for i in order[start : start + step] if sums[i] > longest]
        if not part:
            break
        longest = max(longest, _largest_product(_sums_by_pair(_grams(matrix, part)), signs))
    return longest


def _sums_by_pair(grams: Any) -> Any:
    """(n, 1 + pairs) a person's squared norms added up, and twice each inner product: Python's integers."""
    d = grams.shape[1]
    own = grams[:, np.arange(d), np.arange(d)].sum(axis=1, keepdims=True)
    return np.hstack([own, 2 * grams[:, *np.triu_indices(d, 1)]])


def _all_signs(d: int) -> NDArray[np.float64]:
    """(1 + pairs, 2^(d-1)) by what each choice of signs multiplies these: of two opposite ones, one."""
    s = 1.0 - 2.0 * (np.arange(2 ** (d - 1)) >> np.arange(d)[:, None] & 1)
    first, second = np.triu_indices(d, 1)
    return np.vstack([np.ones(s.shape[1]), s[first] * s[second]])


def _largest_product(numbers: Any, signs: NDArray[np.float64]) -> int:
    """The largest entry of a product of integers with signs, exactly: digit by digit, each with its carry."""
    most = max(map(int.bit_length, (int(numbers.min()), int(numbers.max()))))
    base, carried = 2.0**_DIGIT, np.zeros(1)
    digits = []
    for place in range(most // _DIGIT + 1):
        last = place == most // _DIGIT
        own = numbers >> _DIGIT * place
        total = (own if last else own & 2**_DIGIT - 1).astype(np.float64) @ signs + carried
        carried = np.floor(total / base)
        digits.append((total if last else total - carried * base).ravel())
    largest, left = 0, np.arange(len(digits[0]))
    for digit in reversed(digits):
        top = digit[left].max()
        largest, left = (largest << _DIGIT) + int(top), left[digit[left] == top]
    return largest


def _grams(matrix: IntArray, some: list[Kind]) -> Any:
    """(n, d, d) inner products of each person's columns, as often as they count: Python's integers."""
    columns, counts = _owned(some)
    parts = _in_parts(matrix, columns)
    if parts is None:
        whole = matrix[:, columns].astype(object)
        found = sum(row[:, :, None] * row[:, None, :] for row in whole)
    else:
        high, low = (part.astype(object) for part in parts)
        found = high * 2**32 + low
    n = counts.astype(object)
    return found * n[:, :, None] * n[:, None, :]


def _absolute_sums(matrix: IntArray, some: list[Kind]) -> list[int]:
    """Of each person, the absolute inner products of their columns, added up as often as they count."""
    columns, counts = _owned(some)
    both = _in_parts(matrix, columns)
    if both is None or int(counts.max()) ** 2 * counts.shape[1] ** 2 >= 2**30:
        sums: list[int] = abs(_grams(matrix, some)).sum(axis=(1, 2)).tolist()
        return sums
    high, low = both
    down = high < 0
    high, low = np.where(down, ~high + (low == 0), high), np.where(down, -low & _LOW, low)
    # Parts of 32 bits: no sum of fewer than 2^30 of them can leave 64 bits.
    parts = (high >> 32, high & _LOW, low)
    by_part = (((part * counts[:, None, :]).sum(axis=2) * counts).sum(axis=1) for part in parts)
    return [(a << 64) + (b << 32) + c for a, b, c in zip(*(part.tolist() for part in by_part), strict=True)]


def _owned(some: list[Kind]) -> tuple[IntArray, IntArray]:
    """(n, d) the columns of each person, and how often each counts."""
    return np.array([columns for columns, _ in some]), np.array([counts for _, counts in some])


def _in_parts(matrix: IntArray, columns: IntArray) -> tuple[IntArray, IntArray] | None:
    """(n, d, d) each inner product as high 2^32 + low, 0 <= low < 2^32; None if entries are too large."""
    picked = np.moveaxis(matrix[:, columns], 0, 1)  # (n, q, d)
    if picked.min() <= -(2**31) or picked.max() >= 2**31 or len(matrix) >= 2**28:
        return None
    # Parts of 16 bits: no sum of products of two of them can leave 64 bits, or 53, which floats hold.
    kind = np.float64 if len(matrix) < 2**20 else np.int64
    h, rest = (picked >> 16).astype(kind), (picked & 0xFFFF).astype(kind)
    turned, rest_turned = np.swapaxes(h, 1, 2), np.swapaxes(rest, 1, 2)
    first, third = turned @ h, rest_turned @ rest
    second = turned @ rest + rest_turned @ h
    first, second, third = (part.astype(np.int64) for part in (first, second, third))
    low = third + ((second & 0xFFFF) << 16)
    return first + (second >> 16) + (low >> 32), low & _LOW


def _sum_of_norms(matrix: IntArray, columns: tuple[int, ...], counts: tuple[int, ...]) -> int:
    total = 0
    for column, n in zip(columns, counts, strict=True):
        squared = sum(entry**2 for entry in matrix[:, column].tolist())
        total += n * (math.isqrt(squared - 1) + 1 if squared else 0)
    return total
