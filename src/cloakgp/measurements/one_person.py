"""How far all outcomes of one person can move integer measurements: exact, and the same on every machine.

A person's rows have columns b_1, ..., b_d, b_i for m_i of the rows. Each outcome moves by at most 2^b steps,
up or down, so the measurements move by at most 2^b times the root of

    v = max over signs of |sum_i s_i m_i b_i|^2  <=  sum_ij m_i m_j |<b_i, b_j>|  <=  (sum_i m_i |b_i|)^2.

The first is what is used for up to `FEW` columns, where it is found by trying; the second up to `MANY`, equal
to the first wherever flipping rows makes all inner products positive, as for one person's neighbouring ages;
the third beyond, each norm rounded up to an integer. Where people are so many that trying would take long,
also for those who verify a file, the second is used for few columns, too: `MOST_SIGNS` says where. Lemma 19
of ``docs/proofs.md``.

Where outcomes are one of several classes, a row moves the sums of two classes, and v is no bound for what a
person moves: the second is, twice (lemma 22).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.rows.merging import Labels
from cloakgp.rows.people import People

IntArray = NDArray[np.int64]
FEW = 12
"""Columns up to which all signs are tried."""
MOST_SIGNS = 2**26
"""Signs of all people together, 2^(d - 1) for d columns, up to which any are tried."""
MANY = 2048
"""Columns up to which all pairs are looked at."""
_NEAR = 1e-6  # far above the relative errors below, d (q + 2 d + 4) 2^-52 at most
_ENTRIES = 2**22  # of a block of columns


class Owned(NamedTuple):
    """Columns of people who have equally many different ones."""

    columns: Labels  # (n, d): which
    counts: IntArray  # (n, d): for how many of the person's rows


def owned(labels: Labels, people: People) -> Iterator[Owned]:
    """Every person's columns, given each row's; people with the same number of columns together."""
    n_columns = int(labels.max()) + 1
    pairs, counts = np.unique(people.labels.astype(np.int64) * n_columns + labels, return_counts=True)
    person, column = np.divmod(pairs, n_columns)
    sizes = np.bincount(person, minlength=people.n_people)
    start = np.cumsum(sizes) - sizes
    for d in np.unique(sizes).tolist():
        at = start[sizes == d][:, None] + np.arange(d)
        own = np.hstack([column[at], counts[at]])
        own = np.unique(own, axis=0) if d <= MANY else own  # who has the same columns moves them alike
        yield Owned(own[:, :d].astype(np.intp), own[:, d:])


def largest_squared_move(matrix: IntArray, labels: Labels, people: People, signs: bool = True) -> int:
    """The largest v of anyone, exactly: of columns `labels` of a matrix, one for each row.

    Without `signs`, the largest sum of absolute inner products in its place, however few the columns.
    """
    if matrix.size == 0:
        return 0
    largest = 0
    near: list[tuple[float, Labels, IntArray]] = []  # about v, of who may have the largest
    everyone = list(owned(labels, people))
    bar, few = 0.0, FEW if signs and _are_few(everyone) else 0
    for columns, counts in everyone:
        d = columns.shape[1]
        if d > MANY:
            largest = max(largest, *(_by_norms(matrix, *one) for one in zip(columns, counts, strict=True)))
            continue
        step = max(1, _ENTRIES // max(d * len(matrix), d * d, 2 ** (d - 1) if d <= few else 1))
        for rows in (slice(i, i + step) for i in range(0, len(columns), step)):
            about = _about(matrix, columns[rows], counts[rows], few, bar * (1 - _NEAR))
            bar = max(bar, float(about.max()))
            some = np.flatnonzero(about >= bar * (1 - _NEAR))
            near += [(float(about[i]), columns[rows][i], counts[rows][i]) for i in some]
    best = [(columns, counts) for value, columns, counts in near if value >= bar * (1 - _NEAR)]
    candidates = (_exactly(matrix, columns, counts, few) for columns, counts in best)
    return max(largest, *candidates, 0)


def _are_few(everyone: list[Owned]) -> bool:
    """Whether signs are tried: a public rule, by which those who verify find the same."""
    tried = (len(columns) << columns.shape[1] - 1 for columns, _ in everyone if columns.shape[1] <= FEW)
    return bool(sum(tried) <= MOST_SIGNS)


def _about(
    matrix: IntArray, columns: Labels, counts: IntArray, few: int, least: float
) -> NDArray[np.float64]:
    """(n,) v of each person, in floating point; 0 for who is found not to reach `least`."""
    own = np.moveaxis(matrix[:, columns], 0, 1).astype(np.float64) * counts[:, None, :]  # (n, q, d)
    gram = np.swapaxes(own, 1, 2) @ own
    sums = np.asarray(np.abs(gram).sum(axis=(1, 2)))
    if columns.shape[1] > few:
        return sums
    found, far = np.zeros(len(sums)), sums >= least
    found[far] = _over_signs(gram[far]).max(axis=1)
    return found


def _over_signs(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2^(d-1)) squared lengths for all signs; of two that are each other's opposite, one."""
    S, (first, second) = _signs(gram.shape[-1]), np.triu_indices(gram.shape[-1], 1)
    norms = np.trace(gram, axis1=1, axis2=2)
    return np.asarray(norms[:, None] + 2 * gram[:, first, second] @ (S[:, first] * S[:, second]).T)


