"""A learned model's release through a ledger: paid once, gone on with after a crash, and verified."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from ledger_helpers import Unreadable

from cloakgp import AutoGP, verify
from cloakgp.files import container
from cloakgp.ledger import BudgetExceeded, Ledger, LedgerError, LedgerTampered
from cloakgp.plans import staged
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.stages import StagePlan
from cloakgp.posterior import staging

pytestmark = pytest.mark.usefixtures("few_models")

X = np.linspace(0.0, 10.0, 30)[:, None]
Y = 2.0 + np.sin(X[:, 0])
PEOPLE = {"dataset": "people"}


@pytest.fixture(scope="module")
def plan():
    return AutoGP((-1.0, 4.0), stages=3).plan(X, X_star=X[::4], epsilon=1.0, delta=0.01)


@pytest.fixture
def book(file_url):
    ledger = Ledger(file_url, who="a tester")
    ledger.create("people", epsilon=1.0, delta=0.01)
    return ledger


def kinds(ledger):
    return [entry.kind for entry in ledger.entries()][2:]


def answers(release):
    return [stage.answer.tolist() for stage in release.stages]


@pytest.fixture
def dies(monkeypatch):
    """The program ends when a stage is to be measured: before that, or after it, with the answer in hand."""

    def at(number, after=False):
        right, seen = StagedPlan._measure_stage, []

        def measure(*given):
            seen.append(1)
            answer = None if len(seen) == number + 1 and not after else right(*given)
            if len(seen) == number + 1:
                raise KeyboardInterrupt
            return answer

        monkeypatch.setattr(StagedPlan, "_measure_stage", measure)
        return lambda: monkeypatch.setattr(StagedPlan, "_measure_stage", right)

    return at


def test_a_release_and_its_file_are_in_the_ledger_that_paid(book, plan, tmp_path):
    release = plan.release(Y, ledger=book, **PEOPLE)
    path = tmp_path / "release.cloak"
    release.save(path)
    assert kinds(book) == ["spent"] + ["planned", "answered"] * 3
    assert book.balance("people").events == (plan.cost,)
    assert release.receipt.entry == len(book.entries()) - 1
    book.verify(releases=[release, path, StagedRelease.load(path)])
    checked = verify(path)
    assert checked.complete
    assert checked.checks[-1].startswith(f"ledger receipt: entry {release.receipt.entry} of 'people'")
    assert verify(path, X=X).complete


@pytest.mark.parametrize("name", ["z_0", "z_1", "z_2", "matrix_0", "weights"])
def test_a_file_that_was_changed_is_not_the_one_that_was_paid_for(book, plan, tmp_path, name):
    """Of every stage the answer, and all that belongs to the plan."""
    path = tmp_path / "release.cloak"
    plan.release(Y, ledger=book, **PEOPLE).save(path)
    manifest, arrays, _ = container.read(path)
    arrays = {key: array.copy() for key, array in arrays.items()}
    arrays[name].reshape(-1)[0] += 1
    path.write_bytes(container.pack(container.bare(manifest), arrays))
    with pytest.raises(LedgerTampered, match=r"another plan or gave another answer|other answers"):
        book.verify(releases=[path])


def test_a_release_without_a_ledger_is_in_none(book, plan):
    with pytest.raises(LedgerTampered, match="no receipt"):
        book.verify(releases=[plan.release(Y)])


@pytest.mark.parametrize("after", [False, True], ids=["before y is read", "with the answer in hand"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_a_crash_left_is_gone_on_with_for_nothing(book, plan, dies, number, after):
    alive = dies(number, after)
    with pytest.raises(KeyboardInterrupt):
        plan.release(Y, ledger=book, **PEOPLE)
    alive()
    assert kinds(book) == ["spent", *["planned", "answered"] * number, "planned"]
    if number:
        left = plan.recover(book, 2)
        assert len(left.stages) == number
        book.verify(releases=[left])
    else:
        with pytest.raises(ValueError, match="y must be given: no stage"):
            plan.recover(book, 2)
    whole = plan.recover(book, 2, Y)
    assert kinds(book) == ["spent"] + ["planned", "answered"] * 3
    assert book.balance("people").events == (plan.cost,)
    if number:
        assert answers(whole)[:number] == answers(left)
    assert answers(plan.recover(book, 2)) == answers(whole)
    book.verify(releases=[whole])


def test_a_ledger_that_is_in_use_between_stages_says_what_was_paid_for(book, plan, file_url, monkeypatch):
    other = sqlite3.connect(file_url.removeprefix("sqlite:///"), isolation_level=None)
    right = StagedPlan._stage_plan

    def planned(self, walk, number, record):
        if number == 1:
            other.execute("BEGIN IMMEDIATE")
        return right(self, walk, number, record)

    with monkeypatch.context() as patch:
        patch.setattr(StagedPlan, "_stage_plan", planned)
        impatient = Ledger(file_url, timeout=0.01)
        with pytest.raises(LedgerError, match=r"another process .* paid for before, in entry 2: recover"):
            plan.release(Y, ledger=impatient, **PEOPLE)
    other.close()
    assert len(plan.recover(book, 2, Y).stages) == 3
    assert book.balance("people").events == (plan.cost,)


@pytest.mark.parametrize("ledger", [True, False], ids=["with a ledger", "without one"])
@pytest.mark.parametrize("entry", [None, "2", True])
def test_an_entry_is_a_number(book, plan, entry, ledger):
    """Without one nothing was paid for, and nothing may be answered."""
    with pytest.raises(TypeError, match="entry must be the number of an entry"):
        plan.recover(book if ledger else None, entry, Unreadable())


def test_a_release_that_a_crash_cut_short_verifies(book, plan, dies, tmp_path):
    alive = dies(2)
    with pytest.raises(KeyboardInterrupt):
        plan.release(Y, ledger=book, **PEOPLE)
    alive()
    plan.recover(book, 2).save(tmp_path / "short")
    plan.recover(book, 2, Y).save(tmp_path / "whole")
    assert verify(tmp_path / "short").complete
    assert verify(tmp_path / "whole").complete
    assert verify(tmp_path / "short").checks[1].startswith("2 stages of 3 planned")
    book.verify(releases=[tmp_path / "short", tmp_path / "whole"])


def test_two_who_recover_at_once_get_one_answer(book, plan, dies, file_url):
    alive = dies(1)
    with pytest.raises(KeyboardInterrupt):
        plan.release(Y, ledger=book, **PEOPLE)
    alive()
    ready = Barrier(2)

    def recover():
        ready.wait(timeout=60)
        return plan.recover(Ledger(file_url, who="another"), 2, Y)

    with ThreadPoolExecutor(2) as pool:
        one, two = (run.result(timeout=120) for run in [pool.submit(recover) for _ in range(2)])
    assert answers(one) == answers(two)
    assert kinds(book) == ["spent"] + ["planned", "answered"] * 3
    assert book.balance("people").events == (plan.cost,)
    book.verify(releases=[one, two])


def test_a_budget_that_does_not_allow_it_is_refused_before_y_is_read(book):
    plan = AutoGP((-1.0, 4.0), stages=3).plan(X, X_star=X[::4], epsilon=2.0, delta=0.01)
    with pytest.raises(BudgetExceeded):
        plan.release(Unreadable(), ledger=book, **PEOPLE)
    assert kinds(book) == []


@pytest.mark.parametrize(
    "y", [np.where(X[:, 0] > 9, np.nan, Y), Y[:-1], ["a"] * 30], ids=["NaN", "short", "words"]
)
def test_outcomes_that_cannot_be_used_cost_nothing(book, plan, y):
    with pytest.raises((ValueError, TypeError)):
        plan.release(y, ledger=book, **PEOPLE)
    assert kinds(book) == []
    plan.release(Y, ledger=book, **PEOPLE)


def test_a_stage_that_cannot_be_planned_ends_a_release_that_is_paid_for(book, plan, monkeypatch, tmp_path):
    def fails(*given):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(staged.Walk, "next_stage", fails)
    release = plan.release(Y, ledger=book, **PEOPLE)
    monkeypatch.undo()
    assert len(release.stages) == 1
    release.save(tmp_path / "file")
    assert verify(tmp_path / "file").complete
    book.verify(releases=[tmp_path / "file"])


def test_a_stage_on_record_is_answered_as_it_was_planned(book, plan, dies, monkeypatch):
    """Also by a library that would plan it in another way by then."""
    alive = dies(1)
    with pytest.raises(KeyboardInterrupt):
        plan.release(Y, ledger=book, **PEOPLE)
    alive()
    planned = StagePlan.from_bytes(book.stages(2, plan)[1].contents, plan.rule, 1)
    right = staging.windows
    monkeypatch.setattr(
        staging, "windows", lambda state, bounds, kappa, *link: right(state, bounds, kappa / 2, *link)
    )
    whole = plan.recover(book, 2, Y)
    np.testing.assert_array_equal(whole.stages[1].lower, planned.measurement.lower)
    assert kinds(book) == ["spent"] + ["planned", "answered"] * 3
