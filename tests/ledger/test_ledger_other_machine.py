"""What was charged for is had again on another machine, on which the same plan has other last digits."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import GP, AutoGP, Grid, Ledger, Plan
from cloakgp.kernels import EQ
from cloakgp.ledger.chain import LedgerError, LedgerTampered
from cloakgp.measure import measurement
from cloakgp.release.plan import recover_from

X = np.sort(np.random.default_rng(0).uniform(0, 9, 40))[:, None]
Y = np.sin(X[:, 0]) + 2
IDS = np.arange(40) // 4
STAR = X[::8]
PROMISE = {"epsilon": 1.0, "delta": 0.01}
MODEL = GP(EQ(3.0), 0.5, (0.0, 4.0))
AUTO = AutoGP((0.0, 4.0), stages=3)
PLANS = {
    "predictions": lambda: MODEL.plan(X, X_star=STAR, people=IDS, **PROMISE),
    "function": lambda: MODEL.plan_function(X, **PROMISE),
    "hidden": lambda: MODEL.plan_function(X, bound="input-free", basis=STAR, **PROMISE),
    "stages": lambda: AUTO.plan(X, X_star=STAR, **PROMISE),
    "stages for people": lambda: AUTO.plan(X, people=IDS, **PROMISE),
    "whole rows": lambda: AUTO.plan_rows(Grid({"x": (0.0, 9.0)}, 6), 40, **PROMISE),
}
IN_STAGES = ["stages", "stages for people", "whole rows"]


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    made.create("people", epsilon=9.0, delta=0.1)
    return made


@pytest.fixture
def other_machine(monkeypatch):
    """From now on, matrices come out with other last digits."""

    def move():
        right = measurement._rounded

        def elsewhere(B, bits):
            return right(B if np.ptp(B) == 0.0 else B * (1 - 1e-7), bits)  # ones are exact

        monkeypatch.setattr(measurement, "_rounded", elsewhere)

    return move


def private(name):
    return (X, Y) if name == "whole rows" else (Y,)


def answers(release):
    return [stage.answer.tolist() for stage in getattr(release, "stages", ())] or [release.z.tolist()]


@pytest.mark.parametrize("name", PLANS)
def test_the_same_question_has_the_same_answer(name, ledger, other_machine, tmp_path):
    plan = PLANS[name]()
    first = plan.release(*private(name), ledger=ledger, dataset="people", request="one")
    spent = next(entry.number for entry in ledger.entries() if entry.kind == "spent")
    other_machine()
    there = PLANS[name]()
    assert there.digest != plan.digest or name == "hidden"  # which shows no integers
    assert there.question_digest == plan.question_digest
    again = there.release(*private(name), ledger=ledger, dataset="people", request="one")
    for release in (again, there.recover(ledger, spent), recover_from(ledger, spent)):
        assert answers(release) == answers(first)
        assert release.plan.digest == first.plan.digest
        ask = "query" if name == "hidden" else "predict"
        np.testing.assert_allclose(getattr(release, ask)(STAR), getattr(first, ask)(STAR), rtol=1e-9)
        release.save(tmp_path / "release.cloak")
        assert cloakgp.verify(tmp_path / "release.cloak").proven_delta is not None or name == "hidden"
        ledger.verify([release])
    assert [entry.kind for entry in ledger.entries()].count("spent") == 1


@pytest.mark.parametrize("answered", [1, 2])
@pytest.mark.parametrize("name", IN_STAGES)
def test_a_release_that_stopped_goes_on_as_it_was_charged(
    name, answered, ledger, other_machine, monkeypatch, tmp_path
):
    plan = PLANS[name]()
    measure, done = Plan._measure, []

    def fail(self, *given):
        if len(done) == answered:
            raise ZeroDivisionError
        done.append(1)
        return measure(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Plan, "_measure", fail)
        with pytest.raises(ZeroDivisionError):
            plan.release(*private(name), ledger=ledger, dataset="people", request="one")
    assert ledger.is_unfinished(2)
    other_machine()
    there = PLANS[name]()
    release = there.release(*private(name), ledger=ledger, dataset="people", request="one")
    assert not ledger.is_unfinished(2)
    assert release.plan.digest == plan.digest != there.digest
    assert np.array_equal(release.stages[0].measurement.matrix, plan.first.measurement.matrix)
    assert len(release.stages) == 4
    release.save(tmp_path / "release.cloak")
    assert cloakgp.verify(tmp_path / "release.cloak").complete
    ledger.verify([tmp_path / "release.cloak"])


def test_another_question_does_not_get_the_answer(ledger):
    PLANS["stages"]().release(Y, ledger=ledger, dataset="people", request="one")
    for other in (AUTO.plan(X, X_star=STAR[:2], **PROMISE), AUTO.plan(X + 1e-9, X_star=STAR, **PROMISE)):
        with pytest.raises(LedgerError, match="another plan"):
            other.release(Y, ledger=ledger, dataset="people", request="one")


def test_another_plan_under_the_same_question_is_not_gone_on_with(ledger):
    """Whoever shares the ledger could have paid for a plan of other columns under this question's name."""
    own = PLANS["whole rows"]()
    other = AUTO.plan_rows(Grid({"secret": (0.0, 9.0)}, 6), 40, **PROMISE)
    object.__setattr__(other, "question_digest", own.question_digest)
    with ledger.charge(other, "people", request="one") as charge:
        charge.answer = np.array([1])
    with pytest.raises(LedgerTampered):
        own.release(X, Y, ledger=ledger, dataset="people", request="one")
    assert [entry.kind for entry in ledger.entries()] == ["opened", "created", "spent"]
