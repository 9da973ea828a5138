"""Work that takes a while: how far it is, stopping it, a rough figure before it, and what is kept of it."""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from app_helpers import LEARNED, World, check_refused, make_world, release, spends, table

from cloakgp.app.errors import Problem
from cloakgp.app.work import Cache, begin, listening
from cloakgp.core.progress import Progress
from cloakgp.posterior import forecast
from cloakgp.release.plan import Plan

WORK = "0123456789abcdef"
SETTINGS = {**LEARNED, "delta": 1e-4}


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("busy") / "data")


def test_a_preview_says_how_far_it_is_and_can_be_stopped(busy, monkeypatch):
    client, seen, one_curve = busy.client(), [], forecast._for_curve

    def watched(*arguments: Any) -> Any:
        if len(seen) < 3:
            seen.append(client.get(f"/api/work/{WORK}").json())
            if len(seen) == 3:
                assert busy.client("analyst").delete(f"/api/work/{WORK}").status_code == 403
                assert client.delete(f"/api/work/{WORK}").json() == {"ok": True}
        return one_curve(*arguments)

    monkeypatch.setattr(forecast, "_for_curve", watched)
    asked = {"json": SETTINGS, "headers": {"X-Work": WORK}}
    answer = client.post("/api/preview", **asked)
    check_refused(answer, 409, "stopped")
    assert seen == [{"under_way": True, "doing": "forecast", "done": done, "total": 24} for done in range(3)]
    assert not client.get(f"/api/work/{WORK}").json()["under_way"]  # it is over
    assert client.post("/api/preview", **asked).status_code == 200  # nothing was left behind


def test_work_that_nobody_waits_for_ends_but_a_release_does_not():

    def work() -> None:
        request = begin("somebody")
        request.gone.set()
        with listening(may_leave=False):
            Progress("stages", 2).advance()
        assert request.doing == ("stages", 1, 2)
        with pytest.raises(Problem) as stopped, listening():
            Progress("forecast", 2)
        assert stopped.value.code == "stopped"

    copy_context().run(work)


def test_a_release_that_is_stopped_is_paid_once_and_goes_on(busy, monkeypatch):
    client, measure = busy.client(), Plan._measure
    plan = client.post("/api/plans", json={"settings": SETTINGS, "name": "stopped"}).json()["id"]
    stages: list[int] = []

    def watched(self: Any, *arguments: Any) -> Any:
        stages.append(client.get(f"/api/work/{WORK}").json()["done"])
        if len(stages) == 2:
            client.delete(f"/api/work/{WORK}")
        return measure(self, *arguments)

    monkeypatch.setattr(Plan, "_measure", watched)
    asked = {"dataset": "kung", "confirm": "kung"}
    ask = {"json": asked, "headers": {"X-Work": WORK}}
    answer = client.post(f"/api/plans/{plan}/release", **ask)
    check_refused(answer, 409, "stopped", "goes on where it stopped")
    assert stages == [0, 1]
    monkeypatch.setattr(Plan, "_measure", measure)
    assert release(client, plan).status_code == 200
    assert spends(busy) == 1


def test_a_curve_has_no_step_where_the_whole_is_there(busy):
    """Of few rows at every epsilon, or of all at every one."""
    client, n = busy.client(), 900
    columns = {"age": np.random.default_rng(3).uniform(0, 80, n).round(2), "ill": np.zeros(n)}
    client.put("/api/data/ill.csv", content=table(columns))
    of = {"outcome": "yes/no", "bounds": [0, 1], "kernel": "EQ(20, variance=0.5) + Constant(2)"}
    asked = {**SETTINGS, "data": "ill.csv", "output": "ill", **of}
    assert client.post("/api/preview", json=asked).json()["rough"] is False
    curve = client.post("/api/preview/curve", json={"settings": asked, "epsilons": [0.49, 0.5, 0.51]}).json()
    assert curve[0]["rms"] > curve[1]["rms"] > curve[2]["rms"]


def test_a_rough_figure_comes_first_where_the_whole_takes_long(busy):
    client = busy.client()
    rng = np.random.default_rng(3)
    columns = {
        "age": rng.uniform(0, 80, 900).round(2),
        "sex": rng.integers(0, 2, 900),
        "height": np.zeros(900),
    }
    client.put("/api/data/many.csv", content=table(columns))
    assert client.post("/api/preview?rough=true", json=SETTINGS).json()["rough"] is False  # it is quick
    kernel = {"kernel": "EQ(20, variance=625)", "noise": 196.0}
    box = {"age": {"low": 0, "high": 80, "cells": 200}}
    link = {"outcome": "yes/no", "bounds": [0, 1], "kernel": "EQ(20, variance=0.5) + Constant(2)"}
    people = {"protect": "people", "people": "sex", "within": 0.1}
    for changes in ({}, people, kernel, link, {"protect": "rows", "box": box}):
        asked = {**SETTINGS, "data": "many.csv", **changes}
        rough, whole = (
            client.post(f"/api/preview?rough={word}", json=asked).json() for word in ("true", "false")
        )
        assert (rough["rough"], whole["rough"]) == (True, False)
        assert rough["certificate"] is None
        for what in ("summary", "error_summary"):
            assert 0.7 < rough[what]["median"] / whole[what]["median"] < 1.4, (changes, what)
        assert client.post("/api/preview?rough=true", json=asked).json()["rough"] is False  # it is there


def test_many_who_ask_at_once_wait_for_one_result():
    cache: Cache[int] = Cache(4)
    made, go_on, found = [], threading.Event(), []

    def make() -> int:
        made.append(1)
        assert go_on.wait(60)
        return 7

    threads = [threading.Thread(target=lambda: found.append(cache.get("x", make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert (found, made) == ([7] * 8, [1])


def test_of_what_is_kept_the_longest_unused_goes_first_and_the_newest_stays_however_heavy():
    counted, weighed = Cache[str](2), Cache[int](10, weight=float)
    for key in ("a", "b", "a", "c"):
        counted.get(key, lambda key=key: f"first {key}")
    assert [counted.get(key, lambda: "again") for key in ("a", "c", "b")] == ["first a", "first c", "again"]
    for size in (4, 5, 100):
        weighed.get(size, lambda size=size: size)
    assert [weighed.get(size, lambda: -1) for size in (100, 4)] == [100, -1]
    with pytest.raises(ZeroDivisionError):
        weighed.get("x", lambda: 1 // 0)  # which is not kept
    assert weighed.get("x", lambda: 3) == 3
