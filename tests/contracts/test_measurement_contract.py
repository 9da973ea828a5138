"""What every measurement must keep, whatever its columns, its statistic and the unit that it protects.

A sensitivity is compared with what one unit really moves: all its outcomes, or rows, are tried, through the
private room's own door. Theorems 1, 20 and 21, lemmas 11, 13, 15, 16, 19 and 22 to 25 of ``docs/proofs.md``.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from cloakgp.core.calibration import SIGMA_FLOOR
from cloakgp.data import chunks
from cloakgp.data.merging import Groups
from cloakgp.data.people import as_people
from cloakgp.measure import measurement, sensitivity
from cloakgp.measure.measurement import HEADROOM, Measurement, Part
from cloakgp.measure.sensitivity import largest_squared_move, largest_squared_norm
from cloakgp.measure.statistics import BIN_ENDS, WHOLE, Bin, Distance, Inside, OneOf, Outside, Present
from cloakgp.measure.statistics import PLACES as STEPS
from cloakgp.measure.unit import UNITS, Population
from cloakgp.private import outcomes, room
from cloakgp.private import rows as private_rows
from cloakgp.private.rows import EXPECTED_ROWS, INCOMPLETE_ROWS
from measured import (
    BINS,
    CASES,
    GRID,
    HIGH,
    IDS,
    LOW,
    LOWER,
    MOST,
    NAN,
    PLACES,
    UPPER,
    case,
    exact,
    made,
    squared_distance,
)
from measured import UNITS as OF_CASES

every = pytest.mark.parametrize("name", CASES, ids=" x ".join)
WRITTEN = [name for name in CASES if name[0] not in BINS]
written = pytest.mark.parametrize("name", WRITTEN, ids=" x ".join)
SNAN = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0]
ODD = [NAN, SNAN, np.inf, -np.inf, 1.7e308, -1e308, 5e-324, -5e-324, -0.0, 0.0, 1.0, 2.0, 3.0, 0.5]
ODD += [LOW, HIGH, np.nextafter(LOW, -9), np.nextafter(HIGH, 9), (LOW + HIGH) / 2, 1e-300, 7e15]


# ------------------------------------------------------------------------------- how far one unit moves it


@every
def test_nobody_moves_it_further_than_its_sensitivity_and_somebody_as_far(name):
    one = case(*name)
    moved, steps = one.furthest(), one.m.sensitivity()
    assert moved <= steps**2, "one unit moves the measurements further than noise is for"
    assert int((steps - 1) * one.least) ** 2 < moved, "noise is for more than anybody can do"
    assert one.m.mu() * one.m.sigma >= steps


def test_signs_are_no_bound_where_there_are_classes():
    """One person's columns a third of a turn apart: labels a, b, c become b, c, a. Lemma 22c."""
    turn = 2 * np.pi * np.arange(3) / 3
    three = made(np.array([np.cos(turn), np.sin(turn)]), OneOf(0.0, 1.0), people=as_people([0, 0, 0], 3))
    moved = squared_distance(exact(three, [0, 1, 2]), exact(three, [1, 2, 0]))
    with_signs = three.statistic.change * largest_squared_move(three.matrix, three.labels, three.people)
    assert 1.12 * with_signs < moved <= three.sensitivity() ** 2


