"""Dates as days: one rule for public cells, which tells what is wrong, and one for private ones."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from cloakgp import Columns, Grid
from cloakgp.data.dates import day_of, days_of

TEXTS = [
    "2024-05-31",
    "1999-12-31T18:00",
    "2024-05-31 12:00:30.5",
    "2024-05-31T12:00:30Z",
    "2024-05-31T12:00-05:30",
]


@pytest.mark.parametrize("text", TEXTS)
def test_private_and_public_dates_are_the_same_days(text):
    day = Columns.of({"day": [text]}).numbers({"day": [text]})[0, 0]
    assert days_of(np.array([f" {text}", None], dtype=object))[0] == pytest.approx(day, abs=1e-9)
    assert day_of(text) == pytest.approx(day, abs=1e-9)


def test_whatever_holds_dates():
    days = [day_of("2024-05-31"), np.nan]
    moments = np.array(["2024-05-31", "NaT"], dtype="datetime64[s]")
    for cells in (moments, [date(2024, 5, 31), None], [datetime(2024, 5, 31), None], ["2024-05-31", "soon"]):
        held = cells if isinstance(cells, np.ndarray) else np.array(cells, dtype=object)
        np.testing.assert_array_equal(days_of(held), days)
    assert np.isnan(days_of(np.array([None], dtype=object))).all()


def test_no_cell_is_told_apart_from_what_is_missing():
    odd = [
        "2024-02-30",
        "2024-01-01T24:30",
        "2024-01-01T12:60",
        "0000-00-00",
        "99999-01-01",
        "",
        5,
        b"\xff",
        "\ud800",
    ]
    cells = np.array([*odd, "2024-05-31", date(2024, 5, 31), np.datetime64("2024-05-31")], dtype=object)
    np.testing.assert_array_equal(days_of(cells), [np.nan] * len(odd) + [day_of("2024-05-31")] * 3)
    late = np.array(["2024-05-31", "300000-01-01"], dtype="datetime64[s]")  # more than fits into microseconds
    assert days_of(late)[0] == day_of("2024-05-31")


def test_a_box_may_have_dates():
    grid = Grid({"day": ("2024-01-01", date(2024, 12, 31)), "sex": ["f", "m"]}, cells={"day": 5})
    assert [column.kind for column in grid.columns.inputs] == ["date", "level"]
    assert grid.axes[0].high - grid.axes[0].low == 365
    assert Grid.from_words(grid.words()) == grid
    assert "'day': ('2024-01-01', '2024-12-31')" in repr(grid)
    numbers = grid.columns.numbers({"day": ["2024-01-03"], "sex": ["m"]})
    assert numbers.tolist() == [[grid.axes[0].low + 2, 1.0]]


@pytest.mark.parametrize(
    "box", [("2024-12-31", "2024-01-01"), ("2024-01-01", 9.0), ("soon", "later"), (pd.NaT, "2024-01-01")]
)
def test_what_is_no_range_of_dates_is_refused(box):
    with pytest.raises(ValueError, match="low below high"):
        Grid({"day": box})
