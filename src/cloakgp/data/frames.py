"""Reading tables: pandas, polars, pyarrow and others, through narwhals; and mappings of names to columns.

Only public tables are read here: inputs and ids. What a column holds is told by its cells alone, as numbers,
moments or objects; what they mean is for :mod:`cloakgp.data.columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.data.chunks import is_dask
from cloakgp.data.people import is_missing
from cloakgp.data.sources import is_lazy

Level = str | int | bool
"""Of a category."""


class Cells(NamedTuple):
    """A column as it was read: numbers, moments (datetime64), or objects, None where it is missing."""

    values: NDArray[Any]
    levels: tuple[Level, ...] | None = None
    """Of a category that knows its levels."""


class Table(dict[str, Cells]):
    """A table that was read: cells by name."""


def read(X: Any) -> Table | None:
    """A table's columns; None if it is none, or if its columns have no names."""
    if isinstance(X, Table):
        return X
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # which some sparse arrays have
        return Table({name: _cells(values) for name, values in X.items()})
    if X is None or isinstance(X, (np.ndarray, list, tuple, Real)) or is_dask(X) or is_lazy(X):
        return None
    import narwhals.stable.v2 as nw  # late: it need not be loaded for arrays

    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ArgumentError("X", "must have another name for each column", remedy="Rename some.") from None
    if isinstance(frame, nw.LazyFrame):
        in_memory = "must be a table that is in memory"
        raise ArgumentTypeError("X", in_memory, type(X).__name__, "Use X.collect().")
    if isinstance(frame, nw.Series):
        frame = frame.to_frame() if isinstance(frame.name, str) and frame.name else None
    if not isinstance(frame, nw.DataFrame):
        return None
    if all(isinstance(name, str) for name in frame.columns):
        return Table({name: _series(frame[name], nw) for name in frame.columns})
    if not all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.dtypes()):
        named = "must have texts as names of its columns, where not all hold numbers"
        raise ArgumentError("X", named, remedy="Name them.")
    return None  # without names it is an array


def _series(series: Any, nw: Any) -> Cells:
    dtype = series.dtype
    if dtype.is_numeric():
        return Cells(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    if dtype == nw.Date or dtype == nw.Datetime:
        if getattr(dtype, "time_zone", None) is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return Cells(np.asarray(series.cast(nw.Datetime("us")).to_numpy()).astype("datetime64[us]"))
    if dtype == nw.Categorical or dtype == nw.Enum:
        levels = tuple(map(plain, series.cat.get_categories().to_list()))
        return Cells(objects(series.to_list()), levels)
    if dtype in (nw.String, nw.Boolean, nw.Object):
        return _cells(objects(series.to_list()))
    remedy = "Make it numbers, texts or dates, or leave it out."
    raise ArgumentTypeError("X", f"must hold numbers, texts or dates in {series.name!r}", str(dtype), remedy)


def _cells(values: Any) -> Cells:
    """A sequence by what it holds."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim != 1:
        raise ArgumentError("X", "must have columns with one cell for each row", f"shape {array.shape}")
    if array.dtype.kind in "iuf":
        return Cells(array.astype(np.float64))
    if array.dtype.kind == "M":
        return Cells(array.astype("datetime64[us]"))
    # numpy makes texts of what has some text in it: look at the values themselves.
    found = objects(array.tolist() if array.dtype.kind in "bOU" and array is values else list(values))
    known = [one for one in found if one is not None]
    if known and all(isinstance(one, Real) and not isinstance(one, bool) for one in known):
        return Cells(np.array([np.nan if one is None else float(one) for one in found]))
    return Cells(found)


def objects(values: Iterable[Any]) -> NDArray[Any]:
    found = [None if is_missing(one) else plain(one) for one in values]
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
