"""Checks on public arguments: each names the argument, what was expected, and what to do.

Nothing here may be given y. The messages quote what they received, which is only right for
public values; y's own checks live in :mod:`cloakgp.private` and quote nothing.
"""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Collection
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.errors import ArgumentError, ArgumentTypeError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
    remedy: str = "",
) -> float:
    """A finite real number: `above` and `below` are excluded, `least` and `most` are not."""
    limits = {"above": above, "at least": least, "below": below, "at most": most}
    said = [f"{word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit)]
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None or getattr(value, "ndim", 0) > 0:
        raise ArgumentTypeError(name, "must be a number", repr(value), remedy)
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(name, "must be a number", repr(value), remedy) from None
    if not (math.isfinite(result) and above < result < below and least <= result <= most):
        expected = " and ".join(said if len(said) > 1 else ["finite", *said])
        raise ArgumentError(name, f"must be {expected}", repr(value), remedy)
    return result


def positive(value: Any, name: str, remedy: str = "") -> float:
    """A finite number above zero."""
    return number(value, name, above=0.0, remedy=remedy)


def whole(value: Any, name: str, least: float = -math.inf, most: float = math.inf, remedy: str = "") -> int:
    """A whole number from `least` to `most`."""
    until = " on" if most == math.inf else f" to {most:,}"
    expected = "must be a whole number" + ("" if least == -math.inf else f" from {least:,}{until}")
    if isinstance(value, bool) or not isinstance(value, Integral):  # numpy's are registered as such
        raise ArgumentTypeError(name, expected, f"{value!r:.100}", remedy)
    if not least <= int(value) <= most:
        raise ArgumentError(name, expected, f"{value!r:.100}", remedy)
    return int(value)


def choice(value: Any, name: str, options: Collection[str]) -> str:
    """One of a closed set of words."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ArgumentError(name, f"must be one of {listed}", repr(value))
    return value


LONGEST_NAME = 200
"""Characters that a name may have which a release file keeps."""


def is_printable(value: Any, longest: int = LONGEST_NAME, blank: bool = False) -> bool:
    """Whether it is printable text, not longer than this; of more than spaces, unless it may be blank."""
    fine = isinstance(value, str) and len(value) <= longest and value.isprintable()
    return fine and (blank or bool(value.strip()))


def text(value: Any, name: str, longest: int = 1000) -> str:
    """Some printable words, not longer than this, in Unicode's composed form."""
    if not is_printable(value, longest):
        raise ArgumentError(name, f"must be printable text of 1 to {longest} characters", f"{value!r:.100}")
    if value != value.strip() or not unicodedata.is_normalized("NFC", value):
        raise ArgumentError(name, "must not begin or end with a space, and be in Unicode's form NFC")
    return str(value)


def path(value: Any, name: str = "path") -> Path:
    """The name of a file. A number would be a file that this process has open, such as its output."""
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentTypeError(name, "must be the name of a file", type(value).__name__)
    return Path(os.fspath(value))


def vector(
    value: Any, name: str, length: int | None = None, *, positive: bool = False, remedy: str = ""
) -> FloatArray:
    """A finite float64 vector, read-only, with `length` entries if that is given."""
    array = _numeric(value, name)
    if array.ndim != 1 or (length is not None and array.shape[0] != length):
        wanted = "one-dimensional" if length is None else f"of shape ({length},)"
        raise ArgumentError(name, f"must be {wanted}", f"shape {array.shape}", remedy)
    _finite(array, name)
    if positive and not (array > 0).all():
        raise ArgumentError(name, "must be above 0 everywhere", "an entry that is not", remedy)
    return frozen(array)


def matrix(value: Any, name: str, columns: int | None = None) -> FloatArray:
    """A finite float64 matrix, read-only, with at least one row; a vector is one column."""
    array = _numeric(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or 0 in array.shape:
        raise ArgumentError(
            name,
            "must be a matrix with at least one row and one column (rows are inputs)",
            f"shape {np.shape(value)}",
        )
    if columns is not None and array.shape[1] != columns:
        raise ArgumentError(
            name,
            f"must have {columns} column(s), as X has",
            str(array.shape[1]),
            "Give both the same input columns in the same order.",
        )
    _finite(array, name)
    return frozen(array)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A contiguous read-only copy: what a plan promised cannot be edited afterwards."""
    copy = np.array(array, order="C", copy=True)
    copy.setflags(write=False)
    return copy


def _numeric(value: Any, name: str) -> FloatArray:
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(name, "must not be a masked array; fill or remove masked entries first")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # ragged nested lists
        raise ArgumentError(name, "must be an array of numbers with equal rows") from None
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(
            name,
            "must hold real numbers",
            f"dtype {array.dtype}",
            "Encode categories, dates and missing values as numbers first.",
        )
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, and is refused as such
        return array.astype(np.float64)


def _finite(array: FloatArray, name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        place = ", ".join(str(i) for i in np.argwhere(bad)[0])
        raise ArgumentError(
            name,
            f"must be finite; there is a NaN or infinity at index ({place})",
            remedy="Remove or fill such entries, using public information only.",
        )
