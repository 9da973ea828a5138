"""``cloakgp ledger verify`` against what was published: a ledger that was put back is found out."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, budget, good, run

from cloakgp.accounting import Gaussian
from cloakgp.ledger import Ledger

VERIFY = f"ledger verify {LEDGER} --releases published"


@pytest.fixture(autouse=True)
def published(people: None) -> None:
    """Two releases in a folder, with other files; and the ledger as it was before the second."""
    budget(3.0)
    good(f"{PLAN} -o plan.json")
    Path("published").mkdir()
    line = f"release plan.json data.csv {LEDGER} --dataset kung --yes -o published/"
    good(f"{line}first.cloak")
    shutil.copy("budget.db", "old.db")
    good(f"{line}second.cloak --again 2")
    Path("published/notes.txt").write_text("not a release")
    shutil.copy("plan.json", "published/plan.json")
    Path("published/plan.plan").write_bytes(b"PK\x03\x04 no release")
    Path("published/drafts").mkdir()


def test_a_folder_of_releases_is_compared() -> None:
    shown = good(f"{VERIFY} --json")
    assert (shown.data["releases"], shown.data["ignored"]) == (2, 3)
    assert "ignored: 3 file(s)" in shown.err
    text = good(f"{VERIFY} --releases published --release published/first.cloak").out
    assert "5 release(s) found" in text


def test_a_release_file_of_another_name_is_one() -> None:
    Path("published/second.cloak").rename("published/second.zip")
    assert good(f"{VERIFY} --json").data["releases"] == 2


def check_listed(*lost: str) -> None:
    """Exit code 1, and these files named, no others."""
    result = run(f"{VERIFY} --json")
    assert (result.code, result.data["exit_code"]) == (1, 1)
    there = {path.name for path in Path("published").iterdir() if path.name in result.data["error"]}
    assert there == set(lost)


def test_a_ledger_that_was_put_back() -> None:
    shutil.copy("old.db", "budget.db")
    good(f"ledger verify {LEDGER}")  # whole in itself
    check_listed("second.cloak")


def test_a_ledger_that_was_put_back_and_spent_from() -> None:
    """The number of the entry is there again, with another hash."""
    shutil.copy("old.db", "budget.db")
    good(f"release plan.json data.csv {LEDGER} --dataset kung --yes -o third.cloak --again 2")
    check_listed("second.cloak")


def test_another_ledger_with_the_same_data_set() -> None:
    Path("budget.db").unlink()
    assert run(VERIFY).code == 4
    budget(3.0)
    check_listed("first.cloak", "second.cloak")


def test_what_no_ledger_paid_for_and_what_is_damaged_are_listed() -> None:
    good("release plan.json data.csv --no-ledger --yes -o published/free.cloak")
    whole = Path("published/first.cloak").read_bytes()
    Path("published/cut.cloak").write_bytes(whole[:1000])
    Path("published/other.cloak").write_bytes(whole[:-100].replace(b"PK\x05\x06", b"PK\x05\x07"))
    check_listed("free.cloak", "cut.cloak", "other.cloak")


def test_nothing_to_compare_is_no_success() -> None:
    for folder in ("published/drafts", "nowhere", "published/notes.txt"):
        result = run(f"ledger verify {LEDGER} --releases {folder}")
        assert result.code == 2
        assert folder in result.err


def test_a_head_that_was_noted() -> None:
    head = good(f"ledger show {LEDGER} --json").data["head"]
    assert head in good(f"ledger verify {LEDGER} --head {head}").out
    shutil.copy("old.db", "budget.db")
    result = run(f"ledger verify {LEDGER} --head {head}")
    assert result.code == 1
    assert "the head that was noted is not in it" in result.err


def test_a_release_in_stages_is_one_spend() -> None:
    """Its stages are listed with what they are, and cost nothing."""
    before = good(f"ledger show {LEDGER} --json").data["datasets"][0]
    digests = {"digest": "a" * 64, "inputs_digest": "b" * 64, "question_digest": "c" * 64, "partition": ""}
    plan = SimpleNamespace(
        cost=Gaussian(0.1, 2), stages=2, unit="one row", delta=0.01, to_bytes=lambda: b"a plan", **digests
    )
    ledger = Ledger(LEDGER.split()[-1])
    paid = ledger.pay(plan, "kung", "growth").entry
    spent = good(f"ledger show {LEDGER} --json").data["datasets"][0]
    assert (before["spends"], spent["spends"]) == (2, 3)
    for number in range(2):
        with ledger.stage(paid, number, plan, b"a plan") as charge:
            charge.answer = np.array([5])
    shown = good(f"ledger show {LEDGER} --entries --json").data
    assert shown["datasets"] == [spent]
    assert [entry["kind"] for entry in shown["entries"][paid:]] == ["spent", *["planned", "answered"] * 2]
    assert shown["entries"][-1]["what"] == {"paid": paid, "stage": 1, "stages": 2}
    listed = good(f"ledger show {LEDGER} --entries").out.splitlines()
    assert listed[-1].split()[1] == "answered"
    assert listed[-1].endswith(f"stage 2 of 2, paid for in entry {paid}")
    good(VERIFY)


def test_a_data_set_has_one_unit() -> None:
    """Named by every command that shows it; a plan for another is refused before anything is read."""
    made = good(f"ledger create {LEDGER} --dataset patients --epsilon 1 --delta 0.01 --unit 'one person'")
    assert "; unit: one person" in made.out
    shown = good(f"ledger show {LEDGER} --json").data["datasets"]
    assert [(each["dataset"], each["unit"]) for each in shown] == [
        ("kung", "one row"),
        ("patients", "one person"),
    ]
    result = run(f"release plan.json data.csv {LEDGER} --dataset patients --yes -o refused.cloak")
    assert result.code == 1
    assert "has the unit 'one person', and this is for 'one row'" in result.err
    assert "the output column was not read" in result.err
    assert not Path("refused.cloak").exists()
    wrong = run(f"ledger create {LEDGER} --dataset x --epsilon 1 --delta 0.01 --unit somebody")
    assert wrong.code == 2
    assert "--unit must be one of 'one row'" in wrong.err
