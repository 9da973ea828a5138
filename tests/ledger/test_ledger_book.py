"""What a ledger promises its users: what is on record, what is asked again, and what never shows."""

from __future__ import annotations

import copy
import hashlib
import io
import logging
import pickle
import re
import struct
import traceback
import warnings

import numpy as np
import pytest
import sqlalchemy as sa
from ledger_helpers import Unreadable, Watched, Y, behind, rows_of, small_function_plan, small_plan
from sklearn.base import clone

import cloakgp
from cloakgp import PrivateGPRegressor
from cloakgp.core.accounting import Approximate, Exponential, Gaussian, Laplace
from cloakgp.core.errors import ArgumentError
from cloakgp.files import container
from cloakgp.kernels import EQ
from cloakgp.ledger import BudgetExceeded, DatasetExists, Ledger, LedgerError, LedgerTampered, store

PLANS = {
    "predictions": small_plan,
    "function": small_function_plan,
    "hidden inputs": lambda: small_function_plan("input-free"),
}


@pytest.mark.parametrize("kind", PLANS)
def test_a_release_is_on_record_when_it_is_returned(ledger, url, kind):
    plan = PLANS[kind]()
    release = plan.release(Y, ledger=ledger, dataset="people", why="table 1", request="first")
    entry = ledger.entries("people")[-1]
    assert (entry.number, entry.kind, entry.dataset, entry.who) == (2, "spent", "people", "a tester")
    assert (entry.why, entry.request, entry.plan) == ("table 1", "first", plan.digest)
    assert entry.inputs == ("" if plan.X is None else container.digest(plan.X))
    assert entry.answer == hashlib.sha256(release.z.astype("<i8").tobytes()).hexdigest()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entry.when)
    assert ledger.balance("people").events == (plan.cost,)
    assert (release.receipt.dataset, release.receipt.entry, release.receipt.head) == (
        "people",
        2,
        ledger.head,
    )
    assert plan.recover(ledger, 2).z.tolist() == release.z.tolist()
    assert plan.recover(url, 2).receipt == release.receipt
    with behind(url) as connection:
        assert rows_of(connection)[2]["contents"] == release.z.astype("<i8").tobytes()


@pytest.mark.parametrize("kind", PLANS)
def test_what_does_not_fit_is_refused_before_y_is_read(ledger, kind):
    """And it is said what is left."""
    plan = PLANS[kind]()
    plan.release(Y, ledger=ledger, dataset="people")
    head = ledger.head
    with pytest.raises(BudgetExceeded) as caught:
        plan.release(Unreadable(), ledger=ledger, dataset="people")
    message = str(caught.value)
    assert "does not fit into what is left" in message
    assert "y was not read" in message
    assert re.search(r"left for one more release: epsilon 0 at delta 0\.01", message)
    assert ledger.head == head


def test_what_is_said_to_be_left_fits(ledger):
    """Exactly as printed, again and again, until nothing is left."""
    for _ in range(4):
        with pytest.raises(BudgetExceeded) as caught:
            small_plan(epsilon=2.0).release(Unreadable(), ledger=ledger, dataset="people")
        left = float(re.search(r"one more release: epsilon ([\d.e-]+)", str(caught.value)).group(1))
        with pytest.raises(BudgetExceeded):
            small_plan(epsilon=left * 1.01).release(Unreadable(), ledger=ledger, dataset="people")
        small_plan(epsilon=left * 0.6).release(Y, ledger=ledger, dataset="people")
    left = float(re.search(r"one more release: epsilon ([\d.e-]+)", str(ledger.balance("people"))).group(1))
    small_plan(epsilon=left * 0.9).release(Y, ledger=ledger, dataset="people")
    left = ledger.balance("people").left_for_selection()
    with pytest.raises(BudgetExceeded, match="Exponential mechanism"):
        ledger.record("people", Exponential(left * 1.001), "too much")
    ledger.record("people", Exponential(left), "all")
    assert ledger.balance("people").left_for_release() < 0.01
    ledger.verify()


