"""THE PRIVATE ROOM: every function in this library that reads y is in this file.

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

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from cloakgp import checks, testing
from cloakgp.bin_sums import BinSums
from cloakgp.factored import (
    FactoredMeasurement,
    Recipe,
    chunk_digest,
    combined_digest,
    declared_sensitivity,
)
from cloakgp.lattice import HEADROOM, NOISE_REACH, IntArray, Measurement, largest_squared_norm
from cloakgp.parquet import ParquetColumns
from cloakgp.scores import Scores
from cloakgp.streams import is_dask, steps, sweep

MISSING = ("error", "midpoint")


class Lattice(Protocol):
    """The public bounds, and how finely y is rounded within them."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def y_bits(self) -> int: ...


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
        return _add_noise(_streamed(measurement, y, missing), measurement.sigma)
    if _is_elsewhere(y):
        return _add_noise(_matrix_streamed(measurement, y, missing), measurement.sigma)
    y_int = _to_integers(_numeric(y, measurement.n_rows), measurement, missing)
    if measurement.groups is not None:
        y_int = _sums(y_int, measurement.groups.labels, len(measurement.groups.counts))
    return _add_noise(measurement.matrix @ y_int, measurement.sigma)


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
    noisy_min = _noisy_min(scores)  # refuses too little noise before y is looked at
    return int(_drawn(noisy_min, _exact_scores(scores, y, missing)))


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
    integers = _to_integers(_numeric(y, sums.n_rows), sums, missing)
    exact = _sums(integers, sums.labels, sums.n_bins)
    return (_add_laplace if sums.mechanism == "laplace" else _add_noise)(exact, sums.scale)


def custodian_scores(scores: Scores, y: Any, missing: str) -> IntArray:
    """Every candidate's exact score, for the custodian's own study. Not private."""
    scores.check()
    checks.choice(missing, "missing", MISSING)
    return _exact_scores(scores, y, missing)


def _numeric(y: Any, n_rows: int) -> checks.FloatArray:
    """y as float64, or an error that tells nothing of its values."""
    masked = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else False
    try:
        array = np.asarray(y)
    except Exception:  # whatever it says might quote values, so it is not even kept as the cause
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise TypeError(_EXPECTED_NUMBERS)
    if array.shape != (n_rows,):
        raise ValueError(
            f"y must have shape ({n_rows},), one outcome per row of X; got shape {array.shape}. "
            "Nothing was spent."
        )
    with np.errstate(all="ignore"):
        result: checks.FloatArray = np.where(masked, np.nan, array.astype(np.float64))
    return result


class PrivateColumn:
    """One column of a CSV or Parquet file, to be given as y: unread until one of the doors above asks.

    Whatever goes wrong while it is read becomes the one message that :func:`_numeric` has. A ledger's
    refusal comes before that, so a request that does not fit leaves the column unread.
    """

    __slots__ = ("_column", "_path")

    def __init__(self, path: str, column: str) -> None:
        self._path, self._column = path, column

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> checks.FloatArray:
        """The column as float64, NaN where it is missing; called by :func:`_numeric` alone."""
        import pyarrow
        from pyarrow import csv, parquet

        from cloakgp.workflow.formats import csv_options, is_parquet

        numbers = pyarrow.float64()
        if is_parquet(self._path):
            table = parquet.ParquetFile(self._path).read(columns=[self._column])
        else:
            table = csv.read_csv(self._path, **csv_options(self._path, [self._column], numbers))
        values: checks.FloatArray = table.column(self._column).cast(numbers, safe=False).to_numpy()
        return values

    @property
    def is_parquet(self) -> bool:
        from cloakgp.workflow.formats import is_parquet

        return is_parquet(self._path)

    def __repr__(self) -> str:
        return "<PrivateColumn, unread>"


