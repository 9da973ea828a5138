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
from typing import Any

import numpy as np

import cloakgp
from cloakgp import plots
from cloakgp.files import schema
from cloakgp.measurements.staged_certificate import StagedCertificate
from cloakgp.plans.opening import AnyRelease
from cloakgp.plans.staged import StagedRelease
from cloakgp.plans.whole_rows import RowsRelease
from cloakgp.verification import Verification, verify
from cloakgp.workflow import pictures, words
from cloakgp.workflow.outcomes import bounds_of
from cloakgp.workflow.releases import (
    default_points,
    hides_inputs,
    input_names,
    known_names,
    lists_inputs,
    load,
    noise_of,
    output_name,
    released_table,
)
from cloakgp.workflow.shell_words import in_shell_words

_SHOWN = 200  # rows of the table of numbers
_MODELS = 10  # of those that were learned
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566072; --paper: #fbfaf7; --card: #ffffff;
  --line: #dcdfe4; --accent: #0b5f8f; --good: #1d7a4f; --bad: #b3261e; --part: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ec; --soft: #a2abba; --paper: #14181e;
  --card: #1c222b; --line: #333b47; --accent: #6fb9e6; --good: #67c99a; --bad: #ff8a80; --part: #f0b849; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .7rem; }
.lead { color: var(--soft); margin: 0 0 1.4rem; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.4rem 0 0; padding: 0; list-style: none; }
.facts li { flex: 1 1 9rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .7rem .9rem; }
.facts b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: .85rem; }
.good b { color: var(--good); } .bad b { color: var(--bad); } .part b { color: var(--part); }
.unchecked { color: var(--part); font-weight: 600; }
.warning { border-left: .3rem solid var(--bad); background: var(--card); padding: .7rem 1rem;
  color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0 1.6rem; }
figure img { display: block; max-width: 100%; height: auto; background: #fff; border: 1px solid var(--line);
  border-radius: .6rem; padding: .5rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .5rem; }
.promise { background: var(--card); border: 1px solid var(--line); border-left: .3rem solid var(--accent);
  border-radius: .6rem; padding: .4rem 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--soft); }
.settings th { width: 11rem; white-space: nowrap; }
.numbers td, .numbers th { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.numbers th:first-child, .numbers td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  overflow-x: auto; font-size: .88rem; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
summary { cursor: pointer; color: var(--accent); margin: .6rem 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
  padding-top: .8rem; overflow-wrap: anywhere; }
@media print { .facts li, figure, .promise { break-inside: avoid; } }
"""


def html(
    path: str | Path, inputs: list[str] | None = None, output: str | None = None, title: str | None = None
) -> str:
    """The report of a release file.

    Parameters
    ----------
    path : path
    inputs, output : names of the columns, optional
        For the pictures and tables; the file's own if absent, where it has them.
    title : str, optional
    """
    path = Path(path)
    release, checked = load(path), _checked(path)
    names = input_names(release, inputs)
    if known_names(release) is not None:
        inputs = names  # which the file has, whatever was given
    output = output_name(release, output)
    what = output or "outcome"
    heading = title or (f"{output} by {', '.join(names)}" if inputs and output else path.stem)
    body = [
        f"<h1>{escape(heading)}</h1>",
        f'<p class="lead">A Gaussian-process regression of private {_private(release)}, released under '
        "differential privacy.</p>",
        _facts(release, checked),
        _insecure(release),
        "<h2>What was released</h2>",
        *(_figure(caption, figure) for caption, figure in pictures.release_pictures(release, names, what)),
        "<h2>What is promised</h2>",
        _paragraphs("promise", words.promise(release.certificate)),
        "<h2>What is not promised</h2>",
        _list(words.limits(hides_inputs(release), lists_inputs(release), release.plan.unit)),
        "<h2>How much noise privacy took</h2>",
        _noise(release),
        "<h2>Settings</h2>",
        _table(words.settings_rows(release.plan, inputs, output), "settings"),
        _learned(release, names),
        "<h2>The numbers</h2>",
        _numbers(release, names),
        "<h2>Check it yourself</h2>",
        _how_to_verify(release, path, checked),
        f"<footer>Made with cloakgp {escape(cloakgp.__version__)} from {escape(path.name)}. "
        "Nothing in this report comes from anywhere else.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def _checked(path: Path) -> Verification | str:
    """What verifying the file found, or why it failed."""
    try:
        return verify(path)
    except ValueError as error:
        return str(error)


def _private(release: AnyRelease) -> str:
    return "inputs and outcomes" if isinstance(release, RowsRelease) else "outcomes"


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


def _figure(caption: str, figure: Any) -> str:
    data = base64.b64encode(pictures.png(figure)).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _noise(release: AnyRelease) -> str:
    noise = noise_of(release)
    summary = words.noise_summary(noise, bounds_of(release.plan))
    what = "points over the inputs' range" if release.kind == schema.FUNCTION else "test points"
    rows = [["std of the privacy noise", "in the outcome's unit", "share of the bounds' width"]]
    rows += [list(line) for line in words.noise_lines(summary)]
    c = release.certificate
    better = ""
    if isinstance(c, StagedCertificate):
        better = (
            "It is what privacy adds to not knowing the curve; that the model had to be learned is counted."
        )
    elif c.design in ("mse", "max"):
        better = f"No noise that keeps the promise could have a variance more than {c.gap:.2%} lower."
    elif not c.unbiased:
        better = "The released numbers are shrunk towards the prior mean, so noise is not their whole error."
    return f"{_grid(rows)}<p>Over {len(noise)} {what}. {better}</p>"


def _learned(release: AnyRelease, names: list[str]) -> str:
    """Which models hold the weight, where the model was learned."""
    if not isinstance(release, StagedRelease) or not (settings := plots.learned_settings(release)):
        return ""
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
        "out, learned from it at no further cost. Predictions are a mixture over them.</p>"
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
    if isinstance(release, StagedRelease):
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


def _how_to_verify(release: AnyRelease, path: Path, checked: Verification | str) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    parts = [
        "<p>The release file holds the integers that were released and all that is needed to work out the "
        "promise again. With cloakgp installed:</p>",
        f"<pre><code>{escape(_verify_command(release, path))}</code></pre>",
        f"<p>This report was made from the file with SHA-256 <code>{digest}</code>.</p>",
    ]
    if isinstance(checked, str):
        parts.append(f'<p class="warning">{escape(checked)}</p>')
    else:
        parts.append(_list(f"Checked: {in_shell_words(check)}." for check in checked.checks))
        if not checked.complete:
            parts.append(f'<p class="unchecked">{escape(checked.headline)}.</p>')
            parts.append(_list(f"Not checked: {in_shell_words(what)}." for what in checked.unchecked))
    if release.receipt is not None:
        r = release.receipt
        parts.append(
            f"<p>{words.on_record(release.kind)} entry {r.entry} of the ledger, from the budget of data set "
            f"<code>{escape(r.dataset)}</code>. The ledger's hash was then <code>{escape(r.head)}</code>.</p>"
        )
    parts.append(
        "<p>No file can show that the noise was really drawn at random. A signature says who vouches "
        "for it.</p>"
    )
    return "".join(parts)


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
