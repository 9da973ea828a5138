"""The verifier's arithmetic: its own, exact whatever the integers, and the same as that of the planner."""

from __future__ import annotations

import math
from itertools import product

import forging
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.data.people import People
from cloakgp.measure.sensitivity import furthest_squared, largest_squared_move, squared_sensitivity
from cloakgp.measure.statistics import OneOf
from cloakgp.measure.unit import Population
from cloakgp.verification import exact, guarantee

ENTRIES = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-(2**33), 2**33)
    | st.integers(-9, 9)
    | st.sampled_from([2**31, -(2**31), 2**42, -(2**63), 0])
)


@st.composite
def matrices(draw):
    """With columns that are equal, opposite, or nearly so."""
    q, n = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    one = st.lists(ENTRIES, min_size=q, max_size=q)
    columns = draw(st.lists(one, min_size=n, max_size=n))
    if draw(st.booleans()):
        columns[-1] = [max(v - draw(st.integers(0, 1)), -(2**63)) for v in columns[0]]
    return np.array(columns, dtype=np.int64).T


def squares(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


@given(matrices(), st.data())
def test_columns_by_hand(matrix, data):
    columns, zero = matrix.T.tolist(), [0] * len(matrix)
    assert exact.longest_squared(matrix) == max(squares(own, zero) for own in columns)
    for some, origin in ((columns, False), ([*columns, zero], True)):
        assert exact.furthest_squared(matrix, origin) == max(squares(*pair) for pair in product(some, some))
    n = data.draw(st.lists(st.integers(1, 2**40), min_size=len(columns), max_size=len(columns)))
    sums = (sum(abs(v) * k for v, k in zip(row, n, strict=True)) for row in matrix.tolist())
    assert exact.largest_sum(matrix, np.array(n)) == max(sums)


@given(matrices(), st.data())
def test_people_by_hand(matrix, data):
    """In Python's integers; and as the planner has it, wherever that has room for entries."""
    n = matrix.shape[1]
    rows = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 2)), min_size=1, max_size=9))
    labels, ids = (np.array(part) for part in zip(*rows, strict=True))
    people = np.unique(ids, return_inverse=True)[1]
    for signs in (True, False):
        longest = 0
        for person in range(people.max() + 1):
            own = [matrix[:, label].tolist() for label in labels[people == person]]
            gram = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in own] for x in own]
            choices = product((1, -1), repeat=len(set(labels[people == person].tolist())))
            places = np.unique(labels[people == person], return_inverse=True)[1]
            with_signs = (
                sum(s[i] * s[j] * gram[a][b] for a, i in enumerate(places) for b, j in enumerate(places))
                for s in choices
            )
            distinct: dict[tuple[int, int], int] = {}
            for a, i in enumerate(places):
                for b, j in enumerate(places):
                    distinct[i, j] = distinct.get((i, j), 0) + gram[a][b]
            longest = max(longest, max(with_signs) if signs else sum(map(abs, distinct.values())))
        assert exact.longest_together(matrix, labels, people, signs) == longest
        assert largest_squared_move(matrix, labels, People(people), signs=signs) == longest


@pytest.mark.parametrize("size", [1, 2, 12, 13, 300, exact.MANY + 1])
@pytest.mark.parametrize("bits", [2, 30, 40])
def test_both_find_the_same_of_people_with_any_number_of_columns(size, bits):
    random = np.random.default_rng(size)
    matrix = random.integers(-(2**bits), 2**bits, size=(3, 2 * size))
    labels = np.concatenate([np.arange(2 * size), random.integers(0, 2 * size, size)])
    people = np.concatenate([np.arange(2 * size) // size, np.arange(size) % 3])
    for signs in (True, False):
        found = exact.longest_together(matrix, labels, people, signs)
        assert found == largest_squared_move(matrix, labels, People(people), signs=signs)


def test_what_floating_point_cannot_tell_apart():
    """Columns of nearly the same length, of which in float64 another one is the longest."""
    random, wanted = np.random.default_rng(20), 2**82
    x, y = random.integers(2**39, 2**40, size=(2, 4000)).tolist()
    columns = [(a, b, math.isqrt(wanted - a * a - b * b)) for a, b in zip(x, y, strict=True)]
    matrix, one = np.array(columns).T, np.arange(4000)
    squares = [a * a + b * b + c * c for a, b, c in columns]
    about = (matrix.astype(float) ** 2).sum(axis=0)
    assert about[squares.index(max(squares))] < about.max()
    assert exact.longest_squared(matrix) == max(squares)
    for signs in (True, False):
        assert exact.longest_together(matrix, one, one, signs) == max(squares)


@pytest.mark.parametrize("n_classes", [3, 4, 7])
@pytest.mark.parametrize("most", [None, 3])
def test_both_find_the_same_of_whole_rows_of_classes(n_classes, most):
    matrix = np.random.default_rng(n_classes).integers(-(2**30), 2**30, size=(2, 9))
    matrix[:, 0] = -matrix[:, 1]
    population = Population(forging.GRID, 12, most)
    statistic = OneOf(0.0, 1.0, centred=True, classes=n_classes).with_bits(20)
    words = {"y_bits": 20, "matrix_bits": 30, "sigma": 2**30, "bins": False}
    manifest = {"grid": {"max_rows": most, "size": 12}, "stages": [{}, words]}
    manifest["model"] = {"outcome": "classes", "classes": list(range(n_classes))}
    rows = guarantee.Rows.of(manifest, np.ones(9, np.int64), None, None)
    lattice = guarantee._of_rows(manifest, {"matrix_1": matrix}, 1, rows, "")
    squared = squared_sensitivity(matrix, None, statistic, None, population)
    assert lattice.steps == exact.root_rounded_up(squared)


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize(("q", "n", "bits"), [(1, 2, 40), (5, 40, 40), (4, 600, 20), (2048, 3, 41)])
def test_both_find_the_same_distances(origin, q, n, bits):
    matrix = np.random.default_rng(n).integers(-(2**bits), 2**bits, size=(q, n))
    matrix[:, n // 2] = matrix[:, 0] + 1  # ties, and nearly so
    assert exact.furthest_squared(matrix, origin) == furthest_squared(matrix, origin)


def test_with_very_many_columns_two_norms_stand_for_every_distance():
    matrix = np.zeros((1, exact.MOST_PAIRED + 1), dtype=np.int64)
    matrix[0, 7] = -3
    assert exact.furthest_squared(matrix, False) == furthest_squared(matrix, False) == 36
