"""No value of the output column leaves: in no answer, no log, no file but the table itself and noise."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from app_helpers import (
    SETTINGS,
    World,
    ages,
    check_refused,
    make_plan,
    release,
    secret_heights,
    table,
)
from asgi_client import Client

from cloakgp.app import routes_people
from cloakgp.ledger import Ledger
from cloakgp.workflow.private_step import UNUSABLE


class ListeningSocket(Client):
    """Keeps all that comes back."""

    heard: list[str]

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = super().request(method, path, **options)
        self.__dict__.setdefault("heard", []).append(
            f"{answer.headers} {answer.content.decode(errors='replace')}"
        )
        return answer


def listen(world: World) -> ListeningSocket:
    return ListeningSocket(world.app, {"Authorization": f"Bearer {world.tokens['custodian']}"})


def check_silent(client: ListeningSocket, logged: str, secrets: list[str]) -> None:
    for secret in secrets:
        own = re.compile(rf"(?<!\d){re.escape(secret)}")  # coordinates of pictures may end like one
        for heard in (*client.heard, logged):
            assert secret not in heard or own.search(heard) is None


def as_parquet(columns: dict[str, Any]) -> bytes:
    import io

    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


OUTCOME_AMONG_INPUTS: list[dict[str, Any]] = [
    {"inputs": ["height"]},
    {"inputs": ["age", "height"], "kernel": None, "noise": None},
    {"people": "height", "protect": "people"},
]


@pytest.mark.parametrize("changes", OUTCOME_AMONG_INPUTS)
def test_the_outcome_is_no_input(world, caplog, changes):
    """Neither of a plan nor of a preview, of a known model or a learned one; and no digit of it is told."""
    caplog.set_level(logging.DEBUG)
    client, settings = listen(world), {**SETTINGS, **changes}
    for path, asked in (("preview", settings), ("plans", {"settings": settings, "name": "growth"})):
        check_refused(client.post(f"/api/{path}", json=asked), 422, "bad_input", "private")
    check_silent(client, caplog.text, secret_heights())


SPOILED: list[Any] = ["SECRET-word", "", "nan", "inf", "1e400", "NULL"]
NO_NUMBERS = [[140.5], {"a": 140.5}, datetime(1940, 5, 1), timedelta(140.5), time(14, 5), None]


@pytest.mark.parametrize(
    ("name", "heights"),
    [
        *[
            (name, [*secret_heights()[:3], word, *secret_heights()[4:]])
            for name in ("odd.csv", "odd.parquet")
            for word in SPOILED
        ],
        *[("odd.parquet", [each] * 40) for each in ("SECRET-word", *NO_NUMBERS)],
    ],
)
def test_whatever_is_wrong_with_the_output_there_is_one_message(world, caplog, name, heights):
    """Text, missing, infinite, no numbers at all: the same words, nothing spent, nothing left behind."""
    caplog.set_level(logging.DEBUG)
    client, columns = listen(world), {"age": ages(), "height": heights}
    body = table(columns) if name.endswith("csv") else as_parquet(columns)
    assert client.put(f"/api/data/{name}", content=body).status_code == 201
    answer = release(client, make_plan(client, data=name))
    assert (answer.status_code, answer.json()) == (422, {"error": UNUSABLE, "code": "unusable_output"})
    check_silent(client, caplog.text, ["SECRET", *(value[:9] for value in secret_heights())])
    assert len(Ledger(world.state.ledger_url).entries()) == 2
    assert list(world.state.folder.releases.iterdir()) == []
    assert list(world.state.folder.working.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "missing"),
    [*((value, "error") for value in ("1e308", "-1e308", "5e-324", "-0.0", "170.0000001")), ("", "midpoint")],
)
def test_outputs_of_any_size_are_moved_to_the_bounds_without_a_word(world, value, missing):
    """And missing ones to their middle, if that is asked for."""
    client = world.client()
    columns = {"age": ages(), "height": [*secret_heights()[1:], value]}
    client.put("/api/data/size.csv", content=table(columns))
    answer = release(client, make_plan(client, data="size.csv"), missing=missing)
    assert answer.status_code == 200
    assert not value or value not in answer.text


@pytest.mark.parametrize(
    "contents",
    [
        b"12.5,140.1234567\n13.5,141.1234567\n",  # no header: its first line is somebody
        b"12.5;140.1234567\n13.5;141.1234567\n",
        b"age,height\n1,140.1234567\n2,3,140.1234567\n",  # a ragged row
        b'age,height\n1,"140.1234567\n2,3\n',
        b"\xff\xfe,140.1234567\n1,2\n",
        b"",
        b"\n\n",
        b"PK\x03\x04 140.1234567",
        b"age,height\n1,\xff140.1234567\n",
    ],
)
def test_a_table_that_cannot_be_read_is_not_quoted(world, caplog, contents):
    caplog.set_level(logging.DEBUG)
    client = listen(world)
    for name in ("odd.csv", "odd.parquet"):
        answer = client.put(f"/api/data/{name}", content=contents)
        if answer.status_code != 201:  # what nobody reads may be no UTF-8
            check_refused(answer, 422, "bad_input")
    client.get("/api/data")
    check_silent(client, caplog.text, ["140.123", "141.123"])
    assert list(world.state.folder.uploads.glob(".*")) == []


def test_an_output_cannot_be_made_an_input_later(world, caplog):
    """A slip of the mouse must not show the private column's range."""
    client = listen(world)
    make_plan(client)
    swapped = {**SETTINGS, "inputs": ["height"], "output": "age"}
    for path, body in (
        ("/api/data/heights.csv/inputs", {"inputs": ["height"]}),
        ("/api/data/heights.csv/inputs", {"inputs": ["age", "height"]}),
        ("/api/data/heights.csv/inputs", {"inputs": ["age"], "output": "age"}),
        ("/api/preview", swapped),
        ("/api/preview/curve", {"settings": swapped, "epsilons": [1.0]}),
        ("/api/plans", {"settings": swapped, "name": "swapped"}),
    ):
        check_refused(client.post(path, json=body), 422, "bad_input")
    check_silent(client, caplog.text, [value[:9] for value in secret_heights()])


