"""A data set has one unit of protection and one partition into people: what is for another is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from ledger_helpers import BOUNDS, ROWS, Kept, StagedPlan, Unreadable, Y, behind, rewrite, rows_of, small_plan

from cloakgp import GP, AutoGP, binning, plan_selection
from cloakgp.accounting import Gaussian, Laplace
from cloakgp.kernels import EQ
from cloakgp.ledger import Ledger, LedgerTampered, UnitMismatch
from cloakgp.ledger.charge import Account
from cloakgp.ledger.charging import charged
from cloakgp.ledger.units import Protected, check_same
from cloakgp.measurements.unit import OUTCOME, PERSON, PERSON_ROWS, ROW

ONE, OTHER = "1" * 64, "2" * 64


@dataclass(frozen=True)
class AnyPlan:
    """What a ledger sees of a plan."""

    unit: str = OUTCOME.name
    partition: str = ""
    delta: float = 0.001
    digest: str = "a" * 64
    inputs_digest: str = "b" * 64
    question_digest: str = "c" * 64

    def to_bytes(self):
        return None

    @property
    def cost(self):
        return Gaussian(0.05, 2)


PLANS = {
    "rows": AnyPlan(),
    "people": AnyPlan(PERSON.name, ONE),
    "other people": AnyPlan(PERSON.name, OTHER),
    "whole rows": AnyPlan(ROW.name),
    "people's whole rows": AnyPlan(PERSON_ROWS.name),
}


def pay(ledger, plan, dataset="people"):
    with ledger.charge(plan, dataset) as charge:
        charge.answer = np.array([1, 2])


@pytest.mark.parametrize("first", PLANS)
def test_the_first_spend_fixes_whom_it_is_about(ledger, first):
    assert ledger.balance("people").unit is None
    pay(ledger, PLANS[first])
    pay(ledger, PLANS[first])
    for second in PLANS.keys() - {first}:
        with pytest.raises(UnitMismatch, match=r"do not add up to one promise.*data set of its own"):
            pay(ledger, PLANS[second])
    balance = ledger.balance("people")
    assert (balance.unit, balance.partition) == (PLANS[first].unit, PLANS[first].partition)
    assert f"; unit: {balance.unit}\n" in str(balance)
    assert len(balance.events) == 2
    ledger.verify()


@pytest.mark.parametrize("refused", ["rows", "other people"])
def test_every_way_to_pay_is_refused_before_anything_is_read(ledger, refused):
    other = PLANS[refused]
    pay(ledger, PLANS["people"])
    with behind(ledger._store.url) as connection:
        before = rows_of(connection)
    staged = StagedPlan(unit=other.unit, partition=other.partition)

    def never():
        raise AssertionError("the block was entered")

    def through_charged():
        with charged(other, Account(ledger, "people")):
            never()

    for way in (
        lambda: pay(ledger, other),
        through_charged,
        lambda: ledger.pay(staged, "people", ready=never),
        lambda: ledger.record("people", Laplace(0.1), "elsewhere", other.unit, other.partition),
    ):
        with pytest.raises(UnitMismatch, match="has the unit 'one person'"):
            way()
    with behind(ledger._store.url) as connection:
        assert rows_of(connection) == before


def test_a_release_of_rows_is_refused_with_y_unread(ledger):
    pay(ledger, PLANS["people"])
    with pytest.raises(UnitMismatch, match=r"this is for 'one row'.*same people, as before.*y was not read"):
        small_plan(epsilon=0.1).release(Unreadable(), ledger=ledger, dataset="people")


@pytest.mark.parametrize("fixed", [OUTCOME.name, PERSON.name])
def test_a_plan_for_whole_rows_is_not_told_to_give_or_leave_out_people(fixed):
    """Whether there are people is not what is wrong with it."""
    partition = ONE if fixed == PERSON.name else ""
    with pytest.raises(UnitMismatch, match=f"Make a plan for {fixed}; or give this a data set of its own"):
        check_same("kung", Protected(fixed, partition), Protected(ROW.name))


def test_each_data_set_has_its_own(ledger):
    ledger.create("others", epsilon=1.0, delta=0.01)
    pay(ledger, PLANS["people"])
    pay(ledger, PLANS["other people"], "others")
    ledger.create("rows", epsilon=1.0, delta=0.01)
    pay(ledger, PLANS["rows"], "rows")
    assert [ledger.balance(name).partition for name in ledger.datasets()] == [ONE, OTHER, ""]
    ledger.verify()


def test_creation_can_fix_the_unit(ledger):
    made = ledger.create("patients", epsilon=1.0, delta=0.01, unit="one person")
    assert made == ledger.balance("patients")
    assert "; unit: one person\n" in str(made)
    with pytest.raises(UnitMismatch, match="has the unit 'one person', and this is for 'one row'"):
        pay(ledger, PLANS["rows"], "patients")
    pay(ledger, PLANS["people"], "patients")
    with pytest.raises(UnitMismatch, match="another way"):
        pay(ledger, PLANS["other people"], "patients")
    with pytest.raises(ValueError, match=r"unit must be one of 'one row', 'one person'.*got 'a person'"):
        ledger.create("nobody", epsilon=1.0, delta=0.01, unit="a person")
    assert ledger.datasets() == ["people", "patients"]


def test_what_is_recorded_names_its_unit(ledger):
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person")
    assert (ledger.balance("people").unit, ledger.balance("people").partition) == ("one person", "")
    with pytest.raises(UnitMismatch, match="'one row'"):
        ledger.record("people", Laplace(0.1), "elsewhere, with no unit named")
    pay(ledger, PLANS["people"])  # says who they are
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person")
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person", partition=ONE)
    with pytest.raises(UnitMismatch, match="another way"):
        pay(ledger, PLANS["other people"])
    for wrong in (
        {"unit": "someone"},
        {"unit": None},
        {"partition": ONE},
        {"unit": "one person", "partition": 1},
    ):
        with pytest.raises(ValueError, match="must be"):
            ledger.record("people", Laplace(0.1), "elsewhere", **wrong)


def test_a_plan_for_people_must_know_them(ledger):
    with pytest.raises(ValueError, match="plan must know who has which rows"):
        pay(ledger, AnyPlan(PERSON.name))


def test_the_same_request_is_answered_again(ledger):
    plan = PLANS["people"]
    for _ in range(2):
        with ledger.charge(plan, "people", request="one") as charge:
            charge.answer = np.array([1, 2]) if charge.answer is None else charge.answer
    assert len(ledger.balance("people").events) == 1


def test_two_first_spends_at_once(ledger):
    """Whoever is first fixes the unit; the other finds it so, though both began with nothing fixed."""
    entered, refused = threading.Event(), []

    def second():
        entered.wait(20)
        try:
            pay(Ledger(ledger._store.url), PLANS["rows"])
        except UnitMismatch as error:
            refused.append(error)

    other = threading.Thread(target=second)
    other.start()
    with ledger.charge(PLANS["people"], "people") as charge:
        entered.set()
        charge.answer = np.array([1])
    other.join(30)
    assert len(refused) == 1
    assert ledger.balance("people").unit == "one person"


ALIKE = ["a", "a", "b", "b", "c", "c"]


def each_kind(**people):
    """A plan of every kind for the six rows of y."""
    X, promise = np.linspace(0.0, 1.0, ROWS), {"epsilon": 0.05, "delta": 0.001}
    gps = [GP(EQ(length, variance=1e6), 3e5, BOUNDS) for length in (0.3, 0.5)]
    return {
        "predictions": gps[0].plan(X, X_star=[0.5], **promise, **people),
        "function": gps[0].plan_function(X, **promise, **people),
        "stages": AutoGP(BOUNDS, stages=2).plan(X, X_star=[0.5], **promise, **people),
        "bins": binning.plan(X, X_star=[0.5], edges=2, bounds=BOUNDS, epsilon=0.01, **people),
        "selection": plan_selection(gps, X, epsilon=0.01, folds=2, **people),
    }


def test_plans_of_all_kinds_know_whom_they_protect(file_url):
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    renamed, others = [1, 1, 2, 2, 3, 3], [1, 2, 2, 1, 3, 3]
    for name, plan in each_kind(people=ALIKE).items():
        assert plan.unit == plan.certificate.unit == "one person", name
        plan.release(Y, ledger=ledger, dataset="people")
    for people in ({}, {"people": others}):
        for name, plan in each_kind(**people).items():
            assert plan.unit == ("one person" if people else "one row"), name
            with pytest.raises(UnitMismatch, match="do not add up"):
                plan.release(Unreadable(), ledger=ledger, dataset="people")
    each_kind(people=renamed)["bins"].release(Y, ledger=ledger, dataset="people")  # the same people
    ledger.verify()


def said(row, **new):
    """An entry that says something else; None removes a word."""
    what = {**json.loads(row["what"]), **new}
    row["what"] = json.dumps({name: value for name, value in what.items() if value is not None})


@pytest.fixture(scope="module")
def once(own_url):
    ledger = Ledger(own_url, who="a tester")
    ledger.create("people", epsilon=1.0, delta=0.01)
    pay(ledger, PLANS["people"])
    pay(ledger, PLANS["people"])
    ledger.create("others", epsilon=1.0, delta=0.01)
    kept = Kept(own_url)
    yield kept
    kept.check()


@pytest.fixture
def told(once):
    """Entries 2 and 3 were spent on the people of a data set, entry 4 is another data set, of no unit yet."""
    return Ledger(once.put_back(), who="a tester")


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows: said(rows[3], unit="one row", partition=None),
        lambda rows: said(rows[3], unit=None, partition=None),
        lambda rows: said(rows[3], unit=None),
        lambda rows: said(rows[3], unit="one whole row", partition=None),
        lambda rows: said(rows[3], partition=OTHER),
        lambda rows: said(rows[3], partition=7),
        lambda rows: said(rows[3], unit="nobody"),
        lambda rows: said(rows[3], unit=["one person"]),
        lambda rows: rows[3].update(what=rows[3]["what"].replace('"one person"', "null")),
        lambda rows: said(rows[1], unit="one row"),
        lambda rows: said(rows[1], partition=OTHER),
        lambda rows: said(rows[4], unit="nobody"),
    ],
)
def test_another_unit_with_good_hashes(told, lie):
    """A liar who seals the chain again; each lie alone, in a data set that was charged for people."""
    rewrite(told._store.url, lie, seal=True)
    with pytest.raises(LedgerTampered):
        told.verify()
    with pytest.raises(LedgerTampered):
        pay(told, PLANS["people"])


@pytest.mark.parametrize("new", [{"unit": "one row"}, {"partition": OTHER}, {"unit": None}])
def test_unit_and_partition_are_in_the_chain(ledger, new):
    """Where they are the only ones of their data set, the chain's hashes alone can tell."""
    pay(ledger, PLANS["people"])
    rewrite(ledger._store.url, lambda rows: said(rows[2], **new))
    with pytest.raises(LedgerTampered, match="entry 2 was changed"):
        ledger.verify()
