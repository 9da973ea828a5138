"""The private room: exact integers, every kind of y, and errors before anything is spent."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.calibration import calibrate
from cloakgp.kernels import EQ
from cloakgp.measurements.lattice import to_integers
from cloakgp.model.gp import GP
from cloakgp.private import room
from cloakgp.private.room import choose, measure
from cloakgp.selection import plan_selection

LOW, HIGH = -1.0, 4.0


@pytest.fixture(scope="module")
def public():
    """A measurement of 12 rows."""
    C = np.random.default_rng(5).normal(size=(3, 12))
    C /= np.linalg.norm(C, axis=0).max()
    mu = calibrate(1.0, 0.01, n_measurements=3)
    return to_integers(C, (LOW, HIGH), 1.0, 0.01, mu)


@pytest.fixture
def exact(monkeypatch, public):
    """measure() without its noise."""
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: exact)
    return lambda y, missing="error", m=public: measure(m, y, missing)


@pytest.fixture
def unspent(monkeypatch):
    """Fail if noise is drawn."""

    def draw(*_):
        pytest.fail("noise was drawn: the budget is spent")

    monkeypatch.setattr(room, "add_noise", draw)


def by_hand(m, y):
    """The exact measurements in Python integers."""
    share = (np.clip(y, m.lower, m.upper) - m.lower) / (m.upper - m.lower)
    y_int = [round(entry * 2**m.y_bits) for entry in share.tolist()]
    return [sum(b * v for b, v in zip(row, y_int, strict=True)) for row in m.matrix.tolist()]


# Exactness


@given(y=st.lists(st.floats(-5, 8), min_size=12, max_size=12))
def test_the_product_is_exact(public, y):
    integers = room.to_integers(np.array(y), public.lattice)
    assert integers.min() >= 0
    assert integers.max() <= 2**public.y_bits
    expected = (np.clip(y, LOW, HIGH) - LOW) / (HIGH - LOW) * 2**public.y_bits
    assert np.abs(integers - expected).max() <= 0.5 + 1e-6


def test_two_hundred_thousand_rows_in_python_integers(exact):
    rng = np.random.default_rng(6)
    C = rng.normal(size=(2, 200_000))
    C /= np.linalg.norm(C, axis=0).max()
    mu = calibrate(1.0, 0.01, n_measurements=2)
    m = to_integers(C, (LOW, HIGH), 1.0, 0.01, mu)
    y = rng.uniform(-3, 6, size=200_000)
    assert exact(y, m=m).tolist() == by_hand(m, y)
    worst = np.where(C[0] > 0, HIGH, LOW)  # as large as the first measurement can become
    assert exact(worst, m=m).tolist() == by_hand(m, worst)


def test_noise_is_added(public, setting):
    first, second = measure(public, setting.y, "error"), measure(public, setting.y, "error")
    for z in (first, second):
        assert z.dtype == np.int64
        away = np.abs(z - np.array(by_hand(public, setting.y)))
        assert 0 < away.max() < 12 * public.sigma
    assert (first != second).any()


def test_the_measurement_is_checked_before_y_is_looked_at(public):
    class Unreadable:
        def __array__(self, *_, **__):
            pytest.fail("y was read")

    with pytest.raises(AssertionError, match="noise is too small"):
        measure(replace(public, epsilon=0.1), Unreadable(), "error")


# Kinds of y


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        lambda y: y.astype(np.float32),
        lambda y: y.astype(np.float16),
        lambda y: y.astype(np.longdouble),
        lambda y: y.astype(np.int8),
        lambda y: y.astype(np.uint8),
        lambda y: y.astype(np.uint64),
        lambda y: y.astype(">f8"),
        lambda y: [int(entry) for entry in y],
        lambda y: np.repeat(y, 2)[::2],
        lambda y: np.ma.array(y),
        lambda y: np.ma.array(y.astype(int), mask=False),
    ],
    ids=[
        "list",
        "tuple",
        "float32",
        "float16",
        "longdouble",
        "int8",
        "uint8",
        "uint64",
        "big-endian",
        "list of int",
        "strided",
        "nothing masked",
        "masked integers, none masked",
    ],
)
def test_every_numeric_kind_of_y_measures_the_same(exact, convert):
    y = np.array([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 100], dtype=float)
    np.testing.assert_array_equal(exact(convert(y)), exact(y))


def test_booleans_are_zeros_and_ones(exact):
    y = np.arange(12) % 3 == 0
    np.testing.assert_array_equal(exact(y), exact(y.astype(float)))
    np.testing.assert_array_equal(exact(y.tolist()), exact(y.astype(float)))


def test_a_series_is_an_array(exact, setting):
    class Series:
        """As pandas': converts itself, and is indexed by label."""

        def __array__(self, dtype=None, copy=None):
            return np.array(setting.y, dtype=dtype)

        def __len__(self):
            return 12

        def __getitem__(self, label):
            raise KeyError(label)

    np.testing.assert_array_equal(exact(Series()), exact(setting.y))


