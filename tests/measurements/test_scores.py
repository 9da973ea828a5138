"""Scores in integers: exact, as fine as they can be, and checked."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.measurements.folds import Fold, as_folds
from cloakgp.measurements.scores import (
    CLIP_BITS,
    MATRIX_BITS,
    Y_BITS,
    Scores,
    coarsen,
    make_scores,
    offset_of,
    quantise,
)
from cloakgp.private import room

BOUNDS = (-2.0, 6.0)


def some_scores(seed=0, size=0.3, n_rows=9, n_candidates=3, **changes):
    random = np.random.default_rng(seed)
    pairs = as_folds(3, np.empty((n_rows, 1)))
    arguments = {
        "weights": [
            [size * random.normal(size=(len(fold.test), len(fold.train))) for fold in pairs]
            for _ in range(n_candidates)
        ],
        "folds": pairs,
        "means": [1.0] * n_candidates,
        "costs": [0.0] * n_candidates,
        "bounds": BOUNDS,
        "n_rows": n_rows,
        "loss": "squared",
        "clip": 2.0,
        "epsilon": 1.0,
    }
    return make_scores(**{**arguments, **changes})


def by_hand(scores, y_int):
    """The scores in Python integers, straight from their definition."""
    result = []
    for matrices, offsets, cost in zip(scores.matrices, scores.offsets, scores.costs, strict=True):
        total = cost
        for matrix, offset, (train, test) in zip(matrices, offsets, scores.folds, strict=True):
            for row, shift, i in zip(matrix.tolist(), offset.tolist(), test.tolist(), strict=True):
                predicted = sum(c * y_int[j] for c, j in zip(row, train.tolist(), strict=True))
                error = min(abs(2**scores.matrix_bits * y_int[i] - predicted - shift), scores.clip)
                total += error**2 if scores.loss == "squared" else error
        result.append(total // 2**scores.shift)
    return result


def effect_by_hand(scores):
    """The sensitivity before the shift, in exact integers."""
    T, largest = scores.clip, 0

    def change(s):
        t = min(s, T)
        return t * (2 * T - t) if scores.loss == "squared" else t

    for matrices in scores.matrices:
        for j in range(scores.n_rows):
            effect = 0
            for matrix, (train, test) in zip(matrices, scores.folds, strict=True):
                if j in test:
                    effect += change(2 ** (scores.matrix_bits + scores.y_bits))
                elif j in train:
                    column = matrix[:, train.tolist().index(j)].tolist()
                    effect += sum(change(abs(c) << scores.y_bits) for c in column)
            largest = max(largest, effect)
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
    y_int = room.to_integers(y, scores.lattice).tolist()
    found = room._exact_scores(scores, y, "error")
    assert found.dtype == np.int64
    assert found.tolist() == by_hand(scores, y_int)
    assert found.max() < 2**53


@given(st.lists(st.one_of(st.sampled_from([0, 2**CLIP_BITS - 1]), st.integers(0, 2**CLIP_BITS - 1))))
def test_sums_of_squares_do_not_wrap(values):
    found = room._sum_of_squares(np.array(values, dtype=np.int64))
    assert found == sum(v**2 for v in values)


def test_sums_of_squares_at_the_limit():
    values = np.full(2**13 - 1, 2**CLIP_BITS - 1)
    assert room._sum_of_squares(values) == (2**13 - 1) * (2**CLIP_BITS - 1) ** 2


def test_scores_are_the_cross_validated_loss():
    """In y's unit, they are what a float computation finds."""
    random = np.random.default_rng(1)
    C = [[0.3 * random.normal(size=(3, 6)) for _ in range(3)]]
    y = random.uniform(*BOUNDS, size=9)
    for loss in ("squared", "absolute"):
        scores = some_scores(weights=C, means=[0.4], costs=[0.7], loss=loss, clip=2.0)
        errors = [
            (y[test] - 0.4) - c @ (y[train] - 0.4)
            for c, (train, test) in zip(C[0], scores.folds, strict=True)
        ]
        size = np.minimum(np.abs(np.concatenate(errors)), 2.0)
        expected = 9 * 0.7 + np.sum(size**2 if loss == "squared" else size)
        (found,) = room._exact_scores(scores, y, "error")
        assert found * scores.step == pytest.approx(expected, rel=1e-5)


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


def test_rounding_costs_next_to_nothing():
    scores = some_scores()
    assert scores.matrix_bits == MATRIX_BITS
    assert 2**scores.shift < 1e-6 * effect_by_hand(scores)


def test_a_clip_beyond_every_residual_costs_no_more_than_one_at_it():
    """With weights 0 no residual passes the width of the bounds."""
    zero = [[np.zeros((3, 6))] * 3]
    huge, wide = (some_scores(weights=zero, means=[-2.0], costs=[0.0], clip=c) for c in (70.0, 8.0))
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


# Quantising


