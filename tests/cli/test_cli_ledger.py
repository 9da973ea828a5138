"""``cloakgp ledger verify`` against what was published: a ledger that was put back is found out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import LEDGER, PLAN, budget, good, run

VERIFY = f"ledger verify {LEDGER} --releases published"
RELEASE = f"release plan.json data.csv {LEDGER} --dataset kung --yes -o "


@pytest.fixture(autouse=True)
def published(people: None) -> None:
    """Two releases in a folder, with other files; and the ledger as it was before the second."""
    budget(3.0)
    good(f"{PLAN} -o plan.json")
    Path("published").mkdir()
    good(f"{RELEASE}published/first.cloak")
    shutil.copy("budget.db", "old.db")
    good(f"{RELEASE}published/second.cloak --again 2")
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
    Path("published/second.cloak").rename("published/second.zip")  # a release file by another name
    assert good(f"{VERIFY} --json").data["releases"] == 2


def put_back() -> None:
    shutil.copy("old.db", "budget.db")
    good(f"ledger verify {LEDGER}")  # whole in itself


def put_back_and_spent_from() -> None:
    """The number of the entry is there again, with another hash."""
    put_back()
    good(f"{RELEASE}third.cloak --again 2")


def made_anew() -> None:
    Path("budget.db").unlink()
    assert run(VERIFY).code == 4
    budget(3.0)


def damaged() -> None:
    good("release plan.json data.csv --no-ledger --yes -o published/free.cloak")
    whole = Path("published/first.cloak").read_bytes()
    Path("published/cut.cloak").write_bytes(whole[:1000])
    Path("published/other.cloak").write_bytes(whole[:-100].replace(b"PK\x05\x06", b"PK\x05\x07"))


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (put_back, {"second"}),
        (put_back_and_spent_from, {"second"}),
        (made_anew, {"first", "second"}),
        (damaged, {"free", "cut", "other"}),
    ],
)
def test_what_is_not_in_the_ledger_is_listed(change: Callable[[], None], lost: set[str]) -> None:
    """Exit code 1, and these files named, no others."""
    change()
    result = run(f"{VERIFY} --json")
    assert (result.code, result.data["exit_code"]) == (1, 1)
    assert {path.stem for path in Path("published").iterdir() if path.name in result.data["error"]} == lost


def test_nothing_to_compare_is_no_success() -> None:
    for folder in ("published/drafts", "nowhere", "published/notes.txt"):
        result = run(f"ledger verify {LEDGER} --releases {folder}")
        assert (result.code, folder in result.err) == (2, True)


def test_a_head_that_was_noted() -> None:
    head = good(f"ledger show {LEDGER} --json").data["head"]
    assert head in good(f"ledger verify {LEDGER} --head {head}").out
    shutil.copy("old.db", "budget.db")
    result = run(f"ledger verify {LEDGER} --head {head}")
    assert (result.code, "the head that was noted is not in it" in result.err) == (1, True)


def test_a_release_in_stages_is_one_spend_and_each_data_set_has_its_unit() -> None:
    """Its stages are listed with what they are, and cost nothing."""
    good(f"ledger create {LEDGER} --dataset patients --epsilon 1 --delta 0.01 --unit 'one person'")
    learn = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.01 --stages 2"
    good(f"{learn} -o learn.json")
    good(f"{RELEASE.replace('plan.json', 'learn.json')}published/learned.cloak")
    shown = good(f"ledger show {LEDGER} --entries --json").data
    units = [(each["dataset"], each["unit"], each["spends"]) for each in shown["datasets"]]
    assert units == [("kung", "one row", 3), ("patients", "one person", 0)]
    kinds, paid = [entry["kind"] for entry in shown["entries"]], shown["entries"][-3]["number"]
    assert kinds == ["opened", "created", "spent", "spent", "created", "spent", "answered", "answered"]
    assert shown["entries"][-1]["what"] == {"paid": paid, "stage": 2}
    listed = good(f"ledger show {LEDGER} --entries").out.splitlines()
    assert listed[-1].split()[1] == "answered"
    assert listed[-1].endswith(f"stage 3 of 3, paid for in entry {paid}")
    good(VERIFY)
