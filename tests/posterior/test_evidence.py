"""Evidence whatever the noise level: against an integral over very many levels, of all rows together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cloakgp import Hyperprior
from cloakgp.model.outcome import outcome_named
from cloakgp.posterior import evidence
from cloakgp.posterior.clipping import Direct, law_of
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.states import Reading, SpreadReading

BOUNDS, WIDTH = (-5.0, 5.0), 10.0
LAW = Direct(BOUNDS, 0.0)
X = np.linspace(0, 9, 24)[:, None]
COUNTS = np.tile([1.0, 4.0, 30.0], 8)
CENTRE = np.sin(X[:, 0])
LIMIT = 3.0
SPAN = (8.608695652173914 - 0.391304347826087) / 0.9  # of the middle nine tenths
PRIOR = Hyperprior(lengthscale=(0.05, 4.0), signal=(0.01, 0.4))


def mixture(prior: Hyperprior = PRIOR) -> Mixture:
    return Mixture(prior, X, COUNTS, X[:2], LAW)


def measured(std: float, numbers: int, noise: float) -> Reading:
    """Smooth sums of outcomes that scatter so much about a wave."""
    rng = np.random.default_rng(3)
    rows = np.cos(np.outer(np.arange(numbers), X[:, 0] / 3)) / COUNTS.sum()
    sums = COUNTS * CENTRE + std * np.sqrt(COUNTS) * rng.normal(size=len(X))
    return Reading(
        rows, np.ones(len(X)), rows @ sums + noise * rng.normal(size=numbers), noise**2 * np.eye(numbers)
    )


def textbook(setting: Any, one: Reading, spreads: list[SpreadReading]) -> tuple[float, float]:
    """Log of the integral of density times prior, but for a constant; the noise's mean. By brute force."""
    least, most = np.log(PRIOR.noise) + np.log(WIDTH)
    logs = np.linspace(least, most, 1601)
    G = one.rows * COUNTS
    K = np.asarray(setting.kernel(X))
    found = []
    for at in logs:
        s2 = np.exp(2 * at)
        D = G @ K @ G.T + s2 * (one.rows * COUNTS) @ one.rows.T + one.covariance
        density = multivariate_normal(np.zeros(len(D)), D).logpdf(one.value)
        if spreads:
            gain = np.linalg.solve(D, G @ K)
            mean, variance = gain.T @ one.value, np.diag(K) - np.einsum("ij,ij->j", gain, G @ K)
            r = np.sqrt(variance + s2 + (mean - CENTRE) ** 2)
            # E min(|r u|, T) over a standard normal u, as a sum over half of its law.
            u = np.linspace(0, 9, 301)
            normal = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
            distance = 2 * simpson(np.minimum(r[:, None] * u, LIMIT) * normal, x=u, axis=1)
            for spread in spreads:
                n = spread.counts
                own = 0.36 * (np.minimum(r, LIMIT) ** 2 @ n) / n.sum() ** 2
                density -= (spread.value - distance @ n / n.sum()) ** 2 / (spread.variance + own) / 2
                density -= np.log(spread.variance + own) / 2
        found.append(density)
    signal, noise = np.log(setting.signal) / 2 - np.log(WIDTH), logs - np.log(WIDTH)
    # The prior, as the hyperprior's docstring says it.
    longer = max(np.log(setting.lengthscale[0] / SPAN), 0.0)
    density = np.array(found) - longer + 0.3 * (signal + noise) - ((signal - noise) / 2) ** 2 / 2
    weights = np.exp(density - density.max())
    return float(logsumexp(density) - np.log(len(logs))), float(weights @ np.exp(2 * logs) / weights.sum())


CASES = {
    "sums alone, hardly any of the noise": (1.0, 4, 0.05, 0),
    "sums alone that know the noise": (1.0, 20, 1e-4, 0),
    "a distance": (0.3, 6, 0.02, 1),
    "three distances, little noise": (0.02, 12, 1e-4, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_noise_is_integrated_out_as_in_textbooks(name: str) -> None:
    std, numbers, noise, distances = CASES[name]
    one = measured(std, numbers, noise)
    value = float(np.minimum(np.abs(std * np.random.default_rng(5).normal(size=20_000)), LIMIT).mean())
    spreads = [SpreadReading(CENTRE, LIMIT, value, (0.02 * std) ** 2, COUNTS)] * distances
    made = mixture()
    score, found = made._evidence([[one]], spreads).of(made.hypotheses)
    some = np.argsort(-score)[:41:8]
    score, found = score[some], found.take(some)
    expected = [textbook(setting, one, spreads) for setting in found.settings]
    # Both leave out constants, which all hypotheses share.
    log_evidences, noises = np.array(expected).T
    difference = score - log_evidences
    np.testing.assert_allclose(difference, np.full(6, difference[0]), atol=0.02)
    np.testing.assert_allclose([one.noise for one in found.settings], noises, rtol=0.02)


def test_noise_that_is_known_is_not_integrated_over() -> None:
    prior = Hyperprior(noise=(0.05, 0.05))
    made, one = mixture(prior), measured(0.5, 6, 0.05)
    score, found = made._evidence([[one]], []).of(made.hypotheses)
    np.testing.assert_allclose([setting.noise for setting in found.settings], 0.25)
    G = one.rows * COUNTS
    for i in (0, 37, 99):
        setting = found.settings[i]
        D = G @ np.asarray(setting.kernel(X)) @ G.T + one.covariance + 0.25 * G @ one.rows.T
        prior_density = made._log_prior(found.points[i : i + 1], np.log([[0.5]]))[0, 0]
        expected = multivariate_normal(np.zeros(6), D).logpdf(one.value) + prior_density
        if i == 0:
            constant = score[0] - expected
        assert score[i] - expected == pytest.approx(constant, abs=1e-6)


def test_with_a_link_only_lengthscales_have_a_prior_that_is_not_even() -> None:
    made = Mixture(PRIOR, X, COUNTS, X[:2], law_of(outcome_named("count"), (0.0, 10.0), 0.0))
    points = made.hypotheses.points
    logs = np.zeros((len(points), 3))
    density = made._log_prior(points, logs)
    np.testing.assert_allclose(density[:, 0], -np.maximum(points[:, 0], 0.0))
    assert np.ptp(mixture()._log_prior(points, logs)[:, 0] - density[:, 0]) > 1


def test_looks_come_closer_until_levels_are_close_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one look only, a noise that is known to a per cent falls between levels."""
    one = measured(0.3, 6, 0.02)
    spread = SpreadReading(CENTRE, LIMIT, 0.3 * np.sqrt(2 / np.pi), 1e-6, 1e4 * COUNTS)
    made = mixture()
    score = made._evidence([[one]], [spread]).of(made.hypotheses)[0]
    monkeypatch.setattr(evidence, "_LEVELS", (3001,))
    dense = made._evidence([[one]], [spread]).of(made.hypotheses)[0]
    good = dense > dense.max() - 20
    np.testing.assert_allclose(score[good], dense[good], atol=0.02)
    monkeypatch.setattr(evidence, "_LEVELS", (33,))
    assert np.abs(made._evidence([[one]], [spread]).of(made.hypotheses)[0] - dense)[good].max() > 0.5
