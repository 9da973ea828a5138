"""A data folder with a table, people of both roles, and clients that act in their names."""

from __future__ import annotations

import contextlib
import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from asgi_client import Client
from fastapi import FastAPI

from cloakgp.app import Limits, State, create_app
from cloakgp.release.plan import Plan

SETTINGS: dict[str, Any] = {
    "data": "heights.csv",
    "inputs": ["age"],
    "output": "height",
    "bounds": [50.0, 170.0],
    "kernel": "EQ(20, variance=625)",
    "noise": 196.0,
    "mean": None,
    "at": "grid:12",
    "epsilon": 0.5,
    "delta": 0.01,
    "design": "mse",
    "kind": "predictions",
}
LEARNED = {name: SETTINGS[name] for name in ("data", "inputs", "output", "bounds", "epsilon", "delta")} | {
    "at": "grid:8"
}
LOOSE = Limits(
    requests_per_second=1e6,
    burst=10**6,
    failures_per_minute=1e6,
    sign_ins_per_second=1e6,
    requests_at_once=10**6,
)


def table(columns: dict[str, Any]) -> bytes:
    """A CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue().encode()


def secret_heights(n: int = 40) -> list[str]:
    """Outcomes that nobody could come by: each with nine digits that are searched for later."""
    return [f"{value:.7f}" for value in np.random.default_rng(11).uniform(100.0, 160.0, n)]


def ages(n: int = 40) -> list[float]:
    return np.random.default_rng(5).uniform(0.0, 80.0, n).round(1).tolist()


@dataclass
class World:
    """One server's state, and who is there."""

    state: State
    app: FastAPI
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self, who: str | None = "custodian") -> Client:
        headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
        return Client(self.app, headers)

    def restarted(self) -> World:
        return World(*opened(self.state.folder.path), tokens=self.tokens)


def opened(path: Path, limits: Limits = LOOSE) -> tuple[State, FastAPI]:
    state = State(path, limits=limits)
    return state, create_app(state)


def make_world(path: Path, limits: Limits = LOOSE) -> World:
    """A table heights.csv, a budget "kung" of (1, 0.01), and people."""
    world = World(*opened(path, limits))
    people = world.state.accounts
    for name, role, days in (
        ("custodian", "custodian", 10),
        ("analyst", "analyst", 10),
        ("expired", "custodian", -1),
        ("revoked", "custodian", 10),
    ):
        person, world.tokens[name] = people.add(name, role, days)
        if name == "revoked":
            people.revoke(person.id)
    client = world.client()
    body = table({"age": ages(), "height": secret_heights()})
    assert client.put("/api/data/heights.csv", content=body).status_code == 201
    made = client.post("/api/ledger/datasets", json={"name": "kung", "epsilon": 1.0, "delta": 0.01})
    assert made.status_code == 201, made.text
    return world


def keep(client: Client, settings: dict[str, Any], **changes: Any) -> str:
    """A plan's id."""
    made = client.post("/api/plans", json={"settings": {**settings, **changes}, "name": "growth"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["id"])


def make_plan(client: Client, **changes: Any) -> str:
    return keep(client, SETTINGS, **changes)


def redone(world: World, release_id: str, folder: Path) -> bytes:
    """The file that a custodian's script makes of a release, run in a folder."""
    text = world.client().get(f"/api/releases/{release_id}/script").text
    text = text.replace("PATH/TO/ledger.db", str(world.state.folder.path / "ledger.db"))
    text = text.replace("PATH/TO/", f"{world.state.folder.uploads}/")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "script", "exec"), {})
    return (folder / f"{release_id}.cloak").read_bytes()


def spends(world: World) -> int:
    """How often something was paid for; the ledger must be whole."""
    book = world.client().get("/api/ledger").json()
    assert book["verified"], book["problem"]
    return sum(entry["kind"] == "spent" for entry in book["entries"])


def release(client: Client, plan: str, dataset: str = "kung", **changes: Any) -> Any:
    asked = {"dataset": dataset, "confirm": dataset, "why": "a test", **changes}
    return client.post(f"/api/plans/{plan}/release", json=asked)


def released_of(
    client: Client, settings: dict[str, Any], dataset: str = "kung", **asked: Any
) -> dict[str, Any]:
    """A release of these settings, with its numbers."""
    answer = release(client, keep(client, settings), dataset, **asked)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = client.get(f"/api/releases/{answer.json()['release']['id']}").json()
    return made


class Stop:
    """Lets a release answer some stages, and then fail as if its column was unusable. Counts stages."""

    def __init__(self, after: int | None = None, words: str = "y is no more") -> None:
        self.calls, self._after, self._words = 0, after, words

    def __enter__(self) -> Stop:
        self._measure = Plan._measure

        def stage(*arguments: Any) -> Any:
            if self.calls == self._after:
                raise ValueError(self._words)
            self.calls += 1
            return self._measure(*arguments)

        Plan._measure = stage  # type: ignore[method-assign]
        return self

    def __exit__(self, *raised: Any) -> None:
        Plan._measure = self._measure  # type: ignore[method-assign]


def check_refused(answer: Any, status: int, code: str, *said: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    for words in said:
        assert words in answer.json()["error"]
