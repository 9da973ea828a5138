"""Generated data: reproducible, and plausible as heights by age."""

import numpy as np
import pytest

from cloakgp.datasets import make_kung_like


def test_shapes_and_public_seed():
    X, y = make_kung_like()
    assert X.shape == (287, 1)
    assert y.shape == (287,)
    again = make_kung_like(seed=0)
    assert np.array_equal(again[0], X)
    assert np.array_equal(again[1], y)
    assert not np.array_equal(make_kung_like(seed=1)[1], y)


def test_heights_grow_to_about_150_cm_with_a_spread_of_6_to_7():
    X, y = make_kung_like(n=20_000, seed=3)
    age = X[:, 0]
    assert 0 <= age.min() < 1
    assert 75 < age.max() <= 88
    assert 0.6 < np.mean(age >= 18) < 0.72
    adults = y[(age > 30) & (age < 60)]
    assert adults.mean() == pytest.approx(150, abs=1)
    assert adults.std() == pytest.approx(6.5, abs=0.5)
    assert y[age < 1].mean() == pytest.approx(62, abs=2)
    by_age = [y[(age >= low) & (age < low + 4)].mean() for low in range(0, 20, 4)]
    assert np.all(np.diff(by_age) > 0)


def test_no_generator_but_the_seeded_one_is_touched():
    np.random.seed(0)  # noqa: NPY002 - it is the global generator that must be left alone
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    make_kung_like()
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize("n", [0, -3])
def test_refuses_no_people(n):
    with pytest.raises(ValueError, match="n must be at least 1"):
        make_kung_like(n)
