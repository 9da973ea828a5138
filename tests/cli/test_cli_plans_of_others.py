"""A plan file that somebody else made is settings: what else it says is not believed, and never meets y."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_helpers import good, run
from test_cli_refusals import edit

import cloakgp
from cloakgp.private import room

ROWS = 8
"""Of the one person who has several."""
TABLE = "visits.csv"
ASKED = f"plan {TABLE} --inputs age --output visits --bounds 0 20 --epsilon 1 --delta 1e-4"
MODEL = "--kernel EQ(20,variance=20) --noise 10 --at grid:4 --people who --missing-inputs drop -o plan.json"
WHOLE = "--protect rows --box age 0 90 --cells 6 --rows 40 --stages 2 -o plan.json"
RELEASE = f"release plan.json {TABLE} --no-ledger --yes --overwrite -o visits.cloak"


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    ages = [f"{age:.1f}" for age in rng.uniform(0, 90, 40)]
    ages[30:] = [""] * 10  # these rows are dropped
    who = [*["one"] * ROWS, *map(str, range(40 - ROWS))]
    cells = zip(who, ages, rng.integers(0, 20, 40), rng.integers(0, 9, 40), strict=True)
    rows = [",".join(map(str, row)) for row in cells]
    Path(TABLE).write_text("\n".join(["who,age,visits,income", *rows]) + "\n")


def test_dropped_rows_and_people_are_the_tables_own():
    """A list of others would have given a person with eight rows the noise of one."""
    good(f"{ASKED} {MODEL}")
    good(RELEASE)
    release = cloakgp.load("visits.cloak")
    assert release.plan.measurement.people.most_rows == ROWS
    assert release.plan.rows.dropped.tolist() == list(range(30, 40))


def digests(name, digest):
    return lambda body: body["data"].pop(name) if digest is None else body["data"].update({name: digest})


FORGED = {
    **{
        f"{name} {digest!r:.4}": (MODEL, digests(f"{name}_sha256", digest), name if digest else "")
        for name in ("people", "inputs")  # with an empty one, rows were released under the unit of one row
        for digest in ("", "0" * 64, None)
    },
    **{
        f"{len(dropped)} dropped rows": (MODEL, lambda b, d=dropped: b["data"].update(rows=40, dropped=d), "")
        for dropped in ([0, 1, 2, 3, 4, 5, 6], list(range(30, 40)))
    },
    "the noise of one row": (
        MODEL,
        lambda body: (body["settings"].pop("people"), body["settings"]["columns"].update(people="")),
        "people",
    ),
    "a digest of private inputs": (WHOLE, lambda body: body["data"].update(inputs_sha256="0" * 64), "inputs"),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_a_file_says_of_the_table_is_not_believed(monkeypatch, forged):
    """No noise is drawn, and nothing comes out."""
    model, change, about = FORGED[forged]
    good(f"{ASKED} {model}")
    edit(change, seal=True)
    drawn = []
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: drawn.append(sigma) or exact)
    result = run(RELEASE)
    assert result.code != 0
    assert drawn == []
    assert about in result.err
    assert not Path("visits.cloak").exists()


def test_whole_rows_read_the_columns_that_are_named():
    good(f"{ASKED} {WHOLE}")
    edit(lambda body: body["settings"]["grid"][0].update(name="income"), seal=True)
    said = run(RELEASE.replace("--yes ", ""), "n\n")
    assert said.code != 0
    assert "income" in said.err  # before anything is read


def write_full():
    rows = np.genfromtxt(TABLE, delimiter=",", skip_header=1, usecols=(1, 2))[:30]
    Path("full.csv").write_text("\n".join(["age,visits", *(f"{age},{n:g}" for age, n in rows)]))
    return {"age": rows[:, 0]}


def test_a_file_of_the_library_is_taken_if_it_names_its_columns():
    """And a file of the command line by the library: there is one form."""
    table = write_full()
    model, asked = cloakgp.AutoGP((0, 20), stages=2), {"epsilon": 1.0, "delta": 1e-3}
    model.plan(table["age"], **asked).save("plan.json")
    unnamed = run(RELEASE)
    assert (unnamed.code, "load_plan" in unnamed.err) == (2, True)
    plan = model.plan(table, columns=cloakgp.Columns.of(table, response="visits"), **asked)
    plan.save("plan.json")
    good(RELEASE.replace(TABLE, "full.csv"))
    assert cloakgp.load("visits.cloak").plan.digest == plan.digest
    line = "plan full.csv --inputs age --output visits --bounds 0 20 --epsilon 1 --delta 1e-3 --stages 2"
    assert good(f"{line} -o plan.json --json").data["plan_sha256"] == plan.digest
    assert cloakgp.load_plan("plan.json", table).question_digest == plan.question_digest
    good(f"{line} --at grid:5 -o plan.json")
    assert cloakgp.load_plan("plan.json", table).question.at == "grid:5"


def test_whatever_the_library_plans_for_a_table_can_be_shown_and_released():
    table, asked = write_full(), {"epsilon": 1.0, "delta": 1e-3}
    asked["columns"] = cloakgp.Columns.of(table, response="visits")
    kernel = cloakgp.kernels.EQ(20, variance=20)
    each = cloakgp.GP(kernel, np.full(30, 10.0), (np.zeros(30), np.full(30, 20.0)))
    plans = {
        "kind": cloakgp.GP(kernel, 10, (0, 20)).plan_function(table, **asked),
        "bounds": each.plan(table, X_star=[[1.0], [2.0]], weights=[1, 2], **asked),
    }
    for shown, plan in plans.items():
        plan.save("plan.json")
        assert shown in good("show plan.json").out
        said = good(RELEASE.replace(TABLE, "full.csv")).err
        assert ("2 test points with a weight of their own" in said) == ("bounds" in shown)
        assert cloakgp.load("visits.cloak").plan.digest == plan.digest
