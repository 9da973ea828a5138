"""The report and its pictures: for every kind of release, whole, and from nowhere else."""

import base64
import re
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import cloakgp
from cloakgp.app.learned import learned_tables
from cloakgp.errors import InputError
from cloakgp.kernels import EQ
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.unit import UNITS
from cloakgp.workflow import pictures, report, words

pytestmark = pytest.mark.usefixtures("few_models")

GP = cloakgp.GP(EQ(3.0, variance=1.0), noise=0.5, bounds=(0.0, 4.0))
LEARNING = cloakgp.AutoGP(bounds=(0.0, 4.0), stages=2)
PROMISE = {"epsilon": 1.0, "delta": 0.01}


def inputs(columns):
    return np.random.default_rng(columns).uniform(0, 9, size=(25, columns))


NAMES = (
    "curve",
    "map",
    "map on a line",
    "four inputs",
    "eight inputs",
    "custom kernel",
    "function",
    "function of two",
    "hidden",
    "hidden, two",
    "learned",
    "learned, two",
    "learned, four",
    "after another",
)


@cache
def releases():
    """One of each kind, by name."""
    line = np.column_stack([np.arange(5.0), np.arange(5.0)])
    made = {
        "curve": GP.plan(inputs(1), X_star=inputs(1)[:6], **PROMISE),
        "map": GP.plan(inputs(2), X_star=inputs(2)[:6], **PROMISE),
        "map on a line": GP.plan(inputs(2), X_star=line, design="posterior", **PROMISE),
        "four inputs": GP.plan(inputs(4), X_star=inputs(4)[:6], **PROMISE),
        "eight inputs": GP.plan(inputs(8), X_star=inputs(8)[:6], **PROMISE),
        "custom kernel": cloakgp.GP(
            lambda X, Z: np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1)), 0.5, (0, 4)
        ).plan(inputs(3), X_star=inputs(3)[:6], **PROMISE),
        "function": GP.plan_function(inputs(1), **PROMISE),
        "function of two": GP.plan_function(inputs(2), **PROMISE),
        "hidden": GP.plan_function(inputs(1), bound="input-free", basis=np.arange(0.0, 9.0, 3.0), **PROMISE),
        "hidden, two": GP.plan_function(inputs(2), bound="input-free", basis=inputs(2)[:5], **PROMISE),
        "learned": LEARNING.plan(inputs(1), X_star=inputs(1)[:6], **PROMISE),
        "learned, two": LEARNING.plan(inputs(2), X_star=inputs(2)[:6], **PROMISE),
        "learned, four": LEARNING.plan(inputs(4), X_star=inputs(4)[:6], **PROMISE),
    }
    found = {name: plan.release(np.ones(25)) for name, plan in made.items()}
    after = GP.plan(inputs(1), X_star=inputs(1)[:6], given=[found["curve"]], **PROMISE)
    found["after another"] = after.release(np.ones(25))
    assert tuple(found) == NAMES
    return found


class Reader(HTMLParser):
    """Which tags are open, and what is asked for from elsewhere."""

    VOID = ("meta", "img", "source", "br")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def sketched(monkeypatch):
    """Pictures are drawn, but not rendered, which takes most of the time."""
    monkeypatch.setattr(pictures, "png", lambda figure, dpi=130: b"\x89PNG")


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_whole_and_asks_for_nothing(name, tmp_path, request):
    path = tmp_path / "a.cloak"
    if name not in ("map", "learned"):
        request.getfixturevalue("sketched")
    releases()[name].save(path)
    text = report.html(path)
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert not reader.tags & {"script", "link", "iframe", "object", "form"}
    assert reader.links
    for link in reader.links:
        kind, _, data = link.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src &#x27;none&#x27;" in text
    assert "prefers-color-scheme: dark" in text
    for sentence in words.promise(releases()[name].certificate):
        assert sentence.replace("'", "&#x27;") in text
    assert "cloakgp verify a.cloak" in text
    if name == "learned":
        assert text == report.html(path)  # nothing in it depends on when it was made


