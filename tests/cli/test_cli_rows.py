"""``--protect rows``: inputs are private, too. The plan reads none of them, and nothing shows any."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, budget, good, run, spends

import cloakgp
from cloakgp.testing import insecure_seed
from cloakgp.workflow import private_step, report, tables
from cloakgp.workflow.plan_file import read_plan_file

N = 60
RNG = np.random.default_rng(4)
IDS = RNG.permutation(np.arange(N) % 15)
AGES, SEXES = RNG.uniform(0, 90, N).round(1), RNG.choice(["f", "m"], N)
VISITS = RNG.uniform(0, 20, N).round(1)
PROMISE = "--output visits --bounds 0 20 --epsilon 1 --delta 0.001 --stages 2 --protect rows"
PLAN = f"plan visits.csv --inputs age {PROMISE} --box age 0 90 --cells 9"
PEOPLE = f"plan visits.csv --inputs age,sex {PROMISE} --box age 0 90 --levels sex f,m --cells age=6"
PEOPLE += " --people zper --max-rows 3"
RELEASE = "release plan.json visits.csv --no-ledger --yes -o visits.cloak"


def write_visits(path="visits.csv", **changes):
    columns = {"zper": IDS, "age": AGES, "sex": SEXES, "visits": VISITS} | changes
    columns = {name: [str(cell) for cell in cells] for name, cells in columns.items()}
    rows = [",".join(row) for row in zip(*columns.values(), strict=True)]
    Path(path).write_text("\n".join([",".join(columns), *rows]) + "\n")


@pytest.fixture(autouse=True)
def visits(people):
    write_visits()


def test_from_a_box_to_a_report_that_shows_no_input():
    planned = good(f"{PLAN} --plot plan.png -o plan.json")
    assert "visits.csv has 60 rows, which was counted, and becomes public" in planned.err
    assert "unit: one whole row" in planned.out
    assert "no input or output column was read" in planned.out
    assert "Rows are taken to be spread evenly over the box" in planned.out
    shown = good("show plan.json").out
    assert "age: 0 to 90 in 9 cells" in shown
    assert "private inputs" in shown
    budget()
    released = good(f"release plan.json visits.csv {LEDGER} --dataset kung -o visits.cloak", "y\n")
    assert "Read the input and output columns and spend this?" in released.err
    assert "unit: one whole row" in released.err
    assert "warning" not in released.err
    assert good("verify visits.cloak").out.startswith("verified: (1, 0.001)-DP, unit one whole row;")
    assert "one whole row" in good("show visits.cloak").out
    asked = good("predict visits.cloak grid:4 --json").data["columns"]
    assert asked["age"] == [0, 30, 60, 90]  # the box, whatever the rows are
    good("plot visits.cloak -o a.png")
    good("export visits.cloak --csv -o numbers.csv")
    text = report.html("visits.cloak", output="visits")
    assert "<h1>visits by age</h1>" in text  # the box has the names
    assert "How many rows there are, estimated from noisy counts" in text
    assert "any one row, inputs and outcome, had been any other" in text
    assert "which are public" not in text
    assert "training inputs" not in text


def test_a_plan_does_not_depend_on_the_table():
    good(f"{PLAN} -o plan.json")
    write_visits(age=["?"] * N, visits=["unread"] * N)
    good(f"{PLAN} -o other.json")
    assert Path("plan.json").read_bytes() == Path("other.json").read_bytes()


def test_no_public_column_is_read_on_the_way(monkeypatch):
    def read(*_):
        raise AssertionError("a column was read as a public one")

    monkeypatch.setattr(tables, "read_columns", read)
    monkeypatch.setattr(tables, "read_ids", read)
    good(f"{PLAN} -o plan.json")
    good(RELEASE)
    good(f"{PEOPLE} --n-people 15 -o plan.json")
    good(f"{RELEASE} --overwrite")


@pytest.mark.filterwarnings("ignore:INSECURE")
def test_files_and_python_release_the_same():
    from pyarrow import csv, parquet

    good(f"{PEOPLE} --n-people 15 -o plan.json")
    parquet.write_table(csv.read_csv("visits.csv"), "visits.parquet")
    plan = read_plan_file("plan.json")[1].plan()
    with insecure_seed(1):
        expected = plan.release({"age": AGES, "sex": SEXES}, VISITS, people=IDS).z
    for table in ("visits.csv", "visits.parquet"):
        with insecure_seed(1):
            good(f"release plan.json {table} --no-ledger --yes --overwrite -o visits.cloak")
        assert np.array_equal(cloakgp.load("visits.cloak").z, expected)


def test_people_with_all_of_their_rows():
    planned = good(f"{PEOPLE} -o plan.json")
    assert "visits.csv has 15 people, which was counted, and becomes public" in planned.err
    assert "from at most 3 rows of each of 15 people" in planned.out
    good(RELEASE)
    verified = run("verify visits.cloak")
    assert verified.code == 5  # how many rows of each person were counted is the custodian's word
    assert verified.out.startswith(
        "verified IN PART: (1, 0.001)-DP, unit one person's whole rows, but how many"
    )
    header, *rows = good("predict visits.cloak grid:2").out.split()
    assert header == "age,sex,mean,std,lower,upper"
    assert [row.split(",")[:2] for row in rows] == [["0", '"f"'], ["0", '"m"'], ["90", '"f"'], ["90", '"m"']]
    Path("points.csv").write_text("sex,age\nm,12\n")
    assert good("predict visits.cloak points.csv --json").data["columns"]["sex"] == ["m"]
    text = report.html("visits.cloak")
    assert "people; unit: one person&#x27;s whole rows" in text
    assert "of each person no more rows count" in text.lower()


@pytest.mark.filterwarnings("ignore::cloakgp.testing.InsecureWarning")
def test_a_box_may_have_dates():
    """In cells of the table, in points and in what comes out; a cell that is no date is missing."""
    days = [f"2024-0{1 + row % 9}-1{row % 7}" for row in range(N)]
    write_visits(day=days)
    asked = f"plan visits.csv --inputs day {PROMISE} --rows {N} --cells 6 --at grid:3"
    assert "two dates such as" in run(f"{asked} --box day 2024-01-01 soon").err
    good(f"{asked} --box day 2024-01-01 2024-12-31 -o plan.json")
    assert "day: 2024-01-01 to 2024-12-31 in 6 cells" in good("show plan.json").out
    good(RELEASE)
    plan = read_plan_file("plan.json")[1].plan()
    with insecure_seed(3):
        one = plan.release({"day": days}, VISITS)
    with insecure_seed(3):
        other = plan.release({"day": np.array(days, dtype="datetime64[D]")}, VISITS)
    assert np.array_equal(one.z, other.z)
    assert good("predict visits.cloak grid:2").out.splitlines()[1].startswith('"2024-01-01",')
    Path("points.csv").write_text("day\n2024-05-31\n")
    assert good("predict visits.cloak points.csv").out.splitlines()[1].startswith('"2024-05-31",')
    good("verify visits.cloak")
    write_visits(day=["soon", *days[1:]])
    assert "a number or a date for each input" in run(f"{RELEASE} --overwrite").err
    good(f"{RELEASE} --overwrite --missing midpoint")


def test_a_model_may_be_set():
    model = '--kernel "EQ(20, variance=30)" --noise 20 --at grid:5'
    promise = PROMISE.replace("--stages 2 ", "")
    good(f"plan visits.csv --inputs age {promise} --box age 0 90 {model} -o plan.json")
    assert "EQ(lengthscale=20.0, variance=30.0)" in good("show plan.json").out
    good(RELEASE)
    assert good("verify visits.cloak").code == 0


BROKEN = {
    "a text for a number": {"age": ["x", *AGES[1:]]},
    "a missing input": {"age": ["", *AGES[1:]]},
    "an unknown level": {"sex": ["q", *SEXES[1:]]},
    "a missing outcome": {"visits": ["", *VISITS[1:]]},
    "a text for an outcome": {"visits": ["x", *VISITS[1:]]},
    "nobody's row": {"zper": ["", *IDS[1:]]},
    "an open quote": {"sex": ['"f', *SEXES[1:]]},
}


@pytest.mark.parametrize("what", BROKEN)
def test_whatever_is_wrong_with_rows_there_is_one_message(what):
    good(f"{PEOPLE} --n-people 15 -o plan.json")
    budget()
    write_visits(**BROKEN[what])
    failed = run(f"release plan.json visits.csv {LEDGER} --dataset kung --yes -o visits.cloak")
    said = " ".join(failed.err.split())
    assert failed.code == 1
    assert "the table cannot be used" in said
    assert said.count("cannot be used") == 1
    assert not re.search(r"\b(x|q|99)\b", said)
    assert spends() == 0
    expected = in_the_shell(private_step.UNUSABLE_ROWS)
    assert said.endswith(expected)


def in_the_shell(message):
    from cloakgp.workflow.shell_words import in_shell_words

    return " ".join(in_shell_words(private_step.UnusableOutput(message)).split())


def test_missing_inputs_and_unknown_levels_are_protected_if_asked_for():
    good(f"{PEOPLE} --n-people 15 -o plan.json")
    write_visits(age=["", "old", *AGES[2:]], sex=["q", *SEXES[1:]], visits=["many", *VISITS[1:]])
    assert run(RELEASE).code == 1
    good(f"{RELEASE} --missing midpoint")


def test_another_number_of_rows_is_refused():
    good(f"{PLAN} --rows 61 -o plan.json")
    failed = run(RELEASE)
    assert failed.code == 1
    assert "the plan is for 61 rows, and here is another number. It is public: plan again" in failed.err
    assert "60" not in failed.err.replace("60.", "")
    good(f"{PEOPLE} --n-people 14 -o plan.json")
    assert "the plan is for 14 people, and here is another number." in run(RELEASE).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--inputs age,sex --box age 0 90", "--box sex LO HI, or --levels sex A,B,..."),
        ("--inputs age --box age 0 90 --box sex 0 1", "'sex' is not among the inputs"),
        ("--inputs age --box age 0 90 --box age 0 80", "'age' is there twice"),
        ("--inputs age --box age 0 old", "--box age must have two numbers"),
        ("--inputs age --box age 0", "requires 3 arguments"),
        ("--inputs age --box age 0 90 --cells many", "--cells must be a whole number, or NAME=N"),
        ("--inputs age --box age 0 90 --cells sex=3", "must be for ranges of the box"),
        ("--inputs age --box age 0 90 --people zper", "needs --max-rows"),
        ("--inputs age --box age 0 90 --max-rows 3", "they need --people COLUMN"),
        ("--inputs age --box age 0 90 --people zper --max-rows 3 --rows 60", "the number of rows is private"),
        ("--inputs age --box age 0 90 --people zper --max-rows 3 --within 1", "and public inputs"),
        ("--inputs age --box age 0 90 --people age --max-rows 3", "must not be an input"),
        (
            "--inputs age --box age 0 90 --inducing 3 --kernel EQ(1) --noise 1 --at grid:3 --dask local",
            "on this machine",
        ),
        (
            "--inputs age --box age 0 90 --kernel EQ(1) --noise 1 --at grid:3 --design mse",
            "for public inputs",
        ),
    ],
)
def test_what_does_not_go_together_is_said(options, words):
    stages = "" if "--kernel" in options else "--stages 2"
    failed = run(f"plan visits.csv {PROMISE.replace('--stages 2', stages)} {options}")
    assert failed.code == 2
    assert words in " ".join(failed.err.replace("│", " ").split())


def test_a_box_needs_private_inputs():
    failed = run(f"{PLAN.replace('--protect rows', '')}")
    assert failed.code == 2
    assert "--box is for private inputs: it needs --protect rows" in failed.err


def test_a_box_is_kept_in_the_plan_file():
    good(f"{PEOPLE} --n-people 15 --at grid:2 -o plan.json")
    stored = json.loads(Path("plan.json").read_text())
    assert stored["settings"]["grid"] == [
        {"name": "age", "low": 0.0, "high": 90.0, "cells": 6},
        {"name": "sex", "levels": ["f", "m"]},
    ]
    assert stored["data"] == {}  # a digest of private values would tell of them
    assert "warning" not in good(RELEASE).err  # planned again, and the same
