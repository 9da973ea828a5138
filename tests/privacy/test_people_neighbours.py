"""All outcomes of one person may change: the integers move by no more than the noise was made for.

As in ``test_neighbours``: the noise is frozen, and the integers that it would hide are compared.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy_helpers import fails, frozen_noise
from test_neighbours import examples, outcomes

from cloakgp import GP, AutoGP
from cloakgp.designs import DESIGNS
from cloakgp.kernels import EQ
from cloakgp.measurements import lattice, recipes
from cloakgp.plans import out_of_core
from cloakgp.private import room
from cloakgp.rows import chunks
from cloakgp.rows.people import as_people

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

X = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 0.9, 1.0, 0.2])
IDS = ["a", "b", "a", "b", "a", "b", "d", "d"]
PROMISE = {"epsilon": 1.0, "delta": 0.01}
LOW, HIGH = 0.0, 10.0


def plan_of(kind="mse", people=IDS, within=1.0, X=X):
    gp = GP(
        EQ(0.5, variance=25.0), 8.0, (LOW, HIGH), inducing=None if kind in DESIGNS else [[0.1], [0.6], [1.0]]
    )
    if kind == "function":
        return replace(gp, inducing=None).plan_function(X, people=people, within=within, **PROMISE)
    design = kind if kind in DESIGNS else "mse"
    return gp.plan(X, X_star=[[0.2], [0.7]], design=design, people=people, within=within, **PROMISE)


def check_neighbours(plan, y, y_prime):
    """The squared distance of the integers that the noise would hide; at most the sensitivity's square."""
    m = plan.measurement
    first, second = (room._times(m, one, "midpoint").tolist() for one in (y, y_prime))
    squared = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    assert squared <= m.sensitivity() ** 2, "a person's outcomes move the measurements too far"
    return squared


KINDS = (*DESIGNS, "function", "inducing")


def of_person(person):
    return [row for row, one in enumerate(IDS) if one == person]


@examples
@given(st.data(), st.sampled_from(KINDS), st.sampled_from([0.0, 0.4, 1.0]))
def test_whatever_a_persons_outcomes_become_they_move_at_most_the_sensitivity(data, kind, within):
    y = np.array([data.draw(outcomes(LOW, HIGH)) for _ in IDS])
    y_prime = y.copy()
    for row in of_person(data.draw(st.sampled_from(IDS))):
        y_prime[row] = data.draw(outcomes(LOW, HIGH))
    check_neighbours(plan_of(kind, within=within), y, y_prime)


@pytest.mark.parametrize("kind", KINDS)
def test_some_extreme_outcomes_of_someone_attain_the_sensitivity(kind):
    """So it is exact: with any less noise the promise would be broken."""
    plan, most = plan_of(kind), 0
    for person in sorted(set(IDS)):
        rows = of_person(person)
        for ends in product((LOW, HIGH), repeat=len(rows)):
            y, y_prime = np.full(len(IDS), 5.0), np.full(len(IDS), 5.0)
            y[rows], y_prime[rows] = ends, [LOW + HIGH - end for end in ends]
            most = max(most, check_neighbours(plan, y, y_prime))
    steps = plan.measurement.sensitivity()
    assert (steps - 1) ** 2 < most <= steps**2


def test_a_sensitivity_of_rows_would_be_caught(monkeypatch):
    """The bug to fear: noise for one row where the promise is to a person."""
    monkeypatch.setattr(
        lattice, "largest_squared_move", lambda matrix, *_, signs: lattice.largest_squared_norm(matrix)
    )
    assert fails(test_some_extreme_outcomes_of_someone_attain_the_sensitivity, "mse", because="too far")


def test_the_room_refuses_noise_that_was_made_for_rows():
    m = replace(plan_of(people=None).measurement, people=as_people(IDS, len(IDS)))
    with pytest.raises(AssertionError, match="too small"):
        room.measure(m, np.zeros(len(IDS)), "error")


def test_the_room_refuses_people_of_other_rows():
    m = replace(plan_of().measurement, people=as_people(IDS[:-1], len(IDS) - 1))
    with pytest.raises(AssertionError, match="as many rows"):
        room.measure(m, np.zeros(len(IDS)), "error")


# Recipes


@pytest.fixture
def few_rows_are_many(monkeypatch):
    """Every plan with inducing inputs has a recipe; rows come in chunks of five, in steps of two."""
    monkeypatch.setattr(out_of_core, "DENSE", 1)
    monkeypatch.setattr(chunks, "CHUNK", 5)
    monkeypatch.setattr(chunks, "STEP", 2)


