"""The model is learned: preview, keep, release, look; and a release that stops between stages goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_helpers import (
    LEARNED,
    Stop,
    World,
    ages,
    check_refused,
    keep,
    make_world,
    redone,
    release,
    released_of,
    secret_heights,
    spends,
    table,
)

import cloakgp
from cloakgp.data import cells


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str]:
    """A world with one learned release, and its id."""
    world = make_world(tmp_path_factory.mktemp("learned") / "data")
    return world, released_of(world.client(), LEARNED)["id"]


def test_a_preview_shows_the_error_to_be_expected(learned: tuple[World, str]) -> None:
    client = learned[0].client()
    assert client.get("/api/defaults").json()["model"] == "learn"
    found = {e: client.post("/api/preview", json={**LEARNED, "epsilon": e}).json() for e in (0.5, 2.0)}
    error, noise, own = (np.array(found[0.5][name]) for name in ("expected_error", "noise_std", "gp_std"))
    np.testing.assert_allclose(error**2, noise**2 + own**2)
    assert (np.array(found[2.0]["expected_error"]) < error).all()
    assert found[0.5]["error_summary"]["largest"] == error.max()
    assert not found[0.5]["exact"]
    curve = client.post("/api/preview/curve", json={"settings": LEARNED, "epsilons": [0.5, 2.0]}).json()
    assert [point["largest"] for point in curve] == [found[e]["error_summary"]["largest"] for e in (0.5, 2.0)]
    assert {point["paper_rms"] for point in curve} == {None}


@pytest.mark.usefixtures("drawn_once")
def test_a_release_says_what_was_learned_and_how(learned: tuple[World, str]) -> None:
    world, made = learned
    for who in ("custodian", "analyst"):
        client = world.client(who)
        shown = client.get(f"/api/releases/{made}").json()
        assert [(row["what"], row["unit"]) for row in shown["learned"]] == [
            ("size of the signal", "height"),
            ("lengthscale", "age"),
            ("noise", "height"),
        ]
        assert all(0 < row["low"] <= row["high"] for row in shown["learned"])
        stages = shown["stages"]
        assert sum(stage["share"] for stage in stages) == pytest.approx(1)
        assert stages[0]["width"] == 120
        assert all(0 < stage["width"] < 120 for stage in stages[1:-1])
        last = {
            "share": pytest.approx(0.04),
            "width": None,
            "outside": None,
        }  # which counts where outcomes fell
        assert stages[-1] == last
        assert stages[0]["outside"] is None
        assert all(0 < stage["outside"] < stage["share"] for stage in stages[1:-1])
        asked = {"points": shown["points"], "level": 0.95}
        predicted = client.post(f"/api/releases/{made}/predict", json=asked).json()
        assert (predicted["mean"], predicted["std"]) == (shown["denoised"], shown["denoised_std"])
    assert "What was learned" in world.client().get(f"/api/releases/{made}/report").text


def stopped(world: World, after: int, **asked: Any) -> str:
    """A plan whose release stopped after so many stages."""
    client = world.client()
    plan = keep(client, LEARNED)
    with Stop(after):
        failed = release(client, plan, **asked)
    check_refused(failed, 422, "unusable_output", "stopped after it was paid for")
    assert "y is no more" not in failed.text
    assert spends(world) == 1
    assert client.get("/api/releases").json() == []
    return plan


def check_goes_on(world: World, plan: str, **asked: Any) -> dict[str, Any]:
    """Asked again, it is whole, and nothing was paid twice."""
    answer = release(world.client(), plan, **asked)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["receipt"]["spent"]
    assert spends(world) == 1
    shown = world.client().get(f"/api/releases/{answer.json()['release']['id']}").json()
    assert sum(stage["share"] for stage in shown["stages"]) == pytest.approx(1)
    assert world.client().get(f"/api/releases/{shown['id']}/verify").json()["ok"]
    return dict(shown)


@pytest.mark.parametrize("after", [1, 2])
def test_a_release_that_stopped_goes_on_when_asked_again(world: World, after: int) -> None:
    plan = stopped(world, after)
    with Stop() as counted:
        stages = check_goes_on(world, plan)["stages"]
    assert counted.calls == len(stages) - after  # none was measured twice


@pytest.mark.parametrize("rows", [40, 200])
def test_a_release_that_stopped_goes_on_by_itself_at_the_next_start(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Of more rows than the plan's file keeps apart the table is needed to tell which row is where; and the
    question is the same if it was looked at for another promise before."""
    monkeypatch.setattr(cells, "MOST_CELLS", 100)
    body = table({"age": np.linspace(0, 80, rows).round(4).tolist(), "height": secret_heights(rows)})
    world.state.folder.upload("heights.csv").write_bytes(body)
    world.client().post("/api/preview", json={**LEARNED, "epsilon": 0.6})
    plan = stopped(world, 1)
    again = world.restarted()
    (made,) = again.client().get("/api/releases").json()
    assert made["plan"] == plan
    assert check_goes_on(again, plan)["id"] == made["id"]
    questions = [w.state.plans.make_again(plan).question_digest for w in (world, again)]
    assert questions[0] == questions[1]


