"""Tables as they are: levels, dates, missing inputs, ways of writing; and yes or no, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_helpers import World, check_refused, make_world, redone, released_of

import cloakgp

N = 60
ROWS = [
    {
        "age": f"{20 + row % 47},5",
        "clinic": ("nørd", "south", "west")[row % 3],
        "ward": str(10 + row % 2),
        "day": f"2024-0{1 + row % 6}-1{row % 9}",
        "visits": str(row * 7 % 5),
        "ill": "no" if row % 4 else "ja",
    }
    for row in range(N)
]
SETTINGS: dict[str, Any] = {
    "data": "visits.csv",
    "inputs": ["age", "clinic", "day"],
    "output": "ill",
    "outcome": "yes/no",
    "classes": ["no", "ja"],
    "at": {"points": [["30", "west", "2024-02-03"]]},
    "epsilon": 2.0,
    "delta": 1e-4,
}


def written(rows: list[dict[str, str]], encoding: str = "latin-1") -> bytes:
    lines = [";".join(rows[0]), *(";".join(row.values()) for row in rows)]
    return "\r\n".join(lines).encode(encoding)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table between semicolons, in Latin-1, with decimal commas."""
    made = make_world(tmp_path_factory.mktemp("clinic") / "data")
    client = made.client()
    assert client.put("/api/data/visits.csv", content=written(ROWS)).status_code == 201
    client.put("/api/data/modes.csv", content=written(ROWS[:24], "utf-8"))
    client.put("/api/data/private.csv", content=written(ROWS))
    for name in ("ill", "visits", "clinics"):
        client.post("/api/ledger/datasets", json={"name": name, "epsilon": 9.0, "delta": 0.01})
    return made


