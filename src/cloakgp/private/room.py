"""THE PRIVATE ROOM: the one path that y takes. ``__all__`` below lists the doors that others may use.

y comes in through one of two doors. For a release, :func:`measure` takes it together with a public
integer measurement: it is clipped to the public bounds, made integer, multiplied by the public integer
matrix, and noise from OpenDP is added. Only the noisy integers leave. Where inputs are private, too, X and
ids come in with y, and all rules for y hold for them. For a selection, :func:`choose` takes y together with
public integer scores: the clipped losses of each candidate are summed, in integers, and OpenDP's noisy
maximum picks one. Only its index leaves.

Why that is private (``docs/proofs.md``, theorems 1, 17, 20, 21, lemmas 11, 22, 23): ``y_int`` is in [0, 2^b]
whatever y is, so one row moves ``matrix @ y_int`` by at most 2^b times the largest column norm (of several
classes, up to twice that), and each score by at most the declared sensitivity, in exact integers; noise
is scaled to that, and all else sees what is noisy.

What else could leak, and why it does not: the work done does not depend on y's values (no branch,
no early exit, no warning); errors say what was expected, never what was there. The one thing an
error tells is whether y is usable at all (right shape, a numeric type, nothing missing), and it
tells it to the caller, who holds y, before any noise is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cloakgp import checks
from cloakgp.measurements.bin_sums import BinSums
from cloakgp.measurements.columns import Columns, Seen, Stored
from cloakgp.measurements.lattice import IntArray, Lattice, Measurement
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.measurements.scores import Scores
from cloakgp.measurements.whole_rows import Counts, RowSums
from cloakgp.private.noise import add_laplace, add_noise, drawn, noisy_minimum
from cloakgp.private.outcomes import (
    INCOMPLETE,
    Answers,
    PrivateColumn,
    PrivateLabels,
    answers,
    check_name,
    column_name,
    kept,
    numeric,
    own_rows,
    to_integers,
)
from cloakgp.private.rows import INCOMPLETE_ROWS, PrivateRows, rows_of
from cloakgp.rows.chunks import chunks, is_dask
from cloakgp.rows.inputs import TableRows
from cloakgp.rows.merging import Inputs, Labels
from cloakgp.rows.on_dask import as_array, private_dask_column
from cloakgp.rows.passes import sweep

__all__ = [
    "PrivateColumn",
    "PrivateLabels",
    "PrivateRows",
    "check_usable",
    "choose",
    "column_names",
    "custodian_scores",
    "custodian_view",
    "measure",
    "measure_sums",
    "private_dask_column",
]

MISSING = ("error", "midpoint")
STAYS = (
    "y is a Dask array, and this needs single outcomes here: a selection compares rows, labels are compared "
    "with classes, and where a chunk of rows has one in a bin, its sum is that outcome. They are not fetched "
    "from a cluster unasked. Give y.compute() if they may leave it. Nothing was spent."
)


def measure(
    measurement: Measurement | FactoredMeasurement,
    y: Any,
    missing: str,
    rows: TableRows | None = None,
    classes: tuple[Any, ...] | str = (),
    names: Collection[str] = (),
) -> IntArray:
    """The noisy measurements of y, or of whole rows: the one private step.

    Parameters
    ----------
    measurement : Measurement or FactoredMeasurement
        Public. Checked again here, from its integers, before y is looked at; or, if it is a recipe,
        before noise is drawn.
    y : (N,) real numbers
        Private. A list, an array, a Series, a memory map, a column of a file (:class:`PrivateColumn`,
        ``ParquetColumns``) or a Dask array, whose rows stay on its cluster. Clipped to the bounds. For
        ``RowSums``, :class:`PrivateRows`: inputs and ids are private, too.
    missing : {"error", "midpoint"}
        What to do about NaN and infinities: refuse, or put the middle of the bounds in their place,
        row by row, so that being missing is as well protected as any value. A row with a missing input
        counts in one fixed public cell, with its outcome in the middle.
    rows : TableRows, optional
        Public: which rows of y count, and their labels, if they have some. Others are refused.
    classes : tuple or "yes/no"
        Public: if given, y is not numbers, but each one of these; what is none of them is missing. Of two, y
        is the second or not. Of more, what is missing counts for none of them; in whole rows, for all alike.
        For yes/no, y is 1 and 0; what is neither is missing.
    names : collection of str
        Public: what inputs are called, as far as they have names. A y that is called so is refused.
    """
    return add_noise(_times(measurement, y, missing, rows, classes, names), measurement.sigma)


def check_usable(
    measurement: Measurement | FactoredMeasurement,
    y: Any,
    missing: str,
    rows: TableRows | None = None,
    classes: tuple[Any, ...] | str = (),
    names: Collection[str] = (),
) -> None:
    """Raise as :func:`measure` would if y cannot be measured; nothing of it leaves."""
    _times(measurement, y, missing, rows, classes, names)


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

    The scores are public, and checked again here, from their integers, before y is looked at. y,
    `missing`, `rows` and `names` are as for :func:`measure`.
    """
    noisy_min = noisy_minimum(scores)  # refuses too little noise before y is looked at
    return int(drawn(noisy_min, _exact_scores(scores, y, missing, rows, names)))


