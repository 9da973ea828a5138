"""Cross-validation in public integers: folds without y, textbook weights, exact scores, and their check."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

import measured
from cloakgp import GP
from cloakgp.core.errors import ArgumentError
from cloakgp.kernels import EQ, Linear, Matern12
from cloakgp.measure.cross_validation import CLIP_BITS, MATRIX_BITS, Y_BITS, as_folds, make_scores, residuals
from cloakgp.private import room

X = np.linspace(0.0, 10.0, 20)[:, None]


def lists(pairs):
    return [(list(train), list(test)) for train, test in pairs]


# Folds


def test_a_number_shuffles_by_a_public_seed():
    assert lists(as_folds(4, X)) == lists(KFold(4, shuffle=True, random_state=0).split(X))
    assert lists(as_folds(np.int64(4), X)) == lists(as_folds(4, X))


@pytest.mark.parametrize(
    "splitter",
    [
        LeaveOneOut(),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=1),
        ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=2),
    ],
    ids=lambda s: type(s).__name__,
)
def test_splitters(splitter):
    drawn = as_folds(splitter, X)
    assert lists(drawn) == lists(splitter.split(X))
    assert not drawn[0].train.flags.writeable


def test_explicit_pairs_of_any_kind():
    pairs = ((train, test) for train, test in [([0, 1], [2]), ((5,), np.array([0, 3], dtype=np.uint8))])
    assert lists(as_folds(pairs, X)) == [([0, 1], [2]), ([5], [0, 3])]


BAD = [
    *((bad, ValueError, "folds") for bad in (1, 21, [])),
    *((bad, TypeError, "folds") for bad in (True, None, "kfold", 2.5)),
    *(
        (bad, ValueError, "folds[0]")
        for bad in ([3], [([0], [1], [2])], [([[0], [1, 2]], [1])], [([0, 1], [1])])
    ),
    ([([0], [1]), ([], [2])], ValueError, "folds[1][0] (train)"),
    *(([([0], test)], ValueError, "folds[0][1] (test)") for test in ([], [20], [2, 2])),
    *(([(train, [2])], ValueError, "folds[0][0] (train)") for train in ([[0]], [-1], [0, 0])),
    *(([(train, [1])], TypeError, "folds[0][0] (train)") for train in ([0.0], np.arange(20) < 5)),
]


@pytest.mark.parametrize(("bad", "error", "name"), BAD)
def test_bad_folds(bad, error, name):
    with pytest.raises(error) as caught:
        as_folds(bad, X)
    assert isinstance(caught.value, ArgumentError)
    assert caught.value.name == name


@pytest.mark.parametrize(
    "splitter", [StratifiedKFold(3), GroupKFold(3), KFold(30)], ids=lambda s: type(s).__name__
)
def test_splitters_that_want_more_than_X_are_refused(splitter):
    with pytest.raises(ArgumentError) as caught:
        as_folds(splitter, X)
    assert caught.value.name == "folds"


# Weights


def textbook(gp, train, test):
    noise = np.broadcast_to(gp.noise, (len(X),))[train]
    return np.linalg.solve(gp.kernel(X[train]) + np.diag(noise), gp.kernel(X[train], X[test])).T


MODELS = {
    "plain": GP(EQ(2.0), 0.3, (0, 1)),
    "per row": GP(Matern12(2.0), np.linspace(0.1, 3.0, 20), (0, 1)),
    "singular kernel": GP(Linear(1.0), 0.5, (0, 1)),
    "tiny noise": GP(EQ(2.0), 1e-9, (0, 1)),
}
FOLDS = {"k-fold": 4, "mostly tested": ShuffleSplit(3, test_size=0.8, random_state=0)}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", FOLDS)
def test_weights_are_the_textbooks(model, kind):
    pairs, gp = as_folds(FOLDS[kind], X), MODELS[model]
    (found,) = residuals([gp], X, pairs, lambda: None)
    tolerance = 1e-3 if model == "tiny noise" else 1e-9
    expected = measured.residuals([textbook(gp, *fold) for fold in pairs], pairs, len(X))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_kernels_that_are_none_are_refused():
    with pytest.raises(ValueError, match="kernel must return a positive semi-definite"):
        list(residuals([GP(lambda A, B: -EQ(1.0)(A, B), 1.0, (0, 1))], X, as_folds(4, X), lambda: None))


# Scores

BOUNDS = (-2.0, 6.0)


def in_folds(weights, n_rows=9):
    """R of three folds with weights of these shapes."""
    pairs = as_folds(3, np.empty((n_rows, 1)))
    return measured.residuals([weights(len(test), len(train)) for train, test in pairs], pairs, n_rows)


def some_scores(seed=0, size=0.3, n_rows=9, n_candidates=3, **changes):
    random = np.random.default_rng(seed)
    arguments = {
        "residuals": [
            in_folds(lambda test, train: size * random.normal(size=(test, train)), n_rows)
            for _ in range(n_candidates)
        ],
        "means": [1.0] * n_candidates,
        "costs": [0.0] * n_candidates,
        "bounds": BOUNDS,
        "loss": "squared",
        "clip": 2.0,
        "epsilon": 1.0,
    }
    return make_scores(**{**arguments, **changes})


def by_hand(scores, y_int):
    """The scores in Python integers, straight from their definition."""
    result = []
    for matrix, offset, cost in zip(scores.matrices, scores.offsets, scores.costs, strict=True):
        total = cost
        for row, shift in zip(matrix.tolist(), offset.tolist(), strict=True):
            residual = sum(c * y for c, y in zip(row, y_int, strict=True)) - shift
            error = min(abs(residual), scores.clip)
            total += error**2 if scores.loss == "squared" else error
        result.append(total // 2**scores.shift)
    return result


def effect_by_hand(scores):
    """The sensitivity before the shift, in exact integers."""
    T, largest = scores.clip, 0

    def change(s):
        t = min(s, T)
        return t * (2 * T - t) if scores.loss == "squared" else t

    for matrix in scores.matrices:
        effects = (
            sum(change(abs(c) << scores.statistic.y_bits) for c in column) for column in matrix.T.tolist()
        )
        largest = max(largest, *effects)
    return largest


# Exactness


@given(
    seed=st.integers(0, 10**6),
    shares=st.lists(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=9, max_size=9),
    loss=st.sampled_from(["squared", "absolute"]),
    size=st.sampled_from([1e-6, 0.1, 3.0, 500.0]),
    mean=st.sampled_from([1.0, -2.0, 1e9, -1e40]),
    clip=st.sampled_from([1e-2, 1.0, 8.0, 70.0]),
)
def test_the_private_room_computes_the_definition(seed, shares, loss, size, mean, clip):
    scores = some_scores(seed, size, loss=loss, means=[mean, 1.0, 0.0], clip=clip, costs=[0.0, 2.5, 1e30])
    scores.check()
    y = BOUNDS[0] + np.array(shares) * (BOUNDS[1] - BOUNDS[0])
    y_int = room.integers_of(scores.statistic, y)[0][:, 0].tolist()
    found = room._exact_scores(scores, y, "error")
    assert found.dtype == np.int64
    assert found.tolist() == by_hand(scores, y_int)
    assert found.max() < 2**53


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_more_tests_than_are_added_up_at_a_time(loss):
    """None is forgotten, and none counts twice, whether of losses or of what a row can do to them."""
    tests = np.random.default_rng(0).uniform(-1.0, 1.0, (2500, 2))
    scores = some_scores(residuals=[tests], means=[0.5], costs=[0.0], loss=loss, clip=3.0)
    scores.check()
    y_int = room.integers_of(scores.statistic, np.array([6.0, 1.0]))[0][:, 0].tolist()
    assert room._exact_scores(scores, np.array([6.0, 1.0]), "error").tolist() == by_hand(scores, y_int)
    least = effect_by_hand(scores) // 2**scores.shift + 1
    assert least <= scores.sensitivity <= least * (1 + 2e-9) + 1


@given(st.lists(st.one_of(st.sampled_from([0, 2**CLIP_BITS - 1]), st.integers(0, 2**CLIP_BITS - 1))))
@example([2**CLIP_BITS - 1] * (2**13 - 1))
def test_sums_of_squares_do_not_wrap(values):
    found = room._sum_of_squares(np.array(values, dtype=np.int64))
    assert found == sum(v**2 for v in values)


# Sensitivity


@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["squared", "absolute"]),
    size=st.sampled_from([1e-6, 0.1, 3.0, 500.0]),
    clip=st.sampled_from([1e-2, 1.0, 8.0, 70.0]),
)
def test_the_sensitivity_is_the_lemmas_rounded_up(seed, loss, size, clip):
    scores = some_scores(seed, size, loss=loss, clip=clip)
    exact = effect_by_hand(scores)
    least = exact // 2**scores.shift + 1
    assert least <= scores.sensitivity <= least * (1 + 2e-9) + 1
    assert Fraction(scores.scale) * Fraction(scores.epsilon) >= 2 * scores.sensitivity
    assert 2**scores.shift < 1e-6 * exact or size == 1e-6  # so little is rounded away


def test_a_clip_beyond_every_residual_costs_no_more_than_one_at_it():
    """With weights 0 no residual passes the width of the bounds."""
    zero = [in_folds(lambda *shape: np.zeros(shape))]
    huge, wide = (some_scores(residuals=zero, means=[-2.0], costs=[0.0], clip=c) for c in (70.0, 8.0))
    assert huge.clip == wide.clip
    assert huge.sensitivity == wide.sensitivity


def test_costs_are_public_and_capped():
    free, costly, absurd = (some_scores(costs=[0.0, cost, 0.0]) for cost in (0.0, 3.0, 1e300))
    assert free.costs == (0, 0, 0)
    assert costly.costs[1] == int(3 * 9 / (8 / 2.0 ** (Y_BITS + MATRIX_BITS)) ** 2)
    assert absurd.costs[1] == 1000 * 9 * absurd.clip**2
    y = np.linspace(*BOUNDS, 9)
    difference = np.subtract(*(room._exact_scores(s, y, "error") * s.step for s in (costly, free)))
    np.testing.assert_allclose(difference, [0, 27, 0], atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-9, 1.0, 15.9, 16.0, 31.9, 100.0, 1e4, 2.0**20])
def test_one_lattice_for_all_is_as_fine_as_fits(size):
    """Large weights of one candidate make all coarser, and nothing else."""
    random = np.random.default_rng(0)
    small = in_folds(lambda *shape: 0.1 * random.normal(size=shape))
    large = in_folds(lambda *shape: np.full(shape, size))
    scores = some_scores(residuals=[small, large], means=[1.0] * 2, costs=[0.0] * 2)
    scores.check()
    bits = scores.matrix_bits
    assert bits == MATRIX_BITS if size <= 16.0 else bits < MATRIX_BITS
    for matrix, R in zip(scores.matrices, (small, large), strict=True):
        assert not matrix.flags.writeable
        assert np.abs(matrix.astype(np.int64)).sum(axis=1).max() << Y_BITS < 2**53
        np.testing.assert_allclose(matrix, np.ldexp(R, bits), atol=1.0)


def test_weights_beyond_reason_are_refused():
    with pytest.raises(ArgumentError, match="larger noise variance") as caught:
        some_scores(residuals=[np.full((9, 9), 2.0**30)], means=[1.0], costs=[0.0])
    assert caught.value.name == "candidates"


# Checks


def each(function):
    """The same of every candidate's matrix, or offset."""
    return lambda several: tuple(map(function, several))


