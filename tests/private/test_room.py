"""The private room: kinds of y, what is missing, and errors before anything is spent.

Its integers are in ``tests/contracts/test_measurement_contract.py``, what y may be kept in in
``test_every_container``, and that errors tell nothing in ``tests/privacy/test_no_trace_of_y.py``.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from cloakgp.core.calibration import calibrate
from cloakgp.measure.measurement import measurement_of
from cloakgp.measure.statistics import Inside
from cloakgp.private import room
from cloakgp.private.room import measure
from measured import HIGH, LOW, exact

N = 12
C = np.random.default_rng(5).normal(size=(3, N))
PUBLIC = measurement_of(
    C / np.linalg.norm(C, axis=0).max(), Inside(LOW, HIGH), 1.0, 0.01, calibrate(1.0, 0.01, n_measurements=3)
)
WHOLE = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 100], dtype=float)
Y = np.random.default_rng(3).normal(2.0, 3.0, size=N)


@pytest.fixture
def unspent(monkeypatch):
    """Fail if noise is drawn."""
    monkeypatch.setattr(room, "add_noise", lambda *_: pytest.fail("noise was drawn: the budget is spent"))
    monkeypatch.setattr(room, "noisy_minimum", lambda scores: lambda exact: pytest.fail("it is spent"))


class Series:
    """As pandas': converts itself, and is indexed by label."""

    def __init__(self, y):
        self.y = y

    def __array__(self, dtype=None, copy=None):
        return np.array(self.y, dtype=dtype)

    def __len__(self):
        return N

    def __getitem__(self, label):
        raise KeyError(label)


DTYPES = ("f2", "f4", "g", "i1", "u1", "u8", ">f8", bool)
KINDS = {str(dtype): lambda y, dtype=dtype: y.astype(dtype) for dtype in DTYPES}
KINDS |= {"list of int": lambda y: [int(entry) for entry in y], "list": list, "tuple": tuple}
KINDS |= {"list of bool": lambda y: [bool(entry) for entry in y], "indexed by label": Series}
KINDS |= {"nothing masked": np.ma.array, "masked integers": lambda y: np.ma.array(y.astype(int), mask=False)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_numeric_kind_of_y_measures_the_same(kind):
    y = WHOLE.copy() if "bool" not in kind else (WHOLE > 2).astype(float)
    np.testing.assert_array_equal(exact(PUBLIC, KINDS[kind](y), "error"), exact(PUBLIC, y))


@pytest.mark.parametrize("bounds", [(-8e307, 8e307), (0.0, 1e160), (0.0, 1e-200), (1e15, 1e15 + 1)])
def test_the_ends_of_bounds_of_any_size_are_the_ends_of_the_integers(bounds):
    m = measurement_of(np.ones((1, 2)), Inside(*bounds), 1.0, 0.01, calibrate(1.0, 0.01))
    assert exact(m, [bounds[0]] * 2).tolist() == [0]
    assert exact(m, [bounds[1]] * 2).tolist() == [m.matrix.sum() * 2**m.y_bits]


# What is missing


def check_missing(y, filled):
    """Refused, or measured as what stands for it."""
    with pytest.raises(ValueError, match=r"y must be finite.*missing='midpoint'.*Nothing was spent"):
        exact(PUBLIC, y, "error")
    np.testing.assert_array_equal(exact(PUBLIC, y), exact(PUBLIC, filled))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_missing_row_by_row(value):
    y = np.linspace(-2, 5, N)
    filled = y.copy()
    y[[0, 7]], filled[[0, 7]] = value, (LOW + HIGH) / 2
    check_missing(y, filled)
    np.testing.assert_array_equal(exact(PUBLIC, filled, "midpoint"), exact(PUBLIC, filled, "error"))


@pytest.mark.parametrize("dtype", [float, int, np.float32, bool])
def test_masked_entries_are_missing(dtype):
    values = np.array([1, 0] * 6)
    filled = values.astype(float)
    filled[:2] = (LOW + HIGH) / 2
    check_missing(np.ma.array(values.astype(dtype), mask=np.arange(N) < 2), filled)


@pytest.mark.parametrize("values", [[1.0, 0.25], [1, 0], [True, False], [np.float32(0.5), 2]])
@pytest.mark.parametrize(
    "kept_in",
    [
        list,
        lambda y: np.array(y, dtype=object),
        lambda y: np.ma.array(y, mask=[one is None for one in y], dtype=object),
        lambda y: pytest.importorskip("pandas").Series(y, dtype=object),
    ],
    ids=["list", "object", "masked", "Series"],
)
def test_none_is_missing(values, kept_in):
    y = [*values, None] * 4
    check_missing(kept_in(y), [(LOW + HIGH) / 2 if one is None else float(one) for one in y])


def test_masked_numbers_beyond_float64_do_not_warn():
    y = np.ma.array(np.full(N, np.longdouble("1e400")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(exact(PUBLIC, y), exact(PUBLIC, np.full(N, np.nan)))


@pytest.mark.parametrize("shape", [(12, 1), (1, 12), (11,), (13,), (0,), (), (12, 2), (2, 6)], ids=str)
@pytest.mark.parametrize("missing", ["error", "midpoint"])
def test_wrong_shapes(unspent, shape, missing):
    with pytest.raises(
        ValueError, match=r"y must have shape \(12,\), one outcome per row.*Nothing was spent"
    ):
        measure(PUBLIC, np.ones(shape), missing)
