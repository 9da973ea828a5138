"""One label may become any other, or be missing: the sums of all classes move by no more than noise is for.

As in ``test_neighbours``: the exact integers that the noise would hide are compared. Lemma 22.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from privacy_helpers import fails, squared_distance

from cloakgp import GP, AutoGP
from cloakgp.kernels import EQ, Constant
from cloakgp.measurements import lattice
from cloakgp.private import room
from cloakgp.rows.people import as_people

pytestmark = pytest.mark.usefixtures("few_models")  # privacy does not depend on how well models are learned

CLASSES = ("a", "b", "c")
LABELS = (*CLASSES, None)  # None, and whatever is no class, is missing
X = np.array([0.0, 0.1, 0.4, 0.4, 0.9, 1.0])
IDS = ["p", "q", "p", "q", "p", "r"]
PROMISE = {"epsilon": 1.0, "delta": 0.01}


@cache
def plan(people: bool = False, learned: bool = False):
    model = AutoGP(classes=CLASSES) if learned else GP(EQ(0.5) + Constant(1.0), classes=CLASSES)
    return model.plan(X, X_star=[[0.2], [0.7]], people=IDS if people else None, **PROMISE)


@cache
def sums(m, labels):
    return room._times(m, list(labels), "midpoint", None, CLASSES).tolist()


def furthest(m, rows):
    """How far the integers move at most, squared, where the labels of these rows become any others."""
    everywhere = ["b"] * m.n_rows
    found = []
    for own in product(LABELS, repeat=len(rows)):
        for row, label in zip(rows, own, strict=True):
            everywhere[row] = label
        found.append(sums(m, tuple(everywhere)))
    return max(squared_distance(one, other) for one in found for other in found)


def check_labels(m, everybody, exact=True):
    """Nobody moves the integers further than the sensitivity; and somebody does so far, if it is exact."""
    most, steps = max(furthest(m, rows) for rows in everybody), m.sensitivity()
    assert most <= steps**2, "labels move the sums too far"
    assert not exact or (steps - 1) ** 2 < most, "noise is for more than any label can do"


ONE = [[row] for row in range(6)]
PEOPLE = [[0, 2, 4], [1, 3], [5]]


def test_a_label_that_becomes_any_other_moves_the_sums_by_the_sensitivity_at_most():
    m = plan().first.measurement
    assert m.classes == 3
    assert len(room._times(m, ["a"] * 6, "error", None, CLASSES)) == m.n_measurements == 3 * len(m.matrix)
    check_labels(m, ONE)


def test_all_labels_of_one_person_move_the_sums_by_the_sensitivity_at_most():
    check_labels(plan(people=True).first.measurement, PEOPLE)


@pytest.mark.parametrize("people", [False, True])
def test_every_stage_of_a_model_that_is_learned(people):
    for stage in plan(people, learned=True).release(["a", "b", "a", "c", "c", "b"]).stages:
        for part in stage.plan.parts:
            check_labels(part, PEOPLE if people else ONE, exact=not people)


def three_ways():
    """One person with three rows whose columns point in directions a third of a turn apart."""
    turn = 2 * np.pi * np.arange(3) / 3
    B = np.column_stack([np.cos(turn), np.sin(turn)]).T
    return lattice.to_integers(B, (0.0, 1.0), 1.0, 0.01, 0.3, people=as_people([0, 0, 0], 3), classes=3)


def test_signs_are_no_bound_where_there_are_classes():
    """The three labels a, b, c become b, c, a: further than any signs of the columns would allow."""
    m = three_ways()
    moved = squared_distance(sums(m, ("a", "b", "c")), sums(m, ("b", "c", "a")))
    with_signs = 2 * 4**m.y_bits * lattice.largest_squared_move(m.matrix, m.labels, m.people)
    assert moved > 1.12 * with_signs
    check_labels(m, [[0, 1, 2]], exact=False)


class WithoutTheRoot(lattice.Measurement):
    """The bug to fear: noise that is for yes and no."""

    def sensitivity(self):
        return replace(self, classes=1).sensitivity() if self.classes > 1 else super().sensitivity()


def test_noise_for_yes_and_no_would_be_caught():
    m = plan().first.measurement
    forgetful = WithoutTheRoot(**{field.name: getattr(m, field.name) for field in fields(m)})
    assert fails(check_labels, forgetful, ONE, because="too far")


def test_signs_for_people_would_be_caught(monkeypatch):
    right = lattice.largest_squared_move
    monkeypatch.setattr(lattice, "largest_squared_move", lambda *given, signs=True: right(*given))
    assert fails(check_labels, three_ways(), [[0, 1, 2]], because="too far")


def test_the_room_refuses_noise_that_was_made_for_fewer_classes():
    m = GP(EQ(0.5), outcome="yes/no").plan(X, X_star=[[0.2], [0.7]], **PROMISE).first.measurement
    with pytest.raises(AssertionError, match="too small"):
        room.measure(replace(m, classes=3), ["a"] * 6, "error", None, CLASSES)
