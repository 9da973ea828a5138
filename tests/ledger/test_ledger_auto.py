"""A learned model's release through a ledger: paid once, gone on with after a crash, and verified."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from ledger_helpers import Unreadable

from cloakgp import AutoGP, Plan, load, verify
from cloakgp.files import container
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered

pytestmark = pytest.mark.usefixtures("few_models")

X = np.linspace(0.0, 10.0, 30)[:, None]
Y = 2.0 + np.sin(X[:, 0])
PEOPLE = {"dataset": "people"}
WHOLE = ["spent", "answered", "answered", "answered"]


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
        right, seen = Plan._measure, []

        def measure(*given):
            seen.append(1)
            answer = None if len(seen) == number + 1 and not after else right(*given)
            if len(seen) == number + 1:
                raise KeyboardInterrupt
            return answer

        monkeypatch.setattr(Plan, "_measure", measure)
        return lambda: monkeypatch.setattr(Plan, "_measure", right)

    return at


def test_a_release_and_its_file_are_in_the_ledger_that_paid(book, plan, tmp_path):
    release = plan.release(Y, ledger=book, **PEOPLE)
    path = tmp_path / "release.cloak"
    release.save(path)
    assert kinds(book) == WHOLE
    assert book.balance("people").events == (plan.cost,)
    assert release.receipt.entry == len(book.entries()) - 1
    book.verify(releases=[release, path, load(path)])
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


@pytest.mark.parametrize("after", [False, True], ids=["before y is read", "with the answer in hand"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_a_crash_left_is_gone_on_with_for_nothing(book, plan, dies, number, after, tmp_path):
    alive = dies(number, after)
    with pytest.raises(KeyboardInterrupt):
        plan.release(Y, ledger=book, request="one", **PEOPLE)
    alive()
    assert kinds(book) == WHOLE[:number]
    if number:
        left = plan.recover(book, 2)
        assert len(left.stages) == number
        left.save(tmp_path / "short")
        assert verify(tmp_path / "short").complete
        book.verify(releases=[left, tmp_path / "short"])
        whole = plan.recover(book, 2, Y)
        assert answers(whole)[:number] == answers(left)
    else:
        whole = plan.release(Y, ledger=book, request="one", **PEOPLE)
    assert kinds(book) == WHOLE
    assert book.balance("people").events == (plan.cost,)
    assert answers(plan.recover(book, 2)) == answers(whole)
    book.verify(releases=[whole])


def test_a_ledger_that_is_in_use_between_stages_says_what_was_paid_for(book, plan, file_url, monkeypatch):
    other = sqlite3.connect(file_url.removeprefix("sqlite:///"), isolation_level=None)
    right = Plan._stage

    def planned(self, walk, number, known):
        if number == 1:
            other.execute("BEGIN IMMEDIATE")
        return right(self, walk, number, known)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "_stage", planned)
        impatient = Ledger(file_url, timeout=0.01)
        with pytest.raises(LedgerError, match=r"another process .* paid for before, in entry 2: recover"):
            plan.release(Y, ledger=impatient, **PEOPLE)
    other.close()
    assert len(plan.recover(book, 2, Y).stages) == 4
    assert book.balance("people").events == (plan.cost,)


@pytest.mark.parametrize("entry", [None, "2", True])
def test_an_entry_is_a_number_and_a_ledger_has_it(book, plan, entry):
    """Without one nothing was paid for, and nothing may be answered."""
    for ledger in (book, None):
        with pytest.raises(TypeError):
            plan.recover(ledger, entry, Unreadable())