def test_a_pandas_series_too(exact, setting):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(setting.y, index=list("abcdefghijkl"))
    np.testing.assert_array_equal(exact(series), exact(setting.y))


def test_y_is_left_alone(exact, setting):
    y = setting.y.copy()
    exact(y)
    np.testing.assert_array_equal(y, setting.y)
    y.setflags(write=False)
    exact(y)


# Clipping and missing values


@pytest.mark.parametrize("extreme", [1e308, -1e308, 1.7e308, 5e-324, 4.0000001, -1.0000001])
def test_clipping_is_silent_whatever_the_value(exact, extreme):
    y = np.full(12, 2.0)
    y[4] = extreme
    np.testing.assert_array_equal(exact(y), exact(np.clip(y, LOW, HIGH)))


@pytest.mark.parametrize("bounds", [(-8e307, 8e307), (0.0, 1e160), (0.0, 1e-200), (1e15, 1e15 + 1)])
def test_no_bounds_make_the_work_depend_on_y(bounds, monkeypatch):
    """No warning, no error, and the ends of the bounds become 0 and 2^b, for bounds of any size."""
    monkeypatch.setattr(room, "add_noise", lambda exact, sigma: exact)
    m = to_integers(np.ones((1, 2)), bounds, 1.0, 0.01, calibrate(1.0, 0.01))
    low = measure(m, [bounds[0], bounds[0]], "error")
    high = measure(m, [bounds[1], bounds[1]], "error")
    assert low.tolist() == [0]
    assert high.tolist() == [m.matrix.sum() * 2**m.y_bits]


MISSING = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "signalling NaN": np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0],
}


@pytest.mark.parametrize("value", MISSING.values(), ids=MISSING)
def test_missing_values_are_refused_before_anything_is_spent(public, unspent, value):
    y = np.full(12, 2.0)
    y[3] = value
    with pytest.raises(ValueError, match=r"y must be finite.*missing='midpoint'.*Nothing was spent"):
        measure(public, y, "error")


@pytest.mark.parametrize("value", MISSING.values(), ids=MISSING)
def test_midpoint_replaces_missing_values_row_by_row(exact, value):
    y = np.linspace(-2, 5, 12)
    filled = y.copy()
    y[[0, 7]], filled[[0, 7]] = value, (LOW + HIGH) / 2
    np.testing.assert_array_equal(exact(y, "midpoint"), exact(filled))


def test_midpoint_changes_nothing_else(exact, setting):
    np.testing.assert_array_equal(exact(setting.y, "midpoint"), exact(setting.y, "error"))


def test_all_missing_is_the_measurement_of_the_midpoint(exact, public):
    np.testing.assert_array_equal(exact(np.full(12, np.nan), "midpoint"), public.midpoint)


@pytest.mark.parametrize("dtype", [float, int, np.float32, bool])
def test_masked_entries_are_missing(exact, dtype):
    values = np.array([1, 0] * 6)
    y = np.ma.array(values.astype(dtype), mask=np.arange(12) < 2)
    with pytest.raises(ValueError, match="y must be finite"):
        exact(y)
    filled = values.astype(float)
    filled[:2] = (LOW + HIGH) / 2
    np.testing.assert_array_equal(exact(y, "midpoint"), exact(filled))


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
def test_none_is_missing(exact, values, kept_in):
    y = [*values, None] * 4
    with pytest.raises(ValueError, match="y must be finite"):
        exact(kept_in(y))
    filled = [(LOW + HIGH) / 2 if one is None else float(one) for one in y]
    np.testing.assert_array_equal(exact(kept_in(y), "midpoint"), exact(filled))


@pytest.mark.parametrize("word", ["drop", "mean", None, True, "Error", ""])
def test_other_words_for_missing(public, unspent, word, setting):
    with pytest.raises(ValueError, match="missing must be one of 'error', 'midpoint'; got"):
        measure(public, setting.y, word)


# Refusals


@pytest.mark.parametrize(
    "shape", [(12, 1), (1, 12), (11,), (13,), (0,), (), (12, 2), (2, 6)], ids=lambda shape: str(shape)
)
@pytest.mark.parametrize("missing", ["error", "midpoint"])
def test_wrong_shapes(public, unspent, shape, missing):
    with pytest.raises(
        ValueError, match=r"y must have shape \(12,\), one outcome per row.*Nothing was spent"
    ):
        measure(public, np.ones(shape), missing)


