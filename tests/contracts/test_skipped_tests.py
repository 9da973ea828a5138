"""What a run says at its end: how to repeat its noise, and in one line what was skipped."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np

TESTS = Path(__file__).parents[1]


def test_one_line_counts_them_and_says_why(request):
    lines = []
    reasons = 3 * ["Skipped: torch is not installed"] + ["Skipped: no\n Chromium"]
    reports = [SimpleNamespace(longrepr=("file", 1, reason)) for reason in reasons]
    reporter = SimpleNamespace(stats={"skipped": reports}, write_line=lambda line, **_: lines.append(line))
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    conftest.pytest_terminal_summary(reporter)
    assert lines[1:] == ["!!! 4 tests were SKIPPED (3: torch is not installed; 1: no Chromium) !!!"]
    assert lines[0] == f"noise of this run: CLOAKGP_TESTS_SEED={os.environ['CLOAKGP_TESTS_SEED']}"
    conftest.pytest_terminal_summary(SimpleNamespace(stats={}, write_line=lambda line, **_: None))


def test_noise_is_the_same_for_a_seed_whatever_else_runs_and_another_for_another(request):
    luck = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py")).luck
    exact, seed, drawn = np.zeros(4, dtype=np.int64), luck.seed, []
    try:
        for luck.seed, name in ((1, "a"), (1, "b"), (1, "a"), (2, "a")):
            with luck.of(name):
                drawn.append(luck.add_noise(exact, 2**40).tolist())
    finally:
        luck.seed = seed
    assert drawn[0] == drawn[2]
    assert len({tuple(numbers) for numbers in drawn}) == 3


def test_torch_is_asked_for_by_the_mark_alone():
    """Another way to skip a test without torch would hide it from `make test-torch`."""
    others = [
        path for path in TESTS.rglob("*.py") if 'importorskip("torch' in path.read_text(encoding="utf-8")
    ]
    assert [path for path in others if path != Path(__file__)] == []
