"""All outcomes of one person move no score further than declared: lemma 11 in ``docs/proofs.md``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_helpers import fails
from sklearn.model_selection import GroupKFold
from test_selection_sensitivity import LOSSES, designs, exact, in_bounds, log_probabilities, tight

import cloakgp
from cloakgp.kernels import EQ
from cloakgp.measurements.folds import Fold, as_folds
from cloakgp.measurements.scores import Scores, make_scores
from cloakgp.private import room
from cloakgp.rows.people import as_people


def largest_move(scores, shares, others):
    """In units of the declared sensitivity."""
    pairs = zip(exact(scores, shares), exact(scores, others), strict=True)
    return max(abs(a - b) for a, b in pairs) / scores.sensitivity


def check_neighbours(scores, shares, others):
    assert largest_move(scores, shares, others) <= 1, "a score moves further than its sensitivity"


@settings(max_examples=300)
@given(st.data(), designs(people=True))
def test_no_person_moves_a_score_further_than_declared(data, scores):
    """Nor is the choice less private than promised, by the probabilities themselves."""
    shares = np.array(data.draw(in_bounds(scores)))
    mine = scores.people.labels == data.draw(st.integers(0, scores.people.n_people - 1))
    other = data.draw(st.sampled_from([0.0, 1.0, 0.5])) if data.draw(st.booleans()) else 1 - shares
    others = np.where(mine, other, shares)
    check_neighbours(scores, shares, others)
    moved = np.abs(log_probabilities(scores, shares) - log_probabilities(scores, others))
    assert moved.max() <= scores.epsilon * (1 + 1e-9)


def tight_for_people(loss="squared", weight=-0.15, clip=0.5, n_tested=5):
    """Rows 0 and 1 are one person's, who moves all others together, and is tested in another fold."""
    rows = np.arange(2, n_tested + 2)
    return make_scores(
        weights=[[np.full((n_tested, 2), weight), np.zeros((2, n_tested))]],
        folds=(Fold(np.array([0, 1]), rows), Fold(rows, np.array([0, 1]))),
        means=[0.0],
        costs=[0.0],
        bounds=(0.0, 1.0),
        n_rows=n_tested + 2,
        loss=loss,
        clip=clip,
        epsilon=1.0,
        people=as_people([9, 9, *range(n_tested)], n_tested + 2),
    )


def worst_for(scores, weight=-0.15, clip=0.5):
    """Each residual ends where it is clipped."""
    shares = np.full(scores.n_rows, clip + 2 * weight)
    shares[:2] = 0.0
    others = shares.copy()
    others[:2] = 1.0
    return shares, others


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("weight", "clip"), [(-0.15, 0.5), (-0.001, 0.25), (-0.25, 1.0)])
def test_the_sensitivity_is_reached_by_a_person(loss, weight, clip):
    scores = tight_for_people(loss, weight, clip)
    pair = worst_for(scores, weight, clip)
    check_neighbours(scores, *pair)
    assert largest_move(scores, *pair) > 1 - 1e-4


_right_effect = Scores._largest_effect


def _of_one_row(scores, matrices):
    return _right_effect(replace(scores, people=None), matrices)


def _where_they_train(scores, matrices):
    """The person's own tests forgotten."""
    return _right_effect(replace(scores, folds=scores.folds[:1]), matrices[:1])


@pytest.mark.parametrize("planted", [_of_one_row, _where_they_train])
def test_planted_sensitivities_are_caught(monkeypatch, planted):
    check_neighbours(tight_for_people(), *worst_for(tight_for_people()))
    monkeypatch.setattr(Scores, "_largest_effect", planted)
    scores = tight_for_people()
    assert fails(check_neighbours, scores, *worst_for(scores))


class Unreadable:
    def __array__(self, *_, **__):
        pytest.fail("y was read")


