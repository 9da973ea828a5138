"""Public inputs of a table, as the app reads and shows them: numbers, levels and dates, with their names.

How a table is written is found out from its header and from these columns, or said; nothing else decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cloakgp.app import defaults, limits, models
from cloakgp.app.errors import Problem, bad_input, public_work
from cloakgp.checks import FloatArray
from cloakgp.errors import InputError
from cloakgp.rows.columns import NUMBER, Column, Columns
from cloakgp.rows.formats import Format, is_parquet
from cloakgp.rows.frames import Cells, Table, objects
from cloakgp.workflow import tables
from cloakgp.workflow.inputs import open_inputs
from cloakgp.workflow.table_cells import find_columns

_BOOLEANS = {"true": True, "false": False}


class PublicInputs(NamedTuple):
    """The inputs of a table."""

    X: FloatArray
    """NaN where something is missing, if such rows are to be left out."""
    columns: Columns
    form: Format | None
    """How the table is written; None of Parquet."""

    @property
    def complete(self) -> FloatArray:
        """The rows that count."""
        lacking = np.isnan(self.X).any(axis=1)
        return self.X[~lacking] if lacking.any() else self.X

    def named(self, output: str, people: str | None) -> Columns:
        """The columns, with the names of the others that a plan is about."""
        own = people is not None and people not in self.columns.names
        return replace(self.columns, response=output, people=people if own and people else "")


def read_inputs(path: Path, inputs: Sequence[str], written: models.Written) -> PublicInputs:
    """The inputs of a table; what is missing is told by row number, unless it is to be left out."""
    with public_work():
        form = form_of(path, inputs, written)
        columns = find_columns(path, inputs, "", None, written.categories or (), form)
        X = open_inputs(path, inputs, False, False, columns, form, "drop")
    missing = np.isnan(X)
    if missing.any() and written.missing_inputs == "error":
        _refuse(path, columns, X)
    if missing.any(axis=1).all():
        raise bad_input("there is no row of which no input is missing.")
    return PublicInputs(X, columns, form)


def form_of(path: Path, public: Sequence[str], written: models.Written) -> Format | None:
    """How a table is written, by its header and these public columns, or as somebody said."""
    return None if is_parquet(path) else tables.reading(path, public, written.decimal, written.encoding)


def _refuse(path: Path, columns: Columns, X: FloatArray) -> None:
    """Say where inputs are missing. A page offers to leave such rows out."""
    for place, name in enumerate(columns.names):
        try:
            tables.check_complete(path, name, X[:, place])
        except InputError as error:
            rows = int(np.isnan(X).any(axis=1).sum())
            raise Problem(
                422, "missing_inputs", f"{error} Or leave out the {rows} of {len(X)} rows that lack an input."
            ) from None


def columns_shown(columns: Columns) -> list[dict[str, Any]]:
    """Columns for a page."""
    return [
        {"name": one.name, "kind": one.kind, "levels": list(one.levels), "origin": one.origin}
        for one in columns.inputs
    ]


def as_points(columns: Columns | None, rows: list[list[Any]], width: int) -> FloatArray:
    """(n, D) points as they were sent: levels and dates by texts, and numbers as they are."""
    if {len(row) for row in rows} != {width}:
        raise bad_input(f"points: each must have {width} number(s), one for each input.")
    if not any(isinstance(cell, str) for row in rows for cell in row):
        return np.asarray(rows, dtype=np.float64)
    if columns is None:
        raise bad_input("points: must be numbers. This release does not know of levels or dates.")
    sent = list(zip(*rows, strict=True))
    return np.column_stack([coded(one, cells) for one, cells in zip(columns.inputs, sent, strict=True)])


def coded(column: Column, cells: Sequence[Any], what: str = "points") -> FloatArray:
    """(n,) numbers for the cells of one column: levels and dates by texts, and numbers as they are."""
    texts = [isinstance(cell, str) for cell in cells]
    if column.kind == NUMBER and any(texts):
        first = cells[texts.index(True)]
        raise bad_input(f"{what}: must hold numbers in {column.name!r}; got {first!r:.100}.")
    if not any(texts):
        return np.asarray(cells, dtype=np.float64)
    if not all(texts):
        raise bad_input(f"{what}: must hold texts in {column.name!r}, or numbers, and not both.")
    named = Columns((column,))
    table = Table({column.name: Cells(objects(_level(column, cell) for cell in cells))})
    numbers: FloatArray = named.numbers(table, what)[:, 0]
    return numbers


def _level(column: Column, text: str) -> Any:
    """A level by its name, as its column has it."""
    if column.levels and isinstance(column.levels[0], bool):
        return _BOOLEANS.get(text.strip().lower(), text)
    if column.levels and isinstance(column.levels[0], int):
        try:
            return int(text)
        except ValueError:
            return text
    return text.strip()


def facts_of_inputs(found: PublicInputs, bounds: list[float] | None) -> dict[str, Any]:
    """What the app shows of public inputs: what they are, ranges, a sample, and a kernel to begin with."""
    X, columns = found.complete, found.columns
    low, high = X.min(axis=0), X.max(axis=0)
    picked = np.unique(np.linspace(0, len(X) - 1, min(len(X), limits.SAMPLE)).round().astype(int))
    numeric = [place for place in range(X.shape[1]) if place not in columns.categories]
    return {
        "rows": len(X),
        "dropped": len(found.X) - len(X),
        "columns": columns_shown(columns),
        "written": None if found.form is None else str(found.form),
        "decimals_unseen": _unseen(found.form, X),
        "ranges": {name: [float(a), float(b)] for name, a, b in zip(columns.names, low, high, strict=True)},
        "suggested": _suggested((high - low)[numeric], bounds),
        "sample": X[picked].tolist(),
    }


def _unseen(form: Format | None, X: FloatArray) -> bool:
    """Whether nothing public tells how decimals are written, in a table that may have commas in them."""
    may_be = form is not None and form.delimiter != "," and form.decimal == "."
    return may_be and bool((np.rint(X) == X).all())


def _suggested(widths: FloatArray, bounds: list[float] | None) -> dict[str, Any] | None:
    """From the ranges of the inputs and from the bounds, which are public."""
    if not len(widths) or not (widths > 0).all():
        return None
    scales = [float(f"{defaults.LENGTHSCALE * width:.2g}") for width in widths]
    scale = f"{scales[0]:g}" if len(scales) == 1 else f"[{', '.join(f'{each:g}' for each in scales)}]"
    if bounds is None or not bounds[0] < bounds[1]:
        return {"lengthscale": scales, "kernel": f"{defaults.FAMILY}({scale})", "noise": None, "spread": None}
    width = bounds[1] - bounds[0]
    spread, scatter = float(f"{defaults.SPREAD * width:.2g}"), float(f"{defaults.SCATTER * width:.2g}")
    kernel = f"{defaults.FAMILY}({scale}, variance={spread**2:g})"
    return {"lengthscale": scales, "kernel": kernel, "noise": scatter**2, "spread": spread}
