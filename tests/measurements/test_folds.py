"""Folds without y, and the weights between trained and tested rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from cloakgp import GP
from cloakgp.kernels import EQ, Linear, Matern12
from cloakgp.measurements import folds
from cloakgp.measurements.folds import as_folds, weights

X = np.linspace(0.0, 10.0, 20)[:, None]


def lists(pairs):
    return [(list(train), list(test)) for train, test in pairs]


# Folds


def test_a_number_shuffles_by_a_public_seed():
    assert lists(as_folds(4, X)) == lists(KFold(4, shuffle=True, random_state=0).split(X))
    assert lists(as_folds(np.int64(4), X)) == lists(as_folds(4, X))
    tested = np.concatenate([test for _, test in as_folds(4, X)])
    assert sorted(tested) == list(range(20))


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(3),
        LeaveOneOut(),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=1),
        ShuffleSplit(7, test_size=0.3, random_state=2),
        ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=2),
        TimeSeriesSplit(3),
    ],
    ids=lambda s: type(s).__name__,
)
def test_splitters(splitter):
    assert lists(as_folds(splitter, X)) == lists(splitter.split(X))


def test_a_splitter_without_a_seed_is_drawn_once():
    drawn = as_folds(ShuffleSplit(5, test_size=0.5), X)
    assert len(drawn) == 5
    assert not drawn[0].train.flags.writeable


@pytest.mark.parametrize(
    "splitter", [StratifiedKFold(3), StratifiedShuffleSplit(3), GroupKFold(3)], ids=lambda s: type(s).__name__
)
def test_splitters_that_want_more_than_X_are_refused(splitter):
    name = type(splitter).__name__
    with pytest.raises(
        ValueError, match=rf"folds: {name} could not split X alone.*not private.*ShuffleSplit"
    ):
        as_folds(splitter, X)


def test_explicit_pairs_of_any_kind():
    pairs = ((train, test) for train, test in [([0, 1], [2]), ((5,), np.array([0, 3], dtype=np.uint8))])
    assert lists(as_folds(pairs, X)) == [([0, 1], [2]), ([5], [0, 3])]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (1, ValueError, "folds must be from 2 to the number of rows, 20; got 1"),
        (21, ValueError, "folds must be from 2"),
        (True, TypeError, "folds must be a number or say how to split"),
        (None, TypeError, "folds must be a number"),
        ("kfold", TypeError, "folds must be a number"),
        (2.5, TypeError, "folds must be a number"),
        ([], ValueError, "folds must hold at least one pair"),
        ([3], ValueError, r"folds\[0\] must be a pair"),
        ([([0], [1], [2])], ValueError, r"folds\[0\] must be a pair"),
        ([([0], [1]), ([], [2])], ValueError, r"folds\[1\]\[0\] \(train\) must be a vector of row numbers"),
        ([([0], [])], ValueError, r"folds\[0\]\[1\] \(test\) must be a vector"),
        ([([[0]], [1])], ValueError, r"must be a vector"),
        ([([[0], [1, 2]], [1])], ValueError, r"must be a vector"),
        ([([0.0], [1])], TypeError, "must hold whole numbers; got dtype float64"),
        ([(np.arange(20) < 5, [1])], TypeError, r"For a mask m, use m.nonzero\(\)\[0\]"),
        ([([0], [20])], ValueError, "must be from 0 to 19"),
        ([([-1], [2])], ValueError, "must be from 0 to 19"),
        ([([0, 0], [2])], ValueError, "must not repeat a row"),
        ([([0, 1], [2, 2])], ValueError, "must not repeat a row"),
        ([([0, 1], [1])], ValueError, r"folds\[0\] must not test rows that it trains on"),
        (KFold(30), ValueError, "could not split X alone"),
    ],
)
def test_bad_folds(bad, error, message):
    with pytest.raises(error, match=message):
        as_folds(bad, X)


# Weights


def textbook(gp, train, test):
    noise = np.broadcast_to(gp.noise, (len(X),))[train]
    return np.linalg.solve(gp.kernel(X[train]) + np.diag(noise), gp.kernel(X[train], X[test])).T


MODELS = {
    "plain": GP(EQ(2.0), 0.3, (0, 1)),
    "per row": GP(Matern12(2.0), np.linspace(0.1, 3.0, 20), (0, 1)),
    "singular kernel": GP(Linear(1.0), 0.5, (0, 1)),
    "far apart": GP(EQ(1e-3), 0.5, (0, 1)),
    "tiny noise": GP(EQ(2.0), 1e-9, (0, 1)),
}
FOLDS = {
    "k-fold": 4,
    "leave one out": LeaveOneOut(),
    "mostly tested": ShuffleSplit(3, test_size=0.8, random_state=0),
    "rows left out": ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", FOLDS)
def test_weights_are_the_textbooks(model, kind):
    pairs, gp = as_folds(FOLDS[kind], X), MODELS[model]
    ticks = []
    (found,) = weights([gp], X, pairs, lambda: ticks.append(1))
    assert ticks == [1]
    tolerance = 1e-3 if model == "tiny noise" else 1e-9
    for C, (train, test) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(C, textbook(gp, train, test), rtol=0, atol=tolerance)


def test_a_kernel_is_evaluated_once_for_models_side_by_side():
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return EQ(2.0)(A, B)

    gps = [GP(kernel, noise, (0, 1)) for noise in (0.1, 0.2, 0.3)]
    list(weights(gps, X, as_folds(4, X), lambda: None))
    assert calls == [20]


def test_an_ill_conditioned_inverse_is_not_used(monkeypatch):
    monkeypatch.setattr(folds, "_from_inverse", lambda *_: pytest.fail("the inverse was used"))
    list(weights([MODELS["tiny noise"]], X, as_folds(4, X), lambda: None))


def test_kernels_that_are_none_are_refused():
    with pytest.raises(ValueError, match="kernel must return a positive semi-definite"):
        list(weights([GP(lambda A, B: -EQ(1.0)(A, B), 1.0, (0, 1))], X, as_folds(4, X), lambda: None))
