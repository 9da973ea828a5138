"""From a table to a prediction, through the API; and what must not happen on the way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from app_helpers import (
    LEARNED,
    LOOSE,
    SETTINGS,
    World,
    ages,
    check_refused,
    make_plan,
    make_world,
    opened,
    redone,
    release,
    released_of,
    spends,
    table,
)
from asgi_client import Client

import cloakgp
from blas_watch import watched
from cloakgp.app import Limits, State, create_app, planning
from cloakgp.data import blas
from cloakgp.plots import NEAR_PRIOR, surface_of
from cloakgp.release.planner import Planner
from cloakgp.workflow import report
from cloakgp.workflow.pictures import release_map


@pytest.mark.usefixtures("drawn_once")
def test_a_newcomers_path_from_a_table_to_a_picture(world, tmp_path):
    """Beside what holds of every kind of release: test_api_contract.py."""
    client = world.client()
    (listed,) = client.get("/api/data").json()
    told = {"shown": "heights.csv", "columns": ["age", "height"], "rows": 40, "who": []}
    assert listed == {**told, "name": "heights.csv", "bytes": listed["bytes"]}
    asked = {"inputs": ["age"]}
    facts = client.post("/api/data/heights.csv/inputs", json=asked).json()
    assert facts["rows"] == len(facts["sample"]) == 40
    assert facts["ranges"]["age"] == [min(facts["sample"])[0], max(facts["sample"])[0]]

    preview = client.post("/api/preview", json=SETTINGS).json()
    X = np.array(ages())[:, None]
    gp = cloakgp.GP(cloakgp.kernels.EQ(20, variance=625), 196.0, (50.0, 170.0))
    expected = gp.plan(X, X_star=np.array(preview["points"]), epsilon=0.5, delta=0.01)
    np.testing.assert_allclose(preview["expected_error"], expected.expected_error)
    assert preview["unknown"] == (expected.expected_error >= NEAR_PRIOR * 25.0).tolist()
    assert preview["error_summary"]["largest"] == pytest.approx(max(preview["expected_error"]))

    answer = release(client, make_plan(client), units="cm", source="Generated").json()
    where = f"/api/releases/{answer['release']['id']}"
    made = client.get(where).json()
    assert made["noise_std"] == pytest.approx(preview["noise_std"])
    file = tmp_path / "got.cloak"
    file.write_bytes(client.get(f"{where}/file").content)
    assert cloakgp.verify(file).epsilon == 0.5
    assert cloakgp.load(file).mean.tolist() == made["released"]
    assert cloakgp.load(file).labels.words() == {"units": "cm", "source": "Generated"}
    assert client.get(f"{where}/csv").text.splitlines()[0] == "age,released,noise_std,denoised,denoised_std"
    report, left = client.get(f"{where}/report").text, answer["receipt"]["left_release"]
    assert "<h1>growth</h1>" in report
    assert f"1 spend was made. One more release may have ε up to {left:.3g}" in report
    for kind, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert client.get(f"{where}/picture/{kind}").content.startswith(begins)
    predicted = client.post(f"{where}/predict", json={"points": made["points"]}).json()
    assert predicted["mean"] == pytest.approx(made["denoised"])
    book = client.get("/api/ledger").json()
    assert book["datasets"][0]["events"] == 1
    assert book["entries"][-1]["hash"] == book["head"] == answer["receipt"]["head"]


def test_designs_are_compared_by_what_readers_will_be_off_by(world):
    found = world.client().post("/api/preview/designs", json=SETTINGS).json()
    assert found["design"] == ["mse", "max", "posterior", "volume"]
    errors = dict(zip(found["design"], found["expected_error"], strict=True))
    assert found["best"] == min(errors, key=errors.get)
    assert "Least expected error" in found["notes"][0]
    learned = {**SETTINGS, "kernel": None, "noise": None, "design": None}
    assert world.client().post("/api/preview/designs", json=learned).status_code == 422


@pytest.mark.parametrize("design", ["mse", "posterior"])
def test_noise_against_epsilon_is_that_of_real_plans(world, design):
    client, settings = world.client(), {**SETTINGS, "design": design}
    asked = {"settings": settings, "epsilons": [0.2, 2.0]}
    curve = client.post("/api/preview/curve", json=asked).json()
    for point in curve:
        plan = client.post("/api/preview", json={**settings, "epsilon": point["epsilon"]}).json()
        told = plan["error_summary"]["rms"], plan["error_summary"]["largest"], plan["summary"]["rms"]
        assert [point[name] for name in ("rms", "largest", "noise_rms")] == pytest.approx(told, rel=1e-6)
    assert curve[0]["paper_rms"] > curve[0]["noise_rms"]
    assert curve[1]["paper_rms"] is None


@pytest.mark.parametrize(("kind", "design"), [("predictions", "max"), ("function", "mse")])
def test_another_promise_is_previewed_without_another_plan(world, monkeypatch, kind, design):
    client, asked = world.client(), {**SETTINGS, "kind": kind, "design": design}
    first = client.post("/api/preview", json=asked).json()
    monkeypatch.setattr(Planner, "plan", lambda *_, **__: pytest.fail("planned again"))
    monkeypatch.setattr(planning, "plan_from", lambda *_, **__: pytest.fail("planned again"))
    other = {**asked, "epsilon": 2.0, "delta": 0.001}
    quick = client.post("/api/preview", json=other).json()
    assert "(2, 0.001)-differential privacy" in quick["promise"][2]
    assert (quick["exact"], quick["certificate"]) == (True, None)
    assert (np.array(quick["expected_error"]) < first["expected_error"]).all()
    monkeypatch.undo()
    kept = client.get(f"/api/plans/{make_plan(client, **other)}").json()
    for name in ("summary", "error_summary"):
        assert quick[name] == pytest.approx(kept[name], rel=1e-6)


def test_a_near_design_is_rough_and_then_the_best(world):
    """A `posterior` design is another one for each promise: the last does for a moment."""
    client, asked = world.client(), {**SETTINGS, "design": "posterior"}
    client.post("/api/preview", json=asked)
    other = {**asked, "epsilon": 1.0}
    near, best = (client.post(f"/api/preview?rough={rough}", json=other).json() for rough in (True, False))
    assert [near["rough"], best["rough"], near["exact"], best["exact"]] == [True, False, False, True]
    assert near["certificate"] is None
    assert best["certificate"]["epsilon"] == 1.0
    assert best["error_summary"]["rms"] < near["error_summary"]["rms"] < 1.2 * best["error_summary"]["rms"]


OTHERS = [
    {"kernel": "EQ(5, variance=625)"},
    {"noise": 50.0},
    {"mean": 60.0},
    {"bounds": [0.0, 200.0]},
    {"at": "grid:5"},
    {"at": {"points": [[3.0]]}},
    {"delta": 1e-6},
    {"inducing": 5},
    {"design": "max"},
    {"inputs": ["height"], "output": "age"},
    {"protect": "people", "people": "height"},
    {"protect": "people", "people": "height", "within": 0.0},
]


@pytest.mark.parametrize(
    "base", [SETTINGS, {**SETTINGS, "kind": "function"}, LEARNED], ids=["known", "function", "learned"]
)
def test_what_is_kept_is_not_taken_for_the_answer_to_another_question(tmp_path, base):
    """After each other on one server, and each on a server of its own."""
    data = table({"age": [1.0, 2.0, 5.0, 9.0], "height": [1.0, 1.0, 3.0, 3.0], "weight": [60.0] * 4})
    asked = [{**base, "data": "small.csv", "output": "weight", **more} for more in ({}, *OTHERS)]
    found = []
    for own in (False, True):
        world = make_world(tmp_path / f"data {own}")
        client = world.client()
        client.put("/api/data/small.csv", content=data)
        answers = []
        for each in asked:
            client = world.restarted().client() if own else client
            answer = client.post("/api/preview", json=each).json()
            answers.append({**answer, "milliseconds": 0, "certificate": None})
        found.append(answers)
    for each, one, other in zip(asked, *found, strict=True):
        assert one == pytest.approx(other) if "error" in one else one["points"] == other["points"], each
        for name in ("expected_error", "noise_std") if "points" in one else ():
            assert one[name] == pytest.approx(other[name], rel=1e-6), (each, name)


def test_a_report_knows_what_was_spent_since(world, monkeypatch):
    client = world.client()
    monkeypatch.setattr(report, "html", lambda *_, ledger, **__: str(len(ledger.balance("kung").events)))
    made = release(client, make_plan(client, epsilon=0.1)).json()["release"]["id"]
    assert client.get(f"/api/releases/{made}/report").text == "1"
    release(client, make_plan(client, epsilon=0.2))
    assert client.get(f"/api/releases/{made}/report").text == "2"


HOMES = {"data": "homes.csv", "output": "price", "bounds": [0.0, 1.0], "noise": 0.02}


def put_homes(client: Client, *numeric: str, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    columns = {**{name: rng.uniform(size=30) for name in (*numeric, "price")}, **more}
    assert client.put("/api/data/homes.csv", content=table(columns)).status_code == 201
    return columns


def test_a_map_of_places_has_longitude_across_and_a_coarse_one_comes_first(world):
    client = world.client()
    columns = put_homes(client, "lat", "lon")
    settings = {**SETTINGS, **HOMES, "inputs": ["lat", "lon"], "kernel": "Matern32([0.3, 0.4], variance=0.1)"}
    settings |= {"at": {"points": [[0.2, 0.3], [0.5, 0.6]]}}
    plane = client.post("/api/preview", json=settings).json()["plane"]
    assert plane == {"places": [1, 0], "aspect": pytest.approx(1.0, abs=1e-3)}
    got = released_of(client, settings)
    assert got["points"] == [[0.2, 0.3], [0.5, 0.6]]
    expected = surface_of(world.state.releases.load(got["id"]))
    url = f"/api/releases/{got['id']}"
    coarse, fine, again = (
        world.client("analyst").post(f"{url}/map", json={"coarse": first}).json()
        for first in (True, False, True)
    )
    assert coarse["places"] == fine["places"] == [1, 0]
    assert coarse["coarse"]
    assert len(coarse["across"]) < len(fine["across"])
    assert again == fine  # which is there now
    for name, view in expected.views.items():
        assert np.allclose(fine["views"][name]["values"], view.values)
    unknown = np.array(fine["near_prior"]) >= fine["unknown_from"]
    assert np.array_equal(unknown, expected.unknown)
    there = set(zip(columns["lon"].tolist(), columns["lat"].tolist(), strict=True))
    assert len(fine["inputs"]) == len(expected.inputs)
    assert {tuple(dot) for dot in fine["inputs"]} <= there
    for points in ([[0.2]], [[0.2, 0.1], [1.0]]):
        check_refused(client.post(f"{url}/predict", json={"points": points}), 422, "bad_input", "points")


def test_a_map_is_over_the_inputs_and_at_the_levels_that_one_chooses(world):
    client, inputs = world.client(), ["x", "kind", "day", "age"]
    put_homes(client, "x", "age", kind=["flat", "house"] * 15, day=["2024-01-01", "2024-03-01"] * 15)
    more = {"inputs": inputs, "at": "grid:2", "kernel": "EQ([0.3, 1, 30, 0.4], variance=0.1)"}
    made = released_of(client, {**SETTINGS, **HOMES, **more})
    assert made["has_map"]
    url = f"/api/releases/{made['id']}"
    chosen = {"coordinates": ["age", "x"], "held": {"kind": "house", "day": "2024-02-01"}, "coarse": True}
    found = client.post(f"{url}/map", json=chosen).json()
    assert (found["places"], found["geographic"], found["aspect"]) == ([3, 0], False, None)
    held = {"kind": "house", "day": 8797.0}  # since 2000
    assert found["held"] == held
    file = world.state.releases.load(made["id"])
    expected = surface_of(file, coordinates=["age", "x"], geographic=False, held=held, points=16)
    assert np.allclose(found["views"]["prediction"]["values"], expected.prediction)
    drawn = release_map(file, coordinates=["age", "x"], held=held)
    assert "kind held at house, day held at 2024-02-01" in drawn.figure().axes[0].get_title("left")
    for wrong in ({"kind": "castle"}, {"garden": 1.0}, {"day": "soon"}, {"x": 0.5, "day": 3.0}):
        refused = client.post(f"{url}/map", json={**chosen, "coordinates": ["x", "age"], "held": wrong})
        check_refused(refused, 422, "bad_input", "held")
    ages_across = "?coordinates=age&coordinates=x"
    asked = ["", "?coordinates=x&coordinates=age", ages_across, f"{ages_across}&geographic=true"]
    asked += [f"{ages_across}&held=" + quote(json.dumps(chosen["held"])), f"{ages_across}&view=uncertainty"]
    pictures = [client.get(f"{url}/picture/svg{each}") for each in asked]
    assert {answer.status_code for answer in pictures} == {200}
    assert len({answer.content for answer in pictures}) == len(asked)
    for wrong in (
        "coordinates=x",
        "coordinates=x&coordinates=kind",
        "coordinates=x&coordinates=garden",
        "held=kind",
        "held=" + quote('{"kind": "castle"}'),
        "of=flat",
        "view=house",
        "geographic=perhaps",
        "axes=x",
    ):
        refused = client.get(f"{url}/picture/svg?{wrong}")
        check_refused(refused, 422, "bad_input")
        assert refused.json()["error"].startswith(wrong.split("=")[0])


@pytest.mark.parametrize(
    ("settings", "asked", "status", "code", "named"),
    [
        ({"epsilon": 2.0}, {}, 409, "budget_exceeded", ""),
        *[({}, {"confirm": word}, 422, "bad_input", "confirm") for word in ("", "Kung", "kung ", "other")],
        ({}, {"why": "a\u2028b"}, 422, "bad_input", "why"),  # which is not blamed on the output
        ({}, {"dataset": "others"}, 404, "not_found", "data set"),
        ({}, {"number": 3}, 409, "conflict", "number"),
    ],
)
def test_a_release_that_is_refused_spends_nothing(world, settings, asked, status, code, named):
    client = world.client()
    answer = release(client, make_plan(client, **settings), **asked)
    check_refused(answer, status, code, named)
    assert spends(world) == 0
    assert client.get("/api/releases").json() == []
    assert list(world.state.folder.releases.iterdir()) == []


def test_asked_again_a_release_costs_nothing_unless_its_number_is_a_new_one(world):
    client = world.client()
    plan, found = make_plan(client, epsilon=0.3), []
    for number, spent in ((1, True), (1, False), (2, True), (2, False)):  # a lost answer is asked for again
        asked = {"dataset": "kung", "number": number}
        quote = client.post(f"/api/plans/{plan}/quote", json=asked).json()
        assert (quote["known"] is None) == spent
        assert (quote["left_after"]["release"] < quote["left_before"]["release"]) == spent
        answer = release(client, plan, number=number).json()
        assert answer["receipt"]["spent"] == spent
        found.append(answer["release"])
    assert found[0] == found[1] != found[2] == found[3]
    assert found[0]["id"] != found[2]["id"]
    assert spends(world) == 2


def test_releases_at_the_same_time_are_paid_for_once(world):
    """Several clicks are one release: the others are told to ask again, or get the same answer."""
    plan = make_plan(world.client())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: release(world.client(), plan), range(8)))
    assert {answer.status_code for answer in answers} <= {200, 503}
    granted = [answer.json() for answer in answers if answer.status_code == 200]
    assert sum(answer["receipt"]["spent"] for answer in granted) == 1
    assert len({answer["release"]["id"] for answer in granted}) == 1
    assert spends(world) == 1


def test_an_analysts_script_reads_the_file_and_nothing_else(released, tmp_path):
    """In a process of its own; the custodian's is run in test_api_contract.py."""
    world, _, release_id = released
    client, where = world.client("analyst"), f"/api/releases/{release_id}"
    (tmp_path / f"{release_id}.cloak").write_bytes(client.get(f"{where}/file").content)
    text = client.get(f"{where}/script").text
    assert "PATH/TO" not in text
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "verified: (0.5, 0.01)-DP" in done.stdout


