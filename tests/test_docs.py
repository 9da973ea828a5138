"""The documentation runs: every example, every number it shows, every link."""

import contextlib
import io
import re
import runpy
from collections import Counter
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import cloakgp
from cloakgp import estimators, ledger, plots

mpl.use("Agg")

ROOT = Path(__file__).resolve().parents[1]
MADE = {"_build", "generated"}  # by `make docs`
PAGES = [ROOT / "README.md"]
PAGES += [path for path in sorted((ROOT / "docs").rglob("*.md")) if not MADE & set(path.parts)]
LEARNED_FIGURES = {
    "README.md",
    "choosing.md",
    "scale.md",
}  # which show them: of as many models as people have
NOT_RUN, BY_DEMO = "<!-- not run -->", "<!-- printed by make demo -->"
_FENCE = re.compile(r"^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _blocks(page):
    """(kind, body, words before it) of each fenced block."""
    text, end = page.read_text(encoding="utf-8"), 0
    for fence in _FENCE.finditer(text):
        yield fence["kind"], fence["body"], text[end : fence.start()]
        end = fence.end()


def _same(shown, printed):
    """Equal, but for a unit in the last digit of a number; an ellipsis at the end leaves the rest open."""
    if shown.rstrip().endswith("..."):
        shown = shown.rstrip().removesuffix("...")
        printed = printed[: len(shown)]
    assert _NUMBER.sub("#", shown).split() == _NUMBER.sub("#", printed).split()
    for one, other in zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True):
        digits, _, power = one.partition("e")
        unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2])) if "." in digits else 0.0
        assert float(one) == pytest.approx(float(other), rel=1e-9, abs=1.01 * unit)


def run(page):
    """Run a page's examples in order; a text block right after one is what it prints."""
    namespace, printed = {"__name__": "__main__"}, None
    for kind, body, before in _blocks(page):
        if kind == "python" and NOT_RUN not in before[-len(NOT_RUN) - 2 :]:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, f"{page.name}: {body.strip().splitlines()[0]}", "exec"), namespace)
            printed = out.getvalue()
        elif kind == "text" and not before.strip():
            assert printed is not None
            _same(body, printed)
    return namespace


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimators, "_fits", Counter())  # each page fits for the first time
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name == "scale.md" else []) for page in PAGES],
    ids=lambda page: page.name,
)
def test_examples_run_and_print_what_is_shown(page, request):
    if page.name not in LEARNED_FIGURES:
        request.getfixturevalue("few_models_here")
    run(page)


def test_a_wrong_number_or_a_failing_example_is_found(tmp_path):
    page = tmp_path / "page.md"
    for right, wrong in (("0.041", "0.043"), ("2.0e-05", "2.2e-05"), ("3", "4"), ("delta", "epsilon")):
        page.write_text(f"```python\nprint('is {right}')\n```\n\n```text\nis {right}\n```\n")
        run(page)
        page.write_text(f"```python\nprint('is {right}')\n```\n\n```text\nis {wrong}\n```\n")
        with pytest.raises(AssertionError):
            run(page)
    page.write_text("```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run(page)
    page.write_text(f"{NOT_RUN}\n```python\n1 / 0\n```\n")
    run(page)


def test_guarantee_by_hand_is_what_verify_finds():
    page = ROOT / "docs" / "release-file.md"
    by_hand = [body for kind, body, _ in _blocks(page) if kind == "python"][1:]
    assert not any("cloakgp" in body for body in by_hand)
    namespace = run(page)
    checked, release = cloakgp.verify("heights.cloak"), cloakgp.load("heights.cloak")
    assert namespace["delta"] == pytest.approx(checked.proven_delta, rel=1e-9)
    assert namespace["sensitivity"] == release.certificate.sensitivity_steps
    assert np.allclose(namespace["mean"], release.mean, rtol=1e-12)
    assert np.allclose(namespace["noise_std"], release.noise_std, rtol=1e-12)


def test_designs_page_shows_what_the_picture_script_prints(tmp_path, capsys):
    script = runpy.run_path(str(ROOT / "experiments" / "designs_picture.py"))
    script["main"](tmp_path / "designs.png")
    blocks = [body for kind, body, _ in _blocks(ROOT / "docs" / "designs.md") if kind == "text"]
    _same(blocks[0], capsys.readouterr().out)
    assert (tmp_path / "designs.png").stat().st_size < 150_000


def test_choosing_page_shows_what_the_attack_script_prints(capsys):
    runpy.run_path(str(ROOT / "experiments" / "attack_success.py"))["main"]()
    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    lines = [re.findall(r"([\d.]+)%", line) for line in capsys.readouterr().out.splitlines()]
    assert sum(map(bool, lines)) == 12
    for *_, rare, often, guess in filter(None, lines):
        assert f"| {rare} % | {often} % | {guess} % |" in text


def test_every_public_name_has_a_page():
    listed = set((ROOT / "docs" / "api.md").read_text(encoding="utf-8").split())
    missing = [name for name in cloakgp.__all__ if f"cloakgp.{name}" not in listed]
    assert missing == ["Ledger", "kernels", "testing"]  # listed by its home, and two modules
    assert {f"cloakgp.ledger.{name}" for name, one in vars(ledger).items() if isinstance(one, type)} <= listed
    assert {f"cloakgp.plots.{name}" for name in vars(plots) if name.startswith("plot_")} <= listed


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.name
)
def test_relative_links_lead_somewhere(page):
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    for link in links:
        target = page.parent / link.partition("#")[0]
        if not re.match(r"[a-z]+:", link) and not MADE & set(target.parts):  # `make docs` checks those
            assert target.exists(), f"{page.name} links to {link}"


def test_no_file_names_this_machine():
    places = [path for path in (ROOT, Path.home()) if len(path.parts) > 1]
    here = re.compile("|".join(rf"(?<![\w.-]){re.escape(str(path))}\b" for path in places))
    assert here.search(f"see {ROOT}/x")
    found = [path.relative_to(ROOT) for path, text in _texts() if here.search(text)]
    assert not found


def _texts():
    """The project's own text files; what .gitignore leaves out is no part of it."""
    skipped = {"__pycache__", *MADE}
    folders = ["src", "tests", "docs", "audit", "benchmarks", "experiments", ".ci", ".github"]
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    for path in [*paths, *ROOT.glob("*")]:
        if path.is_file() and not skipped & set(path.parts):
            with contextlib.suppress(UnicodeDecodeError):
                yield path, path.read_text(encoding="utf-8")
