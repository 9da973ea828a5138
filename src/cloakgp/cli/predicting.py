"""``cloakgp predict``: anywhere, as often as you like, for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.checks import FloatArray
from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note
from cloakgp.errors import InputError
from cloakgp.plans.opening import AnyRelease
from cloakgp.workflow import boxes, points, releases, tables
from cloakgp.workflow.outcomes import named_predictions
from cloakgp.workflow.table_cells import as_numbers, read_points


@command
def predict(
    release_file: options.ReleaseFile,
    where: Annotated[
        str, typer.Argument(metavar="POINTS", help="File of points, or grid:n over the inputs' range.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Table to write (.csv or .parquet); stdout if absent.")
    ] = None,
    inputs: options.InputNames = None,
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    include_noise: Annotated[
        bool, typer.Option("--include-noise", help="Intervals for one new outcome, not for the mean.")
    ] = False,
    as_json: options.Json = False,
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
    names, X, shown = _points(release, where, options.optional_names(inputs))
    found = named_predictions(release, releases.predictions(release, X, level, include_noise))
    taken = [name for name in names if name in found]
    if taken:
        raise ValueError(
            f"an input column must not be called {taken[0]!r}, as a predicted one is. Rename it."
        )
    columns = (releases.named_points(release, names, X) if shown is None else shown) | found
    if out is not None:
        tables.write_columns(out, columns)
    data: dict[str, Any] = {"points": len(X), "level": level, "table": None if out is None else str(out)}
    if out is None:
        data["columns"] = columns
        return Answer(data, tables.encoded(columns).decode().rstrip("\n"))
    return Answer(data, f"{len(X)} predictions: {out}. Nothing was spent.")


def _points(
    release: AnyRelease, where: str, inputs: list[str] | None
) -> tuple[list[str], FloatArray, dict[str, Any] | None]:
    """Names, points as numbers, and as they are written where that says more."""
    box, known = releases.box_of(release), releases.columns_of(release)
    if box is not None:
        if inputs is not None and tuple(inputs) != box.names:
            raise InputError(f"--inputs must be the box's: {','.join(box.names)}; or leave it out.")
        grid = points.is_grid(where)
        return list(box.names), boxes.over(box, where) if grid else boxes.from_file(where, box), None
    if points.is_grid(where):
        names = releases.input_names(release, inputs)
        return names, points.grid(where, releases.inputs_of(release), known), None
    if known is not None and inputs in (None, list(known.names)):
        table = read_points(where, known)
        X = as_numbers(where, known, table)
        return list(known.names), X, {name: cells.values for name, cells in table.items()}
    names = points.named_columns(where, releases.n_inputs(release), inputs)
    if inputs is None and len(names) > 1:
        note(
            f"columns are taken in the order {', '.join(names)}. It must be that of the plan, which the "
            "release file does not name; --inputs chooses it."
        )
    return names, points.from_file(where, names, limit=None), None