@pytest.mark.parametrize("n_classes", [3, 7, 50])
@pytest.mark.parametrize("most", [None, MOST])
def test_any_number_of_classes_has_the_sensitivity_of_its_integers(n_classes, most):
    """A row that keeps its class and goes to an opposite cell moves them furthest: lemma 23."""
    statistic = OneOf(0.0, 1.0, centred=True, classes=n_classes)
    m = made(np.array([[1.0, -1.0, 0.5, 0.0]]), statistic, population=Population(GRID, 4, most))
    one, each = 1 << m.y_bits, m.population.each
    hot = [[one * (c == own) - one // n_classes for c in range(n_classes)] for own in (0, 1)]
    terms = [[b * v for v in row] for row in hot for b in m.matrix[0].tolist()] + [[0] * n_classes]
    moved = each**2 * max(squared_distance(a, b) for a in terms for b in terms)
    assert (m.sensitivity() - 1) ** 2 < moved <= m.sensitivity() ** 2


@written
def test_the_unit_is_the_one_that_was_asked_for(name):
    assert case(*name).m.unit == UNITS[name[2].replace("whole rows", "one whole row", name[2][0] == "w")]


@pytest.mark.parametrize("declared", [-1, 0, 1])
@written
def test_what_is_declared_makes_noise_larger_alone(name, declared):
    m = case(*name).m
    assert replace(m, declared=declared).sensitivity() == m.sensitivity()
    more = replace(m, declared=2 * m.sensitivity())
    assert more.sensitivity() == 2 * m.sensitivity()
    with pytest.raises(AssertionError):
        more.check()


# -------------------------------------------------------------------------------------- y becomes integers


@every
def test_integers_are_in_their_range_whatever_y_is(name):
    """And nothing warns, under the strictest settings; so their differences are what sensitivity rests on."""
    s = case(*name).m.statistic
    for label in range(case(*name).m.matrix.shape[1]):
        at = s.at(np.full(len(ODD), label))
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            integers, usable = outcomes.integers_of(at, np.array(ODD))
        assert integers.dtype == np.int64
        assert integers.shape == (len(ODD), s.width)
        found = integers.astype(object)
        apart = max(int(((a - b) ** 2).sum()) for a in found for b in found)
        assert apart <= s.change, "outcomes are further apart than the statistic says"
        low = {"Inside": -s.centred * s.largest // 2, "OneOf": -getattr(s, "share", 0)}.get(name[1], 0)
        low = -int(at.below if at.below.ndim == 0 else at.below[0]) if name[1] == "Outside" else low
        assert integers.min() >= low
        assert integers.max() <= low + s.largest
        alone = [outcomes.integers_of(s.at(np.full(1, label)), np.array([y]))[0][0].tolist() for y in ODD]
        assert integers.tolist() == alone, "what one outcome becomes depends on others"
        known = np.isin(ODD, range(3)) if name[1] == "OneOf" else np.isfinite(ODD)
        assert usable.tolist() == known.tolist()
        nothing = integers[~known]
        middle = {
            "Inside": s.largest // 2 + low,
            "Outside": 0,
            "Distance": s.largest // 2,
            "OneOf": 0,
            "Present": 1,
            "Bin": 0,
        }
        assert (nothing == middle[name[1]]).all(), "what is missing is not in the middle"


def bins(edges, atoms):
    """Bins with edges in eighths of the bounds' width, and probabilities at the bounds in eighths, too."""
    own = np.array([[*edges, *[8] * (len(BIN_ENDS) - len(edges))]])
    return Bin(0.0, 8.0, 3, edges=own * STEPS // 8, atoms=np.array([atoms]) * WHOLE // 8)


def in_bins(shares):
    return [shares.get(number, 0) for number in range(Bin.width)]


BEYOND = (
    Outside(2.0, 6.0, 2, bounds=(0.0, 8.0)),
    [-9, 0, 1, 1.4, 2, 4, 6, 7, 8, 99],
    [-2, -2, -1, -1, 0, 0, 0, 1, 2, 2],
)
EDGES = (  # an outcome that is just there is in the bin above
    bins([4], (1, 1)),
    [0.5, 4, 7.5, NAN],
    [in_bins({0: 8}), in_bins({1: 8}), in_bins({1: 8}), in_bins({})],
)


@pytest.mark.parametrize(
    ("s", "y", "integers"),
    [
        (Inside(0.0, 8.0, 3), [0, 1, 3.4, 8, 9, -1], [0, 1, 3, 8, 8, 0]),
        (Inside(0.0, 8.0, 3, centred=True), [0, 1, 3.4, 8, 9], [-4, -3, -1, 4, 4]),
        (Inside(np.array([0.0, 4.0]), np.array([8.0, 5.0]), 3), [2, 4.25], [2, 2]),
        (Distance(0.0, 8.0, 3, centre=np.full(4, 2.0), limit=4.0), [2, 1, 4, 80], [0, 2, 4, 8]),
        (
            Distance(0.0, 3.0, 3, centre=np.full(2, 2.0), limit=4.0),
            [80, -80],
            [2, 4],
        ),  # clipped to the bounds
        BEYOND,
        (Outside(0.0, 2.0, 3, bounds=(0.0, 4.0)), [0, 2, 2.5, 4, 9, -9, NAN], [0, 0, 2, 8, 8, 0, 0]),
        (Outside(np.array([1.0, 0.0]), np.array([2.0, 8.0]), 3, bounds=(0.0, 8.0)), [0, 8], [-1, 0]),
        (OneOf(0.0, 1.0, 3), [0, 2], [[8, 0, 0], [0, 0, 8]]),
        (OneOf(0.0, 1.0, 3, centred=True), [1, 3], [[-2, 6, -2], [0, 0, 0]]),
        (Present(), [5, NAN], [1, 1]),
        EDGES,
        (bins([0, 0, 0, 0, 4], (1, 1)), [0.5, 5], [in_bins({4: 8}), in_bins({5: 8})]),
        (bins([], (4, 1)), [0, -9], 2 * [in_bins({2: 1, 3: 3, 4: 4})]),  # ends at 0.08, 0.4, 1.6 and 4 of 8
        (bins([], (1, 1)), [8, 9], 2 * [in_bins({8: 1, 7: 5, 6: 2})]),
    ],
    ids=str,
)
def test_integers_by_hand(s, y, integers):
    found = outcomes.integers_of(s, np.array(y, dtype=float))[0]
    assert (found if found.shape[1] > 1 else found[:, 0]).tolist() == integers


@every
def test_the_product_is_exact_and_its_size_is_foreseen(name):
    """In Python's integers, which cannot wrap; at the ends of the bounds as well."""
    one = case(*name)
    for own in one.states()[0][::3]:
        assert max(abs(int(z)) for z in exact(one.m, one.table(own))) <= one.m.largest_sum()
    assert one.m.largest_sum() + 64 * one.m.sigma < HEADROOM
    if one.whole:
        return
    matrix = one.m.matrix.toarray() if name[0] in BINS else one.m.matrix
    for own in (one.states()[0][-1], one.values[0]):
        y = one.table(own)
        integers = outcomes.integers_of(one.m.statistic.at(one.m.labels), y)[0].astype(object)
        by_row = matrix.astype(object)[:, one.m.labels]
        assert exact(one.m, y).tolist() == (by_row @ integers).T.ravel().tolist(), "the product is not exact"


@pytest.mark.parametrize("unit", ["one row", "one person"])
def test_each_row_is_clipped_to_its_own_window(unit):
    m = case("windows", "Inside", unit).m
    for y, share in ((LOWER, 0), (LOWER - 9, 0), (UPPER, 2), (UPPER + 9, 2), ((LOWER + UPPER) / 2, 1)):
        assert exact(m, y).tolist() == (m.column_sum * share * 2 ** (m.y_bits - 1)).tolist()


@pytest.mark.parametrize("unit", ["whole rows", "one person's whole rows"])
def test_room_is_for_all_rows_in_one_cell(unit):
    """Real counts decide nothing: estimates are not looked at."""
    m = case("rows", "Inside", unit).m
    matrix = np.zeros_like(m.matrix)
    matrix[0, 0] = 2 ** (61 - m.y_bits)
    few = Groups(np.empty(0, dtype=np.intp), np.full(4, 1e-9))
    with pytest.raises(AssertionError, match="overflow"):
        replace(m, matrix=matrix, groups=few, sigma=SIGMA_FLOOR).check()


# ------------------------------------------------------------------------------------------------ refusals


def wrong_counts(m):
    labels = np.arange(5) if m.groups is None else m.groups.labels
    return replace(m, groups=Groups(labels, np.roll(np.bincount(labels), 1) + (m.groups is None)))


def other_matrix(m, change):
    matrix = m.matrix.copy()
    change(matrix)
    return replace(m, matrix=matrix)


def longest(m):
    return int(np.argmax((m.matrix.astype(float) ** 2).sum(axis=0)))


FORGED = {  # what makes noise too small, or sums wrap: each for those measurements that have such a thing
    "less noise": lambda m: replace(m, sigma=int(m.sigma * (1 - 1e-6)) & -1024),
    "a coarse lattice": lambda m: replace(m, sigma=SIGMA_FLOOR - 1),
    "no noise": lambda m: replace(m, sigma=0),
    "noise below nothing": lambda m: replace(m, sigma=-m.sigma),
    "a scale that is no float": lambda m: replace(m, sigma=max(m.sigma, 2**53) + 1),
    "noise that overflows": lambda m: replace(m, sigma=2**57),
    "a stricter promise": lambda m: replace(m, epsilon=0.2 * m.epsilon),
    "no epsilon": lambda m: replace(m, epsilon=NAN),
    "a smaller delta": lambda m: replace(m, delta=1e-12),
    "no delta": lambda m: replace(m, delta=NAN),
    "a smaller share": lambda m: replace(m, part=Part(0.05, 50)),
    "no share": lambda m: replace(m, part=Part(NAN, 50)),
    "more numbers to come": lambda m: replace(m, part=Part(0.9, 10**17)),
    "a finer lattice": lambda m: replace(m, statistic=m.statistic.with_bits(m.y_bits + 3)),
    "sums that wrap": lambda m: replace(m, statistic=m.statistic.with_bits(62)),
    "a window that holds nothing": lambda m: replace(m, statistic=replace(m.statistic, lower=m.upper)),
    "a window that is none": lambda m: replace(m, statistic=replace(m.statistic, upper=NAN)),
    "numbers that are not integers": lambda m: replace(m, matrix=m.matrix.astype(float)),
    "short integers": lambda m: replace(m, matrix=m.matrix.astype(np.int32)),
    "integers without sign": lambda m: replace(m, matrix=m.matrix.astype(np.uint64)),
    "a longer column": lambda m: other_matrix(m, lambda a: a.__setitem__((0, 0), 9 * a[0, longest(m)])),
    "squares that wrap": lambda m: other_matrix(m, lambda a: a.__setitem__((0, 0), 2**41)),
    "the least integer": lambda m: other_matrix(m, lambda a: a.__setitem__((0, 0), -(2**63))),
    "wrong counts": wrong_counts,
    "people of other rows": lambda m: replace(m, people=as_people([0, 0], 2)),
    "people with more rows": lambda m: replace(m, people=as_people([0] * 5, 5)),
    "columns of other cells": lambda m: replace(m, matrix=m.matrix[:, :3]),
    "nobody": lambda m: replace(m, population=m.population._replace(size=0)),
    "nobody's rows": lambda m: replace(m, population=m.population._replace(max_rows=0)),
    "people and cells": lambda m: replace(m, people=as_people(IDS, 5)),
    "more rows than noise is for": lambda m: replace(m, population=m.population._replace(max_rows=9)),
    "outcomes that are not centred": lambda m: replace(m, statistic=replace(m.statistic, centred=False)),
    "no middle": lambda m: replace(m, statistic=m.statistic.with_bits(0)),
    "distances with unlike columns": lambda m: other_matrix(m, lambda a: a.__setitem__((0, 1), a[0, 1] - 1)),
    "distances below nothing": lambda m: replace(m, matrix=-m.matrix),
    "distances twice": lambda m: replace(m, matrix=np.vstack([m.matrix, m.matrix])),
    "rows that count for more": lambda m: replace(m, statistic=Present(y_bits=1)),
    "rows that count for parts": lambda m: replace(m, statistic=Present(0.0, 2.0)),
    "no classes": lambda m: replace(m, statistic=replace(m.statistic, classes=0)),
    "shares that are no row": lambda m: replace(
        m, statistic=replace(m.statistic, atoms=0 * m.statistic.atoms)
    ),
    "shares of more than a row": lambda m: replace(
        m, statistic=replace(m.statistic, atoms=m.statistic.atoms + WHOLE)
    ),
    "edges of fewer bins": lambda m: replace(
        m, statistic=replace(m.statistic, edges=m.statistic.edges[:, 1:])
    ),
    "edges of other columns": lambda m: replace(
        m, statistic=replace(m.statistic, edges=m.statistic.edges[1:])
    ),
    "edges that are no integers": lambda m: replace(
        m, statistic=replace(m.statistic, edges=m.statistic.edges / 1)
    ),
    "a window that is the bounds": lambda m: replace(
        m, statistic=replace(m.statistic, lower=np.full(m.matrix.shape[1], -3.0), upper=9.0 - 1e-6)
    ),
    "bounds that hold nothing": lambda m: replace(m, statistic=replace(m.statistic, bounds=(2.0, 2.0))),
    "windows of other columns": lambda m: replace(
        m, statistic=replace(m.statistic, lower=np.zeros(7), upper=np.ones(7))
    ),
    "many classes": lambda m: replace(m, statistic=OneOf(0.0, 1.0, m.y_bits, True, classes=4)),
}
ONLY = {  # kinds, and whether rows are whole, where a forgery makes sense
    "a finer lattice": ({"Inside", "Outside", "Distance", "OneOf", "Bin"}, None),
    "sums that wrap": ({"Inside", "Outside", "Distance", "OneOf", "Bin"}, None),
    "a window that is the bounds": ({"Outside"}, None),
    "bounds that hold nothing": ({"Outside"}, None),
    "windows of other columns": ({"Outside"}, None),
    "shares that are no row": ({"Bin"}, None),
    "shares of more than a row": ({"Bin"}, None),
    "edges of fewer bins": ({"Bin"}, None),
    "edges of other columns": ({"Bin"}, None),
    "edges that are no integers": ({"Bin"}, None),
    "wrong counts": (None, False),
    "people of other rows": (None, False),
    "people with more rows": (None, False),
    "columns of other cells": (None, True),
    "nobody": (None, True),
    "nobody's rows": (None, True),
    "people and cells": (None, True),
    "more rows than noise is for": (None, True),
    "outcomes that are not centred": ({"Inside", "Outside", "OneOf"}, True),
    "no middle": ({"Inside", "Outside", "OneOf"}, True),
    "distances with unlike columns": ({"Distance", "Bin"}, None),
    "distances below nothing": ({"Distance", "Bin"}, None),
    "distances twice": ({"Distance", "Bin"}, None),
    "rows that count for more": ({"Present"}, None),
    "rows that count for parts": ({"Present"}, None),
    "no classes": ({"OneOf"}, None),
    "many classes": ({"Inside"}, True),
}


class Counted:
    """y that counts how often it is read."""

    def __init__(self, y):
        self.y, self.reads = np.asarray(y), 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return np.array(self.y, dtype=dtype)

    def __len__(self):
        return len(self.y)


@pytest.mark.parametrize("forgery", FORGED)
def test_what_would_break_the_promise_is_refused_before_y_is_looked_at(forgery):
    kinds, whole = ONLY.get(forgery, (None, None))
    tried = 0
    for name in WRITTEN:
        one = case(*name)
        if (kinds is None or name[1] in kinds) and whole in (None, one.whole):
            forged, table = FORGED[forgery](one.m), one.table(one.states()[0][1])
            y = Counted(table.y if one.whole else table)
            unread = room.PrivateRows(Counted(table.X), y, table.people) if one.whole else y
            with pytest.raises(AssertionError):
                room.measure([one.m, forged], unread, "error")
            assert y.reads == 0
            assert not one.whole or unread.X.reads == 0
            exact(one.m, unread)  # so that what is refused is the forgery
            tried += 1
    assert tried


LAPLACE_FORGED = {
    "less noise": lambda m: replace(m, sigma=int(m.sigma * (1 - 1e-6))),
    "a delta": lambda m: replace(m, delta=0.01),
    "no epsilon": lambda m: replace(m, epsilon=NAN),
    "all of epsilon": lambda m: replace(m, epsilon=np.inf),
    "a part of a promise": lambda m: replace(m, part=Part(0.9, 50)),
    "several classes": lambda m: replace(m, statistic=OneOf(0.0, 1.0, m.y_bits - 3)),
    "another law": lambda m: replace(m, noise="uniform"),
    "Gaussian noise of that scale": lambda m: replace(m, noise="gaussian", delta=0.01),
    "people with more rows": lambda m: replace(m, people=as_people([0] * 5, 5)),
    "sums that wrap": lambda m: replace(m, statistic=m.statistic.with_bits(62)),
    "a longer column": lambda m: replace(m, matrix=2 * m.matrix),
    "entries that wrap": lambda m: replace(m, matrix=m.matrix * -(2**63)),
    "short integers": lambda m: replace(m, matrix=m.matrix.astype(np.int32)),
}


@pytest.mark.parametrize("forgery", LAPLACE_FORGED)
@pytest.mark.parametrize("unit", ["one row", "one person"])
def test_laplace_noise_that_would_break_the_promise_is_refused(forgery, unit):
    one, y = case(BINS[0], "Inside", unit).m, Counted(np.zeros(5))
    with pytest.raises(AssertionError):
        room.measure(LAPLACE_FORGED[forgery](one), y, "error")
    assert y.reads == 0
    exact(one, y)


def test_rows_do_not_count_where_inputs_are_public():
    """That there is a row is known then: there is nothing to measure."""
    with pytest.raises(AssertionError, match="does not count as one"):
        replace(case("rows", "Inside", "one row").m, statistic=Present()).check()
    with pytest.raises(ValueError, match="too few bits"):
        made(np.ones((1, 5)), Present())


def test_noise_for_rows_is_none_for_people_and_for_one_class_none_for_several():
    one = case("rows", "Inside", "one row").m
    with pytest.raises(AssertionError, match="too small"):
        replace(one, people=as_people(IDS, 5)).check()
    with pytest.raises(AssertionError, match="too small"):
        replace(one, statistic=OneOf(0.0, 1.0, one.y_bits)).check()
    whole = case("rows", "Inside", "whole rows").m
    with pytest.raises(AssertionError, match="too small"):
        replace(whole, population=whole.population._replace(max_rows=2)).check()


# ------------------------------------------------------------------------------------------- missing, words


@every
def test_missing_outcomes_are_refused_before_noise_is_drawn_or_stand_in_the_middle(name):
    one = case(*name)
    nothing = one.table([(0.1, NAN)] if one.whole else [NAN] * len(one.states()[0][0]))
    message = INCOMPLETE_ROWS if one.whole else outcomes.INCOMPLETE
    with mock.patch.object(room, "add_noise", side_effect=AssertionError("noise was drawn")):
        with pytest.raises(ValueError, match="must be") as refused:
            room.measure(one.m, nothing, "error")
        assert str(refused.value) == message
        with pytest.raises(ValueError, match="missing must be one of 'error', 'midpoint'; got"):
            room.measure(one.m, nothing, "drop")
    if name[1] == "Inside":
        m, people = one.m, None
        size = 5 if not one.whole else 3 if m.population.max_rows is None else 4
        gone = np.full(size, NAN)
        if one.whole:
            people = None if m.population.max_rows is None else [0, 0, 1, 2]
            gone = room.PrivateRows(np.linspace(0, 1, size)[:, None], gone, people)
        middle = np.zeros(m.n_measurements) if one.whole else m.midpoint
        np.testing.assert_array_equal(exact(m, gone), middle)


@pytest.mark.parametrize("unit", ["whole rows", "one person's whole rows"])
@pytest.mark.parametrize("kind", ["Inside", "Distance", "OneOf", "Present", "Bin"])
def test_a_row_without_inputs_is_in_one_fixed_cell_with_its_outcome_in_the_middle(kind, unit):
    one = case("rows", kind, unit)
    spare = np.take(GRID.centres, GRID.spare)
    of = [exact(one.m, one.table([(x, y)])).tolist() for x, y in ((NAN, 1.0), (np.inf, 0.0), (spare, NAN))]
    assert of[0] == of[1] == of[2]
    with pytest.raises(ValueError, match="complete"):
        exact(one.m, one.table([(NAN, one.values[0])]), "error")


SECRET = 314159
WRONG = {
    "text": ["314159"] * 5,
    "complex": np.full(5, SECRET + 1j),
    "ragged": [[SECRET], [SECRET, 1]] * 2 + [[SECRET]],
    "huge": [10**400 + SECRET] * 5,
    "more rows": np.full(6, SECRET),
    "a table": np.full((5, 2), SECRET),
    "missing": np.where(np.arange(5) == 3, NAN, SECRET),
}


@pytest.mark.parametrize("wrong", WRONG)
@every
def test_no_message_quotes_y_or_an_input(name, wrong):
    one, y = case(*name), WRONG[wrong]
    if one.whole:
        people = None if one.m.population.max_rows is None else list(range(len(y)))
        tables = [
            room.PrivateRows(np.full((5, 1), 0.5), y, people),
            room.PrivateRows(y, np.full(5, 0.5), people),
        ]
    else:
        tables = [y]
    for table in tables:
        with pytest.raises((TypeError, ValueError)) as refused:
            room.measure(one.m, table, "error")
        said = str(refused.value)
        assert "Nothing was spent" in said
        assert str(SECRET) not in said
        assert refused.value.__cause__ is None
        assert not one.whole or said in (EXPECTED_ROWS, INCOMPLETE_ROWS) or "public: plan again" in said


# -------------------------------------------------------------------------------- stages of the same outcomes


@written
def test_seven_stages_read_y_once(name):
    one = case(*name)
    table = one.table(one.states()[0][1])
    wanted = exact(one.m, table)
    y = Counted(table.y if one.whole else table)
    x = Counted(table.X) if one.whole else None
    opened = room.Outcomes(room.PrivateRows(x, y, table.people) if one.whole else y)
    assert (y.reads, repr(opened)) == (0, "<Outcomes, unread>")
    for _ in range(7):
        np.testing.assert_array_equal(exact(one.m, opened), wanted)
    assert y.reads == 1
    assert x is None or x.reads == 1


@written
def test_what_was_parsed_is_the_rooms_own_copy(name):
    one = case(*name)
    table = one.table(one.states()[0][1])
    opened, wanted = room.Outcomes(table), exact(one.m, table)
    exact(one.m, opened)
    for held in (table.y, table.X) if one.whole else (table,):
        held[:] = 0.9
    np.testing.assert_array_equal(exact(one.m, opened), wanted)


@pytest.mark.parametrize("unit", ["one row", "one person", "whole rows", "one person's whole rows"])
def test_all_measurements_of_a_stage_are_made_in_one_pass(unit, monkeypatch):
    """Whatever their statistics, and although each has columns and labels of its own."""
    monkeypatch.setattr(chunks, "CHUNK", 2)
    cases = [case(*name) for name in WRITTEN if name[2] == unit]
    one, parts = cases[0], [each.m for each in cases]
    table = one.table(one.states()[0][1])
    alone = [exact(m, table) for m in parts]
    opened, right, reads = room.Outcomes(table), room.numeric, []
    exact(one.m, opened)
    monkeypatch.setattr(room, "numeric", lambda y: reads.append(len(y)) or right(y))
    np.testing.assert_array_equal(exact(parts, opened), np.concatenate(alone))
    assert sum(reads) == (len(table.y) if one.whole else 5)


@pytest.mark.parametrize("made_of", [lambda: np.arange(5.0), lambda: room.PrivateRows([[0.5]], [1.0], None)])
def test_outcomes_stay_in_their_process_and_say_nothing(made_of):
    opened = room.Outcomes(made_of())
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="stay in this process"):
            leave(opened)
    assert repr(opened) == str(opened) == "<Outcomes, unread>"


def rows(n, people=None):
    return room.PrivateRows(np.linspace(0.05, 0.95, n)[:, None], np.linspace(LOW, HIGH, n), people)


MINE = {
    "one row": lambda: (case("rows", "Inside", "one row").m, np.arange(5.0)),
    "whole rows": lambda: (case("rows", "Inside", "whole rows").m, rows(3)),
    "one person's whole rows": lambda: (
        case("rows", "Inside", "one person's whole rows").m,
        rows(6, [0, 0, 0, 0, 1, 2]),
    ),
}
THEIRS = {
    "another number of rows": lambda: made(np.ones((1, 4)), Inside(LOW, HIGH)),
    "public inputs": lambda: made(np.ones((1, 5)), Inside(LOW, HIGH)),
    "whole rows": lambda: sums_for(Population(GRID, 3)),
    "more people": lambda: sums_for(Population(GRID, 4)),
    "people with a row each": lambda: sums_for(Population(GRID, 3, MOST - 1)),
    "other cells": lambda: sums_for(Population(type(GRID)({"x": (0.0, 2.0)}, cells=4), 3)),
}


def sums_for(population):
    return made(np.ones((1, 4)), Inside(LOW, HIGH, centred=True), population=population)


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("mine", MINE)
def test_what_was_read_for_one_plan_is_not_measured_for_another(mine, theirs):
    """Other cells, labels, or numbers of rows that count: noise would be for other changes."""
    m, y = MINE[mine]()
    other = THEIRS[theirs]()
    if (mine, theirs) in (("one row", "public inputs"), ("whole rows", "whole rows")):
        exact([m, other], room.Outcomes(y))  # the same rows, in other columns
        return
    opened = room.Outcomes(y)
    exact(m, opened)
    for given in (opened, room.Outcomes(y)):
        with pytest.raises(AssertionError, match="other rows"):
            exact([m, other], given)


def test_a_person_with_too_many_rows_counts_as_often_as_was_promised():
    """So that a person's rows that all count would be seen: the case above has three of them."""
    one = case("rows", "Present", "one person's whole rows")
    assert (
        exact(one.m, one.table([(PLACES[0], 0.0)] * 3)).tolist()
        == exact(one.m, one.table([(PLACES[0], 0.0)] * MOST)).tolist()
    )


def test_every_statistic_of_the_library_has_its_cases():
    assert {type(case(*name).m.statistic) for name in CASES} == set(outcomes._READ)
    assert {name[2] for name in CASES} >= {case(*name).m.unit.name for name in CASES} - {"one whole row"}


# ------------------------------------------------------------------------------------------- planted bugs


def _read(change, kind=Inside):
    """Numbers are made integers in another way."""
    right = outcomes._READ[kind]

    def planted(s, y):
        found, usable = right(s, y)
        with np.errstate(all="ignore"):
            return change(s, y, found), usable

    return mock.patch.dict(outcomes._READ, {kind: planted})


def _share(y, s, lower, upper):
    share = np.nan_to_num((y - lower) / (upper - lower), posinf=0, neginf=0)
    return np.rint(np.clip(share, -4, 4) * s.largest).astype(np.int64)[:, None]


def _sums(change):
    right = room._sums
    return mock.patch.object(room, "_sums", lambda parts, *given: change(parts, right(parts, *given), *given))


def _last_row(parts, sums, read, missing):
    """``exact[labels] += y``, with which the last row of a bin wins."""
    found, values = np.zeros_like(sums[0]), room.numeric(read.source[:])
    found[parts[0].labels] = outcomes.integers_of(parts[0].statistic.at(parts[0].labels), values)[0]
    return [found]


def _quoting(read):
    found = read()
    if found.dtype.kind not in "biuf":
        raise TypeError(f"y must be numbers, got {found[0]}. Nothing was spent.")
    return found


def planted(thing, name, bug):
    return lambda: mock.patch.object(thing, name, bug)


def _less_noise(*given, right=room.measure, **more):
    add = room.add_noise
    with mock.patch.object(room, "add_noise", lambda sums, sigma: add(sums, sigma * 99 // 100)):
        return right(*given, **more)


def _read_first(measurements, y, *how, right=room.measure, **more):
    return right(measurements, y if isinstance(y, room.PrivateRows) else np.asarray(y), *how, **more)


def _of(thing, name, bug):
    return lambda: mock.patch.object(thing, name, bug)


def _bins_of_y(s, y, found):
    """Bins with as many outcomes in each, whatever was expected."""
    order = np.argsort(np.argsort(np.nan_to_num(y)))
    return np.equal.outer(order * s.width // len(y), np.arange(s.width)) * s.largest


def _beyond(change):
    """Shares of 2^b beyond a window, worked out in another way."""

    def planted(s, y, _):
        values = np.clip(np.nan_to_num(y), *s.bounds)
        return np.rint(change(s, values) / s.worth * s.largest).astype(np.int64)[:, None]

    return lambda: _read(planted, Outside)


def _edge_below(s, y, _, right=outcomes._READ[Bin]):
    return right(replace(s, edges=s.edges + 1), y)[0]


BY_ROW, BY_PERSON, _, LISTS = (("rows", "Inside", unit) for unit in OF_CASES)
MOVES = test_nobody_moves_it_further_than_its_sensitivity_and_somebody_as_far
RANGE = test_integers_are_in_their_range_whatever_y_is
EXACT = test_the_product_is_exact_and_its_size_is_foreseen
REFUSED = test_what_would_break_the_promise_is_refused_before_y_is_looked_at
UNCLIPPED = lambda: _read(lambda s, y, _: _share(y, s, s.lower, s.upper))  # noqa: E731
PLANTED = {  # a bug, the test that sees it, and of what
    "no clipping": (UNCLIPPED, MOVES, BY_ROW),
    "no clipping of whole rows": (UNCLIPPED, MOVES, LISTS),
    "clipping to the data": (lambda: _read(lambda s, y, _: _share(y, s, y.min(), y.max())), RANGE, BY_ROW),
    "clipping to the widest window": (
        lambda: _read(lambda s, y, _: _share(y, s, LOWER.min(), UPPER.max())),
        test_each_row_is_clipped_to_its_own_window,
        "one row",
    ),
    "a step too far": (lambda: _read(lambda s, y, right: right + (y >= s.upper)[:, None]), MOVES, BY_ROW),
    "what is missing at the mean of the others": (
        lambda: _read(lambda s, y, right: np.where(np.isfinite(y)[:, None], right, int(right.mean()))),
        RANGE,
        BY_ROW,
    ),
    "classes that move as far as numbers": (
        _of(OneOf, "change", property(lambda s: 1 << 2 * s.y_bits)),
        MOVES,
        ("rows", "OneOf", "one row"),
    ),
    "bins that move as far as numbers": (
        _of(Bin, "change", property(lambda s: 1 << 2 * s.y_bits)),
        MOVES,
        ("rows", "Bin", "one row"),
    ),
    "whole rows in bins that move as far as numbers": (
        _of(Bin, "apart", lambda s, longest, *_: longest << 2 * s.y_bits),
        MOVES,
        ("rows", "Bin", "whole rows"),
    ),
    "a row in two bins": (
        lambda: _read(lambda _, __, right: right + np.roll(right, 1, axis=1), Bin),
        MOVES,
        ("rows", "Bin", "one row"),
    ),
    "bins that depend on y": (lambda: _read(_bins_of_y, Bin), RANGE, ("rows", "Bin", "one row")),
    "outcomes beyond a window that go beyond the bounds": (
        lambda: _read(
            lambda s, y, _: (
                np.rint((y - np.clip(y, s.lower, s.upper)) / s.worth * s.largest)
                .clip(-(2**40), 2**40)
                .astype(np.int64)[:, None]
            ),
            Outside,
        ),
        RANGE,
        ("windows", "Outside", "one row"),
    ),
    "a range beyond windows that is off by one": (
        lambda: _read(lambda s, y, right: right + (right == s.largest - s.below[..., None]), Outside),
        MOVES,
        ("windows", "Outside", "one row"),
    ),
    "windows that are ignored": (
        _beyond(lambda s, y: y - np.mean(s.bounds)),
        lambda one: test_integers_by_hand(*one),
        BEYOND,
    ),
    "both sides of a window added up": (
        _beyond(lambda s, y: np.abs(y - np.clip(y, s.lower, s.upper))),
        lambda one: test_integers_by_hand(*one),
        BEYOND,
    ),
    "each side of a window in a range of its own": (
        lambda: _read(lambda s, y, right: np.sign(right) * s.largest, Outside),
        MOVES,
        ("windows", "Outside", "one row"),
    ),
    "whole rows beyond windows that move as far as one outcome": (
        _of(Outside, "apart", lambda s, longest, *_: longest << 2 * s.y_bits),
        MOVES,
        ("windows", "Outside", "whole rows"),
    ),
    "an edge off by one": (lambda: _read(_edge_below, Bin), lambda one: test_integers_by_hand(*one), EDGES),
    "a sensitivity one percent too small": (
        _of(measurement, "root_up", lambda squared, right=measurement.root_up: right(squared) * 99 // 100),
        MOVES,
        BY_ROW,
    ),
    "people as rows": (
        _of(sensitivity, "largest_squared_move", lambda m, *_, **__: largest_squared_norm(m)),
        MOVES,
        BY_PERSON,
    ),
    "people in bins as rows": (
        _of(sensitivity, "largest_power_sum", lambda matrix, *_: int(abs(matrix).max())),
        MOVES,
        (BINS[0], "Inside", "one person"),
    ),
    "people's whole rows as rows": (
        _of(
            measurement,
            "squared_sensitivity",
            lambda *of, right=measurement.squared_sensitivity: right(*of) // of[4].each ** 2,
        ),
        MOVES,
        LISTS,
    ),
    "rows of a person that all count": (
        _of(private_rows, "evenly_kept", lambda labels, *_: np.ones(len(labels), dtype=np.int64)),
        MOVES,
        LISTS,
    ),
    "rows that stay in their cells": (
        _of(sensitivity, "furthest_squared", lambda matrix, _: largest_squared_norm(matrix)),
        MOVES,
        ("rows", "Present", "whole rows"),
    ),
    "a row that counts in two groups": (
        lambda: _sums(lambda _, sums, *__: [own + np.roll(own, 1, axis=0) for own in sums]),
        EXACT,
        ("groups", "Inside", "one row"),
    ),
    "groups that depend on y": (
        lambda: _sums(lambda _, sums, *__: [np.sort(own, axis=0) for own in sums]),
        EXACT,
        ("groups", "Inside", "one person"),
    ),
    "the last row of a bin": (lambda: _sums(_last_row), EXACT, (BINS[0], "Inside", "one row")),
    "other noise than was checked": (_of(room, "measure", _less_noise), EXACT, BY_ROW),
    "integers that are not checked": (_of(Measurement, "check", lambda m: None), REFUSED, "less noise"),
    "y that is read first": (_of(room, "measure", _read_first), REFUSED, "no noise"),
    "a message that quotes y": (
        _of(outcomes, "_numbers", _quoting),
        lambda name: test_no_message_quotes_y_or_an_input(name, "text"),
        BY_ROW,
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug):
    plant, seen_by, asked = PLANTED[bug]
    seen_by(asked)
    case.cache_clear()  # measurements that the bug does not know
    try:
        with plant(), pytest.raises((AssertionError, pytest.fail.Exception)):
            seen_by(asked)
    finally:
        case.cache_clear()
