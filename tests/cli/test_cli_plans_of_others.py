"""A plan file that somebody else made is settings: what else it says is not believed, and never meets y."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import good, run

import cloakgp
from cloakgp.private import room

ROWS = 8
"""Of the one person who has several."""
TABLE = "visits.csv"
ASKED = f"plan {TABLE} --inputs age --output visits --bounds 0 20 --epsilon 1 --delta 1e-4"
MODEL = "--kernel EQ(20,variance=20) --noise 10 --at grid:4 --people who --missing-inputs drop -o plan.json"
WHOLE = "--protect rows --box age 0 90 --cells 6 --rows 40 --stages 2 -o plan.json"
RELEASE = f"release plan.json {TABLE} --no-ledger --yes -o visits.cloak"


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


def forge(change):
    """The plan file with other words, and its own digest made right."""
    body = json.loads(Path("plan.json").read_text())
    change(body)
    body.pop("sha256")
    text = json.dumps(body, indent=1, sort_keys=True).encode()
    body["sha256"] = hashlib.sha256(text).hexdigest()
    Path("plan.json").write_text(json.dumps(body))


def refused(monkeypatch):
    """No noise is drawn, and nothing comes out."""
    drawn = []
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: drawn.append(sigma) or exact)
    result = run(RELEASE)
    assert result.code != 0
    assert drawn == []
    assert not Path("visits.cloak").exists()
    return result.err


def test_dropped_rows_and_people_are_the_tables_own(monkeypatch):
    """A list of others would have given a person with eight rows the noise of one."""
    good(f"{ASKED} {MODEL}")
    good(RELEASE)
    release = cloakgp.load("visits.cloak")
    assert release.plan.measurement.people.most_rows == ROWS
    assert release.plan.rows.dropped.tolist() == list(range(30, 40))
    Path("visits.cloak").unlink()
    for dropped in ([0, 1, 2, 3, 4, 5, 6], list(range(30, 40))):
        good(f"{ASKED} {MODEL}")
        forge(lambda body, dropped=dropped: body["data"].update(rows=40, dropped=dropped))
        refused(monkeypatch)


@pytest.mark.parametrize("digest", ["", "0" * 64, None])
def test_people_need_their_digest(monkeypatch, digest):
    """With an empty one, rows were released under the unit of one row."""
    good(f"{ASKED} {MODEL}")

    def change(body):
        if digest is None:
            del body["data"]["people_sha256"]
        else:
            body["data"]["people_sha256"] = digest

    forge(change)
    assert "people" in refused(monkeypatch)


@pytest.mark.parametrize("digest", ["", "0" * 64, None])
def test_inputs_need_their_digest(monkeypatch, digest):
    good(f"{ASKED} {MODEL}")

    def change(body):
        if digest is None:
            del body["data"]["inputs_sha256"]
        else:
            body["data"]["inputs_sha256"] = digest

    forge(change)
    assert "inputs" in refused(monkeypatch)


def test_the_noise_of_one_row_is_not_taken_for_that_of_people(monkeypatch):
    good(f"{ASKED} {MODEL}")
    forge(lambda body: (body["settings"].pop("people"), body["settings"].pop("within")))
    assert "people" in refused(monkeypatch)


def test_whole_rows_have_no_digest_and_read_the_columns_that_are_named(monkeypatch):
    good(f"{ASKED} {WHOLE}")
    assert json.loads(Path("plan.json").read_text())["data"] == {}
    forge(lambda body: body["data"].update(inputs_sha256="0" * 64))
    refused(monkeypatch)
    good(f"{ASKED} {WHOLE}")
    forge(lambda body: body["settings"]["grid"][0].update(name="income"))
    said = run(RELEASE.replace("--yes ", ""), "n\n")
    assert said.code != 0
    assert "income" in said.err  # before anything is read


def test_a_file_of_the_library_is_not_taken(monkeypatch):
    plan = cloakgp.AutoGP((0, 20)).plan(np.arange(9.0), epsilon=1.0)
    plan.save("plan.json")
    assert "load_plan" in refused(monkeypatch)
    good(f"{ASKED} {MODEL}")
    with pytest.raises(cloakgp.errors.InputError, match="command line"):
        cloakgp.load_plan("plan.json", np.arange(9.0))
