"""Numbers, categories and both together: what a hyperprior's models are made of."""

import numpy as np
import pytest

from cloakgp import AutoGP, Hyperprior
from cloakgp.gp import GP
from cloakgp.kernels import EQ, Category
from cloakgp.model.hyperprior import Known, Setting

RNG = np.random.default_rng(0)
X = np.column_stack(
    [RNG.uniform(size=40), RNG.integers(0, 3, 40), RNG.integers(5, 7, 40), RNG.normal(size=40)]
)


def setting(categories, shares, lengths=(0.5,)):
    return Setting("EQ", lengths, 4.0, 1.0, 0.1, categories, shares)


def same(column):
    return X[:, column][:, None] == X[:, column]


def test_one_category():
    one = setting((1,), (0.5, 0.3, 0.2), (0.5, 2.0, 3.0))
    numbers = EQ([0.5, 2.0, 3.0], active_dims=[0, 2, 3])(X)
    expected = 0.5 * numbers + 0.3 * same(1) + 0.2 * numbers * same(1)
    np.testing.assert_allclose(one.shape(X), expected, rtol=1e-12)
    np.testing.assert_allclose(one.kernel(X), 4 * expected + 1, rtol=1e-12)
    assert one.parts() == ("numbers", "column 2", "together")
    assert one.parts(["a", "b", "c", "d"]) == ("numbers", "b", "together")


def test_several_categories_share_one_part_with_the_numbers():
    one = setting((1, 2), (0.4, 0.3, 0.2, 0.1), (0.5, 3.0))
    numbers = EQ([0.5, 3.0], active_dims=[0, 3])(X)
    both = np.where(same(1), 1.0, 0.5) * np.where(same(2), 1.0, 0.5)
    expected = 0.4 * numbers + 0.3 * same(1) + 0.2 * same(2) + 0.1 * numbers * both
    np.testing.assert_allclose(one.shape(X), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("columns", "categories", "numbers_open"),
    [
        ((0,), (), 3),
        ((0, 3), (), 4),
        ((1,), (0,), 2),
        ((0, 1), (1,), 5),
        ((1, 2), (0, 1), 4),
        ((0, 1, 2, 3), (1, 2), 7),
    ],
)
def test_the_prior_stands_for_settings_of_variance_1(columns, categories, numbers_open):
    inputs, prior = X[:, columns], Hyperprior(categories=categories)
    spans = prior.spans(inputs)
    assert len(prior.ends(len(spans))) == numbers_open + 1  # and the skew
    found = prior.settings(spans, 10.0)
    for one in found[::40]:
        K = np.asarray(one.shape(inputs))
        np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)
        assert np.linalg.eigvalsh(K)[0] > -1e-10
        assert not one.shares or abs(sum(one.shares) - 1) < 1e-12
    if len(categories) < len(columns) and categories:
        shares = np.array([one.shares for one in found])
        assert shares.min(axis=0).max() < 0.02  # each part may be next to nothing
        assert shares.max(axis=0).min() > 0.8  # or nearly all
    assert np.isfinite(prior.model(inputs, (0, 10)).kernel(inputs)).all()


def test_families_of_levels_alone_are_one():
    three = Hyperprior(kernels=("EQ", "Matern32", "Matern52"), categories=(0,))
    assert len(three.settings(np.empty(0), 1.0)) == len(
        Hyperprior(categories=(0,)).settings(np.empty(0), 1.0)
    )


@pytest.mark.parametrize("categories", [(-1,), (1, 1), (0.5,), "1", (True,), 1])
def test_columns_that_are_none_are_refused(categories):
    with pytest.raises(ValueError, match="categories must be different columns of X"):
        Hyperprior(categories=categories)


def test_a_column_that_x_does_not_have_is_refused():
    with pytest.raises(ValueError, match="categories must be columns of X, which has 4"):
        AutoGP(bounds=(0, 1), categories=[4]).plan(X, epsilon=1.0, delta=0.01)


def test_a_known_model_names_its_categories_by_its_kernel():
    kernel = EQ(1.0, active_dims=[0]) * Category(0.5, active_dims=[2]) + Category(active_dims=[1, 2])
    assert Known(GP(kernel, 0.1, (0, 1))).category_columns(4) == (1, 2)
    assert Known(GP(EQ(1.0) + Category(), 0.1, (0, 1))).category_columns(2) == (0, 1)
    assert Known(GP(EQ(1.0), 0.1, (0, 1))).category_columns(2) == ()
