"""The design for predictions that will be denoised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cloakgp.designs import posterior, solve
from cloakgp.designs.posterior import denoising, lower_bound
from cloakgp.kernels import EQ
from cloakgp.model.smoothers import ExactGP

NOISES = (1e-2, 1.0, 1e2)


def denoised_error(C, K, B, s, weights):
    """f(B) = tr W C (K^-1 + B'B/s)^-1 C', as its weighted mean, for unit noise."""
    V = C @ np.linalg.inv(np.linalg.inv(K) + B.T @ B / s) @ C.T
    return float(weights @ np.diag(V) / weights.sum() / s)


def problem(dense, P, N, seed):
    rng = np.random.default_rng(seed)
    return dense(rng.normal(size=(P, N)), rng.normal(size=(N, 2))), np.exp(0.5 * rng.normal(size=P))


class GPProblem:
    """A real GP as a smoother, with its covariance of y."""

    def __init__(self, N, P, lengthscale=1.0, noise=0.1):
        X = np.random.default_rng(N).uniform(0, 10, size=(N, 1))
        X_star = np.linspace(0, 10, P + 2)[1:-1, None]
        self.smoother = ExactGP(EQ(lengthscale), noise, X, X_star)
        self.C = self.smoother.columns(slice(0, N))
        self.K = EQ(lengthscale)(X) + noise * np.eye(N)

    def error(self, B, s):
        return denoised_error(self.C, self.K, B, s, np.ones(len(self.C)))


GPS = {
    "one test point": (20, 1),
    "few test points": (50, 5),
    "many test points": (50, 30),
    "one row": (1, 3),
    "more test points than rows": (6, 25),
}
every_gp = pytest.mark.parametrize("gp", [GPProblem(*size) for size in GPS.values()], ids=GPS)
every_noise = pytest.mark.parametrize("s", NOISES)
dense_problems = pytest.mark.parametrize(("P", "N"), [(1, 1), (1, 6), (3, 3), (3, 20), (8, 4)])


# The answer


@every_noise
@dense_problems
@pytest.mark.parametrize("seed", range(2))
def test_the_objective_is_the_error_of_the_denoised_predictions(dense, P, N, s, seed):
    smoother, weights = problem(dense, P, N, seed)
    found = solve("posterior", smoother, weights, 0.01, s)
    expected = denoised_error(smoother.C, smoother.covariance, found.matrix, s, weights)
    assert found.objective == pytest.approx(expected, rel=1e-4)
    assert found.lower_bound <= found.objective


@every_noise
def test_the_reconstruction_is_the_posterior_mean(dense, s):
    """cov(m, z) cov(z)^-1 for m = C y and z = B y + noise; no other gain has a smaller error."""
    smoother, weights = problem(dense, 3, 10, 2)
    found = solve("posterior", smoother, weights, 0.01, s)
    C, K, B = smoother.C, smoother.covariance, found.matrix
    gain = C @ K @ B.T @ np.linalg.inv(B @ K @ B.T + s * np.eye(len(B)))
    np.testing.assert_allclose(found.reconstruction, gain, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(denoising(smoother, B, s)[0], gain, rtol=1e-7, atol=1e-9)
    miss = gain @ B - C
    error = np.diag(miss @ K @ miss.T + s * gain @ gain.T)  # of the released predictions
    assert weights @ error / weights.sum() / s == pytest.approx(found.objective, rel=1e-4)


# Beside the others


@pytest.mark.parametrize("s", [1e-3, 0.1, *NOISES])
@every_gp
def test_never_worse_than_denoising_the_mse_design_of_a_gp(gp, s):
    weights = np.ones(len(gp.C))
    found = solve("posterior", gp.smoother, weights, 0.01, s)
    for design in ("mse", "max"):
        rival = solve(design, gp.smoother, weights, 0.05).columns(gp.smoother, slice(None))
        assert gp.error(found.matrix, s) <= gp.error(rival, s) * (1 + 1e-3)


# The lower bound


def best_by_scipy(smoother, s, weights, attempts=3):
    """Over B with as many rows as X, so that no rank is too low; the problem is then convex in B'B."""
    N = smoother.n_rows
    best = np.inf
    for attempt in range(attempts):

        def error(x):
            U = x.reshape(N, N)
            B = U / np.linalg.norm(U, axis=0)
            return np.log(denoised_error(smoother.C, smoother.covariance, B, s, weights))

        start = np.random.default_rng(attempt).normal(size=N * N)
        best = min(best, minimize(error, start, method="BFGS", options={"gtol": 1e-9}).fun)
    return float(np.exp(best))


@every_noise
@pytest.mark.parametrize(("P", "N"), [(1, 3), (2, 3), (3, 4), (4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_an_independent_optimiser_stays_between_the_bounds(dense, P, N, s, seed):
    smoother, weights = problem(dense, P, N, seed)
    found = solve("posterior", smoother, weights, 0.01, s)
    best = best_by_scipy(smoother, s, weights)
    assert found.lower_bound <= best * (1 + 1e-6)
    assert best <= found.objective * (1 + 1e-4), "the reference must find the optimum too"
    if found.status == "converged":
        assert found.objective <= best * 1.01 * (1 + 1e-4)


@pytest.mark.parametrize("s", [1.0, 10.0, 1e2])
@pytest.mark.parametrize("size", [(12, 4), (50, 30), (100, 40)], ids=str)
def test_a_gap_of_one_percent_is_reached_for_gps(size, s):
    gp = GPProblem(*size)
    assert solve("posterior", gp.smoother, np.ones(size[1]), 0.01, s).status == "converged"


def residual(C, K, B, s):
    """E = C (K^-1 + B'B/s)^-1, and what the bound needs of it: E C' and E K^-1 E'."""
    E = C @ np.linalg.inv(np.linalg.inv(K) + B.T @ B / s)
    return E, E @ C.T, E @ np.linalg.inv(K) @ E.T


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    P=st.integers(1, 6),
    N=st.integers(1, 12),
    log_s=st.floats(-3, 3),
    own=st.booleans(),
)
def test_the_bound_holds_for_any_multipliers_and_is_no_worse_than_lemma_6(dense, seed, P, N, log_s, own):
    rng, s = np.random.default_rng(seed), 10.0**log_s
    smoother, _ = problem(dense, P, N, seed)
    scale = np.sqrt(smoother.explained_variance.sum())  # the bound is for a prior variance of 1
    C, K = smoother.C / scale, smoother.covariance
    B = rng.normal(size=(rng.integers(1, N + 2), N))
    B /= np.linalg.norm(B, axis=0)
    E, EC, EKE = residual(C, K, B, s)
    v = np.linalg.norm(B @ E.T @ E / s, axis=0) if own else np.exp(2 * rng.normal(size=N))
    bound = lower_bound(E, v, EC, EKE, s)
    largest = np.linalg.eigvalsh((E / (v * s)) @ E.T)[-1]
    assert bound >= np.trace(EC) + np.sum((B @ E.T) ** 2) / s - largest * v.sum() - 1e-9
    rivals = [B, np.eye(N), np.ones((1, N)), *(rng.normal(size=(q, N)) for q in range(1, N + 2))]
    rivals.append(solve("posterior", smoother, np.ones(P), 1e-3, s).matrix)
    for rival in rivals:
        unit = rival / np.linalg.norm(rival, axis=0)
        error = np.trace(C @ np.linalg.inv(np.linalg.inv(K) + unit.T @ unit / s) @ C.T)
        assert bound <= error * (1 + 1e-7)


@pytest.mark.parametrize("s", [10.0, 1e2])
@pytest.mark.parametrize("lengthscale", [0.3, 1.0, 5.0])
def test_four_inputs_and_many_test_points_take_few_steps(lengthscale, s):
    """Each step multiplies by y's covariance: what planning costs for many rows."""
    rng = np.random.default_rng(0)
    X, X_star = rng.normal(size=(400, 4)), rng.normal(size=(60, 4))
    smoother = ExactGP(EQ(lengthscale), 0.4, X, X_star)
    found = solve("posterior", smoother, np.ones(60), 0.01, s)
    assert found.status == "converged"
    assert found.iterations <= 25


def test_bounds_hold_also_when_the_search_is_cut_short(dense, monkeypatch):
    smoother, weights = problem(dense, 3, 20, 0)
    best = solve("posterior", smoother, weights, 1e-3, 10.0)
    monkeypatch.setattr(posterior, "_EVALUATIONS", 2)
    found = solve("posterior", smoother, weights, 1e-6, 10.0)
    assert found.status == "stopped before the gap was reached"
    assert found.lower_bound <= best.objective
    assert found.objective >= best.lower_bound
    assert np.linalg.norm(found.matrix, axis=0).max() == pytest.approx(1.0, abs=1e-9)


# What does not matter


@pytest.mark.parametrize("factor", [1e-20, 3.0, 1e20])
def test_scaling_the_predictions_scales_the_error(dense, factor):
    smoother, weights = problem(dense, 4, 20, 6)
    scaled = dense(smoother.C * factor, smoother.A)
    one, other = (solve("posterior", each, weights, 0.01, 10.0) for each in (smoother, scaled))
    assert other.objective == pytest.approx(one.objective * factor**2, rel=1e-6)


def test_the_noise_to_come_matters_to_no_other_design(dense, design):
    smoother, weights = problem(dense, 3, 20, 8)
    one, other = (solve(design, smoother, weights, 0.01, s) for s in NOISES[:2])
    assert one.objective == other.objective
    np.testing.assert_array_equal(one.reduce, other.reduce)
