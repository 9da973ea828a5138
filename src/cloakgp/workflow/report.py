"""A report of a release in one HTML file: pictures, promise, settings, noise, and how to check it.

It holds no script and asks for nothing from elsewhere: it reads the same in ten years, or without a network.
Everything in it comes from the release file, so it may be published wherever that may. ``report.html`` is
what all reports have in common.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

import cloakgp
from cloakgp import plots
from cloakgp.designs import DESIGNS, LARGEST, MEAN
from cloakgp.files.labels import Labels
from cloakgp.plots.shown import source_words
from cloakgp.release.release import Release
from cloakgp.verification import Verification, verify
from cloakgp.workflow import pictures, releases, words
from cloakgp.workflow.pictures import Picture
from cloakgp.workflow.shell_words import in_shell_words

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger


def html(
    path: str | Path,
    inputs: list[str] | None = None,
    output: str | None = None,
    *,
    ledger: Ledger | None = None,
    axes: Mapping[str, Any] | None = None,
    **labels: str | None,
) -> str:
    """The report of a release file.

    Parameters
    ----------
    path : path
    inputs, output : names of the columns, optional
        For the pictures and tables; the file's own if absent, where it has them.
    ledger : Ledger, optional
        That paid: the report then says that it knows the release, and what is left of the budget.
    axes : mapping, optional
        Of a map: `coordinates`, its inputs; `geographic`, whether they are longitude and latitude; and
        `outline`, a GeoJSON file with borders.
    labels : title, units, source, date
        Words for the report; the file's own if absent.
    """
    path = Path(path)
    release, checked = releases.named(releases.load(path), inputs, output), _checked(path)
    if ledger is not None and release.receipt is not None:
        ledger.verify(releases=[path])
    plan, c, own = release.plan, release.certificate, release.labels.changed(**labels)
    columns: Any = plan.columns
    by = f"{columns.response} by {', '.join(columns.names)}"
    heading = own.title or (by if columns.response else path.stem)
    # The heading has the title, and the lead source and date: pictures need not say so again.
    bare = release.labelled(title="", units=own.units, source="", date="")
    shown = list(pictures.release_pictures(bare, **axes or {}))
    later = [one for one in shown if one.name in ("stages", "learned")]  # which do not tell what came out
    origin, fit = source_words(own), releases.model_check(release)
    insecure = "INSECURE: the noise came from a known seed. Do not publish this." if c.insecure else ""
    listed = plan.hides_inputs or releases.lists_inputs(release)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    signed = "This file has no signature, which would say who vouches for it."
    parts = {
        "lead": escape(words.lead(plan)) + (f"<br>{escape(origin)}" if origin else ""),
        "facts": _facts(release, checked),
        "insecure": _paragraph("warning", insecure),
        "pictures": "\n".join(_figure(one) for one in shown if one not in later),
        "fit": "" if fit is None else _paragraph("fits" if fit.fits else "unchecked", fit.words),
        "promised": _each("p", words.promise(c)),
        "limits": _each("li", words.limits(plan.hides_inputs, releases.lists_inputs(release), plan.unit)),
        "noise": _noise(release, own.units),
        "budget": _budget(release, ledger),
        "settings": "".join(map(_row, words.settings_rows(plan))),
        "learned": _learned(release, later),
        "numbers": _numbers(release),
        "checked": _what_was_checked(checked),
        "receipt": _receipt(release, ledger is not None),
    }
    return _fill(
        "page",
        parts,
        heading=heading,
        command=f"cloakgp verify {path.name}" + ("" if listed else " --inputs-from INPUTS.parquet"),
        digest=digest,
        signed="The file is signed." if getattr(checked, "signed_by", None) else signed,
        cite=_citation(c, own.changed(title=heading), digest),
        version=cloakgp.__version__,
        file=path.name,
        source=" but the ledger" if ledger else "",
    )


def _fill(part: str, html: Mapping[str, str] | None = None, **texts: object) -> str:
    """A part of ``report.html``, with HTML, and with texts as they are."""
    told = {name: escape(str(text)) for name, text in texts.items()}
    return Template(_parts()[part].rstrip()).substitute(html or {}, **told)


@cache
def _parts() -> dict[str, str]:
    """The parts of ``report.html`` by their names; each stands below its own."""
    text = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    _, *found = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def _checked(path: Path) -> Verification | ValueError:
    """What verifying the file found, or why it failed."""
    try:
        return verify(path)
    except ValueError as error:
        return error


def _facts(release: Release, checked: Verification | ValueError) -> str:
    c, people = release.certificate, words.counted_people(release.plan)
    verified = ("good", "verified", "checked for this report")
    if isinstance(checked, ValueError):
        verified = ("bad", "not verified", "see below")
    elif not checked.complete:
        verified = ("part", "verified in part", f"{checked.missing} not checked: see below")
    facts = [
        ("", f"ε = {c.epsilon:g}", "smaller is more private"),
        ("", f"δ = {c.delta:g}", "smaller is more private"),
        ("", f"{people or c.n_rows:,}", f"{'people' if people else 'rows'}; unit: {c.unit}"),
        verified,
    ]
    if c.before:
        pairs = "; ".join(f"ε = {epsilon:g}, δ = {delta:g}" for epsilon, delta in c.before)
        facts.append(("part", "not the total", f"earlier releases that it was given: {pairs}"))
    return "".join(_fill("fact", kind=kind, value=value, note=note) for kind, value, note in facts)


def _figure(picture: Picture) -> str:
    """A picture for wide and for narrow windows, on light and on dark paper: the browser takes one."""
    sources = {}
    for narrow, name in ((False, "wide"), (True, "narrow")):
        figure = picture.figure(narrow)
        for paper in ("", "_dark"):
            if paper:
                figure.set_layout_engine("none")  # everything stays where it is
                plots.darken(figure)
            image = pictures.image(figure, "png", 180 if narrow else 130)
            sources[name + paper] = base64.b64encode(image).decode()
    return _fill("figure", sources, caption=picture.caption)


def _noise(release: Release, units: str) -> str:
    noise, plan, c = releases.noise_of(release), release.plan, release.certificate
    unit = f"in {units}" if units else plan.outcome.unit_words("the outcome")
    rows = [["std of the privacy noise", unit, "share of the bounds' width"]]
    rows += words.noise_lines(words.noise_summary(noise, plan.rule.bounds))
    better = ""
    if not plan.alone:
        also = "; that the model had to be learned is counted" if plots.learned_settings(release) else ""
        better = f"It is what privacy adds to not knowing the curve{also}."
    elif c.design in DESIGNS and DESIGNS[c.design].objective in (MEAN, LARGEST):
        better = f"No noise that keeps the promise could have a variance more than {c.gap:.2%} lower."
    elif not c.unbiased:
        better = "The released numbers are shrunk towards the prior mean, so noise is not their whole error."
    points = "test points" if plan.function is None else "points over the inputs' range"
    return _fill("noise", {"grid": _grid(rows)}, n=len(noise), points=points, better=better)


def _budget(release: Release, ledger: Ledger | None) -> str:
    """What is left to be spent on the same people, as the ledger says."""
    if ledger is None or release.receipt is None:
        return ""
    balance = ledger.balance(release.receipt.dataset)
    budget, n, left = balance.budget, len(balance.events), balance.left_for_release()
    return _fill(
        "budget",
        epsilon=f"{budget.epsilon:g}",
        delta=f"{budget.delta:g}",
        dataset=balance.dataset,
        spends=f"{n} spend{' was' if n == 1 else 's were'}",
        left=f"{left:.3g}",
    )


def _learned(release: Release, shown: Sequence[Picture] = ()) -> str:
    """Which models hold the weight, where the model was learned; and how it came about."""
    history = _fill("history", {"pictures": "".join(map(_figure, shown))}) if shown else ""
    if not (found := releases.learned(release)):
        return history
    rows = [["kernel", *(what for what, *_ in found), "weight"]]
    models = zip(plots.learned_settings(release)[:10], *(values for *_, values in found), strict=False)
    for (one, *numbers), weight in zip(models, release.weights.tolist(), strict=False):
        rows.append([one.family, *(f"{number:.3g}" for number in numbers), f"{weight:.1%}"])
    return _fill("learned", {"grid": _grid(rows)}) + history


def _numbers(release: Release) -> str:
    columns = releases.released_table(release, releases.default_points(release))
    n = len(next(iter(columns.values())))
    picked = np.unique(np.linspace(0, n - 1, min(n, 200)).round().astype(int)).tolist()
    rows = [[name.replace("_", " ") for name in columns]]
    rows += [[_cell(values[row]) for values in columns.values()] for row in picked]
    note = f"{len(picked)} of {n} rows" if len(picked) < n else f"All {n} rows"
    meaning = "told" if release.plan.outcome.told else "direct" if release.plan.alone else "staged"
    return _fill("numbers", {"grid": _grid(rows)}, rows=note) + _fill(meaning)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, (str, bool)):
        return "" if value is None else str(value)
    return f"{value:.5g}"


def _what_was_checked(checked: Verification | ValueError) -> str:
    if isinstance(checked, ValueError):
        return _paragraph("warning", str(checked))
    # Of its receipt in a ledger, verify knows nothing but the custodian's word.
    own = [check for check in checked.checks if not check.startswith("ledger receipt")]
    found = f"<ul>{_each('li', (f'Checked: {in_shell_words(check)}.' for check in own))}</ul>"
    if checked.complete and not checked.earlier:
        return found
    left = _each("li", (f"Not checked: {in_shell_words(what)}." for what in checked.unchecked))
    return f"{found}{_paragraph('unchecked', f'{checked.headline}.')}<ul>{left}</ul>"


def _receipt(release: Release, at_hand: bool) -> str:
    if release.receipt is None:
        return ""
    told = _fill("receipt", on_record=words.on_record(release), **vars(release.receipt))
    return f"{told}\n{_fill('compared' if at_hand else 'comparable')}"


def _citation(c: Any, labels: Labels, digest: str) -> str:
    """One line that names the release and where it can be told from others."""
    said = ". ".join(part.rstrip(".") for part in (labels.source, labels.title, labels.date) if part)
    promise = f"({c.epsilon:g}, {c.delta:g})-differentially private release, unit: {c.unit}"
    return f"{said}. {promise}. Made with cloakgp {cloakgp.__version__}. SHA-256 {digest}."


def _paragraph(kind: str, text: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def _each(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _row(cells: Sequence[str]) -> str:
    return f"<tr>{_each('th', cells[:1])}{_each('td', cells[1:])}</tr>"


def _grid(rows: Sequence[Sequence[str]]) -> str:
    body = "".join(f"<tr>{_each('td', row)}</tr>" for row in rows[1:])
    return f'<div class="scroll"><table class="numbers"><tr>{_each("th", rows[0])}</tr>{body}</table></div>'