def test_every_window_has_its_picture_and_the_map_comes_first(tmp_path, monkeypatch):
    """Wide and narrow, on light and dark paper."""
    drawn = []

    def png(figure, dpi=130):
        drawn.append((figure.get_figwidth(), sum(figure.get_facecolor()[:3]) < 1))
        return b"\x89PNG"

    monkeypatch.setattr(pictures, "png", png)
    releases()["map"].save(tmp_path / "a.cloak")
    text = report.html(tmp_path / "a.cloak", ["lat", "lon"], "price")
    widths = [width for width, dark in drawn]
    assert [dark for width, dark in drawn] == [False, True] * (len(drawn) // 2)
    assert all(wide > 1.5 * narrow for wide, narrow in zip(widths[0::4], widths[2::4], strict=True))
    assert text.count("<source media=") == 3 * text.count("<figure>") == 3 * len(drawn) // 4
    assert [text.index(word) for word in ("Colour: ", "How uncertain", "Where privacy")] == sorted(
        text.index(word) for word in ("Colour: ", "How uncertain", "Where privacy")
    )


@pytest.mark.usefixtures("sketched")
def test_words_of_the_custodian_the_budget_and_how_to_cite(tmp_path):
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path}/a.db")
    ledger.create("kung", epsilon=2.0, delta=0.1)
    release = releases()["curve"].plan.release(np.ones(25), ledger=ledger, dataset="kung")
    path = tmp_path / "a.cloak"
    release.labelled(title="Heights", units="cm", source="Howell", date="1967").save(path)
    text = report.html(path, ledger=ledger)
    left = ledger.balance("kung").left_for_release()
    assert f"ε up to {left:.3g} at this δ" in text
    assert "compared with the ledger for this report" in text
    assert "Howell. Heights. 1967. (1, 0.01)-differentially private release" in text
    for said in ("<h1>Heights</h1>", "Source: Howell, 1967", "<th>in cm</th>", "no signature"):
        assert said in text
    alone = report.html(path, title="Other")
    assert "<h1>Other</h1>" in alone
    assert "left of the budget" not in alone
    assert "Whoever has the ledger can compare" in alone


