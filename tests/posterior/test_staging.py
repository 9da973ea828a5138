"""From stage to stage: windows, what to measure, and that it pays. Noise here is numpy's: not private."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloakgp import Hyperprior
from cloakgp.model.outcome import REAL
from cloakgp.posterior.clipping import Direct
from cloakgp.posterior.mixture import Mixture
from cloakgp.posterior.staging import FLOOR, SCALE_SHARE, Stage, scale_limit, schedule, windows
from cloakgp.posterior.states import Reading, SpreadReading, State

WIDTH, BOUNDS = 100.0, (-50.0, 50.0)
LAW = Direct(BOUNDS, 0.0)


def reading(stage: Stage, rows: Any, value: Any, noise: float) -> Reading:
    """What a stage measured, as a line through f."""
    n, clip = stage.state.counts, stage.clip
    shift = rows @ (n * (clip.centre - clip.slope * stage.state.mean))
    return Reading(rows, clip.slope, value - shift, noise * np.eye(len(rows)) + stage.extra(rows))


def staged(X: Any, y: Any, X_star: Any, mu: float, shares: Any, seed: int) -> State:
    """A staged release of y, already less the middle of the bounds, in floating point."""
    rng, U = np.random.default_rng(seed), len(X)
    mixture = Mixture(Hyperprior(), X, np.ones(U), X_star, LAW)
    state, window = mixture.start(), (np.full(U, BOUNDS[0]), np.full(U, BOUNDS[1]))
    readings, spreads = [], []
    for j, share in enumerate(shares):
        for_scale = SCALE_SHARE if j else 0.0
        stage = Stage(state, window, LAW, mu * np.sqrt(share * (1 - for_scale)), np.ones(len(X_star)))
        rows = stage.rows()
        assert (np.linalg.norm(rows, axis=0) * (window[1] - window[0])).max() <= 1 + 1e-9
        value = rows @ np.clip(y, *window) + rng.normal(size=len(rows)) / stage.mu
        readings.append(reading(stage, rows, value, 1 / stage.mu**2))
        if for_scale:
            limit = scale_limit(state, LAW)
            std = limit / (U * mu * np.sqrt(share * for_scale))
            distances = np.minimum(np.abs(np.clip(y, *BOUNDS) - state.mean), limit)
            spreads.append(
                SpreadReading(state.mean, limit, distances.mean() + std * rng.normal(), std**2, state.counts)
            )
        state = mixture.fit([readings], spreads)
        window = windows(state, LAW, REAL.kappa)
    return state


def test_shares_are_a_whole_and_grow() -> None:
    shares = np.array(schedule(REAL).shares)
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) > 0).all()


def test_stages_pay() -> None:
    X = np.linspace(0, 10, 80)[:, None]
    truth = 30 * np.sin(X[:, 0] / 2)
    errors = []
    for shares in ([1.0], schedule(REAL, 5).shares):
        mse = []
        for seed in range(4):
            y = truth + 2 * np.random.default_rng(seed).normal(size=80)
            mean, _ = staged(X, y, X[::8], 1.0, shares, seed).at_test_points
            mse.append(np.mean((mean - truth[::8]) ** 2))
        errors.append(np.sqrt(np.mean(mse)))
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("mean", [-80.0, -50.0, -49.9, 0.0, 49.9, 80.0])
@pytest.mark.parametrize("std", [1e-6, 0.4, 1e6])
def test_windows_stay_within_the_bounds_and_are_never_too_narrow(mean: float, std: float) -> None:
    state: Any = SimpleNamespace(mean=np.array([mean]), variance=np.array([std**2]), noise=0.0, settings=())
    a, b = windows(state, LAW, REAL.kappa)
    assert a[0] >= BOUNDS[0]
    assert b[0] <= BOUNDS[1] + 1e-9
    assert b[0] - a[0] >= FLOOR * WIDTH * (1 - 1e-9)
    assert a[0] - 1e-9 <= np.clip(mean, *BOUNDS) <= b[0] + 1e-9


CASES = {
    "one row": (np.zeros((1, 1)), np.array([3.0])),
    "two columns, three rows": (np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 5.0]]), np.array([3.0, -4.0, 9.0])),
    "a column that is constant": (np.c_[np.arange(6.0), np.ones(6)], np.arange(6.0)),
    "all outcomes beyond the bounds": (np.arange(12.0)[:, None], np.full(12, 400.0)),
    "all outcomes equal": (np.arange(12.0)[:, None], np.full(12, -7.0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mu", [0.01, 1.0, 300.0])
def test_nothing_breaks(name: str, mu: float) -> None:
    X, y = CASES[name]
    state = staged(X, y, X[:1], mu, schedule(REAL, 3).shares, 0)
    a, b = windows(state, LAW, REAL.kappa)
    assert (a >= BOUNDS[0]).all()
    assert (b <= BOUNDS[1] + 1e-9).all()
    assert (b - a >= FLOOR * WIDTH * (1 - 1e-9)).all()
    mean, variance = state.mean, state.variance
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert state.noise > 0
    if mu == 300.0:
        np.testing.assert_allclose(mean, np.clip(y, *BOUNDS), atol=3.0)
