"""Settings from somebody else: what is not on the data set's terms is refused, ``--yes`` or not."""

from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, MODEL, good, run, spends

import cloakgp
from cloakgp.cli import selecting
from cloakgp.workflow import inputs, private_step

RNG = np.random.default_rng(3)
N = 40
COLUMNS = {
    "patient": RNG.integers(0, 12, N),
    "visit": np.arange(N),
    "age": RNG.integers(20, 60, N),
    "pressure": RNG.integers(80, 160, N),
    "income": RNG.integers(80, 160, N),
}
MODELS = MODEL.replace("50 170", "60 200")
PLAN = f"plan table.csv {MODELS} --at grid:5 --epsilon 1 -o plan.json"
HONEST = f"{PLAN} --inputs age --output pressure --people patient --delta 0.001"
CREATE = f"ledger create {LEDGER} --dataset clinic --epsilon 9 --delta 0.01"
TERMS = f"{CREATE} --unit 'one person' --people patient --private pressure"
RELEASE = f"release plan.json table.csv {LEDGER} --dataset clinic -o visits.cloak --yes"
SELECT = f"select table.csv --inputs age --output pressure --noise 9 --epsilon 0.5 {MODELS} {LEDGER}"
ATTACKS = {
    "another id column": HONEST.replace("--people patient", "--people visit"),
    "another private column": HONEST.replace("--output pressure", "--output income"),
    "a private column as an input": HONEST.replace("--inputs age", "--inputs age,pressure")
    .replace("--output pressure", "--output income")
    .replace("EQ(20", "EQ([20, 20]"),
    "ids as they are written": f"{HONEST} --ids exact",
    "whole rows": "plan table.csv --inputs age --output pressure --bounds 60 200 --epsilon 1 --delta 0.001 "
    "--protect rows --box age 0 90 --cells 9 --rows 40 --stages 2 -o plan.json",
}


@pytest.fixture(autouse=True)
def visits(people):
    rows = [",".join(map(str, row)) for row in zip(*COLUMNS.values(), strict=True)]
    Path("table.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")


def refuse(*names):
    """What must not be called."""

    def never(*arguments, **options):
        raise AssertionError(f"{names} was called")

    return never


@pytest.mark.parametrize("attack", ATTACKS)
def test_settings_that_attack_are_refused(monkeypatch, attack):
    """That the first spend fixes terms, too, is the ledger's: tests/ledger/test_ledger_terms.py."""
    good(TERMS)
    good(ATTACKS[attack])  # the table is the same, and planning is free
    for place, name in ((inputs, "open_inputs"), (inputs, "open_ids"), (private_step, "PrivateColumn")):
        monkeypatch.setattr(place, name, refuse(name))
    refused = run(f"{RELEASE} --json")
    assert refused.code == refused.data["exit_code"] == 1
    assert "dataset 'clinic'" in refused.err
    assert "Nothing was spent, and the output column was not read" in refused.err
    assert not Path("visits.cloak").exists()
    assert spends() == 0


def test_a_selection_is_refused_likewise(monkeypatch):
    good(TERMS)
    monkeypatch.setattr(selecting, "open_inputs", refuse("open_inputs"))
    for whose in ("--people visit", "--people patient --output income"):
        assert run(f"{SELECT} {whose} --dataset clinic --yes").code == 1
    assert spends() == 0


def test_what_is_on_the_terms_is_released_and_more_can_be_allowed():
    good(TERMS)
    good(HONEST)
    good(RELEASE)
    good(ATTACKS["another private column"])
    again = RELEASE.replace("visits.cloak", "income.cloak")
    assert "cloakgp ledger allow" in run(again).err
    allowed = good(f"ledger allow {LEDGER} --dataset clinic --private income --why asked --json").data
    assert (allowed["private"], allowed["spends"]) == (["pressure", "income"], 1)
    good(again)
    shown = good(f"ledger show {LEDGER} --entries --json").data
    assert [entry["kind"] for entry in shown["entries"]] == ["opened", "created", "spent", "allowed", "spent"]
    assert [shown["datasets"][0][name] for name in ("people", "public")] == ["patient", ["age"]]
    assert "private columns: pressure, income; id column: patient" in good(f"ledger show {LEDGER}").out
    good(f"ledger verify {LEDGER} --release visits.cloak --release income.cloak")


LINES = [
    "read privately: 'pressure'",
    "read and published: 'age'",
    "unit: one person, by the id column 'patient'",
    "promises: epsilon 1, delta 0.001",
    "lists in the settings: 3 test points, 2 inducing inputs",
]


def test_what_will_be_read_and_left_is_said_of_a_selection():
    good(TERMS)
    said = good(f"{SELECT} --people patient --dataset clinic --yes").err
    for line in (*LINES[:3], "promises: epsilon 0.5, delta 0", "left for one more release: epsilon 9 now"):
        assert line in said


@pytest.mark.parametrize("way", ["asked", "yes", "no ledger"])
def test_what_will_be_read_and_left_is_always_said(way):
    good(TERMS)
    Path("points.csv").write_text("age\n20\n30\n40\n")
    Path("inducing.csv").write_text("age\n20\n50\n")
    good(HONEST.replace("--at grid:5", "--at points.csv --inducing inducing.csv"))
    paid = "--no-ledger" if way == "no ledger" else f"{LEDGER} --dataset clinic"
    release = f"release plan.json table.csv -o visits.cloak {paid}"
    said = (good(release, "y\n") if way == "asked" else good(f"{release} --yes")).err
    lines = [line.strip() for line in said.splitlines()]
    assert [line for line in lines if line in LINES] == LINES
    left = "no ledger keeps count" if way == "no ledger" else "left for one more release: epsilon 9 now, 8."
    assert left in said
    assert said.rstrip().endswith("spend this? [y/N]") == (way == "asked")


def test_exact_ids_and_how_the_table_is_read_are_told_before_anything_is_read():
    good(f"{TERMS} --ids exact")
    good(f"{HONEST} --ids exact --decimal ,")
    said = good(RELEASE).err
    assert "ANOTHER PERSON" in said
    assert "decimal" in said


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_an_encoding_does_not_split_people(encoding):
    """Cells in UTF-8 that are read as Latin-1 would hide that two of them are one name."""
    names = ["André", "ANDRÉ", "Zoë", "ZOË"] * 10
    rows = [f"{name},{age}.5,{age}" for name, age in zip(names, range(20, 60), strict=True)]
    Path("table.csv").write_text("\n".join(["patient,age,pressure", *rows]) + "\n", encoding="utf-8")
    good(f"{HONEST} --encoding {encoding}")
    good(RELEASE.replace(f"{LEDGER} --dataset clinic", "--no-ledger"))
    assert cloakgp.load("visits.cloak").plan.measurement.people.n_people == 2
