"""THE PRIVATE ROOM: the one path that y takes. ``__all__`` below lists the doors that others may use.

y comes in through one of two doors. For a release, :func:`measure` takes it together with the public
integer measurements of a stage: it is parsed once, made integers by each one's statistic, multiplied by its
public integer matrix, and noise from OpenDP is added. Only the noisy integers leave; what was parsed stays
here for the stages to come (:class:`Outcomes`). Where inputs are private, too, X and ids come in with y, and
all rules for y hold for them. For a selection, :func:`choose` takes y together with
public integer scores: the clipped losses of each candidate are summed, in integers, and OpenDP's noisy
maximum picks one. Only its index leaves.

Why that is private (``docs/proofs.md``, theorems 1, 17, 20, 21, lemmas 11, 22 to 25): a statistic's
integers are in its public range whatever y is, so one unit of protection moves their products with the
matrix by at most the sensitivity that :mod:`cloakgp.measure.sensitivity` finds, and each score by at most
the declared one, in exact integers; noise is scaled to that, and all else sees what is noisy.

What else could leak, and why it does not: the work done does not depend on y's values (no branch,
no early exit, no warning); errors say what was expected, never what was there. The one thing an
error tells is whether y is usable at all (right shape, a numeric type, nothing missing), and it
tells it to the caller, who holds y, before any noise is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from cloakgp.core import checks
from cloakgp.core.checks import IntArray
from cloakgp.data.chunks import chunks, is_dask, steps
from cloakgp.data.inputs import TableRows
from cloakgp.data.merging import Labels
from cloakgp.data.passes import as_array, private_dask_column, sweep
from cloakgp.measure.cross_validation import Scores
from cloakgp.measure.measurement import LAPLACE, Measurement
from cloakgp.measure.statistics import Statistic
from cloakgp.measure.unit import Population
from cloakgp.model.outcome import ANSWERS, REAL, Outcome
from cloakgp.private.noise import add_laplace, add_noise, drawn, noisy_minimum
from cloakgp.private.outcomes import (
    INCOMPLETE,
    Answers,
    PrivateColumn,
    PrivateLabels,
    answers,
    check_name,
    column_name,
    integers_of,
    kept,
    numeric,
    own_rows,
    parsed,
)
from cloakgp.private.rows import INCOMPLETE_ROWS, PrivateRows, rows_of

__all__ = [
    "Outcomes",
    "PrivateColumn",
    "PrivateLabels",
    "PrivateRows",
    "choose",
    "column_names",
    "custodian_scores",
    "custodian_view",
    "measure",
    "private_dask_column",
]

MISSING = ("error", "midpoint")
STAYS = (
    "y is a Dask array, and this needs single outcomes here: a selection compares rows, labels are compared "
    "with classes, and where a chunk of rows has one in a bin, its sum is that outcome. They are not fetched "
    "from a cluster unasked. Give y.compute() if they may leave it. Nothing was spent."
)


class Outcomes:
    """y, or whole rows, handed from stage to stage: unread until a door asks, and then parsed once.

    Parameters
    ----------
    y : (N,) real numbers
        Private. A list, an array, a Series, a memory map, a column of a file (:class:`PrivateColumn`,
        ``ParquetColumns``) or a Dask array, whose rows stay on its cluster. Or :class:`PrivateRows`: inputs
        and ids are private, too. What is beyond memory is not kept: each stage is one more pass over it.
    rows : TableRows, optional
        Public: which rows of y count, and their labels, if they have some. Others are refused.
    outcome : Outcome
        Public: numbers if absent. Where classes are named, y is each one of these; what is none of them is
        missing. Of two, y is the second or not. Of more, what is missing counts for none of them; in whole
        rows, for all alike. For yes/no, y is 1 and 0; what is neither is missing.
    names : collection of str
        Public: what inputs are called, as far as they have names. A y that is called so is refused.
    """

    __slots__ = ("_names", "_outcome", "_parsed", "_rows", "_y")

    def __init__(
        self,
        y: Any,
        rows: TableRows | None = None,
        outcome: Outcome = REAL,
        names: Collection[str] = (),
    ) -> None:
        self._y, self._rows, self._outcome, self._names = y, rows, outcome, names
        self._parsed: _Read | None = None

    def _parsed_for(self, m: Measurement) -> _Read:
        """What is measured, for this room alone: parsed on the first call, for these rows and no others.

        A plan for another population would have other cells, and another number of rows that count for one
        person: what was parsed for one is not measured for the other.
        """
        table = self._y if isinstance(self._y, PrivateRows) else None
        population = m.population
        of = m.n_rows if population is None else population
        if (table is None) != (population is None) or (self._parsed is not None and self._parsed.of != of):
            raise AssertionError("outcomes are those of other rows than the columns are for")
        if self._parsed is None:
            y = self._y if table is None else table.y
            check_name(y, self._names)
            y = _compared(y, self._outcome)
            if table is None or population is None:
                labels, source = None, kept(own_rows(y, self._rows), m.n_rows)
                known: NDArray[Any] = np.ones(1, dtype=np.bool_)
                counted = np.ones(1, dtype=np.int64)
            else:
                rows = PrivateRows(table.X, y, table.people, table.ids)
                labels, known, counted, source = rows_of(population, rows)
            self._parsed = _Read(of, labels, known, counted, parsed(source))
        return self._parsed

    def __reduce__(self) -> Any:
        raise TypeError("outcomes stay in this process; nothing was spent.")

    def __repr__(self) -> str:
        return "<Outcomes, unread>"


class _Read(NamedTuple):
    """Outcomes as they were parsed: numbers, of which slices can be taken."""

    of: Population | int
    """Whose rows they are; or how many, where inputs are public."""
    cells: Labels | None
    """(N,) where whole rows are private: the cell of each."""
    known: NDArray[Any]
    """(N,) whether a row's inputs are known; one number that stands for all where inputs are public."""
    counted: IntArray
    """(N,) 1 for a row that counts, 0 for one that does not; or one number, likewise."""
    source: Any


