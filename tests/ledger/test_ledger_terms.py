"""A data set's terms: id column, private columns and largest delta. Settings that differ are refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from ledger_helpers import BOUNDS, ROWS, Kept, Unreadable, Y, behind, rewrite, rows_of, small_plan

from cloakgp import GP, AutoGP, Columns, Grid
from cloakgp.accounting import Gaussian, Laplace
from cloakgp.kernels import EQ
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered, TermsMismatch, UnitMismatch

ONE = "1" * 64
TERMS = {"unit": "one person", "people": "patient", "private": ["pressure", "weight"]}
HONEST = {"private": ["pressure"], "public": ["age"], "people": "patient"}


@dataclass(frozen=True)
class AnyPlan:
    """What a ledger sees of a plan."""

    unit: str = "one person"
    partition: str = ONE
    delta: float = 0.001
    digest: str = "a" * 64
    inputs_digest: str = "b" * 64
    question_digest: str = "c" * 64

    def to_bytes(self):
        return None

    @property
    def cost(self):
        return Gaussian(0.05, 2)


def pay(ledger, plan=None, dataset="clinic", **names):
    with ledger.naming(**names).charge(plan or AnyPlan(), dataset) as charge:
        charge.answer = np.array([1, 2])


# What somebody else's settings may ask for: (columns, plan, what is wrong)
ATTACKS = {
    "another id column": ({**HONEST, "people": "visit"}, AnyPlan(), "people"),
    "no id column": ({**HONEST, "people": None}, AnyPlan("one row", ""), "unit"),
    "another private column": ({**HONEST, "private": ["income"]}, AnyPlan(), "private"),
    "one more private column": ({**HONEST, "private": ["pressure", "income"]}, AnyPlan(), "private"),
    "a private column as an input": ({**HONEST, "public": ["age", "weight"]}, AnyPlan(), "X"),
    "a larger delta": (HONEST, AnyPlan(delta=0.5), "delta"),
    "a private column as ids": ({**HONEST, "people": "weight"}, AnyPlan(), "people"),
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
    with behind(clinic._store.url) as connection:
        before = rows_of(connection)
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
    with behind(clinic._store.url) as connection:
        assert rows_of(connection) == before
    pay(clinic, **HONEST)
    clinic.verify()


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
    assert allowed.protected.reads.private == ("pressure", "weight", "income")
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
    pay(ledger, AnyPlan("one row", ""), "people", public=["age"])  # an array of outcomes, which has no name
    with pytest.raises(TermsMismatch, match="'age', which is public there"):
        pay(ledger, AnyPlan("one row", ""), "people", private=["age"], public=["place"])


def test_arrays_have_no_names_to_compare(clinic):
    pay(clinic)
    pay(clinic, public=["age"])
    clinic.record("clinic", Laplace(0.01), "elsewhere", unit="one person")
    clinic.verify()


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
            reads = ledger.balance(dataset).protected.reads
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
        assert ledger.balance(str(number)).protected.reads.private == ("age", "weight")
        with pytest.raises(TermsMismatch, match="'income'"):
            plans[1].release(table, table["weight"], **paid)
        plans[0].release(np.linspace(0.0, 1.0, ROWS)[:, None], Y, **paid)


# ---------------------------------------------------------------------------------- if someone meddles


def said(row, **new):
    row["what"] = json.dumps({**json.loads(row["what"]), **new})


@pytest.fixture(scope="module")
def once(own_url):
    ledger = Ledger(own_url, who="a tester")
    ledger.create("clinic", epsilon=1.0, delta=0.01, **TERMS)
    pay(ledger, **HONEST)
    ledger.allow("clinic", "income")
    pay(ledger, **{**HONEST, "private": ["income"]})
    kept = Kept(own_url)
    yield kept
    kept.check()


@pytest.fixture
def told(once):
    """Entry 1 creates a data set, 2 and 4 are spends, and 3 allows what 4 reads."""
    return Ledger(once.put_back(), who="a tester")


LIES = {
    "another id column": lambda rows: said(rows[4], people="visit"),
    "another private column": lambda rows: said(rows[4], private=["salary"]),
    "a private column as an input": lambda rows: said(rows[4], public=["weight"]),
    "a larger delta": lambda rows: said(rows[4], release_delta=0.5),
    "a smaller largest delta": lambda rows: said(rows[1], release_delta=1e-4),
    "not allowed": lambda rows: said(rows[3], private=["height"]),
    "allowed what is public": lambda rows: said(rows[3], private=["income", "age"]),
    "allowed for nobody": lambda rows: rows[3].update(dataset="nobody"),
    "names that are none": lambda rows: said(rows[4], private=[["income"]]),
    "an id column that is none": lambda rows: said(rows[4], people=7),
    "a delta that is none": lambda rows: said(rows[4], release_delta="small"),
}


@pytest.mark.parametrize("lie", LIES)
def test_other_terms_with_good_hashes(told, lie):
    """A liar who seals the chain again."""
    rewrite(told._store.url, LIES[lie], seal=True)
    with pytest.raises(LedgerTampered):
        told.verify()


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_terms_are_in_the_chain(told, number):
    rewrite(told._store.url, lambda rows: said(rows[number], private=["pressure", "income", "weight"]))
    with pytest.raises(LedgerTampered, match=f"entry {number} was changed"):
        told.verify()


def test_a_data_set_that_says_no_largest_delta_has_its_own(told):
    def unsaid(rows):
        rows[1]["what"] = json.dumps(
            {name: value for name, value in json.loads(rows[1]["what"]).items() if name != "release_delta"}
        )

    rewrite(told._store.url, unsaid, seal=True)
    assert told.balance("clinic").terms()["largest_delta"] == 0.01
    with pytest.raises(TermsMismatch):
        pay(told, replace(AnyPlan(), delta=0.5), **HONEST)
