"""A whole row may go from any cell and class to any other, or lack either: sums move as far as noise is for.

As in ``test_class_neighbours``, where inputs are private as well. Lemma 23.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from privacy_helpers import fails, require, squared_distance
from test_control_flow import trace

from cloakgp import GP, Grid
from cloakgp.kernels import EQ, Constant
from cloakgp.measurements import whole_rows
from cloakgp.measurements.lattice import Part
from cloakgp.measurements.whole_rows import Population, RowSums
from cloakgp.private import room
from cloakgp.private.rows import PrivateRows

CLASSES = ("a", "b", "c")
GRID = Grid({"x": (0.0, 1.0)}, cells=4)
N, PEOPLE, MOST = 6, 5, 2
OTHERS = [(0.3, "b"), (0.6, "c"), (0.9, "a"), (0.1, "b")]
STATES = [*product((0.1, 0.4, 0.6, 0.9), (*CLASSES, None)), (float("nan"), "a")]  # None: no class


@cache
def stages(most=None):
    """All that a release measures."""
    plan = GP(EQ(0.3) + Constant(1.0), classes=CLASSES).plan_rows(
        GRID, N if most is None else PEOPLE, X_star=[[0.2], [0.7]], epsilon=1.0, delta=0.01, max_rows=most
    )
    own = [(0.4, "c")] * 2
    x, y = zip(*own, *OTHERS, strict=True)
    people = None if most is None else [0, 0, 1, 2, 3, 4]
    made = plan.release(np.array(x)[:, None], y, people=people)
    return [part for stage in made.stages for part in stage.plan.parts]


def opposite(most=None, n_classes=3):
    """Columns of two cells that are opposite: as sums may have them, if a design asks for a contrast."""
    B = np.array([[1.0, -1.0, 0.5, 0.0]])
    given = (0.0, 1.0), np.ones(4), GRID, Population(N if most is None else PEOPLE, most)
    return whole_rows.make_sums(B, *given, 1.0, 0.01, 0.3, Part(0.5, 100), n_classes)


def sums(part, own):
    """The exact integers if the first row, or all rows of the first person, are these."""
    alone = part.population.max_rows is None
    rest = [*OTHERS, (0.5, "a")] if alone else OTHERS
    x, y = zip(*own, *rest, strict=True)
    people = None if alone else [0] * len(own) + [1, 2, 3, 4]
    rows = PrivateRows(np.array(x)[:, None], list(y), people)
    return room._times(part, rows, "midpoint", None, CLASSES).tolist()


def check_rows(part):
    """Whoever has these rows moves the integers no further than the sensitivity, and as far."""
    own = [[one] for one in STATES]
    if part.population.max_rows is not None:
        own += [list(both) for both in combinations_with_replacement(STATES, MOST)]
    found = [sums(part, each) for each in own]
    most = max(squared_distance(one, other) for one in found for other in found)
    assert most <= part.sensitivity() ** 2, "rows move the sums too far"
    assert (part.sensitivity() - 1) ** 2 < most, "noise is for more than any row can do"


@pytest.mark.parametrize("most", [None, MOST])
def test_rows_that_go_from_any_cell_and_class_to_any_other_move_the_sums_by_the_sensitivity_at_most(most):
    parts = stages(most)
    require([part.classes for part in parts[:2]] == [1, 3], "counts have classes, or sums have none")
    for part in (*parts, opposite(most)):
        check_rows(part)


def test_a_row_that_keeps_its_class_can_move_the_sums_further_than_one_that_changes_it():
    """By the root of 4/3, for three classes and opposite columns; without a share taken off, of 2."""
    part = opposite()
    kept, changed = (
        squared_distance(sums(part, [(0.1, "a")]), sums(part, [there])) for there in ((0.4, "a"), (0.1, "b"))
    )
    assert 1.33 < kept / changed < 1.34


class WithoutTheRoot(RowSums):
    """Noise for yes and no."""

    def sensitivity(self):
        return remade(self, RowSums, classes=1).sensitivity()


class Uncentred(RowSums):
    """One-hot integers as they are, with the noise that is for what is taken off."""

    share = 0

    def sensitivity(self):
        return remade(self, RowSums).sensitivity()


class OneRow(RowSums):
    """Noise for one row of a person."""

    def sensitivity(self):
        return remade(self, RowSums, population=Population(PEOPLE)).sensitivity()


def remade(part, kind, **changes):
    return kind(**{field.name: getattr(part, field.name) for field in fields(part)} | changes)


def test_planted_bugs_are_caught(monkeypatch):
    bugs = (stages()[1], WithoutTheRoot), (opposite(), Uncentred), (opposite(MOST), OneRow)
    for part, kind in bugs:
        require(not fails(check_rows, part, because="too far"), "it is caught without a bug")
        assert fails(check_rows, remade(part, kind), because="too far")
    monkeypatch.setattr(whole_rows, "furthest_squared", lambda *given, **named: 0)
    assert fails(check_rows, opposite(), because="too far")


@pytest.mark.parametrize("n_classes", [3, 7, 50])
def test_any_number_of_classes_has_the_sensitivity_of_its_integers(n_classes):
    """Between two classes, all cells and being missing, in integers that are worked out here."""
    part = opposite(n_classes=n_classes)
    s, one = 2**part.y_bits // n_classes, 2**part.y_bits
    hot = [np.array([one * (c == own) - s for c in range(n_classes)], dtype=object) for own in (0, 1)]
    terms = [np.outer(hot_of, part.matrix[0].astype(object)[cell]) for hot_of in hot for cell in range(4)]
    terms.append(np.zeros((n_classes, 1), dtype=object))
    most = max(int(((a - b) ** 2).sum()) for a in terms for b in terms)
    assert (part.sensitivity() - 1) ** 2 < most <= part.sensitivity() ** 2


def test_the_same_instructions_run_whatever_the_labels_and_inputs_are():
    part = stages()[1]

    def measured(own):
        rows = PrivateRows(np.full((N, 1), own[0]), [own[1]] * N, None)
        room.measure(part, rows, "midpoint", None, CLASSES)

    measured(STATES[0])
    traces = [trace(measured, own) for own in (STATES[0], STATES[1], STATES[7], STATES[-1])]
    require(any(step[0].endswith("private/room.py") for step in traces[0]), "the room was not traced")
    assert all(other == traces[0] for other in traces[1:])


def test_the_room_refuses_noise_that_was_made_for_fewer_classes():
    yes_no = opposite(n_classes=1)
    with pytest.raises(AssertionError, match="too small"):
        remade(yes_no, RowSums, classes=3).check()
    with pytest.raises(AssertionError, match="does not count as one"):
        remade(stages()[0], type(stages()[0]), classes=3).check()
