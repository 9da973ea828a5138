"""Tests that are skipped are told of in one line, and those that need torch are known by their mark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

TESTS = Path(__file__).parents[1]


def test_one_line_counts_them_and_says_why(request):
    lines = []
    reasons = 3 * ["Skipped: torch is not installed"] + ["Skipped: no\n Chromium"]
    reports = [SimpleNamespace(longrepr=("file", 1, reason)) for reason in reasons]
    reporter = SimpleNamespace(stats={"skipped": reports}, write_line=lambda line, **_: lines.append(line))
    conftest = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    conftest.pytest_terminal_summary(reporter)
    assert lines == ["!!! 4 tests were SKIPPED (3: torch is not installed; 1: no Chromium) !!!"]
    conftest.pytest_terminal_summary(SimpleNamespace(stats={}))


def test_torch_is_asked_for_by_the_mark_alone():
    """Another way to skip a test without torch would hide it from `make test-torch`."""
    others = [
        path for path in TESTS.rglob("*.py") if 'importorskip("torch' in path.read_text(encoding="utf-8")
    ]
    assert [path for path in others if path != Path(__file__)] == []
