"""Every test stands in a folder of its own, with a table of people."""

from pathlib import Path

import pytest
from cli_helpers import write_people


@pytest.fixture(scope="module", autouse=True)
def learned_among_few(request: pytest.FixtureRequest) -> None:
    """But where numbers are compared with those on a page."""
    if request.module.__name__ != "test_cli_docs":
        request.getfixturevalue("few_models")


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_once: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLOAKGP_LEDGER", raising=False)
    write_people()
