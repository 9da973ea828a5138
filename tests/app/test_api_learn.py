"""The model is learned: preview, keep, release, look; and a release that stops between stages goes on."""

from __future__ import annotations

import io
import itertools
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_helpers import SETTINGS, World, ages, make_plan, make_world, release, secret_heights, table

import cloakgp
from cloakgp.plans.staged import StagedPlan

LEARNED = {name: SETTINGS[name] for name in ("data", "inputs", "output", "bounds", "epsilon", "delta")} | {
    "at": "grid:8"
}
OF_A_KERNEL = {"kernel": None, "noise": None, "mean": None, "design": "mse", "kind": "predictions"}


def plan_to_learn(client: Any, **changes: Any) -> str:
    made = client.post("/api/plans", json={"settings": {**LEARNED, **changes}, "name": "learned"})
    assert made.status_code in (200, 201), made.text
    return str(made.json()["id"])


def spends(client: Any) -> list[dict[str, Any]]:
    book = client.get("/api/ledger").json()
    assert book["verified"], book["problem"]
    return [entry for entry in book["entries"] if entry["kind"] == "spent"]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str, dict[str, Any]]:
    """A world with one learned release, its plan's id, and what the release step answered."""
    world = make_world(tmp_path_factory.mktemp("learned") / "data")
    client = world.client()
    plan = plan_to_learn(client)
    answer = release(client, plan)
    assert answer.status_code == 200, answer.text
    return world, plan, answer.json()


