"""Releases in stages: paid once, each stage planned before it is answered, and answered once."""

from __future__ import annotations

import numpy as np
import pytest
from ledger_helpers import Kept, StagedPlan, Y, behind, go_on, random_numbers, rewrite, rows_of, small_plan

from cloakgp.accounting import Gaussian
from cloakgp.ledger import BudgetExceeded, Ledger, LedgerError, LedgerTampered, stages
from cloakgp.ledger.charge import Account, Receipt
from cloakgp.ledger.charging import paid, staged
from cloakgp.ledger.receipts import Claim
from cloakgp.ledger.store import Store
from cloakgp.testing import insecure_seed

PLAN = StagedPlan()
KINDS = ["opened", "created", "spent"] + ["planned", "answered"] * 3


def unwanted():
    raise AssertionError("y was read for nothing")


def nothing():
    """All is in order."""


def kinds(ledger):
    return [entry.kind for entry in ledger.entries()]


def as_they_are(records):
    return [(record.number, record.answer.tolist(), record.receipt) for record in records]


def as_made(charges):
    return [(number, charge.answer.tolist(), charge.receipt) for number, charge in enumerate(charges)]


def check_whole(ledger, entry, plan=PLAN):
    """Paid once, all stages planned and answered once, in order; returns the answers."""
    ledger.verify()
    assert kinds(ledger) == KINDS
    assert list(ledger.balance("people").events) == [plan.cost]
    records = ledger.stages(entry, plan)
    assert [record.number for record in records] == [0, 1, 2]
    for number, record in enumerate(records):
        assert record.contents == plan.stage_plan([before.answer for before in records[:number]])
    return [record.answer.tolist() for record in records]


def test_one_charge_then_zero_cost_entries(ledger):
    receipt = ledger.pay(PLAN, "people", why="growth", request="one")
    assert receipt == Receipt("people", 2, ledger.head)
    spent = ledger.balance("people")
    assert spent.events == (PLAN.cost,)
    assert ledger.stages(2, PLAN) == []
    charges = go_on(ledger, PLAN, 2, random_numbers)
    assert ledger.balance("people") == spent
    assert check_whole(ledger, 2) == [charge.answer.tolist() for charge in charges]
    assert as_they_are(ledger.stages(2, PLAN)) == as_made(charges)
    entries = ledger.entries("people")
    assert (entries[1].why, entries[1].request, entries[1].answer) == ("growth", "one", "")
    planned, answered = entries[4:6]
    words = {"paid": 2, "stage": 1, "stages": 3}
    assert planned.what == {**words, "digest": stages.sha256(PLAN.stage_plan([charges[0].answer]))}
    assert answered.what == words
    for entry in (planned, answered):
        assert (entry.plan, entry.dataset, entry.request) == (PLAN.digest, "people", None)
        assert entry.why == "stage 2 of 3, paid for in entry 2"


def test_what_is_on_record_is_given_again(ledger):
    ledger.pay(PLAN, "people")
    charges = go_on(ledger, PLAN, 2, random_numbers)
    assert as_made(go_on(ledger, PLAN, 2, unwanted)) == as_made(charges)
    assert kinds(ledger) == KINDS


def test_a_payment_that_is_asked_for_again(ledger):
    first = ledger.pay(PLAN, "people", request="one")
    assert ledger.pay(PLAN, "people", request="one") == first
    with pytest.raises(LedgerError, match="entry 2 was made from another plan"):
        ledger.pay(StagedPlan(stages=4), "people", request="one")
    assert kinds(ledger) == KINDS[:3]
    ledger.pay(PLAN, "people", request="two")
    ledger.pay(PLAN, "people")
    assert len(ledger.balance("people").events) == 3


def test_what_does_not_fit_is_refused(ledger):
    with pytest.raises(BudgetExceeded, match="does not fit"):
        ledger.pay(StagedPlan(mu=3.0), "people")
    with pytest.raises(LedgerError, match="not in this ledger"):
        ledger.pay(PLAN, "nobody")
    for number in (0, True, 1.5, None):
        with pytest.raises(ValueError, match="whole number of stages"):
            ledger.pay(StagedPlan(stages=number), "people")
    assert kinds(ledger) == KINDS[:2]