def plan_and_release(
    world: World, dataset: str, more: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    return released_of(world.client(), {**SETTINGS, **changes}, dataset, **(more or {}))


def test_what_columns_hold_is_told_of_public_ones(clinic):
    client = clinic.client()
    facts = client.post(
        "/api/data/visits.csv/inputs",
        json={"inputs": ["age", "clinic", "day", "ward"], "categories": ["ward"]},
    ).json()
    kinds = {one["name"]: (one["kind"], one["levels"]) for one in facts["columns"]}
    assert kinds == {
        "age": ("number", []),
        "clinic": ("level", ["nørd", "south", "west"]),
        "day": ("date", []),
        "ward": ("level", [10, 11]),
    }
    assert facts["written"] == "separated by semicolons, LATIN-1, decimal comma"
    assert facts["ranges"]["age"] == [20.5, 66.5]


def test_from_a_table_with_holes_to_probabilities_by_level(clinic, tmp_path):
    client = clinic.client()
    rows = [dict(row) for row in ROWS]
    rows[3]["clinic"] = rows[8]["age"] = ""
    client.put("/api/data/holes.csv", content=written(rows))
    asked: dict[str, Any] = {"inputs": ["age", "clinic"]}
    refused = client.post("/api/data/holes.csv/inputs", json=asked)
    check_refused(refused, 422, "missing_inputs", "row 9 does not", "2 of 60 rows")
    drop = {"missing_inputs": "drop"}
    facts = client.post("/api/data/holes.csv/inputs", json={**asked, **drop}).json()
    assert (facts["rows"], facts["dropped"]) == (N - 2, 2)
    where = {"points": [[30.0, "west"], [60, "nørd"]]}
    found = plan_and_release(clinic, "ill", **asked, **drop, data="holes.csv", at=where)
    assert found["certificate"]["n_rows"] == N - 2
    assert found["settings"]["bounds"] == [0.0, 1.0]
    assert [one["name"] for one in found["columns"]] == ["age", "clinic"]
    low, high = np.array(found["lower"]), np.array(found["upper"])
    assert ((low > 0) & (low < found["denoised"]) & (high < 1)).all()
    client = clinic.client("analyst")
    predict = f"/api/releases/{found['id']}/predict"
    answer = client.post(predict, json={"points": [[30.0, "west"], [30.0, "east"]]}).json()
    assert answer["mean"][0] == pytest.approx(found["denoised"][0])
    assert answer["std"][1] > answer["std"][0]  # nobody knows the east
    for wrong in (["west", 30.0], [30.0]):
        check_refused(client.post(predict, json={"points": [wrong]}), 422, "bad_input")
    table = client.get(f"/api/releases/{found['id']}/csv").text.splitlines()
    assert table[1].startswith('30,"west",')
    assert redone(clinic, found["id"], tmp_path) == clinic.state.folder.release(found["id"]).read_bytes()


def test_counts_have_rates_by_date(clinic):
    count = {"outcome": "count", "classes": None, "output": "visits", "bounds": [0, 20], "inputs": ["day"]}
    found = plan_and_release(clinic, "visits", **count, at={"points": [["2024-02-03"], ["2024-05-31"]]})
    assert min(found["lower"]) > 0
    assert cloakgp.load(clinic.state.folder.release(found["id"])).plan.columns.response == "visits"
    asked = {"points": [["2024-05-31"]]}
    answer = clinic.client().post(f"/api/releases/{found['id']}/predict", json=asked).json()
    assert answer["mean"] == pytest.approx(found["denoised"][1:])
    refused = clinic.client().post(f"/api/releases/{found['id']}/predict", json={"points": [["soon"]]})
    assert "must hold dates in 'day'" in refused.json()["error"]


def test_classes_have_a_probability_each(clinic):
    """Named by whoever plans: all that there may be, whether or not a row has it. Each has its own map."""
    names = ["nørd", "west", "elsewhere"]  # south is none of them
    of = {"outcome": "classes", "classes": names, "output": "clinic", "inputs": ["age", "ward"]}
    where = {"points": [[30.0, 10], [60.0, 11]]}
    found = plan_and_release(clinic, "clinics", {"missing": "midpoint"}, **of, data="modes.csv", at=where)
    each = {one.pop("name"): one for one in found["by_class"]}
    assert list(each) == names
    assert found["denoised"] is None
    assert np.allclose(np.sum([one["probability"] for one in each.values()], axis=0), 1)
    assert {len(one[part]) for one in each.values() for part in ("noise_std", "unknown")} == {2}
    client, path = clinic.client("analyst"), f"/api/releases/{found['id']}"
    answer = client.post(f"{path}/predict", json={"points": [[60.0, 11]]}).json()
    assert answer["mean"] is None
    told = {one["name"]: one["probability"] for one in answer["by_class"]}
    assert told["west"] == pytest.approx(each["west"]["probability"][1:])
    assert "probability_west,std_west,lower_west" in client.get(f"{path}/csv").text
    drawn = [client.get(f"{path}/picture/svg?of={one}").content for one in names[:2]]
    assert drawn[0] != drawn[1]
    maps = [client.post(f"{path}/map", json={"of": one, "coarse": True}).json() for one in names[:2]]
    assert maps[0]["views"]["prediction"]["values"] != maps[1]["views"]["prediction"]["values"]
    check_refused(client.get(f"{path}/picture/svg?of=perhaps"), 422, "bad_input", "classes")


def test_a_described_model_has_categories_and_whole_rows_a_way_of_writing(clinic, tmp_path):
    kernel = "EQ(10, variance=0.1, active_dims=[0]) * Category(0.5, active_dims=[1])"
    real = {"classes": None, "outcome": "real", "bounds": [0, 1]}
    described = {**real, "kernel": kernel, "noise": 0.1, "inputs": ["age", "clinic"], "at": "grid:4"}
    seen = clinic.client().post("/api/preview", json={**SETTINGS, **described}).json()
    assert len(seen["points"]) == 12
    box = {"age": {"low": 0, "high": 90, "cells": 9}}
    whole = {"protect": "rows", "inputs": ["age"], "box": box, "decimal": ",", "encoding": "latin-1"}
    made = plan_and_release(clinic, "kung", **whole, data="private.csv", at="grid:5", epsilon=0.5)
    assert made["settings"]["decimal"] == ","
    assert min(made["lower"]) > 0
    assert redone(clinic, made["id"], tmp_path) == clinic.state.folder.release(made["id"]).read_bytes()
