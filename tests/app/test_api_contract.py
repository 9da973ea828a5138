"""What holds of every kind of release: from a table to a report, nothing private is told on the way."""

from __future__ import annotations

import html
import io
import logging
import struct
from dataclasses import dataclass
from typing import Any

import pytest
from app_helpers import (
    LEARNED as HEIGHTS,
)
from app_helpers import (
    World,
    ages,
    check_refused,
    keep,
    make_world,
    redone,
    release,
    secret_heights,
    spends,
    table,
)
from test_api_privacy import check_silent, listen

import cloakgp
from cloakgp.app import models

ROWS = 45
AGES = [f"{age + 0.0123456 * (row + 1):.7f}" for row, age in enumerate(ages(ROWS))]
IDS = [f"patient-{7919 * (row // 3 + 11)}" for row in range(ROWS)]
COLUMNS = {
    "patient": IDS,
    "age": AGES,
    "visits": secret_heights(ROWS),
    "ill": ["no", "no", "ja"] * 15,
    "mode": ["car", "bus", "car", "bus", "train"] * 9,
}
LEARNED: dict[str, Any] = {**HEIGHTS, "data": "visits.csv", "output": "visits", "delta": 0.001}
KNOWN = {**LEARNED, "kernel": "EQ(20, variance=625)", "noise": 196.0}
PEOPLE = {"protect": "people", "people": "patient"}
BOX = {"protect": "rows", "box": {"age": {"low": 0.0, "high": 90.0, "cells": 18}}}
PEOPLES_ROWS = {**BOX, "people": "patient", "n_people": ROWS // 3, "max_rows": 2}
EXACT = {"ids": "exact"}
BEHIND = {**LEARNED, "kernel": "EQ(20, variance=0.5) + Constant(2)"}
CHANCE = {name: value for name, value in BEHIND.items() if name != "bounds"}
MODES = {"output": "mode", "outcome": "classes", "classes": ["car", "bus", "train"]}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "known": (KNOWN, "one row"),
    "inducing": ({**KNOWN, "inducing": 12}, "one row"),
    "function": ({**KNOWN, "kind": "function"}, "one row"),
    "learned": (LEARNED, "one row"),
    "people": ({**KNOWN, **PEOPLE}, "one person"),
    "people, exact ids": ({**KNOWN, **PEOPLE, **EXACT}, "one person"),
    "count": ({**BEHIND, "outcome": "count", "noise": 2.0}, "one row"),
    "yes/no": ({**CHANCE, "output": "ill", "outcome": "yes/no", "classes": ["no", "ja"]}, "one row"),
    "classes": ({**CHANCE, **MODES}, "one row"),
    "rows": ({**LEARNED, **BOX}, "one whole row"),
    "rows, known": ({**KNOWN, **BOX}, "one whole row"),
    "people's rows": ({**LEARNED, **PEOPLES_ROWS}, "one person's whole rows"),
    "people's rows, exact ids": ({**LEARNED, **PEOPLES_ROWS, **EXACT}, "one person's whole rows"),
}


@dataclass
class Walk:
    """All that a custodian asked for on the way to a release and of it, and what came back."""

    world: World
    settings: dict[str, Any]
    unit: str
    heard: Any
    logged: str
    plan: str
    preview: dict[str, Any]
    kept: dict[str, Any]
    quote: dict[str, Any]
    answer: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.answer["release"]["id"])

    @property
    def hides_inputs(self) -> bool:
        return self.settings.get("protect") == "rows"

    def get(self, what: str = "", who: str = "analyst") -> Any:
        return self.world.client(who).get(f"/api/releases/{self.id}{what}")


