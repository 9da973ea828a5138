"""The ledger under the app: one that cannot be used, one without a budget, and who has paid."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from app_helpers import LOOSE, World, make_plan, release

from cloakgp.accounting import Gaussian
from cloakgp.app import create_app, open_state
from cloakgp.app.releases import Releases
from cloakgp.ledger import Ledger, LedgerError


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "url must look like"),
        ("sqlite://", "url must name a file"),
        ("mysql://me:SECRET@host/budget", "url must begin with"),
        ("sqlite:///{folder}/no/such/folder/budget.db", "there is no folder"),
        ("sqlite:///{folder}/notes.txt", "not a ledger"),
        ("sqlite:///{folder}", "cannot be opened"),
        ("postgresql://me:SECRET@127.0.0.1:9/budget", "cannot be reached"),
    ],
)
def test_a_ledger_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, url: str, says: str) -> None:
    (tmp_path / "notes.txt").write_text("not a database, and long enough to be told from an empty one")
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg")
    with pytest.raises((ValueError, LedgerError), match=says) as refused:
        open_state(tmp_path / "data", url.format(folder=tmp_path))
    assert "SECRET" not in str(refused.value)


def test_a_ledger_that_was_tampered_with_is_told_on_its_page(world: World) -> None:
    with sqlite3.connect(world.state.folder.path / "ledger.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_update")
        database.execute("UPDATE cloakgp_ledger SET who = 'nobody' WHERE number = 1")
    book = world.restarted().client().get("/api/ledger").json()
    assert not book["verified"]
    assert book["problem"]


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
        assert (answer.status_code, answer.json()["code"]) == (503, "failed")
        assert "ledger" in answer.json()["error"]
        assert "SECRET" not in answer.text + caplog.text


def test_of_two_plans_with_one_digest_one_pays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Released at once, by two custodians: one spend, and only one of the two is told that it spent."""
    client = world.client()
    plans = [
        make_plan(client, kernel=kernel) for kernel in ("EQ(20, variance=625)", "EQ(20.0, variance=625)")
    ]
    assert plans[0] != plans[1]
    both = threading.Barrier(2, timeout=60)
    begin = Releases.begin

    def together(self: Releases, record: dict[str, Any]) -> None:
        begin(self, record)
        both.wait()  # both have looked into the ledger, and neither has paid

    monkeypatch.setattr(Releases, "begin", together)
    with ThreadPoolExecutor(2) as pool:
        answers = [answer.json() for answer in pool.map(lambda plan: release(world.client(), plan), plans)]
    assert sorted(answer["receipt"]["spent"] for answer in answers) == [False, True]
    assert answers[0]["receipt"]["entry"] == answers[1]["receipt"]["entry"]
    assert [entry.kind for entry in Ledger(world.state.ledger_url).entries()].count("spent") == 1
    assert client.get("/api/ledger").json()["verified"]


def test_without_a_budget_there_is_nothing_to_spend(world: World) -> None:
    """A ledger that is not there yet, then one whose only budget is used up."""
    client = world.client()
    plan = make_plan(client, epsilon=1.0)
    (world.state.folder.path / "ledger.db").unlink()
    assert client.get("/api/ledger").json()["datasets"] == []
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"})
    for answer in (quote, release(client, plan)):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "nothing was spent" in answer.json()["error"]
    client.post("/api/ledger/datasets", json={"name": "kung", "epsilon": 1.0, "delta": 0.01})
    assert release(client, plan).status_code == 200
    small = make_plan(client, epsilon=0.01, delta=1e-6)
    quote = client.post(f"/api/plans/{small}/quote", json={"dataset": "kung"}).json()
    assert not quote["fits"]
    assert quote["left_before"]["release"] < 0.01
    assert release(client, small).json()["code"] == "budget_exceeded"


