"""Finds linear algebra of cloakgp's that has more than one BLAS thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import scipy.linalg  # noqa: F401  # its BLAS is another than numpy's
from threadpoolctl import ThreadpoolController, threadpool_limits

import cloakgp
from cloakgp.data import blas
from cloakgp.kernels.base import Kernel

_OURS = str(Path(cloakgp.__file__).parent)


@contextmanager
def watched(for_good: bool = False) -> Iterator[set[str]]:
    """The functions of cloakgp that led to a kernel matrix or a factorisation with several threads.

    Afterwards there are as many threads as before, unless the limit is set `for_good`.
    Factorisations are seen in this thread only, kernels in all. Mere products are no calls that could be
    seen; there is hardly one without a kernel before it.
    """
    found: set[str] = set()

    def look(frame: Any) -> None:
        if any(library.num_threads != 1 for library in libraries):
            found.add(_way_to(frame))

    def on_event(frame: Any, event: str, _: Any) -> None:
        if event == "call" and _is_algebra(frame.f_code.co_filename) and "norm" not in frame.f_code.co_name:
            look(frame)

    right = Kernel.__call__

    def evaluate(self: Kernel, *arrays: Any) -> Any:
        look(sys._getframe(1))
        return right(self, *arrays)

    fresh = patch.object(blas, "_inside", 0), patch.dict(blas._before, clear=True)  # whatever ran before
    with fresh[0], fresh[1], threadpool_limits(2, user_api="blas"):
        libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        assert {library.num_threads for library in libraries} == {2}
        with patch.object(Kernel, "__call__", evaluate):
            sys.setprofile(on_event)
            try:
                yield found
            finally:
                sys.setprofile(None)
        assert {library.num_threads for library in libraries} == {1 if for_good else 2}


@cache
def _is_algebra(file: str) -> bool:
    return any(f"/{library}/linalg/" in Path(file).as_posix() for library in ("numpy", "scipy"))


def _way_to(frame: Any) -> str:
    names = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(_OURS):
            names.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " > ".join(reversed(names))
