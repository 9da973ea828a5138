"""Reproducible noise for tests and papers, which makes every release worthless for privacy.

Anyone who knows or guesses the seed can subtract the noise. So the seed works only inside a
``with`` block, warns when the block is entered, and marks everything that is released in it:
certificate, file, repr and pictures say INSECURE, and :func:`cloakgp.verify` refuses it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np


class InsecureWarning(UserWarning):
    """Noise is being drawn from a seed: nothing released now is private."""


_generator: ContextVar[np.random.Generator | None] = ContextVar("insecure_generator", default=None)


@contextmanager
def insecure_seed(seed: int) -> Iterator[None]:
    """Draw noise from a seeded generator inside this block. NOT PRIVATE.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", InsecureWarning)
    ...     with insecure_seed(0):
    ...         pass  # plan.release(y) is reproducible here, and marked INSECURE
    """
    warnings.warn(
        "INSECURE: noise comes from a seed, so nothing released in this block is private.",
        InsecureWarning,
        stacklevel=3,
    )
    token = _generator.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _generator.reset(token)


def insecure_generator() -> np.random.Generator | None:
    """The seeded generator of the enclosing :func:`insecure_seed` block; None outside."""
    return _generator.get()