WRONG_KINDS = {
    "str": np.array(["314159"] * 12),
    "list of str": ["314159"] * 12,
    "bytes": np.array([b"314159"] * 12),
    "object of str": np.array(["314159", None] * 6, dtype=object),
    "list of str and None": ["314159", None] * 6,
    "complex": np.full(12, 314159 + 1j),
    "datetime": np.full(12, np.datetime64("2020-03-14")),
    "timedelta": np.full(12, np.timedelta64(314159)),
    "structured": np.zeros(12, dtype=[("y", float)]),
    "ragged": [[314159.0], [314159.0, 1.0]] * 6,
    "None": None,
    "text": "314159",
    "dict": {"y": 314159},
    "huge integers": [10**400] * 12,
}


@pytest.mark.parametrize("y", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_wrong_kinds_are_a_type_error_that_quotes_nothing(public, unspent, y):
    with pytest.raises(TypeError, match=r"y must be a vector of real numbers.*Nothing was spent") as caught:
        measure(public, y, "error")
    assert "314159" not in str(caught.value)


@pytest.mark.parametrize(
    "y",
    [
        np.ma.array(["314159"] * 12),
        np.ma.array(np.full(12, 314159 + 1j)),
        np.ma.array(np.full(12, np.datetime64("2020-03-14"))),
        np.ma.array(np.full(12, np.timedelta64(314159))),
        np.ma.array(["314159", "x"] * 6, dtype=object),
        np.ma.array(["314159", None] * 6, dtype=object),
    ],
    ids=["str", "complex", "datetime", "timedelta", "object of str", "object of str and None"],
)
def test_wrong_kinds_of_masked_arrays_too(public, unspent, y):
    with pytest.raises(TypeError, match=r"y must be a vector of real numbers.*Nothing was spent") as caught:
        measure(public, y, "midpoint")
    assert "314159" not in str(caught.value)


def test_masked_numbers_beyond_float64_do_not_warn(exact):
    y = np.ma.array(np.full(12, np.longdouble("1e400")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(exact(y, "midpoint"), exact(np.full(12, np.nan), "midpoint"))


def test_an_array_that_fails_to_convert_is_not_quoted(public, unspent):
    class Leaky:
        def __array__(self, *_, **__):
            raise ValueError("could not convert 314159")

    with pytest.raises(TypeError, match="y must be a vector of real numbers") as caught:
        measure(public, Leaky(), "error")
    assert "314159" not in str(caught.value)


def test_a_failing_noise_generator_is_not_quoted(public, setting, monkeypatch):
    from opendp import measurements

    def leaky(exact):
        raise OverflowError(f"cannot cast {exact}")

    monkeypatch.setattr(measurements, "make_gaussian", lambda *_, **__: leaky)
    with pytest.raises(RuntimeError, match=r"OpenDP failed to add noise; nothing was released\.$"):
        measure(public, setting.y, "error")


# Choosing


@pytest.fixture(scope="module")
def selection():
    """A plan to choose between two models of 12 rows, with other bounds than the measurement's."""
    gps = [GP(EQ(lengthscale), 0.4, (0.0, 1.0)) for lengthscale in (0.5, 5.0)]
    return plan_selection(gps, np.arange(12.0), epsilon=1.0, folds=3)


def test_each_door_rounds_on_its_own_lattice(selection, public):
    y = np.array([-9.0, 9.0, 0.5])
    m, s = public, selection.scores
    assert m.y_bits != s.y_bits
    assert room.to_integers(y, s.lattice).tolist() == [0, 2**s.y_bits, 2 ** (s.y_bits - 1)]
    assert room.to_integers(y, m.lattice).tolist() == [0, 2**m.y_bits, round(0.3 * 2**m.y_bits)]


def test_a_choice_is_an_index_and_is_drawn_afresh(selection, setting):
    drawn = {choose(selection.scores, setting.y, "error") for _ in range(60)}
    assert drawn == {0, 1}
    assert all(type(index) is int for index in drawn)


@pytest.mark.parametrize("y", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_wrong_kinds_are_not_chosen_by(selection, monkeypatch, y):
    monkeypatch.setattr(
        room, "noisy_minimum", lambda scores: lambda exact: pytest.fail("the budget is spent")
    )
    with pytest.raises(TypeError, match=r"y must be a vector of real numbers.*Nothing was spent") as caught:
        choose(selection.scores, y, "error")
    assert "314159" not in str(caught.value)


def test_the_noisy_minimum_is_the_exponential_mechanism_not_permute_and_flip(selection):
    """Only the first has rho = epsilon^2 / 8; OpenDP gives it for this divergence."""
    mechanism = room.noisy_minimum(selection.scores)
    assert "ZeroConcentratedDivergence" in repr(mechanism.output_measure)
    assert mechanism.map(selection.scores.sensitivity) == pytest.approx(1 / 8, rel=1e-9)
