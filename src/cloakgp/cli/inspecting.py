"""``cloakgp show``, ``verify``, ``plot`` and ``export``: what is in a file, checked, drawn, rewritten."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import cloakgp
from cloakgp.cli import options, picture_options
from cloakgp.cli.exits import OK, PARTIAL, Answer, command, pairs, table
from cloakgp.errors import InputError, Refused
from cloakgp.files import atomic, schema
from cloakgp.ledger import Ledger
from cloakgp.model.outcome import CHANCES
from cloakgp.plans.functions import FunctionRelease
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.staged import StagedRelease
from cloakgp.plots import inducing_words, learned_settings
from cloakgp.plots.labels import outcome_of
from cloakgp.rows.columns import Columns
from cloakgp.rows.people import EXACT
from cloakgp.workflow import boxes, pictures, points, releases, report, tables, words
from cloakgp.workflow.inputs import open_ids, open_inputs
from cloakgp.workflow.learned_settings import AnySettings, LearnedSettings
from cloakgp.workflow.outcomes import bounds_of, noise_words, outcome_words, unit_words
from cloakgp.workflow.plan_file import read_plan_file
from cloakgp.workflow.row_settings import RowSettings
from cloakgp.workflow.settings import Settings
from cloakgp.workflow.shell_words import in_shell_words
from cloakgp.workflow.table_cells import is_coded


@command
def show(
    file: Annotated[Path, typer.Argument(help="Release file or plan file.", show_default=False)],
    as_json: options.Json = False,
) -> Answer:
    """Show what is in a release file or a plan file.

    \b
      cloakgp show heights.cloak
      cloakgp show plan.json
    """
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.")
    with file.open("rb") as opened:
        start = opened.read(100)
    if start.lstrip().startswith(b"{"):
        return _show_plan(file)
    if not start.startswith(b"PK"):
        raise InputError(f"{file}: neither a release file (.cloak) nor a plan file (.json).")
    release = releases.load(file)
    receipt = release.receipt
    outcome = outcome_of(release.plan)
    summary = words.noise_summary(releases.noise_of(release), bounds_of(release.plan))
    columns, fit = releases.columns_of(release), releases.model_check(release)
    found = {
        "kind": release.kind,
        "certificate": release.certificate.to_dict(),
        "model": _model(release),
        "inputs": releases.n_inputs(release),
        "outcome": outcome,
        "columns": None if columns is None else columns.words(),
        "shows_inputs": releases.lists_inputs(release),
        "noise_std": summary,
        "model_check": None if fit is None else {**vars(fit), "words": fit.words},
        "ledger": None if receipt is None else vars(receipt),
    }
    rows = [["std of the privacy noise", unit_words(outcome, "y"), "of the bounds' width"]]
    rows += [list(line) for line in words.noise_lines(summary)]
    parts = [
        f"{file.name}: {words.KINDS[release.kind]}, {releases.n_inputs(release)} input column(s)",
        pairs(_columns_rows(releases.columns_of(release)) + words.settings_rows(release.plan)),
        "",
        table(rows),
        "",
        *([] if fit is None else [f"model check  {fit}", ""]),
        *words.promise(release.certificate),
    ]
    if isinstance(release, StagedRelease) and learned_settings(release):
        parts[2:2] = ["", "what was learned:", textwrap.indent(str(release.learned), "  ")]
    if receipt is not None:
        parts.append(
            f"{words.on_record(release.kind)} entry {receipt.entry} of data set {receipt.dataset!r}."
        )
    return Answer(found, "\n".join([*parts, "This was not checked. cloakgp verify does that."]))


def _model(release: AnyRelease) -> dict[str, Any]:
    if isinstance(release, StagedRelease) and (settings := learned_settings(release)):
        rule = release.plan.rule
        return {
            "bounds": list(rule.bounds),
            "stages": len(release.stages),
            "inducing": None if rule.support is None else len(rule.support),
            "learned": [
                {**asdict(one), "weight": weight}
                for one, weight in zip(settings, release.weights.tolist(), strict=True)
            ],
        }
    gp = release.plan.gp
    return {
        "kernel": repr(gp.kernel),
        "noise": gp.noise,
        "bounds": list(gp.limits) if isinstance(gp.bounds[0], float) else schema.PER_ROW,
        "mean": gp.mean if isinstance(gp.mean, float) else schema.PER_ROW,
        "inducing": None if gp.inducing is None else len(np.atleast_1d(gp.inducing)),
        "approximation": None if gp.inducing is None else gp.approximation,
    }


def _show_plan(file: Path) -> Answer:
    stored, settings = read_plan_file(file)
    n_rows = settings.size if isinstance(settings, RowSettings) else stored.certificate["n_rows"]
    model = _set_rows(settings) if isinstance(settings, Settings) else _learned_rows(settings)
    hidden = isinstance(settings, RowSettings)
    chances = settings.outcome in CHANCES
    at = f"{len(settings.at)} points" if isinstance(settings.at, np.ndarray) else settings.at
    rows = [
        ("private inputs" if hidden else "public inputs", ", ".join(settings.inputs)),
        *(
            [("box", "; ".join(boxes.range_words(settings.grid)))]
            if isinstance(settings, RowSettings)
            else []
        ),
        *_table_rows(settings),
        ("private output", settings.output),
        *_people_rows(settings),
        (
            "promise",
            f"epsilon {settings.epsilon:g}, delta {settings.delta:g}, unit: {stored.certificate['unit']}",
        ),
        *outcome_words(settings.outcome, settings.classes),
        *([] if chances else [("bounds", _bounds_words(settings.bounds))]),
        *model,
        ("predictions at", at or f"points that cover the {'box' if hidden else 'inputs'}"),
        ("people" if hidden and settings.people else "rows", str(n_rows)),
        *([] if hidden else [("inputs' SHA-256", stored.inputs)]),
    ]
    found = {
        "kind": "plan",
        "settings": settings.to_dict(),
        "rows": n_rows,
        "inputs_sha256": stored.inputs or None,
        "certificate": stored.certificate,
        "people_sha256": stored.people or None,
    }
    return Answer(found, f"{file.name}: a plan. Nothing was spent for it.\n{pairs(rows)}")


def _bounds_words(bounds: tuple[Any, Any]) -> str:
    return (
        "one pair for each row"
        if np.ndim(bounds[0]) or np.ndim(bounds[1])
        else "{:g} to {:g}".format(*bounds)
    )


def _columns_rows(columns: Columns | None) -> list[tuple[str, str]]:
    """The inputs of a file that has their names, and what their numbers stand for."""
    if columns is None:
        return []
    rows = [(f"input {column.name}", words.column_words(column)) for column in columns.inputs]
    return rows + ([("private output", columns.response)] if columns.response else [])


def _table_rows(settings: AnySettings) -> list[tuple[str, str]]:
    """What was found out of the table: by its header and public columns."""
    rows = []
    if not isinstance(settings, RowSettings):
        if settings.columns is not None and is_coded(settings.columns):
            rows += [(f"input {one.name}", words.column_words(one)) for one in settings.columns.inputs]
        if settings.missing_inputs == "drop":
            rows.append(("missing inputs", "such rows are left out"))
    if isinstance(settings, LearnedSettings) and settings.seasons:
        rows += [(f"seasons of {name}", ", ".join(map(str, of))) for name, of in settings.seasons.items()]
    if settings.reading is not None:
        rows.append(("the table is", str(settings.reading)))
    return rows


def _people_rows(settings: AnySettings) -> list[tuple[str, str]]:
    if settings.people is None:
        return []
    how = "; ids exactly as they are written" if settings.ids == EXACT else ""
    if isinstance(settings, RowSettings):
        return [
            ("column of people", f"{settings.people}; at most {settings.max_rows} rows of each count{how}")
        ]
    together = f"outcomes of one go together by {settings.within:g}"
    return [("column of people", f"{settings.people}; {together}{how}")]


def _learned_rows(settings: LearnedSettings | RowSettings) -> list[tuple[str, str]]:
    rows = [("model", words.learned_words(settings.kernels))]
    if isinstance(settings, RowSettings) and settings.kernel is not None:
        rows = [("kernel", repr(settings.kernel)), *noise_words(settings.outcome, settings.noise)]
    if settings.stages is not None:
        rows.append(("stages", str(settings.stages)))
    if settings.inducing is not None:
        given = settings.inducing
        rows.append(("inducing inputs", str(given if isinstance(given, int) else len(given))))
    return rows


def _set_rows(settings: Settings) -> list[tuple[str, str]]:
    approximation = inducing_words(settings.gp())
    return [
        ("kernel", repr(settings.kernel)),
        *noise_words(settings.outcome, settings.noise),
        ("prior mean", f"{settings.mean:g}"),
        *([] if approximation is None else [("approximation", approximation)]),
        *([] if settings.device is None else [("device", settings.device)]),
        *([] if settings.in_stages else [("design", settings.design), ("calibration", settings.calibration)]),
    ]


@command
def verify(
    release_file: options.ReleaseFile,
    signed_by: Annotated[
        str | None, typer.Option(help="Public key, 64 hex digits: refuse a file not signed with it.")
    ] = None,
    inputs_from: Annotated[
        Path | None,
        typer.Option(help="Table with the public inputs, for a file that holds only their digest."),
    ] = None,
    inputs: options.InputNames = None,
    people: Annotated[
        str | None,
        typer.Option(
            help="With --inputs-from: its column that says whose row each is, if the promise is to people.",
            metavar="COLUMN",
        ),
    ] = None,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="Exit with 0 also if only a part could be checked.")
    ] = False,
    as_json: options.Json = False,
) -> Answer:
    """Work out a release file's promise again from its contents, or fail with exit code 1.

    A release of very many rows does not hold its inputs, and one that hides them never does: then only a
    part is checked, and the exit code is 5. Give the inputs, and the sensitivity is checked, too.

    \b
      cloakgp verify heights.cloak
      cloakgp verify trips.cloak --inputs-from trips.parquet --inputs lat,lon
    """
    releases.check_kind(release_file)
    if people is not None and inputs_from is None:
        raise InputError("--people names a column of a table: give that with --inputs-from.")
    X = None if inputs_from is None else _inputs(release_file, inputs_from, inputs)
    ids = None
    if inputs_from is not None and people is not None:
        ids = open_ids(inputs_from, people, how=releases.load(release_file).certificate.ids)
    checked = cloakgp.verify(release_file, signed_by=signed_by, X=X, people=ids)
    checked = replace(
        checked,
        checks=tuple(map(in_shell_words, checked.checks)),
        unchecked=tuple(map(in_shell_words, checked.unchecked)),
    )
    found = {"verified": checked.complete, "complete": checked.complete, **vars(checked)}
    return Answer(found, str(checked), OK if checked.complete or allow_partial else PARTIAL)


def _inputs(release_file: Path, table: Path, inputs: str | None) -> Any:
    """The inputs to compare with those of a release file."""
    release = releases.load(release_file)
    if releases.hides_inputs(release):
        raise InputError("--inputs-from: this release file hides its inputs; leave it out.")
    given, known = options.optional_names(inputs), releases.columns_of(release)
    if known is not None and given in (None, list(known.names)):
        rows = release.plan.rows
        missing = "error" if rows is None or rows.kept is None else "drop"
        return open_inputs(table, known.names, True, False, known, missing=missing)
    names = points.named_columns(str(table), releases.n_inputs(release), given)
    return open_inputs(table, names, inducing=True, dask=False)


@command
def plot(
    release_file: options.ReleaseFile,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="Picture (.png, .svg, .pdf) or its numbers (.csv); a folder for all pictures.",
            show_default=False,
        ),
    ],
    inputs: options.InputNames = None,
    output: options.OutputName = None,
    noise: Annotated[bool, typer.Option("--noise", help="Draw the privacy noise, not the values.")] = False,
    dark: Annotated[bool, typer.Option("--dark", help="On dark paper.")] = False,
    title: picture_options.Title = None,
    units: picture_options.Units = None,
    source: picture_options.Source = None,
    date: picture_options.Date = None,
    coordinates: picture_options.Coordinates = None,
    geographic: picture_options.Geographic = None,
    outline: picture_options.Outline = None,
    formats: Annotated[
        str | None, typer.Option(help="With a folder: png,svg,pdf,csv; png if absent.", metavar="KINDS")
    ] = None,
    as_json: options.Json = False,
) -> Answer:
    """Draw a release: a curve, a map, or slices, by its number of input columns.

    Longitude and latitude are recognised by their names. Where nothing is known that was not known before, a
    map shows nothing. Title, units, source and date are those in the file, if they are absent.

    \b
      cloakgp plot heights.cloak --inputs age --output height -o heights.png
      cloakgp plot homes.cloak --title "House prices" --units £ --outline london.geojson -o homes.svg
      cloakgp plot homes.cloak --formats png,pdf,csv -o pictures/
    """
    if not out.is_dir():
        pictures.kind_of(out)
        options.check_writable(out, reads=[release_file])
    release = releases.load(release_file).labelled(title=title, units=units, source=source, date=date)
    names = releases.input_names(release, options.optional_names(inputs))
    output = releases.output_name(release, output) or "y"
    if noise:
        if isinstance(release, FunctionRelease):
            raise InputError("--noise draws the noise of predictions; this file holds a function.")
        drawn = partial(pictures.noise_picture, release, names, output)
        shown = iter([pictures.Picture("noise", "The std of the privacy noise.", lambda narrow: drawn())])
    else:
        shown = pictures.release_pictures(
            release,
            names,
            output,
            coordinates=options.optional_names(coordinates),
            geographic=geographic,
            outline=outline,
        )
    shown = (one.on_dark() for one in shown) if dark else shown
    return picture_options.write_pictures(shown, out, release_file.stem, formats)


@command
def export(
    release_file: options.ReleaseFile,
    as_csv: Annotated[bool, typer.Option("--csv", help="A table of the released numbers.")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="A report in one self-contained file.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="File to write; if absent, a new one beside the release file."),
    ] = None,
    inputs: options.InputNames = None,
    output: options.OutputName = None,
    at: Annotated[
        str | None, typer.Option(help="For functions: where to ask, grid:n or a file of points.")
    ] = None,
    title: picture_options.Title = None,
    units: picture_options.Units = None,
    source: picture_options.Source = None,
    date: picture_options.Date = None,
    coordinates: picture_options.Coordinates = None,
    geographic: picture_options.Geographic = None,
    outline: picture_options.Outline = None,
    ledger: options.Ledger = None,
    as_json: options.Json = False,
) -> Answer:
    """Write a release as a table or as a report for readers.

    The report has pictures, the promise in plain words, the settings, and how to check it. It needs no
    network, and holds nothing that the release file does not; with --ledger also what is left of the budget.

    \b
      cloakgp export heights.cloak --html --inputs age --output height -o heights.html
      cloakgp export heights.cloak --csv -o heights.csv
    """
    if as_csv == as_html:
        raise InputError("say what to write: --csv or --html.")
    written = out or _beside(release_file, ".csv" if as_csv else ".html")
    options.check_writable(written, reads=[release_file, *([] if at is None else [at])])
    names = options.optional_names(inputs)
    if as_html:
        made = report.html(
            release_file,
            names,
            output,
            title,
            units=units,
            source=source,
            date=date,
            ledger=None if ledger is None else Ledger(ledger),
            coordinates=options.optional_names(coordinates),
            geographic=geographic,
            outline=outline,
        )
        atomic.write(written, made.encode())
        return Answer({"report": str(written)}, f"report: {written}")
    release = releases.load(release_file)
    columns = _table(release, releases.input_names(release, names), at)
    tables.write_columns(written, columns)
    return Answer({"table": str(written), "columns": list(columns)}, f"table: {written}")


def _beside(release_file: Path, suffix: str) -> Path:
    """A name that nobody gave: a file that has it already, perhaps the private data, must stay."""
    written = release_file.with_suffix(suffix)
    if written.exists():
        raise Refused(f"{written} exists already. Say -o {written} to replace it, or name another file.")
    return written


def _table(release: AnyRelease, names: list[str], at: str | None) -> dict[str, Any]:
    if at is None:
        return releases.released_table(release, names, releases.default_points(release))
    if release.kind != schema.FUNCTION:
        raise InputError("--at is for functions. For other points of this release use cloakgp predict.")
    known = releases.columns_of(release)
    where = points.resolve(at, names, releases.inputs_of(release), known)
    return releases.released_table(release, names, where)
