"""THE PRIVATE ROOM: every function in this library that reads y is in this file.

y comes in through :func:`measure`, together with a public integer measurement. It is clipped to
the public bounds, made integer, multiplied by the public integer matrix, and noise from OpenDP is
added. Only the noisy integers leave.

Why that is private (``docs/proofs.md``, theorem 1): ``y_int`` lies in [0, 2^b] whatever y is, so
replacing one row moves ``matrix @ y_int`` by at most 2^b times the largest column norm, exactly,
in integers; the discrete Gaussian is scaled to that number; everything later sees only the sum.

What else could leak, and why it does not: the work done does not depend on y's values (no branch,
no early exit, no warning); errors say what was expected, never what was there. The one thing an
error tells is whether y is usable at all (right shape, a numeric type, nothing missing), and it
tells it to the caller, who holds y, before any noise is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp import checks, testing
from cloakgp.lattice import IntArray, Measurement

MISSING = ("error", "midpoint")


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


_EXPECTED_NUMBERS = (
    "y must be a vector of real numbers (dtype bool, int or float). Convert it first, for example "
    "with y.astype(float), writing missing values as NaN. Nothing was spent."
)


def _to_integers(y: checks.FloatArray, measurement: Measurement, missing: str) -> IntArray:
    """y clipped to the bounds and rounded to integers in [0, 2^y_bits]."""
    finite = np.isfinite(y)
    if missing == "error" and np.count_nonzero(finite) < len(y):
        raise ValueError(
            "y must be finite; it has missing or infinite entries. Do not drop rows because of their "
            "y: that would leak. Use missing='midpoint', which protects missingness too. "
            "Nothing was spent."
        )
    top = 2**measurement.y_bits
    lower, upper = measurement.lower, measurement.upper
    with np.errstate(all="ignore"):  # tiny numbers may underflow: no warning may tell
        clipped = np.clip(np.where(finite, y, lower), lower, upper)
        rounded = np.rint((clipped - lower) / (upper - lower) * top).astype(np.int64)
    integers: IntArray = np.where(finite, np.clip(rounded, 0, top), top // 2)
    return integers


def _add_noise(exact: IntArray, sigma: int) -> IntArray:
    """exact + discrete Gaussian noise with std `sigma`."""
    insecure = testing.insecure_generator()
    if insecure is not None:
        noise: IntArray = np.rint(insecure.normal(size=exact.shape) * sigma).astype(np.int64)
        return exact + noise
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T="i64"))
    gaussian = measurements.make_gaussian(space, metrics.l2_distance(T="i64"), scale=float(sigma))
    try:
        noisy = gaussian(exact)
    except Exception:  # OpenDP's message might hold the exact values
        noisy = None
    if noisy is None:
        raise RuntimeError("OpenDP failed to add noise; nothing was released.")
    return np.asarray(noisy, dtype=np.int64)


def custodian_view(y: Any, n_rows: int) -> checks.FloatArray:
    """y as it is, for pictures that only the custodian may see. Not private."""
    return _numeric(y, n_rows)