@pytest.fixture(scope="module", params=KINDS)
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    settings, unit = KINDS[request.param]
    world = make_world(tmp_path_factory.mktemp("walk") / "data")
    client, log = listen(world), io.StringIO()
    logging.getLogger().addHandler(handler := logging.StreamHandler(log))
    client.put("/api/data/visits.csv", content=table(COLUMNS))
    terms = {"unit": unit, **({"ids": "exact"} if "ids" in settings else {})}
    budget = {"name": "clan", "epsilon": 3.0, "delta": 0.01, **terms}
    assert client.post("/api/ledger/datasets", json=budget).status_code == 201
    client.get("/api/data")
    preview = client.post("/api/preview", json=settings).json()
    client.post("/api/preview/curve", json={"settings": settings, "epsilons": [0.3, 1.0]})
    plan = keep(client, settings)
    kept = client.get(f"/api/plans/{plan}").json()
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "clan"}).json()
    answer = release(client, plan, dataset="clan", confirm="clan")
    assert answer.status_code == 200, answer.text
    one = f"/api/releases/{answer.json()['release']['id']}"
    for what in ("", "/file", "/csv", "/picture/svg", "/script", "/verify"):
        assert client.get(one + what).status_code == 200, what
    assert client.post(f"{one}/predict", json={"points": [[12.0]]}).status_code == 200
    client.post("/api/data/visits.csv/inputs", json={"inputs": ["age"]})
    client.post("/api/data/visits.csv/people", json={"people": "patient"})
    client.get("/api/ledger")
    logging.getLogger().removeHandler(handler)
    walked = (world, settings, unit, client, log.getvalue(), plan, preview, kept, quote, answer.json())
    return Walk(*walked)


def test_what_was_previewed_is_planned_quoted_and_released(walk: Walk) -> None:
    assert walk.kept["certificate"] == walk.preview["certificate"]
    for name in ("summary", "error_summary"):
        assert walk.kept[name] == pytest.approx(walk.preview[name])
    assert (walk.quote["fits"], walk.quote["known"]) == (True, None)
    receipt = walk.answer["receipt"]
    assert receipt["spent"]
    assert receipt["left_release"] == walk.quote["left_after"]["release"]
    assert receipt["left_release"] < walk.quote["left_before"]["release"]
    made = walk.get().json()
    assert made["settings"] == walk.kept["settings"]
    assert made["receipt"]["head"] == receipt["head"]
    if made["kind"] == "function":
        assert len(made["points"]) == 201
    else:
        assert made["points"] == walk.preview["points"]
    lines = walk.get("/csv").text.splitlines()
    assert (lines[0].split(",")[0], len(lines)) == ("age", 1 + len(made["points"]))


def test_no_more_is_told_than_the_description_says(walk: Walk) -> None:
    """Not whose question it was, nor what its entry in the ledger is called."""
    client, told = walk.world.client("analyst"), models.Release.model_fields.keys()
    (listed,) = client.get("/api/releases").json()
    assert listed.keys() == walk.get().json().keys() == walk.answer["release"].keys() == told
    (plan,) = client.get("/api/plans").json()
    assert plan.keys() == walk.kept.keys() == models.Plan.model_fields.keys()
    assert walk.quote.keys() == models.Quote.model_fields.keys()


def test_nothing_private_is_told(walk: Walk) -> None:
    """Neither as text nor as eight bytes, in what is sent, logged, or written outside of uploads/."""
    numbers = [*secret_heights(ROWS), *(AGES if walk.hides_inputs else ())]
    secrets = [value[:9] for value in numbers] + (sorted(set(IDS)) if walk.hides_inputs else [])
    check_silent(walk.heard, walk.logged, secrets)
    folder = walk.world.state.folder
    for path in folder.path.rglob("*"):
        if path.is_file() and folder.uploads not in path.parents:
            contents = path.read_bytes()
            assert not any(secret.encode() in contents for secret in secrets), path
            assert not any(struct.pack("<d", float(value)) in contents for value in numbers), path


