"""One world for each test, and one that tests only look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_helpers import World, make_plan, make_world, release


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "data")


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str, str]:
    """A world with one release, its plan's id and its own."""
    made = make_world(tmp_path_factory.mktemp("released") / "data")
    client = made.client()
    plan = make_plan(client)
    answer = release(client, plan)
    assert answer.status_code == 200, answer.text
    return made, plan, answer.json()["release"]["id"]
