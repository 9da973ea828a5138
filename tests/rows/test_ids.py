"""Ids become a partition of the rows, and nothing else is kept of them."""

import numpy as np
import pytest

from cloakgp.errors import ArgumentError
from cloakgp.rows.people import as_people

SAME = [
    [7, 7, 3, 7, 5],
    np.array([7, 7, 3, 7, 5]),
    np.array([7.0, 7.0, 3.0, 7.0, 5.0]),
    ["b", "b", "a", "b", "c"],
    np.array(["b", "b", "a", "b", "c"]),
    np.array(["b", "b", "a", "b", "c"], dtype=object),
    [7, "7", "03", " 7.0", 5],
    [("b", 1), ("b", 1), ("a", 2), ("b", 1), ("a", 1)],
    np.array([[7], [7], [3], [7], [5]]),
    np.array(["2020-01-02", "2020-01-02", "2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[D]"),
]


@pytest.mark.parametrize("ids", SAME, ids=lambda ids: type(ids).__name__ + str(getattr(ids, "dtype", "")))
def test_people_are_numbered_by_first_appearance_whatever_their_ids(ids):
    people = as_people(ids, 5)
    assert people.labels.tolist() == [0, 0, 1, 0, 2]
    assert people.counts.tolist() == [3, 1, 1]
    assert people.own.tolist() == [3, 3, 1, 3, 1]
    assert (people.n_people, people.n_rows, people.most_rows) == (3, 5, 3)
    assert people.digest == as_people(SAME[0], 5).digest
    assert not people.labels.flags.writeable


def test_another_partition_has_another_digest():
    assert as_people([1, 1, 2], 3).digest != as_people([1, 2, 2], 3).digest


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2], "must have 3 ids"),
        ("abc", "one id per row"),
        (5, "one id per row"),
        (np.ones((3, 2)), "one id per row"),
        ([1, None, 2], "an id is missing"),
        (["a", " ", "b"], "an id is missing"),
        ([1.0, float("nan"), 2.0], "an id is missing"),
        (np.array([1.0, np.nan, 2.0]), "an id is missing"),
        (np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="M8[D]"), "an id is missing"),
        (np.ma.masked_array([1, 1, 2], [False, True, False]), "an id is missing"),
        ([[1], [2], [3, 4]], "ids that can be compared"),
    ],
)
def test_what_names_nobody_is_refused(ids, said):
    with pytest.raises(ArgumentError, match=said):
        as_people(ids, 3)
