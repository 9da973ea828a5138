"""``--protect rows``, ``--people``: private inputs and ids are read where outcomes are; nothing shows any."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import COLUMNS, LEDGER, N, budget, good, run, spends, write_table
from test_cli_kinds import KINDS, plan_of

import cloakgp
from cloakgp.data import cells
from cloakgp.data.people import as_people
from cloakgp.release import encoding
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import plan_from
from cloakgp.testing import insecure_seed
from cloakgp.workflow import private_step
from cloakgp.workflow.shell_words import in_shell_words

ROWS, WHOLE, PEOPLE = (plan_of(KINDS[name], "-o plan.json") for name in ("rows", "rows of people", "people"))
RELEASE = "release plan.json table.csv --no-ledger --yes --overwrite -o a.cloak"


@pytest.fixture(autouse=True)
def table(people):
    write_table()


@pytest.mark.filterwarnings("ignore:INSECURE")
def test_files_and_python_release_the_same():
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv("table.csv"), "table.parquet")
    rows = {name: COLUMNS[name] for name in ("age", "sex")}
    days = {"day": np.array(COLUMNS["day"], dtype="datetime64[D]")}
    for name, X, people in (("rows of people", rows, COLUMNS["id"]), ("days", days, None)):
        good(plan_of(KINDS[name], "-o plan.json"))
        plan = plan_from(PlanFile.read("plan.json").settings)
        with insecure_seed(1):
            expected = plan.release(X, COLUMNS["score"], people=people).z
        for file in ("table.csv", "table.parquet"):
            with insecure_seed(1):
                good(RELEASE.replace("table.csv", file))
            assert np.array_equal(cloakgp.load("a.cloak").z, expected)


def test_points_have_names_levels_and_dates():
    assert "from at most 3 rows of each of 12 people" in good(WHOLE).out
    good(RELEASE)
    rows = good("predict a.cloak grid:2").out.split()[1:]
    assert [row.split(",")[:2] for row in rows] == [["0", '"f"'], ["0", '"m"'], ["90", '"f"'], ["90", '"m"']]
    Path("points.csv").write_text("sex,age\nm,12\n")
    assert good("predict a.cloak points.csv --json").data["columns"]["sex"] == ["m"]
    good(plan_of(KINDS["days"], "-o plan.json"))
    good(RELEASE)
    Path("points.csv").write_text("day\n2024-05-31\n")
    assert good("predict a.cloak points.csv").out.splitlines()[1].startswith('"2024-05-31",')


BROKEN = {
    "a text for a number": {"age": "x"},
    "a missing input": {"age": ""},
    "an unknown level": {"sex": "q"},
    "a missing outcome": {"score": ""},
    "a text for an outcome": {"score": "x"},
    "nobody's row": {"id": ""},
}


def one_other(**cells):
    """The table, with other cells in its first row."""
    write_table(**{name: [cell, *COLUMNS[name][1:]] for name, cell in cells.items()})


@pytest.mark.parametrize("what", [*BROKEN, "an open quote"])
def test_whatever_is_wrong_with_rows_there_is_one_message(what):
    good(WHOLE)
    budget()
    one_other(**BROKEN.get(what, {}))
    if what == "an open quote":
        whole = Path("table.csv").read_text()
        Path("table.csv").write_text(whole.replace(f",{COLUMNS['sex'][0]},", ',"f,', 1))
    failed = run(f"release plan.json table.csv {LEDGER} --dataset kung --yes -o a.cloak")
    said = " ".join(failed.err.split())
    assert (failed.code, spends()) == (1, 0)
    assert said.count("cannot be used") == 1
    assert not re.search(r"\b(x|q|99)\b", said)
    unusable = private_step.UnusableOutput(private_step.UNUSABLE_ROWS)
    assert said.endswith(" ".join(in_shell_words(unusable).split()))


def test_what_is_missing_or_unknown_is_protected_if_asked_for():
    good(WHOLE)
    write_table(
        age=["", "old", *COLUMNS["age"][2:]], sex=["q", *COLUMNS["sex"][1:]], score=["many"] + [3] * 39
    )
    assert run(RELEASE).code == 1
    good(f"{RELEASE} --missing midpoint")
    good(plan_of(KINDS["days"], "-o plan.json"))
    one_other(day="soon")
    assert run(RELEASE).code == 1
    good(f"{RELEASE} --missing midpoint")


def test_another_number_of_rows_is_refused():
    """It is public: but how many there are is not told."""
    for line, planned in ((f"{ROWS} --rows 41", "41 rows"), (f"{WHOLE} --n-people 13", "13 people")):
        good(line)
        failed = run(RELEASE)
        assert failed.code == 1
        assert f"the plan is for {planned}, and here is another number" in failed.err
        assert not re.search(r"\b(40|12)\b", failed.err)


# People, by a public column


def test_who_is_who_may_be_written_in_any_way_but_must_stay_the_same():
    good(PEOPLE)
    write_table(id=[f" {one}-renamed " for one in COLUMNS["id"]])
    assert "warning" not in good(RELEASE).err  # planned anew, and the same
    write_table(id=[*COLUMNS["id"][:-1], "somebody else"])
    failed = run(RELEASE)
    assert (failed.code, "people of this table are not those" in failed.err) == (1, True)


def test_a_column_that_looks_like_people_is_pointed_out():
    plan, said = plan_of(KINDS["known"]), "--people id"
    assert said in good(plan).err
    assert said not in good(f"{plan} --people id").err
    write_table(id=list(range(N)))  # nobody twice
    assert said not in good(plan).err
    colours = {"colour" if name == "id" else name: cells for name, cells in COLUMNS.items()}
    rows = [",".join(map(str, row)) for row in zip(*colours.values(), strict=True)]
    Path("table.csv").write_text("\n".join([",".join(colours), *rows]) + "\n")
    assert "people" not in good(plan).err


def test_a_selection_protects_people():
    line = (
        "select table.csv --inputs age --output score --bounds 0 20 --kernel EQ(5) --kernel EQ(20) --noise 20"
    )
    line += " --epsilon 1 --yes"
    budget()
    units = [
        good(f"{line} {more} --dry-run --json").data["certificate"]["unit"] for more in ("", "--people id")
    ]
    assert units == ["one row", "one person"]
    paid = f"{line} --people id {LEDGER} --dataset kung --json"
    assert (good(paid).data["spent"], good(paid).data["spent"], spends()) == (True, False, 1)
    then = "--then-at grid:3 --then-epsilon 1 --then-delta 0.1"  # which is another question
    assert (good(f"{paid} {then}").data["spent"], spends()) == (True, 2)
    refused = run(f"{line} {LEDGER} --dataset kung")
    assert (refused.code, "has the unit 'one person'" in refused.err) == (1, True)


def test_a_file_without_its_inputs_is_verified_with_them_and_the_people(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 4)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)
    good(f"{PEOPLE} --inducing 4")
    good(RELEASE)
    write_table("others.csv", id=list(range(N)))
    given = "verify a.cloak --inputs-from table.csv --inputs age"
    codes = [run(line).code for line in ("verify a.cloak", given, f"{given} --people id")]
    assert codes == [5, 5, 0]
    assert run(f"{given.replace('table', 'others')} --people id").code == 1


def test_people_on_a_cluster(monkeypatch):
    pytest.importorskip("distributed")
    from pyarrow import csv, parquet

    monkeypatch.setattr(cells, "MOST_CELLS", 4)
    whole = csv.read_csv("table.csv")
    Path("parts").mkdir()
    for part in range(2):  # a person's rows are in both
        parquet.write_table(whole.slice(20 * part, 20), f"parts/part.{part}.parquet")
    good(f"{PEOPLE.replace('table.csv', 'parts')} --inducing 4 --dask local")
    assert (
        json.loads(Path("plan.json").read_text())["data"]["people_sha256"]
        == as_people(COLUMNS["id"], N).digest
    )
    good("release plan.json parts --dask local --no-ledger --yes -o a.cloak")
    assert cloakgp.load("a.cloak").certificate.unit == "one person"
    assert cloakgp.verify("a.cloak").complete
