"""The report and its pictures: for every kind of release, whole, and from nowhere else."""

import base64
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import cloakgp
from cloakgp import plots
from cloakgp.app.reader import learned_tables
from cloakgp.core.errors import InputError
from cloakgp.kernels import EQ
from cloakgp.ledger.chain import Receipt
from cloakgp.measure.unit import UNITS
from cloakgp.workflow import pictures, releases, report, words

pytestmark = pytest.mark.usefixtures("few_models")

GP = cloakgp.GP(EQ(3.0, variance=1.0), noise=0.5, bounds=(0.0, 4.0))
LEARNING = cloakgp.AutoGP(bounds=(0.0, 4.0), stages=2)
PROMISE = {"epsilon": 1.0, "delta": 0.01}


def inputs(columns):
    return np.random.default_rng(columns).uniform(0, 9, size=(25, columns))


def of(gp, columns, **options):
    return lambda: gp.plan(inputs(columns), **{"X_star": inputs(columns)[:6], **PROMISE, **options})


def function(columns, **options):
    return lambda: GP.plan_function(inputs(columns), **PROMISE, **options)


CUSTOM = cloakgp.GP(lambda X, Z: np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1)), 0.5, (0, 4))
HIDDEN = {"bound": "input-free"}
PLANS = {
    "curve": of(GP, 1),
    "map": of(GP, 2),
    "map on a line": of(GP, 2, X_star=np.column_stack([np.arange(5.0)] * 2), design="posterior"),
    "eight inputs": of(GP, 8),
    "custom kernel": of(CUSTOM, 3),
    "function of two": function(2),
    "hidden": function(1, basis=np.arange(0.0, 9.0, 3.0), **HIDDEN),
    "learned": of(LEARNING, 1),
    "learned, two": of(LEARNING, 2),
    "after another": lambda: of(GP, 1, given=[release_of("curve")])(),
}


@cache
def release_of(name):
    """One of each kind."""
    return PLANS[name]().release(np.ones(25))


@pytest.fixture
def page(tmp_path):
    """The report of a release, named or given."""

    def write(release, *columns, **options):
        path = tmp_path / "a.cloak"
        (release_of(release) if isinstance(release, str) else release).save(path)
        return report.html(path, *columns, **options)

    return write


