"""A ledger that has forgotten what it sold sells nothing more, whichever way it came about."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from app_helpers import LOOSE, World, make_plan, release

from cloakgp.app import State, create_app, releases
from cloakgp.app.checked_ledger import CheckedLedger
from cloakgp.app.releases import Releases
from cloakgp.ledger import Ledger
from cloakgp.ledger.chain import Receipt

NEARLY_ALL = 0.99


class Scene:
    """A server that has sold nearly all of a budget, and yesterday's copy of its ledger."""

    def __init__(self, world: World) -> None:
        self.world, self.folder = world, world.state.folder
        self.ledger, self.url = self.folder.path / "ledger.db", world.state.ledger_url
        self.receipts = self.folder.path / "receipts.json"
        self.yesterday = self.folder.path.parent / "yesterday.db"
        shutil.copy(self.ledger, self.yesterday)
        self.plan = make_plan(world.client(), epsilon=NEARLY_ALL)
        self.id = release(world.client(), self.plan).json()["release"]["id"]
        self.file = self.folder.release(self.id)
        self.kept, self.today = self.file.read_bytes(), self.ledger.read_bytes()

    def spends(self, url: str | None = None) -> int:
        return [entry.kind for entry in Ledger(url or self.url).entries()].count("spent")

    def put_back(self) -> None:
        shutil.copy(self.yesterday, self.ledger)

    def remove(self) -> None:
        self.ledger.unlink()

    def recreate(self) -> None:
        self.remove()
        Ledger(self.url).create("kung", epsilon=1.0, delta=0.01)

    def put_back_and_append(self) -> None:
        """The number of the release's entry is there, and the chain is good."""
        self.put_back()
        Ledger(self.url).create("others", epsilon=1.0, delta=0.01)

    def put_back_and_sell_again(self) -> None:
        """The same plan to the last bit, under the same request's name: entries alike but for the answer."""
        self.put_back()
        entry = Scene.entry_of(self.today, self.ledger.parent.parent / "today.db")
        plan = self.world.state.plans.make_again(self.plan)
        plan.release([120.0] * 40, ledger=Ledger(self.url), dataset="kung", request=entry)

    @staticmethod
    def entry_of(contents: bytes, path: Path) -> str:
        path.write_bytes(contents)
        return str(Ledger(f"sqlite:///{path}").entries()[-1].request)


@pytest.fixture
def scene(world: World, drawn_once: None) -> Scene:
    return Scene(world)


def check_refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json().get("code")) == (409, "read_only"), answer.text
    assert "Nothing was spent" in answer.json()["error"]


def check_read_only(world: World, scene: Scene) -> None:
    """Every way to spend is refused, the page says so, the file is what it was, and reading goes on."""
    client = world.client()
    other = make_plan(client, epsilon=0.2)
    for plan in (scene.plan, other):
        check_refused(release(client, plan))
        check_refused(client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}))
    check_refused(release(client, scene.plan, number=2))
    wanted = {"name": "new", "epsilon": 1.0, "delta": 0.01}
    check_refused(client.post("/api/ledger/datasets", json=wanted))
    book = client.get("/api/ledger").json()
    assert (book["verified"], book["read_only"]) == (False, True)
    assert "does not know 1 of 1 payment(s)" in book["problem"]
    assert "--ledger" in book["remedy"]
    assert scene.file.read_bytes() == scene.kept
    assert client.get(f"/api/releases/{scene.id}/file").content == scene.kept
    assert client.get(f"/api/releases/{scene.id}/verify").json()["ok"]
    for path in ("", f"/{scene.id}", f"/{scene.id}/csv", f"/{scene.id}/report"):
        assert client.get(f"/api/releases{path}").status_code == 200
    asked = client.post(f"/api/releases/{scene.id}/predict", json={"points": [[30.0]]})
    assert asked.status_code == 200


