"""THE PRIVATE ROOM: the one path that y takes. ``__all__`` below lists the doors that others may use.

y comes in through one of two doors. For a release, :func:`measure` takes it together with a public
integer measurement: it is clipped to the public bounds, made integer, multiplied by the public integer
matrix, and noise from OpenDP is added. Only the noisy integers leave. For a selection, :func:`choose`
takes it together with public integer scores: the clipped losses of each candidate are summed, in
integers, and OpenDP's noisy maximum picks one. Only its index leaves.

Why that is private (``docs/proofs.md``, theorem 1 and lemma 11): ``y_int`` lies in [0, 2^b] whatever y
is, so replacing one row moves ``matrix @ y_int`` by at most 2^b times the largest column norm, and each
score by at most the declared sensitivity, exactly, in integers; the noise is scaled to that number;
everything later sees only the noisy sum or the index.

What else could leak, and why it does not: the work done does not depend on y's values (no branch,
no early exit, no warning); errors say what was expected, never what was there. The one thing an
error tells is whether y is usable at all (right shape, a numeric type, nothing missing), and it
tells it to the caller, who holds y, before any noise is drawn.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp import checks
from cloakgp.measurements.bin_sums import BinSums
from cloakgp.measurements.lattice import HEADROOM, NOISE_REACH, IntArray, Measurement, largest_squared_norm
from cloakgp.measurements.recipes import (
    FactoredMeasurement,
    Recipe,
    chunk_digest,
    combined_digest,
    declared_sensitivity,
)
from cloakgp.measurements.scores import Scores
from cloakgp.private.noise import add_laplace, add_noise, drawn, noisy_minimum
from cloakgp.private.outcomes import (
    INCOMPLETE,
    PrivateColumn,
    is_elsewhere,
    numeric,
    private_dask_column,
    sliced,
    to_integers,
)
from cloakgp.rows.chunks import steps
from cloakgp.rows.passes import sweep

__all__ = [
    "PrivateColumn",
    "choose",
    "custodian_scores",
    "custodian_view",
    "measure",
    "measure_sums",
    "private_dask_column",
]

MISSING = ("error", "midpoint")


def measure(measurement: Measurement | FactoredMeasurement, y: Any, missing: str) -> IntArray:
    """The noisy measurements of y: the one private step.

    Parameters
    ----------
    measurement : Measurement or FactoredMeasurement
        Public. Checked again here, from its integers, before y is looked at; or, if it is a recipe,
        before noise is drawn.
    y : (N,) array of real numbers
        Private. Values outside the bounds are clipped.
    missing : {"error", "midpoint"}
        What to do about NaN and infinities: refuse, or put the middle of the bounds in their place,
        row by row, so that being missing is as well protected as any value.
    """
    measurement.check()
    checks.choice(missing, "missing", MISSING)
    if isinstance(measurement, FactoredMeasurement):
        return add_noise(_streamed(measurement, y, missing), measurement.sigma)
    if is_elsewhere(y):
        return add_noise(_matrix_streamed(measurement, y, missing), measurement.sigma)
    y_int = to_integers(numeric(y, measurement.n_rows), measurement, missing)
    if measurement.groups is not None:
        y_int = _sums(y_int, measurement.groups.labels, len(measurement.groups.counts))
    return add_noise(measurement.matrix @ y_int, measurement.sigma)


def choose(scores: Scores, y: Any, missing: str) -> int:
    """The index of a candidate, drawn by the exponential mechanism: the one private step of a selection.

    Parameters
    ----------
    scores : Scores
        Public. Checked again here, from its integers, before y is looked at.
    y, missing
        As for :func:`measure`.
    """
    scores.check()
    checks.choice(missing, "missing", MISSING)
    noisy_min = noisy_minimum(scores)  # refuses too little noise before y is looked at
    return int(drawn(noisy_min, _exact_scores(scores, y, missing)))


def measure_sums(sums: BinSums, y: Any, missing: str) -> IntArray:
    """The noisy sums of y over bins: the one private step of binning.

    Parameters
    ----------
    sums : BinSums
        Public. Checked again here before y is looked at.
    y, missing
        As for :func:`measure`.
    """
    sums.check()
    checks.choice(missing, "missing", MISSING)
    integers = to_integers(numeric(y, sums.n_rows), sums, missing)
    exact = _sums(integers, sums.labels, sums.n_bins)
    return (add_laplace if sums.mechanism == "laplace" else add_noise)(exact, sums.scale)


def custodian_scores(scores: Scores, y: Any, missing: str) -> IntArray:
    """Every candidate's exact score, for the custodian's own study. Not private."""
    scores.check()
    checks.choice(missing, "missing", MISSING)
    return _exact_scores(scores, y, missing)


def _sums(integers: IntArray, labels: NDArray[np.integer[Any]], n_groups: int) -> IntArray:
    """Sums over the rows with one label."""
    sums = np.zeros(n_groups, dtype=np.int64)
    np.add.at(sums, labels, integers)
    return sums


class _Part(NamedTuple):
    """What one chunk of rows gives."""

    exact: IntArray  # (q,)
    longest: int  # largest sum of squares of a column
    reach: checks.FloatArray  # (q,) sums of the columns' absolute values over all rows of y
    digest: bytes  # of the chunk's inputs
    complete: bool  # whether no outcome is missing


class _Scale(NamedTuple):
    """A lattice on its own, to be sent to where y is."""

    lower: float
    upper: float
    y_bits: int


def _streamed(measurement: FactoredMeasurement, y: Any, missing: str) -> IntArray:
    """columns(X) @ y_int, exactly, a chunk of rows at a time.

    The columns are made anew, by the recipe that the plan looked at. That they are no longer than it says,
    and that no sum of them can wrap, is seen here, on the very integers that y is multiplied with.
    """
    m, inputs = measurement, measurement.inputs
    if inputs is None:
        raise ValueError("X is not in the file that this plan is from; plan again. Nothing was spent.")
    scale: _Scale | None = _Scale(m.lower, m.upper, m.y_bits)
    if inputs.groups is None or is_elsewhere(y):
        inputs, source = inputs.by_row(), sliced(y, m.n_rows)
    else:
        y_int = to_integers(numeric(y, m.n_rows), m, missing)
        source, scale = _sums(y_int, inputs.groups.labels, len(inputs)), None
    function = partial(_part, m.recipe, scale)
    exact, reach = np.zeros(m.n_measurements, dtype=np.int64), np.zeros(m.n_measurements)
    longest, complete, digests = 0, True, []
    for part in sweep(function, inputs.X, inputs.noise, inputs.group_counts, source, label="measuring"):
        exact += part.exact
        reach += part.reach
        longest, complete = max(longest, part.longest), complete & part.complete  # "and" would branch on y
        digests.append(part.digest)
    # Merged rows were copied when the plan was made; others may be anywhere.
    if inputs.groups is m.groups and combined_digest(digests, inputs.groups) != m.digest:
        raise ValueError("X has changed since the plan was made; plan again. Nothing was spent.")
    if declared_sensitivity(longest, m.y_bits) > m.declared:
        raise AssertionError("a column is longer than the noise was made for")
    # "not <" rather than ">=": it must fail for NaN too.
    if not float(reach.max()) * (1 + 1e-6) * 2.0**m.y_bits + NOISE_REACH * m.sigma < HEADROOM:
        raise AssertionError("measurement could overflow 64-bit integers")
    if missing == "error" and not complete:
        raise ValueError(INCOMPLETE)
    return exact


def _part(recipe: Recipe, scale: _Scale | None, X: Any, noise: Any, counts: Any, y: Any) -> _Part:
    """One chunk of :func:`_streamed`. Without a scale, y holds integers already: sums over groups."""
    y_int, complete = y, True
    if scale is not None:
        values = numeric(y, len(X))
        complete = np.count_nonzero(np.isfinite(values)) == len(values)  # all() would stop at the first
        y_int = to_integers(values, scale, "midpoint")
    exact, reach, longest = np.zeros(len(recipe.factors), dtype=np.int64), np.zeros(len(recipe.factors)), 0
    for rows in steps(len(X)):
        S, n = (value if np.ndim(value) == 0 else value[rows] for value in (noise, counts))
        columns = recipe.columns(X[rows], S)
        longest = max(longest, largest_squared_norm(columns))
        reach += np.abs(columns.astype(np.float64)) @ np.broadcast_to(n, (columns.shape[1],))
        exact += columns @ y_int[rows]
    return _Part(exact, longest, reach, chunk_digest(X, noise, counts), complete)


def _matrix_streamed(measurement: Measurement, y: Any, missing: str) -> IntArray:
    """matrix @ y_int, exactly, where y is kept."""
    m = measurement
    labels = np.arange(m.n_rows) if m.groups is None else m.groups.labels
    function = partial(_matrix_part, m.matrix, _Scale(m.lower, m.upper, m.y_bits))
    exact, complete = np.zeros(m.n_measurements, dtype=np.int64), True
    for part, whole in sweep(function, labels, sliced(y, m.n_rows), label="measuring"):
        exact += part
        complete &= whole
    if missing == "error" and not complete:
        raise ValueError(INCOMPLETE)
    return exact


def _matrix_part(matrix: IntArray, scale: _Scale, labels: Any, y: Any) -> tuple[IntArray, bool]:
    """One chunk of :func:`_matrix_streamed`, and whether no outcome of it is missing."""
    values = numeric(y, len(labels))
    y_int = to_integers(values, scale, "midpoint")
    exact = np.zeros(len(matrix), dtype=np.int64)
    for rows in steps(len(labels)):
        exact += matrix[:, labels[rows]] @ y_int[rows]
    return exact, np.count_nonzero(np.isfinite(values)) == len(values)


def _exact_scores(scores: Scores, y: Any, missing: str) -> IntArray:
    """Each candidate's summed loss and public cost, in score steps."""
    y_int = to_integers(numeric(y, scores.n_rows), scores, missing)
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


def custodian_view(y: Any, n_rows: int) -> checks.FloatArray:
    """y as it is, for pictures that only the custodian may see. Not private."""
    return numeric(y, n_rows)
