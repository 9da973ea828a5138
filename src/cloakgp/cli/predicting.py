"""``cloakgp predict`` and ``combine``: anywhere, as often as you like, for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cloakgp
from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command
from cloakgp.core import checks
from cloakgp.core.checks import FloatArray
from cloakgp.core.errors import InputError
from cloakgp.data.columns import common
from cloakgp.release import points
from cloakgp.release.release import Release
from cloakgp.release.showing import beside
from cloakgp.workflow import releases, tables
from cloakgp.workflow.inputs import points_in, points_of


@command
def predict(
    release_file: Path,
    where: str,
    out: Path | None = None,
    inputs: str | None = None,
    level: float = 0.95,
    include_noise: bool = False,
    as_json: bool = False,
) -> Answer:
    """Predict at new points from a release: free, and without the data.

    Writes the inputs with the denoised mean, its std (of the model and of the privacy noise together), and
    an interval. For yes/no outcomes, the probabilities of no and of yes, and the interval of the latter; for
    several classes, of each; for counts, their rate. For a function that does not show its inputs: its
    value, and the std of its noise.

    \b
      cloakgp predict heights.cloak points.csv -o out.csv
      cloakgp predict heights.cloak grid:50 --level 0.9
      cloakgp predict homes.cloak points.parquet --inputs lat,lon -o out.parquet
    """
    options.check_writable(out, reads=[release_file, where])
    release = releases.load(release_file)
    X, shown = _asked_points([release], where, options.names(inputs) or None)
    found = releases.named_predictions(release, releases.predictions(release, X, level, include_noise))
    return _answer({"points": len(X), "level": level}, beside(shown, found), out, f"{len(X)} predictions")


@command
def combine(
    release_files: list[Path],
    at: str,
    out: Path | None = None,
    inputs: str | None = None,
    level: float = 0.95,
    learn: bool = False,
    as_json: bool = False,
) -> Answer:
    """Predict from release files of several custodians together: free, and without any data.

    Each file must be about other people than the rest, all about one curve or map: then each promise stands
    as it is. Inputs, bounds, promises and kinds may differ. For files of the same people that would be wrong,
    and files that one data set of a ledger paid for are refused.

    \b
      cloakgp combine north.cloak west.cloak east.cloak --at grid:30 --inputs lat,lon -o map.csv
    """
    checks.number(level, "level", above=0.0, below=1.0)  # before any work
    options.check_writable(out, reads=[*release_files, at])
    files = [releases.load(file) for file in release_files]
    X, shown = _asked_points(files, at, options.names(inputs) or None)
    together = cloakgp.combine(files, same_data=False, model="learn" if learn else None)
    mean, std = together.predict(X, return_std=True)
    found = releases.normal(mean, std, level)
    data = {"files": len(files), "points": len(X), "level": level}
    return _answer(data, beside(shown, found), out, f"{len(X)} predictions from {len(files)} files")


def _answer(data: dict[str, Any], columns: dict[str, Any], out: Path | None, said: str) -> Answer:
    """The table, in a file or on stdout."""
    data |= {"table": None if out is None else str(out)}
    if out is None:
        return Answer(data | {"columns": columns}, tables.encoded(columns).decode().rstrip("\n"))
    tables.write_columns(out, columns)
    return Answer(data, f"{said}: {out}. Nothing was spent.")


def _asked_points(
    files: Sequence[Release], where: str, inputs: list[str] | None
) -> tuple[FloatArray, dict[str, Any]]:
    """Where to predict, as numbers and as a table: in the box that all have, or over the inputs of all."""
    first, boxes = files[0], [file.plan.grid for file in files if file.plan.grid is not None]
    box = first.plan.grid
    if box is not None and all(file.plan.grid == box for file in files):
        if inputs is not None and tuple(inputs) != box.names:
            raise InputError(f"--inputs must be the box's: {','.join(box.names)}; or leave it out.")
        X = points_of(where, box.names, box)
        return X, releases.named_points(first.plan, X)
    if len({releases.n_inputs(file) for file in files}) > 1:
        raise InputError("the files must all have the same number of input columns.")
    if any(axis.category or axis.origin for box in boxes for axis in box.axes):
        raise InputError("files with categories or dates can be combined only if their boxes are the same.")
    known = common(file.plan.columns for file in files)
    if points.is_grid(where):
        ends = np.vstack([_ends(file) for file in files])
        X = points.grid(where, ends, known)
    elif known is not None and inputs in (None, list(known.names)):
        table = tables.read_points(where, known)
        return tables.as_numbers(where, known, table), {name: cells.values for name, cells in table.items()}
    else:
        X = points_in(where, releases.columns_in(first, inputs), limit=None)
    return X, releases.named_points(releases.named(first, inputs).plan, X)


def _ends(file: Release) -> FloatArray:
    """(2, D): from where to where its inputs are, or can be, where they are private."""
    if file.plan.grid is None:
        return np.array(points.ranges(file.plan.shown_inputs))
    return np.array([[axis.low for axis in file.plan.grid.axes], [axis.high for axis in file.plan.grid.axes]])
