"""``--people``: the promise is to each person, by a public column of the table."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, MODEL, budget, good, run, spends

import cloakgp
from cloakgp.plans import encoding, out_of_core
from cloakgp.rows.people import as_people
from cloakgp.workflow import report

TABLE = "visits.csv"
COLUMNS = f"{TABLE} --inputs age --output visits"
PROMISE = "--at grid:5 --epsilon 1 --delta 0.01"
PLAN = f"plan {COLUMNS} {MODEL.replace('50 170', '0 20')} {PROMISE}"
LEARN = f"plan {COLUMNS} --bounds 0 20 --stages 2 {PROMISE}"
RNG = np.random.default_rng(3)
AGES, VISITS = RNG.integers(20, 60, 40), RNG.integers(0, 20, 40)
IDS = [f"p{one}" for one in RNG.integers(0, 12, 40)]


def write_visits(ids=IDS, column="zper", path=TABLE):
    rows = [",".join(map(str, row)) for row in zip(ids, AGES, VISITS, strict=True)]
    Path(path).write_text("\n".join([f"{column},age,visits", *rows]) + "\n")


@pytest.fixture(autouse=True)
def visits(people):
    write_visits()


def test_from_ids_in_a_table_to_a_report_that_names_people():
    planned = good(f"{PLAN} --people zper --within 0.5 -o plan.json")
    assert "unit: one person" in planned.out
    stored = json.loads(Path("plan.json").read_text())
    assert (stored["settings"]["people"], stored["settings"]["within"]) == ("zper", 0.5)
    assert stored["data"]["people_sha256"] == as_people(IDS, 40).digest
    assert "p1" not in Path("plan.json").read_text() + planned.out  # no id goes anywhere
    shown = good("show plan.json").out
    assert "zper; outcomes of one go together by 0.5" in shown
    assert "unit: one person" in shown
    budget()
    released = good(f"release plan.json {TABLE} {LEDGER} --dataset kung -o visits.cloak", "y\n")
    assert "unit: one person" in released.err
    assert "warning" not in released.err  # the kept plan was taken
    assert good("verify visits.cloak").out.startswith("verified: (1, 0.01)-DP, unit one person;")
    assert good(f"verify visits.cloak --inputs-from {TABLE} --inputs age --people zper").code == 0
    assert "all outcomes of one person" in good("show visits.cloak").out
    text = report.html("visits.cloak")
    assert "if all outcomes of any one person had been something else" in text
    assert "not protected with all of them" not in text


def test_a_table_and_python_give_the_same_plan():
    planned = good(f"{PLAN} --people zper -o plan.json --json").data
    gp = cloakgp.GP(cloakgp.kernels.EQ(20, variance=625), noise=196, bounds=(0, 20))
    grid = np.linspace(AGES.min(), AGES.max(), 5)
    columns = cloakgp.Columns([cloakgp.Column("age")], response="visits", people="zper")
    table = {"age": AGES, "zper": IDS}
    plan = gp.plan(table, X_star=grid, epsilon=1, delta=0.01, people="zper", columns=columns)
    assert planned["plan_sha256"] == plan.digest


def test_a_model_is_learned_for_people_too():
    good(f"{LEARN} --people zper -o plan.json")
    good(f"release plan.json {TABLE} --no-ledger --yes -o visits.cloak")
    assert good("verify visits.cloak --json").data["verified"] is True
    assert cloakgp.load("visits.cloak").certificate.unit == "one person"


def test_who_is_who_may_be_written_in_any_way_but_must_stay_the_same():
    good(f"{PLAN} --people zper -o plan.json")
    write_visits([f" {one}-renamed " for one in IDS])
    good(f"release plan.json {TABLE} --no-ledger --yes -o a.cloak")
    write_visits([*IDS[:-1], "somebody else"])
    failed = run(f"release plan.json {TABLE} --no-ledger --yes -o b.cloak")
    assert failed.code == 1
    assert "people of this table are not those" in failed.err
    write_visits()
    assert (
        "warning" not in good(f"release plan.json {TABLE} --no-ledger --yes -o b.cloak").err
    )  # planned anew


def test_a_plan_without_people_has_no_digest_of_them():
    good(f"{PLAN} -o plan.json")
    stored = json.loads(Path("plan.json").read_text())
    assert set(stored["data"]) == {"inputs_sha256"}
    assert not {"people", "within"} & set(stored["settings"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--protect people", "--protect people needs --people COLUMN"),
        ("--protect outcomes --people zper", "Leave out one of them"),
        ("--within 0.5", "it needs --people COLUMN"),
        ("--people nobody", "there is no column 'nobody'"),
        ("--people visits", "'visits' must not be that of people"),
        ("--people zper --max-rows 3", "--max-rows is for private inputs: it needs --protect rows"),
    ],
)
def test_what_does_not_go_together_is_said(options, words):
    failed = run(f"{PLAN} {options}")
    assert failed.code == 2
    assert words in failed.err


def test_a_row_of_nobody_is_named():
    write_visits(["", *IDS[1:-1], "NA"])
    failed = run(f"{PLAN} --people zper")
    assert failed.code == 2
    assert "column 'zper' must name someone in every row; rows 1 and 40 do not" in failed.err


def test_a_column_that_looks_like_people_is_pointed_out():
    said = "--people zper"
    assert said in good(PLAN).err
    assert said not in good(f"{PLAN} --people zper").err
    write_visits(list(range(40)))  # nobody twice
    assert said not in good(PLAN).err
    write_visits(column="colour")
    assert "people" not in good(PLAN).err


def test_a_selection_protects_people():
    line = f"select {COLUMNS} --bounds 0 20 --kernel EQ(5) --kernel EQ(20) --noise 20 --epsilon 1 --yes"
    budget()
    alone = good(f"{line} --dry-run --json").data["certificate"]
    shared = good(f"{line} --people zper --dry-run --json").data["certificate"]
    assert (alone["unit"], shared["unit"]) == ("one row", "one person")
    paid = f"{line} --people zper {LEDGER} --dataset kung --json"
    assert (good(paid).data["spent"], good(paid).data["spent"], spends()) == (True, False, 1)
    refused = run(f"{line} {LEDGER} --dataset kung")
    assert refused.code == 1
    assert "has the unit 'one person'" in refused.err
    assert "it needs --people COLUMN" in run(f"{line} --within 0.5 --dry-run").err


def test_a_file_without_its_inputs_is_verified_with_them_and_the_people(monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 50)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)
    good(f"{PLAN} --inducing 4 --people zper -o plan.json")
    assert "warning" not in good(f"release plan.json {TABLE} --no-ledger --yes -o visits.cloak").err
    assert run("verify visits.cloak").code == 5
    given = f"verify visits.cloak --inputs-from {TABLE} --inputs age"
    assert run(given).code == 5
    assert good(f"{given} --people zper").code == 0
    write_visits(list(range(40)), path="others.csv")
    assert run(f"{given.replace(TABLE, 'others.csv')} --people zper").code != 0
    assert "give that with --inputs-from" in run("verify visits.cloak --people zper").err


def test_people_on_a_cluster(monkeypatch):
    pytest.importorskip("distributed")
    from pyarrow import csv, parquet

    monkeypatch.setattr(out_of_core, "DENSE", 50)
    table = csv.read_csv(TABLE)
    Path("parts").mkdir()
    for part in range(2):  # a person's rows are in both
        parquet.write_table(table.slice(20 * part, 20), f"parts/part.{part}.parquet")
    line = PLAN.replace(TABLE, "parts")
    good(f"{line} --inducing 4 --people zper --dask local -o plan.json")
    assert json.loads(Path("plan.json").read_text())["data"]["people_sha256"] == as_people(IDS, 40).digest
    good("release plan.json parts --dask local --no-ledger --yes -o visits.cloak")
    assert cloakgp.load("visits.cloak").certificate.unit == "one person"
    assert cloakgp.verify("visits.cloak").complete


def test_an_id_is_the_same_however_it_is_written_unless_somebody_says_otherwise():
    twice = [one.upper() + " " if number % 2 else one for number, one in enumerate(IDS)]
    write_visits(twice)
    for ids, partition in (("", as_people(IDS, 40)), (" --ids exact", as_people(twice, 40, "exact"))):
        good(f"{PLAN} --people zper{ids} -o plan.json")
        stored = json.loads(Path("plan.json").read_text())
        assert stored["data"]["people_sha256"] == partition.digest
        assert stored["settings"].get("ids") == ("exact" if ids else None)
        assert ("ids exactly as they are written" in good("show plan.json").out) == bool(ids)
        good(f"release plan.json {TABLE} --no-ledger --yes --overwrite -o visits.cloak")
        compared = run(f"verify visits.cloak --inputs-from {TABLE} --inputs age --people zper --json")
        assert (compared.code, compared.data["ids"]) == ((5, "exact") if ids else (0, "alike"))
    assert as_people(twice, 40, "exact").n_people > as_people(IDS, 40).n_people


def test_private_ids_are_read_as_they_were_counted():
    twice = [one.upper() if number % 2 else one for number, one in enumerate(IDS)]
    write_visits(twice)
    asked = f"plan {COLUMNS} --bounds 0 20 --stages 2 {PROMISE} --protect rows --box age 0 90 --cells 6"
    for ids in ("", " --ids exact"):
        counted = as_people(twice, 40, "exact" if ids else "alike").n_people
        planned = good(f"{asked} --people zper --max-rows 2{ids} -o plan.json")
        assert f"has {counted} people, which was counted" in planned.err
        good(f"release plan.json {TABLE} --no-ledger --yes --overwrite -o visits.cloak")
        assert cloakgp.load("visits.cloak").certificate.ids == ("exact" if ids else "alike")
