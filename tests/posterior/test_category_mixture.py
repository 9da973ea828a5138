"""Categories in the mixture: what is learned of them, and which points stand for them."""

import numpy as np
import pytest
from scipy.special import logsumexp

from cloakgp import Hyperprior
from cloakgp.posterior import support as module
from cloakgp.posterior.clipping import Direct
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.states import Reading
from cloakgp.posterior.support import Support, support_points

x = np.tile(np.linspace(0, 1, 12), 4)
c = np.repeat([0.0, 1.0, 2.0, 3.0], 12)
X = np.column_stack([x, c])
EFFECT = np.array([-3.0, 0.0, 1.0, 2.0])
TRUTHS = {
    "numbers": 3 * np.sin(6 * x),
    "column 2": EFFECT[c.astype(int)],
    "together": np.array([3, -3, 3, -3])[c.astype(int)] * np.sin(6 * x + c),
}
LAW = Direct((-10.0, 10.0), 0.0)
UNSEEN = np.array([[0.5, 9.0], [0.5, 0.0]])


def fitted(truth, X_star=UNSEEN, inducing=None, X=X):
    """After a reading of every outcome, with little noise."""
    return fit(truth, X_star, inducing, X)[1]


def fit(truth, X_star=UNSEEN, inducing=None, X=X):
    prior = Hyperprior(categories=(1,))
    points = None if inducing is None else support_points(X, inducing, (1,))
    mixture = Mixture(prior, X, np.ones(len(X)), X_star, LAW, points)
    value = noisy(truth)
    state = mixture.fit([[Reading(np.eye(len(X)), np.ones(len(X)), value, 0.01 * np.eye(len(X)))]])
    return mixture, state


def noisy(truth):
    return truth + np.random.default_rng(3).normal(0, 0.3, len(truth))


@pytest.mark.parametrize("part", TRUTHS)
def test_the_part_that_varies_has_the_largest_share(part):
    state = fitted(TRUTHS[part])
    shares = state.weights @ np.array([one.shares for one in state.settings])
    assert state.settings[0].parts()[int(np.argmax(shares))] == part
    assert shares.max() > 0.5


def test_the_mixture_is_bayes_with_categories_too():
    """Whatever the noise, with numbers and levels row by row: as in test_mixture.py."""
    mixture, state = fit(TRUTHS["column 2"])
    value, prior = noisy(TRUTHS["column 2"]), Hyperprior(categories=(1,))
    logs = np.linspace(*np.log(prior.noise), 401)
    some = [*range(0, len(state.settings), 9)]
    assert len(some) > 3
    found = []
    for i in some:
        one = state.settings[i]
        values, vectors = np.linalg.eigh(np.asarray(one.kernel(X)) + 0.01 * np.eye(len(X)))
        D = values[:, None] + (20 * np.exp(logs)) ** 2
        density = -((vectors.T @ value)[:, None] ** 2 / D + np.log(D)).sum(axis=0) / 2
        signal = np.log(one.signal) / 2 - np.log(20)
        density += 0.3 * (signal + logs) - ((signal - logs) / 2) ** 2 / 2
        longer = max(np.log(one.lengthscale[0] / prior.spans(X)[0]), 0.0)
        found.append(logsumexp(density) - longer)
    weights = np.log(state.weights) - mixture.proposals.log_weights(mixture.hypotheses)[: len(state.weights)]
    np.testing.assert_allclose(weights[some] - weights[0], np.array(found) - found[0], atol=0.01)


def test_a_level_not_seen_is_predicted_from_the_others_with_its_uncertainty():
    state = fitted(TRUTHS["column 2"])
    mean, variance = state.at_test_points
    assert abs(mean[0] - EFFECT.mean()) < 1.5
    assert abs(mean[1] - EFFECT[0]) < 0.5
    assert variance[0] > 20 * variance[1]
    assert variance[0] ** 0.5 > EFFECT.std() / 2


def test_levels_alone():
    prior = Hyperprior(categories=(0,))
    levels = np.arange(4.0)[:, None]
    mixture = Mixture(prior, levels, np.full(4, 12.0), np.array([[0.0], [9.0]]), LAW)
    sums = 12 * EFFECT
    state = mixture.fit([[Reading(np.eye(4), np.ones(4), sums, np.eye(4))]])
    mean, variance = state.at_test_points
    assert abs(mean[0] - EFFECT[0]) < 0.6  # of 3, from twelve rows
    assert abs(mean[1] - EFFECT.mean()) < 1.5
    assert variance[1] > 5 * variance[0]
    assert state.settings[0].shares == state.settings[0].lengthscale == ()


def test_every_level_has_a_support_point_however_few_rows_it_has():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=500), rng.integers(0, 5, 500) * 0.1])
    rows[7] = [0.0, 99.0]  # a level of one row
    found = support_points(rows, 20, (1,))
    assert len(found) <= 25
    assert set(found[:, 1]) == set(rows[:, 1])
    assert [0.0, 99.0] in found.tolist()


def test_if_there_are_more_combinations_than_points_each_level_has_one(monkeypatch):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 40, 900), rng.integers(0, 40, 900), rng.normal(size=900)])
    found = support_points(rows, 60, (0, 1))
    assert 60 <= len(found) <= 80
    for column in (0, 1):
        assert set(found[:, column]) == set(rows[:, column])
    monkeypatch.setattr(module, "MOST_EXACT", 30)  # but no more than can be handled
    assert len(support_points(rows, 20, (0, 1))) == 30


def test_few_support_points_come_close_to_all():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(size=150), rng.integers(0, 3, 150)])
    rows[0] = [0.5, 8.0]  # alone in its level
    truth = 3 * np.sin(4 * rows[:, 0]) + rows[:, 1]
    at = np.array([[0.5, 0.0], [0.2, 2.0], [0.5, 8.0], [0.5, 7.0]])
    exact, few = fitted(truth, at, X=rows), fitted(truth, at, 45, rows)
    np.testing.assert_allclose(few.at_test_points[0], exact.at_test_points[0], atol=0.35)
    assert abs(few.at_test_points[0][2] - truth[0]) < 1.0  # its one row is not lost among the others
    assert few.at_test_points[1][3] > 5 * few.at_test_points[1][0]


def test_seasons_are_interpolated_beside_categories():
    prior = Hyperprior(categories=(1,), seasons=((0, 0.5),))
    mixture = Mixture(prior, X, np.ones(len(X)), UNSEEN, LAW, support_points(X, 16, (1,)))
    assert np.isfinite(mixture.support.P).all()


def test_interpolation_between_levels_has_no_levels_in_between():
    setting = Hyperprior(categories=(1,)).settings(np.ones(1), 1.0)[0]
    P = Support(X, X[:1], setting, setting, support_points(X, 16, (1,))).P
    assert P is not None
    assert np.isfinite(P).all()
    assert np.abs(P).max() < 3
