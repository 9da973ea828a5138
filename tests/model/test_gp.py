"""The model: every setting is checked at once, copied, and cannot be changed afterwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.core.errors import ArgumentError
from cloakgp.kernels import EQ

GOOD = {"kernel": EQ(1.0), "noise": 0.5, "bounds": (0.0, 2.0)}


def test_settings_are_kept():
    gp = GP(EQ(25.0, variance=662.5), noise=199, bounds=(58, 158))
    assert gp.kernel == EQ(25.0, variance=662.5)
    assert (gp.noise, gp.bounds, gp.mean) == (199.0, (58.0, 158.0), 108.0)
    assert all(type(value) is float for value in (gp.noise, gp.mean, *gp.bounds))


@pytest.mark.parametrize(
    "bounds",
    [
        *[(58, 158), [58, 158], np.array([58, 158]), (np.float32(58), np.int64(158))],
        *[(-4e99, 4e99), (0.0, 9e99), (0.0, 2e-100), (1e8, 1e8 + 1), (-1.0 - 2e-9, -1.0)],
    ],
)
def test_bounds_of_every_kind_and_every_ordinary_width(bounds):
    assert GP(EQ(1.0), 1.0, bounds).bounds == tuple(map(float, bounds))


@pytest.mark.parametrize(
    ("mean", "expected"), [(None, 1.0), (0.3, 0.3), (-50, -50.0), (np.float32(0.5), 0.5)]
)
def test_the_prior_mean_is_the_middle_of_the_bounds_unless_given(mean, expected):
    assert GP(**GOOD, mean=mean).mean == expected


def test_per_row_noise_is_a_read_only_copy():
    noise = np.array([1.0, 2.0])
    gp = GP(EQ(1.0), noise, (0, 1))
    noise[0] = -1.0
    assert gp.noise.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        gp.noise[0] = -1.0
    assert "noise=<2 variances>" in repr(gp)


TOO_WIDE, FAR = [(-1.7e308, 1.7e308), (0.0, 1e101), (-6e99, 6e99)], [(1e15, 1e15 + 1), (-1.0 - 1e-10, -1.0)]
BAD = {
    "bounds": [
        *[(1.0, 1.0), (2.0, 1.0), (0.0, 1e-101), *TOO_WIDE, *FAR],
        *[(0.0,), (0.0, 1.0, 2.0), None, 3.0, "auto", np.zeros((3, 2)), np.sin],
        *[(np.zeros(3), [1.0, 0.0, 2.0]), (np.zeros(3), np.ones(2))],
        *[(0.0, [1.0, 1e-9]), (1e12, [1e12 + 1, 1e13])],  # a million times narrower; a tiny share
    ],
    "bounds[0]": [(-math.inf, 0.0), (math.nan, 1.0), "01", ("0", "1"), (False, True)],
    "bounds[1]": [(0.0, math.inf), (0.0, math.nan), (0.0, None)],
    "noise": [
        *[0.0, -1.0, math.nan, math.inf, None, "1", True, []],
        *[[1.0, 0.0], [1.0, -2.0], [1.0, math.nan], [1.0, math.inf], [[1.0], [2.0]], ["a", "b"]],
    ],
    "kernel": [1.0, None, "EQ", EQ],
    "downweight": ["outliers", True, ""],
    "mean": [math.nan, math.inf, 1e20, "0", False, np.zeros((3, 2)), [0.0, np.nan]],
}


@pytest.mark.parametrize(("name", "value"), [(name, bad) for name, each in BAD.items() for bad in each])
def test_bad_settings_are_refused_at_once(name, value):
    with pytest.raises(ArgumentError) as error:
        GP(**{**GOOD, name.partition("[")[0]: value})
    assert error.value.name == name
