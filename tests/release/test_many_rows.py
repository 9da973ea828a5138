"""Releases in stages from more rows than are told apart: in memory, from a file, on a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import AutoGP
from cloakgp.core.errors import ArgumentError
from cloakgp.data import cells
from cloakgp.release import encoding
from cloakgp.release.plan import Plan, recover_from

BOUNDS, PROMISE = (0.0, 10.0), {"epsilon": 1.0, "delta": 1e-4}
X_STAR = np.linspace(0.1, 0.9, 5)[:, None]


def curve(X):
    return 5 + 2 * np.sin(5 * X[:, 0])


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 32)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(1500, 1))
    return X, curve(X) + 0.4 * rng.normal(size=len(X))


@pytest.fixture
def plan(table):
    return AutoGP(BOUNDS, stages=2).plan(table[0], X_star=X_STAR, **PROMISE)


def test_few_columns_and_good_predictions(table, plan):
    assert plan.measurement.matrix.shape[1] <= 32
    assert plan.measurement.n_rows == 1500
    assert plan.inputs_digest == plan.cells.digest  # millions of rows are not read for it once more
    assert np.abs(plan.release(table[1]).predict(X_STAR) - curve(X_STAR)).max() < 1.0


def test_what_was_answered_is_recovered_without_the_inputs(table, plan, tmp_path, monkeypatch):
    """The ledger keeps the plan that was charged for; what was not answered needs a plan of the own table."""
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)
    ledger = cloakgp.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.create("people", epsilon=PROMISE["epsilon"], delta=PROMISE["delta"])
    with ledger.charge(plan, "people") as charge:
        charge.answer = plan._measure(plan.first, plan._outcomes(table[1]), "error")
    entry = charge.receipt.entry
    unread = Plan.from_charged(ledger.charged_plan(entry))
    assert unread.X is None
    with pytest.raises(ArgumentError, match="made from your own table"):
        unread.recover(ledger, entry, table[1])
    assert [one.kind for one in ledger.entries("people")] == ["created", "spent"]
    whole = plan.recover(ledger, entry, table[1])
    assert np.array_equal(unread.recover(ledger, entry).z, whole.z)
    assert np.array_equal(recover_from(ledger, entry).z, whole.z)


def test_the_same_plan_from_a_memory_map(table, plan, tmp_path):
    np.save(tmp_path / "X.npy", table[0])
    there = AutoGP(BOUNDS, stages=2).plan(
        np.load(tmp_path / "X.npy", mmap_mode="r"), X_star=X_STAR, **PROMISE
    )
    assert there.digest == plan.digest
    there.release(table[1])
