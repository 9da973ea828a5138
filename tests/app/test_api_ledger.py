"""The ledger under the app: one that cannot be used, one without a budget, and who has paid."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from app_helpers import World, check_refused, make_plan, release

from cloakgp.app import State
from cloakgp.core.accounting import Gaussian
from cloakgp.ledger import Ledger, LedgerError


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://me:SECRET@host/budget", "url must begin with"),
        ("sqlite:///{folder}/no/such/folder/budget.db", "there is no folder"),
        ("sqlite:///{folder}/notes.txt", "not a ledger"),
        ("postgresql://me:SECRET@127.0.0.1:9/budget", "cannot be reached"),
    ],
)
def test_a_ledger_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, url: str, says: str) -> None:
    (tmp_path / "notes.txt").write_text("not a database, and long enough to be told from an empty one")
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg")
    with pytest.raises((ValueError, LedgerError), match=says) as refused:
        State(tmp_path / "data", url.format(folder=tmp_path))
    assert "SECRET" not in str(refused.value)


def test_an_unexpected_word_of_the_ledger_is_not_quoted(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says that the ledger failed, and not how: nobody knows what such an error quotes."""
    client = world.client()
    plan = make_plan(client)

    def fail(*arguments: Any) -> None:
        raise ValueError("SECRET")

    monkeypatch.setattr(Ledger, "_read", fail)
    for answer in (client.get("/api/ledger"), release(client, plan)):
        check_refused(answer, 503, "failed", "ledger")
        assert "SECRET" not in answer.text + caplog.text


def test_without_a_budget_there_is_nothing_to_spend(world: World) -> None:
    """A ledger that is not there yet, then one whose only budget is used up."""
    client = world.client()
    plan = make_plan(client, epsilon=1.0)
    (world.state.folder.path / "ledger.db").unlink()
    assert client.get("/api/ledger").json()["datasets"] == []
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"})
    for answer in (quote, release(client, plan)):
        check_refused(answer, 404, "not_found", "nothing was spent")
    client.post("/api/ledger/datasets", json={"name": "kung", "epsilon": 1.0, "delta": 0.01})
    assert release(client, plan).status_code == 200
    small = make_plan(client, epsilon=0.01, delta=1e-6)
    quote = client.post(f"/api/plans/{small}/quote", json={"dataset": "kung"}).json()
    assert not quote["fits"]
    assert quote["left_before"]["release"] < 0.01
    assert release(client, small).json()["code"] == "budget_exceeded"


IN_STAGES = SimpleNamespace(
    cost=Gaussian(0.1, 2),
    digest="a" * 64,
    inputs_digest="b" * 64,
    question_digest="c" * 64,
    to_bytes=lambda: b"a plan",
    stages=2,
    unit="one row",
    partition="",
    delta=0.01,
)


def go_on(ledger: Ledger, number: int) -> int:
    """A stage of the release that entry 2 pays for, or will; returns the number of its entry."""
    first = ledger.charge(IN_STAGES, "kung", "growth", "one")
    with ledger.stage(2, number, IN_STAGES, b"a plan") if number else first as charge:
        if charge.answer is None:
            charge.answer = np.array([number])
    assert charge.receipt is not None
    return charge.receipt.entry


def test_a_release_in_stages_is_shown_and_its_receipts_are_kept(world: World) -> None:
    """One spend; its stages are listed at no cost, and everything is found again after a restart."""
    ledger = world.state.releasing.ledger("a test")
    assert [go_on(ledger, number) for number in range(2)] == [2, 3]
    assert ledger.paid
    again = world.state.releasing.ledger("a test")
    assert [go_on(again, number) for number in range(2)] == [2, 3]
    assert not again.paid
    restarted = world.restarted()
    kept = restarted.state.releasing.receipts.all
    assert [receipt.entry for receipt in kept] == [2, 3]
    book = restarted.client().get("/api/ledger").json()
    assert book["verified"]
    assert [entry["kind"] for entry in book["entries"][2:]] == ["spent", "answered"]
    assert book["entries"][3]["why"] == "stage 2 of 2, paid for in entry 2"
    assert [dataset["events"] for dataset in book["datasets"]] == [1]


@pytest.mark.parametrize("left", [2, 3])
def test_a_ledger_that_forgot_a_stage_sells_nothing(world: World, tmp_path: Path, left: int) -> None:
    """Cut off before or after the first stage, which paid; a stage is not drawn a second time."""
    ledger = world.state.releasing.ledger("a test")
    go_on(ledger, 0)
    go_on(ledger, 1)
    with sqlite3.connect(world.state.folder.path / "ledger.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_delete")
        database.execute("DELETE FROM cloakgp_ledger WHERE number >= ?", [left])
    assert Ledger(world.state.ledger_url).verify().entries == left
    for use in (lambda: go_on(ledger, 1), lambda: go_on(ledger, 0)):
        with pytest.raises(LedgerError, match=r"does not know|no release"):
            use()
    assert world.client().get("/api/ledger").json()["read_only"]
    assert Ledger(world.state.ledger_url).verify().entries == left


def test_stages_that_were_paid_elsewhere_are_remembered_when_they_are_read(world: World) -> None:
    outside = Ledger(world.state.ledger_url)
    go_on(outside, 0)
    go_on(outside, 1)
    assert len(world.state.releasing.ledger("a test").answers(2, IN_STAGES)) == 2
    assert [receipt.entry for receipt in world.state.releasing.receipts.all] == [2, 3]
