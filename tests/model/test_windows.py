"""Bounds and prior means that differ from row to row: what is accepted, and what a row gets."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP, binning, plan_selection
from cloakgp.data.merging import distinct
from cloakgp.kernels import EQ

X = np.array([[0.0], [1.0], [2.0], [2.0], [5.0]])
X_STAR = np.array([[1.0], [5.0]])
PROMISE = {"epsilon": 1.0, "delta": 0.01}
LOW, HIGH = np.array([0.0, 1.0, 2.0, 2.0, 3.0]), np.array([2.0, 2.5, 4.0, 5.0, 7.0])


def gp(bounds=(LOW, HIGH), mean=None, **options):
    return GP(EQ(2.0), 0.3, bounds, mean, **options)


def low(X):
    return X[:, 0] - 1


def high(X):
    return X[:, 0] + 2


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        ((LOW, HIGH), LOW, HIGH),
        ((LOW, 9.0), LOW, np.full(5, 9.0)),
        ((low, high), X[:, 0] - 1, X[:, 0] + 2),
        ((low, HIGH + 4), X[:, 0] - 1, HIGH + 4),
        ((lambda X: -1, high), np.full(5, -1.0), X[:, 0] + 2),
    ],
    ids=[
        "arrays",
        "an array and a number",
        "functions",
        "a function and an array",
        "a function of one number",
    ],
)
def test_every_row_has_its_bounds_and_the_middle_as_its_mean(bounds, lower, upper):
    at = gp(bounds).at_rows(X)
    np.testing.assert_array_equal(at.windows, np.column_stack([lower, upper, lower + (upper - lower) / 2]))
    assert at.limits == (lower.min(), upper.max())


def test_the_mean_may_be_anything_beside_the_bounds():
    for mean in (X[:, 0], lambda X: X[:, 0]):
        at = gp((-3.0, 8.0), mean).at_rows(X)
        assert at.bounds == (-3.0, 8.0)
        np.testing.assert_array_equal(at.windows[:, 2], X[:, 0])


def test_numbers_that_all_rows_share_are_numbers_again():
    plain = gp((0.0, 3.0), 1.0).plan(X, X_star=X_STAR, **PROMISE)
    for bounds in ((np.zeros(5), np.full(5, 3.0)), (np.zeros(5), 3), (lambda X: 0.0, lambda X: 3.0)):
        assert gp(bounds, np.ones(5)).plan(X, X_star=X_STAR, **PROMISE).digest == plain.digest
    middle = gp((0.0, 3.0)).plan(X, X_star=X_STAR, **PROMISE)
    assert gp((np.zeros(5), np.full(5, 3.0))).plan(X, X_star=X_STAR, **PROMISE).digest == middle.digest


def test_only_rows_with_the_same_window_are_merged():
    sites = np.zeros((4, 1))
    for bounds, mean, labels in (
        (([0.0, 0, 0, 1], 3.0), 1.0, [0, 0, 0, 1]),
        ((0.0, [3.0, 3, 4, 3]), 1.0, [0, 0, 1, 0]),
        ((0.0, 3.0), [1.0, 2, 1, 1], [0, 1, 0, 0]),
    ):
        at = gp(bounds, mean).at_rows(sites)
        assert distinct(sites, 0.3, at.windows).groups.labels.tolist() == labels
        if np.ndim(mean) == 0:
            assert gp(bounds, mean).planner(sites, X_star=[[1.0]]).inputs.groups.labels.tolist() == labels


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"bounds": (LOW[:4], HIGH[:4])}, r"bounds\[0\] must be one number or one per row of X \(5\); got 4"),
        ({"bounds": (0.0, HIGH[:4])}, r"bounds\[1\] must be one number or one per row"),
        ({"mean": LOW[:4]}, "mean must be one number or one per row"),
        ({"mean": 1e20 * (LOW + 1)}, "mean must be no farther from the bounds"),
        ({"bounds": (LOW, HIGH), "mean": -1e20}, "mean must be no farther from the bounds"),
        ({"bounds": (low, lambda X: X[:, 0] - 1)}, "lo < hi in every row; row 0 has not"),
        ({"bounds": (lambda X: X, high)}, None),  # one column is as good as a vector
        ({"bounds": (lambda X: X[:3, 0], high)}, r"bounds\[0\] must be of shape \(5,\).*returns n finite"),
        ({"bounds": (lambda X: X[:, 0] / 0, high)}, r"bounds\[0\] must be finite"),
        ({"mean": lambda X: np.nan}, "mean must be finite"),
        ({"mean": lambda X: np.array(["a"] * len(X))}, "mean must hold real numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_what_does_not_fit_the_rows_is_refused(change, match):
    if match is None:
        gp(**change).plan(X, X_star=X_STAR, **PROMISE)
        return
    with pytest.raises((ValueError, TypeError), match=match):
        gp(**change).plan(X, X_star=X_STAR, **PROMISE)


def test_messages_do_not_quote_what_rows_have():
    secret = 7654.321
    for bounds in (
        (np.full(5, secret), np.full(5, secret)),
        np.full((5, 2), secret),
        (np.full((5, 1), secret), 1.0),
    ):
        with pytest.raises(ValueError, match="bounds") as refused:
            gp(bounds)
        assert "7654" not in str(refused.value)
    assert "7654" not in repr(gp((np.full(5, secret), secret + LOW + 1), np.full(5, secret)))


def test_a_mean_per_row_is_known_at_rows_only():
    one = gp(mean=LOW)
    plan = one.plan(X, X_star=[[0.0], [5.0]], **PROMISE)
    np.testing.assert_array_equal(plan.gp.mean.star, [0.0, 3.0])
    release = plan.release(LOW + 0.5)
    assert release.predict([[1.0], [0.0]]).shape == (2,)
    assert release.uncertainty([[0.3]]).total.shape == (1,)  # needs no mean
    assert plan.noise_at([[0.3]]).shape == (1,)
    for ask in (lambda: one.plan(X, X_star=[[0.3]], **PROMISE), lambda: release.predict([[1.0], [0.3]])):
        with pytest.raises(ValueError, match=r"mean was given per row of X.*as a function of X"):
            ask()
    uneven = gp(mean=np.arange(5.0))  # two rows at 2.0
    with pytest.raises(ValueError, match="rows with the same inputs have different ones"):
        uneven.plan(X, X_star=[[2.0]], **PROMISE)


def test_what_needs_one_pair_of_bounds_refuses_others():
    for one in (gp(), gp((0.0, 3.0), LOW)):
        for ask in (
            lambda one=one: one.plan_function(X, **PROMISE),
            lambda one=one: plan_selection([one, gp((0.0, 3.0))], X, epsilon=1.0, loss_clip=1.0),
        ):
            with pytest.raises(ValueError, match=r"(bounds must be two numbers|mean must be one number) for"):
                ask()
    with pytest.raises((TypeError, ValueError), match="bounds"):
        binning.local(X, X_star=X_STAR, kernel=EQ(1.0), noise=0.3, bounds=(LOW, HIGH), epsilon=1.0)