def measure_sums(sums: BinSums, y: Any, missing: str, names: Collection[str] = ()) -> IntArray:
    """The noisy sums of y over bins: the one private step of binning.

    The sums are public, and checked again here before y is looked at. y, `missing` and
    `names` are as for :func:`measure`.
    """
    alone = ((np.bincount(sums.labels[rows]) == 1).any() for rows in chunks(sums.n_rows))
    if is_dask(y) and any(alone):
        raise ValueError(STAYS)
    exact = _times(sums, y, missing, names=names)
    return (add_laplace if sums.mechanism == "laplace" else add_noise)(exact, sums.scale)


def custodian_scores(scores: Scores, y: Any, missing: str, rows: TableRows | None = None) -> IntArray:
    """Every candidate's exact score, for the custodian's own study. Not private."""
    return _exact_scores(scores, y, missing, rows)


def custodian_view(y: Any, n_rows: int) -> checks.FloatArray:
    """y as it is, for pictures that only the custodian may see. Not private."""
    return numeric(kept(y, n_rows)[:])


# The one path: y's integers, a chunk of rows at a time, summed or multiplied with the columns of those rows.


class _Part(NamedTuple):
    """What a chunk of rows gives: all that leaves a cluster's workers."""

    exact: IntArray  # (q,)
    complete: bool  # whether no outcome is missing
    seen: Seen  # public


def _integers(y: Any, lattice: Lattice) -> tuple[IntArray, bool]:
    """A chunk of y in integers, and whether none of it is missing."""
    values = numeric(y)
    complete = np.count_nonzero(np.isfinite(values)) == len(values)  # all() would stop at the first
    return to_integers(values, lattice), complete


def _part(
    columns: Columns, lattice: Lattice | None, X: Any, noise: Any, counts: Any, windows: Any, y: Any
) -> _Part:
    """A chunk's columns times its integers. Without a lattice y holds integers already: sums over groups."""
    y_int, complete = (y, True) if lattice is None else _integers(y, lattice.at(X, windows))
    exact, seen = np.zeros(columns.n_measurements, dtype=np.int64), Seen()
    for rows, made in columns.over(X, noise, counts, windows, seen):
        # Dense ones not by @, which keeps other threads from their work.
        dense = isinstance(made, np.ndarray)
        exact += np.einsum("ij,j->i", made, y_int[rows]) if dense else made @ y_int[rows]
    return _Part(exact, complete, seen)