@pytest.mark.parametrize(
    ("y", "error"),
    [
        (np.full(6, np.nan), ValueError),
        (np.zeros(5), ValueError),
        (["a"] * 6, TypeError),
        (Unreadable(), TypeError),
    ],
)
def test_a_bad_y_costs_nothing(ledger, plan, y, error):
    head = ledger.head
    with pytest.raises(error, match="Nothing was spent"):
        plan.release(y, ledger=ledger, dataset="people", request="one")
    assert ledger.head == head
    plan.release(Y, ledger=ledger, dataset="people", request="one")
    ledger.verify()


@pytest.mark.parametrize("kind", PLANS)
def test_a_request_is_answered_once(ledger, kind):
    """Asked again, the ledger gives the same answer: without y, and without charging."""
    plan = PLANS[kind]()
    first = plan.release(Y, ledger=ledger, dataset="people", request="table 3")
    y = Watched()
    again = plan.release(y, ledger=ledger, dataset="people", request="table 3")
    assert not y.read
    assert again.z.tolist() == first.z.tolist()
    assert again.receipt == first.receipt
    with pytest.raises(LedgerError, match="another plan"):
        small_plan(epsilon=0.7).release(Unreadable(), ledger=ledger, dataset="people", request="table 3")
    assert len(ledger.balance("people").events) == 1


def test_a_data_set_is_there_once_and_has_its_own_requests(ledger, plan):
    with pytest.raises(DatasetExists, match=r"'people' is in this ledger already"):
        ledger.create("people", epsilon=9.0, delta=0.01)
    assert ledger.balance("people").budget.epsilon == 1.0
    for use in (
        lambda: plan.release(Unreadable(), ledger=ledger, dataset="nobody"),
        lambda: ledger.entries("nobody"),
        lambda: ledger.record("nobody", Exponential(0.1), "elsewhere"),
    ):
        with pytest.raises(LedgerError, match=r"'nobody' is not in this ledger \(there: 'people'\)"):
            use()
    ledger.create("others", epsilon=1.0, delta=0.01)
    a, b = (plan.release(Y, ledger=ledger, dataset=name, request="one") for name in ("people", "others"))
    assert a.z.tolist() != b.z.tolist()
    assert (a.receipt.entry, b.receipt.entry) == (3, 4)
    for entry in (0, 1, 5, -1, 10**9):
        with pytest.raises(LedgerError, match=f"no release of number {entry} "):
            plan.recover(ledger, entry)
    ledger.verify()


def test_events_from_elsewhere(ledger, plan):
    """They are charged like our own."""
    receipt = ledger.record("people", Approximate(0.3, 0.001), "a table of another program")
    assert (receipt.entry, receipt.head) == (2, ledger.head)
    with pytest.raises(BudgetExceeded, match="can only be the first"):
        ledger.record("people", Approximate(0.1, 0.001), "another")
    with pytest.raises(BudgetExceeded):
        plan.release(Unreadable(), ledger=ledger, dataset="people")
    with pytest.raises(TypeError, match="events must be"):
        ledger.record("people", "a lot", "not an event")
    ledger.record("people", Laplace(0.1), "a count")
    ledger.verify()


def test_set_aside_for_selections(url):
    ledger = Ledger(url)
    balance = ledger.create("people", epsilon=1.0, delta=0.01, pure=0.4)
    assert "0.4 of epsilon set aside" in str(balance)
    plan = small_plan(epsilon=0.6)
    plan.release(Y, ledger=ledger, dataset="people")
    with pytest.raises(BudgetExceeded):
        small_plan(epsilon=0.05).release(Unreadable(), ledger=ledger, dataset="people")
    ledger.record("people", Exponential(0.3), "a selection")
    ledger.record("people", Laplace(0.09), "a count")
    with pytest.raises(BudgetExceeded):
        ledger.record("people", Laplace(0.09), "a count")
    ledger.verify()


