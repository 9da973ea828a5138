"""Who asks for too much at once, or leaves, keeps nobody waiting: what the guard does before a body."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest
from app_helpers import SETTINGS, World, check_refused, make_plan, opened, release
from asgi_client import loop

from cloakgp.app import Limits, settings, work
from cloakgp.app.errors import Problem
from cloakgp.app.limits import InFlight
from cloakgp.app.planning import Planning
from cloakgp.app.reader import Reader
from cloakgp.app.releases import Releases
from cloakgp.app.work import WorkQueue

PREDICT = f"/api/releases/{'0' * 16}/predict"
MIB = 2**20


class Call:
    """One request, whose body comes, and whose client leaves, when the test says so."""

    def __init__(
        self,
        world: World,
        who: str | None,
        path: str,
        size: int | None,
        address: str = "10.0.0.1",
        reads: bool = True,
    ) -> None:
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        headers.append(
            (b"transfer-encoding", b"chunked") if size is None else (b"content-length", b"%d" % size)
        )
        if who is not None:
            headers.append((b"authorization", f"Bearer {world.tokens[who]}".encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": headers,
            "client": (address, 1234),
            "server": ("127.0.0.1", 80),
        }
        self.sent: list[Any] = []
        self.asked_for = 0  # parts of the body
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._reads = asyncio.Event()
        if reads:
            self.read()
        self._task: Future[None] = asyncio.run_coroutine_threadsafe(self._ask(world.app, scope), loop())

    async def _ask(self, app: Any, scope: Any) -> None:
        async def receive() -> Any:
            self.asked_for += 1
            return await self._messages.get()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                await self._reads.wait()
            self.sent.append(message)

        await app(scope, receive, send)

    def _give(self, message: Any) -> None:
        loop().call_soon_threadsafe(self._messages.put_nowait, message)

    def body(self, content: bytes) -> Call:
        self._give({"type": "http.request", "body": content, "more_body": False})
        return self

    def leave(self) -> Call:
        self._give({"type": "http.disconnect"})
        return self

    def read(self) -> None:
        loop().call_soon_threadsafe(self._reads.set)

    def done(self) -> Call:
        self._task.result(60)
        return self

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}


def until(condition: Any) -> None:
    """Wait for it, for a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def strict(world: World, **limits: Any) -> World:
    """The same folder under stricter rules."""
    rules = Limits(**{"requests_per_second": 1e6, "burst": 10**6, **limits})
    return World(*opened(world.state.folder.path, rules), tokens=world.tokens)


@pytest.mark.parametrize(
    ("who", "path", "limit"),
    [("analyst", PREDICT, "requests_at_once"), (None, "/api/session", "strangers_at_once")],
)
def test_requests_at_once_are_limited_before_their_bodies_are_read(world, who, path, limit):
    """Of one person, and of one address where nobody is signed in."""
    few = strict(world, **{limit: 2})
    held = [Call(few, who, path, 60) for _ in range(2)]
    until(lambda: all(call.asked_for for call in held))
    third = Call(few, who, path, 60).done()
    assert (third.status, third.asked_for) == (429, 0)
    assert int(third.headers["retry-after"]) >= 1
    assert few.client().get("/api/me").status_code == 200  # somebody else's are their own
    elsewhere = Call(few, None, "/api/session", 2, address="10.0.0.2").body(b"{}").done()
    assert elsewhere.status == 422
    for call in held:
        call.leave().done()
    assert few.client("analyst").get("/api/me").status_code == 200


