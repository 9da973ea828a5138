"""Categories: equal or not is all that counts."""

import numpy as np
import pytest

from cloakgp.kernels import Category, from_spec
from cloakgp.kernels.words import parse


def test_levels_are_equal_or_not_whatever_their_numbers():
    k = Category(0.25, levels=["red", "green"], variance=4.0, active_dims=[1])
    X = np.array([[0.0, 0.0], [9.0, 1.0], [5.0, 0.0], [5.0, 17.0]])  # 17: a level that nobody named
    expected = [[4, 1, 4, 1], [1, 4, 1, 1], [4, 1, 4, 1], [1, 1, 1, 4]]
    np.testing.assert_array_equal(k(X), expected)
    np.testing.assert_array_equal(k.diag(X), np.full(4, 4.0))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_every_correlation_from_0_to_1_is_a_covariance(correlation):
    K = Category(correlation)(np.repeat(np.arange(6.0), 2)[:, None])
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.torch
def test_torch():
    import torch

    X = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 1.0]])
    found = Category(0.3)(torch.tensor(X), torch.tensor(X[:2]))
    np.testing.assert_array_equal(found.numpy(), Category(0.3)(X, X[:2]))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"correlation": 1.01}, "correlation must be at least 0 and at most 1"),
        ({"correlation": -0.1}, "correlation must be at least 0 and at most 1"),
        ({"correlation": float("nan")}, "correlation"),
        ({"levels": []}, "levels must be at least 1"),
        ({"levels": 5000}, "levels must be at least 1 and at most 4096"),
        ({"levels": "abc"}, "levels must be names or their number"),
        ({"levels": True}, "levels must be names or their number"),
        ({"levels": ["a", "a"]}, "levels must differ"),
        ({"levels": ["a" * 201]}, "at most 200 characters"),
        ({"levels": ["a\nb"]}, "printable"),
        ({"levels": [0.5]}, "levels must be whole numbers or printable texts"),
        ({"active_dims": [0, 0]}, "active_dims must be distinct"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Category(**{"correlation": 0.5, **changes})


@pytest.mark.parametrize("levels", [[["a"]], [None], {"a": 1}, 0, 2**70, [1.5], ["\u202e"]])
def test_a_file_cannot_name_levels_that_the_kernel_would_refuse(levels):
    spec = {**Category(0.5).to_spec(), "levels": levels}
    with pytest.raises(ValueError, match="levels"):
        from_spec(spec)


def test_texts_are_understood_as_levels_only():
    assert parse("Category(levels=3)") == Category(levels=3)
    with pytest.raises(ValueError, match="only numbers"):
        parse("Category('a')")
    with pytest.raises(ValueError, match="only numbers"):
        parse("Category(levels=[open('a')])")
    with pytest.raises(ValueError, match="only numbers"):
        parse("EQ(['a'])")
