"""``cloakgp plan``: how much noise a release will have, without a look at the output column."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, table, working
from cloakgp.core.calibration import default_delta
from cloakgp.core.errors import InputError
from cloakgp.data import file_cells
from cloakgp.data.dates import day_of
from cloakgp.data.formats import Format
from cloakgp.data.grid import Grid
from cloakgp.data.inputs import as_inputs
from cloakgp.data.people import ALIKE
from cloakgp.files import atomic
from cloakgp.kernels.specs import parse
from cloakgp.model.outcome import as_outcome
from cloakgp.plots.shown import inducing_words
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import compare_from
from cloakgp.release.points import is_grid
from cloakgp.release.settings import Settings, check_together
from cloakgp.workflow import pictures, releases, tables, words
from cloakgp.workflow.inputs import (
    check_cluster,
    check_columns,
    connected,
    inducing_inputs,
    open_ids,
    open_inputs,
    plan_for,
    points_in,
    repeated_ids,
)


@command
def plan(
    data: Path,
    columns: options.Table,
    dask: str | None = None,
    compare: bool = False,
    out: Path | None = None,
    picture: Path | None = None,
    as_json: bool = False,
    **chosen: Any,
) -> Answer:
    """Plan a release: public and free. Reads the input columns only.

    Prints how much privacy noise there will be, and the certificate. Compare as many plans as you like, then
    keep one with -o and release from it. Every number given here must be public knowledge.

    The model is learned by the release itself, in stages. If it is known, --kernel and --noise set it; then
    more than some thousand rows need --inducing: inducing inputs, on which the model then stands, chosen by
    k-means or given in a file. For yes/no, classes and counts, --kernel describes the latent function, not
    the probability or the rate.

    \b
      cloakgp plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 -o plan.json
      cloakgp plan stops.csv --inputs lat,long,problem --output searched --outcome yes/no \\
          --epsilon 1 -o plan.json
      cloakgp plan data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(25, variance=660)" --noise 200 --at grid:200 --epsilon 1 \\
          --design posterior --plot plan.png -o plan.json
      cloakgp plan data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(25, variance=660)" --noise 200 --at grid:200 --epsilon 1 --compare
      cloakgp plan homes.parquet --inputs lat,lon --output price --bounds 0 2000000 \\
          --kernel "Matern32([0.05, 0.08], variance=9e10)" --noise 4e10 --at points.csv \\
          --epsilon 1 --delta 1e-6 -o plan.json
      cloakgp plan trips.parquet --inputs lat,lon --output minutes --bounds 0 60 \\
          --kernel "EQ([0.02, 0.03], variance=80)" --noise 100 --at grid:20 --inducing 500 \\
          --epsilon 1 --delta 1e-8 --dask tcp://10.0.0.5:8786 -o plan.json
      cloakgp plan visits.csv --inputs age,clinic,day --output pressure --bounds 60 220 \\
          --season day week,year --epsilon 3 -o plan.json
    """
    inputs, output = options.names(columns.inputs), columns.output
    options.check_writable(out, picture, reads=[data, chosen["at"], chosen["inducing"]])
    if picture is not None:
        pictures.kind_of(picture, numbers=False)
    settings, X, whose = _settings(data, columns, dask, chosen)
    if compare:
        _check_compare(settings, {"--design": chosen["design"], "--out": out, "--plot": picture})
        working("comparing designs")
        with connected(dask):
            compared = compare_from(settings, X, whose)
        lines = "\n".join([table(compared.lines()), *compared.notes])
        return Answer({"designs": compared.table(), "best": compared.best}, lines)
    if not settings.in_stages and settings.inducing is None and settings.device is None:
        rows = len(np.unique(as_inputs(X, missing_inputs=columns.missing_inputs).X, axis=0))
        less = "--inducing 500 takes far less of both, and so does a model that is learned, without --kernel."
        note_work(
            f"note: an exact model of {rows} distinct rows takes", 1e-10 * rows**3, 3 * 8 * rows**2, less
        )
    working("planning")
    with connected(dask):
        made = plan_for(settings, X, whose)
        file = PlanFile.of(made)
        if picture is not None:
            drawn = pictures.noise_picture(made).encoded(pictures.kind_of(picture))
    if columns.people is None and not settings.hides_inputs:
        _note_people(data, inputs, output)
    if settings.reading is not None and columns.decimal is None:
        _note_decimal(settings.reading, made)
    if out is not None:
        atomic.write(out, file.encode())
    if picture is not None:
        atomic.write(picture, drawn)
    found = {
        "expected_error": words.noise_summary(made.expected_error, made.rule.bounds),
        "noise_std": words.noise_summary(made.noise_std, made.rule.bounds),
        "test_points": len(made.X_star),
        "rows": settings.n_rows if settings.hides_inputs else len(made.X),
        "certificate": made.certificate.to_dict(),
        "unit": made.unit,
        "plan_sha256": made.digest,
        "inputs_sha256": file.inputs or None,
        "plan_file": None if out is None else str(out),
        "picture": None if picture is None else str(picture),
    }
    kept = "Nothing was written. With -o plan.json this plan can be released."
    if out is not None:
        unread = "no input or output column was read" if settings.hides_inputs else f"{output!r} was not read"
        kept = f"plan file: {out}. Nothing was spent, and {unread}."
    text = [_noise_text(made, inputs, output), "", str(made.certificate), "", kept]
    return Answer(found, "\n".join(text if picture is None else [*text, f"picture: {picture}"]))


def _settings(
    data: Path, columns: options.Table, dask: str | None, chosen: dict[str, Any]
) -> tuple[Settings, Any, Any]:
    """What was chosen, the inputs, and whose each row is; None where inputs are private."""
    inputs, output, people = options.names(columns.inputs), columns.output, columns.people
    chosen["protect"] = chosen["protect"] or ("outcomes" if people is None else "people")
    chosen["seasons"] = _seasons(chosen.pop("season") or ())
    usual = {"ids": ALIKE, "missing_inputs": "error"}  # which nobody need have typed
    asked = {name: value for name, value in vars(columns).items() if (name, value) not in usual.items()}
    asked |= chosen | {"inputs": inputs, "dask": dask}
    for name in ("classes", "kernels", "categories"):
        asked[name] = tuple(options.names(asked[name]))
    check_together(asked)
    as_outcome(asked["outcome"], asked["classes"] or None)
    check_cluster(dask, chosen["inducing"] is not None)
    check_columns(data, inputs, output, dask is not None, people)
    private, missing = chosen["protect"] == "rows", columns.missing_inputs
    form = tables.reading(data, [] if private else inputs, columns.decimal, columns.encoding)
    if private:
        grid, size = grid_of(chosen, inputs), size_of(chosen, data)
        known = grid.columns
        asked |= {"grid": grid, "n_rows": size}
    else:
        named = inputs, output, people
        known = tables.numbers_named(*named)  # as the workers of a cluster read them
        if dask is None:
            known = tables.find_columns(data, *named, asked["categories"], form)
        asked["columns"] = known
    if chosen["at"] is not None and not is_grid(chosen["at"]):
        asked["at"] = points_in(chosen["at"], inputs, known, new_levels=not private)
    asked["inducing"] = inducing_inputs(chosen["inducing"], inputs, known)
    asked["kernel"] = None if chosen["kernel"] is None else parse(chosen["kernel"])
    asked["reading"] = None if form == Format() else form
    X = whose = None
    if not private:
        working("reading the inputs")
        streams = chosen["kernel"] is None or chosen["inducing"] is not None
        X = open_inputs(data, inputs, streams, dask is not None, known, form, missing)
        whose = open_ids(data, people, form, columns.ids)
        size = as_inputs(X, whose, missing_inputs=missing).size
    if asked["delta"] is None:
        asked["delta"], counted = default_delta(size), "rows" if people is None else "people"
        note(
            f"delta is {asked['delta']:g}: the largest power of ten below 1/(10 N), for N = {size} {counted}."
        )
    own = {one.name: asked.get(one.name) for one in fields(Settings)}
    settings = Settings(**{name: value for name, value in own.items() if value is not None})
    return settings, X, whose


def _seasons(typed: Sequence[Any]) -> dict[str, list[str | float]]:
    """Columns and their periods."""
    found: dict[str, list[str | float]] = {}
    for name, periods in typed:
        found.setdefault(name, []).extend(map(_period, options.names(periods)))
    return found


def _period(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:
        return word


def _check_compare(settings: Settings, of_plans: dict[str, Any]) -> None:
    """Raise if designs cannot be compared, or a plan is asked for as well."""
    if settings.in_stages:
        raise InputError(
            "--compare is for real outcomes, public inputs and a model that is set, by --kernel and --noise. "
            "What is released in stages has a design of its own for each."
        )
    for option, given in of_plans.items():
        if given is not None:
            raise InputError(
                f"--compare makes no plan: leave out {option}, and choose a design by its table."
            )


def note_work(what: str, seconds: float, size: float, less: str) -> None:
    """Say what exact models of many rows take, and what takes less, before any work is done."""
    if seconds > PATIENCE:
        note(
            f"{what} {size / 2**30:.1f} GiB of memory or more, and {math.ceil(seconds / 60)} minute(s) or "
            f"more on one core; Ctrl-C stops it, for nothing. {less}"
        )


PATIENCE = 10.0
"""Seconds of work that nobody need be told of."""


def _note_people(data: Path, inputs: list[str], output: str) -> None:
    """Say so where a table seems to hold several rows of one person, and each row is protected by itself."""
    if data.is_dir():
        return
    found = repeated_ids(data, [name for name in tables.columns_of(data) if name != output])
    if found is not None:
        note(
            f"note: each row's outcome is protected by itself, and {found!r} looks like people who have "
            f"several rows. To protect each person with all of their rows: --people {shlex.quote(found)}."
        )


def _note_decimal(form: Format, plan: Any) -> None:
    """Say so where nothing public tells how decimals are written, and they may well have commas."""
    whole = plan.question.hides_inputs or bool((np.rint(plan.X) == np.asarray(plan.X)).all())
    if form.delimiter != "," and form.decimal != "," and whole:
        note(
            f"note: the table is {form}: no public column has decimals to see. If its numbers are written "
            "like 3,5, say --decimal ,"
        )


def _noise_text(plan: Any, inputs: list[str], output: str) -> str:
    """How much noise, in all and at some of the test points."""
    bounds, direct = plan.rule.bounds, not plan.question.in_stages
    lines = [
        words.noise_lines(words.noise_summary(one, bounds)) for one in (plan.expected_error, plan.noise_std)
    ]
    rows = [["expected error", "std of the privacy noise", "of the bounds' width"]]
    rows = [[plan.outcome.unit_words(output), *rows[0]]]
    rows += [[name, error, *noise] for (name, error, _), (_, *noise) in zip(*lines, strict=True)]
    model = inducing_words(plan.gp) if direct else None
    through = "" if model is None else f" through {model}"
    text = f"Over {len(plan.X_star)} test points, from {words.population(plan)}{through}:\n{table(rows)}"
    text += "\nThe expected error is of the predictions that readers use: privacy noise and model together."
    if len(inputs) == 1 and len(plan.X_star) > 1:
        picked = sorted({round(i * (len(plan.X_star) - 1) / 6) for i in range(7)})
        order = plan.X_star[:, 0].argsort(kind="stable")[picked]
        along = releases.named_points(plan, plan.X_star)[inputs[0]].tolist()
        shown = [f"{one:.5g}" if isinstance(one, float) else str(one) for one in along]
        numbers = (plan.expected_error, plan.noise_std, plan.gp_std)
        some = [[inputs[0], "expected error", "noise std", "GP's own std"]]
        some += [[shown[i], *(f"{one[i]:.4g}" for one in numbers)] for i in order]
        text += f"\n\n{table(some)}"
    return text if direct else f"{text}\n\n{_forecast(plan)}"


def _forecast(plan: Any) -> str:
    """What the numbers of a plan in stages do not know yet."""
    learns = plan.question.kernel is None
    text = "This is a forecast by the model alone: nothing is known of the outcomes."
    if plan.outcome.percent:
        model = f"In {plan.stages} stages the release learns the model,\nand where" if learns else "Where"
        text = (
            f"This is a careful forecast, with nothing known of the probabilities. {model} probabilities are "
            "far from 1/2 there will be less noise."
        )
    elif learns:
        text = (
            "This is a forecast, with nothing known but bounds: the median over what might be true. "
            f"In {plan.stages}\nstages the release learns where outcomes lie and how they scatter: the "
            "less, the less noise there will be."
        )
    if plan.question.hides_inputs:
        text += (
            "\nRows are taken to be spread evenly over the box: where they are few, there will be more noise."
        )
    return text


def grid_of(typed: Mapping[str, Any], inputs: Sequence[str]) -> Grid:
    """The public grid."""
    ranges = [(name, (_end(low, name), _end(high, name))) for name, low, high in typed["box"] or ()]
    levels = [(name, _levels(name, listed)) for name, listed in typed["levels"] or ()]
    box: list[tuple[str, Any]] = [*ranges, *levels]
    if sorted(name for name, _ in box) != sorted(inputs):
        raise InputError(
            f"--protect rows: the inputs are private, so say of each of {', '.join(inputs)}, once, where it "
            "lies by public knowledge: --box NAME LO HI, or --levels NAME A,B,... for a category."
        )
    cells: dict[str, int] = {}
    for word in typed["cells"] or ():
        name, _, number = word.rpartition("=")
        if not number.isdigit():
            raise InputError(f"--cells must be a whole number, or NAME=N; got {word!r}.")
        cells |= {name: int(number)} if name else dict.fromkeys(dict(ranges), int(number)) | cells
    return Grid({name: dict(box)[name] for name in inputs}, cells or 40)


def size_of(typed: Mapping[str, Any], data: Path) -> int:
    """How many rows, or people, there are: public. Rows are counted if nobody says it, and that is told."""
    size = typed["n_people"] or typed["rows"]
    if size is None:
        size = file_cells.n_rows(data)
        note(
            f"note: {data.name} has {size} rows, which were counted, and that becomes public. "
            "If it is known otherwise, give --rows."
        )
    return int(size)


def _levels(name: str, listed: str) -> list[Any]:
    """Whole numbers if all are; else texts."""
    levels: list[Any] = options.names(listed)
    if len(set(levels)) < max(2, len(levels)):
        raise InputError(f"--levels {name} must be two or more different ones: A,B,...")
    try:
        return list(map(int, levels))
    except ValueError:
        return levels


def _end(typed: str, name: str) -> float | str:
    """A number, or a date as it was typed."""
    if day_of(typed) is not None:
        return typed
    try:
        return float(typed)
    except ValueError:
        raise InputError(
            f"--box {name} must have two numbers, LO and HI, or two dates such as 2024-05-31; got {typed!r}."
        ) from None
