"""A release is its stages: paid for whole with the first, each answered once, and had again for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ledger_helpers import AnyPlan, answer_all, as_they_are, random_numbers, rewrite, stage_of

from cloakgp.core.accounting import Gaussian
from cloakgp.core.errors import ArgumentError, ArgumentTypeError
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered, charging
from cloakgp.ledger.chain import Claim, Receipt, sha256
from cloakgp.ledger.charging import Account
from cloakgp.ledger.store import Store
from cloakgp.testing import insecure_seed

PLAN = AnyPlan(stages=3)
EACH = pytest.mark.parametrize("plan", [AnyPlan(), PLAN], ids=["one stage", "three stages"])


def unwanted():
    raise AssertionError("y was read for nothing")


def check_whole(ledger, entry, plan):
    """Paid for once, all stages answered once, in order; returns the answers."""
    ledger.verify()
    kinds = [each.kind for each in ledger.entries("people")]
    assert kinds == ["created", "spent"] + ["answered"] * (plan.stages - 1)
    assert ledger.balance("people").events == (plan.cost,)
    assert not ledger.is_unfinished(entry)
    found = ledger.answers(entry, plan)
    for number, charge in enumerate(found):
        own = plan.stage_plan([before.answer for before in found[:number]])
        assert charge.plan == (own if number else None)
    return as_they_are(found)


@EACH
def test_one_charge_and_entries_at_no_cost(ledger, plan):
    charges = answer_all(ledger, plan, why="growth", request="one")
    assert check_whole(ledger, 2, plan) == as_they_are(charges)
    spent, *later = ledger.entries()[2:]
    assert (spent.why, spent.request, spent.what["stages"]) == ("growth", "one", plan.stages)
    assert spent.answer == sha256(charges[0].answer.astype("<i8").tobytes())
    assert ledger.charged_plan(2) == plan.to_bytes()
    for number, entry in enumerate(later, 1):
        assert entry.what == {"paid": 2, "stage": number}
        assert (entry.plan, entry.dataset, entry.request) == (plan.digest, "people", None)
        assert entry.why == f"stage {number + 1} of {plan.stages}, paid for in entry 2"
        stage_plan = plan.stage_plan([charge.answer for charge in charges[:number]])
        assert ledger.charged_plan(entry.number) == stage_plan


@EACH
def test_the_same_request_has_the_same_answers_for_nothing(ledger, plan):
    charges = answer_all(ledger, plan, request="one")
    assert as_they_are(answer_all(ledger, plan, unwanted, request="one")) == as_they_are(charges)
    check_whole(ledger, 2, plan)
    with pytest.raises(LedgerError, match="entry 2 was made from another plan"):
        ledger.charge(AnyPlan(stages=4), "people", request="one").__enter__()
    answer_all(ledger, plan, request="two")
    answer_all(ledger, plan)
    assert len(ledger.balance("people").events) == 3


def test_stages_come_in_order(ledger):
    answer_all(ledger, PLAN)
    with ledger.charge(PLAN, "people") as charge:  # entry 5: one stage of three
        charge.answer = random_numbers()
    ledger.record("people", Gaussian(0.1, 2), "elsewhere")
    assert [ledger.is_unfinished(entry) for entry in (0, 2, 3, 5, 6, 7)] == [False] * 3 + [True] + [False] * 2
    for entry, number, stage_plan, error in [
        (5, 2, b"", LedgerError),  # before the second
        *((2, number, b"", ArgumentError) for number in (3, -1, True, 1.0, "1")),
        (2, 1, "text", ArgumentTypeError),
        *((entry, 1, b"", LedgerError) for entry in (0, 1, 3, 6, 7, -1, 10**9)),
        *((entry, 1, b"", ArgumentTypeError) for entry in ("2", 2.0, None, True)),
    ]:
        with pytest.raises(error):
            ledger.stage(entry, number, PLAN, stage_plan).__enter__()
    for entry in ("2", [2], None):
        with pytest.raises(ArgumentTypeError):
            ledger.is_unfinished(entry)
        if error is not ArgumentError and stage_plan == b"" and number == 1:
            with pytest.raises(error):
                ledger.answers(entry, PLAN)
    assert len(ledger.entries()) == 7


@pytest.mark.parametrize("number", [0, 1])
def test_an_answer_that_is_not_on_record_is_not_had(ledger, monkeypatch, number):
    """None was given, the block fails, or the database does: then nothing was charged."""
    if number:
        with stage_of(ledger, PLAN, 2, 0) as charge:
            charge.answer = random_numbers()
    before, charges, append = ledger.entries(), [], Store.append

    def fail(self, *given):
        append(self, *given)
        raise ZeroDivisionError

    def answer(broken):
        with stage_of(ledger, PLAN, 2, number) as charge:
            charges.append(charge)
            charge.answer = random_numbers()
            if broken == "block":
                raise KeyboardInterrupt

    with pytest.raises(LedgerError, match="no answer was given"), stage_of(ledger, PLAN, 2, number):
        pass
    with pytest.raises(KeyboardInterrupt):
        answer("block")
    monkeypatch.setattr(Store, "append", fail)
    with pytest.raises(ZeroDivisionError):
        answer("database")
    monkeypatch.undo()
    assert [(charge.answer, charge.receipt) for charge in charges] == [(None, None)] * 2
    assert ledger.entries() == before
    answer("nothing")
    assert len(ledger.entries()) == len(before) + 1


@pytest.mark.filterwarnings("ignore::cloakgp.testing.InsecureWarning")
def test_through_charging(ledger):
    """As plans use it: with a ledger, without one, and not with a seed."""
    account = Account(ledger, "people", request="one")
    for number in (0, 0, 1, 1):
        with charging.stage(PLAN, ledger, 2, 1, b"") if number else charging.charge(PLAN, account) as found:
            if found.answer is None:
                found.answer = np.array([5])
    assert found.receipt == Receipt("people", 3, ledger.head)
    for without in (charging.charge(PLAN, Account()), charging.stage(PLAN, None, None, 1, b"")):
        with without as found:
            assert found.answer is None
    with insecure_seed(1):
        for refused in (
            lambda: charging.charge(PLAN, account),
            charging.stage(PLAN, ledger, 2, 2, b"").__enter__,
        ):
            with pytest.raises(ValueError, match="insecure_seed"):
                refused()
    assert len(ledger.entries()) == 4


def test_a_cut_end_is_seen_by_the_last_receipt(ledger, url):
    """After what paid, or after a later stage: good chains in themselves, and the release tells."""
    charges = answer_all(ledger, PLAN)
    digests = [sha256(charge.answer.astype("<i8").tobytes()) for charge in charges]
    claim = Claim("", charges[2].receipt, PLAN.digest, tuple(digests))
    assert ledger.verify([claim, charges[2].receipt]).releases == 2
    for wrong in (
        replace(claim, answers=(*digests[:2], digests[1])),
        replace(claim, plan="0" * 64),
        replace(claim, receipt=charges[1].receipt),
        replace(claim, answers=(digests[1], digests[0], digests[2])),
        replace(claim, answers=(digests[2],)),
    ):
        with pytest.raises(LedgerTampered):
            ledger.verify(wrong)
    for length in (4, 3):  # down to the entry that paid
        rewrite(url, lambda rows, length=length: rows[:length])
        assert ledger.verify().entries == length
        with pytest.raises(LedgerTampered, match="entry 4 of data set 'people' is not there any more"):
            ledger.verify(claim)
    for number in (1, 2):
        with ledger.stage(2, number, PLAN, b"") as charge:
            charge.answer = random_numbers()
    with pytest.raises(LedgerTampered, match="written anew"):
        ledger.verify(claim)


@EACH
def test_many_processes_draw_each_stage_once(ledger, url, children, tmp_path, plan):
    """All by one request name: one draw for each stage, and the same for all."""
    drawn = tmp_path / "drawn"
    call = {"url": url, "plan": children.put(plan), "drawn": str(drawn), "request": "one"}
    results = children.run([["answer", call]] * 8)
    assert [signal for signal, _ in results] == [0] * 8
    assert all(lines == results[0][1] for _, lines in results)
    assert drawn.read_text() == "drawn\n" * plan.stages
    on_record = check_whole(ledger, 2, plan)
    assert results[0][1] == [{"z": z, "entry": receipt.entry} for z, receipt in on_record]


@pytest.mark.parametrize("number", [0, 1])
def test_the_first_answer_stands_if_a_lock_fails(server, monkeypatch, number):
    """Without the data set's lock, two draw the same stage: only one answer is put on record and had."""
    ledger = Ledger(server.url(server.database()))
    ledger.create("people", epsilon=1.0, delta=0.01)
    if number:
        answer_all(ledger, PLAN)
        rewrite(ledger._store.url, lambda rows: rows[:3])
    lock = Store.lock
    monkeypatch.setattr(Store, "lock", lambda self, *given: None if given[1:] else lock(self, *given))
    charges = []

    def draw(nested):
        with (
            ledger.stage(2, 1, PLAN, b"")
            if number
            else ledger.charge(PLAN, "people", request="one") as charge
        ):
            charges.append(charge)
            if nested:
                draw(nested=False)
            charge.answer = np.array([nested])

    with pytest.raises(LedgerError, match="answered meanwhile"):
        draw(nested=True)
    second, first = charges
    assert (first.answer.tolist(), second.answer) == ([0], None)
    assert len(ledger.entries()) == 3 + number
    ledger.verify()
