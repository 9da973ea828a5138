"""Stages that no ledger wrote are found out, also where every hash is right."""

from __future__ import annotations

import json

import pytest
from ledger_helpers import Kept, StagedPlan, behind, disarm, go_on, random_numbers, rewrite, table_of

from cloakgp.accounting import Gaussian
from cloakgp.ledger import Ledger, LedgerTampered
from cloakgp.ledger.chain import sha256

PLAN, OTHER = StagedPlan(), StagedPlan(mu=0.05)
PAID, FIRST, LAST = 3, 4, 9  # the entries: 0 opened, 1 and 2 created, 3 spent, 4 to 9 planned and answered


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('staged')}/budget.db"
    ledger = Ledger(url, who="a tester")
    ledger.create("people", epsilon=1.0, delta=0.01)
    ledger.create("others", epsilon=1.0, delta=0.01)
    ledger.pay(PLAN, "people")
    go_on(ledger, PLAN, PAID, random_numbers)
    ledger.pay(OTHER, "people")  # 10
    ledger.record("people", Gaussian(0.01, 2), "elsewhere")  # 11
    with ledger.charge(PLAN, "people") as charge:  # 12: answered at once
        charge.answer = random_numbers()
    kept = Kept(url)
    yield kept
    kept.check()


@pytest.fixture
def file_url(once):
    return once.put_back()


@pytest.fixture
def staged(file_url):
    """A ledger with a whole release in stages, one that was paid for, and a spend of another kind."""
    return Ledger(file_url, who="a tester")


def words(row, **new):
    row["what"] = json.dumps({**json.loads(row["what"]), **new})


def without(word):
    def change(rows):
        what = json.loads(rows[FIRST]["what"])
        del what[word]
        rows[FIRST]["what"] = json.dumps(what)

    return change


def changed(number, **new):
    """Columns of one row; of the words in `what`, those that it has."""

    def change(rows):
        inside = {word: new[word] for word in new if word in ("paid", "stage", "stages", "digest", "more")}
        words(rows[number], **inside)
        rows[number].update({word: new[word] for word in new if word not in inside})

    return change


def in_order(*numbers):
    """These rows, renumbered."""
    return lambda rows: [{**rows[number], "number": new} for new, number in enumerate(numbers)]


def once_more(number, **new):
    """A copy of a row at the end."""

    def change(rows):
        rows.append({**rows[number], "number": len(rows)})
        changed(len(rows) - 1, **new)(rows)

    return change


