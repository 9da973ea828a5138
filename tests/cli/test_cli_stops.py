"""Ctrl-C ends a command in words: what was spent is said, and it is nothing but where a ledger paid."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import PLAN, RELEASE, budget, good, run, spends

from cloakgp import progress
from cloakgp.cli import exits, planning, selecting
from cloakgp.plans.predictions import Plan
from cloakgp.workflow.settings import Settings


def stop(*arguments, **options):
    raise KeyboardInterrupt


def test_a_plan_stops_for_nothing(monkeypatch):
    monkeypatch.setattr(Settings, "plan", stop)
    stopped = run(f"{PLAN} -o plan.json --json")
    assert stopped.code == exits.STOPPED
    assert "cloakgp: stopped. Nothing was spent." in stopped.err
    assert json.loads(stopped.out) == {"error": "stopped. Nothing was spent.", "exit_code": exits.STOPPED}


def test_a_release_in_one_step_stops_for_nothing_or_is_on_record(monkeypatch):
    """The charge and the answer are written at once: before that, nothing is spent."""
    budget()
    good(f"{PLAN} -o plan.json")
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "_measure", stop)
        stopped = run(f"{RELEASE} --yes")
        assert stopped.code == exits.STOPPED
        assert "stopped. Nothing was spent." in stopped.err
        assert spends() == 0
        uncounted = run("release plan.json data.csv --no-ledger --yes -o a.cloak")
        assert "Nothing was written" in uncounted.err
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "_made_of", stop)
        assert "on record: run the same command again" in run(f"{RELEASE} --yes").err
        assert spends() == 1
    assert "answered before" in good(RELEASE).err


def test_a_terminal_is_told_what_is_done_and_how_far():
    heard = []
    with progress.heard_by(lambda *told: heard.append(told)):
        good(PLAN)
    assert heard[0] == ("model, design, measurements", 0, 3)
    assert heard[-1] == ("model, design, measurements", 3, 3)


# Many rows


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(planning, "_MANY", 30)
    monkeypatch.setattr(selecting, "MANY", 30)


@pytest.mark.usefixtures("many")
def test_an_exact_plan_of_many_rows_names_what_takes_less():
    assert "an exact model of 40 distinct rows takes" in run(PLAN).err
    assert "exact model" not in run(f"{PLAN} --inducing 5").err


@pytest.mark.usefixtures("many")
def test_a_selection_of_many_rows_says_what_it_takes_and_of_too_many_refuses():
    models = "--bounds 50 170 --kernel EQ(5) --noise 1 --noise 2 --epsilon 1"
    line = f"select data.csv --inputs age --output height {models} --dry-run"
    assert "2 models of 40 rows: this takes" in good(line).err
    ages = "\n".join(["age,height", *(f"{age:.4f},1" for age in np.linspace(0, 80, 20_000))])
    Path("many.csv").write_text(ages)
    refused = run(line.replace("data.csv", "many.csv"))
    assert refused.code == 2
    assert "20000 rows are too many for a selection" in refused.err
    assert "plan without --kernel: the model is learned" in refused.err
    assert "this takes" not in refused.err
