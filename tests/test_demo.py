"""The demo: runs from an empty folder, and what it writes is what it says."""

import contextlib
import io
from pathlib import Path

import matplotlib as mpl
import pytest

import cloakgp
from cloakgp import demo
from test_docs import BY_DEMO, _blocks, _same

mpl.use("Agg")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the demo printed, in an empty folder, where its files are."""
    with contextlib.chdir(tmp_path_factory.mktemp("demo")):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            demo.main([])
        yield out.getvalue()


def test_writes_release_and_pictures_and_says_where(said):
    pictures = ["learned.png", "plan.png", "release.png", "stages.png"]
    written = sorted(path.as_posix() for path in Path("demo-output").iterdir())
    assert written == [f"demo-output/{name}" for name in ["heights.cloak", *pictures]]
    assert all(path in said for path in written)
    assert str(Path.cwd()) not in said
    assert cloakgp.verify("demo-output/heights.cloak").epsilon == demo.EPSILON
    for name in pictures:
        picture = Path(f"demo-output/{name}").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 250_000
    assert "(1, 0.0001)-differential privacy of y, unit: one row" in said
    assert "verified: (1, 0.0001)-DP" in said
    release = cloakgp.load("demo-output/heights.cloak")
    assert str(release.learned) in said
    assert demo.prediction_table(release) in said
    rule = release.plan.rule  # it knows bounds, and nothing else
    assert (rule.prior, rule.bounds) == (cloakgp.Hyperprior(), (0.0, 250.0))


def test_readme_shows_what_the_demo_prints(said):
    page = Path(__file__).parents[1] / "README.md"
    (shown,) = [body for kind, body, before in _blocks(page) if kind == "text" and BY_DEMO in before]
    start = said.index("   noise std, cm:")
    _same(shown, said[start : said.index("This library's default")])


def test_custodian_gets_one_more_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen, draw, write = [], demo.plots.plot_release, demo._write
    monkeypatch.setattr(
        demo.plots, "plot_release", lambda *args, **named: seen.append(named) or draw(*args, **named)
    )
    marked = "NOT-FOR-RELEASE"  # the other pictures are written above
    monkeypatch.setattr(
        demo, "_write", lambda drawn, path: write(drawn, path) if path.stem == marked else None
    )
    demo.main(["--custodian", "--output", "out"])
    assert {path.name for path in Path("out").iterdir()} == {"heights.cloak", f"{marked}.png"}
    assert [named.get("private_data") is None for named in seen] == [True, False]  # release.png stays public