def test_what_cannot_be_used_is_not_paid_for(ledger):
    """y is looked at when the budget allows it, before it is paid; not where it is refused or was paid."""
    looked = []

    def fail():
        looked.append(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.pay(PLAN, "people", request="one", ready=fail)
    assert (len(looked), kinds(ledger)) == (1, KINDS[:2])
    with pytest.raises(BudgetExceeded):
        ledger.pay(StagedPlan(mu=3.0), "people", ready=unwanted)
    first = ledger.pay(PLAN, "people", request="one", ready=nothing)
    assert ledger.pay(PLAN, "people", request="one", ready=unwanted) == first


def test_a_charge_and_a_payment_are_not_mixed_up(ledger):
    """A staged plan asked for at once, or the other way round: said before anything is drawn."""
    ledger.pay(PLAN, "people", request="one")
    with pytest.raises(LedgerError, match="entry 2 pays for a release in stages"):
        ledger.charge(PLAN, "people", request="one").__enter__()
    with pytest.raises(LedgerError, match="entry 2 pays for a release in stages"):
        ledger.fetch(2, PLAN)
    with ledger.charge(PLAN, "people", request="two") as charge:
        charge.answer = random_numbers()
    with pytest.raises(LedgerError, match="answered at once"):
        ledger.pay(PLAN, "people", request="two")
    ledger.record("people", Gaussian(0.1, 2), "elsewhere")
    for entry in (0, 1, 3, 4, 5, -1):
        with pytest.raises(LedgerError, match="does not pay for a release in stages"):
            ledger.stages(entry, PLAN)
        with pytest.raises(LedgerError, match="does not pay for a release in stages"):
            ledger.stage(entry, 0, PLAN, b"").__enter__()
    with pytest.raises(TypeError, match="entry must be the number"):
        ledger.stages("2", PLAN)
    assert len(ledger.entries()) == 5


def refused(ledger, match, *, number=0, plan=PLAN, stage_plan=None, error=LedgerError):
    """Said on entering, with nothing on record but what was."""
    before = ledger.entries()
    stage_plan = PLAN.stage_plan([]) if stage_plan is None else stage_plan
    with pytest.raises(error, match=match):
        ledger.stage(2, number, plan, stage_plan).__enter__()
    assert ledger.entries() == before


def test_stages_come_in_order(ledger):
    ledger.pay(PLAN, "people")
    refused(ledger, "stage 2 of 3.*before the one before it is answered.*nothing was spent", number=1)
    with pytest.raises(KeyboardInterrupt), ledger.stage(2, 0, PLAN, PLAN.stage_plan([])):
        raise KeyboardInterrupt
    assert kinds(ledger) == [*KINDS[:3], "planned"]
    refused(ledger, "before the one before it is answered", number=1)
    go_on(ledger, PLAN, 2, random_numbers)
    for number in (3, -1, True, 0.0, "0"):
        refused(ledger, "number must be a whole number from 0 to 2", number=number, error=ValueError)
    refused(ledger, "stage_plan must be bytes", stage_plan="text", error=TypeError)


class AnotherNumberOfStages(StagedPlan):
    digest = PLAN.digest


def test_a_stage_is_planned_once(ledger):
    """Another plan for the stage, or for all of it, is refused before y is read."""
    ledger.pay(PLAN, "people")
    refused(ledger, "entry 2 was made from another plan", plan=StagedPlan(mu=0.2))
    with pytest.raises(ZeroDivisionError), ledger.stage(2, 0, PLAN, b"a plan"):
        raise ZeroDivisionError
    refused(ledger, "stage 1 of 3, paid for in entry 2, is on record with another plan", stage_plan=b"other")
    refused(ledger, "pays for 3 stages, and this plan has 4", plan=AnotherNumberOfStages(stages=4))
    with pytest.raises(LedgerError, match="entry 2 was made from another plan"):
        ledger.stages(2, StagedPlan(mu=0.2))
    with ledger.stage(2, 0, PLAN, b"a plan") as charge:
        charge.answer = random_numbers()
    refused(ledger, "is on record with another plan", stage_plan=b"other")
    [record] = ledger.stages(2, PLAN)
    assert (record.contents, record.answer.tolist()) == (b"a plan", charge.answer.tolist())


def test_an_answer_that_is_not_on_record_is_not_had(ledger, monkeypatch):
    ledger.pay(PLAN, "people")
    with pytest.raises(LedgerError, match="no answer was given"), ledger.stage(2, 0, PLAN, b""):
        pass
    charges = []

    def drawn_in_vain():
        with ledger.stage(2, 0, PLAN, b"") as charge:
            charges.append(charge)
            charge.answer = random_numbers()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        drawn_in_vain()
    assert charges[0].answer is None
    append = Store.append

    def fail(self, *given):
        append(self, *given)
        raise OSError("the disk is gone")

    monkeypatch.setattr(Store, "append", fail)
    with pytest.raises(OSError, match="gone"), ledger.stage(2, 0, PLAN, b"") as charge:
        charge.answer = random_numbers()
    assert charge.answer is None
    assert charge.receipt is None
    [record] = ledger.stages(2, PLAN)
    assert (record.answer, record.receipt) == (None, None)


def test_the_plan_is_on_record_before_the_answer_is_made(ledger, url):
    """Committed: another connection sees it while the stage is open."""
    ledger.pay(PLAN, "people")
    with ledger.stage(2, 0, PLAN, b"a plan") as charge:
        with behind(url) as connection:
            assert [bytes(row["contents"]) for row in rows_of(connection)[3:]] == [b"a plan"]
        charge.answer = random_numbers()


def test_releases_side_by_side(ledger):
    """Two releases in stages, and other spends between their stages."""
    other = StagedPlan(stages=2)
    for plan in (PLAN, other, PLAN):
        ledger.pay(plan, "people")
    for number in range(2):
        for entry, plan in ((4, PLAN), (3, other), (2, PLAN)):
            with ledger.stage(entry, number, plan, b"") as charge:
                charge.answer = np.array([entry, number])
        small_plan(epsilon=0.1).release(Y, ledger=ledger, dataset="people")
    ledger.verify()
    for entry, plan in ((2, PLAN), (3, other), (4, PLAN)):
        found = [record.answer.tolist() for record in ledger.stages(entry, plan)]
        assert found == [[entry, 0], [entry, 1]]


@pytest.mark.filterwarnings("ignore::cloakgp.testing.InsecureWarning")
def test_through_charging(ledger):
    """As plans use it: with a ledger, without one, and not with a seed."""
    account = Account(ledger, "people", request="one")
    entry = paid(PLAN, account, nothing)
    assert entry == paid(PLAN, account, unwanted) == 2
    for _ in range(2):
        with staged(PLAN, ledger, entry, 0, b"") as charge:
            if charge.answer is None:
                charge.answer = np.array([5])
    assert charge.receipt == Receipt("people", 4, ledger.head)
    assert paid(PLAN, Account(), unwanted) is None
    with staged(PLAN, None, None, 0, b"") as charge:
        assert charge.answer is None
    with insecure_seed(1):
        with pytest.raises(ValueError, match="insecure_seed"):
            paid(PLAN, Account(ledger, "people"), unwanted)
        with pytest.raises(ValueError, match="insecure_seed"):
            staged(PLAN, ledger, entry, 1, b"").__enter__()
    assert len(ledger.entries()) == 5


# ---------------------------------------------------------------- receipts


def test_a_cut_end_is_seen_by_the_last_receipt(ledger, url):
    """After what paid, or after an earlier stage: good chains in themselves, and the release tells."""
    ledger.pay(PLAN, "people")
    last = go_on(ledger, PLAN, 2, random_numbers)[-1]
    digest = stages.sha256(last.answer.astype("<i8").tobytes())
    claim = Claim("", last.receipt, PLAN.digest, digest)
    assert ledger.verify([claim, last.receipt]).releases == 2
    for wrong in (
        Claim("", last.receipt, PLAN.digest, "0" * 64),
        Claim("", last.receipt, "0" * 64, digest),
        Claim("", ledger.stages(2, PLAN)[1].receipt, PLAN.digest, digest),
    ):
        with pytest.raises(LedgerTampered, match="another plan or gave another answer"):
            ledger.verify(wrong)
    for length in (8, 7, 5, 4, 3):  # down to the entry that paid
        rewrite(url, lambda rows, length=length: rows[:length])
        assert ledger.verify().entries == length
        with pytest.raises(LedgerTampered, match="entry 8 of data set 'people' is not there any more"):
            ledger.verify(claim)
    go_on(ledger, PLAN, 2, random_numbers)
    with pytest.raises(LedgerTampered, match="written anew"):
        ledger.verify(claim)


def test_a_plan_on_record_is_no_answer(ledger):
    """Numbers whose digest is that of a stage's plan were not released by planning it."""
    ledger.pay(PLAN, "people")
    stage_plan = np.arange(3, dtype="<i8").tobytes()
    with ledger.stage(2, 0, PLAN, stage_plan) as charge:
        charge.answer = random_numbers()
    planned = ledger.entries()[3]
    claim = Claim("", Receipt("people", 3, planned.hash), PLAN.digest, stages.sha256(stage_plan))
    with pytest.raises(LedgerTampered, match="gave another answer"):
        ledger.verify(claim)


# ---------------------------------------------------------------- many at once


@pytest.mark.parametrize("payments", [0, 1])
def test_many_processes_draw_each_stage_once(ledger, url, children, tmp_path, payments):
    """All pay by one request name, or go on with what was paid: one draw for each stage, the same for all."""
    if payments:
        ledger.pay(PLAN, "people", request="in stages")
    drawn = tmp_path / "drawn"
    arguments = {"url": url, "plan": children.put(PLAN), "drawn": str(drawn)}
    arguments["entry"] = 2 if payments else None
    results = children.run([["spend_in_stages", arguments]] * 8)
    assert [signal for signal, _ in results] == [0] * 8
    lines = [line for _, printed in results for line in printed]
    assert len(lines) == 8
    assert all(line == lines[0] for line in lines)
    assert drawn.read_text() == "drawn\n" * 3
    assert lines[0] == {"paid": 2, "z": check_whole(ledger, 2), "last": 8}


def test_the_first_answer_stands_if_a_lock_fails(server, monkeypatch):
    """Without the data set's lock, two draw the same stage: only one answer is put on record and had."""
    ledger = Ledger(server.url(server.database()))
    ledger.create("people", epsilon=1.0, delta=0.01)
    ledger.pay(PLAN, "people")
    monkeypatch.setattr(Store, "lock_dataset", lambda *_: None)
    charges = []

    def draw(number):
        with ledger.stage(2, 0, PLAN, b"") as charge:
            charges.append(charge)
            if number == 2:
                draw(1)
            charge.answer = np.array([number])

    with pytest.raises(LedgerError, match="has changed meanwhile"):
        draw(2)
    second, first = charges
    assert (first.answer.tolist(), second.answer) == ([1], None)
    assert kinds(ledger) == KINDS[:5]
    ledger.verify()


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize(
    ("stop", "entries", "draws"),
    [
        ([None, "paid"], 3, 0),
        ([0, "planned"], 4, 0),
        ([None, "drawing"], 4, 1),
        ([0, "drawn"], 4, 1),
        ([0, "answered"], 5, 1),
        ([1, "planned"], 6, 1),
        ([1, "drawn"], 6, 2),
        ([2, "drawn"], 8, 3),
        ([2, "answered"], 9, 3),
    ],
)
def test_killed_between_and_in_stages(ledger, url, children, tmp_path, stop, entries, draws):
    """Nothing is paid twice, what was answered stays, and only what was not is drawn: by two at once."""
    drawn = tmp_path / "drawn"
    drawn.touch()
    arguments = {"url": url, "plan": children.put(PLAN), "drawn": str(drawn), "timeout": 10.0}
    [(signal, printed)] = children.run([["spend_in_stages", {**arguments, "stop": stop}]])
    assert (signal, printed) == (9, [])
    ledger.verify()
    assert kinds(ledger) == KINDS[:entries]
    assert drawn.read_text() == "drawn\n" * draws
    before = [record for record in ledger.stages(2, PLAN) if record.answer is not None]
    results = children.run([["spend_in_stages", arguments], ["spend_in_stages", {**arguments, "entry": 2}]])
    [[first], [second]] = [printed for _, printed in results]
    assert first == second
    assert first["z"] == check_whole(ledger, 2)
    assert as_they_are(ledger.stages(2, PLAN)[: len(before)]) == as_they_are(before)
    assert drawn.read_text() == "drawn\n" * (draws + 3 - len(before))


def test_killed_at_every_line_of_a_stage(url, children, tmp_path):
    """Every line of the ledger that a release in stages goes through; then it is gone on with."""
    ledger = Ledger(url, timeout=10.0)
    drawn = tmp_path / "drawn"
    plan = StagedPlan(stages=2, mu=1e-3)
    arguments = {"url": url, "plan": children.put(plan), "drawn": str(drawn), "timeout": 10.0}
    ledger.create("people", epsilon=1.0, delta=0.01)
    [(_, [_, passed])] = children.run([["lines", {"then": "spend_in_stages", **arguments}]])
    lines = [place for place in passed["lines"] if "stages" in place[0] or "records" in place[0]]
    assert len(lines) > 40, "the tracer missed the stages"
    arguments["entry"] = entry = ledger.pay(plan, "people").entry
    kept = Kept(url)
    for place in lines[:: 2 if url.startswith("sqlite") else 8]:
        kept.put_back()  # what is paid for, for each line
        [(signal, _)] = children.run(
            [["die_at_line", {"place": place, "then": "spend_in_stages", **arguments}]]
        )
        assert signal == 9
        before = [record for record in ledger.stages(entry, plan) if record.answer is not None]
        charges = go_on(ledger, plan, entry, random_numbers)
        assert as_made(charges)[: len(before)] == as_they_are(before)
        ledger.verify()
        assert len(ledger.balance("people").events) == 2
