"""``kill -9`` at every step of a release: nothing is lost, nothing leaks, and nothing stays locked."""

from __future__ import annotations

import random
import re
import shutil
import time
from contextlib import suppress

import pytest
from ledger_helpers import Unreadable, Y, small_plan

from cloakgp import Release
from cloakgp.ledger import BudgetExceeded, Ledger, LedgerError

CHARGED = {  # by a release that is killed at this step
    "before the lock": False,
    "after the lock": False,
    "before the fit is checked": False,
    "after the fit is checked": False,
    "before y is read": False,
    "before noise is drawn": False,
    "after noise is drawn": False,
    "after y was read": False,
    "before the entry is written": False,
    "after the entry is written": False,
    "before the commit": False,
    "after the commit": True,
    "before the answer is handed over": True,
    "before the answer is shown": True,
    "while the file is written": True,
}


def check_after_a_crash(ledger, plan, before, printed):
    """Return whether it was charged, after checking that all is in order either way."""
    ledger.verify()
    spends = [entry for entry in ledger.entries("people") if entry.kind == "spent"]
    assert len(spends) - before in (0, 1)
    assert len(printed) <= len(spends) - before, "an answer got out that is not on record"
    if len(spends) == before:
        return False
    again = [plan.recover(ledger, spends[-1].number).z.tolist() for _ in range(2)]
    assert again[0] == again[1]
    assert all(line["z"] == again[0] for line in printed)
    return True


@pytest.mark.parametrize("step", CHARGED)
def test_killed_at_a_step(url, ledger, plan, children, tmp_path, step):
    """Not charged and free to be asked again; or charged, and the answer still to be had."""
    saved = tmp_path / "release.cloak"
    arguments = {
        "url": url,
        "plan": children.put(plan),
        "y": Y.tolist(),
        "request": "table 3",
        "save": str(saved),
    }
    [(signal, printed)] = children.run([["die_at", {"step": step, "then": "spend", **arguments}]])
    assert signal == 9
    assert not saved.exists()
    assert check_after_a_crash(ledger, plan, 0, printed) == CHARGED[step]
    # The same request again: it is answered from the record if it was charged, and charged now if not.
    patient = Ledger(url, timeout=5.0)
    y = Unreadable() if CHARGED[step] else Y
    release = plan.release(y, ledger=patient, dataset="people", request="table 3")
    assert all(line["z"] == release.z.tolist() for line in printed)
    assert len(ledger.balance("people").events) == 1
    release.save(saved)
    ledger.verify([saved])
    assert Release.load(saved).z.tolist() == release.z.tolist()
    with pytest.raises(BudgetExceeded):
        plan.release(Unreadable(), ledger=patient, dataset="people")


def test_killed_at_every_line(url, children):
    """Every line of the ledger that a release goes through, one after another."""
    plan = small_plan(epsilon=0.01)
    ledger = Ledger(url, timeout=5.0)
    ledger.create("people", epsilon=1.0, delta=0.01)
    plan.release(Y, ledger=ledger, dataset="people")
    arguments = {"url": url, "plan": children.put(plan), "y": Y.tolist(), "timeout": 5.0}
    [(signal, [*printed, passed])] = children.run([["lines", {"then": "spend", **arguments}]])
    assert signal == 0
    assert len(printed) == 1
    assert len(passed["lines"]) > 60, "the tracer missed the library"
    spent, charged = 2, []
    for place in (
        passed["lines"] if url.startswith("sqlite") else [*passed["lines"][::4], passed["lines"][-1]]
    ):
        [(signal, printed)] = children.run([["die_at_line", {"place": place, "then": "spend", **arguments}]])
        assert signal == 9
        charged.append(check_after_a_crash(ledger, plan, spent, printed))
        spent += charged[-1]
    assert charged == sorted(charged), "charged at one line, not charged at a later one"
    assert charged[0] is False
    assert charged[-1] is True


def test_killed_while_a_ledger_is_made(url, children):
    """The first data set of an empty database: made whole or not at all, and it can be made then."""
    [(signal, [*_, passed])] = children.run([["lines", {"then": "create", "url": url, "dataset": "people"}]])
    assert signal == 0
    for i, place in enumerate(passed["lines"][:: 4 if url.startswith("sqlite") else 10]):
        fresh = re.sub(r"budget\.db$", f"other{i}.db", url)
        children.run(
            [["die_at_line", {"place": place, "then": "create", "url": fresh, "dataset": f"set {i}"}]]
        )
        ledger = Ledger(fresh, timeout=5.0)
        with suppress(LedgerError):  # it was made
            ledger.create(f"set {i}", epsilon=1.0, delta=0.01)
        ledger.verify()
        assert f"set {i}" in ledger.datasets()


@pytest.mark.slow  # at each step and line: above
def test_killed_at_any_time(url, children):
    """Four processes spend in a loop and are killed together, over and over: what got out is on record."""
    dice, scale, rounds = random.Random(3), 0.15, 0
    plan = small_plan(epsilon=0.005)
    ledger = Ledger(url, timeout=10.0)
    ledger.create("people", epsilon=1.0, delta=0.01)
    arguments = {"url": url, "plan": children.put(plan), "y": Y.tolist(), "times": 1000}
    printed, end = [], time.monotonic() + 20
    while rounds < 6 and time.monotonic() < end:
        results = children.run([["spend", arguments]] * 4, kill_after=scale * dice.uniform(0.3, 2))
        assert [signal for signal, _ in results] == [9] * 4
        lines = [line for _, lines in results for line in lines]
        printed += lines
        rounds += bool(lines)
        scale *= 1 if lines else 1.3  # a slow machine
        ledger.verify()
    entries = {entry.number: entry for entry in ledger.entries("people") if entry.kind == "spent"}
    assert 5 < len(printed) <= len(entries)
    assert len({line["entry"] for line in printed}) == len(printed)
    for line in printed:
        assert entries[line["entry"]].hash == line["head"]
        assert plan.recover(ledger, line["entry"]).z.tolist() == line["z"]
    plan.release(Y, ledger=ledger, dataset="people")
    ledger.verify()


def test_a_copy_taken_in_the_middle_of_a_commit(file_url, folder, tmp_path, plan, children):
    """The power goes off before the commit: the file and its journal together are the ledger before."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    head = ledger.head
    arguments = {"url": file_url, "plan": children.put(plan), "y": Y.tolist()}
    children.run([["die_at", {"step": "before the commit", "then": "spend", **arguments}]])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in folder.glob("budget.db*"):
        shutil.copy(path, elsewhere)
    assert Ledger(f"sqlite:///{elsewhere}/budget.db").head == head