def test_arguments_that_belong_together(ledger, plan):
    with pytest.raises(ValueError, match="dataset must be given"):
        plan.release(Unreadable(), ledger=ledger)
    for only in ({"dataset": "people"}, {"why": "so"}, {"request": "one"}):
        with pytest.raises(ValueError, match="ledger must be given"):
            plan.release(Unreadable(), **only)
    with pytest.raises(TypeError, match="ledger must be"):
        plan.release(Unreadable(), ledger=3, dataset="people")


ODD = [
    "Ærøskøbing, 東京, 🐝",
    "Robert'); DROP TABLE cloakgp_ledger;--",
    '" OR 1=1 --',
    "100% %s %(number)s :number ? $1 {} \\x00 \\",
    "x" * 200,
    "NULL",
    "a  b",
    np.str_("numpy's text"),
]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_odd_names(url, name):
    """Stored and given back as they are, everywhere that a text can be given."""
    ledger = Ledger(url, who=name)
    ledger.create(name, epsilon=1.0, delta=0.01, why=name)
    ledger.create("plain", epsilon=1.0, delta=0.01)
    plan = small_plan()
    release = plan.release(Y, ledger=ledger, dataset=name, why=name, request=name)
    again = plan.release(Unreadable(), ledger=ledger, dataset=name, request=name)
    assert again.z.tolist() == release.z.tolist()
    entry = ledger.entries(name)[-1]
    assert (entry.dataset, entry.who, entry.why, entry.request) == (name, name, name, name)
    assert ledger.datasets() == [name, "plain"]
    assert name in str(ledger.balance(name))
    assert ledger.balance("plain").events == ()
    ledger.verify([release])


NO_TEXT = ["", " ", "x" * 1001, "a\nb", "a\x00b", "\x1b[31m", "\ud800", "zero\u200bwidth"]
NO_TEXT += [5, True, 2.5, b"bytes", ["a"], None]
BUDGETS = [(0, 0.1, 0), (1, 0, 0), (1, 1, 0), (np.nan, 0.1, 0), (1, 0.1, 1), (1, 0.1, -1)]
REFUSED = {  # (bad values, what is done with one, names of arguments)
    "dataset": (NO_TEXT, lambda bad, book, _: book.create(bad, epsilon=1.0, delta=0.01)),
    "dataset that no release file could keep": (
        ["x" * 201],
        lambda bad, book, _: book.create(bad, epsilon=1.0, delta=0.01),
    ),
    "dataset of a release": (
        [*NO_TEXT[:-1], "x" * 201],
        lambda bad, book, plan: plan.release(Unreadable(), ledger=book, dataset=bad),
    ),
    "dataset of a balance": (NO_TEXT, lambda bad, book, _: book.balance(bad)),
    "dataset of a record": (NO_TEXT, lambda bad, book, _: book.record(bad, Exponential(0.1), "elsewhere")),
    "why of a record": (NO_TEXT, lambda bad, book, _: book.record("people", Exponential(0.1), bad)),
    "why": (NO_TEXT[1:], lambda bad, book, _: book.create("others", epsilon=1.0, delta=0.01, why=bad)),
    "why of a release": (
        NO_TEXT[1:],
        lambda bad, book, plan: plan.release(Unreadable(), ledger=book, dataset="people", why=bad),
    ),
    "request": (
        NO_TEXT[:-1],
        lambda bad, book, plan: plan.release(Unreadable(), ledger=book, dataset="people", request=bad),
    ),
    "who": (NO_TEXT[:-1], lambda bad, book, _: Ledger(book._store.url, who=bad)),
    "timeout": (
        [0, -1, np.nan, np.inf, "long", None],
        lambda bad, book, _: Ledger(book._store.url, timeout=bad),
    ),
    "epsilon delta pure": (
        BUDGETS,
        lambda bad, book, _: book.create("others", epsilon=bad[0], delta=bad[1], pure=bad[2]),
    ),
    "entry": (["2", 2.0, None, True], lambda bad, book, _: book.answers(bad, None)),
    "releases": ([1, None, [None], [1]], lambda bad, book, _: book.verify(releases=bad)),
    "receipts": ([1, None, [None], [1]], lambda bad, book, _: book.verify(receipts=bad)),
}


