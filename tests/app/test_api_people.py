"""People over the API: whose a row is, what that does to the noise, and what the ledger allows afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_helpers import (
    LEARNED,
    SETTINGS,
    World,
    ages,
    check_refused,
    make_plan,
    make_world,
    release,
    secret_heights,
    spends,
    table,
)

ROWS, EACH = 45, 3
OF_ROWS: dict[str, Any] = {"data": "visits.csv", "output": "visits"}
PEOPLE: dict[str, Any] = {**OF_ROWS, "protect": "people", "people": "zper"}


def put(world: World, name: str, ids: Any, **changes: Any) -> None:
    body = table({"zper": ids, "age": ages(len(ids)), "visits": secret_heights(len(ids)), **changes})
    assert world.client().put(f"/api/data/{name}", content=body).status_code == 201


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A table in which everybody has three rows, and a release of it; and one of other people."""
    world = make_world(tmp_path_factory.mktemp("visits") / "data")
    put(world, "visits.csv", [f"person {row // EACH}" for row in range(ROWS)])
    put(world, "others.csv", [f"person {(row + 1) // EACH}" for row in range(ROWS)])
    assert release(world.client(), make_plan(world.client(), **PEOPLE)).status_code == 200
    return world


def test_a_table_says_which_columns_sound_like_people_and_no_id_is_sent(visits):
    client = visits.client()
    told = {each["name"]: each["who"] for each in client.get("/api/data").json()}
    assert told == {"visits.csv": ["zper"], "others.csv": ["zper"], "heights.csv": []}
    answer = client.post("/api/data/visits.csv/people", json={"people": "zper"})
    assert answer.json() == {"people": ROWS // EACH, "rows": ROWS, "most_rows": EACH}
    put(visits, "gap.csv", ["a", "", "b"])
    for data, column, says in (("visits", "visits", "private"), ("gap", "zper", "row 2")):
        answer = client.post(f"/api/data/{data}.csv/people", json={"people": column})
        check_refused(answer, 422, "bad_input", says)


@pytest.mark.parametrize("settings", [SETTINGS, LEARNED], ids=["known", "learned"])
def test_a_person_with_three_rows_takes_more_noise_than_a_row_and_less_than_three_times_as_much(
    visits, settings
):
    client, base = visits.client(), {**settings, **OF_ROWS}
    row, person, apart = (
        client.post("/api/preview", json={**base, **more}).json()
        for more in ({}, PEOPLE, {**PEOPLE, "within": 0.0})
    )
    assert person["certificate"]["unit"] == "one person"
    assert "any one person" in person["promise"][0]
    errors = [each["error_summary"]["rms"] for each in (row, person, apart)]
    assert errors[0] < errors[1] < errors[0] * EACH
    if settings is LEARNED:  # rows that tell of different things count more than such as all say the same
        assert errors[2] < errors[1]
    else:
        assert row["summary"]["rms"] * 1.2 < person["summary"]["rms"] < row["summary"]["rms"] * EACH


def test_the_ledger_refuses_another_unit_and_other_people(visits):
    client = visits.client()
    of_rows = make_plan(client, **OF_ROWS, epsilon=0.1)
    of_others = make_plan(client, **{**PEOPLE, "data": "others.csv"}, epsilon=0.1)
    for plan, words in ((of_rows, "'one row'"), (of_others, "in another way")):
        for answer in (
            client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}),
            release(client, plan),
        ):
            check_refused(answer, 409, "other_unit", words, "page Budget", "Nothing was spent")
    assert spends(visits) == len(client.get("/api/releases").json()) == 1  # the fixture's


def test_a_preview_of_many_rows_keeps_people_whole(world):
    """It looks at some people with all of their rows: taken apart, each would look like somebody with one."""
    rows = 21_000
    put(world, "visits.csv", np.arange(rows) // EACH, age=np.linspace(0, 80, rows), visits=np.ones(rows))
    client, asked = world.client(), {**SETTINGS, **PEOPLE, "inducing": 20}
    about = client.post("/api/preview", json=asked).json()
    assert not about["exact"]
    kept = client.post("/api/plans", json={"settings": asked, "name": "many"}).json()
    assert about["summary"]["rms"] == pytest.approx(kept["summary"]["rms"], rel=0.1)


def test_exact_ids_are_another_plan_which_a_budget_must_allow(world):
    put(world, "visits.csv", [f"{'pP'[row % 2]}erson {row // 2}" for row in range(ROWS)])
    client = world.client()
    counted = [
        client.post("/api/data/visits.csv/people", json={"people": "zper", **ids}).json()["people"]
        for ids in ({}, {"ids": "exact"})
    ]
    assert counted == [(ROWS + 1) // 2, ROWS]
    alike, exact = make_plan(client, **PEOPLE), make_plan(client, **PEOPLE, ids="exact")
    assert alike != exact
    assert client.get(f"/api/plans/{alike}").json()["certificate"].get("ids") != "exact"
    check_refused(release(client, exact), 409, "other_terms")  # the data set compares ids alike
