"""Tables of many rows in the app: inducing inputs, quick previews, plans that do not hold their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_helpers import SETTINGS, World, check_refused, make_plan, make_world, release, table

from cloakgp.app.limits import Most
from cloakgp.data import cells
from cloakgp.release import encoding

ROWS = Most.exact_rows + 100
MANY: dict[str, Any] = {**SETTINGS, "data": "many.csv", "inducing": 12}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table with more rows than an exact GP is made for here."""
    world = make_world(tmp_path_factory.mktemp("many") / "data")
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(0, 80, ROWS), "height": rng.uniform(100, 160, ROWS).round(1)}
    assert world.client().put("/api/data/many.csv", content=table(columns)).status_code == 201
    return world


def test_a_large_table_needs_inducing_inputs(many, monkeypatch):
    client, exact = many.client(), {**MANY, "inducing": None}
    refused = client.post("/api/preview", json=exact)
    check_refused(
        refused, 422, "bad_input", f"With inducing inputs, or a model that is learned, it can be {Most.rows}"
    )
    assert "inducing" not in client.post("/api/preview", json={**exact, "kind": "function"}).json()["error"]
    me = client.get("/api/me").json()
    assert (me["exact_rows"], me["most_rows"], me["most_inducing"]) == (6000, 1_000_000, 500)
    monkeypatch.setattr(Most, "rows_of_many_points", ROWS - 1)
    refused = client.post("/api/preview", json={**MANY, "at": "grid:501"})
    check_refused(refused, 422, "bad_input", "limit of 500")


def test_other_inducing_inputs_are_another_plan_and_the_same_are_not_worked_out_again(many, monkeypatch):
    """Also while what was worked out for the first is kept."""
    client = many.client()
    first, second = (client.post("/api/preview", json={**MANY, "inducing": n}).json() for n in (2, 12))
    assert first["noise_std"] != second["noise_std"]
    plan = make_plan(client, **MANY)
    assert plan != make_plan(client, **{**MANY, "inducing": 11})
    monkeypatch.setattr(type(many.state.planning), "plan", lambda *_: pytest.fail("planned again"))
    assert make_plan(client, **MANY) == plan


def test_a_plan_without_its_inputs_is_released_from_the_table(many, monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 64)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 1000)
    client = many.client()
    plan = make_plan(client, **{**MANY, "epsilon": 0.3})
    got = client.get(f"/api/releases/{release(client, plan).json()['release']['id']}").json()
    assert "their digest" in got["limits"][0]
    assert len(got["inputs_sample"]) == 12  # the inducing inputs, which stand for them
    assert np.isfinite(got["denoised"]).all()
    checked = client.get(f"/api/releases/{got['id']}/verify").json()  # amber on the page, never green
    assert (checked["ok"], checked["complete"]) == (True, False)
    assert not release(client, plan).json()["receipt"]["spent"]
