"""From a table to a prediction, through the API; and what must not happen on the way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from app_helpers import LOOSE, SETTINGS, World, ages, make_plan, make_world, opened, redone, release, table
from asgi_client import Client

import cloakgp
from blas_watch import watched
from cloakgp.app import Limits, create_app, open_state, planning
from cloakgp.ledger import Ledger
from cloakgp.plans import out_of_core
from cloakgp.plans.planner import Planner
from cloakgp.plots import NEAR_PRIOR, surface_of
from cloakgp.rows import blas
from cloakgp.workflow import report
from cloakgp.workflow.pictures import release_map


def spends(world: World) -> int:
    return sum(entry.kind == "spent" for entry in Ledger(world.state.ledger_url).entries())


@pytest.mark.usefixtures("drawn_once")
def test_a_newcomers_path_from_a_table_to_a_prediction(world, tmp_path):
    """Upload, look at inputs, preview, plan, quote, release, predict, download, verify."""
    client = world.client()
    (listed,) = client.get("/api/data").json()
    assert listed == {
        "shown": "heights.csv",
        "name": "heights.csv",
        "columns": ["age", "height"],
        "rows": 40,
        "bytes": listed["bytes"],
        "who": [],
    }
    facts = client.post(
        "/api/data/heights.csv/inputs", json={"inputs": ["age"], "bounds": [50.0, 170.0]}
    ).json()
    assert facts["rows"] == 40
    assert len(facts["sample"]) == 40
    assert facts["ranges"]["age"] == [min(facts["sample"])[0], max(facts["sample"])[0]]
    assert cloakgp.kernels.words.parse(facts["suggested"]["kernel"])

    preview = client.post("/api/preview", json=SETTINGS).json()
    assert len(preview["points"]) == len(preview["noise_std"]) == len(preview["gp_std"]) == 12
    X = np.array(ages())[:, None]
    gp = cloakgp.GP(cloakgp.kernels.EQ(20, variance=625), 196.0, (50.0, 170.0))
    expected = gp.plan(X, X_star=np.array(preview["points"]), epsilon=0.5, delta=0.01)
    np.testing.assert_allclose(preview["expected_error"], expected.expected_error)
    assert preview["unknown"] == (expected.expected_error >= NEAR_PRIOR * 25.0).tolist()
    assert preview["error_summary"]["largest"] == pytest.approx(max(preview["expected_error"]))
    plan = make_plan(client)
    kept = client.get(f"/api/plans/{plan}").json()
    assert kept["certificate"] == preview["certificate"]
    for name in ("summary", "error_summary"):
        assert kept[name] == pytest.approx(preview[name])
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}).json()
    assert quote["fits"]
    assert quote["known"] is None
    assert quote["left_after"]["release"] < quote["left_before"]["release"]

    answer = release(client, plan, units="cm", source="Generated").json()
    assert answer["receipt"]["spent"]
    assert answer["receipt"]["left_release"] == quote["left_after"]["release"]
    made = client.get(f"/api/releases/{answer['release']['id']}").json()
    assert made["noise_std"] == pytest.approx(preview["noise_std"])
    assert len(made["released"]) == len(made["denoised"]) == len(made["denoised_std"]) == 12
    where = f"/api/releases/{made['id']}"
    checked = client.get(f"{where}/verify").json()
    assert (checked["ok"], checked["complete"]) == (True, True)

    file = tmp_path / "got.cloak"
    file.write_bytes(client.get(f"{where}/file").content)
    assert cloakgp.verify(file).epsilon == 0.5
    assert cloakgp.Release.load(file).mean.tolist() == made["released"]
    assert cloakgp.load(file).labels.words() == {"units": "cm", "source": "Generated"}
    assert client.get(f"{where}/csv").text.splitlines()[0] == "age,released,noise_std,denoised,denoised_std"
    report = client.get(f"{where}/report").text
    assert "<h1>growth</h1>" in report
    left = answer["receipt"]["left_release"]
    assert f"1 spend was made. One more release may have ε up to {left:.3g}" in report
    for kind, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert client.get(f"{where}/picture/{kind}").content.startswith(begins)
    asked = {"points": made["points"], "level": 0.9}
    predicted = client.post(f"{where}/predict", json=asked).json()
    assert predicted["mean"] == pytest.approx(made["denoised"])
    assert all(
        low < mean < high
        for low, mean, high in zip(*(predicted[k] for k in ("lower", "mean", "upper")), strict=True)
    )

    book = client.get("/api/ledger").json()
    assert book["verified"]
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


def test_noise_against_epsilon_is_that_of_real_plans(world):
    client = world.client()
    for design in ("mse", "posterior"):
        asked = {"settings": {**SETTINGS, "design": design}, "epsilons": [0.2, 2.0]}
        curve = client.post("/api/preview/curve", json=asked).json()
        for point in curve:
            plan = client.post(
                "/api/preview", json={**SETTINGS, "design": design, "epsilon": point["epsilon"]}
            )
            assert point["rms"] == pytest.approx(plan.json()["error_summary"]["rms"], rel=1e-6)
            assert point["largest"] == pytest.approx(plan.json()["error_summary"]["largest"], rel=1e-6)
            assert point["noise_rms"] == pytest.approx(plan.json()["summary"]["rms"], rel=1e-6)
        assert curve[0]["paper_rms"] > curve[0]["noise_rms"]
        assert curve[1]["paper_rms"] is None


@pytest.mark.parametrize(("kind", "design"), [("predictions", "max"), ("function", "mse")])
def test_another_promise_is_previewed_without_another_plan(world, monkeypatch, kind, design):
    client, asked = world.client(), {**SETTINGS, "kind": kind, "design": design}
    first = client.post("/api/preview", json=asked).json()
    monkeypatch.setattr(Planner, "plan", lambda *_, **__: pytest.fail("planned again"))
    monkeypatch.setattr(cloakgp.GP, "plan_function", lambda *_, **__: pytest.fail("planned again"))
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


def test_what_a_kept_planner_holds_is_counted(monkeypatch):
    """A `posterior` plan with inducing inputs holds a matrix where others hold a recipe."""
    monkeypatch.setattr(out_of_core, "DENSE", 1000)
    gp = cloakgp.GP(cloakgp.kernels.EQ(40), 1.0, (0.0, 1.0), inducing=12)
    planner = gp.planner(np.arange(400.0)[:, None], X_star=np.linspace(0.0, 400.0, 10)[:, None])
    planner.plan(epsilon=1.0, design="posterior")
    held = planner.last["posterior"].measurement.matrix.size
    assert held > 2 * out_of_core.DENSE
    assert 5 * held < planning._numbers(planner) < 12 * held  # and where its searches start from


def test_delta_need_not_be_said(world):
    """For 40 rows, the largest power of ten below 1/400."""
    client, asked = world.client(), {name: SETTINGS[name] for name in SETTINGS if name != "delta"}
    preview = client.post("/api/preview", json=asked).json()
    assert (preview["delta"], preview["certificate"]["delta"]) == (0.001, 0.001)
    for path, body in (("curve", {"settings": asked, "epsilons": [1.0]}), ("designs", asked)):
        assert client.post(f"/api/preview/{path}", json=body).status_code == 200
    made = client.post("/api/plans", json={"settings": asked, "name": "growth"}).json()
    assert made["settings"]["delta"] == 0.001
    assert made["id"] == make_plan(client, delta=0.001)


def test_a_report_knows_what_was_spent_since(world, monkeypatch):
    client = world.client()
    monkeypatch.setattr(report, "html", lambda *_, ledger, **__: str(len(ledger.balance("kung").events)))
    made = release(client, make_plan(client, epsilon=0.1)).json()["release"]["id"]
    assert client.get(f"/api/releases/{made}/report").text == "1"
    release(client, make_plan(client, epsilon=0.2))
    assert client.get(f"/api/releases/{made}/report").text == "2"


def test_a_function_can_be_released_and_asked(world):
    client = world.client()
    plan = make_plan(client, kind="function")
    answer = release(client, plan).json()
    made = client.get(f"/api/releases/{answer['release']['id']}").json()
    assert made["kind"] == "function"
    assert len(made["released"]) == len(made["points"]) == 201
    asked = client.post(f"/api/releases/{made['id']}/predict", json={"points": [[3.0]]})
    assert asked.status_code == 200
    assert client.get(f"/api/releases/{made['id']}/verify").json()["ok"]


def map_of(world: World, release_id: str, columns: dict[str, Any]) -> None:
    """Longitude across, as the library draws it; coarse, to begin with, unless the fine one is there."""
    client = world.client("analyst")
    expected = surface_of(world.state.releases.load(release_id), names=["lat", "lon"], output="price")
    coarse, fine, again = (
        client.post(f"/api/releases/{release_id}/map", json={"coarse": first}).json()
        for first in (True, False, True)
    )
    assert coarse["places"] == fine["places"] == [1, 0]
    assert coarse["coarse"]
    assert len(coarse["across"]) < len(fine["across"])
    assert again == fine
    for name, view in expected.views.items():
        assert np.allclose(fine["views"][name]["values"], view.values)
    unknown = np.array(fine["near_prior"]) >= fine["unknown_from"]
    assert np.array_equal(unknown, expected.unknown)
    assert len(fine["inputs"]) == len(expected.inputs)
    assert {tuple(dot) for dot in fine["inputs"]} <= set(
        zip(columns["lon"].tolist(), columns["lat"].tolist(), strict=True)
    )


def test_two_inputs_and_points_of_ones_own(world):
    client = world.client()
    rng = np.random.default_rng(2)
    columns = {"lat": rng.uniform(size=30), "lon": rng.uniform(size=30), "price": rng.uniform(size=30)}
    assert client.put("/api/data/homes.csv", content=table(columns)).status_code == 201
    settings = {
        **SETTINGS,
        "data": "homes.csv",
        "inputs": ["lat", "lon"],
        "output": "price",
        "bounds": [0.0, 1.0],
    }
    settings |= {
        "kernel": "Matern32([0.3, 0.4], variance=0.1)",
        "noise": 0.02,
        "at": {"points": [[0.2, 0.3], [0.5, 0.6]]},
    }
    plane = client.post("/api/preview", json=settings).json()["plane"]
    assert plane == {"places": [1, 0], "aspect": pytest.approx(1.0, abs=1e-3)}  # longitude across
    made = release(client, make_plan(client, **settings)).json()
    got = client.get(f"/api/releases/{made['release']['id']}").json()
    assert got["points"] == [[0.2, 0.3], [0.5, 0.6]]
    map_of(world, got["id"], columns)
    wrong = client.post(f"/api/releases/{got['id']}/predict", json={"points": [[0.2]]})
    assert wrong.status_code == 422
    ragged = client.post(f"/api/releases/{got['id']}/predict", json={"points": [[0.2, 0.1], [1.0]]})
    assert ragged.status_code == 422


def test_a_map_is_over_the_inputs_and_at_the_levels_that_one_chooses(world):
    client, rng = world.client(), np.random.default_rng(2)
    columns = {
        "x": rng.uniform(size=30),
        "kind": ["flat", "house"] * 15,
        "day": ["2024-01-01", "2024-03-01"] * 15,
    }
    columns |= {"age": rng.uniform(size=30), "price": rng.uniform(size=30)}
    assert client.put("/api/data/homes.csv", content=table(columns)).status_code == 201
    inputs = ["x", "kind", "day", "age"]
    more = {"data": "homes.csv", "inputs": inputs, "output": "price", "bounds": [0.0, 1.0], "at": "grid:2"}
    more |= {"kernel": "EQ([0.3, 1, 30, 0.4], variance=0.1)", "noise": 0.02}
    made = release(client, make_plan(client, **more)).json()["release"]["id"]
    assert client.get(f"/api/releases/{made}").json()["has_map"]
    chosen = {
        "coordinates": ["age", "x"],
        "geographic": False,
        "held": {"kind": "house", "day": "2024-02-01"},
    }
    url = f"/api/releases/{made}/map"
    found = client.post(url, json={**chosen, "coarse": True}).json()
    assert (found["places"], found["geographic"], found["aspect"]) == ([3, 0], False, None)
    assert found["held"] == {"kind": "house", "day": 8797.0}  # since 2000
    file = world.state.releases.load(made)
    held = {"kind": "house", "day": 8797.0}
    expected = surface_of(file, coordinates=["age", "x"], geographic=False, held=held, points=16)
    drawn = release_map(file, names=inputs, output="price", coordinates=["age", "x"], held=held)
    assert "kind held at house, day held at 2024-02-01" in drawn.figure().axes[0].get_title("left")
    assert np.allclose(found["views"]["prediction"]["values"], expected.prediction)
    assert not client.post(url, json={"coordinates": ["age", "x"], "coarse": True}).json()["geographic"]
    for wrong in ({"kind": "castle"}, {"garden": 1.0}, {"day": "soon"}, {"x": 0.5, "day": 3.0}):
        refused = client.post(url, json={**chosen, "coordinates": ["x", "age"], "held": wrong})
        assert (refused.status_code, "held" in refused.json()["error"]) == (422, True), wrong
    pictures_of(client, f"/api/releases/{made}/picture/svg")


def pictures_of(client: Client, url: str) -> None:
    """A picture is of what one chooses; and as ever if one chooses nothing."""
    chosen = [
        "",
        "?coordinates=x&coordinates=age",
        "?coordinates=age&coordinates=x",
        "?coordinates=age&coordinates=x&held=" + quote('{"kind": "house", "day": "2024-02-01"}'),
        "?coordinates=age&coordinates=x&geographic=true",
        "?coordinates=age&coordinates=x&view=uncertainty",
    ]
    drawn = [client.get(url + asked) for asked in chosen]
    assert {answer.status_code for answer in drawn} == {200}
    assert len({answer.content for answer in drawn}) == len(chosen)
    for wrong, named in (
        ("coordinates=x", "coordinates"),
        ("coordinates=x&coordinates=kind", "coordinates"),
        ("coordinates=x&coordinates=garden", "coordinates"),
        ("held=kind", "held"),
        ("held=" + quote('{"kind": "castle"}'), "held"),
        ("of=flat", "of"),
        ("view=house", "view"),
        ("geographic=perhaps", "geographic"),
        ("axes=x", "axes"),
    ):
        refused = client.get(f"{url}?{wrong}")
        assert (refused.status_code, refused.json()["error"].startswith(named)) == (422, True), refused.text


def test_what_does_not_fit_is_refused_before_anything_is_spent(world):
    client = world.client()
    plan = make_plan(client, epsilon=2.0)
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}).json()
    assert not quote["fits"]
    answer = release(client, plan)
    assert (answer.status_code, answer.json()["code"]) == (409, "budget_exceeded")
    assert spends(world) == 0
    assert client.get("/api/releases").json() == []
    assert list(world.state.folder.releases.iterdir()) == []


@pytest.mark.parametrize("confirm", ["", "Kung", "kung ", "other"])
def test_without_the_right_confirmation_nothing_happens(world, confirm):
    client = world.client()
    answer = release(client, make_plan(client), confirm=confirm)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")
    assert spends(world) == 0


def test_words_that_the_ledger_cannot_keep_are_not_blamed_on_the_output(world):
    client = world.client()
    answer = release(client, make_plan(client), why="a\u2028b")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")
    assert "why" in answer.json()["error"]
    assert spends(world) == 0


def test_an_unknown_data_set_is_not_found(world):
    client = world.client()
    answer = release(client, make_plan(client), dataset="others", confirm="others")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert spends(world) == 0


def test_one_question_is_one_plan_and_asked_again_costs_nothing(world):
    """Unless `number` says that it is to be paid for once more."""
    client = world.client()
    plan = make_plan(client, epsilon=0.3)
    assert make_plan(client, epsilon=0.3) == plan
    first = release(client, plan).json()
    second = release(client, plan).json()
    assert second["release"] == first["release"]
    assert not second["receipt"]["spent"]
    assert (
        client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung"}).json()["known"]
        == first["release"]["id"]
    )
    assert spends(world) == 1
    once_more = client.post(f"/api/plans/{plan}/quote", json={"dataset": "kung", "number": 2}).json()
    assert once_more["known"] is None
    assert once_more["left_after"]["release"] < once_more["left_before"]["release"]
    third = release(client, plan, number=2).json()
    assert third["receipt"]["spent"]
    assert third["release"]["id"] != first["release"]["id"]
    assert spends(world) == 2
    repeated = release(client, plan, number=2).json()  # a lost answer, asked for once more
    assert repeated["release"] == third["release"]
    assert not repeated["receipt"]["spent"]
    too_far = release(client, plan, number=4)
    assert (too_far.status_code, too_far.json()["code"]) == (409, "conflict")
    assert spends(world) == 2


def test_other_inputs_than_planned_are_refused(world):
    client = world.client()
    plan = make_plan(client)
    assert client.delete("/api/data/heights.csv").status_code == 200
    gone = release(client, plan)
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    client.put("/api/data/heights.csv", content=table({"age": range(40), "height": range(40)}))
    changed = release(client, plan)
    assert (changed.status_code, changed.json()["code"]) == (409, "conflict")
    assert spends(world) == 0


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


def test_different_plans_at_the_same_time_do_not_overspend(world):
    client = world.client()
    plans = [make_plan(client, epsilon=0.6, at=f"grid:{n}") for n in (5, 6, 7, 8)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda plan: release(world.client(), plan), plans))
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200, 200, 409, 409]
    assert client.get("/api/ledger").json()["verified"]


def test_everything_is_the_same_after_a_restart(released):
    world, _, release_id = released
    asked = {"points": np.linspace(-5, 120, 10_000)[:, None].tolist(), "include_noise": True}
    other = world.restarted()
    for path in ("/api/plans", "/api/releases", f"/api/releases/{release_id}", "/api/data", "/api/people"):
        assert other.client().get(path).json() == world.client().get(path).json()
    one, two = (
        w.client("analyst").post(f"/api/releases/{release_id}/predict", json=asked) for w in (world, other)
    )
    assert one.status_code == 200
    assert len(one.json()["mean"]) == 10_000
    assert one.content == two.content


def test_scripts_do_what_they_say(released, tmp_path):
    """The analyst's reads the file; the custodian's gives the same answer again, and pays nothing."""
    world, _, release_id = released
    for who in ("analyst", "custodian"):
        client = world.client(who)
        (tmp_path / f"{release_id}.cloak").write_bytes(client.get(f"/api/releases/{release_id}/file").content)
        text = client.get(f"/api/releases/{release_id}/script").text
        folder = world.state.folder
        text = text.replace("PATH/TO/heights.csv", str(folder.uploads / "heights.csv"))
        text = text.replace("sqlite:///PATH/TO/ledger.db", world.state.ledger_url)
        (tmp_path / "redo.py").write_text(text)
        before = spends(world)
        done = subprocess.run(
            [sys.executable, "redo.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert "verified: (0.5, 0.01)-DP" in done.stdout
        assert spends(world) == before
        again = cloakgp.Release.load(tmp_path / f"{release_id}.cloak")
        assert again.mean.tolist() == client.get(f"/api/releases/{release_id}").json()["released"]
        book = json.loads(client.get(f"/api/releases/{release_id}/notebook").text)
        code = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
        assert len(code) == (3 if who == "custodian" else 1)
        for part in code:
            compile(part, "cell", "exec")
    assert "PATH/TO" not in world.client("analyst").get(f"/api/releases/{release_id}/script").text


def test_a_name_is_plain_text_in_a_notebook(world):
    client = world.client()
    name = "a ![x](http://b/c) <img src=x> $\\alpha$ *d* \\ `e`"
    made = client.post("/api/plans", json={"settings": SETTINGS, "name": name}).json()["id"]
    made = release(client, made).json()["release"]["id"]
    book = json.loads(client.get(f"/api/releases/{made}/notebook").text)
    first, *_ = book["cells"][0]["source"].splitlines()
    assert re.sub(r"\\(.)", r"\1", first) == f"# {name}"  # as it is shown
    assert re.findall(r"(?<!\\)(?:\\\\)*[^\w\s\\]", first[2:]) == []  # nothing else than text is left


LEARNED = {"kernel": None, "noise": None, "mean": None, "model": "learn", "at": "grid:8"}


@pytest.mark.usefixtures("few_models", "drawn_once")
@pytest.mark.parametrize("changes", [{}, LEARNED], ids=["known", "learned"])
def test_the_app_and_its_scripts_have_one_blas_thread(changes, world, tmp_path, monkeypatch):
    """Also for a large plan: another number of threads could give another one, for which nobody paid."""
    monkeypatch.setattr(blas, "LARGE", 0)
    client = world.client()
    with watched() as several:
        assert client.post("/api/preview", json={**SETTINGS, **changes}).status_code == 200
        made = release(client, make_plan(client, **changes)).json()["release"]["id"]
        for what in ("", "/csv", "/report", "/picture/png", "/verify"):
            assert client.get(f"/api/releases/{made}{what}").status_code == 200, what
        asked = {"points": [[1.0], [2.0]], "level": 0.9}
        assert client.post(f"/api/releases/{made}/predict", json=asked).status_code == 200
    assert several == set()
    with watched(for_good=True) as several:
        redone(world, made, tmp_path)
    assert several == set()


def test_a_name_with_dollar_signs_is_no_formula_in_the_report(world):
    client = world.client()
    name = r"cost in $\nonsense$"
    body = table({"age": range(40), name: range(40)})
    client.put("/api/data/dollars.csv", content=body)
    made = release(client, make_plan(client, data="dollars.csv", output=name)).json()["release"]["id"]
    answer = client.get(f"/api/releases/{made}/report")
    assert answer.status_code == 200, answer.text
    assert name in answer.text


def test_a_data_set_is_made_once(world):
    client = world.client()
    again = client.post("/api/ledger/datasets", json={"name": "kung", "epsilon": 5.0, "delta": 0.01})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    wrong = client.post(
        "/api/ledger/datasets", json={"name": "x", "epsilon": 1.0, "delta": 0.01, "pure": 2.0}
    )
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_input")


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "EQ(20"},
        {"kernel": "__import__('os')"},
        {"bounds": [3.0, 3.0]},
        {"bounds": [170.0, 50.0]},
        {"noise": -1.0},
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"inputs": ["nothing"]},
        {"inputs": ["age", "age"]},
        {"inputs": ["height"], "output": "age", "at": "grid:1"},
        {"output": "age"},
        {"at": "grid:9999"},
        {"at": {"points": [[1.0, 2.0]]}},
        {"at": "/etc/passwd"},
        {"design": "best"},
        {"extra": 1},
        {"epsilon": "1"},
        {"mean": float("1e300")},
    ],
)
def test_settings_that_make_no_sense_are_explained(released, changes):
    client = released[0].client()
    for path, body in (
        ("/api/preview", {**SETTINGS, **changes}),
        ("/api/plans", {"settings": {**SETTINGS, **changes}, "name": "wrong"}),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_input"), answer.text
        assert len(answer.json()["error"]) > 10


def test_too_many_rows_are_refused_with_the_reason(world):
    client = world.client()
    n = 6001
    body = table({"age": range(n), "height": range(n)})
    assert client.put("/api/data/many.csv", content=body).json()["rows"] == n
    answer = client.post("/api/preview", json={**SETTINGS, "data": "many.csv"})
    assert answer.status_code == 422
    assert "6001 rows" in answer.json()["error"]


def test_a_slow_answer_is_announced_and_the_work_goes_on(tmp_path, monkeypatch):
    patient = make_world(tmp_path / "data")
    plan = make_plan(patient.client())
    hasty = Limits(answer_seconds=0.3, requests_per_second=1e6, burst=10**6)
    world = World(*opened(tmp_path / "data", hasty), patient.tokens)
    client = world.client()
    from cloakgp.app.releases import Releases

    finish, begun = Releases.finish, []

    def slowly(self: Any, *arguments: Any) -> Any:
        import time

        begun.append(1)
        time.sleep(1.0)
        return finish(self, *arguments)

    monkeypatch.setattr(Releases, "finish", slowly)
    answer = release(client, plan)
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    while release(client, plan).status_code == 503:
        pass
    assert spends(world) == len(begun) == 1


def test_the_demo_has_generated_data_and_a_budget(tmp_path):
    """And is the same when it is started again, spends included."""
    for _ in range(2):
        state = open_state(tmp_path / "data", limits=LOOSE, demo=True)
        world = World(state, create_app(state))
        _, world.tokens["custodian"] = state.people.add("custodian", "custodian", 1)
        client = world.client()
        assert client.get("/api/me").json()["demo"]
        (listed,) = client.get("/api/data").json()
        assert (listed["name"], listed["columns"], listed["rows"]) == ("heights.csv", ["age", "height"], 287)
        (dataset,) = client.get("/api/ledger").json()["datasets"]
        assert (dataset["name"], dataset["epsilon"], dataset["delta"]) == ("kung", 1.0, 0.01)
        assert release(client, make_plan(client)).status_code == 200
    assert spends(world) == 1


def test_moving_epsilon_costs_milliseconds(world):
    """The costly part of a plan is worked out once, and not again when only the promise moves."""
    from cloakgp.model import smoothers

    client = world.client()
    client.post("/api/preview", json=SETTINGS)
    made: list[int] = []
    first = smoothers.gentle_cholesky
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smoothers, "gentle_cholesky", lambda *a, **k: made.append(1) or first(*a, **k))
        for epsilon in np.geomspace(0.1, 5.0, 30):
            assert (
                client.post("/api/preview", json={**SETTINGS, "epsilon": float(epsilon)}).status_code == 200
            )
        assert made == []
        client.post("/api/preview", json={**SETTINGS, "noise": 100.0})
        assert made == [1]


def test_arguments_are_called_by_names_that_pages_have(world):
    """Nobody who fills in a form knows the library's X and X_star."""
    client = world.client()
    far = SETTINGS | {"kernel": "EQ(1, variance=625)", "at": {"points": [[1e6]]}}
    answer = client.post("/api/preview", json=far)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("the points: no test point is influenced by the data")
    answer = client.post("/api/preview", json=SETTINGS | {"bounds": [170.0, 50.0]})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("bounds")
