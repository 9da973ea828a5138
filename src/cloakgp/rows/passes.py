"""A pass over rows: in threads here, or on a Dask cluster if one of the sources is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cloakgp.rows.chunks import T, is_dask, sweep_threads


def sweep(function: Callable[..., T], *sources: Any, label: str = "") -> Iterator[T]:
    """function(rows of each source) for every chunk of rows, in order.

    A source that is a number or None is handed on as it is. `function` must be a module's function, or a
    `partial` of one, for a cluster to call it.
    """
    if any(is_dask(source) for source in sources):
        from cloakgp.rows.on_dask import sweep_cluster

        return sweep_cluster(function, sources, label)
    return sweep_threads(function, sources, label)