BEFORE, WHOLE = range(FIRST), range(LAST + 1)
NOT_PAID, TWICE, TOO_MANY = "no earlier entry of its data set and plan pays for", "twice", "more than its"
PLANTED = {
    "another answer for the last stage": (once_more(LAST), TWICE),
    "another answer for an earlier stage": (once_more(FIRST + 1), TWICE),
    "another plan for the last stage": (once_more(LAST - 1), TWICE),
    "another plan for an earlier stage": (once_more(FIRST), TWICE),
    "a stage that the release does not have": (once_more(LAST - 1, stage=3), TOO_MANY),
    "more stages than there were": (once_more(LAST - 1, stage=3, stages=4), TOO_MANY),
    "a stage before the first": (changed(FIRST, stage=-1), TOO_MANY),
    "an answer before its plan": (in_order(*BEFORE, 5, 4, 6, 7, 8, 9), "before it was planned"),
    "an answer without a plan": (in_order(*BEFORE, 4, 5, 7), "before it was planned"),
    "a stage left out": (in_order(*BEFORE, 4, 5, 8, 9), "out of order"),
    "a stage planned too early": (in_order(*BEFORE, 4, 6, 5), "out of order"),
    "stages in another order": (in_order(*BEFORE, 6, 7, 4, 5), "out of order"),
    "paid for later": (in_order(0, 1, 2, 4, 3), NOT_PAID),
    "paid for by nothing": (in_order(0, 1, 2, 4), NOT_PAID),
    "paid for by an entry that is not there": (once_more(FIRST, paid=99), NOT_PAID),
    "paid for by itself": (once_more(FIRST, paid=13), NOT_PAID),
    "paid for by a data set": (once_more(FIRST, paid=1), NOT_PAID),
    "paid for by a stage": (once_more(FIRST, paid=FIRST), NOT_PAID),
    "paid for by another plan": (once_more(FIRST, paid=10), NOT_PAID),
    "paid for by what was recorded by hand": (once_more(FIRST, paid=11, plan=""), NOT_PAID),
    "paid for by what was answered at once": (once_more(FIRST, paid=12), NOT_PAID),
    "another data set's": (changed(LAST, dataset="others"), NOT_PAID),
    "another plan's": (changed(LAST, plan=OTHER.digest), NOT_PAID),
    "kept with another digest": (changed(FIRST, digest="0" * 64), "another plan than it names"),
    "an answer that is none": (changed(LAST, answer="", contents=None), "without an answer"),
    "a number that is none": (changed(FIRST, stage=False), "holds no stage"),
    "a number that is text": (changed(FIRST, paid="3"), "holds no stage"),
    "a number with a fraction": (changed(FIRST, stages=3.0), "holds no stage"),
    "words that do not belong there": (changed(FIRST, more=1), "holds no stage"),
    "no number of stages": (without("stages"), "holds no stage"),
    "no digest": (without("digest"), "holds no stage"),
    "no words": (lambda rows: rows[LAST].update(what="[]"), "holds no stage"),
    "a request's name": (changed(LAST, request="one"), "holds no stage"),
    "a stage that was a spend": (changed(PAID, kind="planned"), "holds no stage"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_with_good_hashes(staged, file_url, planted):
    """Refused by verify, and nothing is read or spent from such a ledger."""
    change, says = PLANTED[planted]
    rewrite(file_url, change, seal=True)
    for use in (
        staged.verify,
        lambda: staged.balance("people"),
        lambda: staged.stages(PAID, PLAN),
        lambda: staged.pay(PLAN, "people"),
        lambda: staged.stage(PAID, 0, PLAN, PLAN.stage_plan([])).__enter__(),
    ):
        with pytest.raises(LedgerTampered, match=says):
            use()


def test_what_is_not_wrong_is_not_refused(staged, file_url):
    """The same means, used to no end: what the tests above find is what they changed."""
    rewrite(file_url, lambda rows: rows, seal=True)
    staged.verify()
    rewrite(file_url, in_order(*WHOLE), seal=True)
    staged.verify()
    rewrite(file_url, once_more(FIRST, paid=PAID), seal=False)
    with pytest.raises(LedgerTampered, match="entry 10 was changed"):
        staged.verify()


def test_a_stage_without_good_hashes(staged, file_url):
    rewrite(file_url, changed(FIRST, stage=1))
    with pytest.raises(LedgerTampered, match="entry 4 was changed"):
        staged.verify()


@pytest.mark.parametrize("number", [FIRST, FIRST + 1])
@pytest.mark.parametrize("contents", [None, b"", bytes(16)])
def test_contents_that_were_changed(staged, file_url, number, contents):
    """Neither a stage's plan nor its answer is handed out when it is not what was recorded."""
    with behind(file_url) as connection:
        disarm(connection)
        table = table_of(connection)
        connection.execute(table.update().where(table.c.number == number).values(contents=contents))
    with pytest.raises(LedgerTampered, match=f"entry {number} was changed"):
        staged.verify()
    with pytest.raises(LedgerTampered, match=f"entry {number} was changed"):
        staged.stages(PAID, PLAN)


def test_an_answer_that_is_no_numbers(staged, file_url):
    """Three bytes, with the right hashes."""
    rewrite(file_url, changed(LAST, contents=b"abc", answer=sha256(b"abc")), seal=True)
    with pytest.raises(LedgerTampered, match="entry 9 was changed"):
        staged.stages(PAID, PLAN)
