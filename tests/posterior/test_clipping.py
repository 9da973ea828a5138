"""The line through a clipped outcome, and what it leaves over: against many draws."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.posterior.clipping import linearise

MEAN, F, NOISE = (
    np.array([1.0, -0.5, 4.0]),
    np.array([[2.0, 1.2, 0.6], [1.2, 1.5, -0.4], [0.6, -0.4, 1.0]]),
    0.5,
)
COUNTS = np.array([1.0, 3.0, 2.0])
WINDOW = np.array([0.2, -1.5, 4.5]), np.array([1.9, 1.0, 6.0])
FAR = (-100.0, 100.0)


def draws(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(n, rows) outcomes at each input, and the same clipped to the windows."""
    rng = np.random.default_rng(4)
    f = rng.multivariate_normal(MEAN, F, size=n)
    outcomes = [
        f[:, [g]] + np.sqrt(NOISE) * rng.normal(size=(n, int(count))) for g, count in enumerate(COUNTS)
    ]
    return outcomes, [np.clip(y, WINDOW[0][g], WINDOW[1][g]) for g, y in enumerate(outcomes)]


def test_the_line_and_the_leftover_errors_are_those_of_draws() -> None:
    line = linearise(MEAN, np.diag(F) + NOISE, WINDOW, FAR)
    outcomes, clipped = draws(400_000)
    sums = []
    for g, (y, c) in enumerate(zip(outcomes, clipped, strict=True)):
        assert c.mean() == pytest.approx(line.centre[g], abs=5e-3)
        slope = np.cov(y[:, 0], c[:, 0])
        assert slope[0, 1] / slope[0, 0] == pytest.approx(line.slope[g], abs=5e-3)
        e = c - line.centre[g] - line.slope[g] * (y - MEAN[g])
        assert e[:, 0].var() == pytest.approx(line.left[g], rel=0.02)
        sums.append(e.sum(axis=1))
    np.testing.assert_allclose(line.of_sums(F, COUNTS), np.cov(sums), rtol=0.03, atol=4e-3)


def test_an_edge_that_is_the_bound_clips_nothing() -> None:
    mean, variance = np.array([0.0, 0.0]), np.array([1.0, 1.0])
    window = np.array([-0.5, -0.5]), np.array([0.7, 0.7])
    line = linearise(mean, variance, window, (-0.5, 0.7))
    np.testing.assert_array_equal(line.slope, 1.0)
    np.testing.assert_allclose(line.centre, mean, atol=1e-12)
    np.testing.assert_allclose(line.left, 0.0, atol=1e-12)
    assert linearise(mean, variance, window, FAR).slope[0] < 0.5
    one_sided = linearise(mean, variance, window, (-0.5, 100.0))
    assert one_sided.slope[0] == pytest.approx(0.758, abs=1e-3)  # Pr[y < 0.7]


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_any_unit_will_do(unit: float) -> None:
    line = linearise(MEAN, np.diag(F) + NOISE, WINDOW, FAR)
    scaled = linearise(
        MEAN * unit,
        (np.diag(F) + NOISE) * unit**2,
        (WINDOW[0] * unit, WINDOW[1] * unit),
        (FAR[0] * unit, FAR[1] * unit),
    )
    np.testing.assert_allclose(
        scaled.of_sums(F * unit**2, COUNTS) / unit**2, line.of_sums(F, COUNTS), rtol=1e-9
    )


def test_a_window_far_from_what_is_expected_says_nothing_and_breaks_nothing() -> None:
    line = linearise(np.array([0.0]), np.array([1.0]), (np.array([90.0]), np.array([91.0])), FAR)
    assert line.slope[0] == 0.0
    assert np.isfinite(line.of_sums(np.array([[0.5]]), np.array([3.0]))).all()