def test_learning_is_the_default_and_a_kernel_still_works(world: World) -> None:
    client = world.client()
    assert client.get("/api/defaults").json()["model"] == "learn"
    first = plan_to_learn(client)
    assert first == plan_to_learn(client, model="learn", **OF_A_KERNEL)  # one question, one plan
    shown = client.get(f"/api/plans/{first}").json()
    assert shown["settings"] == {**LEARNED, "model": "learn", "kind": "predictions"}
    assert shown["certificate"]["design"] == "staged"
    given = client.get(f"/api/plans/{make_plan(client)}").json()
    assert given["certificate"]["design"] == "mse"
    assert "model" not in given["settings"]  # as it was kept before: plans of then are found again
    assert make_plan(client, model="kernel") == given["id"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": "kernel"}, "kernel and noise"),
        ({"kernel": "EQ(20)"}, "kernel and noise"),
        ({"model": "learn", "kernel": "EQ(20)"}, "kernel"),
        ({"noise": 4.0}, "noise"),
        ({"design": "max"}, "design"),
        ({"kind": "function"}, "kind"),
        ({"inducing": 20}, "inducing"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    learned: tuple[World, str, Any], changes: dict[str, Any], named: str
) -> None:
    refused = learned[0].client().post("/api/preview", json={**LEARNED, **changes})
    assert refused.status_code == 422
    assert refused.json()["error"].startswith(f"{named}:")


def test_a_preview_shows_the_error_to_be_expected(learned: tuple[World, str, Any]) -> None:
    client = learned[0].client()
    found = {}
    for epsilon in (0.5, 2.0):
        answer = client.post("/api/preview", json={**LEARNED, "epsilon": epsilon})
        assert answer.status_code == 200, answer.text
        found[epsilon] = answer.json()
    error, noise, own = (np.array(found[0.5][name]) for name in ("expected_error", "noise_std", "gp_std"))
    np.testing.assert_allclose(error**2, noise**2 + own**2)
    assert (np.array(found[2.0]["expected_error"]) < error).all()
    assert found[0.5]["error_summary"]["largest"] == error.max()
    assert not found[0.5]["exact"]
    assert "right in at most" in found[0.5]["promise"][1]
    curve = client.post("/api/preview/curve", json={"settings": LEARNED, "epsilons": [0.5, 2.0]}).json()
    assert [point["largest"] for point in curve] == [found[e]["error_summary"]["largest"] for e in (0.5, 2.0)]
    assert {point["paper_rms"] for point in curve} == {None}


def test_a_release_says_what_was_learned_and_how(learned: tuple[World, str, dict[str, Any]]) -> None:
    world, plan, answer = learned
    assert answer["receipt"]["spent"]
    for who in ("custodian", "analyst"):
        client = world.client(who)
        shown = client.get(f"/api/releases/{answer['release']['id']}").json()
        assert [(row["what"], row["unit"]) for row in shown["learned"]] == [
            ("size of the signal", "height"),
            ("lengthscale", "age"),
            ("noise", "height"),
        ]
        assert all(0 < row["low"] <= row["high"] for row in shown["learned"])
        stages = shown["stages"]
        assert sum(stage["share"] for stage in stages) == pytest.approx(1)
        assert stages[0]["width"] == 120
        assert all(0 < stage["width"] < 120 for stage in stages[1:])
        asked = {"points": shown["points"], "level": 0.95}
        predicted = client.post(f"/api/releases/{shown['id']}/predict", json=asked).json()
        assert predicted["mean"] == shown["denoised"]
        assert predicted["std"] == shown["denoised_std"]
    one = release(world.client(), plan).json()  # asked again
    assert one["release"]["id"] == answer["release"]["id"]
    assert not one["receipt"]["spent"]
    assert len(spends(world.client())) == 1


@pytest.mark.usefixtures("drawn_once")
def test_downloads_of_a_learned_release(learned: tuple[World, str, dict[str, Any]], tmp_path: Path) -> None:
    world, _, answer = learned
    client, url = world.client(), f"/api/releases/{answer['release']['id']}"
    lines = client.get(f"{url}/csv").text.splitlines()
    assert lines[0].startswith("age,")
    assert len(lines) == 9
    assert "What was learned" in client.get(f"{url}/report").text
    assert client.get(f"{url}/verify").json()["ok"]
    path = tmp_path / "learned.cloak"
    path.write_bytes(client.get(f"{url}/file").content)
    assert path.read_bytes() == world.state.folder.release(answer["release"]["id"]).read_bytes()


def test_the_script_makes_the_very_plan(
    learned: tuple[World, str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, _, answer = learned
    client, folder = world.client(), world.state.folder.path
    text = client.get(f"/api/releases/{answer['release']['id']}/script").text
    assert "cloakgp.AutoGP(bounds=(50.0, 170.0))" in text
    text = text.replace("PATH/TO/heights.csv", str(world.state.folder.upload("heights.csv")))
    text = text.replace("PATH/TO/ledger.db", str(folder / "ledger.db"))
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(compile(text, "script", "exec"), {})
    made = (tmp_path / f"{answer['release']['id']}.cloak").read_bytes()
    assert made == world.state.folder.release(answer["release"]["id"]).read_bytes()
    assert len(spends(client)) == 1


@pytest.mark.usefixtures("drawn_once")
def test_no_outcome_is_in_any_answer_file_or_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    client, said = world.client(), io.StringIO()
    answers = [client.post("/api/preview", json=LEARNED).text]
    with caplog.at_level("DEBUG"), redirect_stdout(said), redirect_stderr(said):
        plan = plan_to_learn(client)
        answers.append(release(client, plan, dataset="kung").text)
        made = json.loads(answers[-1])["release"]["id"]
        for path in ("", "/csv", "/report", "/verify", "/script", "/notebook"):
            answers.append(client.get(f"/api/releases/{made}{path}").text)
        answers.append(client.get("/api/ledger").text)
    folder = world.state.folder
    files = [
        folder.release(made),
        folder.record(made),
        folder.plan(plan),
    ]
    everything = [
        *answers,
        caplog.text,
        said.getvalue(),
        *(path.read_bytes().decode("latin-1") for path in files),
    ]
    assert not any(secret[:9] in text for secret in secret_heights() for text in everything)


class Stop:
    """Lets a release answer some stages, and then fail as if its column had become unusable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        measure, self.count = StagedPlan._measure_stage, itertools.count()

        def stage(*arguments: Any) -> Any:
            if next(self.count) >= after:
                raise ValueError("y is no more")
            return measure(*arguments)

        monkeypatch.setattr(StagedPlan, "_measure_stage", stage)


def stopped(world: World, monkeypatch: pytest.MonkeyPatch, after: int, **asked: Any) -> str:
    """A plan whose release stopped after so many stages."""
    client = world.client()
    plan = plan_to_learn(client)
    with monkeypatch.context() as patched:
        Stop(patched, after)
        failed = release(client, plan, **asked)
    assert failed.status_code == 422
    assert "stopped after it was paid for" in failed.json()["error"]
    assert "y is no more" not in failed.text
    assert len(spends(client)) == 1
    assert client.get("/api/releases").json() == []
    return plan


@pytest.mark.parametrize("after", [0, 2])
def test_a_release_that_stopped_goes_on_when_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    plan = stopped(world, monkeypatch, after)
    counted = Counted(monkeypatch)
    answer = release(world.client(), plan)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["receipt"]["spent"]
    assert len(spends(world.client())) == 1
    stages = world.client().get(f"/api/releases/{answer.json()['release']['id']}").json()["stages"]
    assert sum(stage["share"] for stage in stages) == pytest.approx(1)
    assert counted.calls == len(stages) - after  # none was measured twice


class Counted:
    """Counts the stages that are measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, measure = 0, StagedPlan._measure_stage

        def stage(*arguments: Any) -> Any:
            self.calls += 1
            return measure(*arguments)

        monkeypatch.setattr(StagedPlan, "_measure_stage", stage)


def test_a_release_that_stopped_goes_on_by_itself_at_the_next_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = stopped(world, monkeypatch, 2)
    client = world.restarted().client()
    made = client.get("/api/releases").json()
    assert [each["plan"] for each in made] == [plan]
    assert len(spends(client)) == 1
    shown = client.get(f"/api/releases/{made[0]['id']}").json()
    assert sum(stage["share"] for stage in shown["stages"]) == pytest.approx(1)
    again = release(client, plan).json()
    assert again["release"]["id"] == made[0]["id"]
    assert not again["receipt"]["spent"]


def test_without_its_table_a_release_that_stopped_waits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.client()
    plan = stopped(world, monkeypatch, 1)
    path = world.state.folder.upload("heights.csv")
    kept = path.read_bytes()
    path.write_bytes(table({"age": ages()[::-1], "height": secret_heights()}))
    assert "It goes on where it stopped" in release(client, plan).json()["error"]
    path.unlink()
    client = world.restarted().client()
    refused = release(client, plan)
    assert refused.status_code == 409
    assert "heights.csv is not here any more. This release is paid for" in refused.json()["error"]
    assert client.get("/api/releases").json() == []
    path.write_bytes(kept)
    assert not release(client, plan).json()["receipt"]["spent"]
    assert len(spends(client)) == 1


def test_a_release_goes_on_with_missing_outcomes_as_it_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path / "data")
    body = table({"age": ages(), "height": ["", *secret_heights()[1:]]})
    world.state.folder.upload("heights.csv").write_bytes(body)
    plan = stopped(world, monkeypatch, 1, missing="midpoint")
    answer = release(world.client(), plan, missing="error")
    assert answer.status_code == 200, answer.text
    assert not answer.json()["receipt"]["spent"]


def test_an_unusable_column_spends_nothing(world: World) -> None:
    client = world.client()
    body = table({"age": ages(), "height": ["", *secret_heights()[1:]]})
    world.state.folder.upload("heights.csv").write_bytes(body)
    plan = plan_to_learn(client)
    refused = release(client, plan)
    assert (refused.status_code, refused.json()["code"]) == (422, "unusable_output")
    assert "nothing was spent" in refused.json()["error"]
    assert spends(client) == []
    assert list(world.state.folder.releases.iterdir()) == []


def test_many_rows_are_learned_of_and_a_release_of_them_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the plan's file keeps apart: the table is needed to tell which row is where."""
    rows = 5000
    body = table({"age": np.linspace(0, 80, rows).round(4).tolist(), "height": secret_heights(rows)})
    world.state.folder.upload("heights.csv").write_bytes(body)
    plan = stopped(world, monkeypatch, 1)
    client = world.restarted().client()
    made = client.get("/api/releases").json()
    assert [each["plan"] for each in made] == [plan]
    assert client.get(f"/api/releases/{made[0]['id']}/verify").json()["ok"]
    assert len(spends(client)) == 1


@pytest.fixture(scope="module")
def more(learned: tuple[World, str, dict[str, Any]]) -> tuple[World, str, str]:
    """A plan that starts from that release, and the id of that."""
    world, _, answer = learned
    first = answer["release"]["id"]
    return world, plan_to_learn(world.client(), given=[first], epsilon=0.3), first


def test_a_plan_may_start_from_an_earlier_release(more: tuple[World, str, str]) -> None:
    world, plan, first = more
    client = world.client()
    asked = {**LEARNED, "epsilon": 0.3}
    alone, after = (
        client.post("/api/preview", json=each).json() for each in (asked, {**asked, "given": [first]})
    )
    file = cloakgp.load(world.state.folder.release(first))
    X, where = np.array(ages())[:, None], np.array(after["points"])
    model = cloakgp.AutoGP(bounds=(50, 170))
    expected = model.plan(X, X_star=where, epsilon=0.3, delta=0.01, given=[file]).expected_error
    np.testing.assert_allclose(after["expected_error"], expected)
    assert not np.allclose(alone["expected_error"], expected)
    assert after["certificate"]["before"] == [[0.5, 0.01]]
    assert client.get(f"/api/plans/{plan}").json()["settings"]["given"] == [first]
    assert plan != plan_to_learn(client, epsilon=0.3)


def test_only_the_same_people_pay_for_what_starts_from_their_release(more: tuple[World, str, str]) -> None:
    world, plan, _ = more
    client = world.client()
    client.post("/api/ledger/datasets", json={"name": "others", "epsilon": 9.0, "delta": 0.01})
    for refused in (
        client.post(f"/api/plans/{plan}/quote", json={"dataset": "others"}),
        release(client, plan, dataset="others", confirm="others"),
    ):
        assert refused.status_code == 409
        assert "paid from the budget of kung" in refused.json()["error"]
    assert {entry["dataset"] for entry in spends(client)} == {"kung"}


def test_more_is_released_and_known_again(
    more: tuple[World, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, plan, _ = more
    client = world.client()
    answer = release(client, plan)
    assert answer.status_code == 200, answer.text
    made = answer.json()["release"]
    verified = client.get(f"/api/releases/{made['id']}/verify").json()
    assert verified["ok"]
    assert verified["earlier"] == [{"epsilon": 0.5, "delta": 0.01}]
    assert "not the total" in verified["words"].splitlines()[0]
    assert "not the total" in client.get(f"/api/releases/{made['id']}/report").text
    assert made["certificate"]["before"] == [[0.5, 0.01]]
    text = client.get(f"/api/releases/{made['id']}/script").text
    text = text.replace("PATH/TO/heights.csv", str(world.state.folder.upload("heights.csv")))
    text = text.replace("PATH/TO/ledger.db", str(world.state.folder.path / "ledger.db"))
    text = text.replace("PATH/TO", str(world.state.folder.releases))
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()):
        exec(compile(text, "script", "exec"), {})
    assert (tmp_path / f"{made['id']}.cloak").read_bytes() == world.state.folder.release(
        made["id"]
    ).read_bytes()
    assert len([entry for entry in spends(client) if entry["dataset"] == "kung"]) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"output": "weight"}, "not about the same outcomes"),
        ({"given": ["0" * 16]}, "there is no such release"),
        ({"kernel": "EQ(20)", "noise": 4.0}, "given: must be left out where the model is not learned"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    more: tuple[World, str, str], changes: dict[str, Any], said: str
) -> None:
    world, _, first = more
    refused = world.client().post("/api/preview", json={**LEARNED, "given": [first], **changes})
    assert refused.status_code in (404, 422)
    assert said in refused.json()["error"]
