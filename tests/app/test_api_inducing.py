"""Tables of many rows in the app: inducing inputs, quick previews, plans that do not hold their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_helpers import SETTINGS, World, make_plan, make_world, release, table

import cloakgp
from cloakgp.app import limits
from cloakgp.plans import encoding, out_of_core

ROWS = limits.ROWS + 100
MANY: dict[str, Any] = {**SETTINGS, "data": "many.csv", "inducing": 12}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table with more rows than an exact GP is made for here."""
    world = make_world(tmp_path_factory.mktemp("many") / "data")
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(0, 80, ROWS), "height": rng.uniform(100, 160, ROWS).round(1)}
    assert world.client().put("/api/data/many.csv", content=table(columns)).status_code == 201
    return world


def test_a_large_table_needs_inducing_inputs(many):
    client = many.client()
    refused = client.post("/api/preview", json={**MANY, "inducing": None})
    assert refused.status_code == 422
    assert "With inducing inputs, or a model that is learned, it can be 1000000" in refused.json()["error"]
    function = client.post("/api/preview", json={**MANY, "inducing": None, "kind": "function"})
    assert "inducing" not in function.json()["error"]
    assert client.post("/api/preview", json={**MANY, "inducing": limits.INDUCING + 1}).status_code == 422
    assert client.post("/api/preview", json={**MANY, "inducing": 0}).status_code == 422
    me = client.get("/api/me").json()
    assert (me["exact_rows"], me["most_rows"], me["most_inducing"]) == (6000, 1_000_000, 500)
    assert "inducing inputs" in client.get("/api/terms").json()


@pytest.mark.usefixtures("drawn_once")
def test_from_a_large_table_to_a_prediction(many, tmp_path):
    client = many.client()
    preview = client.post("/api/preview", json=MANY).json()
    assert preview["exact"]
    plan = make_plan(client, **MANY)
    assert client.get(f"/api/plans/{plan}").json()["certificate"] == preview["certificate"]
    made = release(client, plan).json()["release"]
    where = f"/api/releases/{made['id']}"
    assert client.get(where).json()["noise_std"] == pytest.approx(preview["noise_std"])
    checked = client.get(f"{where}/verify").json()
    assert (checked["ok"], checked["complete"]) == (True, True)
    assert "12 inducing inputs (dtc)" in client.get(f"{where}/report").text
    assert "inducing=12" in client.get(f"{where}/script").text
    (tmp_path / "got.cloak").write_bytes(client.get(f"{where}/file").content)
    assert len(cloakgp.Release.load(tmp_path / "got.cloak").plan.gp.inducing) == 12


def test_other_inducing_inputs_are_another_plan(many):
    """Also while what was worked out for the first is kept."""
    client = many.client()
    first, second = (client.post("/api/preview", json={**MANY, "inducing": n}).json() for n in (2, 12))
    assert first["noise_std"] != second["noise_std"]
    assert make_plan(client, **MANY) != make_plan(client, **{**MANY, "inducing": 11})


def test_a_quick_preview_is_near_the_exact_noise(many, monkeypatch):
    client = many.client()
    exact = client.post("/api/preview", json=MANY).json()
    monkeypatch.setattr(limits, "SKETCHED", 1000)
    quick = client.post("/api/preview", json=MANY).json()
    assert (quick["exact"], quick["certificate"]) == (False, None)
    assert quick["points"] == exact["points"]
    assert quick["noise_std"] == pytest.approx(exact["noise_std"], rel=0.15)
    assert quick["noise_std"] != exact["noise_std"]
    for name in ("gp_std", "expected_error"):
        assert quick[name] == pytest.approx(exact[name], rel=0.15)
    asked = {"settings": MANY, "epsilons": [0.5]}
    (point,) = client.post("/api/preview/curve", json=asked).json()
    assert point["rms"] == pytest.approx(quick["error_summary"]["rms"])
    assert point["paper_rms"] > point["noise_rms"] == pytest.approx(quick["summary"]["rms"])
    kept = client.get(f"/api/plans/{make_plan(client, **MANY)}").json()
    assert kept["summary"] == pytest.approx(exact["summary"])


def test_a_plan_without_its_inputs_is_released_from_the_table(many, monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 1000)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 1000)
    client = many.client()
    plan = make_plan(client, **{**MANY, "epsilon": 0.3})
    made = release(client, plan)
    assert made.status_code == 200, made.text
    got = client.get(f"/api/releases/{made.json()['release']['id']}").json()
    assert "their digest" in got["limits"][0]
    assert len(got["inputs_sample"]) == 12  # the inducing inputs, which stand for them
    assert np.isfinite(got["denoised"]).all()
    again = release(client, plan).json()
    assert not again["receipt"]["spent"]


def test_many_rows_allow_for_fewer_test_points(many, monkeypatch):
    monkeypatch.setattr(limits, "MANY_ROWS", ROWS - 1)
    client = many.client()
    refused = client.post("/api/preview", json={**MANY, "at": "grid:501"})
    assert (refused.status_code, "at most 500" in refused.json()["error"]) == (422, True)


def test_a_plan_that_is_kept_is_not_worked_out_again(many, monkeypatch):
    client = many.client()
    plan = make_plan(client, **MANY)
    monkeypatch.setattr(type(many.state.planning), "plan", lambda *_: pytest.fail("planned again"))
    assert make_plan(client, **MANY) == plan


def test_a_small_table_may_have_them_too(world):
    client = world.client()
    exact = client.post("/api/preview", json=SETTINGS).json()
    sparse = client.post("/api/preview", json={**SETTINGS, "inducing": 8}).json()
    assert sparse["exact"]
    assert sparse["noise_std"] == pytest.approx(exact["noise_std"], rel=0.2)
    refused = client.post("/api/preview", json={**SETTINGS, "inducing": 8, "kind": "function"})
    assert (refused.status_code, "exact GP" in refused.json()["error"]) == (422, True)


def test_a_large_release_without_its_inputs_is_verified_in_part(many, monkeypatch):
    """Its file holds only their digest: amber on the page, never green."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 0)
    client = many.client()
    made = release(client, make_plan(client, **MANY)).json()["release"]
    checked = client.get(f"/api/releases/{made['id']}/verify").json()
    assert (checked["ok"], checked["complete"]) == (True, False)
    assert checked["words"].startswith("verified IN PART")
