"""``cloakgp combine``: one prediction from the release files of several custodians. Free."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import typer

import cloakgp
from cloakgp import checks
from cloakgp.checks import FloatArray
from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note
from cloakgp.errors import InputError
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.showing import beside
from cloakgp.rows.columns import common
from cloakgp.workflow import boxes, points, releases, tables
from cloakgp.workflow.inputs import ranges
from cloakgp.workflow.table_cells import as_numbers, read_points


@command
def combine(
    release_files: Annotated[
        list[Path],
        typer.Argument(help="Release files (.cloak), each of other people's rows.", show_default=False),
    ],
    at: Annotated[
        str,
        typer.Option(
            help="Where to predict: a file of points, or grid:n over all inputs.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Table to write (.csv or .parquet); stdout if absent.")
    ] = None,
    inputs: options.InputNames = None,
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn one model from all files, where theirs differ.")
    ] = False,
    as_json: options.Json = False,
) -> Answer:
    """Predict from release files of several custodians together: free, and without any data.

    Each file must be about other people than the rest, all about one curve or map: then each promise stands
    as it is. Inputs, bounds, promises and kinds may differ. For files of the same people that would be wrong,
    and files that one data set of a ledger paid for are refused.

    \b
      cloakgp combine north.cloak west.cloak east.cloak --at grid:30 --inputs lat,lon -o map.csv
    """
    checks.number(level, "level", above=0.0, below=1.0)
    options.check_writable(out, reads=[*release_files, at])
    files = [releases.load(file) for file in release_files]
    names, X, shown = _points(files, at, options.optional_names(inputs))
    together = cloakgp.combine(files, same_data=False, model="learn" if learn else None)
    mean, std = together.predict(X, return_std=True)
    half_width = NormalDist().inv_cdf(0.5 + level / 2) * std
    found = {"mean": mean, "std": std, "lower": mean - half_width, "upper": mean + half_width}
    columns = beside(releases.named_points(files[0], names, X) if shown is None else shown, found)
    data: dict[str, Any] = {"files": len(files), "points": len(X), "level": level}
    data["table"] = None if out is None else str(out)
    if out is None:
        return Answer(data | {"columns": columns}, tables.encoded(columns).decode().rstrip("\n"))
    tables.write_columns(out, columns)
    return Answer(data, f"{len(X)} predictions from {len(files)} files: {out}. Nothing was spent.")


def _points(
    files: list[AnyRelease], at: str, inputs: list[str] | None
) -> tuple[list[str], FloatArray, dict[str, Any] | None]:
    """Where to predict, in the box that all have, or over the inputs of all; as numbers, and as written."""
    found = [releases.box_of(file) for file in files]
    box = found[0]
    if box is not None and all(other == box for other in found):
        return list(box.names), boxes.resolve(at, box), None
    if len({releases.n_inputs(file) for file in files}) > 1:
        raise InputError("the files must all have the same number of input columns.")
    boxed = [box for box in found if box is not None]
    if any(axis.category or axis.origin for box in boxed for axis in box.axes):
        raise InputError("files with categories or dates can be combined only if their boxes are the same.")
    if inputs is None and boxed:
        inputs = list(boxed[0].names)
    known = common(releases.columns_of(file) for file in files)
    names = releases.input_names(files[0], inputs)
    if points.is_grid(at):
        return names, points.grid(at, np.vstack([_ends(file) for file in files]), known), None
    if known is not None and inputs in (None, list(known.names)):
        written = read_points(at, known)
        shown = {name: cells.values for name, cells in written.items()}
        return list(known.names), as_numbers(at, known, written), shown
    names = points.named_columns(at, len(names), inputs)
    if inputs is None and len(names) > 1:
        note(f"columns are taken in the order {', '.join(names)}; --inputs chooses it.")
    return names, points.from_file(at, names, limit=None), None


def _ends(file: AnyRelease) -> FloatArray:
    """(2, D): from where to where its inputs are, or can be, where they are private."""
    box = releases.box_of(file)
    if box is None:
        return np.array(ranges(releases.inputs_of(file)))
    return np.array([[axis.low for axis in box.axes], [axis.high for axis in box.axes]])