@pytest.mark.usefixtures("few_models", "drawn_once")
@pytest.mark.parametrize("settings", [SETTINGS, LEARNED], ids=["known", "learned"])
def test_the_app_and_its_scripts_have_one_blas_thread(settings, world, tmp_path, monkeypatch):
    """Also for a large plan: another number of threads could give another one, for which nobody paid."""
    monkeypatch.setattr(blas, "LARGE", 0)
    client = world.client()
    with watched() as several:
        assert client.post("/api/preview", json=settings).status_code == 200
        made = released_of(client, settings)["id"]
        for what in ("", "/csv", "/report", "/picture/png", "/verify"):
            assert client.get(f"/api/releases/{made}{what}").status_code == 200, what
        asked = {"points": [[1.0], [2.0]], "level": 0.9}
        assert client.post(f"/api/releases/{made}/predict", json=asked).status_code == 200
    assert several == set()
    with watched(for_good=True) as several:
        redone(world, made, tmp_path)
    assert several == set()


def test_a_slow_answer_is_announced_and_the_work_goes_on(tmp_path, monkeypatch):
    patient = make_world(tmp_path / "data")
    plan = make_plan(patient.client())
    hasty = Limits(answer_seconds=0.3, requests_at_once=1, requests_per_second=1e6, burst=10**6)
    world = World(*opened(tmp_path / "data", hasty), patient.tokens)
    client = world.client()
    from cloakgp.app.releases import Releases

    finish, begun = Releases.finish, []

    def slowly(self: Any, *arguments: Any) -> Any:
        begun.append(1)
        time.sleep(1.0)
        return finish(self, *arguments)

    monkeypatch.setattr(Releases, "finish", slowly)
    answer = release(client, plan)
    check_refused(answer, 503, "busy")
    assert release(client, plan).status_code == 429  # what goes on still counts
    while release(client, plan).status_code in (429, 503):
        time.sleep(0.05)
    assert spends(world) == len(begun) == 1


def test_the_demo_has_generated_data_and_a_budget(tmp_path):
    """And is the same when it is started again, spends included."""
    for _ in range(2):
        state = State(tmp_path / "data", limits=LOOSE, demo=True)
        world = World(state, create_app(state))
        _, world.tokens["custodian"] = state.accounts.add("custodian", "custodian", 1)
        client = world.client()
        assert client.get("/api/me").json()["demo"]
        (listed,) = client.get("/api/data").json()
        assert (listed["name"], listed["columns"], listed["rows"]) == ("heights.csv", ["age", "height"], 287)
        (dataset,) = client.get("/api/ledger").json()["datasets"]
        assert (dataset["name"], dataset["epsilon"], dataset["delta"]) == ("kung", 1.0, 0.01)
        assert release(client, make_plan(client)).status_code == 200
    assert spends(world) == 1
