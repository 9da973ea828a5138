"""A report of a release in one HTML file: pictures, promise, settings, noise, and how to check it.

It holds no script and asks for nothing from elsewhere: it reads the same in ten years, or without a network.
Everything in it comes from the release file, so it may be published wherever that may.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cloakgp
from cloakgp import plots
from cloakgp.files import schema
from cloakgp.files.labels import Labels
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.model.outcome import REAL
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.plots.labels import outcome_of, source_words
from cloakgp.verification import Verification, verify
from cloakgp.workflow import pictures, words
from cloakgp.workflow.outcomes import bounds_of, unit_words
from cloakgp.workflow.pictures import Picture
from cloakgp.workflow.releases import (
    default_points,
    hides_inputs,
    input_names,
    known_names,
    lists_inputs,
    load,
    model_check,
    noise_of,
    output_name,
    released_table,
)
from cloakgp.workflow.report_style import STYLE
from cloakgp.workflow.shell_words import in_shell_words

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger

_SHOWN = 200  # rows of the table of numbers
_MODELS = 10  # of those that were learned
_LATER = ("stages", "learned")  # pictures that explain, and do not tell what came out
_DPI, _NARROW_DPI = 130, 180
_RECEIPT = "ledger receipt"  # of which verify knows nothing but the custodian's word
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html(
    path: str | Path,
    inputs: list[str] | None = None,
    output: str | None = None,
    title: str | None = None,
    *,
    units: str | None = None,
    source: str | None = None,
    date: str | None = None,
    ledger: Ledger | None = None,
    coordinates: Sequence[str] | None = None,
    geographic: bool | None = None,
    outline: str | Path | None = None,
) -> str:
    """The report of a release file.

    Parameters
    ----------
    path : path
    inputs, output : names of the columns, optional
        For the pictures and tables; the file's own if absent, where it has them.
    title, units, source, date : str, optional
        Words for the report; the file's own if absent.
    ledger : Ledger, optional
        That paid: the report then says that it knows the release, and what is left of the budget.
    coordinates, geographic, outline : optional
        Of a map: its inputs, whether they are longitude and latitude, and a GeoJSON file with borders.
    """
    path = Path(path)
    release, checked = load(path), _checked(path)
    if ledger is not None and release.receipt is not None:
        ledger.verify(releases=[path])
    names = input_names(release, inputs)
    if known_names(release) is not None:
        inputs = names  # which the file has, whatever was given
    output = output_name(release, output)
    what = output or "outcome"
    labels = release.labels.changed(title=title, units=units, source=source, date=date)
    heading = labels.title or (f"{output} by {', '.join(names)}" if inputs and output else path.stem)
    # The heading has the title, and the lead source and date: pictures need not say so again.
    drawn = release.labelled(title="", units=labels.units, source="", date="")
    axes: dict[str, Any] = {"coordinates": coordinates, "geographic": geographic, "outline": outline}
    shown = list(pictures.release_pictures(drawn, names, what, **axes))
    body = [
        f"<h1>{escape(heading)}</h1>",
        f'<p class="lead">{escape(words.lead(release.plan))}{_origin(labels)}</p>',
        _facts(release, checked),
        _insecure(release),
        "<h2>What was released</h2>",
        *(_figure(picture) for picture in shown if picture.name not in _LATER),
        _fit(release),
        "<h2>What is promised</h2>",
        _paragraphs("promise", words.promise(release.certificate)),
        "<h2>What is not promised</h2>",
        _list(words.limits(hides_inputs(release), lists_inputs(release), release.plan.unit)),
        "<h2>How much noise privacy took</h2>",
        _noise(release, labels.units),
        _budget(release, path, ledger),
        "<h2>Settings</h2>",
        _table(words.settings_rows(release.plan, inputs, output), "settings"),
        _learned(release, names, [picture for picture in shown if picture.name in _LATER]),
        "<h2>The numbers</h2>",
        _numbers(release, names),
        "<h2>Check it yourself</h2>",
        _how_to_verify(release, path, checked, ledger is not None),
        "<h2>How to cite it</h2>",
        _how_to_cite(release, path, labels.changed(title=heading)),
        f"<footer>Made with cloakgp {escape(cloakgp.__version__)} from {escape(path.name)}. "
        f"Nothing in this report comes from anywhere else{' but the ledger' if ledger else ''}.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def _origin(labels: Labels) -> str:
    """Source and date, if they are known."""
    said = source_words(labels)
    return f"<br>{escape(said)}" if said else ""


def _checked(path: Path) -> Verification | str:
    """What verifying the file found, or why it failed."""
    try:
        return verify(path)
    except ValueError as error:
        return str(error)


def _facts(release: AnyRelease, checked: Verification | str) -> str:
    c = release.certificate
    verified = ("good", "verified", "checked for this report")
    if isinstance(checked, str):
        verified = ("bad", "not verified", "see below")
    elif not checked.complete:
        verified = ("part", "verified in part", f"{checked.missing} not checked: see below")
    facts = [
        ("", f"ε = {c.epsilon:g}", "smaller is more private"),
        ("", f"δ = {c.delta:g}", "smaller is more private"),
        ("", *_counted(release)),
        verified,
    ]
    before = getattr(c, "before", ())
    if before:
        pairs = "; ".join(f"ε = {epsilon:g}, δ = {delta:g}" for epsilon, delta in before)
        facts.append(("part", "not the total", f"earlier releases that it was given: {pairs}"))
    items = "".join(
        f'<li class="{kind}"><b>{escape(value)}</b><span>{escape(note)}</span></li>'
        for kind, value, note in facts
    )
    return f'<ul class="facts">{items}</ul>'


def _counted(release: AnyRelease) -> tuple[str, str]:
    """How many there are, and the unit of protection."""
    unit = f"unit: {release.certificate.unit}"
    if isinstance(release, RowsRelease) and release.plan.rule.population.max_rows is not None:
        return f"{release.plan.rule.population.size:,}", f"people; {unit}"
    return f"{release.certificate.n_rows:,}", f"rows; {unit}"


def _insecure(release: AnyRelease) -> str:
    if not release.certificate.insecure:
        return ""
    return '<p class="warning">INSECURE: the noise came from a known seed. Do not publish this.</p>'


def _figure(picture: Picture) -> str:
    """A picture for wide and for narrow windows, on light and on dark paper: the browser takes one."""
    sources = {}
    for narrow in (False, True):
        figure = picture.figure(narrow)
        for dark in (False, True):
            if dark:
                figure.set_layout_engine("none")  # everything stays where it is
                plots.darken(figure)
            data = base64.b64encode(pictures.png(figure, _NARROW_DPI if narrow else _DPI)).decode()
            sources[narrow, dark] = f"data:image/png;base64,{data}"
    narrow_window, dark_paper = "(max-width: 34rem)", "(prefers-color-scheme: dark)"
    return (
        "<figure><picture>"
        f'<source media="{narrow_window} and {dark_paper}" srcset="{sources[True, True]}">'
        f'<source media="{narrow_window}" srcset="{sources[True, False]}">'
        f'<source media="{dark_paper}" srcset="{sources[False, True]}">'
        f'<img alt="{escape(picture.caption)}" src="{sources[False, False]}"></picture>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _fit(release: AnyRelease) -> str:
    """Whether the model fits what came out."""
    found = model_check(release)
    if found is None:
        return ""
    return f'<p class="{"fits" if found.fits else "unchecked"}">{escape(found.words)}</p>'


def _noise(release: AnyRelease, units: str) -> str:
    noise = noise_of(release)
    summary = words.noise_summary(noise, bounds_of(release.plan))
    what = "points over the inputs' range" if release.kind == schema.FUNCTION else "test points"
    unit = f"in {units}" if units else unit_words(outcome_of(release.plan), "the outcome")
    rows = [["std of the privacy noise", unit, "share of the bounds' width"]]
    rows += [list(line) for line in words.noise_lines(summary)]
    c = release.certificate
    better = ""
    if isinstance(c, StagedCertificate):
        learned = isinstance(release, StagedRelease) and plots.learned_settings(release)
        also = "; that the model had to be learned is counted" if learned else ""
        better = f"It is what privacy adds to not knowing the curve{also}."
    elif c.design in ("mse", "max"):
        better = f"No noise that keeps the promise could have a variance more than {c.gap:.2%} lower."
    elif not c.unbiased:
        better = "The released numbers are shrunk towards the prior mean, so noise is not their whole error."
    return f"{_grid(rows)}<p>Over {len(noise)} {what}. {better}</p>"


def _budget(release: AnyRelease, path: Path, ledger: Ledger | None) -> str:
    """What is left to be spent on the same people, as the ledger says."""
    if ledger is None or release.receipt is None:
        return ""
    balance = ledger.balance(release.receipt.dataset)
    budget = balance.budget
    return (
        f"<h2>What is left of the budget</h2><p>Of (ε = {budget.epsilon:g}, δ = {budget.delta:g}) for data "
        f"set <code>{escape(balance.dataset)}</code>, {len(balance.events)} "
        f"spend{' was' if len(balance.events) == 1 else 's were'} made. One more release may have ε up to "
        f"{balance.left_for_release():.3g} at this δ.</p>"
    )


def _learned(release: AnyRelease, names: list[str], shown: Sequence[Picture] = ()) -> str:
    """Which models hold the weight, where the model was learned; and how it came about."""
    drawn = "".join(_figure(picture) for picture in shown)
    more = f"<details><summary>How it came about</summary>{drawn}</details>" if drawn else ""
    if not isinstance(release, StagedRelease) or not (settings := plots.learned_settings(release)):
        return more
    best = settings[0]
    lengths = [
        f"lengthscale of {names[column]}" if len(names) > 1 else "lengthscale" for column in best.numeric
    ]
    shares = [f"share of {part}" for part in best.parts(names)]
    rows = [["kernel", *lengths, *shares, "signal std", "noise std", "weight"]]
    for one, weight in zip(settings, release.weights.tolist(), strict=True):
        numbers = (*one.lengthscale, *one.shares, one.signal**0.5, one.noise**0.5)
        rows.append([one.family, *(f"{number:.3g}" for number in numbers), f"{weight:.1%}"])
    return (
        f"<h2>What was learned</h2>{_grid(rows[: _MODELS + 1])}<p>The models that explain best what came "
        f"out, learned from it at no further cost. Predictions are a mixture over them.</p>{more}"
    )


def _numbers(release: AnyRelease, names: list[str]) -> str:
    columns = released_table(release, names, default_points(release))
    n = len(next(iter(columns.values())))
    picked = np.unique(np.linspace(0, n - 1, min(n, _SHOWN)).round().astype(int))
    rows = [[name.replace("_", " ") for name in columns]]
    rows += [[_cell(values[row]) for values in columns.values()] for row in picked.tolist()]
    note = f"{len(picked)} of {n} rows" if len(picked) < n else f"All {n} rows"
    meaning = (
        "<code>released</code> is what came out, with privacy noise of std <code>noise std</code>. "
        "<code>denoised</code> is the best estimate from it under the model; it cost no more privacy."
    )
    if outcome_of(release.plan) != REAL:
        meaning = (
            "The best estimate from all that came out, with its std and the ends of its 95 % interval. What "
            "privacy adds to not knowing it is <code>noise std</code>."
        )
    elif isinstance(release, StagedRelease):
        meaning = (
            "<code>released</code> and <code>denoised</code> are the same here: the best estimate from all "
            "that came out. It is uncertain by <code>denoised std</code> in all, of which privacy's part is "
            "<code>noise std</code>."
        )
    return f"<details><summary>{note}</summary>{_grid(rows)}</details><p>{meaning}</p>"


def _cell(value: Any) -> str:
    if value is None or isinstance(value, (str, bool)):
        return "" if value is None else str(value)
    return f"{value:.5g}"


def _how_to_verify(release: AnyRelease, path: Path, checked: Verification | str, at_hand: bool) -> str:
    parts = [
        "<p>The release file holds the integers that were released and all that is needed to work out the "
        "promise again. With cloakgp installed:</p>",
        f"<pre><code>{escape(_verify_command(release, path))}</code></pre>",
        f"<p>This report was made from the file with SHA-256 <code>{_digest(path)}</code>.</p>",
    ]
    if isinstance(checked, str):
        parts.append(f'<p class="warning">{escape(checked)}</p>')
    else:
        own = [check for check in checked.checks if not check.startswith(_RECEIPT)]
        parts.append(_list(f"Checked: {in_shell_words(check)}." for check in own))
        if not checked.complete or checked.earlier:
            parts.append(f'<p class="unchecked">{escape(checked.headline)}.</p>')
            parts.append(_list(f"Not checked: {in_shell_words(what)}." for what in checked.unchecked))
    if release.receipt is not None:
        r = release.receipt
        compared = (
            "It was compared with the ledger for this report."
            if at_hand
            else "Whoever has the ledger can compare: <code>cloakgp ledger verify --release</code>."
        )
        parts.append(
            f"<p>{words.on_record(release.kind)} entry {r.entry} of the ledger, from the budget of data set "
            f"<code>{escape(r.dataset)}</code>. The ledger's hash was then <code>{escape(r.head)}</code>. "
            f"{compared}</p>"
        )
    signed = not isinstance(checked, str) and checked.signed_by is not None
    who = (
        "The file is signed." if signed else "This file has no signature, which would say who vouches for it."
    )
    parts.append(f"<p>No file can show that the noise was really drawn at random. {who}</p>")
    return "".join(parts)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _how_to_cite(release: AnyRelease, path: Path, labels: Labels) -> str:
    """One line that names the release and where it can be told from others."""
    c = release.certificate
    parts = [labels.source, labels.title, labels.date]
    said = ". ".join(part.rstrip(".") for part in parts if part)
    promise = f"({c.epsilon:g}, {c.delta:g})-differentially private release, unit: {c.unit}"
    line = f"{said}. {promise}. Made with cloakgp {cloakgp.__version__}. SHA-256 {_digest(path)}."
    return f'<p class="cite">{escape(line)}</p>'


def _verify_command(release: AnyRelease, path: Path) -> str:
    command = f"cloakgp verify {path.name}"
    if lists_inputs(release) or hides_inputs(release):
        return command
    return f"{command} --inputs-from INPUTS.parquet"


def _paragraphs(kind: str, sentences: Sequence[str]) -> str:
    return f'<div class="{kind}">{"".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)}</div>'


def _list(entries: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(entry)}</li>' for entry in entries)}</ul>"


def _table(rows: Sequence[tuple[str, str]], kind: str) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<table class="{kind}">{body}</table>'


def _grid(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f'<div class="scroll"><table class="numbers"><tr>{head}</tr>{body}</table></div>'