@pytest.mark.parametrize("argument", REFUSED)
def test_what_is_refused_before_anything_is_read_or_charged(file_url, plan, argument):
    """A name that is stored as another, for example, would break the chain."""
    ledger = Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    head = ledger.head
    bad_ones, use = REFUSED[argument]
    for bad in bad_ones:
        with pytest.raises(ArgumentError) as refused:
            use(bad, ledger, plan)
        assert refused.value.name in argument.split(), bad
    assert ledger.head == head
    ledger.verify()


@pytest.mark.parametrize("releases", ["nofile.cloak", ["nofile.cloak"]])
def test_a_file_that_is_not_there_is_named(ledger, releases):
    with pytest.raises(FileNotFoundError, match="releases"):
        ledger.verify(releases=releases)


def test_who_spends_is_the_user_if_nothing_is_said(file_url, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    assert Ledger(file_url).who == "ada"
    monkeypatch.setattr("getpass.getuser", lambda: (_ for _ in ()).throw(KeyError("uid")))
    assert Ledger(file_url).who.startswith("user ")
    with pytest.raises(AttributeError):
        Ledger(file_url).who = "somebody else"


def test_copies_are_the_same_ledger(ledger, plan):
    """Pickled, copied: without connections, to the same database, as the same person."""
    for other in (pickle.loads(pickle.dumps(ledger)), copy.copy(ledger), copy.deepcopy(ledger)):  # noqa: S301
        assert repr(other) == repr(ledger)
        assert other.head == ledger.head
    release = plan.release(Y, ledger=copy.deepcopy(ledger), dataset="people")
    ledger.verify([pickle.loads(pickle.dumps(release))])  # noqa: S301


def test_a_relative_path_is_where_it_was(tmp_path, monkeypatch):
    """The program changes its folder, or sends the ledger to one that is elsewhere: it is the same file."""
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("sqlite:///budget.db")
    ledger.create("people", epsilon=1.0, delta=0.01)
    sent = pickle.dumps(ledger)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert ledger.datasets() == pickle.loads(sent).datasets() == ["people"]  # noqa: S301
    with pytest.raises(LedgerError, match="there is no file"):
        Ledger("sqlite:///budget.db").datasets()
    assert not list((tmp_path / "sub").iterdir())


def test_a_forked_ledger_object(url, children, little_plan):
    """The object itself is used before and after the fork, by both."""
    call = ["spend_and_fork", {"url": url, "plan": children.put(little_plan), "y": Y.tolist()}]
    [(signal, lines)] = children.run([call])
    assert signal == 0
    assert len(lines) == 4
    assert len({tuple(line["z"]) for line in lines}) == 4
    assert Ledger(url).verify().entries == 2 + 4


def test_the_estimator_pays_for_each_fit(ledger):
    X = np.linspace(0, 1, 6)[:, None]
    estimator = PrivateGPRegressor(EQ(0.5), 0.3, (0, 1000), 1.0, 0.01, ledger=ledger, dataset="people")
    copied = clone(estimator)
    assert repr(copied.ledger) == repr(ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cloakgp.estimators.RepeatedFitWarning)
        copied.fit(X, Y)
        ledger.verify([copied.release_])
        with pytest.raises(BudgetExceeded):
            clone(copied).fit(X, Unreadable())
    assert copied.predict(X).shape == (6,)
    assert len(ledger.balance("people").events) == 1
    refused = clone(estimator)
    with warnings.catch_warnings(action="ignore"), pytest.raises(BudgetExceeded):
        refused.fit(X, Unreadable())
    assert not hasattr(refused, "release_")


@pytest.mark.parametrize("kind", ["predictions", "function"])
def test_the_database_holds_no_hash_of_what_y_becomes(file_url, folder, kind):
    """A hash of y can be guessed at. That no number of it is there, ``tests/privacy`` looks for."""
    plan, ledger = PLANS[kind](), Ledger(file_url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    z = plan.release(Y, ledger=ledger, dataset="people", why="table 1").z
    held = (folder / "budget.db").read_bytes() + pickle.dumps(ledger.entries())
    assert container.digest(plan.X).encode() in held, "the search would miss a hash"
    m = plan.measurement
    y_int = np.rint(Y / 1000.0 * 2**m.y_bits).astype(np.int64)
    for array in (Y, y_int, m.matrix @ y_int, z - m.matrix @ y_int, Y.sum(keepdims=True)):
        forms = [array.astype(dtype).tobytes() for dtype in ("<f8", ">f8", "<i8", ">i8")]
        for found in (*(hashlib.sha256(form).hexdigest() for form in forms), container.digest(array)):
            assert found.encode() not in held.lower()
            assert bytes.fromhex(found) not in held


@pytest.mark.parametrize("step", ["append", "contents", "commit"])
def test_an_uncharged_answer_is_forgotten(url, plan, monkeypatch, step):
    """The database fails after the answer was drawn: no message, log or object that is left holds it."""
    ledger = Ledger(url, timeout=0.5)
    ledger.create("people", epsilon=1.0, delta=0.01)
    head, drawn = ledger.head, []
    measure = cloakgp.private.room.measure

    def noted(*args, **options):
        drawn.append(measure(*args, **options))
        return drawn[-1]

    monkeypatch.setattr(cloakgp.private.room, "measure", noted)
    with behind(url) as connection:
        if step == "append" and url.startswith("sqlite"):
            connection.exec_driver_sql("DROP TRIGGER cloakgp_ledger_no_replace")
            connection.exec_driver_sql(
                "CREATE UNIQUE INDEX i ON cloakgp_ledger (kind != 'opened', length(who))"
            )
        elif step == "append":
            connection.exec_driver_sql("ALTER TABLE cloakgp_ledger ADD CONSTRAINT c CHECK (contents IS NULL)")
    if step == "contents":
        monkeypatch.setattr(store.Store, "held", lambda *args: (b"something else", None))
    if step == "commit":
        fail = sa.exc.OperationalError("COMMIT", {"contents": 1}, Exception("disk I/O error"))

        def failing(*args):
            raise fail

        monkeypatch.setattr(sa.Connection, "commit", failing)
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.raises(LedgerError, match="No answer was given out") as caught:
            plan.release(Y, ledger=ledger, dataset="people")
    finally:
        logging.getLogger().removeHandler(handler)
    monkeypatch.undo()
    assert len(drawn) == 1
    said = "".join(traceback.format_exception(caught.value)) + logged.getvalue() + repr(vars(caught.value))
    for number in drawn[0].tolist():
        for trace in (str(number), struct.pack("<q", number).hex(), struct.pack(">q", number).hex()):
            assert trace not in said.lower()
    assert caught.value.__context__ is None
    assert ledger.head == head
    ledger.verify()


def test_balance_says_what_was_spent(ledger):
    plan = small_plan(epsilon=0.5)
    plan.release(Y, ledger=ledger, dataset="people")
    balance = ledger.balance("people")
    assert balance.spent == pytest.approx(0.5, rel=1e-3)
    assert balance.spent <= 0.5
    assert balance.left_for_release(0.001) > balance.left_for_release(0.01)
    with pytest.raises(ValueError, match="delta"):
        balance.left_for_release(2.0)
    # A release before a selection: composition alone proves less than the budget's rule.
    ledger.create("others", epsilon=1.0, delta=0.01)
    for event in (Gaussian(0.3, 2), Exponential(0.3), Gaussian(0.15, 2)):
        ledger.record("others", event, "elsewhere")
    assert ledger.balance("others").spent <= 1.0


def test_a_noted_head_shows_a_cut_tail(ledger):
    """Spends on record by hand and selections leave no file; a head that was noted shows them."""
    ledger.record("people", Laplace(0.1), "elsewhere")
    noted = ledger.head
    assert ledger.verify(head=noted).head == noted
    ledger.record("people", Laplace(0.1), "elsewhere")
    ledger.verify(head=noted)
    with pytest.raises(LedgerTampered, match="head"):
        ledger.verify(head="0" * 64)
