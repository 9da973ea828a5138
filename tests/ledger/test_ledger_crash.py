"""``kill -9`` at every step of a release: nothing is lost, nothing leaks, and nothing stays locked.

One contract, whatever the step and however many stages: what was printed is on record, what is on record can
be had again, and the release can be asked for again and goes on where it stopped.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress

import pytest
from ledger_helpers import AnyPlan, Kept, Unreadable, Y, answer_all, as_they_are

from cloakgp import load
from cloakgp.ledger import BudgetExceeded, Ledger, LedgerError

CHARGED = {  # by a release that is killed at this step
    "before y is read": False,
    "after noise is drawn": False,
    "before the commit": False,
    "after the commit": True,
    "before the answer is shown": True,
    "while the file is written": True,
}


@pytest.mark.parametrize("step", CHARGED)
def test_killed_at_a_step(url, ledger, plan, children, tmp_path, step):
    """Not charged and free to be asked again; or charged, and the answer still to be had, y unread."""
    saved = tmp_path / "release.cloak"
    arguments = {
        "url": url,
        "plan": children.put(plan),
        "y": Y.tolist(),
        "request": "one",
        "save": str(saved),
    }
    [(signal, printed)] = children.run([["die_at", {"step": step, "then": "spend", **arguments}]])
    assert signal == 9
    assert not saved.exists()
    ledger.verify()
    assert len(ledger.balance("people").events) == CHARGED[step] >= len(printed)
    patient = Ledger(url, timeout=5.0)
    y = Unreadable() if CHARGED[step] else Y
    release = plan.release(y, ledger=patient, dataset="people", request="one")
    assert all(line["z"] == release.z.tolist() for line in printed)
    assert len(ledger.balance("people").events) == 1
    release.save(saved)
    ledger.verify([saved])
    assert load(saved).z.tolist() == plan.recover(ledger, 2).z.tolist()
    with pytest.raises(BudgetExceeded):
        plan.release(Unreadable(), ledger=patient, dataset="people")


def go_on(ledger, url, plan, printed):
    """Check what a crash left, and go on: how many stages were answered before."""
    ledger.verify()
    spends = [entry.number for entry in ledger.entries("people") if entry.request == "one"]
    before = as_they_are(ledger.answers(spends[0], plan)) if spends else []
    assert [line["z"] for line in printed] == [z for z, _ in before][: len(printed)]
    charges = answer_all(Ledger(url, timeout=5.0), plan, request="one")
    assert as_they_are(charges)[: len(before)] == before
    ledger.verify()
    assert not ledger.is_unfinished(charges[0].receipt.entry)
    assert len(ledger.balance("people").events) == 2
    return len(before)


@pytest.fixture(scope="module")
def kept(own_url):
    """A ledger with another release in it."""
    ledger = Ledger(own_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    answer_all(ledger, AnyPlan(), request="another")
    return Kept(own_url)


@pytest.mark.parametrize("stages", [1, 3])
def test_killed_at_many_lines(kept, children, stages):
    """At every few lines of the ledger that a release goes through, when it first comes to them."""
    url, plan = kept.put_back(), AnyPlan(stages=stages)
    ledger = Ledger(url, timeout=5.0)
    call = {"url": url, "plan": children.put(plan), "request": "one", "timeout": 5.0}
    [(signal, [*printed, passed])] = children.run([["lines", {"then": "answer", **call}]])
    assert (signal, len(printed)) == (0, stages)
    assert len(passed["lines"]) > 60, "the tracer missed the library"
    step = (3 if url.startswith("sqlite") else 10) * stages
    answered = []
    for place in [*passed["lines"][::step], passed["lines"][-1]]:
        kept.put_back()
        [(signal, printed)] = children.run([["die_at_line", {"place": place, "then": "answer", **call}]])
        assert signal == 9
        answered.append(go_on(ledger, url, plan, printed))
    assert answered == sorted(answered), "on record at one line, and not at a later one"
    assert (answered[0], answered[-1] > 0) == (0, True)


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
