"""The mixture given readings of several stages: against Gaussian densities row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cloakgp import GP, Hyperprior
from cloakgp.data.chunks import in_threads
from cloakgp.kernels import EQ, Constant
from cloakgp.model.hyperprior import Known
from cloakgp.posterior import evidence
from cloakgp.posterior.clipping import Direct
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.staging import Stage
from cloakgp.posterior.states import MANY, Reading, SpreadReading, State
from cloakgp.posterior.support import support_points

X = np.array([[0.0], [1.0], [2.5], [4.0], [7.0]])
COUNTS = np.array([2.0, 1.0, 3.0, 1.0, 2.0])
X_STAR = np.array([[0.5], [3.0], [9.0]])
BOUNDS = (-5.0, 5.0)
LAW = Direct(BOUNDS, 0.0)


def reading(stage: Stage, rows: Any, value: Any, noise: float) -> Reading:
    """What a stage measured, as a line through f."""
    n, clip = stage.state.counts, stage.clip
    shift = rows @ (n * (clip.centre - clip.slope * stage.state.mean))
    return Reading(rows, clip.slope, value - shift, noise * np.eye(len(rows)) + stage.extra(rows))


def two_stages(mixture: Mixture) -> list[Reading]:
    """One reading of the outcomes within the bounds, one within windows."""
    rng = np.random.default_rng(2)
    everything = np.full(len(X), BOUNDS[0]), np.full(len(X), BOUNDS[1])
    first = Stage(mixture.start(), everything, LAW, 1.0, np.ones(len(X_STAR)))
    one = reading(first, rng.normal(size=(3, len(X))), rng.normal(size=3), 0.7)
    state = mixture.fit([[one]])
    window = np.full(len(X), -2.0), np.full(len(X), 1.5)
    second = Stage(state, window, LAW, 1.0, np.ones(len(X_STAR)))
    return [one, reading(second, rng.normal(size=(2, len(X))), rng.normal(size=2), 0.2)]


WHO = np.repeat(np.arange(len(X)), COUNTS.astype(int))


def by_rows(state: State, readings: list[Reading], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the kept settings' mixture, with every row for itself."""
    means, variances, who = [], [], WHO
    for setting in state.settings:
        K = np.asarray(setting.kernel(X[who])) + setting.noise * np.eye(len(who))
        k = np.asarray(setting.kernel(points, X[who]))
        B, z, extra = measured(readings)
        D = B @ K @ B.T + extra
        gain = np.linalg.solve(D, B @ k.T).T
        means.append(gain @ z)
        variances.append(np.diag(np.asarray(setting.kernel(points))) - np.einsum("ij,ji->i", gain, B @ k.T))
    w, m = state.weights, np.array(means)
    mean = w @ m
    return mean, w @ (np.array(variances) + (m - mean) ** 2)


