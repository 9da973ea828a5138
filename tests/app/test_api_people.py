"""People over the API: whose a row is; what the ledger allows, by unit, people and terms of a data set."""

from __future__ import annotations

from typing import Any

import pytest
from app_helpers import (
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
PEOPLE: dict[str, Any] = {"data": "visits.csv", "output": "visits", "protect": "people", "people": "zper"}


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


def test_the_ledger_refuses_other_people(visits):
    """Whose ids are the same; another unit is refused below."""
    client = visits.client()
    plan = make_plan(client, **{**PEOPLE, "data": "others.csv"}, epsilon=0.1)
    for answer in (client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}), release(client, plan)):
        check_refused(answer, 409, "other_unit", "in another way", "page Budget", "Nothing was spent")
    assert spends(visits) == len(client.get("/api/releases").json()) == 1  # the fixture's


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


def test_a_custodian_allows_more_columns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not on the data set's terms is refused before the table is read."""
    client, columns = world.client(), {"age": ages(), "height": secret_heights(), "income": secret_heights()}
    client.put("/api/data/clinic.csv", content=table(columns))
    assert release(client, make_plan(client, epsilon=0.2)).status_code == 200
    income = make_plan(client, data="clinic.csv", output="income", epsilon=0.2)
    with monkeypatch.context() as patch:
        patch.setattr(world.state.plans, "make_again", lambda *_: pytest.fail("the table was read"))
        check_refused(release(client, income), 409, "other_terms", "on the page Budget")
    asked = {"dataset": "kung", "private": ["income"], "why": "agreed"}
    told = client.post("/api/ledger/private", json=asked).json()
    assert (told["private"], told["public"]) == (["height", "income"], ["age"])
    quote = client.post(f"/api/plans/{income}/quote", json={"dataset": "kung"}).json()
    assert quote["reads"] == {"private": ["income"], "public": ["age"], "people": None}
    assert release(client, income).status_code == 200
    public = client.post("/api/ledger/private", json={**asked, "private": ["age"]})
    check_refused(public, 422, "bad_input")
    assert client.post("/api/ledger/private", json={**asked, "dataset": "nobody"}).status_code == 404
    book = client.get("/api/ledger").json()
    assert book["verified"]
    assert [entry["kind"] for entry in book["entries"]] == ["opened", "created", "spent", "allowed", "spent"]
