"""The BLAS libraries of this process."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any


def blas() -> Any:
    """What sets their number of threads; looked for again once a module was imported, which may load one."""
    return _libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Looking through all libraries takes milliseconds, longer than many a product."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")