def _swept(
    columns: Columns, lattice: Lattice | None, inputs: Inputs, y: Any, missing: str
) -> tuple[IntArray, list[Seen]]:
    """The sum of every row's column times its integer, exactly; and what the columns were like.

    Where y is on a cluster the products are formed there, row by row.
    """
    exact, complete, seen = np.zeros(columns.n_measurements, dtype=np.int64), True, []
    X, noise, counts, windows = inputs.X, inputs.noise, inputs.group_counts, inputs.windows
    for part in sweep(partial(_part, columns, lattice), X, noise, counts, windows, y, label="measuring"):
        exact += part.exact
        complete &= part.complete  # "and" would branch on y
        seen.append(part.seen)
    _check_complete(complete, missing)
    return exact, seen


def _sums(y: Any, lattice: Lattice, labels: Labels, n_groups: int, missing: str) -> IntArray:
    """The integers of y summed over the rows with one label.

    Not for y on a cluster: the sum over a group of one is that row's y, which stays there.
    """
    sums, complete = np.zeros(n_groups, dtype=np.int64), True
    for rows in chunks(len(y)):
        y_int, whole = _integers(y[rows], lattice.at(labels[rows]))
        np.add.at(sums, labels[rows], y_int)
        complete &= whole
    _check_complete(complete, missing)
    return sums


def _check_complete(complete: bool, missing: str, message: str = INCOMPLETE) -> None:
    if missing == "error" and not complete:
        raise ValueError(message)


def _times(
    m: Measurement | FactoredMeasurement | BinSums,
    y: Any,
    missing: str,
    rows: TableRows | None = None,
    classes: tuple[Any, ...] | str = (),
    names: Collection[str] = (),
) -> IntArray:
    """The exact measurements, once their integers are found to keep the promise."""
    m.check()
    checks.choice(missing, "missing", MISSING)
    check_name(y.y if isinstance(m, RowSums) else y, names)
    if classes and isinstance(m, RowSums):
        y = PrivateRows(y.X, _compared(y.y, classes), y.people)
    elif classes:
        y = _compared(y, classes)
    y = own_rows(y, rows)
    if isinstance(m, FactoredMeasurement):
        return _times_recipe(m, y, missing)
    if isinstance(m, RowSums):
        return _times_rows(m, y, missing)
    if isinstance(m, Measurement) and m.classes > 1:
        return _times_classes(m, y, missing)
    return _times_matrix(m, y, missing)


def _compared(y: Any, classes: tuple[Any, ...] | str) -> Any:
    """y as what will be compared with classes, unread."""
    if isinstance(classes, str):
        return as_array(y).map_blocks(answers, meta=np.empty(0)) if is_dask(y) else Answers(y)
    if is_dask(y):
        raise ValueError(STAYS)
    return PrivateLabels(y, classes)


def _times_matrix(m: Measurement | BinSums, y: Any, missing: str) -> IntArray:
    """Columns that are written down times y's integers."""
    source, matrix = kept(y, m.n_rows), m.matrix
    if is_dask(source):
        return _swept(Stored(matrix), m.lattice, Inputs(m.labels, 0.0, None), source, missing)[0]
    return np.asarray(matrix @ _sums(source, m.lattice, m.labels, matrix.shape[1], missing))


def _times_classes(m: Measurement, y: Any, missing: str) -> IntArray:
    """Columns times one-hot integers: 2^y_bits for the class whose number y is, 0 for all others.

    What is no class's number is missing: 0 for all (lemma 22).
    """
    source: Any = kept(y, m.n_rows)
    sums, complete = np.zeros((m.matrix.shape[1], m.classes), dtype=np.int64), True
    for rows in chunks(m.n_rows):
        one_hot = _one_hot(m, numeric(source[rows]))
        np.add.at(sums, m.labels[rows], one_hot)
        complete &= np.count_nonzero(one_hot) == len(one_hot)
    _check_complete(complete, missing)
    return np.asarray(m.matrix @ sums).T.ravel()  # of the first class, then of the next


