"""What every kind of release must do on the command line: a report of a table, and once more for nothing."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cli_helpers import COLUMNS, LEDGER, N, budget, good, run, spends, write_table

import cloakgp
from cloakgp.data.people import as_people
from cloakgp.release.plan_file import PlanFile
from cloakgp.workflow import tables


class Kind(NamedTuple):
    """Options of plan, and what comes of them."""

    options: str
    says: str = ""
    """Words that show has of the plan and of the release."""
    columns: str = "mean,std,lower,upper"
    """What predict tells, beside the inputs."""
    unit: str = "one row"
    inputs: str = "age"
    complete: bool = True
    """Whether all of the promise can be checked from the file alone."""


REAL = "--output score --bounds 0 20"
KNOWN = "--kernel 'EQ(20, variance=20)' --noise 10 --at grid:5"
LATENT = "--kernel 'EQ(30, variance=1) + Constant(2.0)' --at grid:4"
BOX = "--protect rows --box age 0 90 --cells 6"
PROBABILITY = "probability,std,lower,upper"
ONE_OF = ",".join(f"{what}_{one}" for one in ("car", "bus", "train") for what in PROBABILITY.split(","))
ANSWER = "probability_{0},probability_{1},std,lower,upper"
KINDS = {
    "known": Kind(f"{REAL} {KNOWN}", "EQ(lengthscale=20.0, variance=20.0)"),
    "inducing": Kind(f"{REAL} {KNOWN} --inducing 6 --approximation fitc", "fitc"),
    "learned": Kind(f"{REAL} --stages 2", "stages"),
    "people": Kind(f"{REAL} {KNOWN} --people id --within 0.5", unit="one person"),
    "levels and dates": Kind(f"{REAL} --stages 2", "a category: f, m|days since", inputs="age,sex,day"),
    "rows": Kind(f"{REAL} --stages 2 {BOX}", "age: 0 to 90 in 6 cells", unit="one whole row"),
    "known rows": Kind(f"{REAL} {KNOWN} {BOX}", "EQ(lengthscale=20.0, variance=20.0)", unit="one whole row"),
    "days": Kind(
        f"{REAL} --stages 2 --protect rows --box day 2024-01-01 2024-12-31 --cells 6",
        "day: 2024-01-01 to 2024-12-31 in 6 cells",
        unit="one whole row",
        inputs="day",
    ),
    "rows of people": Kind(
        f"{REAL} --stages 2 {BOX} --levels sex f,m --people id --max-rows 3 --n-people 12",
        "sex: f, m",
        unit="one person's whole rows",
        inputs="age,sex",
        complete=False,
    ),
    "answers": Kind("--output health --classes well,ill --stages 2", "ill", ANSWER.format("well", "ill")),
    "answers of rows": Kind(
        f"--output truth --outcome yes/no --stages 2 {BOX}",
        columns=ANSWER.format("no", "yes"),
        unit="one whole row",
    ),
    "known answers": Kind(f"--output truth --outcome yes/no {LATENT}", columns=ANSWER.format("no", "yes")),
    "classes": Kind("--output way --classes car,bus,train --stages 2", "train", ONE_OF),
    "classes of rows": Kind(
        f"--output way --classes car,bus,train {LATENT} {BOX}", "", ONE_OF, "one whole row"
    ),
    "known counts": Kind(
        f"--output falls --outcome count --bounds 0 20 --noise 2 {LATENT}",
        columns="rate,std,lower,upper",
    ),
}


@pytest.fixture(autouse=True)
def table(people):
    write_table()


def plan_of(kind, more=""):
    return f"plan table.csv --inputs {kind.inputs} {kind.options} --epsilon 2 --delta 0.001 {more}"


@pytest.mark.parametrize("name", KINDS)
def test_from_a_table_to_a_report_and_again_for_nothing(name):
    kind, output = KINDS[name], re.search(r"--output (\w+)", KINDS[name].options)[1]
    inputs, whole = kind.inputs.split(","), "whole" in kind.unit
    planned = good(plan_of(kind, "--plot plan.png -o plan.json"))
    assert f"unit: {kind.unit}" in planned.out
    unread = "no input or output column was read" if whole else f"{output!r} was not read"
    assert unread in planned.out
    assert ("counted" in planned.err) == ("whole row" in kind.unit and "person" not in kind.unit)
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")
    assert "p1" not in planned.out + Path("plan.json").read_text()  # no id goes anywhere

    budget()
    released = good(f"release plan.json table.csv {LEDGER} --dataset kung -o a.cloak", "y\n")
    assert ("Read the input and output columns and spend this?" in released.err) == whole
    assert "warning" not in released.err
    assert "left for one more release" in released.err
    once = Path("a.cloak").read_bytes()
    again = good(
        f"release plan.json table.csv {LEDGER} --dataset kung -o a.cloak --json"
    )  # without a question
    assert (again.data["spent"], spends(), Path("a.cloak").read_bytes()) == (False, 1, once)
    assert good(f"ledger verify {LEDGER} --release a.cloak --releases . --json").data["releases"] == 2

    verified = run("verify a.cloak --json")
    assert (verified.code, verified.data["unit"]) == (0 if kind.complete else 5, kind.unit)
    shown = [" ".join(good(f"show {file}").out.split()) for file in ("plan.json", "a.cloak")]
    for words in kind.says.split("|"):
        assert all(words in text for text in shown), words
    assert f"({2}, 0.001)-differential privacy" in shown[1]
    assert ("private inputs" in shown[0]) == whole
    release = cloakgp.load("a.cloak")
    assert release.certificate.unit == kind.unit
    found = good("predict a.cloak grid:3 --json").data["columns"]
    assert ",".join(found) == f"{kind.inputs},{kind.columns}"
    numbers = {name: np.array(found[name]) for name in kind.columns.split(",")}
    assert all(np.isfinite(values).all() for values in numbers.values())
    if "lower" in numbers:
        told = next(numbers[one] for one in kind.columns.split(",")[1::-1] if one not in ("std", "lower"))
        assert ((numbers["lower"] < told) & (told < numbers["upper"])).all()
    if "mean" in numbers and kind.inputs == "age":
        np.testing.assert_allclose(numbers["mean"], release.predict(np.array(found["age"])))
    chances = [values for one, values in numbers.items() if one.startswith("probability")]
    assert not chances or np.allclose(sum(chances), 1)
    if whole:
        assert good("predict a.cloak grid:2 --json").data["columns"][inputs[0]][0] in (
            0,
            "2024-01-01",
        )  # the box
        assert "the box's" in run("predict a.cloak grid:4 --inputs height").err

    good("plot a.cloak -o a.png")
    good("plot a.cloak --noise -o b.svg")
    good("export a.cloak --csv -o numbers.csv")
    header = Path("numbers.csv").read_text().splitlines()[0].split(",")
    assert header[: len(inputs)] == inputs
    assert any(column.startswith("noise_std") for column in header)
    good(f"export a.cloak --html --output {output} -o a.html")
    report = Path("a.html").read_text()
    assert f"<h1>{output} by {', '.join(inputs)}</h1>" in report
    assert ("verified in part" in report) != kind.complete
    assert ("How many rows there are" in report) == whole
    assert ("which are public" in report) == (not whole and len(inputs) == 1)


@pytest.mark.parametrize("name", ["rows", "rows of people", "answers of rows"])
def test_a_plan_of_whole_rows_reads_nothing_of_the_table(name, monkeypatch):
    def read(*_):
        raise AssertionError("a column was read as a public one")

    rows = "" if "people" in name else "--rows 40"
    for reader in ("read_columns", "read_ids", "read_csv"):
        monkeypatch.setattr(tables, reader, read)
    good(plan_of(KINDS[name], f"{rows} -o plan.json"))
    whole = Path("table.csv").read_bytes()
    write_table(age=["?"] * N, score=["unread"] * N, truth=["unread"] * N)
    good(plan_of(KINDS[name], f"{rows} -o other.json"))
    assert Path("plan.json").read_bytes() == Path("other.json").read_bytes()
    Path("table.csv").write_bytes(whole)
    good("release plan.json table.csv --no-ledger --yes -o a.cloak")


@pytest.mark.parametrize("ids", ["alike", "exact"])
@pytest.mark.parametrize("name", ["people", "rows of people"])
def test_an_id_is_the_same_however_it_is_written_unless_somebody_says_otherwise(name, ids):
    twice = [f" {one.upper()} " if number % 2 else one for number, one in enumerate(COLUMNS["id"])]
    write_table(id=twice)
    partition = as_people([one.strip() for one in twice], N, ids)
    assert (partition.n_people > as_people(COLUMNS["id"], N).n_people) == (ids == "exact")
    known = f"--n-people {partition.n_people}" if "rows" in name else ""
    good(plan_of(KINDS[name], f"--ids {ids} {known} -o plan.json"))
    stored = PlanFile.read("plan.json")
    assert stored.settings.ids == ids
    assert ("exact" in good("show plan.json").out) == (ids == "exact")
    if "rows" not in name:
        assert stored.people == partition.digest
    good("release plan.json table.csv --no-ledger --yes -o a.cloak")
    assert cloakgp.load("a.cloak").certificate.ids == ids
    if "rows" not in name:
        compared = run("verify a.cloak --inputs-from table.csv --inputs age --people id --json")
        assert (compared.code, compared.data["ids"]) == ((5, "exact") if ids == "exact" else (0, "alike"))
