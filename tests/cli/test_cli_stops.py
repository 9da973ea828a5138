"""Ctrl-C and crashes: what was spent is said, it is nothing but where a ledger paid, and it is paid once."""

import json
from pathlib import Path

import pytest
from cli_helpers import PLAN, RELEASE, budget, good, run, spends

import cloakgp
from cloakgp.cli import exits, planning
from cloakgp.release.plan import Plan
from cloakgp.workflow import inputs

LEARN = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.01 --stages 3"


def stop(*arguments, **options):
    raise KeyboardInterrupt


def test_a_plan_stops_for_nothing(monkeypatch):
    monkeypatch.setattr(inputs, "plan_from", stop)
    stopped = run(f"{PLAN} -o plan.json --json")
    assert stopped.code == exits.STOPPED
    assert json.loads(stopped.out) == {"error": "stopped. Nothing was spent.", "exit_code": exits.STOPPED}


def test_a_release_in_one_step_stops_for_nothing_or_is_on_record(monkeypatch):
    """The charge and the answer are written at once: before that, nothing is spent."""
    budget()
    good(f"{PLAN} -o plan.json")
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "_measure", stop)
        stopped = run(f"{RELEASE} --yes")
        assert (stopped.code, spends()) == (exits.STOPPED, 0)
        assert "stopped. Nothing was spent." in stopped.err
        uncounted = run("release plan.json data.csv --no-ledger --yes -o a.cloak")
        assert "Nothing was written" in uncounted.err
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "_all_stages", stop)
        assert "on record: run the same command again" in run(f"{RELEASE} --yes").err
        assert spends() == 1
    assert "answered before" in good(RELEASE).err


def measure_until(monkeypatch, stages, error):
    """The program fails once it has measured so many stages."""
    left, measure = [stages], Plan._measure

    def failing(self, *arguments):
        if not left[0]:
            raise error
        left[0] -= 1
        return measure(self, *arguments)

    monkeypatch.setattr(Plan, "_measure", failing)


@pytest.mark.parametrize("answered", [1, 2])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (ValueError("secret"), 1)])
def test_a_release_that_died_half_way_goes_on_for_nothing(monkeypatch, answered, error, code):
    budget()
    good(f"{LEARN} --at grid:8 -o plan.json")
    with monkeypatch.context() as dying:
        measure_until(dying, answered, error)
        stopped = run(f"{RELEASE} --yes")
    assert stopped.code == code
    assert "stopped after it was paid for" in stopped.err
    assert not any(word in stopped.err + stopped.out for word in ("nothing was spent", "secret"))
    assert not Path("heights.cloak").exists()
    assert spends() == 1
    again = good(RELEASE)  # without a question: it is paid for
    assert "goes on where it stopped" in again.err
    assert len(cloakgp.load("heights.cloak").stages) == 4
    assert good("verify heights.cloak").code == 0
    once = Path("heights.cloak").read_bytes()
    assert "This was answered before" in good(RELEASE).err
    assert (Path("heights.cloak").read_bytes(), spends()) == (once, 1)


def test_work_that_takes_long_is_announced_with_what_takes_less(monkeypatch):
    models = "--bounds 50 170 --kernel EQ(5) --noise 1 --noise 2 --epsilon 1"
    select = f"select data.csv --inputs age --output height {models} --dry-run"
    for line in (PLAN, select):
        assert "this takes" not in good(line).err
    monkeypatch.setattr(planning, "PATIENCE", 0)
    assert "an exact model of 40 distinct rows takes" in run(PLAN).err
    assert "exact model" not in run(f"{PLAN} --inducing 5").err
    assert "2 models of 40 rows: this takes" in good(select).err
