"""The integer columns that a plan looked at last, where there is room: its release multiplies them with y.

They are found by the digest of the rows that they were made from, so rows that have changed since are not
mistaken for those; and what the private room multiplies, it looks at again in any case. One plan's are kept
at a time, until it is released, or gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

ENTRIES = 3 * 2**26
"""As many are kept, of all rows together: 768 MiB."""
LARGEST = 2**31
"""Entries are below."""

Steps = Sequence[tuple[slice, NDArray[np.int32]]]  # steps through a chunk's rows, and their (q, n) columns
Chunks = Mapping[bytes, Steps]

_kept: tuple[ReferenceType[Any], Chunks] | None = None


def keep(recipe: Any, chunks: Chunks) -> None:
    """Keep the columns that a recipe made from chunks of rows, by the chunks' digests."""
    global _kept
    for _, columns in chain.from_iterable(chunks.values()):
        columns.setflags(write=False)
    _kept = ref(recipe, _gone), chunks


def forget() -> None:
    """Make room for others."""
    global _kept
    _kept = None


def kept(recipe: Any, digest: bytes) -> Steps | None:
    """What the recipe made from the chunk of rows with this digest, if it is here."""
    found = _kept  # another thread may plan
    return None if found is None or found[0]() is not recipe else found[1].get(digest)


def _gone(reference: ReferenceType[Any]) -> None:
    found = _kept  # another thread may plan
    if found is not None and found[0] is reference:
        forget()
