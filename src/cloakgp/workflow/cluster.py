"""A Dask cluster for the time of one command. Its workers read the rows; the private column stays there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cloakgp.errors import Argument, InputError, missing_extra

LOCAL = "local"
_PATIENCE = 15  # seconds to connect


def check_cluster(address: str | None, inducing: bool) -> None:
    """Raise if a cluster is asked for where it has nothing to do."""
    if address is not None and not inducing:
        raise InputError(
            "--dask needs --inducing, and --kernel: an exact GP, or a model that is learned, is worked out "
            "on this machine."
        )


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Passes over Dask arrays inside run on this cluster; None for none.

    "local" is a cluster of threads in this process, which nobody else can connect to.
    """
    if address is None:
        yield
        return
    client = _client(address)
    try:
        with client.as_current():
            yield
    finally:
        client.close()


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra(Argument("dask"), "dask and distributed", "dask") from None
    if address == LOCAL:
        return Client(processes=False, dashboard_address="127.0.0.1:0", set_as_default=False)  # any free port
    try:
        # Not the default: one that could not connect would remain it, and others would wait for it.
        return Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError):
        gc.collect()  # closes what is left of the client now, and not while the next one is being made
        raise InputError(
            f"--dask: there is no scheduler at {address!r}. Give its address, such as tcp://10.0.0.5:8786, "
            "or 'local'."
        ) from None


def dask_array() -> Any:
    """The module ``dask.array``."""
    try:
        import dask.array
    except ImportError:
        raise missing_extra(Argument("dask"), "dask and distributed", "dask") from None
    return dask.array
