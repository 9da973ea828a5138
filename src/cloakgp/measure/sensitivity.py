"""How far one unit of protection can move a measurement: in exact integers, the same on every machine.

A measurement adds A(x) s(y), with A's columns b and the integers s of a statistic. What may change together:

- *one row's outcome* moves it by the statistic's largest change times the longest column;
- *all outcomes of one person*, whose rows have columns b_1, ..., b_d, b_i for m_i of the rows, by the largest
  change times the root of

      v = max over signs of |sum_i s_i m_i b_i|^2  <=  sum_ij m_i m_j |<b_i, b_j>|  <=  (sum_i m_i |b_i|)^2.

  The first is what is used for up to `FEW` columns, where it is found by trying, if a statistic has one
  integer; the second up to `MANY`, equal to the first wherever flipping rows makes all inner products
  positive, as for one person's neighbouring ages; the third beyond, each norm rounded up to an integer. Where
  people are so many that trying would take long, also for those who verify a file, the second is used for few
  columns, too: `MOST_SIGNS` says where. Lemmas 19 and 22 of ``docs/proofs.md``;
- *one whole row*, which may go to any cell: what the statistic says of two columns (theorem 20, lemma 23);
- *one person's whole rows*, up to k: k times that, with no row as one of the possibilities (theorem 21).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakgp.core.checks import FloatArray, IntArray
from cloakgp.data.chunks import in_threads, steps
from cloakgp.data.merging import Labels
from cloakgp.data.people import People
from cloakgp.measure.statistics import Statistic
from cloakgp.measure.unit import Population

FEW = 12
"""Columns up to which all signs are tried."""
MOST_SIGNS = 2**26
"""Signs of all people together, 2^(d - 1) for d columns, up to which any are tried."""
MANY = 2048
"""Columns up to which all pairs are looked at."""
MOST_PAIRED = 5000
"""Cells up to which all pairs of columns are compared; beyond, twice the longest column is taken."""
MOST_COUNTED = 2**42
"""Entries of a matrix whose columns are compared are below: twice 21 bits."""
_NEAR = 1e-6  # far above the relative errors below, d (q + 2 d + 4) 2^-52 at most
_HALF, _MASK = 21, 2**21 - 1


def squared_sensitivity(
    matrix: IntArray,
    labels: Labels | None,
    statistic: Statistic,
    people: People | None,
    population: Population | None,
    norm: int = 2,
) -> int:
    """The square of how far one unit can move ``matrix @ integers``: the one place where it is worked out.

    In L2; or in L1, of a statistic with one integer, where inputs are public.
    """
    if population is not None:

        def furthest(origin: bool) -> int:
            return furthest_squared(matrix, origin)

        apart = statistic.apart(largest_squared_norm(matrix), furthest, population.max_rows is not None)
        each: int = population.each
        return each * each * apart
    if norm == 1 or sparse.issparse(matrix):
        moved = largest_power_sum(matrix, labels, people, norm)
        return statistic.change * (moved * moved if norm == 1 else moved)
    if people is None:
        return statistic.change * largest_squared_norm(matrix)
    assert labels is not None
    return statistic.change * largest_squared_move(matrix, labels, people, signs=statistic.width == 1)


def root_up(squared: int) -> int:
    """The smallest integer whose square is at least this."""
    return math.isqrt(squared - 1) + 1 if squared else 0


def largest_squared_norm(matrix: IntArray) -> int:
    """Largest squared column norm, exactly."""
    return max(
        in_threads(lambda some: _largest_of_few(matrix[:, some]), list(steps(matrix.shape[1]))), default=0
    )


def _largest_of_few(matrix: IntArray) -> int:
    real = matrix.astype(np.float64)
    approximate = np.einsum("ij,ij->j", real, real)
    # A sum of q squares in float64 is within a factor 1 +- (q + 3) 2^-53 of the exact one, so the longest
    # column is among these, and below that bar no int64 partial sum can wrap; above it, Python integers.
    candidates = matrix[:, approximate >= approximate.max() * (1 - 1e-6)]
    if approximate.max() < 2**62:
        return int(np.einsum("ij,ij->j", candidates, candidates).max())
    largest: int = max(sum(entry**2 for entry in column) for column in candidates.T.tolist())
    return largest


def furthest_squared(matrix: IntArray, origin: bool) -> int:
    """Largest squared distance of two columns, exactly; with `origin`, 0 is one of them.

    With very many columns four times the largest squared norm, which is no less.
    """
    if origin:
        matrix = np.column_stack([matrix, np.zeros(len(matrix), dtype=np.int64)])
    if matrix.shape[1] > MOST_PAIRED:
        return 4 * largest_squared_norm(matrix)
    if len(matrix) > 2**11 or largest_entry(matrix) >= MOST_COUNTED:  # only a file can hold such
        columns = matrix.T.tolist()
        return int(max(sum(d**2 for d in map(sub, one, other)) for one in columns for other in columns))
    # An entry is h 2^21 + l, with |h| and l at most 2^21: sums of up to 2^11 products of two such are
    # integers below 2^53, which floating point adds up exactly, in whatever order.
    high, low = ((matrix >> _HALF).astype(np.float64), (matrix & _MASK).astype(np.float64))
    blocks = [slice(start, start + 512) for start in range(0, matrix.shape[1], 512)]
    return max(_furthest_of(high, low, some) for some in blocks)


def _furthest_of(high: FloatArray, low: FloatArray, some: slice) -> int:
    """Largest squared distance of some columns from all, with differences h 2^21 + l."""
    hh, ll = _products(high, high, some), _products(low, low, some)
    hl = _products(high, low, some) + _products(low, high, some)
    # Carried over, so that the largest is the one whose digits are.
    hl += ll >> _HALF
    hh += hl >> _HALF
    digits = hh.ravel(), (hl & _MASK).ravel(), (ll & _MASK).ravel()
    first = int(digits[0].max())
    rest = digits[0] == first
    second = int(digits[1][rest].max())
    third = int(digits[2][rest & (digits[1] == second)].max())
    return (first << 2 * _HALF) + (second << _HALF) + third


def _products(one: FloatArray, other: FloatArray, some: slice) -> IntArray:
    """(n, M) <x - x', y - y'> for some columns with all."""
    whole = np.einsum("ij,ij->j", one, other).astype(np.int64)
    between = (one[:, some].T @ other).astype(np.int64) + (other[:, some].T @ one).astype(np.int64)
    return np.asarray(whole[some, None] + whole - between)


def largest_entry(matrix: IntArray) -> int:
    """In size; abs would wrap for -2^63."""
    return max(-int(matrix.min(initial=0)), int(matrix.max(initial=0)))


Owned = tuple[Labels, IntArray]
"""Columns of people who have equally many different ones: (n, d) which, and for how many of their rows."""


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
        yield own[:, :d].astype(np.intp), own[:, d:]


def largest_power_sum(matrix: Any, labels: Labels | None, people: People | None, power: int) -> int:
    """The largest L1 norm (power 1) or squared L2 norm (2) of what a row, or a person, moves; exactly.

    Absolute values are added up, so it is reached where no column of a person's has an entry of another sign
    in the same place: by bins, whose columns are unit vectors. Of a matrix that is sparse, or of few rows.
    """
    moved = sparse.csc_array(abs(matrix))
    if people is not None:
        assert labels is not None
        shape = (matrix.shape[1], people.n_people)
        moved = moved @ sparse.csc_array((np.ones(people.n_rows, np.int64), (labels, people.labels)), shape)
    if moved.nnz == 0:
        return 0
    each = moved.data
    if len(each) * float(each.max()) ** power >= 2**62:  # int64 might wrap
        each = each.astype(object)
    return int(np.add.reduceat(each**power, moved.indptr[:-1][np.diff(moved.indptr) > 0]).max())


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
        step = max(1, 2**22 // max(d * len(matrix), d * d, 2 ** (d - 1) if d <= few else 1))
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
    m = counts.astype(object)
    weighted = exact_gram(matrix[:, columns]) * np.multiply.outer(m, m)
    if len(m) > few:
        return int(np.abs(weighted).sum())
    about = _over_signs(weighted.astype(np.float64)[None])[0]
    near = about >= about.max() * (1 - _NEAR)
    return max(int(s @ weighted @ s) for s in _signs(len(m))[near].astype(int).astype(object))


def exact_gram(columns: IntArray) -> NDArray[Any]:
    """Inner products of columns, exactly, in Python's integers.

    Entries below 2^31 are h 2^16 + l with |h| <= 2^15 and 0 <= l < 2^16: products of such parts, summed over
    fewer than 2^20 entries, are below 2^52, and so exact in floating point whatever the order of sums.
    """
    if len(columns) >= 2**20 or columns.min() <= -(2**31) or columns.max() >= 2**31:
        whole = columns.astype(object)
        return np.asarray(whole.T @ whole)
    h, low = (columns >> 16).astype(np.float64), (columns & 0xFFFF).astype(np.float64)
    cross = h.T @ low
    parts = (h.T @ h, cross + cross.T, low.T @ low)
    high, mixed, rest = (part.astype(np.int64).astype(object) for part in parts)
    return np.asarray((high << 32) + (mixed << 16) + rest)


def _by_norms(matrix: IntArray, columns: Labels, counts: IntArray) -> int:
    """(sum of norms)^2, each rounded up."""
    own = zip(matrix[:, columns].T.tolist(), counts.tolist(), strict=True)
    return int(sum(count * root_up(sum(entry**2 for entry in column)) for column, count in own) ** 2)
