"""Checks of public arguments: what passes, and what the messages say."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cloakgp.core import checks
from cloakgp.core.errors import ArgumentError

# Numbers


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), Fraction(2), Decimal(2)], ids=repr
)
def test_numbers_of_every_kind_become_floats(value):
    result = checks.number(value, "thing")
    assert result == 2.0
    assert type(result) is float


@pytest.mark.parametrize("value", [None, True, np.True_, "1", b"1", 1j, [1.0], np.ones(1), object()])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"thing must be a number; got .*\. Do this\.$"):
        checks.number(value, "thing", remedy="Do this.")


@pytest.mark.parametrize(
    ("limits", "fine", "wrong", "expected"),
    [
        ({}, [-1e300, 0, 1e300], [math.nan, math.inf, -math.inf], "finite"),
        ({"above": 0.0}, [5e-324, 1e300], [0.0, -1.0, math.inf], "finite and above 0"),
        ({"above": 0.0, "below": 1.0}, [0.5], [0.0, 1.0, math.nan], "above 0 and below 1"),
        ({"least": 0.0, "most": 1.0}, [0.0, 1.0], [-1e-9, 1.0 + 1e-9, math.nan], "at least 0 and at most 1"),
        ({"least": 0.0, "below": 1.0}, [0.0], [1.0, -1e-9], "at least 0 and below 1"),
    ],
)
def test_limits(limits, fine, wrong, expected):
    for value in fine:
        assert checks.number(value, "thing", **limits) == value
    for value in wrong:
        with pytest.raises(ArgumentError) as refused:
            checks.number(value, "thing", **limits, remedy="Do this.")
        error = refused.value
        assert (error.name, error.expected, error.remedy) == ("thing", f"must be {expected}", "Do this.")
    assert checks.positive(5e-324, "thing") == 5e-324
    with pytest.raises(ArgumentError):
        checks.positive(0.0, "thing")


def test_paths():
    for value in ("a/b", Path("a/b")):
        assert checks.path(value) == Path("a/b")
    for wrong in (1, True, None, b"a", ["a"]):
        with pytest.raises(TypeError, match=r"^path must be the name of a file; got "):
            checks.path(wrong)


def test_whole_numbers():
    for value in (3, np.int8(3), np.uint64(3)):
        assert checks.whole(value, "thing", 1, 3) == 3
        assert type(checks.whole(value, "thing")) is int
    for wrong, kind in (
        (0, ValueError),
        (4, ValueError),
        (True, TypeError),
        (2.0, TypeError),
        ("2", TypeError),
    ):
        with pytest.raises(kind, match="thing must be a whole number from 1 to 3; got"):
            checks.whole(wrong, "thing", 1, 3)
    with pytest.raises(ArgumentError, match="must be a whole number from 1 on; got"):
        checks.whole(0, "thing", 1)


@pytest.mark.parametrize("word", ["a", "a b", "é", "東京", np.str_("a"), "x" * 200])
def test_words_are_kept_as_they_are(word):
    assert checks.text(word, "thing", 200) == word


@pytest.mark.parametrize("wrong", ["", " ", "x" * 201, "a\nb", "a\x00", " a", "a ", "e\u0301", None, 1, b"a"])
def test_words_that_files_cannot_hold_are_refused(wrong):
    with pytest.raises(ArgumentError) as refused:
        checks.text(wrong, "thing", 200)
    assert refused.value.name == "thing"


def test_choice_lists_what_there_is():
    assert checks.choice("a", "thing", ("a", "b")) == "a"
    for wrong in ("c", None, 1, ["a"]):
        with pytest.raises(ValueError, match="thing must be one of 'a', 'b'; got"):
            checks.choice(wrong, "thing", ("a", "b"))


# Vectors and matrices


def test_vectors_are_read_only_float_copies():
    given = np.array([1, 2, 3])
    result = checks.vector(given, "thing", 3)
    given[0] = 99
    assert result.dtype == np.float64
    assert result.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 5.0


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ([1.0, 2.0], ValueError, r"thing must be of shape \(3,\); got shape \(2,\)"),
        ([[1.0, 2.0, 3.0]], ValueError, r"of shape \(3,\); got shape \(1, 3\)"),
        (1.0, ValueError, r"of shape \(3,\); got shape \(\)"),
        ([1.0, math.nan, 2.0], ValueError, r"thing must be finite; .* at index \(1\)"),
        ([1.0, 2.0, math.inf], ValueError, r"thing must be finite; .* at index \(2\)"),
        ([1.0, 0.0, 2.0], ValueError, "thing must be above 0 everywhere"),
        (["a", "b", "c"], TypeError, "thing must hold real numbers; got dtype"),
        ([1.0, None, 2.0], TypeError, "thing must hold real numbers; got dtype object"),
        ([True, True, False], TypeError, "thing must hold real numbers; got dtype bool"),
        (np.ma.array([1.0, 2.0, 3.0]), TypeError, "thing must not be a masked array"),
        ([[1.0], [1.0, 2.0]], ValueError, "thing must be an array of numbers with equal rows"),
    ],
)
def test_bad_vectors(value, error, match):
    with pytest.raises(error, match=match):
        checks.vector(value, "thing", 3, positive=True)


def test_matrices_are_read_only_contiguous_copies_and_a_vector_is_a_column():
    given = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    result = checks.matrix(given, "X")
    given[0, 0] = 99
    assert result[0, 0] == 0.0
    assert result.flags.c_contiguous
    assert not result.flags.writeable
    assert checks.matrix([1, 2, 3], "X").shape == (3, 1)
    assert checks.matrix(np.ones((3, 2), dtype=np.float32), "X", columns=2).dtype == np.float64


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        *(
            (np.ones(shape), "at least one row and one column")
            for shape in [(0,), (0, 3), (3, 0), (2, 2, 2), ()]
        ),
        (np.ones((4, 2)), r"must have 3 column\(s\), as X has; got 2"),
        ([[1.0, 2.0, 0.0], [math.nan, 1.0, 0.0]], r"must be finite; .* at index \(1, 0\).*Remove or fill"),
    ],
)
def test_bad_matrices(wrong, match):
    with pytest.raises(ArgumentError, match=rf"thing .*{match}"):
        checks.matrix(wrong, "thing", columns=3)


def test_numbers_too_large_for_float64_are_an_error_without_a_warning():
    if np.finfo(np.longdouble).max <= np.finfo(float).max:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(ValueError, match="X must be finite"):
        checks.matrix(np.full((2, 1), np.longdouble("1e400")), "X")
