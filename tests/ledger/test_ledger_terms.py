"""A data set's terms: its unit and people, its columns, the largest delta. What is for others is refused."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from ledger_helpers import BOUNDS, ROWS, AnyPlan, Kept, Unreadable, Y, changed, rewrite, small_plan

from cloakgp import GP, AutoGP, Columns, Grid, binning, plan_selection
from cloakgp.core.accounting import Laplace
from cloakgp.kernels import EQ
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered, TermsMismatch, UnitMismatch
from cloakgp.ledger.charging import Account, charge
from cloakgp.measure.unit import PERSON, PERSON_ROWS, ROW

ONE, OTHER = "1" * 64, "2" * 64
PATIENTS = AnyPlan(unit="one person", partition=ONE)
TERMS = {"unit": "one person", "people": "patient", "private": ["pressure", "weight"]}
HONEST = {"private": ["pressure"], "public": ["age"], "people": "patient"}


def pay(ledger, plan=None, dataset="clinic", **names):
    with ledger.naming(**names).charge(plan or PATIENTS, dataset) as charge:
        charge.answer = np.array([1, 2])


PLANS = {
    "rows": AnyPlan(),
    "people": AnyPlan(unit=PERSON.name, partition=ONE),
    "other people": AnyPlan(unit=PERSON.name, partition=OTHER),
    "whole rows": AnyPlan(unit=ROW.name),
    "people's whole rows": AnyPlan(unit=PERSON_ROWS.name),
}


@pytest.mark.parametrize("first", PLANS)
@pytest.mark.parametrize("created", [False, True])
def test_the_first_spend_or_creation_fixes_whom_it_is_about(ledger, first, created):
    """Every other way to pay is refused before anything is read; other data sets have terms of their own."""
    own = PLANS[first]
    made = ledger.create("clinic", epsilon=1.0, delta=0.01, unit=own.unit if created else None)
    assert made == ledger.balance("clinic")
    assert made.unit == (own.unit if created else None)
    for _ in range(2):
        pay(ledger, own, "clinic")
    before = ledger.entries()
    for other in [plan for name, plan in PLANS.items() if name != first]:
        for way in (
            ledger.charge(other, "clinic").__enter__,
            ledger.charge(replace(other, stages=2), "clinic").__enter__,
            lambda other=other: charge(other, Account(ledger, "clinic")).__enter__(),
            lambda other=other: ledger.record("clinic", Laplace(0.1), "it", other.unit, other.partition),
        ):
            with pytest.raises(UnitMismatch, match=r"do not add up to one promise") as refused:
                way()
            assert refused.value.argument == ("people" if other.unit == own.unit else "unit")
            # Of whole rows, people are not what is wrong.
            about_people = {own.unit, other.unit} <= {"one row", "one person"}
            assert refused.value.remedy.startswith("When" if about_people else f"Make a plan for {own.unit};")
    pay(ledger, other, "people")
    assert ledger.entries()[: len(before)] == before
    balance = ledger.balance("clinic")
    assert (balance.unit, balance.protected.partition, len(balance.events)) == (own.unit, own.partition, 2)
    assert f"; unit: {balance.unit}\n" in str(balance)
    ledger.verify()


def test_what_is_recorded_names_its_unit(ledger):
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person")
    assert (ledger.balance("people").unit, ledger.balance("people").protected.partition) == ("one person", "")
    with pytest.raises(UnitMismatch, match="'one row'"):
        ledger.record("people", Laplace(0.1), "elsewhere, with no unit named")
    pay(ledger, PLANS["people"], "people")  # says who they are
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person")
    ledger.record("people", Laplace(0.1), "elsewhere", unit="one person", partition=ONE)
    with pytest.raises(UnitMismatch, match="another way"):
        pay(ledger, PLANS["other people"], "people")
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
        pay(ledger, AnyPlan(unit=PERSON.name), "people")


def test_two_first_spends_at_once(ledger):
    """Whoever is first fixes the unit; the other finds it so, though both began with nothing fixed."""
    entered, refused = threading.Event(), []

    def second():
        entered.wait(20)
        try:
            pay(Ledger(ledger._store.url), PLANS["rows"], "people")
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


# ---------------------------------------------------------------------------------- columns and delta

# What somebody else's settings may ask for: (columns, plan, what is wrong)
ATTACKS = {
    "another id column": ({**HONEST, "people": "visit"}, PATIENTS, "people"),
    "no id column": ({**HONEST, "people": None}, AnyPlan(), "unit"),
    "another private column": ({**HONEST, "private": ["income"]}, PATIENTS, "private"),
    "one more private column": ({**HONEST, "private": ["pressure", "income"]}, PATIENTS, "private"),
    "a private column as an input": ({**HONEST, "public": ["age", "weight"]}, PATIENTS, "X"),
    "a larger delta": (HONEST, replace(PATIENTS, delta=0.5), "delta"),
    "a private column as ids": ({**HONEST, "people": "weight"}, PATIENTS, "people"),
}


@pytest.fixture(params=["when created", "by the first spend"])
def clinic(ledger, request):
    """A ledger whose data set `clinic` has its terms."""
    if request.param == "when created":
        ledger.create("clinic", epsilon=1.0, delta=0.01, **TERMS)
    else:
        ledger.create("clinic", epsilon=1.0, delta=0.01)
        pay(ledger, **{**HONEST, "private": ["pressure", "weight"]})
    return ledger


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_differs_from_the_terms_is_refused_before_anything_is_read(clinic, attack):
    names, plan, wrong = ATTACKS[attack]
    before = clinic.entries()
    with (
        pytest.raises(TermsMismatch) as refused,
        clinic.naming(**names).charge(plan, "clinic"),
    ):
        raise AssertionError("the block was entered")
    assert refused.value.argument == wrong
    assert refused.value.expected
    assert refused.value.remedy
    assert isinstance(refused.value, UnitMismatch) == (wrong == "unit")
    assert "Nothing was spent, and y was not read" in str(refused.value)
    assert clinic.entries() == before
    pay(clinic, **HONEST)
    clinic.verify()


def test_terms_hold_for_a_request_that_was_charged_for_before(clinic):
    """Its later stages may still be read, from another column this time."""
    plan = replace(PATIENTS, stages=2)
    with clinic.naming(**HONEST).charge(plan, "clinic", request="one") as charge:
        charge.answer = np.array([1, 2])
    with clinic.naming(**HONEST).charge(plan, "clinic", request="one") as charge:
        assert charge.answer.tolist() == [1, 2]
    with pytest.raises(TermsMismatch):
        clinic.naming(**{**HONEST, "private": ["income"]}).charge(plan, "clinic", request="one").__enter__()


def test_terms_are_told(ledger):
    made = ledger.create("clinic", epsilon=1.0, delta=0.01, largest_delta=0.001, **TERMS)
    assert made == ledger.balance("clinic")
    assert made.terms() == {
        "private": ("pressure", "weight"),
        "public": (),
        "people": "patient",
        "largest_delta": 0.001,
    }
    for word in ("pressure, weight", "patient", "0.001"):
        assert word in str(made)
    assert ledger.balance("people").terms()["largest_delta"] == 0.01  # the budget's own


def test_a_delta_above_the_budgets_is_refused_though_its_noise_would_fit(ledger):
    plan = small_plan(epsilon=1e-3, delta=0.05)
    assert ledger.balance("people").budget.allows((), plan.cost)
    with pytest.raises(TermsMismatch) as refused:
        plan.release(Unreadable(), ledger=ledger, dataset="people")
    assert refused.value.argument == "delta"
    ledger.create("others", epsilon=1.0, delta=0.01, largest_delta=0.1)
    plan.release(Y, ledger=ledger, dataset="others")
    ledger.verify()


def test_a_custodian_can_let_it_pay_for_more_columns(clinic):
    income = {**HONEST, "private": ["income"]}
    with pytest.raises(TermsMismatch):
        pay(clinic, **income)
    spent = len(clinic.balance("clinic").events)
    allowed = clinic.allow("clinic", ["income", "weight"], why="the board of 4 May")
    assert allowed == clinic.balance("clinic")
    assert allowed.protected.private == ("pressure", "weight", "income")
    assert len(allowed.events) == spent
    entry = clinic.entries("clinic")[-1]
    assert (entry.kind, entry.why) == ("allowed", "the board of 4 May")
    assert clinic.allow("clinic", "income") == allowed  # nothing new, and no entry
    assert clinic.entries()[-1] == entry
    pay(clinic, **income)
    with pytest.raises(TermsMismatch, match="'income'"):
        pay(clinic, **{**HONEST, "public": ["income"]})
    clinic.verify()


def test_what_was_published_cannot_become_private(clinic):
    pay(clinic, **HONEST)
    for name in ("age", "patient"):
        with pytest.raises(ValueError, match="private must not have"):
            clinic.allow("clinic", [name])
    with pytest.raises(LedgerError, match="not in this ledger"):
        clinic.allow("nobody", ["age"])
    clinic.verify()


def test_an_input_of_one_release_is_no_outcome_of_the_next(ledger):
    pay(ledger, AnyPlan(), "people", public=["age"])  # an array of outcomes, which has no name
    pay(ledger, AnyPlan(), "people")
    ledger.record("people", Laplace(0.01), "elsewhere")
    with pytest.raises(TermsMismatch, match="'age', which is public there"):
        pay(ledger, AnyPlan(), "people", private=["age"], public=["place"])


def test_terms_that_make_no_sense_are_refused(ledger):
    promise = {"epsilon": 1.0, "delta": 0.01}
    for wrong, name in (
        ({"people": "patient"}, "unit"),
        ({"people": "patient", "unit": "one row"}, "unit"),
        ({"people": "", "unit": "one person"}, "people"),
        ({**TERMS, "private": ["patient"]}, "private"),
        ({"private": [""]}, "private"),
        ({"private": 7}, "private"),
        ({"private": [["a"]]}, "private"),
        ({"largest_delta": 0}, "largest_delta"),
        ({"largest_delta": "small"}, "largest_delta"),
        ({"unit": "a person"}, "unit"),
    ):
        with pytest.raises(ValueError, match="must") as refused:
            ledger.create("clinic", **promise, **wrong)
        assert refused.value.name == name
    for wrong, name in (({"people": 7}, "people"), ({"private": [7]}, "private"), ({"public": 7}, "public")):
        with pytest.raises(TypeError, match="must") as refused:
            ledger.naming(**wrong)
        assert refused.value.name == name
    assert ledger.datasets() == ["people"]


def test_names_go_with_a_ledger_to_other_processes(clinic):
    there = pickle.loads(pickle.dumps(clinic.naming(**HONEST)))  # noqa: S301
    assert there.reads == clinic.naming(**HONEST).reads
    assert clinic.reads == Ledger(clinic._store.url).reads
    with pytest.raises(TermsMismatch) as refused:
        pay(clinic, **{**HONEST, "people": "visit"})
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301
    assert (str(again), again.argument) == (str(refused.value), "people")


# ------------------------------------------------------------------------------- from frames, in Python


def tables():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    columns = {
        "age": np.linspace(0.0, 1.0, ROWS),
        "patient": list("aabbcc"),
        "weight": np.linspace(0.2, 0.8, ROWS),
        "income": Y,
    }
    return [pandas.DataFrame(columns), polars.DataFrame(columns)]


def test_columns_of_frames_have_names(file_url):
    ledger = Ledger(file_url)
    gps = [GP(EQ(0.5, variance=1e6), 3e5, BOUNDS), AutoGP(BOUNDS, stages=2)]
    for number, table in enumerate(tables()):
        for kind, gp in enumerate(gps):
            dataset = f"{number} {kind}"
            ledger.create(dataset, epsilon=1.0, delta=0.01)
            paid = {"ledger": file_url, "dataset": dataset}

            def plan(*names, gp=gp, table=table):
                return gp.plan(table[list(names)], X_star=[[0.5]], people="patient", epsilon=0.1, delta=0.001)

            plan("age", "patient").release(table["weight"], **paid)
            reads = ledger.balance(dataset).protected
            assert (reads.private, reads.public, reads.people) == (("weight",), ("age",), "patient")
            with pytest.raises(TermsMismatch, match="'income'"):
                plan("age", "patient").release(table["income"], **paid)
            with pytest.raises(TermsMismatch, match="'weight', which is private"):
                plan("weight", "patient").release(Y, **paid)
            plan("age", "patient").release(np.asarray(Y), **paid)
    ledger.verify()


def test_columns_that_were_named_when_planning_have_names(ledger):
    columns = Columns.of({"age": np.arange(ROWS)}, response="income")
    gp, paid = GP(EQ(0.5, variance=1e6), 3e5, BOUNDS), {"ledger": ledger, "dataset": "secret"}
    ledger.create("secret", epsilon=1.0, delta=0.01, private="weight")
    plan = gp.plan({"age": np.arange(ROWS)}, X_star=[[0.5]], columns=columns, epsilon=0.1, delta=0.001)
    with pytest.raises(TermsMismatch, match="'income'"):
        plan.release(Unreadable(), **paid)


def test_inputs_of_whole_rows_are_private(file_url):
    ledger = Ledger(file_url)
    for number, table in enumerate(tables()):
        ledger.create(str(number), epsilon=1.0, delta=0.01)
        paid = {"ledger": ledger, "dataset": str(number)}
        grids = [Grid({name: (0.0, 1.0)}, 3) for name in ("age", "income")]
        plans = [AutoGP(BOUNDS, stages=2).plan_rows(g, ROWS, epsilon=0.1, delta=0.001) for g in grids]
        plans[0].release(table, table["weight"], **paid)
        assert ledger.balance(str(number)).protected.private == ("age", "weight")
        with pytest.raises(TermsMismatch, match="'income'"):
            plans[1].release(table, table["weight"], **paid)
        plans[0].release(np.linspace(0.0, 1.0, ROWS)[:, None], Y, **paid)


# ---------------------------------------------------------------------------------- if someone meddles


@pytest.fixture(scope="module")
def once(own_url):
    ledger = Ledger(own_url, who="a tester")
    ledger.create("clinic", epsilon=1.0, delta=0.01, **TERMS)
    pay(ledger, **HONEST)
    ledger.allow("clinic", "income")
    pay(ledger, **{**HONEST, "private": ["income"]})
    ledger.create("people", epsilon=1.0, delta=0.01)
    pay(ledger, PLANS["people"], "people")
    pay(ledger, PLANS["people"], "people")
    ledger.create("others", epsilon=1.0, delta=0.01)
    kept = Kept(own_url)
    yield kept
    kept.check()


@pytest.fixture
def told(once):
    """1 creates a data set with terms, and 3 allows what 4 reads; 6 and 7 fix the unit of what 5 creates."""
    return Ledger(once.put_back(), who="a tester")


LIES = {
    "another id column": changed(4, {"people": "visit"}),
    "another private column": changed(4, {"private": ["salary"]}),
    "a private column as an input": changed(4, {"public": ["weight"]}),
    "a larger delta": changed(4, {"release_delta": 0.5}),
    "a smaller largest delta": changed(1, {"release_delta": 1e-4}),
    "not allowed": changed(3, {"private": ["height"]}),
    "allowed what is public": changed(3, {"private": ["income", "age"]}),
    "allowed for nobody": changed(3, dataset="nobody"),
    "names that are none": changed(4, {"private": [["income"]]}),
    "an id column that is none": changed(4, {"people": 7}),
    "a delta that is none": changed(4, {"release_delta": "small"}),
    "another unit": changed(7, {"unit": "one row", "partition": None}),
    "no unit": changed(7, {"unit": None, "partition": None}),
    "no unit, and people": changed(7, {"unit": None}),
    "whole rows": changed(7, {"unit": "one whole row", "partition": None}),
    "other people": changed(7, {"partition": OTHER}),
    "people that are a number": changed(7, {"partition": 7}),
    "a unit that is none": changed(7, {"unit": "nobody"}),
    "a unit in a list": changed(7, {"unit": ["one person"]}),
    "a unit that is null": lambda rows: rows[7].update(what=rows[7]["what"].replace('"one person"', "null")),
    "created with another unit": changed(5, {"unit": "one row"}),
    "created with other people": changed(5, {"partition": OTHER}),
    "created with a unit that is none": changed(8, {"unit": "nobody"}),
}


@pytest.mark.parametrize("lie", LIES)
def test_other_terms_with_good_hashes(told, lie):
    """A liar who seals the chain again; each lie alone."""
    rewrite(told._store.url, LIES[lie], seal=True)
    with pytest.raises(LedgerTampered):
        told.verify()
    if "unit" in lie or "people" in lie:
        with pytest.raises(LedgerTampered):
            pay(told, PLANS["people"], "people")


def test_a_data_set_that_says_no_largest_delta_has_its_own(told):
    rewrite(told._store.url, changed(1, {"release_delta": None}), seal=True)
    assert told.balance("clinic").terms()["largest_delta"] == 0.01
    with pytest.raises(TermsMismatch):
        pay(told, replace(PATIENTS, delta=0.5), **HONEST)
