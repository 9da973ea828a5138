"""Whole rows over the API: nothing of the table but its header and its size is told, by anybody, anywhere."""

from __future__ import annotations

import html
import itertools
import logging
import struct
from typing import Any

import pytest
from app_helpers import World, ages, make_world, redone, release, secret_heights, spends, table
from test_api_privacy import ListeningSocket, check_silent, listen

import cloakgp
from cloakgp.app import limits
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.workflow import tables

ROWS = 45
AGES = [f"{age + 0.0123456 * (row + 1):.7f}" for row, age in enumerate(ages(ROWS))]
IDS = [f"patient-{7919 * (row // 3 + 11)}" for row in range(ROWS)]
SETTINGS: dict[str, Any] = {
    "data": "visits.csv",
    "inputs": ["age"],
    "output": "visits",
    "bounds": [50.0, 170.0],
    "at": "grid:8",
    "epsilon": 0.5,
    "delta": 0.01,
    "protect": "rows",
    "box": {"age": {"low": 0.0, "high": 90.0, "cells": 18}},
}
BOTH = {**SETTINGS, "people": "patient", "n_people": ROWS // 3, "max_rows": 2}
BUDGETS = {"kung": SETTINGS, "clan": BOTH}


def visits_table(**changes: Any) -> bytes:
    sex = ["fm"[row % 2] for row in range(ROWS)]
    columns = {"patient": IDS, "age": AGES, "sex": sex, "visits": secret_heights(ROWS)}
    return table({**columns, **changes})


def make_visits(path: Any) -> World:
    world = make_world(path)
    client = world.client()
    assert client.put("/api/data/visits.csv", content=visits_table()).status_code == 201
    client.post("/api/ledger/datasets", json={"name": "clan", "epsilon": 3.0, "delta": 0.01})
    return world


def plan_of(client: Any, settings: dict[str, Any]) -> str:
    made = client.post("/api/plans", json={"settings": settings, "name": "visits by age"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["id"])


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Both kinds, with all that was heard of them."""
    world = make_visits(tmp_path_factory.mktemp("rows") / "data")
    client = listen(world)
    made = {}
    for name, settings in BUDGETS.items():
        answer = release(client, plan_of(client, settings), dataset=name, confirm=name)
        assert answer.status_code == 200, answer.text
        made[name] = answer.json()["release"]
    return world, client, made


@pytest.fixture
def visits(tmp_path):
    return make_visits(tmp_path / "data")


def whole_path(client: ListeningSocket, settings: dict[str, Any], dataset: str) -> None:
    """All that a custodian can ask on the way to a release, and of it."""
    client.get("/api/data")
    client.post("/api/preview", json=settings)
    client.post("/api/preview/curve", json={"settings": settings, "epsilons": [0.3, 1.0]})
    plan = plan_of(client, settings)
    client.get(f"/api/plans/{plan}")
    client.post(f"/api/plans/{plan}/quote", json={"dataset": dataset})
    made = release(client, plan, dataset=dataset, confirm=dataset)
    assert made.status_code == 200, made.text
    one = f"/api/releases/{made.json()['release']['id']}"
    for what in ("", "/file", "/csv", "/report", "/script", "/notebook", "/verify"):
        assert client.get(one + what).status_code == 200
    client.post(f"{one}/predict", json={"points": [[12.0]]})
    client.post("/api/data/visits.csv/inputs", json={"inputs": ["age"]})
    client.post("/api/data/visits.csv/people", json={"people": "patient"})
    client.get("/api/ledger")


@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize("dataset", BUDGETS)
def test_a_whole_path_tells_nothing_of_the_rows(visits, caplog, dataset):
    """Neither as text nor as eight bytes, in what is sent, logged, or written outside of uploads/."""
    caplog.set_level(logging.DEBUG)
    client = listen(visits)
    whole_path(client, BUDGETS[dataset], dataset)
    secret = [value[:9] for value in (*secret_heights(ROWS), *AGES)] + sorted(set(IDS))
    check_silent(client, caplog.text, secret)
    folder = visits.state.folder
    for path in folder.path.rglob("*"):
        if path.is_file() and folder.uploads not in path.parents:
            contents = path.read_bytes()
            for value in secret:
                assert value.encode() not in contents, path
            for value in (*secret_heights(ROWS), *AGES):
                assert struct.pack("<d", float(value)) not in contents, path


@pytest.mark.parametrize("dataset", BUDGETS)
def test_before_the_release_no_cell_is_read(visits, monkeypatch, dataset):
    def read(*asked: Any, **more: Any) -> Any:
        raise AssertionError("a cell was read")

    for name in ("read_columns", "read_ids"):
        monkeypatch.setattr(tables, name, read)
    client = visits.client()
    for answer in (
        client.post("/api/preview", json=BUDGETS[dataset]),
        client.post("/api/preview/curve", json={"settings": BUDGETS[dataset], "epsilons": [1.0]}),
        client.post("/api/plans", json={"settings": BUDGETS[dataset], "name": "unread"}),
    ):
        assert answer.status_code in (200, 201), answer.text


def test_a_table_with_too_many_rows_is_refused(visits, monkeypatch):
    """By its size where that is public; with people, by how many rows may count, whatever the table has."""
    client = visits.client()
    monkeypatch.setattr(limits, "INDUCING_ROWS", ROWS - 1)
    for path, asked in (("preview", SETTINGS), ("plans", {"settings": SETTINGS, "name": "large"})):
        refused = client.post(f"/api/{path}", json=asked)
        assert refused.status_code == 422
        assert f"at most {ROWS - 1}" in refused.json()["error"]
    assert client.post("/api/preview", json=BOTH).status_code == 200  # 30 of 45 rows
    refused = client.post("/api/preview", json={**BOTH, "max_rows": 3})
    assert refused.status_code == 422
    assert str(ROWS) not in refused.json()["error"]


def test_the_same_plan_comes_of_any_table_of_as_many_rows(visits):
    client = visits.client()
    first = plan_of(client, SETTINGS)
    before = client.post("/api/preview", json=SETTINGS).json()
    client.delete("/api/data/visits.csv")
    client.put("/api/data/visits.csv", content=visits_table(age=[1.0] * ROWS, visits=[60.0] * ROWS))
    assert plan_of(client, SETTINGS) == first
    after = client.post("/api/preview", json=SETTINGS).json()
    for told in (before, after):
        del told["milliseconds"]
    assert before == after


def test_what_was_planned_as_private_is_not_shown_as_public(released):
    client = released[0].client()
    refused = [
        client.post("/api/data/visits.csv/inputs", json={"inputs": ["age"]}),
        client.post("/api/data/visits.csv/inputs", json={"inputs": ["sex", "age"]}),
        client.post("/api/data/visits.csv/people", json={"people": "patient"}),
        client.post("/api/data/visits.csv/people", json={"people": "age"}),
        client.post("/api/preview", json={**_public(), "inputs": ["age"]}),
        client.post("/api/plans", json={"settings": {**_public(), "inputs": ["age"]}, "name": "open"}),
    ]
    for answer in refused:
        assert answer.status_code == 422, answer.text
        assert "is private" in answer.json()["error"]


def _public() -> dict[str, Any]:
    return {name: value for name, value in SETTINGS.items() if name not in ("protect", "box")}


def test_how_many_rows_people_have_is_not_told_once_it_is_private(visits):
    client = visits.client()

    def rows() -> int | None:
        return {each["name"]: each["rows"] for each in client.get("/api/data").json()}["visits.csv"]

    plan_of(client, SETTINGS)
    assert rows() == ROWS  # of whole rows their number is public
    plan_of(client, BOTH)
    assert rows() is None


@pytest.mark.usefixtures("drawn_once")
def test_the_release_names_the_unit_and_has_a_density_but_no_inputs(released):
    world, _, made = released
    units = {"kung": "one whole row", "clan": "one person's whole rows"}
    for name, unit in units.items():
        assert made[name]["certificate"]["unit"] == unit
        assert any("is public, and so are the box" in words for words in made[name]["limits"])
        shown = world.client("analyst").get(f"/api/releases/{made[name]['id']}").json()
        assert shown["inputs_sample"] == []
        assert len(shown["density"]["rows"]) == len(shown["density"]["std"]) == 18
        assert shown["density"]["points"][0] == [2.5]
        assert [stage["width"] is None for stage in shown["stages"]][:2] == [True, False]
        assert len(shown["denoised"]) == 8
        assert unit in html.unescape(world.client().get(f"/api/releases/{made[name]['id']}/report").text)
        assert cloakgp.load(world.state.folder.release(made[name]["id"])).plan.unit == unit
        assert world.client().get(f"/api/releases/{made[name]['id']}/verify").json()["ok"]
    book = world.client().get("/api/ledger").json()
    assert {each["name"]: each["unit"] for each in book["datasets"]} == units


def test_a_budget_of_whole_rows_pays_for_nothing_else(released):
    client = released[0].client()
    plan = plan_of(client, {**BOTH, "epsilon": 0.1})
    answer = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"})
    assert answer.status_code == 409
    assert answer.json()["code"] == "other_unit"
    assert "'one whole row'" in answer.json()["error"]


def test_a_category_has_levels_and_a_known_model_goes_with_a_box(visits):
    client = visits.client()
    box = {**SETTINGS["box"], "sex": {"levels": ["f", "m"]}}
    plan = plan_of(client, {**SETTINGS, "inputs": ["age", "sex"], "box": box, "at": "grid:4"})
    made = release(client, plan).json()["release"]
    shown = client.get(f"/api/releases/{made['id']}").json()
    assert len(shown["points"]) == 8
    assert len(shown["density"]["rows"]) == 36
    assert any(row["what"] == "share of sex" for row in shown["learned"])
    known = plan_of(client, {**SETTINGS, "kernel": "EQ(20, variance=625)", "noise": 196.0, "epsilon": 0.2})
    made = release(client, known).json()["release"]
    shown = client.get(f"/api/releases/{made['id']}").json()
    assert shown["learned"] is None
    assert shown["stages"]


def test_a_box_has_dates(visits, tmp_path):
    """In the plan, the numbers, the questions and the script."""
    client = visits.client()
    days = [f"2024-0{1 + row % 9}-1{row % 7}" for row in range(ROWS)]
    client.put("/api/data/days.csv", content=visits_table(day=days))
    asked = {**SETTINGS, "data": "days.csv", "inputs": ["day"], "at": "grid:2"}
    asked["box"] = {"day": {"low": "2024-01-01", "high": "2024-12-31", "cells": 4}}
    for wrong in ({"low": "2024-12-31", "high": "2024-01-01"}, {"low": 1.0, "high": "2024-01-01"}):
        refused = client.post("/api/preview", json={**asked, "box": {"day": wrong}})
        assert (refused.status_code, "low below high" in refused.json()["error"]) == (422, True)
    made = release(client, plan_of(client, asked)).json()["release"]["id"]
    found = client.get(f"/api/releases/{made}").json()
    assert [(one["kind"], one["origin"]) for one in found["columns"]] == [("date", "2000-01-01")]
    where = {"points": [["2024-05-31"]]}
    assert client.post(f"/api/releases/{made}/predict", json=where).status_code == 200
    assert client.get(f"/api/releases/{made}/csv").text.splitlines()[1].startswith('"2024-01-01",')
    assert redone(visits, made, tmp_path) == visits.state.folder.release(made).read_bytes()


def test_another_number_of_rows_is_refused_before_anything_is_read(visits):
    client = visits.client()
    plan = plan_of(client, SETTINGS)
    client.delete("/api/data/visits.csv")
    client.put("/api/data/visits.csv", content=visits_table() + b"x,1,f,60\n")
    answer = release(client, plan)
    assert answer.status_code == 409
    assert "number of rows" in answer.json()["error"]


@pytest.mark.parametrize(
    ("settings", "dataset", "changes"),
    [
        (SETTINGS, "kung", {"age": ["old", *AGES[1:]]}),
        (SETTINGS, "kung", {"age": ["", *AGES[1:]]}),
        (SETTINGS, "kung", {"visits": ["", *secret_heights(ROWS)[1:]]}),
        (BOTH, "clan", {"patient": ["", *IDS[1:]]}),
    ],
)
def test_whatever_is_wrong_with_private_rows_is_one_message(visits, settings, dataset, changes):
    client = visits.client()
    plan = plan_of(client, settings)
    client.delete("/api/data/visits.csv")
    client.put("/api/data/visits.csv", content=visits_table(**changes))
    answer = release(client, plan, dataset=dataset, confirm=dataset)
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "unusable_output"
    assert answer.json()["error"].startswith("the table cannot be used")
    assert spends(visits) == 0


def test_how_many_people_there_are_is_public_so_a_wrong_number_is_said(visits):
    client = visits.client()
    answer = release(client, plan_of(client, {**BOTH, "n_people": 14}), dataset="clan", confirm="clan")
    assert (answer.status_code, answer.json()["code"]) == (422, "unusable_output")
    assert answer.json()["error"].startswith("the plan is for 14 people")
    assert spends(visits) == 0


RANGE = SETTINGS["box"]["age"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"box": None}, "box: must be given"),
        ({"box": {}}, "box"),
        ({"box": {"sex": {"levels": ["f", "m"]}}}, "box: must have a range, or levels, for each input"),
        ({"box": {"age": {**RANGE, "low": 90.0}}}, "box"),
        ({"box": {"age": {"low": 0.0}}}, "box: each input needs"),
        ({"box": {"age": {**RANGE, "cells": 0}}}, "box"),
        ({"box": {"age": {**RANGE, "cells": 10**9}}}, "box"),
        ({"box": {"age": {"levels": ["f"]}}}, "box"),
        ({"box": {"age": {"levels": ["f"] * 9}}}, "box"),
        ({"box": {"age": {"levels": [str(n) for n in range(10_000)]}}}, "box"),
        (
            {
                "inputs": ["age", "sex"],
                "box": {"age": {**RANGE, "cells": 5000}, "sex": {"levels": ["f", "m"]}},
            },
            "10000 cells",
        ),
        ({"at": "grid:9999"}, "limit of 2500"),
        ({"inducing": 20, "kernel": "EQ(20)", "noise": 1.0}, "inducing: must be left out"),
        ({"given": ["0123456789abcdef"]}, "given: must be left out"),
        ({"kind": "function", "kernel": "EQ(20)", "noise": 1.0}, "kind: must be left out"),
        ({"people": "patient"}, "must be given"),
        ({"people": "age", "n_people": 15, "max_rows": 2}, "people: must not be an input"),
        ({"people": "patient", "n_people": 15, "max_rows": 10**9}, "max_rows"),
        ({"people": "patient", "n_people": 500_001, "max_rows": 2}, "max_rows: times n_people"),
        ({"n_people": 15}, "n_people: must be left out"),
        ({"within": 0.5}, "within: must be left out"),
        ({"output": "age"}, "must not be an input"),
    ],
)
def test_what_is_said_of_the_box_is_enough_and_not_too_much(released, changes, words):
    answer = released[0].client().post("/api/preview", json={**SETTINGS, **changes})
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]
    assert len(answer.json()["error"]) < 400


@pytest.mark.parametrize("dataset", BUDGETS)
def test_the_script_makes_the_very_release_for_nothing(released, tmp_path, dataset):
    world, _, made = released
    release_id, before = made[dataset]["id"], spends(world)
    text = world.client().get(f"/api/releases/{release_id}/script").text
    assert "read_columns" not in text
    assert redone(world, release_id, tmp_path) == world.state.folder.release(release_id).read_bytes()
    assert spends(world) == before


@pytest.mark.parametrize("restart", [False, True])
def test_a_release_of_whole_rows_that_stopped_goes_on_for_nothing(visits, monkeypatch, restart):
    client = visits.client()
    plan = plan_of(client, BOTH)
    measure, count = RowsPlan._measure_stage, itertools.count()

    def stage(*arguments: Any) -> Any:
        if next(count) >= 2:
            raise ValueError(f"there is no {AGES[0]}")
        return measure(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(RowsPlan, "_measure_stage", stage)
        failed = release(client, plan, dataset="clan", confirm="clan")
    assert "stopped after it was paid for" in failed.json()["error"]
    assert AGES[0] not in failed.text
    world = visits.restarted() if restart else visits
    assert len(world.client().get("/api/releases").json()) == int(restart)
    answer = release(world.client(), plan, dataset="clan", confirm="clan").json()
    assert not answer["receipt"]["spent"]
    assert spends(world) == 1
    assert world.client().get(f"/api/releases/{answer['release']['id']}/verify").json()["ok"]


def test_private_ids_are_compared_exactly_if_that_is_asked_for(tmp_path):
    world = make_visits(tmp_path / "data")
    client = world.client()
    plan = plan_of(client, {**BOTH, "ids": "exact"})
    assert release(client, plan, dataset="clan", confirm="clan").json()["code"] == "other_terms"
    terms = {"unit": "one person's whole rows", "ids": "exact"}
    client.post("/api/ledger/datasets", json={"name": "exact", "epsilon": 3.0, "delta": 0.01, **terms})
    answer = release(client, plan, dataset="exact", confirm="exact")
    assert answer.status_code == 200, answer.text
    made = answer.json()["release"]
    assert made["certificate"]["ids"] == "exact"
    assert redone(world, made["id"], tmp_path) == world.state.folder.release(made["id"]).read_bytes()
