"""What settings may be, beside what tests/release/test_settings.py says of all faces, is said by its name."""

from __future__ import annotations

from typing import Any

import pytest
from app_helpers import (
    LEARNED,
    SETTINGS,
    World,
    ages,
    check_refused,
    make_plan,
    make_world,
    secret_heights,
    spends,
    table,
)

from cloakgp.app.limits import Most

PEOPLE = {"protect": "people", "people": "patient"}
RANGE = {"low": 0.0, "high": 90.0, "cells": 18}
BOX = {"protect": "rows", "box": {"age": RANGE}}
ILL = {"data": "visits.csv", "output": "ill", "outcome": "yes/no", "bounds": None, "classes": ["no", "ja"]}
BASES: dict[str, dict[str, Any]] = {
    "known": {**SETTINGS, "data": "visits.csv"},
    "learned": {**LEARNED, "data": "visits.csv"},
    "people": {**SETTINGS, "data": "visits.csv", **PEOPLE},
    "rows": {**LEARNED, "data": "visits.csv", **BOX},
    "ill": {**LEARNED, **ILL},
}
LEVELS = [str(n) for n in range(10_000)]
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("known", {"kernel": "__import__('os')"}, "kernel"),
    ("known", {"bounds": [3.0, 3.0]}, "bounds"),
    ("known", {"noise": -1.0}, "noise"),
    ("known", {"epsilon": "1"}, "epsilon"),
    ("known", {"inputs": ["nothing"]}, "visits.csv: there is no column 'nothing'"),
    ("known", {"output": "nothing"}, "visits.csv: there is no column 'nothing'"),
    ("known", {"inputs": ["age", "age"]}, "columns"),
    ("known", {"at": "grid:1"}, "a grid"),
    ("known", {"at": "grid:9999"}, "at has 9999 points"),
    ("known", {"at": "/etc/passwd"}, "at"),
    ("known", {"at": {"points": [[1.0, 2.0]]}}, "points"),
    ("known", {"at": {"points": [[1e6]]}, "kernel": "EQ(1, variance=625)"}, "the points"),
    ("known", {"design": "best"}, "design"),
    ("known", {"extra": 1}, "extra"),
    ("known", {"inducing": Most.inducing + 1}, "inducing"),
    ("known", {"kind": "function", "inducing": 8}, "inducing"),
    ("known", {"given": ["0" * 16]}, "given"),
    ("known", {"categories": ["ward"]}, "--categories"),
    ("learned", {"model": "kernel"}, "kernel"),
    ("learned", {"kernel": "EQ(20)", "noise": 1.0, "model": "learn"}, "kernel"),
    ("learned", {"inducing": 20}, "inducing"),
    ("people", {"people": "nobody"}, "visits.csv: there is no column 'nobody'"),
    ("people", {"within": 1.5}, "within"),
    ("rows", {"box": None}, "box"),
    ("rows", {"box": {"sex": {"levels": ["f", "m"]}}}, "box"),
    ("rows", {"box": {"age": {**RANGE, "low": 90.0}}}, "box"),
    ("rows", {"box": {"age": {"low": 0.0}}}, "box"),
    ("rows", {"box": {"age": {**RANGE, "cells": 10**9}}}, "box"),
    ("rows", {"box": {"age": {"low": "2024-12-31", "high": "2024-01-01"}}}, "box"),
    ("rows", {"box": {"age": {"low": 1.0, "high": "2024-01-01"}}}, "box"),
    ("rows", {"box": {"age": {"levels": ["f"] * 9}}}, "box"),
    ("rows", {"box": {"age": {"levels": LEVELS}}}, "box"),
    (
        "rows",
        {"inputs": ["age", "sex"], "box": {"age": {**RANGE, "cells": 5000}, "sex": {"levels": ["f", "m"]}}},
        "box",
    ),
    ("rows", {"kernel": "EQ(20)", "noise": 1.0, "inducing": 20}, "inducing"),
    ("rows", {"people": "patient", "max_rows": 2}, "n_people"),
    ("rows", {"people": "patient", "n_people": 15, "max_rows": 10**9}, "max_rows"),
    ("rows", {"people": "patient", "n_people": 500_001, "max_rows": 2}, "max_rows"),
    ("ill", {"outcome": "count", "bounds": [0, 9]}, "classes"),
    ("ill", {"outcome": "classes", "classes": None}, "classes"),
    ("ill", {"outcome": "classes", "classes": ["a", "b", "a"]}, "classes"),
    ("ill", {"classes": ["no", "ja", "maybe"]}, "classes"),
]


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = make_world(tmp_path_factory.mktemp("settings") / "data")
    columns = {"patient": [row // 3 for row in range(40)], "age": ages(), "height": secret_heights()}
    columns |= {"sex": ["f", "m"] * 20, "ill": ["no", "ja"] * 20}
    assert world.client().put("/api/data/visits.csv", content=table(columns)).status_code == 201
    return world


@pytest.mark.parametrize("base", BASES)
def test_each_kind_is_fine_by_itself(visits: World, base: str) -> None:
    assert visits.client().post("/api/preview", json=BASES[base]).status_code == 200


@pytest.mark.parametrize(("base", "changes", "named"), WRONG)
def test_what_does_not_make_sense_is_said_by_its_name(
    visits: World, base: str, changes: dict[str, Any], named: str
) -> None:
    client, settings = visits.client(), {**BASES[base], **changes}
    for path, body in (("preview", settings), ("plans", {"settings": settings, "name": "wrong"})):
        answer = client.post(f"/api/{path}", json=body)
        check_refused(answer, 422, "bad_input")
        said = answer.json()["error"].removeprefix("settings.")
        assert said.startswith(named), said
        assert len(said) < 400
    assert spends(visits) == 0


def test_one_question_is_one_plan_however_it_is_written(visits: World) -> None:
    client = visits.client()
    one = make_plan(client, **BASES["known"])
    assert make_plan(client, **BASES["known"] | {"kernel": "EQ(20.0, variance=25**2)"}) == one
    learned = {"settings": BASES["learned"], "name": "learned"}
    unsaid = client.post("/api/plans", json=learned).json()
    assert unsaid["certificate"]["design"] == "staged"
    said = {"model": "learn", "kernel": None, "noise": None, "mean": None, "design": "mse"}
    learned["settings"] = {**BASES["learned"], **said, "kind": "predictions"}
    assert client.post("/api/plans", json=learned).json() == unsaid
    usual = make_plan(client, **{**BASES["known"], "delta": None})
    assert (
        client.get(f"/api/plans/{usual}").json()["settings"]["delta"] == 0.001
    )  # of 40 rows, the largest power of ten below 1/400


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bounds": "wide"}, "settings.bounds: must be a valid list"),
        ({"design": "best"}, "settings.design: must be 'mse', 'max', 'posterior' or 'volume'"),
        ({"sigma": 1}, "settings.sigma: is not known here"),
    ],
)
def test_what_has_another_form_is_said_in_our_words(visits: World, changes: Any, said: str) -> None:
    asked = {"settings": {**SETTINGS, **changes}, "name": "growth"}
    answer = visits.client().post("/api/plans", json=asked)
    assert (answer.status_code, answer.json()) == (422, {"error": said, "code": "bad_input"})
