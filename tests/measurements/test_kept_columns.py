"""Columns that a plan looked at are those that its release multiplies, while there is room for them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.kernels import EQ
from cloakgp.measurements import kept_columns
from cloakgp.measurements.columns import Seen
from cloakgp.measurements.recipes import Recipe
from cloakgp.plans import out_of_core
from cloakgp.rows import chunks

X = np.random.default_rng(0).uniform(0, 4, size=(300, 2))
PLACES = X[::25] + 0.01


@pytest.fixture(autouse=True)
def streamed(monkeypatch):
    monkeypatch.setattr(out_of_core, "DENSE", 0)
    monkeypatch.setattr(out_of_core, "LARGER", 1)
    monkeypatch.setattr(chunks, "CHUNK", 128)
    monkeypatch.setattr(chunks, "STEP", 50)


def planned(data=X):
    gp = GP(EQ(1.0), noise=0.5, bounds=(0.0, 1.0), inducing=PLACES)
    return gp.plan(data, X_star=PLACES[:4], epsilon=1.0, delta=1e-3)


def columns_of(plan, data=X):
    """What the private room gets, chunk by chunk."""
    made, recipe = [], plan.measurement.recipe
    for rows in chunks.chunks(len(data)):
        made += [columns for _, columns in recipe.over(data[rows], 0.5, 1.0, None, Seen())]
    return np.hstack(made)


def test_they_are_the_same_as_those_made_anew_and_cannot_be_changed(monkeypatch):
    plan = planned()
    made = []
    monkeypatch.setattr(
        Recipe, "columns", lambda *given, right=Recipe.columns: made.append(1) or right(*given)
    )
    kept = columns_of(plan)
    assert not made
    kept_columns.forget()
    np.testing.assert_array_equal(kept, columns_of(plan))
    assert made
    assert kept.dtype == np.int64
    assert np.abs(kept).max() > 2**20


def test_they_are_those_of_the_rows_that_are_there_now():
    plan, other = planned(), X.copy()
    other[140] += 0.5
    now = columns_of(plan, other)
    np.testing.assert_array_equal(np.flatnonzero((now != columns_of(plan)).any(axis=0)), [140])


def test_one_plan_has_them_at_a_time_and_only_while_it_is_there():
    first, second = planned(), planned(X[::-1])
    digest = next(iter(kept_columns._kept[1]))
    assert kept_columns.kept(first.measurement.recipe, digest) is None
    steps = kept_columns.kept(second.measurement.recipe, digest)
    assert sum(columns.shape[1] for _, columns in steps) == chunks.CHUNK
    assert not any(columns.flags.writeable for _, columns in steps)
    del second
    gc.collect()
    assert kept_columns._kept is None


def test_a_release_lets_them_go():
    plan = planned()
    assert kept_columns._kept is not None
    plan.release(np.zeros(len(X)))
    assert kept_columns._kept is None


def test_too_many_are_not_kept(monkeypatch):
    q = planned().measurement.n_measurements
    monkeypatch.setattr(kept_columns, "ENTRIES", q * len(X) - 1)
    planned()
    assert kept_columns._kept is None


def test_entries_too_large_for_32_bits_are_not_kept(monkeypatch):
    monkeypatch.setattr(kept_columns, "LARGEST", 2**20)
    planned()
    assert kept_columns._kept is None