@pytest.mark.usefixtures("sketched")
def test_probabilities_are_told_as_such_and_stay_between_0_and_1(tmp_path):
    X = inputs(1)
    plan = cloakgp.AutoGP(outcome="yes/no", stages=2).plan({"age": X[:, 0]}, **PROMISE)
    release = plan.release(X[:, 0] > 4)
    release.save(tmp_path / "a.cloak")
    text = report.html(tmp_path / "a.cloak")
    for said in ("Probabilities of a yes", "the probability of yes", "yes or no, told as"):
        assert said in text
    (picture, *_) = pictures.release_pictures(release, ["age"], "outcome")
    (ax,) = picture.figure().axes
    assert ax.get_ylim() == (0.0, 1.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0 %", "25 %", "50 %", "75 %", "100 %"]
    assert ax.get_ylabel() == "probability of yes"
    table = picture.numbers()
    low, high = release.interval(np.asarray(table["age"])[:, None]).T
    np.testing.assert_allclose([table["lower"], table["upper"]], [low, high])
    assert (low > 0).all()
    assert (high < 1).all()


@pytest.mark.parametrize("kind", ["svg", "pdf", "csv"])
def test_pictures_are_written_as_any_kind(kind):
    (picture, *_) = pictures.release_pictures(releases()["curve"], ["age"], "height")
    written = picture.encoded(kind)
    start = {"svg": b"<?xml", "pdf": b"%PDF", "csv": b"age,mean,std,lower,upper"}[kind]
    assert written.startswith(start)
    assert written == picture.encoded(kind)


@pytest.mark.parametrize(("name", "figures"), [("learned", 3), ("learned, two", 5), ("learned, four", 2)])
@pytest.mark.usefixtures("sketched")
def test_what_was_learned_is_told_and_drawn(name, figures, tmp_path):
    release = releases()[name]
    release.save(tmp_path / "a.cloak")
    names = [f"<{i}>" for i in range(release.plan.X.shape[1])]
    text = report.html(tmp_path / "a.cloak", names, "height")
    assert text.count("<figure>") == figures
    assert "<h2>What was learned</h2>" in text
    best, weight = release.settings[0], release.weights[0]
    row = "".join(f"<td>{x:.3g}</td>" for x in (*best.lengthscale, best.signal**0.5, best.noise**0.5))
    assert f"<td>{best.family}</td>{row}<td>{weight:.1%}</td>" in text
    assert "verified</b>" in text
    assert "2, under one promise" in text
    (least,) = re.findall(r"<td>smallest</td><td>([0-9.e+-]+)</td>", text)
    assert float(least) == pytest.approx(release.noise_std.min(), rel=1e-3)  # not that of the plan


@pytest.mark.usefixtures("sketched")
def test_nothing_is_said_to_be_learned_of_a_model_that_was_known(tmp_path):
    releases()["after another"].save(tmp_path / "a.cloak")
    text = report.html(tmp_path / "a.cloak")
    assert "What was learned" not in text
    assert "1 earlier release(s) of the same outcomes" in text
    assert repr(GP.kernel) in text


@pytest.mark.usefixtures("sketched")
def test_names_and_titles_are_escaped(tmp_path):
    path = tmp_path / "<a>.cloak"
    releases()["curve"].save(path)
    text = report.html(path, ["<script>x"], "<b>&", "<i>")
    assert "<script>" not in text
    assert "&lt;script&gt;x" in text
    assert "&lt;i&gt;" in text
    with pytest.raises(InputError, match="1 input column"):
        report.html(path, ["a", "b"])


@pytest.mark.usefixtures("sketched")
def test_a_receipt_and_a_failed_check_are_told(tmp_path, tamper):
    release = releases()["curve"]
    path = tmp_path / "a.cloak"
    cloakgp.Release(release.plan, release.z, Receipt("kung", 3, "ab" * 32)).save(path)
    assert "entry 3" in report.html(path)

    def lie(manifest, arrays):
        manifest["certificate"]["epsilon"] = 0.5

    tamper(path, lie)
    text = report.html(path)
    assert "not verified" in text
    assert "do not trust this release file" in text


@pytest.mark.usefixtures("sketched")
def test_a_part_is_not_shown_as_the_whole(tmp_path):
    """Amber, never green, and with what was not checked."""
    plan = releases()["curve"].plan
    hidden = plan.gp.plan_function(plan.X, epsilon=1.0, delta=0.01, bound="input-free", basis=plan.X_star)
    hidden.release(np.ones(len(plan.X))).save(tmp_path / "hidden.cloak")
    text = report.html(tmp_path / "hidden.cloak")
    assert '<li class="part"><b>verified in part</b>' in text
    assert "Not checked: the sensitivity: the matrix is withheld" in text
    assert '<li class="good">' not in text
    releases()["curve"].save(tmp_path / "whole.cloak")
    text = report.html(tmp_path / "whole.cloak")
    assert '<li class="good"><b>verified</b>' in text
    assert "Not checked" not in text


@pytest.mark.usefixtures("sketched")
def test_an_insecure_release_is_marked(tmp_path, seeded):
    with seeded(1):
        for name in ("curve", "four inputs", "learned"):
            release = releases()[name].plan.release(np.ones(25))
            release.save(tmp_path / "a.cloak")
            assert "INSECURE" in report.html(tmp_path / "a.cloak")


@pytest.mark.parametrize("name", ["curve", "map", "map on a line", "four inputs", "learned", "learned, two"])
def test_plans_are_drawn_whatever_their_inputs(name):
    plan = releases()[name].plan
    figure = pictures.noise_picture(plan, [f"x{i}" for i in range(plan.X.shape[1])], "height")
    assert pictures.png(figure).startswith(b"\x89PNG")


def test_the_chance_of_a_right_guess_is_that_of_the_noise():
    certificate = releases()["curve"].certificate
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
    assert "protected less" not in left


def test_shares_of_categories_are_told_by_name():
    X = np.column_stack([np.linspace(20, 60, 30), np.arange(30.0) % 3])
    plan = cloakgp.AutoGP((0, 10), categories=[1], stages=2).plan(X, epsilon=1.0, delta=0.01)
    release = plan.release(X[:, 1])
    table = report._learned(release, ["age", "town"])
    for title in ("lengthscale of age", "share of numbers", "share of town", "share of together"):
        assert title in table
    assert "lengthscale of town" not in table
    rows = learned_tables(release, ["age", "town"], "wage")["learned"]
    shares = [row for row in rows if row["what"].startswith("share of ")]
    assert [row["what"] for row in shares] == ["share of numbers", "share of town", "share of together"]
    assert all(0 < row["low"] <= row["high"] < 1 for row in shares)
