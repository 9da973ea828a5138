"""Whole rows over the API: nothing of the table but its header and its size is told, by anybody, anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from app_helpers import (
    LEARNED,
    World,
    check_refused,
    keep,
    make_world,
    release,
    released_of,
    secret_heights,
    spends,
    table,
)
from test_api_contract import AGES, IDS, ROWS

from cloakgp.app.limits import Most
from cloakgp.workflow import tables

BOX = {"age": {"low": 0.0, "high": 90.0, "cells": 18}}
PUBLIC = {**LEARNED, "data": "visits.csv", "output": "visits"}
SETTINGS: dict[str, Any] = {**PUBLIC, "protect": "rows", "box": BOX}
BOTH = {**SETTINGS, "people": "patient", "n_people": ROWS // 3, "max_rows": 2}
BUDGETS = {"kung": SETTINGS, "clan": BOTH}


def put_visits(world: World, name: str = "visits.csv", **changes: Any) -> None:
    sex = ["fm"[row % 2] for row in range(ROWS)]
    body = table({"patient": IDS, "age": AGES, "sex": sex, "visits": secret_heights(ROWS), **changes})
    world.client().delete(f"/api/data/{name}")
    assert world.client().put(f"/api/data/{name}", content=body).status_code == 201


def make_visits(path: Any) -> World:
    world = make_world(path)
    put_visits(world)
    world.client().post("/api/ledger/datasets", json={"name": "clan", "epsilon": 3.0, "delta": 0.01})
    return world


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Both kinds."""
    world = make_visits(tmp_path_factory.mktemp("rows") / "data")
    return world, {name: released_of(world.client(), each, name) for name, each in BUDGETS.items()}


@pytest.fixture
def visits(tmp_path):
    return make_visits(tmp_path / "data")


@pytest.mark.parametrize("dataset", BUDGETS)
def test_before_the_release_no_cell_is_read(visits, monkeypatch, dataset):
    for name in ("read_ids", "read_csv", "open_parquet"):
        monkeypatch.setattr(tables, name, lambda *_, **__: pytest.fail("a cell was read"))
    client, settings = visits.client(), BUDGETS[dataset]
    assert client.post("/api/preview", json=settings).status_code == 200
    curve = {"settings": settings, "epsilons": [1.0]}
    assert client.post("/api/preview/curve", json=curve).status_code == 200
    keep(client, settings)


def test_a_table_with_too_many_rows_is_refused(visits, monkeypatch):
    """By its size where that is public; with people, by how many rows may count, whatever the table has."""
    client = visits.client()
    monkeypatch.setattr(Most, "rows", ROWS - 1)
    for path, asked in (("preview", SETTINGS), ("plans", {"settings": SETTINGS, "name": "large"})):
        check_refused(client.post(f"/api/{path}", json=asked), 422, "bad_input", f"at most {ROWS - 1}")
    assert client.post("/api/preview", json=BOTH).status_code == 200  # 30 of 45 rows
    refused = client.post("/api/preview", json={**BOTH, "max_rows": 3})
    assert (refused.status_code, str(ROWS) in refused.text) == (422, False)


def test_what_was_planned_as_private_is_not_shown_as_public(released):
    client = released[0].client()
    for path, asked in (
        ("data/visits.csv/inputs", {"inputs": ["age"]}),
        ("data/visits.csv/inputs", {"inputs": ["sex", "age"]}),
        ("data/visits.csv/people", {"people": "patient"}),
        ("data/visits.csv/people", {"people": "age"}),
        ("preview", PUBLIC),
        ("plans", {"settings": PUBLIC, "name": "open"}),
    ):
        check_refused(client.post(f"/api/{path}", json=asked), 422, "bad_input", "is private")


def test_how_many_rows_people_have_is_not_told_once_it_is_private(visits):
    client = visits.client()
    for settings, told in ((SETTINGS, ROWS), (BOTH, None)):  # of whole rows their number is public
        keep(client, settings)
        assert {each["name"]: each["rows"] for each in client.get("/api/data").json()}["visits.csv"] == told


@pytest.mark.parametrize("dataset", BUDGETS)
def test_a_release_has_a_density_but_no_inputs(released, dataset):
    world, made = released
    assert any("is public, and so are the box" in words for words in made[dataset]["limits"])
    shown = world.client("analyst").get(f"/api/releases/{made[dataset]['id']}").json()
    assert shown["inputs_sample"] == []
    assert len(shown["density"]["rows"]) == len(shown["density"]["std"]) == 18
    assert shown["density"]["points"][0] == [2.5]
    assert [stage["width"] is None for stage in shown["stages"]][:2] == [True, False]
    assert len(shown["denoised"]) == 8


@pytest.mark.parametrize(
    ("dataset", "changes", "says"),
    [
        ("kung", {"age": ["old", *AGES[1:]]}, "the table cannot be used"),
        ("kung", {"age": ["", *AGES[1:]]}, "the table cannot be used"),
        ("kung", {"visits": ["", *secret_heights(ROWS)[1:]]}, "the table cannot be used"),
        ("clan", {"patient": ["", *IDS[1:]]}, "the table cannot be used"),
        ("clan", {"patient": [*IDS[:-1], "another"]}, "the plan is for 15 people"),  # which is public
    ],
)
def test_whatever_is_wrong_with_private_rows_is_one_message(visits, dataset, changes, says):
    client = visits.client()
    plan = keep(client, BUDGETS[dataset])
    put_visits(visits, **changes)
    answer = release(client, plan, dataset)
    check_refused(answer, 422, "unusable_output")
    assert answer.json()["error"].startswith(says)
    assert spends(visits) == 0
