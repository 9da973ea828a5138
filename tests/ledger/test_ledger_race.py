"""Processes and threads that spend at the same time: never more than fits, never the same money twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from ledger_helpers import Y, behind, small_plan

from cloakgp.core.accounting import compose
from cloakgp.core.budget import Budget
from cloakgp.ledger import BudgetExceeded, Ledger

PROCESSES = 8


def how_many_fit(budget: Budget, cost) -> int:
    events = []
    while budget.allows(events, cost):
        events.append(cost)
    return len(events)


def check_books(ledger, dataset, printed):
    """The chain holds, the budget is kept, and what was printed is what is on record, once each."""
    ledger.verify()
    entries = [entry for entry in ledger.entries(dataset) if entry.kind == "spent"]
    assert sorted(line["entry"] for line in printed) == [entry.number for entry in entries]
    assert {(line["entry"], line["head"]) for line in printed} == {(e.number, e.hash) for e in entries}
    balance = ledger.balance(dataset)
    assert compose(balance.events).fits(balance.budget.epsilon, balance.budget.delta * (1 + 1e-6))


def lines_of(results):
    """Everything that children said, if all ended well."""
    assert all(signal == 0 for signal, _ in results)
    lines = [line for _, printed in results for line in printed]
    assert not [line for line in lines if "failed" in line or "error" in line]
    return lines


def test_many_processes_race_for_the_last_of_the_budget(url, children):
    """Exactly as many succeed as fit, and every answer is another one."""
    plan = small_plan(epsilon=0.3)
    ledger = Ledger(url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    fitting = how_many_fit(ledger.balance("people").budget, plan.cost)
    assert 2 < fitting < PROCESSES
    path = children.put(plan)
    lines = lines_of(children.run([["spend", {"url": url, "plan": path, "y": Y.tolist()}]] * PROCESSES))
    answers = [line for line in lines if "z" in line]
    assert len(answers) == fitting
    assert len(lines) - len(answers) == PROCESSES - fitting
    assert len({tuple(line["z"]) for line in answers}) == fitting
    check_books(ledger, "people", answers)
    for line in answers:
        assert plan.recover(ledger, line["entry"]).z.tolist() == line["z"]


def test_many_create_the_first_data_sets_at_once(url, children):
    """On an empty database: the ledger is opened once, and each name is given once."""
    names = [f"set {i // 2}" for i in range(PROCESSES)]
    lines = [
        line
        for _, out in children.run([["create", {"url": url, "dataset": n}] for n in names])
        for line in out
    ]
    assert sorted(line["created"] for line in lines if "created" in line) == sorted(set(names))
    assert all("already" in line["error"] for line in lines if "created" not in line)
    ledger = Ledger(url)
    ledger.verify()
    assert [entry.kind for entry in ledger.entries()] == ["opened"] + ["created"] * len(set(names))
    assert sorted(ledger.datasets()) == sorted(set(names))


def test_creating_and_spending_from_several_data_sets_at_once(url, children, plan):
    """Each gives its own, in one unbroken chain: nothing is lost, and nobody waits for ever."""
    ledger, names = Ledger(url), ["a", "b", "c"]
    for name in names:
        ledger.create(name, epsilon=1.0, delta=0.01)
    spend = {"url": url, "plan": children.put(plan), "y": Y.tolist()}
    calls = [["spend", {**spend, "dataset": name}] for name in names * 2]
    calls += [["create", {"url": url, "dataset": f"set {i}"}] for i in range(4)]
    lines = lines_of(children.run(calls))
    assert sum("z" in line for line in lines) == len(names)
    assert sum("created" in line for line in lines) == 4
    assert ledger.verify().entries == 1 + 2 * len(names) + 4


def test_threads_share_one_ledger(url, little_plan):
    """Eight threads with one Ledger object."""
    ledger = Ledger(url)
    ledger.create("people", epsilon=0.3, delta=0.01)
    fitting = how_many_fit(ledger.balance("people").budget, little_plan.cost)
    assert fitting < 24

    def spend(_):
        try:
            return little_plan.release(Y, ledger=ledger, dataset="people")
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        releases = [release for release in pool.map(spend, range(24)) if release is not None]
    assert len(releases) == fitting
    audit = ledger.verify(releases)
    assert audit.releases == fitting
    assert audit.entries == 2 + fitting


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_server_with_another_isolation_level(server, children, level):
    """Under these a transaction does not see what was committed while it waited: it must be set by us."""
    name = server.database()
    server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    url = server.url(name)
    plan = small_plan(epsilon=0.3)
    ledger = Ledger(url)
    ledger.create("people", epsilon=1.0, delta=0.01)
    fitting = how_many_fit(ledger.balance("people").budget, plan.cost)
    call = ["spend", {"url": url, "plan": children.put(plan), "y": Y.tolist()}]
    lines = lines_of(children.run([call] * PROCESSES))
    assert sum("z" in line for line in lines) == fitting
    ledger.verify()


def test_a_server_that_does_not_wait_for_its_disk(server, plan):
    """synchronous_commit = off could lose a charge whose answer has left: it is put on for the charge."""
    name = server.database()
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    ledger = Ledger(server.url(name))
    ledger.create("people", epsilon=1.0, delta=0.01)
    with ledger._store.writing() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"


def test_the_last_word_is_the_databases(url, plan, monkeypatch):
    """If the lock failed to keep two writers apart, the second entry of a number is refused."""
    from cloakgp.ledger.store import Store

    ledger = Ledger(url, timeout=1.0)
    ledger.create("people", epsilon=3.0, delta=0.01)
    append = Store.append

    def twice(self, *given):
        append(self, *given)
        append(self, *given)

    monkeypatch.setattr(Store, "append", twice)
    with pytest.raises(RuntimeError, match="Nothing was charged"):
        plan.release(Y, ledger=ledger, dataset="people")
    with behind(url) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM cloakgp_ledger").scalar() == 2
