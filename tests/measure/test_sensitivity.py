"""How far one unit moves integers: longest columns, their distances, and one person's together.

Against trying everything in Python's integers, and for people by the verifier's own program, too.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cloakgp.data.people import as_people
from cloakgp.measure import sensitivity
from cloakgp.measure.sensitivity import (
    exact_gram,
    furthest_squared,
    largest_squared_move,
    largest_squared_norm,
    root_up,
)
from cloakgp.verification import exact as independent

RNG = np.random.default_rng(8)


def by_trying(matrix, labels, ids):
    """Every person's rows, one by one, with every sign: Python's integers."""
    longest = 0
    for person in set(ids):
        own = [matrix[:, label].tolist() for label, one in zip(labels, ids, strict=True) if one == person]
        for signs in product((-1, 1), repeat=len(own)):
            total = [
                sum(s * b for s, b in zip(signs, entries, strict=True)) for entries in zip(*own, strict=True)
            ]
            longest = max(longest, sum(entry**2 for entry in total))
    return longest


def both(matrix, labels, ids):
    people = as_people(ids, len(labels))
    found = largest_squared_move(matrix, labels, people)
    assert independent.longest_together(matrix, labels, people.labels) == found
    return found


def test_signs_that_no_flipping_gives_are_found():
    """Three columns 120 degrees apart: all inner products are negative, and two of three agree at best."""
    matrix = np.array([[200, -100, -100], [0, 173, -173]])
    gram = np.array(exact_gram(matrix))
    assert both(matrix, np.arange(3), [0, 0, 0]) == by_trying(matrix, np.arange(3), [0, 0, 0])
    assert both(matrix, np.arange(3), [0, 0, 0]) < np.abs(gram).sum()


def test_beyond_twelve_columns_it_is_the_sum_of_inner_products():
    matrix = RNG.integers(-(2**29), 2**29, size=(4, 40))
    ids = np.repeat([0, 1], 20)
    grams = [exact_gram(matrix[:, ids == person]) for person in (0, 1)]
    expected = max(sum(abs(entry) for row in gram for entry in row) for gram in grams)
    assert both(matrix, np.arange(40), ids) == expected


def test_it_is_the_true_maximum_where_flipping_makes_all_inner_products_positive():
    """Thirty neighbouring ages, some columns turned about: the signs that undo it attain the bound."""
    ages = np.arange(30.0)
    columns = np.rint(1e8 * np.exp(-((ages - np.linspace(0, 30, 5)[:, None]) ** 2) / 200)).astype(np.int64)
    turned = np.where(RNG.integers(0, 2, 30), 1, -1)
    attained = sum(int(entry) ** 2 for entry in columns.sum(axis=1))
    assert both(columns * turned, np.arange(30), np.zeros(30, int)) == attained


def test_signs_of_twelve_columns_are_tried_exactly():
    """Inner products beyond 53 bits, and differences that only the last ones show."""
    matrix = RNG.integers(-(2**30), 2**30, size=(5, 24))
    matrix[:, 12:] = matrix[:, :12]
    matrix[0, 23] += 1
    ids = np.repeat([0, 1], 12)
    assert both(matrix, np.arange(24), ids) == by_trying(matrix, np.arange(24), ids.tolist())


def test_signs_of_very_many_people_are_not_tried(monkeypatch):
    """By a rule that depends on how many columns people have, and on nothing else."""
    matrix = np.array([[200, -100, -100, 10], [0, 173, -173, 0]])
    labels, ids = np.array([0, 1, 2, 3]), [0, 0, 0, 1]
    grams = [exact_gram(matrix[:, own]) for own in ([0, 1, 2], [3])]
    sums = max(sum(abs(entry) for row in gram for entry in row) for gram in grams)
    tried = 2**2 + 2**0  # of three columns, and of one
    for most, expected in ((tried, by_trying(matrix, labels, ids)), (tried - 1, sums)):
        monkeypatch.setattr(sensitivity, "MOST_SIGNS", most)
        monkeypatch.setattr(independent, "MOST_SIGNS", most)
        assert both(matrix, labels, ids) == expected
    assert by_trying(matrix, labels, ids) < sums


def test_of_very_many_columns_norms_are_added_up(monkeypatch):
    monkeypatch.setattr(sensitivity, "MANY", 20)
    monkeypatch.setattr(independent, "MANY", 20)
    matrix = np.vstack([np.full(30, 3), np.full(30, 1)])  # of norm root 10: 4, rounded up
    labels = np.concatenate([np.arange(30), np.arange(5)])  # some of them for two rows
    assert both(matrix, labels, np.zeros(35, int)) == (35 * 4) ** 2


def test_many_people_in_blocks():
    """More than fit into one block of either program."""
    n, q = 600, 900
    matrix, ids = RNG.integers(-(2**20), 2**20, size=(q, 3 * n)), np.repeat(np.arange(n), 3)
    found = both(matrix, np.arange(3 * n), ids)
    each = (both(matrix[:, 3 * i : 3 * i + 3], np.arange(3), [0, 0, 0]) for i in range(0, n, 60))
    assert found >= max(each)
    last = np.hstack([matrix, 3 * matrix[:, -3:]])  # the longest is in the last block
    ids = np.repeat(np.arange(n + 1), 3)
    assert both(last, np.arange(3 * n + 3), ids) == both(last[:, -3:], np.arange(3), [0, 0, 0])


# One column, and two

int64s = st.one_of(
    st.integers(-(2**62), 2**62),
    st.integers(2**31 - 3, 2**31 + 3),
    st.integers(2**42 - 3, 2**42 + 3),
    st.integers(2**62 - 3, 2**62),
    st.integers(-5, 5),
)
matrices = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=int64s)


@settings(max_examples=200)
@given(matrix=matrices)
def test_the_longest_column_and_the_largest_distance_are_exact(matrix):
    columns = [*matrix.T.tolist()]
    assert largest_squared_norm(matrix) == max(sum(entry**2 for entry in column) for column in columns)
    for origin in (False, True):
        among = [*columns, [0] * len(matrix)] if origin else columns
        far = max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in among for y in among)
        assert furthest_squared(matrix, origin) == far


@pytest.mark.parametrize("size", [2**30, 2**31, 2**31 + 1, 2**40, 2**61, 2**62])
def test_columns_are_told_apart_that_floats_cannot(size):
    matrix = np.array([[size, size - 1, size], [3, 2**20, 4]], dtype=np.int64)
    expected = max(size**2 + 16, (size - 1) ** 2 + 2**40)
    assert largest_squared_norm(matrix) == largest_squared_norm(-matrix) == expected


def test_the_longest_column_is_found_where_floating_point_loses_it():
    """Ones that are added to 2^60 one by one are lost, and together are more than the other's 400."""
    matrix = np.zeros((601, 2), dtype=np.int64)
    matrix[0], matrix[1:, 0], matrix[1, 1] = 2**30, 1, 20
    for own in (matrix, matrix[:, ::-1]):
        assert largest_squared_norm(own) == independent.longest_squared(own) == 2**60 + 600


def test_the_least_integer_has_a_size():
    matrix = np.array([[-(2**63), 0], [0, 1]], dtype=np.int64)
    assert sensitivity.largest_entry(matrix) == 2**63
    assert largest_squared_norm(matrix) == 2**126 == furthest_squared(matrix, origin=True) - 1


def test_all_pairs_of_many_columns_are_compared_in_blocks_and_of_very_many_none(monkeypatch):
    """Then twice the longest column stands for the distance: no less."""
    matrix = RNG.integers(-(2**41), 2**41, size=(3, 700))
    whole = matrix.astype(object)
    norms = (whole**2).sum(axis=0)
    far = max((norms[i] + norms - 2 * (whole[:, i] @ whole)).max() for i in range(700))
    assert furthest_squared(matrix, origin=False) == far
    monkeypatch.setattr(sensitivity, "MOST_PAIRED", 600)
    assert furthest_squared(matrix, origin=False) == 4 * largest_squared_norm(matrix) >= far


@given(st.integers(0, 2**130))
def test_roots_are_rounded_up(squared):
    root = root_up(squared)
    assert root**2 >= squared
    assert root == 0 or (root - 1) ** 2 < squared
    assert root in (math.isqrt(squared), math.isqrt(squared) + 1)
