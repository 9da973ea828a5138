"""A public grid: cells, names, levels, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import ArgumentError, Grid
from cloakgp.data.inputs import as_points


def test_cells_are_numbered_as_an_array_of_all_axes_is():
    grid = Grid({"age": (0, 90), "sex": ["f", "m"]}, cells={"age": 3})
    assert len(grid) == 6
    assert grid.names == ("age", "sex")
    assert grid.centres.tolist() == [[15, 0], [15, 1], [45, 0], [45, 1], [75, 0], [75, 1]]
    assert grid.centres[grid.spare].tolist() == [45, 0]
    assert grid.columns.categories == (1,)


def test_words_give_the_grid_back():
    grid = Grid({"age": (0, 90), "sex": ["f", "m"], "year": [2019, 2020]}, cells=7)
    again = Grid.from_words(grid.words())
    assert again == grid
    assert hash(again) == hash(grid)
    assert again != Grid({"age": (0, 91), "sex": ["f", "m"], "year": [2019, 2020]}, cells=7)


def test_points_are_given_as_numbers_or_by_name():
    grid = Grid({"age": (0, 90), "sex": ["f", "m"]})
    assert as_points({"sex": ["m", "f"], "age": [3, 4]}, "X", 2, grid.columns).tolist() == [[3, 1], [4, 0]]
    assert as_points([[3, 1]], "X", 2, grid.columns).tolist() == [[3, 1]]
    for wrong in ({"age": [3]}, [[1, 2, 3]]):
        with pytest.raises(ArgumentError, match=r"^X "):
            as_points(wrong, "X", 2, grid.columns)


@pytest.mark.parametrize("box", [{"a": (0, 1)}, {"a": (0, 1), "b": (5, 6)}, {"a": (0, 1), "k": ["x", "y"]}])
def test_default_test_points_are_spread_over_all_of_the_box(box):
    grid = Grid(box, cells=30)
    points = grid.cover(50)
    assert 20 <= len(points) <= 50
    for column, axis in enumerate(grid.axes):
        counts = np.histogram(points[:, column], 2 if axis.category else 5)[0]
        assert counts.min() > 0
        assert counts.max() < 2 * counts.min() + 5


@pytest.mark.parametrize(
    ("box", "cells", "named"),
    [
        ({}, 5, "box"),
        ([("a", (0, 1))], 5, "box"),
        ({1: (0, 1)}, 5, "box"),
        ({"a": (1, 0)}, 5, "box"),
        ({"a": (0, float("nan"))}, 5, "box"),
        ({"a": (-1e308, 1e308)}, 5, "box"),
        ({"a": [0.5, 1.5]}, 5, "box"),
        ({"a": ["x"]}, 5, "box"),
        ({"a": ["x", "x"]}, 5, "box"),
        ({"a": "xy"}, 5, "box"),
        ({"a": (0, 1)}, 0, "cells"),
        ({"a": (0, 1)}, 1.5, "cells"),
        ({"a": (0, 1)}, {"b": 3}, "cells"),
        ({"a": (0, 1), "k": ["x", "y"]}, {"k": 3}, "cells"),
        ({"a": (0, 1), "b": (0, 1)}, 400, r"cells .* 400 x 400 = 160,000.*fewer"),
    ],
)
def test_what_makes_no_grid_is_refused_by_name(box, cells, named):
    with pytest.raises((ValueError, TypeError), match=f"^{named}"):
        Grid(box, cells)
