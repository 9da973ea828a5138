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
from typing import Any, Protocol

import numpy as np

from cloakgp import checks, testing
from cloakgp.bin_sums import BinSums
from cloakgp.lattice import IntArray, Measurement
from cloakgp.scores import Scores

MISSING = ("error", "midpoint")


class Lattice(Protocol):
    """The public bounds, and how finely y is rounded within them."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...
    @property
    def y_bits(self) -> int: ...


def measure(measurement: Measurement, y: Any, missing: str) -> IntArray:
    """The noisy measurements of y: the one private step.

    Parameters
    ----------
    measurement : Measurement
        Public. Checked again here, from its integers, before y is looked at.
    y : (N,) array of real numbers
        Private. Values outside the bounds are clipped.
    missing : {"error", "midpoint"}
        What to do about NaN and infinities: refuse, or put the middle of the bounds in their place,
        row by row, so that being missing is as well protected as any value.
    """
    measurement.check()
    checks.choice(missing, "missing", MISSING)
    exact = measurement.matrix @ _to_integers(_numeric(y, measurement.n_rows), measurement, missing)
    return _add_noise(exact, measurement.sigma)


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
    exact = np.zeros(sums.n_bins, dtype=np.int64)
    np.add.at(exact, sums.labels, integers)
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

    def __repr__(self) -> str:
        return "<PrivateColumn, unread>"


_EXPECTED_NUMBERS = (
    "y must be a vector of real numbers (dtype bool, int or float). Convert it first, for example "
    "with y.astype(float), writing missing values as NaN. Nothing was spent."
)


def _to_integers(y: checks.FloatArray, lattice: Lattice, missing: str) -> IntArray:
    """y clipped to the bounds and rounded to integers in [0, 2^y_bits]."""
    finite = np.isfinite(y)
    if missing == "error" and np.count_nonzero(finite) < len(y):
        raise ValueError(
            "y must be finite; it has missing or infinite entries. Do not drop rows because of their "
            "y: that would leak. Use missing='midpoint', which protects missingness too. "
            "Nothing was spent."
        )
    top = 2**lattice.y_bits
    lower, upper = lattice.lower, lattice.upper
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        clipped = np.clip(np.where(finite, y, lower), lower, upper)
        rounded = np.rint((clipped - lower) / (upper - lower) * top).astype(np.int64)
    integers: IntArray = np.where(finite, np.clip(rounded, 0, top), top // 2)
    return integers


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