def test_one_lattice_for_all():
    """Large weights of one candidate make all coarser, and nothing else."""
    random = np.random.default_rng(0)
    small = [0.1 * random.normal(size=(3, 6)) for _ in range(3)]
    large = [1e4 * random.normal(size=(3, 6)) for _ in range(3)]
    scores = some_scores(weights=[small, large], means=[1.0] * 2, costs=[0.0] * 2)
    scores.check()
    assert scores.matrix_bits < MATRIX_BITS
    for matrix, C in zip(scores.matrices[0] + scores.matrices[1], small + large, strict=True):
        assert matrix.dtype == np.int32
        assert not matrix.flags.writeable
        np.testing.assert_allclose(matrix, np.ldexp(C, scores.matrix_bits), atol=1.0)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-9, 1.0, 15.9, 16.0, 31.9, 100.0, 2.0**20])
def test_quantised_weights_fit(size):
    C = np.full((2, 7), size)
    matrix, bits = quantise(C)
    assert bits <= MATRIX_BITS
    assert np.abs(matrix.astype(np.int64)).sum(axis=1).max() << Y_BITS < 2**53
    np.testing.assert_allclose(matrix, np.ldexp(C, bits), atol=0.5)


def test_weights_beyond_reason_are_refused():
    with pytest.raises(ValueError, match="larger noise variance"):
        quantise(np.full((1, 1), 2.0**30))


def test_coarsening_rounds():
    np.testing.assert_array_equal(coarsen(np.array([5, -7, 8], dtype=np.int32), 2), [1, -2, 2])


def test_offsets():
    matrix = np.array([[2**25, 2**24], [0, 0]], dtype=np.int32)
    np.testing.assert_array_equal(offset_of(matrix, 0.5, 26), [0.5 * 0.25 * 2**44, 0.5 * 2**44])
    assert offset_of(matrix, 1e60, 26).tolist() == [2**60, 2**60]


# Checks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {"sensitivity": s.sensitivity - 2 - s.sensitivity // 10**8}, "further than the declared"),
        (lambda s: {"sensitivity": 0}, "further than the declared"),
        (lambda s: {"epsilon": 0.0}, "epsilon"),
        (lambda s: {"epsilon": math.nan}, "epsilon"),
        (lambda s: {"clip": 2**CLIP_BITS}, "lattice"),
        (lambda s: {"clip": 0}, "lattice"),
        (lambda s: {"clip": s.clip + s.clip // 100}, "further than the declared"),
        (lambda s: {"y_bits": 40}, "lattice"),
        (lambda s: {"y_bits": 20}, "further than the declared"),
        (lambda s: {"shift": s.shift - 1}, "further than the declared"),
        (lambda s: {"shift": s.shift - 30}, "overflow"),
        (lambda s: {"costs": (-1, 0, 0)}, "overflow"),
        (lambda s: {"costs": (1 << 200, 0, 0)}, "overflow"),
        (lambda s: {"costs": (0, 0)}, "candidates do not match"),
        (lambda s: {"matrices": ()}, "candidates do not match"),
        (lambda s: {"loss": "absolute", "shift": 0, "sensitivity": 3}, "further than the declared"),
        (lambda s: {"loss": "log"}, "loss"),
        (
            lambda s: {"matrices": (*tuple(m[::-1] for m in s.matrices)[:2], s.matrices[2][:2])},
            "match its fold",
        ),
        (
            lambda s: {"matrices": tuple(tuple(c.astype(np.int64) for c in m) for m in s.matrices)},
            "too large",
        ),
        (
            lambda s: {"matrices": tuple(tuple(c * 0 + (2**31 - 1) for c in m) for m in s.matrices)},
            "further than the declared",
        ),
        (
            lambda s: {"matrices": tuple(tuple(c * 2 for c in m) for m in s.matrices)},
            "further than the declared",
        ),
        (lambda s: {"offsets": tuple(tuple(c + 2**61 for c in o) for o in s.offsets)}, "offset is too large"),
        (lambda s: {"offsets": tuple(tuple(c[:1] for c in o) for o in s.offsets)}, "offset does not match"),
        (lambda s: {"folds": tuple(Fold(f.train, f.train[:3]) for f in s.folds)}, "uses a row twice"),
        (lambda s: {"folds": tuple(Fold(f.train + 9, f.test) for f in s.folds)}, "not there"),
        (lambda s: {"n_rows": 5}, "not there"),
    ],
)
def test_what_would_break_the_promise_is_refused(change, message):
    scores = some_scores()
    scores.check()
    with pytest.raises(AssertionError, match=message):
        replace(scores, **change(scores)).check()


def test_too_many_tested_rows_are_refused():
    rows = np.arange(2**13 + 1)
    scores = replace(some_scores(), n_rows=len(rows), folds=(Fold(rows[:1], rows[1:]),))
    with pytest.raises(AssertionError, match="tests too many rows"):
        scores.check()


def test_scores_are_frozen():
    with pytest.raises(AttributeError):
        some_scores().sensitivity = 1
    assert isinstance(some_scores(), Scores)
