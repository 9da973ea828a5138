"""Bins that outcomes fall in as often as they should, and what a histogram says of other outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

from cloakgp import GP
from cloakgp.kernels import EQ, Constant
from cloakgp.measure.statistics import BIN_ENDS, PLACES, WHOLE
from cloakgp.model.hyperprior import Known
from cloakgp.posterior.clipping import Direct, folded
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.shape import BELIEVED, NOMINAL, Scattered, Shape, _levels, of_training_outcomes
from cloakgp.posterior.states import Reading

LAWS = Scattered(
    np.array([0.0, 1.0, -2.0]), np.array([[1.0, 2.0, 0.5], [3.0, 2.5, 0.6]]), np.array([0.7, 0.3])
)


def shape(counts: Any, rows: float, noise: float = 1e-6, clustered: float = 1.0) -> Shape:
    return Shape(np.asarray(counts, dtype=float), noise, rows, clustered)


def masses_of(law: Any) -> Any:
    """Of outcomes with this law, where a standard normal one is expected."""
    return np.diff([0.0, *law.cdf(stats.norm.ppf(BIN_ENDS)), 1.0])


def test_edges_are_quantiles_and_atoms_what_the_bounds_cut_off():
    edges, atoms = LAWS.edges(-3.0, 4.0)
    places = edges / PLACES * 7.0 - 3.0
    for number, end in enumerate(BIN_ENDS):
        below = LAWS.below(places[:, number])
        inside = (edges[:, number] > 0) & (edges[:, number] < PLACES)
        np.testing.assert_allclose(below[inside], end, atol=1e-6)
        assert (LAWS.below(np.full(3, -3.0))[edges[:, number] == 0] >= end - 1e-6).all()
    assert (edges == 0).any()
    assert (edges == PLACES).any()
    np.testing.assert_allclose(atoms[:, 0] / WHOLE, LAWS.below(np.full(3, -3.0)), atol=1e-8)
    np.testing.assert_allclose(atoms[:, 1] / WHOLE, 1 - LAWS.below(np.full(3, 4.0)), atol=1e-8)


def test_the_law_of_an_outcome_counts_what_the_answers_know_of_its_own_scatter():
    """Against the joint Gaussian law of f, of every outcome and of noisy sums."""
    rng = np.random.default_rng(3)
    X, counts = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([2.0, 1.0, 3.0, 1.0])
    gp = GP(EQ(1.5, variance=2.0) + Constant(0.5), 0.8, (-5.0, 5.0))
    mixture = Mixture(Known(gp), X, counts, X[:1], Direct((-5.0, 5.0), 0.0))
    rows, slope = rng.normal(size=(3, 4)), np.array([1.0, 0.9, 0.8, 1.0])
    told = Reading(rows, slope, rng.normal(size=3), 0.3 * np.eye(3))
    found = of_training_outcomes(mixture.fit([[told]]), [told])
    who = np.repeat(np.arange(4), counts.astype(int))
    K = np.asarray(gp.kernel(X[who])) + 0.8 * np.eye(len(who))
    B = (rows * slope)[:, who]
    D = B @ K @ B.T + told.covariance
    mean, covariance = K @ B.T @ np.linalg.solve(D, told.value), K - K @ B.T @ np.linalg.solve(D, B @ K)
    first = [0, 2, 3, 6]
    np.testing.assert_allclose(found.mean, mean[first], atol=1e-6)
    np.testing.assert_allclose(found.stds[0], np.sqrt(np.diag(covariance)[first]), atol=1e-6)


def test_a_few_noise_levels_keep_the_mean_and_the_weight():
    rng = np.random.default_rng(0)
    noise, weights = rng.uniform(1, 4, 60), rng.dirichlet(np.ones(60))
    levels, held = _levels(noise, weights)
    assert len(levels) <= 8
    assert held.sum() == pytest.approx(1)
    assert held @ levels == pytest.approx(weights @ noise)


def test_what_is_believed_beforehand_is_students_law_as_distances_show_it():
    """With the std that a normal law has whose distances, each cut at 2.5 of these, have the same mean."""
    law = stats.t(5)

    def apart(std: float) -> float:
        return quad(lambda x: 2 * law.sf(x), 0, 2.5 * std)[0] - float(folded(np.array(std), 2.5 * std))

    std = brentq(apart, 0.5, 3)
    np.testing.assert_allclose(BELIEVED, masses_of(stats.t(5, scale=1 / std)), atol=6e-5)
    assert BELIEVED.sum() == pytest.approx(1)


@pytest.mark.parametrize("law", [stats.norm(0.2, 1.5), stats.norm(0, 0.6), stats.gumbel_r(-0.5, 0.8)])
def test_many_rows_say_where_outcomes_fall(law):
    """Between and beyond the ends: a normal law's quantiles are those of a straight line of scores."""
    found = shape(1e6 * masses_of(law), 1e6)
    np.testing.assert_allclose(found.masses, masses_of(law), atol=2e-3)
    for p in (0.001, 0.025, 0.3, 0.975, 0.999):
        right = stats.norm.cdf(law.ppf(p))
        if isinstance(law.dist, type(stats.norm)) and found.masses.min() > 1e-3:
            assert stats.norm.ppf(found.quantile(p)) == pytest.approx(law.ppf(p), abs=0.08)
        elif 0.005 < right < 0.995:
            assert found.quantile(p) == pytest.approx(right, abs=0.02)


