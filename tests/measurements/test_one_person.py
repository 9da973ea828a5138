"""How far all outcomes of one person move integers: against trying everything, by two programs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.measurements import one_person
from cloakgp.measurements.lattice import largest_squared_norm
from cloakgp.measurements.one_person import exact_gram, largest_squared_move
from cloakgp.rows.people import as_people
from cloakgp.verification import people as independent

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
    assert independent.longest_squared(matrix, labels, people.labels) == found
    return found


@given(st.data())
def test_up_to_twelve_columns_it_is_the_longest_sum_with_any_signs(data):
    size = data.draw(st.sampled_from([3, 2**30, 2**45]))
    q, U, N = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 9))
    entries = st.integers(-size, size)
    matrix = np.array(data.draw(st.lists(entries, min_size=q * U, max_size=q * U))).reshape(q, U)
    labels = np.array(data.draw(st.lists(st.integers(0, U - 1), min_size=N, max_size=N)))
    ids = data.draw(st.lists(st.integers(0, 3), min_size=N, max_size=N))
    assert both(matrix, labels, ids) == by_trying(matrix, labels, ids)


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
        monkeypatch.setattr(one_person, "MOST_SIGNS", most)
        monkeypatch.setattr(independent, "_MOST_SIGNS", most)
        assert both(matrix, labels, ids) == expected
    assert by_trying(matrix, labels, ids) < sums


def test_two_programs_know_one_rule():
    assert (one_person.FEW, one_person.MANY) == (independent._FEW, independent._MANY)
    assert one_person.MOST_SIGNS == independent._MOST_SIGNS


def test_of_very_many_columns_norms_are_added_up(monkeypatch):
    monkeypatch.setattr(one_person, "MANY", 20)
    monkeypatch.setattr(independent, "_MANY", 20)
    matrix = np.vstack([np.full(30, 3), np.full(30, 1)])  # of norm root 10: 4, rounded up
    labels = np.concatenate([np.arange(30), np.arange(5)])  # some of them for two rows
    assert both(matrix, labels, np.zeros(35, int)) == (35 * 4) ** 2


@pytest.mark.parametrize("n_people", [1, 7, 40])
def test_people_with_a_row_each_move_it_by_a_column(n_people):
    matrix = RNG.integers(-(2**29), 2**29, size=(3, n_people))
    assert both(matrix, np.arange(n_people), np.arange(n_people)) == largest_squared_norm(matrix)


def test_rows_that_share_a_column_count_as_often_as_they_are():
    matrix = np.array([[5, 1], [0, 7]])
    assert both(matrix, np.array([0, 0, 0, 1]), [9, 9, 9, 4]) == (3 * 5) ** 2


def test_gram_is_exact_where_float64_is_not():
    columns = np.array([[2**30, 2**30 - 1], [2**30 + 1, -(2**30)], [12345, -6789]])
    whole = columns.astype(object)
    assert exact_gram(columns) == (whole.T @ whole).tolist()
    assert np.any((columns.astype(float).T @ columns) != whole.T @ whole)


def test_many_people_in_blocks(monkeypatch):
    matrix, ids = RNG.integers(-(2**29), 2**29, size=(3, 60)), RNG.integers(0, 20, size=60)
    whole = both(matrix, np.arange(60), ids)
    monkeypatch.setattr(one_person, "_ENTRIES", 1)
    monkeypatch.setattr(independent, "_BLOCK", 1)
    assert both(matrix, np.arange(60), ids) == whole == by_trying(matrix, np.arange(60), ids.tolist())