class Reader(HTMLParser):
    """Which tags are open, and what is asked for from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        if tag not in ("meta", "img", "source", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def sketched(monkeypatch):
    """Pictures are drawn, but not rendered, which takes most of the time."""
    monkeypatch.setattr(pictures, "image", lambda *figure: b"\x89PNG")


@pytest.mark.parametrize("name", PLANS)
def test_a_report_is_whole_and_asks_for_nothing(name, page, request):
    if name != "learned":
        request.getfixturevalue("sketched")
    text, reader = page(name), Reader()
    reader.feed(text)
    assert reader.open == []
    assert not reader.tags & {"script", "link", "iframe", "object", "form"}
    assert reader.links
    for link in reader.links:
        kind, _, data = link.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert not re.search(r"url\(|@import|https?:|\$[a-z]", text)
    for said in ("default-src &#x27;none&#x27;", "prefers-color-scheme: dark", "cloakgp verify a.cloak"):
        assert said in text
    for sentence in words.promise(release_of(name).certificate):
        assert sentence.replace("'", "&#x27;") in text
    if name == "learned":
        assert text == page(name)  # nothing in it depends on when it was made


@pytest.mark.usefixtures("sketched")
def test_words_of_the_custodian_the_budget_and_how_to_cite(tmp_path, page):
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/a.db")
    ledger.create("kung", epsilon=2.0, delta=0.1)
    release = release_of("curve").plan.release(np.ones(25), ledger=ledger, dataset="kung")
    release = release.labelled(title="Heights", units="cm", source="Howell", date="1967")
    text = page(release, ledger=ledger)
    left = ledger.balance("kung").left_for_release()
    for said in (
        f"ε up to {left:.3g} at this δ",
        "compared with the ledger for this report",
        "Howell. Heights. 1967. (1, 0.01)-differentially private release",
        *("<h1>Heights</h1>", "Source: Howell, 1967", "<th>in cm</th>", "no signature"),
    ):
        assert said in text
    alone = page(release, title="Other")
    assert "<h1>Other</h1>" in alone
    assert "left of the budget" not in alone
    assert "Whoever has the ledger can compare" in alone


@pytest.mark.usefixtures("sketched")
def test_probabilities_are_told_as_such_and_stay_between_0_and_1(page):
    X = inputs(1)
    plan = cloakgp.AutoGP(outcome="yes/no", stages=2).plan({"age": X[:, 0]}, **PROMISE)
    release = plan.release(X[:, 0] > 4)
    text = page(release)
    for said in ("Probabilities of a yes", "the probability of yes", "yes or no, told as"):
        assert said in text
    (picture, *_) = pictures.release_pictures(release)
    assert picture.figure().axes[0].get_ylabel() == "probability of yes"
    table = picture.numbers()
    ends = release.interval(np.asarray(table["age"])[:, None]).T
    np.testing.assert_allclose([table["lower"], table["upper"]], ends)
    assert ((ends > 0) & (ends < 1)).all()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    for module in ("matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    (picture, *_) = pictures.release_pictures(release_of("curve"))
    for draw in (picture.figure, lambda: plots.plot_plan(release_of("curve").plan)):
        with pytest.raises(ImportError, match=r"cloakgp\[plots\]"):
            draw()


@pytest.mark.parametrize(("name", "figures"), [("learned", 3), ("learned, two", 5)])
@pytest.mark.usefixtures("sketched")
def test_what_was_learned_is_told_and_drawn(name, figures, page):
    release = release_of(name)
    text = page(name, [f"<{i}>" for i in range(release.plan.X.shape[1])], "height")
    assert text.count("<figure>") == figures
    best, weight = release.settings[0], release.weights[0]
    row = "".join(f"<td>{x:.3g}</td>" for x in (best.signal**0.5, *best.lengthscale, best.noise**0.5))
    for said in (
        f"<td>{best.family}</td>{row}<td>{weight:.1%}</td>",
        *("<h2>What was learned</h2>", "verified</b>", "3, under one promise"),
    ):
        assert said in text
    (least,) = re.findall(r"<td>smallest</td><td>([0-9.e+-]+)</td>", text)
    assert float(least) == pytest.approx(release.noise_std.min(), rel=1e-3)  # not that of the plan


@pytest.mark.usefixtures("sketched")
def test_what_does_not_hold_is_not_said(page, seeded):
    """A known model learns nothing; a part is not shown as the whole; an insecure release is marked."""
    text = page("after another")
    assert "What was learned" not in text
    assert "1 earlier release(s) of the same outcomes" in text
    assert repr(GP.kernel) in text
    part, whole = page("hidden"), page("curve")
    assert '<li class="part"><b>verified in part</b>' in part
    assert "Not checked: the sensitivity: the matrix is withheld" in part
    assert '<li class="good"><b>verified</b>' in whole
    assert '<li class="good">' not in part
    assert "Not checked" not in whole
    with seeded(1):
        for name in ("curve", "eight inputs", "learned"):
            assert "INSECURE" in page(release_of(name).plan.release(np.ones(25)))


@pytest.mark.usefixtures("sketched")
def test_names_and_titles_are_escaped(tmp_path):
    path = tmp_path / "<a>.cloak"
    release_of("curve").save(path)
    text = report.html(path, ["<script>x"], "<b>&", title="<i>")
    assert "<script>" not in text
    assert "&lt;script&gt;x" in text
    assert "&lt;i&gt;" in text
    with pytest.raises(InputError, match="1 input column"):
        report.html(path, ["a", "b"])


@pytest.mark.usefixtures("sketched")
def test_a_receipt_and_a_failed_check_are_told(tmp_path, page, tamper):
    assert "entry 3" in page(replace(release_of("curve"), receipt=Receipt("kung", 3, "ab" * 32)))
    tamper(tmp_path / "a.cloak", lambda manifest, arrays: manifest["certificate"].update(epsilon=0.5))
    text = report.html(tmp_path / "a.cloak")
    assert "not verified" in text
    assert "do not trust this release file" in text


def test_the_chance_of_a_right_guess_is_that_of_the_noise():
    certificate = release_of("curve").certificate
    said = float(re.search(r"at most ([0-9.]+) %", words.promise(certificate)[1])[1])
    rng = np.random.default_rng(0)
    z = rng.normal(size=200_000)
    guessed = (np.mean(z < certificate.mu / 2) + np.mean(z + certificate.mu > certificate.mu / 2)) / 2
    assert said == pytest.approx(100 * guessed, abs=0.4)
    assert said >= 100 * guessed - 0.3


@pytest.mark.parametrize("unit", UNITS)
def test_the_words_are_about_the_unit(unit):
    certificate = SimpleNamespace(unit=unit, insecure=False, mu=0.5, epsilon=1.0, delta=1e-3, delta_slack=0.0)
    promised, left = " ".join(words.promise(certificate)), " ".join(words.limits(unit=unit))
    people, hidden = "person" in unit, "whole" in unit
    assert ("one person" in promised) == people
    assert ("inputs and outcome" in promised) == hidden
    assert ("The inputs are public" in left) == (not hidden)
    assert ("is not protected with all of them" in left) == (not people)
    assert ("names the column of people" in left) == (not people)


@pytest.mark.usefixtures("sketched")
def test_shares_of_categories_are_told_by_name(page):
    X = np.column_stack([np.linspace(20, 60, 30), np.arange(30.0) % 3])
    plan = cloakgp.AutoGP((0, 10), categories=[1], stages=2).plan(X, epsilon=1.0, delta=0.01)
    release = plan.release(X[:, 1])
    text = page(release, ["age", "town"])
    for title in ("lengthscale of age", "share of numbers", "share of town", "share of together"):
        assert title in text
    assert "lengthscale of town" not in text
    rows = learned_tables(releases.named(release, ["age", "town"], "wage"))["learned"]
    shares = [row for row in rows if row["what"].startswith("share of ")]
    assert [row["what"] for row in shares] == ["share of numbers", "share of town", "share of together"]
    assert all(0 < row["low"] <= row["high"] < 1 for row in shares)