def test_the_output_is_not_read_before_the_release(world, monkeypatch):
    """No preview, plan, quote or refusal asks for the private column."""
    from cloakgp.private.outcomes import PrivateColumn

    asked = []
    read = PrivateColumn.__array__
    monkeypatch.setattr(
        PrivateColumn, "__array__", lambda self, *a, **k: asked.append(1) or read(self, *a, **k)
    )
    client = world.client()
    client.post("/api/preview", json=SETTINGS)
    for plan in (make_plan(client), make_plan(client, epsilon=3.0)):
        client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"})
    assert release(client, plan).json()["code"] == "budget_exceeded"
    assert release(client, make_plan(client), confirm="no").status_code == 422
    assert asked == []
    assert release(client, make_plan(client)).status_code == 200
    assert asked == [1]
    assert release(client, make_plan(client)).json()["receipt"]["spent"] is False
    assert asked == [1]


@pytest.mark.parametrize("error", [RuntimeError, KeyError, AssertionError, ValueError, RecursionError])
def test_an_error_that_nobody_expected_is_not_quoted(world, monkeypatch, caplog, error):
    """A fixed answer without a traceback; the log has its type and place."""
    caplog.set_level(logging.DEBUG)
    client = listen(world)

    def fail(*arguments: Any, **options: Any) -> None:
        raise error("SECRET 140.1234567")

    monkeypatch.setattr(routes_people, "_me", fail)
    check_refused(client.get("/api/me"), 500, "failed")
    assert error.__name__ in caplog.text
    check_silent(client, caplog.text, ["SECRET", "140.12", "Traceback"])


def test_an_unexpected_error_in_the_private_step_is_not_quoted(world, monkeypatch, caplog):
    from cloakgp.private import room

    caplog.set_level(logging.DEBUG)
    client = listen(world)
    plan = make_plan(client)

    def fail(exact: Any, sigma: int) -> None:
        raise RuntimeError(f"SECRET {exact.tolist()}")

    monkeypatch.setattr(room, "add_noise", fail)
    answer = release(client, plan)
    assert answer.status_code == 500
    check_silent(client, caplog.text, ["SECRET"])
    monkeypatch.undo()
    assert release(client, plan).json()["receipt"]["spent"]


def test_links_and_tokens_are_not_logged(world, caplog):
    caplog.set_level(logging.DEBUG)
    token = world.state.sessions.new_link()
    browser = Client(world.app)
    browser.get(f"/enter/{token}")
    browser.get(f"/enter/{token}?again={token}")
    browser.get(f"/api/me?token={world.tokens['analyst']}")
    browser.post("/api/session", json={"token": world.tokens["analyst"]})
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name == "cloakgp.app")
    assert "GET /enter/... 303" in ours
    for secret in (token, *world.tokens.values()):
        assert secret not in ours


def test_all_files_are_the_owners_alone(world):
    client = world.client()
    release(client, make_plan(client))
    for path in [world.state.folder.path, *world.state.folder.path.rglob("*")]:
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_a_kept_plan_holds_no_matrix(world):
    """Only settings, digests and the certificate; what differs from them is not released."""
    client = world.client()
    plan = make_plan(client)
    (kept,) = Path(world.state.folder.plans).iterdir()
    assert kept.suffix == ".json"
    assert "matrix" not in json.loads(kept.read_text())
    world.state.plans.get(plan)["settings"]["epsilon"] = 50.0  # as if somebody had edited the file
    answer = release(client, plan)
    assert answer.status_code == 409, answer.text
    assert not [entry for entry in client.get("/api/ledger").json()["entries"] if entry["kind"] == "spent"]
