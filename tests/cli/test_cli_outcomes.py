"""Outcomes that are yes or no, or counts: an option says so, and they are told as probabilities and rates."""

import re
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import good, run

from cloakgp.workflow.plan_file import read_plan_file

ASKED = "plan visits.csv --inputs age --output ill --epsilon 5 --stages 2 --at grid:4"


def write_visits(words=("no", "yes"), path="visits.csv"):
    rng = np.random.default_rng(2)
    ages = rng.uniform(20, 80, 40).round(1)
    said = [words[int(rng.uniform() < age / 100)] for age in ages]
    Path(path).write_text("\n".join(["age,ill", *(f"{a},{s}" for a, s in zip(ages, said, strict=True))]))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """By words of their own, which the plan keeps."""
    folder = tmp_path_factory.mktemp("visits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_visits(("well", "ill"))
        good(f"{ASKED} --classes well,ill -o plan.json")
        good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    return folder


@pytest.fixture
def here(released, monkeypatch):
    monkeypatch.chdir(released)


@pytest.mark.usefixtures("here")
def test_answers_are_told_as_probabilities():
    settings = read_plan_file("plan.json")[1]
    assert (settings.outcome, settings.classes, settings.bounds) == ("yes/no", ("well", "ill"), (0.0, 1.0))
    assert type(settings).from_dict(settings.to_dict()).to_dict() == settings.to_dict()
    assert "probability of yes; 'ill' is yes, and 'well' is no" in good("show plan.json").out
    shown = good("show visits.cloak")
    assert "probability of yes" in shown.out
    assert "as a probability" in shown.out
    for line in ("predict visits.cloak grid:3 --json", "export visits.cloak --csv -o table.csv --json"):
        good(line)
    found = good("predict visits.cloak grid:3 --json").data["columns"]
    assert list(found) == ["age", "probability_well", "probability_ill", "std", "lower", "upper"]
    _, no, yes, _, lower, upper = map(np.array, found.values())
    assert np.allclose(no + yes, 1)
    assert ((lower > 0) & (lower < yes) & (yes < upper) & (upper < 1)).all()
    assert Path("table.csv").read_text().splitlines()[0].split(",")[1:3] == list(found)[1:3]
    assert run("predict visits.cloak grid:3 --include-noise").code == 2


def test_several_classes_are_told_as_the_probability_of_each():
    write_visits(("bus", "train"))
    good(f"{ASKED} --classes car,bus,train -o plan.json")
    assert "told as their probabilities: car, bus, train" in good("show plan.json").out
    good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    assert "told as their probabilities: car, bus, train" in good("show visits.cloak").out
    found = good("predict visits.cloak grid:2 --json").data["columns"]
    names = ("probability", "std", "lower", "upper")
    assert list(found) == ["age", *(f"{name}_{one}" for one in ("car", "bus", "train") for name in names)]
    chances = np.array([found[f"probability_{one}"] for one in ("car", "bus", "train")])
    assert np.allclose(chances.sum(axis=0), 1)
    good("export visits.cloak --csv -o table.csv")
    header = Path("table.csv").read_text().splitlines()[0].split(",")
    assert header == [*found, *(f"noise_std_{one}" for one in ("car", "bus", "train"))]


def test_counts_are_told_as_rates():
    write_visits(("0", "3"))
    planned = good(f"{ASKED} --outcome count --bounds 0 20 -o plan.json")
    assert "as a rate" in planned.out
    good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    found = good("predict visits.cloak grid:3 --json").data["columns"]
    assert list(found) == ["age", "rate", "std", "lower", "upper"]
    assert min(found["lower"]) > 0


KNOWN = {
    "--outcome yes/no": ["probability_no", "probability_yes", "std", "lower", "upper"],
    "--outcome count --bounds 0 20 --noise 2": ["rate", "std", "lower", "upper"],
    "--classes 0,1,2": [f"{one}_{k}" for k in range(3) for one in ("probability", "std", "lower", "upper")],
}


@pytest.mark.parametrize(
    ("more", "private"),
    [*((more, "") for more in KNOWN), ("--classes 0,1,2", "--protect rows --box age 0 99 --cells 6")],
)
def test_a_model_that_is_known_has_other_outcomes_too(more, private):
    write_visits(("0", "1"))
    asked = ASKED.replace("--stages 2", "--kernel 'EQ(30, variance=1) + Constant(2.0)'")
    good(f"{asked} {more} {private} -o plan.json")
    settings = read_plan_file("plan.json")[1]
    assert type(settings).from_dict(settings.to_dict()).to_dict() == settings.to_dict()
    assert settings.gp().noise == (2.0 if "count" in more else 1.0)
    assert ("variance 2 times the rate" in good("show plan.json").out) == ("count" in more)
    good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    assert list(good("predict visits.cloak grid:2 --json").data["columns"]) == ["age", *KNOWN[more]]


def test_a_cell_that_says_neither_is_refused_without_a_word_of_it():
    write_visits(("no", "perhaps"))
    good(f"{ASKED} --outcome yes/no -o plan.json")
    refused = run("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    assert refused.code == 1
    assert "or, if it names none, say yes or no: yes and no" in refused.err
    assert "--missing midpoint" in refused.err
    assert "perhaps" not in refused.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "--bounds LO HI must be given"),
        ("--outcome count", "--bounds LO HI must be given"),
        ("--outcome yes/no --bounds 0 5", "--bounds must be \\(0, 1\\)"),
        ("--outcome yes/no --kernel EQ(9) --noise 1", "--noise: how outcomes scatter follows"),
        ("--outcome yes/no --kernel EQ(9) --design max", "--design is for real outcomes"),
        ("--outcome yes/no --kernel EQ(9) --compare", "--compare is for real outcomes"),
        ("--outcome count --bounds 0 9 --classes a,b", "--outcome must be left out where classes are named"),
        ("--classes a", "--classes must be 2 to 100 different values"),
        ("--classes a,a", "--classes must be 2 to 100 different values"),
    ],
)
def test_what_does_not_go_together_is_refused(more, said):
    write_visits()
    asked = ASKED.replace("--stages 2", "") if "--kernel" in more else ASKED
    refused = run(f"{asked} {more}")
    assert refused.code == 2
    assert re.search(said, refused.err), refused.err


def test_whole_rows_have_answers_too():
    write_visits(("FALSE", "TRUE"))
    good(f"{ASKED} --outcome yes/no --protect rows --box age 0 100 --cells 6 --rows 40 -o plan.json")
    good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    assert "probability_yes" in good("predict visits.cloak grid:2").out


# What must not be asked for


def test_delta_has_a_default_that_is_said(monkeypatch):
    planned = good("plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --stages 2 --json")
    assert "delta is 0.001: the largest power of ten below 1/(10 N), for N = 40 rows." in planned.err
    assert planned.data["certificate"]["delta"] == 1e-3


def test_a_weak_promise_is_said_once():
    weak = "--bounds 0 250 --epsilon 6 --delta 0.1 --stages 2"
    said = good(f"plan data.csv --inputs age --output height {weak}").err
    assert said.count("warning: epsilon 6 is a weak promise") == 1
    assert said.count("warning: delta 0.1 is a weak promise to 40") == 1
