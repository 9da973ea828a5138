"""Where X comes from: an array, or something larger that gives slices of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.chunks import is_dask
from cloakgp.data.passes import as_rows, sweep

_COPIED = 2**28  # bytes up to which an array is copied, so that it cannot be changed behind a plan's back


def as_source(X: Any, name: str, columns: int | None = None) -> Any:
    """X, checked: a frozen array, or itself if it is large or kept elsewhere.

    A memory map, an array too large to copy, a Dask array and columns of a Parquet file are left where
    they are. A plan that puts them into cells remembers their digest, and refuses them once they have
    changed; any other takes a copy.
    """
    if not is_lazy(X):
        return checks.matrix(X, name, columns)
    if is_dask(X):
        X = as_rows(X, name)
    elif isinstance(X, np.ndarray) and X.ndim == 1:
        X = X[:, None]
    shape = tuple(X.shape)
    if len(shape) != 2 or 0 in shape or columns not in (None, shape[1]):
        wanted = "at least one row and one column" if columns is None else f"{columns} column(s), as X has"
        raise ArgumentError(name, f"must be a matrix with {wanted}", f"shape {shape}")
    if X.dtype != np.float64:
        raise ArgumentTypeError(
            name,
            "must hold float64 numbers where it is left in its file",
            f"dtype {X.dtype}",
            "Write it as float64, or give np.asarray(X), if that fits into memory.",
        )
    if not all(sweep(_finite, X, label="reading X")):
        raise ArgumentError(
            name,
            "must be finite; there is a NaN or infinity in it",
            remedy="Remove or fill such entries, using public information only.",
        )
    return X


def is_lazy(X: Any) -> bool:
    """Whether X is to be left where it is."""
    if isinstance(X, np.ndarray):
        return isinstance(X, np.memmap) or (X.nbytes > _COPIED and X.dtype == np.float64)
    return is_dask(X) or getattr(X, "streamed", False) is True


def _finite(X: Any) -> bool:
    return bool(np.isfinite(X).all())
