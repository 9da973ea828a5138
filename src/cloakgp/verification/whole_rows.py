"""How far a whole row, or one person's rows, can move what was measured: from the file's integers alone.

Arithmetic of its own, and exact. No such file tells how many rows a cell has, and nothing here asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloakgp.files.staged_schema import n_curves
from cloakgp.verification.guarantee import IntArray, root_rounded_up, squared_norms

MOST_PAIRED = 5000
"""Columns up to which all pairs are compared; with more, each distance is at most two norms."""
_COLUMNS = 256
COUNT_BITS = 40
MOST_COUNTED = 2**42
"""Entries of a matrix whose columns are compared are below: as floats they, and differences, are exact."""

Lattice = tuple[dict[str, Any], int, int]
"""A lattice's words, how far one unit can move it, and how large its sums can be; both in steps."""


def lattices(manifest: dict[str, Any], arrays: dict[str, Any], number: int) -> list[Lattice]:
    """Of one stage: of its measurements, and of the noise level if it measures that."""
    words, matrix, grid = manifest["stages"][number], arrays[f"matrix_{number}"], manifest["grid"]
    people = grid["max_rows"] is not None
    each = grid["max_rows"] if people else 1
    largest = max(abs(int(matrix.min())), abs(int(matrix.max()))) * each * grid["size"]
    if number == 0:
        steps = root_rounded_up(each**2 * furthest(matrix, people))
        return [(words, steps, largest)]
    bits = words["y_bits"]
    longest = max(max(squared_norms(block)) for block in _blocks(matrix))
    squared = longest * 4**bits
    curves = n_curves(manifest["model"])
    if curves > 1:  # lemma 23: of each class 2^b or 0, less the same for all
        less = 2**bits // curves
        own = (2**bits - less) ** 2 + (curves - 1) * less**2
        squared = max(2 * squared, own * furthest(matrix, False))
    found = [(words, root_rounded_up(each**2 * squared), largest * 2**bits)]
    spread = words["spread"]
    if spread is not None:
        steps = each * 2 ** (spread["y_bits"] + spread["matrix_bits"])
        found.append((spread, steps, steps * grid["size"]))
    return found


def furthest(matrix: IntArray, people: bool) -> int:
    """Largest squared distance of two columns, exactly; for people, 0 is one of the columns."""
    if people:
        matrix = np.hstack([matrix, np.zeros((len(matrix), 1), dtype=np.int64)])
    n = matrix.shape[1]
    if n > MOST_PAIRED:
        return 4 * max(max(squared_norms(block)) for block in _blocks(matrix))
    # Squared distances in floating point tell which columns may be furthest from each other. Entries below
    # MOST_COUNTED are exact, and so a sum of q squares is wrong by a factor of 1 +- (q + 2) 2^-52 at most.
    real, best, found = matrix.astype(np.float64), 0.0, 0
    for column in range(n):
        differences = real[:, column + 1 :] - real[:, column : column + 1]
        apart = np.einsum("ij,ij->j", differences, differences)
        top = float(apart.max(initial=0.0))
        if top >= best * (1 - 1e-9) and top > 0:
            near = column + 1 + np.flatnonzero(apart >= top * (1 - 1e-9))
            found = max(found, *_exact(matrix[:, near] - matrix[:, column : column + 1]))
            best = max(best, top)
    return found


def _exact(columns: IntArray) -> list[int]:
    """Squared norms of columns with entries up to 2^43: h 2^22 + l, so that sums of 2^18 stay below 2^62."""
    if len(columns) >= 2**18 or max(abs(int(columns.min())), abs(int(columns.max()))) > 2 * MOST_COUNTED:
        return [sum(entry * entry for entry in column) for column in columns.T.tolist()]
    h, low = columns >> 22, columns & (2**22 - 1)
    sums = (np.einsum("ij,ij->j", a, b).tolist() for a, b in ((h, h), (h, low), (low, low)))
    return [(hh << 44) + (hl << 23) + ll for hh, hl, ll in zip(*sums, strict=True)]


def _blocks(matrix: IntArray) -> list[IntArray]:
    return [matrix[:, start : start + _COLUMNS] for start in range(0, matrix.shape[1], _COLUMNS)]