def test_without_its_table_a_release_that_stopped_waits(world: World) -> None:
    client = world.client()
    plan = stopped(world, 1)
    path = world.state.folder.upload("heights.csv")
    kept = path.read_bytes()
    path.write_bytes(table({"age": ages()[::-1], "height": secret_heights()}))
    check_refused(release(client, plan), 409, "conflict", "It goes on where it stopped")
    path.unlink()
    again = world.restarted()
    check_refused(release(again.client(), plan), 409, "conflict", "This release is paid for")
    assert again.client().get("/api/releases").json() == []
    path.write_bytes(kept)
    check_goes_on(again, plan)


def test_what_is_missing_goes_on_as_it_was_begun_or_spends_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path / "data")
    body = table({"age": ages(), "height": ["", *secret_heights()[1:]]})
    world.state.folder.upload("heights.csv").write_bytes(body)
    check_refused(release(world.client(), keep(world.client(), LEARNED)), 422, "unusable_output")
    assert spends(world) == 0
    assert list(world.state.folder.releases.iterdir()) == []
    check_goes_on(world, stopped(world, 1, missing="midpoint"), missing="error")


@pytest.fixture(scope="module")
def more(learned: tuple[World, str]) -> tuple[World, str, str]:
    """A plan that starts from that release, and the id of that."""
    world, first = learned
    return world, keep(world.client(), LEARNED, given=[first], epsilon=0.3), first


def test_a_plan_may_start_from_an_earlier_release(more: tuple[World, str, str]) -> None:
    world, plan, first = more
    client, asked = world.client(), {**LEARNED, "epsilon": 0.3}
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
    assert plan != keep(client, asked)


def test_only_the_same_people_pay_for_what_starts_from_their_release(more: tuple[World, str, str]) -> None:
    world, plan, first = more
    client = world.client()
    client.post("/api/ledger/datasets", json={"name": "others", "epsilon": 9.0, "delta": 0.01})
    quote = client.post(f"/api/plans/{plan}/quote", json={"dataset": "others"})
    for refused in (quote, release(client, plan, "others")):
        check_refused(refused, 409, "conflict", "paid from the budget of kung")
    asked = {**LEARNED, "given": [first]}
    other = client.post("/api/preview", json={**asked, "output": "weight"})
    check_refused(other, 422, "bad_input", "not about the same outcomes")
    nothing = client.post("/api/preview", json={**asked, "given": ["0" * 16]})
    check_refused(nothing, 404, "not_found")
    assert spends(world) == 1


def test_more_is_released_and_known_again(more: tuple[World, str, str], tmp_path: Path) -> None:
    world, plan, first = more
    client = world.client()
    made = release(client, plan).json()["release"]
    verified = client.get(f"/api/releases/{made['id']}/verify").json()
    assert verified["ok"]
    assert verified["earlier"] == [{"epsilon": 0.5, "delta": 0.01}]
    for told in (verified["words"].splitlines()[0], client.get(f"/api/releases/{made['id']}/report").text):
        assert "not the total" in told
    assert made["certificate"]["before"] == [[0.5, 0.01]]
    file = world.state.folder.release
    (world.state.folder.uploads / f"{first}.cloak").write_bytes(file(first).read_bytes())
    assert redone(world, made["id"], tmp_path) == file(made["id"]).read_bytes()
    assert spends(world) == 2