def test_noise_leaves_what_was_believed():
    rng = np.random.default_rng(1)
    found = shape(1000 * NOMINAL + 1e4 * rng.normal(size=10), 1000, 1e8)
    np.testing.assert_allclose(found.masses, BELIEVED, atol=0.01)


def test_quantiles_grow_whatever_came_out():
    rng = np.random.default_rng(2)
    for scale in (1.0, 30.0, 1000.0):
        found = shape(500 * NOMINAL + scale * rng.normal(size=10), 500, scale**2)
        assert found.masses.min() > 0
        at = [found.quantile(p) for p in np.linspace(0.001, 0.999, 201)]
        assert (np.diff(at) > 0).all()
        assert 0 < at[0] < at[-1] < 1


def test_rows_without_an_outcome_do_not_count():
    some = shape(700 * masses_of(stats.norm(0, 1.4)), 1000, 25.0)
    every = shape(1000 * masses_of(stats.norm(0, 1.4)), 1000, 25.0)
    np.testing.assert_allclose(some.masses, every.masses, atol=0.02)
    assert some.surprise(0.0, 0.0)[0] < 0.01
    assert shape(700 * NOMINAL, 1000, 25.0).surprise(0.0, 0.0)[0] > 0.5


def drawn(law: Any, n: int = 1, rows: int = 2000, noise: float = 20.0) -> list[Shape]:
    rng = np.random.default_rng(5)
    return [
        shape(rng.multinomial(rows, masses_of(law)) + noise * rng.normal(size=10), rows, noise**2)
        for _ in range(n)
    ]


def test_a_right_model_hardly_surprises():
    """Of 400 p-values 4 are expected below 0.01; more than 14 come by chance in 1 of 10^4 cases."""
    p = np.array([one.surprise(0.0, 0.0)[0] for one in drawn(stats.norm(), 400)])
    assert (p < 0.01).sum() <= 14
    assert 0.35 < (p < 0.5).mean() < 0.65


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (stats.norm(0, 1.6), "More outcomes lie far from"),
        (stats.norm(0, 0.5), "Fewer outcomes lie far from"),
        (stats.expon(-1), "outcomes lie"),
        (stats.norm(0.4, 1), "outcomes lie"),
        (stats.t(2, scale=0.6), "outcomes lie"),
    ],
)
def test_other_laws_surprise(law, words):
    p, said = drawn(law)[0].surprise(0.0, 0.0)
    assert p < 1e-3
    assert words in said
    assert len(f"{said}: for new outcomes, read intervals, not standard deviations.".split()) <= 20


def test_what_moves_all_outcomes_together_does_not_surprise():
    """A level, or scatter, that is off by no more than the model itself thinks possible."""
    for law, level, noise in ((stats.norm(0.3, 1), 0.3**2, 0.0), (stats.norm(0, 1.4), 0.0, 0.4**2)):
        one = drawn(law)[0]
        assert one.surprise(0.0, 0.0)[0] < 1e-3
        assert one.surprise(level, noise)[0] > 0.01