@pytest.mark.parametrize("data", [X, X + 0.01 * np.arange(8)], ids=["merged", "all different"])
def test_a_recipes_columns_move_with_a_person_by_at_most_what_was_declared(few_rows_are_many, data):
    plan, most = plan_of("recipe", X=data), 0
    matrix = plan.measurement.recipe.columns(data[:, None], plan.gp.noise).astype(object)
    for person in sorted(set(IDS)):
        for signs in product((-1, 1), repeat=len(of_person(person))):
            moved = matrix[:, of_person(person)] @ np.array(signs, dtype=object)
            most = max(most, int((moved**2).sum()) * 4**plan.measurement.y_bits)
    assert most <= plan.measurement.sensitivity() ** 2
    with frozen_noise():
        plan.release(np.linspace(LOW, HIGH, 8))


def test_columns_that_are_longer_together_are_refused_where_they_meet_y(few_rows_are_many):
    """No single one is: a plan's word for people's columns is not relied on."""
    plan = plan_of("recipe", X=X + 0.01 * np.arange(8))
    m = plan.measurement
    forged = replace(m, declared=m.declared - (1 << m.y_bits) * 100)
    with pytest.raises(AssertionError, match="person's columns"):
        room.measure(replace(forged, sigma=m.sigma), np.zeros(8), "error")


def test_a_recipe_that_forgets_its_people_is_refused(few_rows_are_many):
    plan = plan_of("recipe")
    for forged in (
        replace(plan.measurement, people=None),
        replace(plan.measurement, people=as_people(range(8), 8)),
    ):
        with pytest.raises(AssertionError, match=r"people|who has"):
            room.measure(forged, np.zeros(8), "error")


def test_a_scan_that_counts_rows_would_be_refused(few_rows_are_many, monkeypatch):
    right = recipes.longest_together
    monkeypatch.setattr(out_of_core, "longest_together", lambda norms, groups, people: int(norms.max()))
    plan = plan_of("recipe", X=X + 0.01 * np.arange(8), within=0.0)
    assert recipes.longest_together is right
    with pytest.raises(AssertionError, match="person's columns"):
        plan.release(np.zeros(8))


# Stages


@pytest.fixture(scope="module")
def staged():
    rng = np.random.default_rng(4)
    ids = np.sort(rng.integers(0, 12, size=40))
    x = np.round(rng.uniform(0, 10, size=40), 1)
    y = 5 + 2 * np.sin(x) + rng.normal(size=12)[ids]
    return ids, AutoGP((LOW, HIGH), stages=3).plan(
        x, X_star=np.linspace(0, 10, 6), people=ids, **PROMISE
    ).release(y)


def test_every_stage_moves_with_a_person_by_at_most_its_sensitivity(staged):
    ids, release = staged
    rng = np.random.default_rng(1)
    for stage in release.stages:
        for part in stage.plan.parts:
            steps, most = part.sensitivity(), 0
            for person in np.unique(ids):
                own = ids == person
                for _ in range(20):
                    y, y_prime = np.full((2, 40), 5.0)
                    y[own], y_prime[own] = rng.uniform(-5, 15, size=(2, own.sum()))
                    moved = room._times(part, y, "error") - room._times(part, y_prime, "error")
                    most = max(most, sum(int(step) ** 2 for step in moved))
            assert 0 < most <= steps**2


def test_the_noise_level_of_a_person_with_k_rows_moves_by_k_terms(staged):
    ids, release = staged
    k = np.bincount(ids).max()
    spread = replace(release.stages[1].plan.spread, limit=1.0)  # so that the bounds are farther
    assert spread.sensitivity() == k << spread.y_bits + spread.matrix_bits
    own = ids == np.argmax(np.bincount(ids))
    near, far = spread.centre[spread.labels].clip(LOW, HIGH), spread.centre[spread.labels].clip(LOW, HIGH)
    near[~own] = far[~own] = 0.0
    far[own] = np.where(near[own] > 5, LOW, HIGH)
    moved = room._times(spread, far, "error") - room._times(spread, near, "error")
    assert int(moved[0]) == spread.sensitivity()


def test_all_stages_together_keep_the_promise_to_people(staged):
    _, release = staged
    release.plan.rule.promise.check([stage.plan for stage in release.stages])
    assert release.certificate.unit == "one person"