def measure(measurements: Measurement | Sequence[Measurement], y: Any, missing: str) -> IntArray:
    """The noisy measurements of y, or of whole rows, one after the other: the one private step.

    Parameters
    ----------
    measurements : Measurement, or several of one stage
        Public. Checked again here, from their integers, before y is looked at.
    y : Outcomes, or numbers
        Clipped to the bounds.
    missing : {"error", "midpoint"}
        What to do about NaN and infinities: refuse, or put the middle of the bounds in their place,
        row by row, so that being missing is as well protected as any value. A row with a missing input
        counts in one fixed public cell, with its outcome in the middle.
    """
    parts = measurements if isinstance(measurements, Sequence) else (measurements,)
    exact = _times(parts, y if isinstance(y, Outcomes) else Outcomes(y), missing)
    law = [add_laplace if m.noise == LAPLACE else add_noise for m in parts]
    return np.concatenate([add(sums, m.sigma) for add, m, sums in zip(law, parts, exact, strict=True)])


def column_names(y: Any, inputs: tuple[str, ...] = ()) -> tuple[tuple[str, ...], str | None]:
    """What headers call the columns that y is, `inputs` of whole rows among them, and their ids. Public."""
    if not isinstance(y, PrivateRows):
        name = column_name(y)
        return (() if name is None else (name,)), None
    name, table = column_name(y.y), isinstance(y.X, Mapping) or hasattr(y.X, "columns")
    return (*(inputs if table else ()), *(() if name is None else (name,))), column_name(y.people)


def choose(
    scores: Scores, y: Any, missing: str, rows: TableRows | None = None, names: Collection[str] = ()
) -> int:
    """The index of a candidate, drawn by the exponential mechanism: the one private step of a selection.

    The scores are public, and checked again here, from their integers, before y is looked at.
    `missing` is as for :func:`measure`, `rows` and `names` as for :class:`Outcomes`.
    """
    noisy_min = noisy_minimum(scores)  # refuses too little noise before y is looked at
    return int(drawn(noisy_min, _exact_scores(scores, y, missing, rows, names)))


def custodian_scores(scores: Scores, y: Any, missing: str, rows: TableRows | None = None) -> IntArray:
    """Every candidate's exact score, for the custodian's own study. Not private."""
    return _exact_scores(scores, y, missing, rows)


def custodian_view(y: Any, n_rows: int) -> checks.FloatArray:
    """y as it is, for pictures that only the custodian may see. Not private."""
    return numeric(kept(y, n_rows)[:])


# The one path: y's integers, a chunk of rows at a time, summed or multiplied with the columns of those rows.


def _compared(y: Any, outcome: Outcome) -> Any:
    """y as what will be compared with classes, unread."""
    if outcome.classes:
        if is_dask(y):
            raise ValueError(STAYS)
        return PrivateLabels(y, outcome.classes)
    if outcome.cells == ANSWERS:
        return as_array(y).map_blocks(answers, meta=np.empty(0)) if is_dask(y) else Answers(y)
    return y


def _times(parts: Sequence[Measurement], y: Outcomes, missing: str) -> list[IntArray]:
    """The exact measurements, once their integers are found to keep the promise."""
    for m in parts:
        m.check()
    checks.choice(missing, "missing", MISSING)
    read, *_ = [y._parsed_for(m) for m in parts]  # of the same rows, every one
    if is_dask(read.source):
        return [_on_cluster(m, read.source, missing) for m in parts]
    sums = zip(parts, _sums(parts, read, missing), strict=True)
    return [np.asarray(m.matrix @ own).T.ravel() for m, own in sums]  # of the first class, then of the next


