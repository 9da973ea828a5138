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

from cloakgp.app import Limits, State, create_app, open_state

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
    state = open_state(path, limits=limits)
    return state, create_app(state)


def make_world(path: Path, limits: Limits = LOOSE) -> World:
    """A table heights.csv, a budget "kung" of (1, 0.01), and people."""
    world = World(*opened(path, limits))
    people = world.state.people
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


def make_plan(client: Client, **changes: Any) -> str:
    made = client.post("/api/plans", json={"settings": {**SETTINGS, **changes}, "name": "growth"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["id"])


def redone(world: World, release_id: str, folder: Path) -> bytes:
    """The file that a custodian's script makes of a release, run in a folder."""
    text = world.client().get(f"/api/releases/{release_id}/script").text
    text = text.replace("PATH/TO/ledger.db", str(world.state.folder.path / "ledger.db"))
    text = text.replace("PATH/TO/", f"{world.state.folder.uploads}/")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "script", "exec"), {})
    return (folder / f"{release_id}.cloak").read_bytes()


def spends(world: World) -> int:
    """How often something was paid for."""
    return sum(entry["kind"] == "spent" for entry in world.client().get("/api/ledger").json()["entries"])


def release(client: Client, plan: str, **changes: Any) -> Any:
    asked = {"dataset": "kung", "confirm": "kung", "why": "a test", **changes}
    return client.post(f"/api/plans/{plan}/release", json=asked)
