"""What every loader and every generator returns: a pair (X, y) that knows where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cloakgp.core.checks import FloatArray


class DatasetError(ValueError):
    """A file is not what it should be: a wrong checksum, a missing column, a damaged archive."""


TRIP = dict.fromkeys(("start latitude", "start longitude", "end latitude", "end longitude"), "degrees")
TRIP["duration"] = "s"
"""Columns of bike trips, and their units."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Inputs, outcomes, and where they come from. Unpacks as a pair: ``X, y = dataset``.

    Attributes
    ----------
    X : (n, d) array
        Inputs.
    y : (n,) array
        Outcomes. To try the library, pretend that they are private.
    names : tuple of d + 1 str
        What the columns of X and then y are.
    units : tuple of d + 1 str
        Their units.
    source : str
        Where the rows come from.
    licence : str
        Who allows what, and what to write beside a picture of the data.
    generated : bool
        True if nobody's: drawn from formulas with a public seed.
    """

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    units: tuple[str, ...]
    source: str
    licence: str
    generated: bool = False

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self.X, self.y))

    def __repr__(self) -> str:
        columns = [f"{name} ({unit})" for name, unit in zip(self.names, self.units, strict=True)]
        kind = "generated" if self.generated else "real"
        return (
            f"<Dataset: {len(self.X)} rows of {', '.join(columns[:-1])} -> {columns[-1]}; "
            f"{kind}, {self.source}>"
        )


def dataset(
    table: FloatArray, columns: dict[str, str], source: str, licence: str, generated: bool = False
) -> Dataset:
    """The first columns of a table as X and the next one as y; `columns` are their names and units."""
    X, y = np.split(table[:, : len(columns)], [-1], axis=1)
    names, units = tuple(columns), tuple(columns.values())
    return Dataset(X.copy(), y[:, 0].copy(), names, units, source, licence, generated)