def _one_hot(m: Measurement, values: Any) -> IntArray:
    return np.asarray(np.equal.outer(values, np.arange(m.classes)).astype(np.int64) << m.y_bits)


def _times_rows(m: RowSums, table: Any, missing: str) -> IntArray:
    """Each row's cell's column, times its outcome's integers or 1, summed exactly."""
    (cells, known, counted, source), shape = rows_of(m, table), (m.matrix.shape[1], m.classes)
    sums, complete = np.zeros(shape, dtype=np.int64), np.count_nonzero(known) == len(known)
    for rows in chunks(len(cells)):
        values = numeric(source[rows])
        complete &= np.count_nonzero(np.isfinite(values)) == len(values)
        values = np.where(known[rows], values, np.nan)
        if m.classes == 1:
            y_int = to_integers(values, m.lattice.at(cells[rows]))[:, None]
        else:  # one-hot, less what makes them add up to about 0; all 0 if missing: lemma 23
            one_hot = _one_hot(m, values)
            y_int = one_hot - m.share * (one_hot > 0).sum(axis=1, keepdims=True)
        np.add.at(sums, cells[rows], counted[rows, None] * (1 if isinstance(m, Counts) else y_int))
    _check_complete(complete, missing, INCOMPLETE_ROWS)
    return np.asarray(m.matrix @ sums).T.ravel()


def _times_recipe(m: FactoredMeasurement, y: Any, missing: str) -> IntArray:
    """Columns that are made anew, by the recipe that the plan looked at, times y's integers.

    That they are no longer than the plan says, and that no sum of them can wrap, is seen on the very integers
    that y is multiplied with. Where rows were merged, a column is made for each distinct row only.
    """
    inputs = m.inputs
    if inputs is None:
        raise ValueError("X is not in the file that this plan is from; plan again. Nothing was spent.")
    source: Any = kept(y, m.n_rows)
    lattice: Lattice | None = m.lattice
    if inputs.groups is None or is_dask(source):
        inputs = inputs.by_row()
    else:
        source, lattice = _sums(source, m.lattice, inputs.groups.labels, len(inputs), missing), None
    exact, seen = _swept(m.recipe, lattice, inputs, source, missing)
    m.confirm(seen, inputs)
    return exact


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
    y_int = _sums(kept(y, scores.n_rows), scores.lattice, np.arange(scores.n_rows), scores.n_rows, missing)
    totals = [_summed_loss(scores, candidate, y_int) for candidate in range(len(scores.matrices))]
    exact = [(total + cost) >> scores.shift for total, cost in zip(totals, scores.costs, strict=True)]
    return np.array(exact, dtype=np.int64)


def _summed_loss(scores: Scores, candidate: int, y_int: IntArray) -> int:
    """The clipped losses of one candidate over all folds, exactly."""
    as_float = y_int.astype(np.float64)
    total = 0
    for fold, (train, test) in enumerate(scores.folds):
        # Every product and partial sum is an integer below 2^53, as scores.check() made sure, so this
        # is exact whatever the order in which BLAS adds.
        matrix = scores.matrices[candidate][fold].astype(np.float64)
        predicted = (matrix @ as_float[train]).astype(np.int64)
        residual = y_int[test] * 2**scores.matrix_bits - predicted - scores.offsets[candidate][fold]
        clipped = np.minimum(np.abs(residual), scores.clip)
        total += _sum_of_squares(clipped) if scores.loss == "squared" else int(clipped.sum())
    return total


def _sum_of_squares(values: IntArray) -> int:
    """Exact sum of squares of fewer than 2^13 integers in [0, 2^48): by limbs of 24 bits.

    (2^24 h + l)^2 = 2^48 h^2 + 2^25 h l + l^2, and each of the three sums stays below 2^61.
    """
    high, low = values >> 24, values & (2**24 - 1)
    return (int(high @ high) << 48) + (int(high @ low) << 25) + int(low @ low)