ATTACKS: list[Callable[[Scene], None]] = [
    Scene.remove,
    Scene.put_back,
    Scene.recreate,
    Scene.put_back_and_append,
    Scene.put_back_and_sell_again,
]


@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "running"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_ledger_that_was_put_back(scene: Scene, attack: Callable[[Scene], None], restart: bool) -> None:
    attack(scene)
    before = scene.ledger.read_bytes() if scene.ledger.exists() else None
    world = scene.world.restarted() if restart else scene.world
    check_read_only(world, scene)
    assert (scene.ledger.read_bytes() if scene.ledger.exists() else None) == before  # and is not made anew


def test_another_ledger_than_before(scene: Scene, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path}/another.db"
    Ledger(url).create("kung", epsilon=1.0, delta=0.01)
    state = State(scene.folder.path, url, limits=LOOSE, demo=True)
    assert "read-only" in caplog.text
    check_read_only(World(state, create_app(state), scene.world.tokens), scene)
    assert scene.spends(url) == 0


def test_replaced_between_the_last_look_and_the_charge(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction that pays looks for itself; the output column is not read."""
    plan = make_plan(scene.world.client(), epsilon=0.05)
    begin = Releases.begin

    def replaced(self: Releases, record: dict[str, Any]) -> None:
        begin(self, record)
        scene.put_back()

    monkeypatch.setattr(Releases, "begin", replaced)
    monkeypatch.setattr("cloakgp.private.room.measure", lambda *_: pytest.fail("the output column was read"))
    check_refused(release(scene.world.client(), plan))
    assert scene.spends() == 0


def test_replaced_between_the_last_look_and_a_new_budget(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = CheckedLedger.trouble

    def replaced(self: CheckedLedger) -> str | None:
        said = look(self)
        scene.put_back()
        return said

    monkeypatch.setattr(CheckedLedger, "trouble", replaced)
    wanted = {"name": "new", "epsilon": 1.0, "delta": 0.01}
    check_refused(scene.world.client().post("/api/ledger/datasets", json=wanted))
    assert Ledger(scene.url).datasets() == ["kung"]


REMAINS = {
    "receipts alone": [".json", ".cloak"],
    "record alone": [".cloak", "receipts"],
    "file alone": [".json", "receipts"],
}


@pytest.mark.parametrize("gone", REMAINS.values(), ids=list(REMAINS))
def test_a_release_is_remembered_by_whatever_is_left_of_it(scene: Scene, gone: list[str]) -> None:
    """Deleting a release does not undo that it was paid for; nor does a crash before it was noted as done."""
    for what in gone:
        (scene.receipts if what == "receipts" else scene.file.with_suffix(what)).unlink(missing_ok=True)
    scene.put_back()
    client = scene.world.restarted().client()
    check_refused(release(client, scene.plan))
    assert client.get("/api/ledger").json()["read_only"]
    assert scene.spends() == 0
    assert not scene.file.exists() or scene.file.read_bytes() == scene.kept


def test_an_unfinished_release_waits_for_the_right_ledger(scene: Scene) -> None:
    """Killed between the release file and its record, then yesterday's ledger: the note is kept."""
    record = scene.file.with_suffix(".json")
    words = json.loads(record.read_bytes())
    record.write_text(json.dumps({**words, "state": "asked"}))
    scene.put_back()
    check_refused(release(scene.world.restarted().client(), scene.plan))
    assert record.exists()
    assert scene.file.read_bytes() == scene.kept
    scene.ledger.write_bytes(scene.today)
    shown = scene.world.restarted().client().get("/api/releases").json()
    assert [each["id"] for each in shown] == [scene.id]


@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "running"])
def test_the_right_ledger_ends_it(scene: Scene, restart: bool) -> None:
    scene.put_back()
    world = scene.world.restarted()
    check_refused(release(world.client(), scene.plan))
    scene.ledger.write_bytes(scene.today)
    client = (world.restarted() if restart else world).client()
    book = client.get("/api/ledger").json()
    assert (book["verified"], book["read_only"], book["problem"], book["remedy"]) == (True, False, None, None)
    again = release(client, scene.plan).json()
    assert (again["release"]["id"], again["receipt"]["spent"]) == (scene.id, False)
    small = make_plan(client, epsilon=0.001, delta=1e-4)
    assert release(client, small).json()["receipt"]["spent"] is True