@pytest.mark.usefixtures("drawn_once")
def test_the_unit_is_named_everywhere_and_the_promise_verified(walk: Walk) -> None:
    verified = walk.get("/verify").json()
    claimed = {"ids", "max_rows"} & walk.settings.keys()  # how ids were told apart, the file does not show
    assert (verified["ok"], verified["complete"]) == (True, not claimed)
    assert walk.answer["release"]["certificate"]["unit"] == walk.unit
    assert walk.answer["release"]["certificate"].get("ids", "alike") == walk.settings.get("ids", "alike")
    report = html.unescape(walk.get("/report").text)
    assert walk.unit.removeprefix("one ") in report
    assert not any(value[:9] in report for value in secret_heights(ROWS))
    kept = cloakgp.load(walk.world.state.folder.release(walk.id))
    assert kept.plan.unit == walk.unit
    book = walk.world.client().get("/api/ledger").json()
    assert book["verified"]
    assert {each["name"]: each["unit"] for each in book["datasets"]}["clan"] == walk.unit


def test_the_script_makes_the_very_release_for_nothing(walk: Walk, tmp_path: Any) -> None:
    assert redone(walk.world, walk.id, tmp_path) == walk.world.state.folder.release(walk.id).read_bytes()
    assert walk.get("/file").content == (tmp_path / f"{walk.id}.cloak").read_bytes()
    assert not (walk.hides_inputs and "read_columns" in walk.get("/script", "custodian").text)
    assert spends(walk.world) == 1


def test_asked_again_also_after_a_restart_the_answer_is_the_same_and_free(walk: Walk) -> None:
    for world in (walk.world, walk.world.restarted()):
        again = release(world.client(), walk.plan, dataset="clan", confirm="clan").json()
        assert again["release"] == walk.answer["release"]
        assert not again["receipt"]["spent"]
        quote = world.client().post(f"/api/plans/{walk.plan}/quote", json={"dataset": "clan"}).json()
        assert quote["known"] == walk.id
        asked = {"points": [[12.0], [70.0]], "level": 0.9}
        one, two = (
            each.client("analyst").post(f"/api/releases/{walk.id}/predict", json=asked).json()
            for each in (walk.world, world)
        )
        assert one == two
        for told in one["by_class"] or [{**one, "probability": one["mean"]}]:
            low, middle, high = (told[name] for name in ("lower", "probability", "upper"))
            assert all(a < b < c for a, b, c in zip(low, middle, high, strict=True))
    assert spends(walk.world) == 1


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("known", {"age": AGES[::-1]}),
        ("learned", {"age": AGES[::-1]}),
        ("people", {"patient": [IDS[-1], *IDS[:-1]]}),
        ("rows", {name: values[1:] for name, values in COLUMNS.items()}),
    ],
)
def test_a_table_that_is_not_as_it_was_planned_is_another_question(
    world: World, kind: str, changes: dict[str, Any]
) -> None:
    client, (settings, _) = world.client(), KINDS[kind]
    client.put("/api/data/visits.csv", content=table(COLUMNS))
    first = keep(client, settings)
    assert keep(client, settings) == first
    client.delete("/api/data/visits.csv")
    assert release(client, first).json()["code"] == "not_found"
    client.put("/api/data/visits.csv", content=table({**COLUMNS, **changes}))
    assert keep(client, settings) != first
    check_refused(release(client, first), 409, "conflict", "is not as it was when this was planned")
    assert spends(world) == 0


def test_a_table_that_is_replaced_during_a_release_is_not_the_one_that_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its outcomes nor its inputs: both are those of the table that was there at the beginning."""
    client = world.client()
    client.put("/api/data/visits.csv", content=table(COLUMNS))
    plan, make_again = keep(client, KNOWN), world.state.plans.make_again
    other = table({**COLUMNS, "age": AGES[::-1], "visits": ["no number"] * ROWS})

    def replaced(*asked: Any) -> Any:
        client.delete("/api/data/visits.csv")
        assert client.put("/api/data/visits.csv", content=other).status_code == 201
        return make_again(*asked)

    monkeypatch.setattr(world.state.plans, "make_again", replaced)
    assert release(client, plan).status_code == 200
    monkeypatch.undo()
    check_refused(release(client, plan, number=2), 409, "conflict")
    assert keep(client, KNOWN) != plan