def measured(readings: list[Reading]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All readings as one: a matrix on rows, numbers, and the covariance of their noise."""
    B = np.vstack([(r.rows * r.slope)[:, WHO] for r in readings])
    z = np.concatenate([r.value for r in readings])
    return B, z, block_diag(*(r.covariance for r in readings))


def log_posteriors(prior: Hyperprior, state: State, curves: list[list[Reading]]) -> np.ndarray:
    """Of the kept settings, whatever the noise: of all rows together, at many noise levels, as in textbooks.

    Of inputs with the range 7 and outcomes with the width 10. Less that of the first.
    """
    noises = np.linspace(*np.log(prior.noise), 801)
    found = []
    for setting in state.settings:
        density = np.zeros(len(noises))
        for readings in curves:
            B, z, extra = measured(readings)
            K = B @ np.asarray(setting.kernel(X[WHO])) @ B.T + extra
            density += [
                multivariate_normal(np.zeros(len(z)), K + (10 * np.exp(at)) ** 2 * B @ B.T).logpdf(z)
                for at in noises
            ]
        lengths, signal = (
            np.log(setting.lengthscale) - np.log(7 / 0.9),
            np.log(setting.signal) / 2 - np.log(10),
        )
        density += 0.3 * (signal + noises) - (signal - noises) ** 2 / 2 / 2**2
        found.append(logsumexp(density) - np.maximum(lengths, 0).sum())
    return np.array(found) - found[0]


def weighed(mixture: Mixture, state: State) -> np.ndarray:
    """Log weights that settings would have if all were drawn evenly. Less that of the first."""
    drawn = mixture.proposals.log_weights(mixture.hypotheses)[: len(state.settings)]
    found = np.log(state.weights) - drawn
    return np.asarray(found - found[0])


def test_the_mixture_is_bayes_row_by_row() -> None:
    mixture = Mixture(Hyperprior(), X, COUNTS, X_STAR, LAW)
    readings = two_stages(mixture)
    state = mixture.fit([readings])
    assert len(state.settings) > 5
    expected = log_posteriors(Hyperprior(), state, [readings])
    np.testing.assert_allclose(weighed(mixture, state), expected, atol=0.01)
    assert np.ptp(expected) > 0.2
    mean, variance = by_rows(state, readings, X_STAR)
    found = state.at_test_points
    np.testing.assert_allclose(found[0], mean, atol=1e-9)
    np.testing.assert_allclose(found[1], variance, rtol=1e-7)
    at_inputs = by_rows(state, readings, X)
    np.testing.assert_allclose(state.mean, at_inputs[0], atol=1e-9)
    np.testing.assert_allclose(state.variance, at_inputs[1], rtol=1e-7)


def test_of_very_many_numbers_only_those_directions_count_that_tell_of_f() -> None:
    """Here five of very many. So it is Bayes row by row all the same, but for numbers that say nothing."""
    mixture, rng = Mixture(Hyperprior(), X, COUNTS, X_STAR, LAW), np.random.default_rng(4)
    rows = rng.normal(size=(MANY + 18, len(X)))
    value = rows @ (COUNTS * np.sin(X[:, 0])) + 0.3 * rng.normal(size=len(rows))
    one = Reading(rows, np.ones(len(X)), value, 0.09 * np.eye(len(rows)))
    state = mixture.fit([[one]])
    np.testing.assert_allclose(state.at_test_points, by_rows(state, [one], X_STAR), rtol=2e-3, atol=2e-4)
    expected = log_posteriors(Hyperprior(), state, [[one]])
    np.testing.assert_allclose(weighed(mixture, state), expected, atol=0.05)


def test_curves_are_known_each_from_its_own_readings_and_share_their_models() -> None:
    mixture, other = (Mixture(Hyperprior(), X, COUNTS, X_STAR, LAW, curves=n) for n in (2, 1))
    one = two_stages(other)
    two = [replace(reading, value=-3 * reading.value) for reading in one]
    state = mixture.fit([one, two])
    expected = log_posteriors(Hyperprior(), state, [one, two])
    np.testing.assert_allclose(weighed(mixture, state), expected, atol=0.01)
    for found, own in zip(state.each, (one, two), strict=True):
        alone = other.state(state.settings, state.weights, [own])
        np.testing.assert_array_equal(found.support_mean, alone.support_mean)
        np.testing.assert_array_equal(found.support_covariance, alone.support_covariance)
    for name in ("support_mean", "support_covariance"):  # by itself it is their average
        average = np.mean([getattr(found, name) for found in state.each], axis=0)
        np.testing.assert_array_equal(getattr(state, name), average)
        assert (getattr(state.each[0], name) != average).any()


@pytest.mark.parametrize("std", [0.15, 2.5])
def test_a_spread_tells_the_noise(std: float) -> None:
    """Where sums tell f: else a curve that they do not see may make up the distance."""
    rng = np.random.default_rng(1)
    x, n = np.linspace(0, 10, 40)[:, None], np.full(40, 5.0)
    y = np.sin(x[:, :1]) + std * rng.normal(size=(40, 5))
    limit, centre = 8.0, np.sin(x[:, 0])
    value = float(np.minimum(np.abs(y - centre[:, None]), limit).mean())
    spread = SpreadReading(centre, limit, value, 1e-6, n)
    rows = np.eye(40) / 40
    one = Reading(rows, np.ones(40), rows @ (n * centre), 1e-6 * np.eye(40))  # f is known well
    alone, state = (
        Mixture(Hyperprior(), x, n, x[:2], LAW).fit([[one]], spreads) for spreads in ((), (spread,))
    )
    true = value / np.sqrt(2 / np.pi)
    assert np.sqrt(state.noise + state.variance.mean()) == pytest.approx(true, rel=0.1)
    assert np.sqrt(state.noise) == pytest.approx(true, rel=0.15)
    assert not 0.8 < np.sqrt(alone.noise) / true < 1.25


def test_few_support_points_come_close_to_all() -> None:
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, size=(60, 1)), axis=0)
    rows, prior = rng.normal(size=(6, 60)) / 8, Hyperprior(lengthscale=(0.3, 1.0))
    value = rows @ (3 * np.sin(x[:, 0] / 2)) + 0.1 * rng.normal(size=6)
    found = []
    for points in (None, support_points(x, 25)):
        mixture = Mixture(prior, x, np.ones(60), x[::7], LAW, points)
        first = mixture.start()
        stage = Stage(first, (np.full(60, -5.0), np.full(60, 5.0)), LAW, 1.0, np.ones(9))
        state = mixture.fit([[reading(stage, rows, value, 0.01)]])
        assert state.support.exact == (points is None)
        found.append(state)
    exact, few = found
    np.testing.assert_allclose(few.mean, exact.mean, atol=0.15)
    np.testing.assert_allclose(np.sqrt(few.variance), np.sqrt(exact.variance), atol=0.1)
    np.testing.assert_allclose(few.at_test_points[0], exact.at_test_points[0], atol=0.15)


def test_no_curve_is_lost_between_support_points_whatever_setting_interpolates() -> None:
    """By a flat setting's kernel alone a wave would be interpolated flat, and no stage would see it again."""
    x = np.linspace(0, 10, 900)[:, None]
    points = support_points(x, 60)
    mixture = Mixture(Hyperprior(), x, np.ones(900), x[::90], LAW, points)
    assert points is not None
    flat = replace(mixture.settings[0], lengthscale=(1000.0,))
    P = mixture.support.again(flat).P
    assert P is not None
    np.testing.assert_allclose(P @ np.sin(2 * points[:, 0]), np.sin(2 * x[:, 0]), atol=0.1)


@pytest.mark.parametrize("support", [None, X])
def test_a_known_model_is_conditioned_as_it_is(support: Any) -> None:
    gp = GP(EQ(2.0, variance=4.0) + Constant(3.0), noise=0.5, bounds=BOUNDS)
    mixture = Mixture(Known(gp), X, COUNTS, X_STAR, LAW, support)
    readings = two_stages(mixture)
    state = mixture.fit([readings])
    mean, variance = by_rows(state, readings, X_STAR)
    loose = 1e-9 if support is None else 0.05  # a little is left out by the interpolation
    found = state.at_test_points
    np.testing.assert_allclose(found[0], mean, atol=loose)
    np.testing.assert_allclose(found[1], variance, atol=5 * loose)


@pytest.mark.parametrize("kernel", ["EQ", "Matern32", "Matern52"])
def test_a_settings_covariance_is_its_kernels_and_threads_change_nothing(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(2).uniform(0, 10, size=(30, 2))
    mixture = Mixture(Hyperprior(kernels=(kernel,)), X, np.ones(30), X[:3], LAW)
    setting = mixture.settings[7]
    np.testing.assert_array_equal(mixture.support.inner(setting), setting.shape(X))
    readings = [[Reading(np.ones((2, 30)) / 30, np.ones(30), np.ones(2), np.eye(2))]]
    alone = mixture._evidence(readings, ()).of(mixture.hypotheses)[0]
    asked = []
    monkeypatch.setattr(evidence, "in_threads", lambda *args: asked.append(args) or in_threads(*args))
    monkeypatch.setattr(evidence, "_LARGE", 1)
    np.testing.assert_array_equal(mixture._evidence(readings, ()).of(mixture.hypotheses)[0], alone)
    assert asked


def test_idle_inputs_end_with_long_lengthscales() -> None:
    """In ranges of each input: where f hangs on the first of three only, and where it hangs on all."""
    rng, spans = np.random.default_rng(0), np.array([1.0, 100.0, 0.01])
    x = rng.uniform(size=(160, 3)) * spans
    first = 2 * np.sin(5 * x[:, 0])
    both = first + 1.5 * np.sin(5 * x[:, 1] / 100) + 1.5 * np.cos(5 * x[:, 2] / 0.01)
    found = []
    for f in (first, both):
        y = f + 0.3 * rng.normal(size=160)
        mixture = Mixture(Hyperprior(), x, np.ones(160), x[:1], LAW)
        state = mixture.fit([[Reading(np.eye(160), np.ones(160), y, 0.01 * np.eye(160))]])
        logs = np.log([one.lengthscale for one in state.settings]) - np.log(spans)
        found.append(np.exp(state.weights @ logs))
    idle, all_matter = found
    assert idle[0] < 0.6
    assert idle[1:].min() > 2.0
    assert all_matter.max() < 1.0