@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "running"])
def test_a_broken_chain_is_read_only_too(scene: Scene, restart: bool) -> None:
    with sqlite3.connect(scene.ledger) as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_update")
        database.execute("UPDATE cloakgp_ledger SET who = 'nobody' WHERE number = 1")
    client = (scene.world.restarted() if restart else scene.world).client()
    book = client.get("/api/ledger").json()
    assert (book["verified"], book["read_only"], book["problem"] is None) == (False, True, False)
    check_refused(release(client, scene.plan))


def test_a_newer_ledger_is_welcome(scene: Scene) -> None:
    """Others spend from it, too."""
    Ledger(scene.url).create("others", epsilon=1.0, delta=0.01)
    client = scene.world.restarted().client()
    assert client.get("/api/ledger").json()["verified"]
    assert release(client, make_plan(client, epsilon=0.2), dataset="others", confirm="others").is_success


def _look(ledger: CheckedLedger) -> None:
    assert ledger.trouble() is None


def _look_before_writing(ledger: CheckedLedger) -> None:
    with ledger._store.reading() as connection:
        ledger._checked_to_write(connection)


@pytest.mark.parametrize("look", [_look, _look_before_writing])
def test_what_others_pay_for_meanwhile_is_not_missed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, look: Callable[[CheckedLedger], None]
) -> None:
    """On a server, requests for other data sets pay while this one reads."""
    releasing, read = scene.world.state.releasing, Ledger._checked

    def paid_meanwhile(self: Ledger, connection: Any) -> Any:
        entries = read(self, connection)
        releasing.receipts.add(Receipt("others", len(entries), "f" * 64))
        return entries

    monkeypatch.setattr(Ledger, "_checked", paid_meanwhile)
    look(releasing.ledger("a test"))


def test_a_release_file_is_never_overwritten_by_another_answer(world: World) -> None:
    """Asked for again, the first release finds the second one's file under its name."""
    client = world.client()
    plan = make_plan(client)
    first, second = (release(client, plan, number=number).json()["release"]["id"] for number in (1, 2))
    folder = world.state.folder
    other = folder.release(second).read_bytes()
    folder.release(first).write_bytes(other)
    folder.record(first).unlink()
    again = world.restarted()
    answer = release(again.client(), plan)
    assert (answer.status_code, answer.json().get("code")) == (409, "conflict"), answer.text
    assert folder.release(first).read_bytes() == other
    folder.release(first).unlink()
    assert release(again.client(), plan).json()["receipt"]["spent"] is False


def test_a_file_that_no_ledger_knows_is_not_overwritten(world: World) -> None:
    client = world.client()
    plan = make_plan(client)
    done = release(client, plan).json()["release"]["id"]
    second = releases.release_id(plan, "kung", 2)
    foreign = world.state.plans.make_again(plan).release([120.0] * 40)
    foreign.save(world.state.folder.release(second))
    kept = world.state.folder.release(second).read_bytes()
    answer = release(client, plan, number=2)
    assert (answer.status_code, answer.json().get("code")) == (409, "conflict"), answer.text
    assert world.state.folder.release(second).read_bytes() == kept
    book = client.get("/api/ledger").json()
    assert [entry["kind"] for entry in book["entries"]].count("spent") == 1
    assert done != second


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"receipts": [1]}', '{"receipts": [{"dataset": "a", "entry": "2", "head": ""}]}'],
)
def test_receipts_that_cannot_be_read_are_not_taken_for_none(scene: Scene, text: str) -> None:
    scene.receipts.write_text(text)
    with pytest.raises(ValueError, match=r"receipts\.json cannot be read"):
        scene.world.restarted()