def test_work_that_nobody_waits_for_still_counts(world, monkeypatch):
    """Or leaving and asking again would be a way around the limit."""
    few = strict(world, requests_at_once=1)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(self: Any, *arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        raise Problem(404, "not_found", "x")

    monkeypatch.setattr(Reader, "predict", slowly)
    first = Call(few, "analyst", PREDICT, 20).body(b'{"points": [[1.0]]}')
    assert begun.wait(60)
    first.leave()
    assert Call(few, "analyst", PREDICT, 20).done().status == 429
    go_on.set()
    first.done()
    assert few.client("analyst").get("/api/me").status_code == 200


def test_one_persons_bytes_at_once_are_limited(world):
    small = strict(world, json_bytes=3000, bytes_at_once=4000)
    held = Call(small, "analyst", PREDICT, 2000)
    until(lambda: held.asked_for)
    assert Call(small, "analyst", PREDICT, 2500).done().status == 429
    unannounced = Call(small, "analyst", PREDICT, None).done()  # as large as it may be
    assert (unannounced.status, unannounced.asked_for) == (429, 0)
    assert small.client("analyst").post(PREDICT, json={"points": [[1.0]]}).status_code == 404
    held.leave().done()
    assert Call(small, "analyst", PREDICT, 2500).leave().done().status is None


def test_bytes_of_all_together_are_limited():
    counted = InFlight(100)
    assert counted.begin("a", 60, 9, 1000)
    assert not counted.begin("b", 60, 9, 1000)
    assert counted.begin("b", 0, 9, 1000)
    counted.end("a", 60)
    assert counted.begin("b", 60, 9, 1000)


def test_an_answer_that_is_not_read_still_counts(world):
    """Or a client that reads nothing could have the server hold as many answers as it likes."""
    few = strict(world, requests_at_once=1)
    held = Call(few, "analyst", PREDICT, 19, reads=False).body(b'{"points": [[1.0]]}')
    until(lambda: held.sent)
    assert Call(few, "analyst", PREDICT, 20).done().status == 429
    held.read()
    held.done()
    assert few.client("analyst").get("/api/me").status_code == 200


def test_large_answers_leave_in_pieces(released):
    world, _, release_id = released
    asked = {"points": [[float(age)] for age in range(5000)]}
    whole = world.client("analyst").post(f"/api/releases/{release_id}/predict", json=asked)
    content = whole.request.content
    call = Call(world, "analyst", f"/api/releases/{release_id}/predict", len(content)).body(content).done()
    pieces = [message["body"] for message in call.sent[1:]]
    assert max(map(len, pieces)) <= 64 * 2**10 < len(whole.content)
    assert b"".join(pieces) == whole.content
    assert [message["more_body"] for message in call.sent[1:-1]] == [True] * (len(pieces) - 1)
    assert not call.sent[-1].get("more_body", False)


def test_sign_ins_are_small_and_others_at_the_address_are_not_shut_out_by_large_ones(world):
    few = strict(world, sign_ins_per_second=0.2)  # one
    for large in [Call(few, None, "/api/session", size).done() for size in (5000, *[8 * MIB] * 20)]:
        assert (large.status, large.asked_for) == (413, 0)
    body = f'{{"token": "{world.tokens["custodian"]}"}}'.encode()
    assert Call(few, None, "/api/session", len(body)).body(body).done().status == 200
    assert Call(world, None, "/api/session", None).body(b" " * 5000).done().status == 413  # not announced


def test_sign_ins_are_limited_by_address_before_their_bodies_are_read(world):
    few = strict(world, sign_ins_per_second=0.4)  # bursts of 2
    body = f'{{"token": "{world.tokens["custodian"]}"}}'.encode()
    asked = [Call(few, None, "/api/session", len(body)).body(body).done() for _ in range(3)]
    assert [call.status for call in asked] == [200, 200, 429]
    assert asked[-1].asked_for == 0
    assert "retry-after" in asked[-1].headers
    elsewhere = Call(few, None, "/api/session", len(body), address="10.0.0.2").body(body).done()
    assert elsewhere.status == 200


@pytest.mark.parametrize("path", ["/api/preview", "/api/plans", "/api/people", "/api/data/a.csv/inputs"])
@pytest.mark.parametrize(("who", "status"), [(None, 401), ("analyst", 403)])
def test_what_is_for_custodians_is_refused_before_the_body_is_read(world, path, who, status):
    call = Call(world, who, path, 8 * MIB).done()
    assert (call.status, call.asked_for) == (status, 0)


@pytest.mark.parametrize(
    "bomb", [b"[],", b"1,", b"{},", b'"a":1,', b"[[[[", b"null,"], ids=lambda bomb: bomb.decode()
)
def test_what_is_too_much_for_predictions_is_not_even_parsed(released, monkeypatch, bomb):
    """Megabytes of brackets took seconds, in which nobody else was served, and hundreds of megabytes."""
    world, _, release_id = released
    parsed: list[int] = []
    monkeypatch.setattr(
        settings.AskPredictions, "model_validate_json", lambda body: parsed.append(len(body)), raising=False
    )
    body = b'{"points": [' + bomb * (7 * MIB // len(bomb)) + b"[1.0]]}"
    answer = world.client("analyst").post(f"/api/releases/{release_id}/predict", content=body)
    check_refused(answer, 422, "bad_input")
    assert parsed == []


def test_predictions_that_nobody_waits_for_are_not_made(released, monkeypatch):
    world, _, release_id = released
    made: list[str] = []
    monkeypatch.setattr(Reader, "predict", lambda self, name, *rest: made.append(name) or {})
    limiter = world.state.predicting

    async def change(taken: bool) -> None:
        for place in range(int(limiter.total_tokens)):
            if taken:
                limiter.acquire_on_behalf_of_nowait(place)
            else:
                limiter.release_on_behalf_of(place)

    path = f"/api/releases/{release_id}/predict"
    asyncio.run_coroutine_threadsafe(change(True), loop()).result(60)
    try:
        calls = [Call(world, "analyst", path, 19).body(b'{"points": [[1.0]]}') for _ in range(5)]
        until(lambda: limiter.statistics().tasks_waiting)
        for call in calls:
            call.leave()
        for call in calls:
            call.done()
        assert limiter.statistics().tasks_waiting == 0
    finally:
        asyncio.run_coroutine_threadsafe(change(False), loop()).result(60)
    assert made == []
    assert [call.status for call in calls] == [None] * 5


def test_nobody_queues_behind_another_persons_many_predictions(released, monkeypatch):
    """One at a time for each: an analyst who asks for many does not take all threads."""
    world, _, release_id = released
    go_on, working = threading.Event(), []

    def slowly(self: Any, *arguments: Any) -> Any:
        who = work.current().who
        working.append(who)
        if working.count(who) == len(working):  # the first person's wait
            assert go_on.wait(60)
        return {}

    monkeypatch.setattr(Reader, "predict", slowly)
    path, body = f"/api/releases/{release_id}/predict", b'{"points": [[1.0]]}'
    many = [Call(world, "analyst", path, len(body)).body(body) for _ in range(10)]
    until(lambda: working)
    Call(world, "custodian", path, len(body)).body(body).done()
    assert len(working) == 2
    go_on.set()
    for call in many:
        call.done()
    assert len(working) == 11


def test_previews_and_plans_that_nobody_waits_for_are_not_made(world, monkeypatch):
    made: list[str] = []
    for name in ("_look", "plan"):
        monkeypatch.setattr(Planning, name, lambda *_: made.append("one"))
    queue = world.state.planning._queue
    holders = [_Holder(queue, f"holder {place}") for place in range(queue._at_once)]
    asked = settings.Settings(**SETTINGS).model_dump_json()
    calls = [
        Call(world, "custodian", path, len(body)).body(body)
        for path, body in (
            ("/api/preview", asked.encode()),
            ("/api/plans", f'{{"settings": {asked}, "name": "x"}}'.encode()),
        )
    ]
    until(lambda: len(queue._waiting) == 2)
    for call in calls:
        call.leave()
    for call in calls:
        call.done()  # while all slots are still taken
    for holder in holders:
        holder.go()
    assert made == []


def test_a_release_that_was_begun_is_finished_for_nobody(world, monkeypatch):
    client = world.client()
    plan = make_plan(client)
    begun, go_on, finish = threading.Event(), threading.Event(), Releases.finish

    def slowly(self: Any, *arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return finish(self, *arguments)

    monkeypatch.setattr(Releases, "finish", slowly)
    body = b'{"dataset": "kung", "confirm": "kung", "why": "x"}'
    call = Call(world, "custodian", f"/api/plans/{plan}/release", len(body)).body(body)
    assert begun.wait(60)
    call.leave()
    go_on.set()
    call.done()
    monkeypatch.undo()
    assert len(client.get("/api/releases").json()) == 1
    assert not release(client, plan).json()["receipt"]["spent"]


class _Holder:
    """Somebody who has a slot, or waits for one, until told to go."""

    def __init__(self, queue: WorkQueue, who: str) -> None:
        self.inside, self._leave = threading.Event(), threading.Event()
        self.refused: int | None = None
        self._thread = threading.Thread(target=self._hold, args=(queue, who), daemon=True)
        self._thread.start()
        until(lambda: self.inside.is_set() or self.refused or queue._waiting)

    def _hold(self, queue: WorkQueue, who: str) -> None:
        work.begin(who)
        try:
            with queue.slot():
                self.inside.set()
                assert self._leave.wait(60)
        except Problem as problem:
            self.refused = problem.status_code

    def go(self) -> None:
        self._leave.set()
        self._thread.join(60)


def test_one_person_does_not_fill_the_slots_for_heavy_work():
    queue = WorkQueue(at_once=2, waiting=4, each=3, patience=60.0)
    many = [_Holder(queue, "one") for _ in range(3)]
    assert sum(holder.inside.is_set() for holder in many) == 1  # the other slot is somebody else's
    until(lambda: len(queue._waiting) == 2)
    refused = _Holder(queue, "one")
    until(lambda: refused.refused)
    assert refused.refused == 429
    other = _Holder(queue, "other")
    assert other.inside.wait(60)
    for holder in [other, *many]:
        holder._leave.set()
    for holder in [other, *many]:
        holder.go()
    assert all(holder.inside.is_set() for holder in many)
    assert queue._working.total() == len(queue._waiting) == 0


def test_a_flood_of_refusals_does_not_flood_the_log(world, caplog):
    few = strict(world, requests_per_second=0.001, burst=1)
    with caplog.at_level(logging.INFO, logger="cloakgp.app"):
        client = few.client("analyst")
        assert [client.get("/api/me").status_code for _ in range(100)].count(429) == 99
    assert 1 <= sum(" 429 " in record.getMessage() for record in caplog.records) < 60