def _sums(parts: Sequence[Measurement], read: _Read, missing: str) -> list[IntArray]:
    """(U, p) the integers of each statistic, summed over the rows with one column: one pass over y."""
    n = len(read.source)
    labels = [m.labels if read.cells is None else read.cells for m in parts]
    sums = [np.zeros((m.matrix.shape[1], m.statistic.width), dtype=np.int64) for m in parts]
    complete = np.count_nonzero(read.known) == len(read.known)
    known, counted = (np.broadcast_to(each, (n,)) for each in (read.known, read.counted))
    for rows in chunks(n):
        values = np.where(known[rows], numeric(read.source[rows]), np.nan)
        for m, own, total in zip(parts, labels, sums, strict=True):
            integers, usable = integers_of(m.statistic.at(own[rows]), values)
            complete &= np.count_nonzero(usable) == len(usable)  # "and", or all(), would branch on y
            for sum_of, column in zip(total.T, integers.T, strict=True):
                np.add.at(sum_of, own[rows], counted[rows] * column)
    _check_complete(complete, missing, INCOMPLETE if read.cells is None else INCOMPLETE_ROWS)
    return sums


def _on_cluster(m: Measurement, source: Any, missing: str) -> IntArray:
    """Columns times y's integers, row by row and where the rows are, so that no outcome leaves its worker."""
    alone = ((np.bincount(m.labels[rows]) == 1).any() for rows in chunks(m.n_rows))
    if issparse(m.matrix) and any(alone):  # a bin: its sum is that row's outcome
        raise ValueError(STAYS)
    exact, complete = np.zeros((m.statistic.width, m.matrix.shape[0]), dtype=np.int64), True
    for part, whole in sweep(
        partial(_multiplied, m.matrix, m.statistic), m.labels, source, label="measuring"
    ):
        exact += part
        complete &= whole  # "and" would branch on y
    _check_complete(complete, missing)
    return exact.ravel()


def _multiplied(matrix: Any, statistic: Statistic, labels: Labels, y: Any) -> tuple[IntArray, bool]:
    """A chunk of rows: all that leaves a cluster's workers is a sum, and whether no outcome is missing."""
    integers, usable = integers_of(statistic.at(labels), numeric(y))
    exact = np.zeros((integers.shape[1], matrix.shape[0]), dtype=np.int64)
    for rows in steps(len(labels)):
        columns = matrix[:, labels[rows]]
        # Dense ones not by @, which keeps other threads from their work.
        dense = isinstance(columns, np.ndarray)
        own = integers[rows]
        exact += np.einsum("ij,jk->ki", columns, own) if dense else (columns @ own).T
    return exact, np.count_nonzero(usable) == len(usable)


def _check_complete(complete: bool, missing: str, message: str = INCOMPLETE) -> None:
    if missing == "error" and not complete:
        raise ValueError(message)


def _exact_scores(
    scores: Scores, y: Any, missing: str, rows: TableRows | None = None, names: Collection[str] = ()
) -> IntArray:
    """Each candidate's summed loss and public cost, in score steps."""
    scores.check()
    checks.choice(missing, "missing", MISSING)
    check_name(y, names)
    y = own_rows(y, rows)
    if is_dask(y):
        raise ValueError(STAYS)
    integers, usable = integers_of(scores.statistic, numeric(kept(y, scores.n_rows)[:]))
    _check_complete(np.count_nonzero(usable) == len(usable), missing)
    y_int = integers[:, 0]
    own = zip(scores.matrices, scores.offsets, scores.costs, strict=True)
    exact = [(_summed_loss(scores, R, offset, y_int) + cost) >> scores.shift for R, offset, cost in own]
    return np.array(exact, dtype=np.int64)


def _summed_loss(scores: Scores, R: NDArray[np.int32], offset: IntArray, y_int: IntArray) -> int:
    """The clipped losses of one candidate over all folds, exactly."""
    as_float = y_int.astype(np.float64)
    total = 0
    for some in steps(len(R)):
        # Every product and partial sum is an integer below 2^53, as scores.check() made sure, so this
        # is exact whatever the order in which BLAS adds.
        residual = (R[some].astype(np.float64) @ as_float).astype(np.int64) - offset[some]
        clipped = np.minimum(np.abs(residual), scores.clip)
        total += _sum_of_squares(clipped) if scores.loss == "squared" else int(clipped.sum())
    return total


def _sum_of_squares(values: IntArray) -> int:
    """Exact sum of squares of fewer than 2^13 integers in [0, 2^48): by limbs of 24 bits.

    (2^24 h + l)^2 = 2^48 h^2 + 2^25 h l + l^2, and each of the three sums stays below 2^61.
    """
    high, low = values >> 24, values & (2**24 - 1)
    return (int(high @ high) << 48) + (int(high @ low) << 25) + int(low @ low)
