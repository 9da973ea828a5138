"""A selection for people: what the plan, its folds and its models make of whose rows they are.

That no person moves a score further than declared is in ``test_selection_sensitivity.py``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold
from test_selection_sensitivity import LOSSES, tight

import cloakgp
from cloakgp.data.people import as_people
from cloakgp.kernels import EQ
from cloakgp.measure.cross_validation import as_folds


@pytest.mark.parametrize("loss", LOSSES)
def test_people_with_one_row_each_are_rows(loss):
    scores = tight(loss)
    people = as_people([str(row) for row in range(scores.n_rows)], scores.n_rows)
    assert tight(loss, people=people).sensitivity == scores.sensitivity


X = np.linspace(0.0, 1.0, 24)
IDS = np.repeat(["ada", "ben", "cy", "dee", "eve", "flo", "gus", "hal"], 3)
GPS = cloakgp.candidates(kernel=EQ, lengthscale=[0.1, 0.5], noise=[0.01], bounds=(0.0, 1.0))


def test_a_selection_for_people():
    rows = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=4)
    plan = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=4, people=IDS)
    assert (plan.unit, plan.certificate.unit) == ("one person", "one person")
    assert "every y of one person's rows" in plan.certificate.neighbours
    assert plan.partition == as_people(IDS, 24).digest
    assert (rows.unit, rows.partition) == ("one row", "")
    assert rows.digest != plan.digest
    assert rows.question_digest != plan.question_digest
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
    with pytest.raises(ValueError, match="folds must be a whole number from 2 to 8"):
        as_folds(9, X[:, None], people)


def test_models_count_a_person_once_unless_told_otherwise():
    """As the release does that follows: three rows of one person have three times the noise variance."""
    folds = as_folds(4, X[:, None], as_people(IDS, 24))
    more = [replace(gp, noise=3 * gp.noise) for gp in GPS]
    for within, models in ((1.0, more), (0.0, GPS)):
        by_hand = cloakgp.plan_selection(models, X, epsilon=1.0, folds=folds)
        plan = cloakgp.plan_selection(GPS, X, epsilon=1.0, folds=folds, people=IDS, within=within)
        np.testing.assert_array_equal(plan.scores.matrices, by_hand.scores.matrices)
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