class _ParquetRows:
    """A column of a Parquet file in slices; whatever goes wrong becomes the one message."""

    def __init__(self, column: PrivateColumn | ParquetColumns) -> None:
        self._rows: ParquetColumns = (
            _quietly(lambda: ParquetColumns(column._path, [column._column]))
            if isinstance(column, PrivateColumn)
            else column
        )
        shape = self._rows.shape
        self.shape = shape if shape[1] > 1 else shape[:1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        return _quietly(lambda: self._rows[rows][:, 0])


def _quietly(read: Callable[[], Any]) -> Any:
    """What is read, or an error that tells nothing of it."""
    try:
        result = read()
    except Exception:  # whatever it says might quote values
        result = None
    if result is None:
        raise TypeError(_EXPECTED_NUMBERS)
    return result


def private_dask_column(path: str, column: str) -> Any:
    """A column of Parquet files as a Dask array, to be given as y: read by the workers, unread until then."""
    import dask.array

    sizes = tuple(np.diff(ParquetColumns(path, [column]).ends, prepend=0).tolist())  # from metadata
    return dask.array.map_blocks(
        _private_block,
        path,
        column,
        chunks=(sizes,),
        dtype=np.float64,
        meta=np.empty(0),
        name=f"private-{uuid4().hex}",  # for a known name, a cluster would give what it remembers
    )


def _private_block(path: str, column: str, block_id: tuple[int, ...] = (0,)) -> Any:
    """On a worker: one row group."""
    try:
        return ParquetColumns(path, [column]).load(block_id[0])[:, 0]
    except Exception:  # whatever it says might quote values, and a worker would log it
        return np.array([None])  # which is refused by the one message


_EXPECTED_NUMBERS = (
    "y must be a vector of real numbers (dtype bool, int or float). Convert it first, for example "
    "with y.astype(float), writing missing values as NaN. Nothing was spent."
)


_INCOMPLETE = (
    "y must be finite; it has missing or infinite entries. Do not drop rows because of their y: that would "
    "leak. Use missing='midpoint', which protects missingness too. Nothing was spent."
)


def _to_integers(y: checks.FloatArray, lattice: Lattice, missing: str) -> IntArray:
    """y clipped to the bounds and rounded to integers in [0, 2^y_bits]."""
    finite = np.isfinite(y)
    if missing == "error" and np.count_nonzero(finite) < len(y):
        raise ValueError(_INCOMPLETE)
    top = 2**lattice.y_bits
    lower, upper = lattice.lower, lattice.upper
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        clipped = np.clip(np.where(finite, y, lower), lower, upper)
        rounded = np.rint((clipped - lower) / (upper - lower) * top).astype(np.int64)
    integers: IntArray = np.where(finite, np.clip(rounded, 0, top), top // 2)
    return integers


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
    if inputs.groups is None or _is_elsewhere(y):
        inputs, source = inputs.by_row(), _source(y, m.n_rows)
    else:
        y_int = _to_integers(_numeric(y, m.n_rows), m, missing)
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
        raise ValueError(_INCOMPLETE)
    return exact


def _part(recipe: Recipe, scale: _Scale | None, X: Any, noise: Any, counts: Any, y: Any) -> _Part:
    """One chunk of :func:`_streamed`. Without a scale, y holds integers already: sums over groups."""
    y_int, complete = y, True
    if scale is not None:
        values = _numeric(y, len(X))
        complete = np.count_nonzero(np.isfinite(values)) == len(values)  # all() would stop at the first
        y_int = _to_integers(values, scale, "midpoint")
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
    for part, whole in sweep(function, labels, _source(y, m.n_rows), label="measuring"):
        exact += part
        complete &= whole
    if missing == "error" and not complete:
        raise ValueError(_INCOMPLETE)
    return exact


def _matrix_part(matrix: IntArray, scale: _Scale, labels: Any, y: Any) -> tuple[IntArray, bool]:
    """One chunk of :func:`_matrix_streamed`, and whether no outcome of it is missing."""
    values = _numeric(y, len(labels))
    y_int = _to_integers(values, scale, "midpoint")
    exact = np.zeros(len(matrix), dtype=np.int64)
    for rows in steps(len(labels)):
        exact += matrix[:, labels[rows]] @ y_int[rows]
    return exact, np.count_nonzero(np.isfinite(values)) == len(values)


def _is_elsewhere(y: Any) -> bool:
    """Whether y is not in memory: what is computed from it is then computed where it is, chunk by chunk."""
    if isinstance(y, PrivateColumn):
        return y.is_parquet
    return is_dask(y) or isinstance(y, (np.memmap, ParquetColumns))


def _source(y: Any, n_rows: int) -> Any:
    """y in a form that gives slices of rows: as it is if it is kept elsewhere, else as numbers."""
    if not _is_elsewhere(y):
        return _numeric(y, n_rows)
    if is_dask(y):
        from cloakgp.dask_runner import as_array

        y = as_array(y)
    elif not isinstance(y, np.memmap):
        y = _ParquetRows(y)
    if tuple(y.shape) != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), one outcome per row of X. Nothing was spent.")
    return y


def _add_noise(exact: IntArray, sigma: int) -> IntArray:
    """exact + discrete Gaussian noise with std `sigma`."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return exact + np.rint(insecure.normal(size=exact.shape) * sigma).astype(np.int64)
    from opendp import measurements, metrics

    gaussian = measurements.make_gaussian(_integers(), metrics.l2_distance(T="i64"), scale=float(sigma))
    return np.asarray(_drawn(gaussian, exact), dtype=np.int64)


def _add_laplace(exact: IntArray, scale: int) -> IntArray:
    """exact + discrete Laplace noise of this scale."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return exact + np.rint(insecure.laplace(size=exact.shape) * scale).astype(np.int64)
    from opendp import measurements, metrics

    laplace = measurements.make_laplace(_integers(), metrics.l1_distance(T="i64"), scale=float(scale))
    return np.asarray(_drawn(laplace, exact), dtype=np.int64)


def _integers() -> Any:
    """OpenDP's space of integer vectors."""
    from opendp import domains, mod

    mod.enable_features("contrib")
    return domains.vector_domain(domains.atom_domain(T="i64"))


def _drawn(mechanism: Callable[[IntArray], Any], exact: IntArray) -> Any:
    """What a mechanism makes of exact values; if it fails, nothing of them."""
    try:
        answer = mechanism(exact)
    except Exception:  # OpenDP's message might hold the exact values
        answer = None
    if answer is None:
        raise RuntimeError("OpenDP failed to add noise; nothing was released.")
    return answer


def _noisy_min(scores: Scores) -> Callable[[IntArray], Any]:
    """Index of the smallest score after Gumbel noise: the exponential mechanism with these losses."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        return lambda exact: np.argmin(exact - insecure.gumbel(size=len(exact)) * scores.scale)
    from opendp import measurements, measures, metrics

    # With this divergence OpenDP draws Gumbel noise, and says what it costs; with max_divergence it would
    # permute and flip, whose rho is larger.
    mechanism: Any = measurements.make_noisy_max(
        _integers(),
        metrics.linf_distance(T="i64"),
        measures.zero_concentrated_divergence(),
        scale=scores.scale,
        negate=True,
    )
    # An exponential mechanism at epsilon has rho = epsilon^2 / 8. "not <=": it must fail for NaN too.
    if not mechanism.map(scores.sensitivity) <= scores.epsilon**2 / 8 * (1 + 1e-9):
        raise AssertionError("noise is too small for epsilon")
    return mechanism  # type: ignore[no-any-return]


def _exact_scores(scores: Scores, y: Any, missing: str) -> IntArray:
    """Each candidate's summed loss and public cost, in score steps."""
    y_int = _to_integers(_numeric(y, scores.n_rows), scores, missing)
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
    return _numeric(y, n_rows)