def test_a_data_set_has_one_unit(world: World) -> None:
    """Shown in the book; a plan for another is refused when it is quoted and when it is released."""
    client = world.client()
    asked = {"name": "patients", "epsilon": 1.0, "delta": 0.01, "unit": "one person"}
    assert client.post("/api/ledger/datasets", json=asked).json()["unit"] == "one person"
    plan = make_plan(client, epsilon=0.5)
    assert release(client, plan).status_code == 200
    units = {each["name"]: each["unit"] for each in client.get("/api/ledger").json()["datasets"]}
    assert units == {"kung": "one row", "patients": "one person"}
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "patients"})
    for answer in (quote, release(client, plan, dataset="patients", confirm="patients")):
        assert (answer.status_code, answer.json()["code"]) == (409, "other_unit")
        assert "has the unit 'one person', and this is for 'one row'" in answer.json()["error"]
    entries = client.get("/api/ledger").json()["entries"]
    assert [entry["dataset"] for entry in entries if entry["kind"] == "spent"] == ["kung"]
    other = client.post("/api/ledger/datasets", json={**asked, "name": "x", "unit": "somebody"})
    assert other.status_code == 422


def test_the_till_has_not_been_paid_when_the_charge_fails(world: World) -> None:
    ledger = world.state.releasing.ledger("a test")
    client = world.client()
    plan = world.state.plans.make_again(make_plan(client, epsilon=2.0))
    with pytest.raises(LedgerError), ledger.charge(plan, "kung"):
        raise AssertionError("it does not fit")
    assert not ledger.paid


def test_the_app_opens_with_a_ledger_elsewhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    Ledger(url).create("kung", epsilon=1.0, delta=0.01)
    state = open_state(tmp_path / "data", url, limits=LOOSE)
    assert create_app(state).state.cloakgp.ledger_url == url


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
    """A stage of the release that entry 2 pays for; returns the number of its entry."""
    with ledger.stage(2, number, IN_STAGES, b"a plan") as charge:
        if charge.answer is None:
            charge.answer = np.array([number])
    assert charge.receipt is not None
    return charge.receipt.entry


def test_a_release_in_stages_is_shown_and_its_receipts_are_kept(world: World) -> None:
    """One spend; its stages are listed at no cost, and everything is found again after a restart."""
    ledger = world.state.releasing.ledger("a test")
    paid = ledger.pay(IN_STAGES, "kung", "growth", "one")
    assert ledger.paid
    assert [go_on(ledger, number) for number in range(2)] == [4, 6]
    again = world.state.releasing.ledger("a test")
    assert again.pay(IN_STAGES, "kung", "growth", "one") == paid
    assert not again.paid
    restarted = world.restarted()
    kept = restarted.state.releasing.receipts.everything()
    assert [receipt.entry for receipt in kept] == [2, 4, 6]
    book = restarted.client().get("/api/ledger").json()
    assert book["verified"]
    assert [entry["kind"] for entry in book["entries"][2:]] == ["spent", *["planned", "answered"] * 2]
    assert {entry["why"] for entry in book["entries"][5:]} == {"stage 2 of 2, paid for in entry 2"}
    assert [dataset["events"] for dataset in book["datasets"]] == [1]


@pytest.mark.parametrize("left", [2, 3, 5, 6])
def test_a_ledger_that_forgot_a_stage_sells_nothing(world: World, tmp_path: Path, left: int) -> None:
    """Cut off before or after what paid, or after the first stage; a stage is not drawn a second time."""
    ledger = world.state.releasing.ledger("a test")
    ledger.pay(IN_STAGES, "kung")
    go_on(ledger, 0)
    go_on(ledger, 1)
    with sqlite3.connect(world.state.folder.path / "ledger.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_delete")
        database.execute("DELETE FROM cloakgp_ledger WHERE number >= ?", [left])
    assert Ledger(world.state.ledger_url).verify().entries == left
    for use in (lambda: go_on(ledger, 1), lambda: ledger.pay(IN_STAGES, "kung")):
        with pytest.raises(LedgerError, match=r"does not know|does not pay"):
            use()
    assert world.client().get("/api/ledger").json()["read_only"]
    assert Ledger(world.state.ledger_url).verify().entries == left


def test_stages_that_were_paid_elsewhere_are_remembered_when_they_are_read(world: World) -> None:
    outside = Ledger(world.state.ledger_url)
    outside.pay(IN_STAGES, "kung")
    go_on(outside, 0)
    assert len(world.state.releasing.ledger("a test").stages(2, IN_STAGES)) == 1
    assert [receipt.entry for receipt in world.state.releasing.receipts.everything()] == [4]