BROKEN = {
    "further than the declared": [
        lambda s: {"sensitivity": s.sensitivity - 2 - s.sensitivity // 10**8},
        lambda s: {"sensitivity": 0},
        lambda s: {"clip": s.clip + s.clip // 100},
        lambda s: {"statistic": s.statistic.with_bits(20)},
        lambda s: {"shift": s.shift - 1},
        lambda s: {"loss": "absolute", "shift": 0, "sensitivity": 3},
        lambda s: {"matrices": each(lambda c: c * 0 + (2**31 - 1))(s.matrices)},
        lambda s: {"matrices": each(lambda c: c * 2)(s.matrices)},
    ],
    "epsilon": [lambda s: {"epsilon": 0.0}, lambda s: {"epsilon": math.nan}],
    "lattice": [
        lambda s: {"clip": 2**CLIP_BITS},
        lambda s: {"clip": 0},
        lambda s: {"statistic": s.statistic.with_bits(40)},
    ],
    "overflow": [
        lambda s: {"shift": s.shift - 30},
        lambda s: {"costs": (-1, 0, 0)},
        lambda s: {"costs": (1 << 200, 0, 0)},
    ],
    "candidates do not match": [lambda s: {"costs": (0, 0)}, lambda s: {"matrices": ()}],
    "loss is not": [lambda s: {"loss": "log"}],
    "same tests of the same rows": [
        lambda s: {"matrices": (*s.matrices[:2], s.matrices[2][:2])},
        lambda s: {"matrices": (*s.matrices[:2], s.matrices[2][:, :5])},
    ],
    "matrix is too large": [lambda s: {"matrices": each(lambda c: c.astype(np.int64))(s.matrices)}],
    "offset is too large": [lambda s: {"offsets": each(lambda c: c + 2**61)(s.offsets)}],
    "offset does not match": [lambda s: {"offsets": each(lambda c: c[:1])(s.offsets)}],
}


@pytest.mark.parametrize(
    ("message", "change"), [(message, change) for message, several in BROKEN.items() for change in several]
)
def test_what_would_break_the_promise_is_refused(message, change):
    scores = some_scores()
    scores.check()
    with pytest.raises(AssertionError, match=message):
        replace(scores, **change(scores)).check()