def test_the_private_room_works_it_out_again_before_y_is_looked_at():
    right = tight_for_people()
    of_a_row = tight_for_people().sensitivity * 3 // 5
    wrong = {
        "further than the declared sensitivity": replace(right, sensitivity=of_a_row),
        "people are not those": replace(right, people=as_people([1, 1], 2)),
    }
    for why, planted in wrong.items():
        with pytest.raises(AssertionError, match=why):
            room.choose(planted, Unreadable(), "error")


@pytest.mark.parametrize("loss", LOSSES)
def test_people_with_one_row_each_are_rows(loss):
    scores = tight(loss)
    people = as_people([str(row) for row in range(scores.n_rows)], scores.n_rows)
    assert tight(loss, people=people).sensitivity == scores.sensitivity


X = np.linspace(0.0, 1.0, 24)
IDS = np.repeat(["ada", "ben", "cy", "dee", "eve", "flo", "gus", "hal"], 3)
GPS = cloakgp.grid(kernel=EQ, lengthscale=[0.1, 0.5], noise=[0.01], bounds=(0.0, 1.0))


def test_a_selection_for_people():
    rows = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=4)
    plan = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=4, people=IDS)
    assert (plan.unit, plan.certificate.unit) == ("one person", "one person")
    assert "every y of one person's rows" in plan.certificate.neighbours
    assert plan.partition == as_people(IDS, 24).digest
    assert (rows.unit, rows.partition) == ("one row", "")
    assert rows.digest != plan.digest
    assert plan.select(np.sin(X)).certificate.unit == "one person"
    assert plan.sensitivity > rows.sensitivity


def test_folds_keep_a_persons_rows_together():
    people = as_people(IDS, 24)
    for folds in (4, GroupKFold(4)):
        pairs = as_folds(folds, X[:, None], people)
        assert len(pairs) == 4
        assert np.sort(np.concatenate([test for _, test in pairs])).tolist() == list(range(24))
        for train, test in pairs:
            assert not set(IDS[train]) & set(IDS[test])
    given = [(np.arange(12), np.arange(12, 24))]
    assert [list(map(list, pair)) for pair in as_folds(given, X[:, None], people)] == [
        [list(range(12)), list(range(12, 24))]
    ]
    alone = as_folds(4, X[:, None], as_people(np.arange(24), 24))
    for one, other in zip(alone, as_folds(4, X[:, None]), strict=True):
        assert (one.train == np.sort(other.train)).all()
    with pytest.raises(ValueError, match="folds must be from 2 to the number of people, 8; got 9"):
        as_folds(9, X[:, None], people)


def test_models_count_a_person_once_unless_told_otherwise():
    """As the release does that follows: three rows of one person have three times the noise variance."""
    folds = as_folds(4, X[:, None], as_people(IDS, 24))
    more = [replace(gp, noise=3 * gp.noise) for gp in GPS]
    for within, models in ((1.0, more), (0.0, GPS)):
        by_hand = cloakgp.plan_selection(models, X, epsilon=1.0, folds=folds)
        plan = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=folds, people=IDS, within=within)
        for one, other in zip(plan.scores.matrices, by_hand.scores.matrices, strict=True):
            assert all((a == b).all() for a, b in zip(one, other, strict=True))
        assert plan.candidates == tuple(GPS)


def test_the_noise_of_the_release_to_come_is_that_for_people():
    to_come = ([0.5], 1.0, 0.01, "mse")
    rows, plan = (
        cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=4, plan_for=to_come, **more)
        for more in ({}, {"people": IDS})
    )
    assert all(a > b for a, b in zip(plan.scores.costs, rows.scores.costs, strict=True))
    releases = [gp.plan(X, X_star=[0.5], epsilon=1.0, delta=0.01, people=IDS) for gp in GPS]
    expected = [release.noise_std[0] ** 2 * 24 / plan.scores.step for release in releases]
    assert [cost / 2**plan.scores.shift for cost in plan.scores.costs] == pytest.approx(expected, rel=1e-6)
