"""People over the API: whose a row is, what that does to the noise, and what the ledger allows afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_helpers import (
    SETTINGS,
    World,
    ages,
    make_plan,
    make_world,
    redone,
    release,
    secret_heights,
    spends,
    table,
)

import cloakgp

ROWS, EACH = 45, 3
PEOPLE: dict[str, Any] = {"data": "visits.csv", "output": "visits", "protect": "people", "people": "zper"}
LEARNED = {
    name: value for name, value in SETTINGS.items() if name in ("inputs", "bounds", "at", "epsilon", "delta")
}


def put_visits(world: World, name: str = "visits.csv", shift: int = 0) -> None:
    """A table in which everybody has three rows."""
    ids = [f"person {(row + shift) // EACH}" for row in range(ROWS)]
    body = table({"zper": ids, "age": ages(ROWS), "visits": secret_heights(ROWS)})
    assert world.client().put(f"/api/data/{name}", content=body).status_code == 201


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    world = make_world(tmp_path_factory.mktemp("visits") / "data")
    put_visits(world)
    client = world.client()
    plan = make_plan(client, **PEOPLE)
    answer = release(client, plan)
    assert answer.status_code == 200, answer.text
    return world, plan, answer.json()["release"]


def test_a_table_says_which_columns_sound_like_people_and_no_id_is_sent(visits):
    client = visits[0].client()
    told = {each["name"]: each for each in client.get("/api/data").json()}
    assert told["visits.csv"]["who"] == ["zper"]
    assert told["heights.csv"]["who"] == []
    answer = client.post("/api/data/visits.csv/people", json={"people": "zper"})
    assert answer.json() == {"people": ROWS // EACH, "rows": ROWS, "most_rows": EACH}


def test_a_missing_id_is_said_by_row(world):
    body = table({"who": ["a", "", "b"], "age": [1, 2, 3], "visits": [1, 2, 3]})
    world.client().put("/api/data/gap.csv", content=body)
    answer = world.client().post("/api/data/gap.csv/people", json={"people": "who"})
    assert answer.status_code == 422
    assert "row 2" in answer.json()["error"]


def test_a_person_with_three_rows_takes_more_noise_than_a_row_and_less_than_three_times_as_much(visits):
    client = visits[0].client()
    of_rows = {**SETTINGS, "data": "visits.csv", "output": "visits"}
    row = client.post("/api/preview", json=of_rows).json()["summary"]["rms"]
    person = client.post("/api/preview", json={**of_rows, **PEOPLE}).json()
    assert row * 1.2 < person["summary"]["rms"] < row * EACH
    assert person["certificate"]["unit"] == "one person"
    assert "any one person" in person["promise"][0]


def test_a_model_that_is_learned_knows_people_too(visits):
    client = visits[0].client()
    asked = {**LEARNED, "data": "visits.csv", "output": "visits"}
    row = client.post("/api/preview", json=asked).json()
    person = client.post("/api/preview", json={**asked, **PEOPLE}).json()
    assert person["certificate"]["unit"] == "one person"
    rms = [each["error_summary"]["rms"] for each in (row, person)]
    assert rms[1] > rms[0]
    # Rows of a person that tell of different things count more than rows that all say the same.
    apart = client.post("/api/preview", json={**asked, **PEOPLE, "within": 0.0}).json()
    assert apart["error_summary"]["rms"] < rms[1]


@pytest.mark.usefixtures("drawn_once")
def test_the_release_names_the_person_everywhere(visits):
    world, _, made = visits
    client = world.client("analyst")
    assert made["certificate"]["unit"] == "one person"
    assert any("which rows are the same person's" in words for words in made["limits"])
    shown = client.get(f"/api/releases/{made['id']}").json()
    assert shown["settings"]["people"] == "zper"
    assert "one person" in client.get(f"/api/releases/{made['id']}/report").text
    assert client.get(f"/api/releases/{made['id']}/verify").json()["ok"]
    kept = cloakgp.load(world.state.folder.release(made["id"]))
    assert kept.plan.unit == "one person"
    book = world.client().get("/api/ledger").json()
    assert [each["unit"] for each in book["datasets"]] == ["one person"]


def test_the_script_makes_the_very_release_for_nothing(visits, tmp_path):
    world, _, made = visits
    assert redone(world, made["id"], tmp_path) == world.state.folder.release(made["id"]).read_bytes()
    assert spends(world) == 1


def test_the_ledger_refuses_another_unit_and_other_people(visits):
    world = visits[0]
    client = world.client()
    of_rows = make_plan(client, data="visits.csv", output="visits", epsilon=0.1)
    put_visits(world, "others.csv", shift=1)
    of_others = make_plan(client, **{**PEOPLE, "data": "others.csv"}, epsilon=0.1)
    for plan, words in ((of_rows, "'one row'"), (of_others, "in another way")):
        for answer in (
            client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}),
            release(client, plan),
        ):
            assert answer.status_code == 409, answer.text
            assert answer.json()["code"] == "other_unit"
            assert words in answer.json()["error"]
            assert "page Budget" in answer.json()["error"]
            assert "Nothing was spent" in answer.json()["error"]
    assert spends(world) == 1  # the fixture's
    assert len(client.get("/api/releases").json()) == 1


def test_a_table_whose_people_changed_is_refused_before_anything_is_read(world):
    put_visits(world)
    client = world.client()
    plan = make_plan(client, **PEOPLE)
    client.delete("/api/data/visits.csv")
    put_visits(world, shift=1)
    answer = release(client, plan)
    assert answer.status_code == 409
    assert "people" in answer.json()["error"]
    assert spends(world) == 0


def test_who_has_which_rows_is_part_of_the_question(world):
    put_visits(world)
    client = world.client()
    first = make_plan(client, **PEOPLE)
    assert make_plan(client, **PEOPLE) == first
    client.delete("/api/data/visits.csv")
    put_visits(world, shift=1)
    assert make_plan(client, **PEOPLE) != first


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"people": None}, "people: must be given"),
        ({"people": "visits"}, "people: must be another column"),
        ({"protect": "outcomes"}, "people: must be left out"),
        ({"max_rows": 3}, "max_rows: must be left out"),
        ({"within": 1.5}, "within"),
        ({"ids": "same"}, "ids"),
        ({"protect": "outcomes", "people": None, "ids": "exact"}, "ids: must be left out"),
        ({"people": "nobody"}, "there is no column 'nobody'"),
        ({"protect": "everybody"}, "protect"),
    ],
)
def test_what_is_said_of_people_is_enough_and_not_too_much(visits, changes, words):
    settings = {**SETTINGS, **PEOPLE, **changes}
    answer = visits[0].client().post("/api/preview", json=settings)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_an_outcome_is_not_read_as_an_id(visits):
    client = visits[0].client()
    answer = client.post("/api/data/visits.csv/people", json={"people": "visits"})
    assert answer.status_code == 422
    assert "private" in answer.json()["error"]


def test_analysts_ask_for_no_ids(visits):
    answer = visits[0].client("analyst").post("/api/data/visits.csv/people", json={"people": "zper"})
    assert answer.status_code == 403


def test_a_preview_of_many_rows_keeps_people_whole(world):
    """It looks at some people with all of their rows: taken apart, each would look like somebody with one."""
    rng = np.random.default_rng(3)
    rows = 21_000
    body = {
        "zper": np.arange(rows) // EACH,
        "age": rng.uniform(0, 80, rows).round(1),
        "visits": np.ones(rows),
    }
    world.client().put("/api/data/visits.csv", content=table(body))
    client = world.client()
    asked = {**SETTINGS, **PEOPLE, "inducing": 20}
    about = client.post("/api/preview", json=asked).json()
    assert not about["exact"]
    kept = client.post("/api/plans", json={"settings": asked, "name": "many"}).json()
    assert about["summary"]["rms"] == pytest.approx(kept["summary"]["rms"], rel=0.1)


def test_exact_ids_are_a_setting_that_the_certificate_tells_of(world, tmp_path):
    ids = [f"{'pP'[row % 2]}erson {row // 2}" for row in range(ROWS)]
    body = table({"zper": ids, "age": ages(ROWS), "visits": secret_heights(ROWS)})
    client = world.client()
    client.put("/api/data/visits.csv", content=body)
    counted = [
        client.post("/api/data/visits.csv/people", json={"people": "zper", **ids}).json()["people"]
        for ids in ({}, {"ids": "exact"})
    ]
    assert counted == [(ROWS + 1) // 2, ROWS]
    alike, exact = make_plan(client, **PEOPLE), make_plan(client, **PEOPLE, ids="exact")
    assert alike != exact
    assert "ids" not in client.get(f"/api/plans/{alike}").json()["certificate"]
    assert release(client, exact).json()["code"] == "other_terms"  # the data set compares ids alike
    terms = {"unit": "one person", "ids": "exact"}
    created = client.post(
        "/api/ledger/datasets", json={"name": "exact", "epsilon": 3.0, "delta": 0.01, **terms}
    )
    assert created.status_code == 201, created.text
    made = release(client, exact, dataset="exact", confirm="exact").json()["release"]
    assert (made["certificate"]["ids"], made["settings"]["ids"]) == ("exact", "exact")
    verified = client.get(f"/api/releases/{made['id']}/verify").json()
    assert (verified["ok"], verified["complete"]) == (True, False)
    assert redone(world, made["id"], tmp_path) == world.state.folder.release(made["id"]).read_bytes()
