"""``cloakgp show``, ``verify``, ``plot`` and ``export``: what is in a file, checked, drawn, rewritten."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import cloakgp
from cloakgp.cli import options
from cloakgp.cli.exits import OK, PARTIAL, Answer, command, table
from cloakgp.core.errors import InputError, Refused
from cloakgp.files import atomic, schema
from cloakgp.ledger import Ledger
from cloakgp.plots import learned_settings
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.release import Release
from cloakgp.workflow import pictures, releases, report, tables, words
from cloakgp.workflow.inputs import open_ids, open_inputs, points_of
from cloakgp.workflow.shell_words import in_shell_words
from cloakgp.workflow.tables import is_coded


@command
def show(file: Path, as_json: bool = False) -> Answer:
    """Show what is in a release file or a plan file.

    \b
      cloakgp show heights.cloak
      cloakgp show plan.json
    """
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.")
    with file.open("rb") as opened:
        start = opened.read(100).lstrip()
    if start.startswith(b"{"):
        return _show_plan(file)
    if not start.startswith(b"PK"):
        raise InputError(f"{file}: neither a release file (.cloak) nor a plan file (.json).")
    release = releases.load(file)
    plan, receipt, kind = release.plan, release.receipt, releases.kind_of(release)
    outcome, columns, fit = plan.outcome, plan.columns, releases.model_check(release)
    facts = words.facts(release, fit)
    found = {
        "kind": kind,
        "model": _model(release),
        "inputs": releases.n_inputs(release),
        "outcome": outcome.name,
        "columns": None if columns is None else columns.words(),
        "shows_inputs": releases.lists_inputs(release),
        **facts,
        "ledger": None if receipt is None else vars(receipt),
    }
    coded = [] if columns is None else words.column_rows(columns)
    noise = [["std of the privacy noise", outcome.unit_words("y"), "of the bounds' width"]]
    what = {"function": "a function", "staged": "predictions, released in stages"}.get(kind, kind)
    parts = [
        f"{file.name}: {what}, {releases.n_inputs(release)} input column(s)",
        table(words.settings_rows(plan) + coded, numbers=False),
        "",
        table(noise + words.noise_lines(facts["noise_std"])),
        "",
        *([] if fit is None else [f"model check  {fit}", ""]),
        *words.promise(release.certificate),
    ]
    if learned_settings(release):
        parts[2:2] = ["", "what was learned:", textwrap.indent(str(release.learned), "  ")]
    if receipt is not None:
        parts.append(f"{words.on_record(release)} entry {receipt.entry} of data set {receipt.dataset!r}.")
    return Answer(found, "\n".join([*parts, "This was not checked. cloakgp verify does that."]))


def _model(release: Release) -> dict[str, Any]:
    plan = release.plan
    if settings := learned_settings(release):
        weights = release.weights.tolist()
        return {
            "bounds": list(plan.rule.bounds),
            "stages": len(release.stages),
            "inducing": None if plan.rule.support is None else len(plan.rule.support),
            "learned": [
                asdict(one) | {"weight": weight} for one, weight in zip(settings, weights, strict=True)
            ],
        }
    gp = plan.gp
    inducing = None if gp.inducing is None else len(np.atleast_1d(gp.inducing))
    return {
        "kernel": repr(gp.kernel),
        "noise": gp.noise,
        "bounds": list(gp.limits) if isinstance(gp.bounds[0], float) else schema.PER_ROW,
        "mean": gp.mean if isinstance(gp.mean, float) else schema.PER_ROW,
        "inducing": inducing,
        "approximation": None if inducing is None else gp.approximation,
    }


def _show_plan(file: Path) -> Answer:
    stored = PlanFile.read(file)
    s, hidden = stored.settings, stored.settings.hides_inputs
    n_rows = s.n_rows if hidden else stored.certificate["n_rows"]
    rows = [
        ("private inputs" if hidden else "public inputs", ", ".join(s.inputs)),
        ("box", words.range_words(s.grid)),
        *(words.column_rows(s.columns) if s.columns is not None and is_coded(s.columns) else ()),
        *(row for row in s.rows() if row[0] not in ("columns", "grid", "n_rows")),
        ("unit", stored.certificate["unit"]),
        ("people" if hidden and s.max_rows else "rows", n_rows),
        ("inputs' SHA-256", stored.inputs),
    ]
    found = {
        "kind": "plan",
        "settings": s.words(),
        "rows": n_rows,
        "inputs_sha256": stored.inputs or None,
        "certificate": stored.certificate,
        "people_sha256": stored.people or None,
    }
    text = table(words.there(rows), numbers=False)
    return Answer(found, f"{file.name}: a plan. Nothing was spent for it.\n{text}")


@command
def verify(
    release_file: Path,
    signed_by: str | None = None,
    inputs_from: Path | None = None,
    inputs: str | None = None,
    people: str | None = None,
    allow_partial: bool = False,
    as_json: bool = False,
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
    X = ids = None
    if inputs_from is not None:
        release = releases.load(release_file)
        X = _inputs(release, inputs_from, options.names(inputs) or None)
        ids = open_ids(inputs_from, people, how=release.certificate.ids)
    checked = cloakgp.verify(release_file, signed_by=signed_by, X=X, people=ids)
    checks, unchecked = (tuple(map(in_shell_words, said)) for said in (checked.checks, checked.unchecked))
    checked = replace(checked, checks=checks, unchecked=unchecked)
    found = {"verified": checked.complete, "complete": checked.complete, **vars(checked)}
    return Answer(found, str(checked), OK if checked.complete or allow_partial else PARTIAL)


def _inputs(release: Release, table: Path, given: list[str] | None) -> Any:
    """The inputs to compare with those of a release file."""
    plan, known = release.plan, release.plan.columns
    if plan.hides_inputs:
        raise InputError("--inputs-from: this release file hides its inputs; leave it out.")
    if known is not None and given in (None, list(known.names)):
        missing = "error" if plan.rows is None or plan.rows.kept is None else "drop"
        return open_inputs(table, known.names, True, False, known, missing=missing)
    return open_inputs(table, releases.columns_in(release, given), inducing=True, dask=False)


@dataclass(frozen=True)
class Axes:
    """Options of a map."""

    coordinates: str | None = None
    geographic: bool | None = None
    outline: Path | None = None

    @property
    def named(self) -> dict[str, Any]:
        """As pictures take them."""
        return vars(self) | {"coordinates": options.names(self.coordinates) or None}


@command
def plot(
    release_file: Path,
    out: Path,
    *,
    inputs: str | None = None,
    output: str | None = None,
    noise: bool = False,
    dark: bool = False,
    labels: options.Labels,
    axes: Axes,
    formats: str | None = None,
    as_json: bool = False,
) -> Answer:
    """Draw a release: a curve, a map, or slices, by its number of input columns.

    Longitude and latitude are recognised by their names. Where nothing is known that was not known before, a
    map shows nothing. Title, units, source and date are those in the file, if they are absent.

    \b
      cloakgp plot heights.cloak --inputs age --output height -o heights.png
      cloakgp plot homes.cloak --title "House prices" --units £ --outline london.geojson -o homes.svg
      cloakgp plot homes.cloak --formats png,pdf,csv -o pictures/
    """
    folder = out.is_dir() or (formats is not None and not out.suffix and not out.exists())
    if folder:
        options.check_writable(out / release_file.stem if out.is_dir() else out)
    else:
        pictures.kind_of(out)
        options.check_writable(out, reads=[release_file])
        if formats is not None:
            raise InputError("--formats is for a folder: name one with -o, or end the file's name in .svg.")
    release = releases.load(release_file).labelled(**vars(labels))
    release = releases.named(release, options.names(inputs) or None, output)
    if noise and release.plan.function is not None:
        raise InputError("--noise draws the noise of predictions; this file holds a function.")
    shown = pictures.release_pictures(release, **axes.named)
    if noise:
        shown = iter([pictures.noise_picture(release)])
    if not folder:
        first = replace(next(shown), dark=dark)
        atomic.write(out, first.encoded(pictures.kind_of(out)))
        return Answer({"picture": str(out), "caption": first.caption}, f"picture: {out}\n{first.caption}")
    kinds = options.names(formats) or ["png"]
    for kind in kinds:
        if kind not in pictures.FORMATS:
            raise InputError(f"--formats must be of {', '.join(pictures.FORMATS)}; got {kind!r}.")
    out.mkdir(exist_ok=True)
    found, lines = [], []
    for picture in shown:
        for kind in kinds:
            if kind != "csv" or picture.numbers is not None:
                path = out / f"{release_file.stem}-{picture.name}.{kind}"
                atomic.write(path, replace(picture, dark=dark).encoded(kind))
                found.append({"picture": str(path), "caption": picture.caption})
        lines.append(f"{picture.name}: {picture.caption}")
    return Answer({"pictures": found}, "\n".join([f"{len(found)} files in {out}", *lines]))


@command
def export(
    release_file: Path,
    *,
    as_csv: bool = False,
    as_html: bool = False,
    out: Path | None = None,
    inputs: str | None = None,
    output: str | None = None,
    at: str | None = None,
    labels: options.Labels,
    axes: Axes,
    ledger: str | None = None,
    as_json: bool = False,
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
    written = out or release_file.with_suffix(".csv" if as_csv else ".html")
    if out is None and written.exists():  # a file that has the name already, perhaps the private data
        raise Refused(f"{written} exists already. Say -o {written} to replace it, or name another file.")
    options.check_writable(written, reads=[release_file, at])
    names = options.names(inputs) or None
    if as_html:
        book = None if ledger is None else Ledger(ledger)
        made = report.html(release_file, names, output, ledger=book, axes=axes.named, **vars(labels))
        atomic.write(written, made.encode())
        return Answer({"report": str(written)}, f"report: {written}")
    release = releases.named(releases.load(release_file), names)
    plan = release.plan
    if at is not None and plan.function is None:
        raise InputError("--at is for functions. For other points of this release use cloakgp predict.")
    where = releases.default_points(release)
    if at is not None:
        where = points_of(at, releases.columns_in(release, names), plan.shown_inputs, plan.columns)
    found = releases.released_table(release, where)
    tables.write_columns(written, found)
    return Answer({"table": str(written), "columns": list(found)}, f"table: {written}")