@cache
def _signs(d: int) -> NDArray[np.float64]:
    """(2^(d-1), d) all signs, the first being +."""
    bits = np.arange(2 ** (d - 1))[:, None] >> np.arange(d)
    return np.asarray(1.0 - 2.0 * (bits[:, np.r_[d - 1, : d - 1]] & 1), dtype=np.float64)


def _exactly(matrix: IntArray, columns: Labels, counts: IntArray, few: int) -> int:
    """A person's v."""
    own = matrix[:, columns]
    gram = exact_gram(own)
    m = counts.tolist()
    weighted = [[a * b * g for b, g in zip(m, row, strict=True)] for a, row in zip(m, gram, strict=True)]
    if len(m) > few:
        return sum(abs(entry) for row in weighted for entry in row)
    about = _over_signs(np.array(weighted, dtype=np.float64)[None])[0]
    best = np.flatnonzero(about >= about.max() * (1 - _NEAR))
    return max(_squared(weighted, signs) for signs in _signs(len(m))[best].astype(int).tolist())


def _squared(gram: list[list[int]], signs: list[int]) -> int:
    each = zip(signs, gram, strict=True)
    return sum(s * sum(t * entry for t, entry in zip(signs, row, strict=True)) for s, row in each)


def exact_gram(columns: IntArray) -> list[list[int]]:
    """Inner products of columns, exactly, in Python's integers.

    Entries below 2^31 are h 2^16 + l with |h| <= 2^15 and 0 <= l < 2^16: products of such parts, summed over
    fewer than 2^20 entries, are below 2^52, and so exact in floating point whatever the order of sums.
    """
    if len(columns) >= 2**20 or columns.min() <= -(2**31) or columns.max() >= 2**31:
        whole = columns.astype(object)
        return [list(row) for row in (whole.T @ whole).tolist()]
    h, low = (columns >> 16).astype(np.float64), (columns & 0xFFFF).astype(np.float64)
    cross = h.T @ low
    parts = (h.T @ h, cross + cross.T, low.T @ low)
    high, mixed, rest = (part.astype(np.int64).tolist() for part in parts)
    return [
        [(a << 32) + (b << 16) + c for a, b, c in zip(*rows, strict=True)]
        for rows in zip(high, mixed, rest, strict=True)
    ]


def _by_norms(matrix: IntArray, columns: Labels, counts: IntArray) -> int:
    """(sum of norms)^2, each rounded up."""
    total = 0
    for column, count in zip(matrix[:, columns].T.tolist(), counts.tolist(), strict=True):
        squared = sum(entry**2 for entry in column)
        root = math.isqrt(squared)
        total += count * (root + (root * root < squared))
    return total**2
