"""The exact GP on torch tensors: the same C as numpy's, block by block and in place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from cloakgp import GP
from cloakgp.designs import DESIGNS, multipliers, solve
from cloakgp.designs.posterior import denoising
from cloakgp.kernels import EQ, Constant, Gibbs, Linear, Matern32, Periodic, as_kernel
from cloakgp.model.smoothers import ExactGP

N, P = 40, 9
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", autouse=True)
def imported():
    """By the one test process that has these tests: it takes seconds."""
    global torch, torch_gp, TorchExactGP
    import torch

    from cloakgp.model import torch_gp
    from cloakgp.model.torch_gp import TorchExactGP


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(N, 2))


@pytest.fixture
def X_star():
    return np.random.default_rng(2).normal(size=(P, 2))


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
    return request.param


def on(device, kernel, noise, X, X_star):
    return TorchExactGP(kernel, noise, torch.tensor(X, device=device), torch.tensor(X_star, device=device))


def close(actual, expected, rtol=1e-10):
    """Within so much of the largest entry."""
    actual = np.asarray(actual.cpu() if isinstance(actual, torch.Tensor) else actual)
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= rtol * np.abs(expected).max()


# The same as numpy's


@pytest.mark.parametrize("block", [1, 7, 20, 39, 40, 41, 2048])
@pytest.mark.parametrize("noise", [0.3, np.linspace(0.1, 2.0, N)], ids=["one noise", "noise per row"])
@pytest.mark.parametrize(
    "kernel",
    [
        EQ([0.7, 2.0], variance=3.0),
        Matern32(1.0) + Constant(5.0),
        Linear(2.0) * Periodic(1.0, period=3.0),
        as_kernel(2.0 * sk.RBF(1.3) + sk.Matern(nu=0.7)),
        Gibbs(([(0.0, 0.0), (1.0, 2.0)], [0.7, 2.0])),
    ],
    ids=["EQ", "sum", "product", "scikit-learn", "Gibbs"],
)
def test_it_is_the_exact_gp(kernel, noise, block, device, X, X_star, monkeypatch):
    monkeypatch.setattr(torch_gp, "BLOCK", block)
    host, there = ExactGP(kernel, noise, X, X_star), on(device, kernel, noise, X, X_star)
    assert (there.n_rows, there.n_outputs, there.jitter) == (N, P, 0.0)
    assert there.on_host().scale == pytest.approx(host.scale)
    close(there.columns(slice(0, N)), host.columns(slice(0, N)))
    for name in ("cross", "explained_variance", "posterior_variance"):
        close(getattr(there, name), getattr(host, name))
    B = np.random.default_rng(3).normal(size=(2, N))
    close(there.times_covariance(torch.tensor(B, device=device)), host.times_covariance(B))
    there.__dict__["_covariance"] = None  # as where there is no room for it
    close(there.times_covariance(torch.tensor(B, device=device)), host.times_covariance(B))


def test_plans_of_repeated_rows_are_made_there_too(device, X, X_star):
    gp = GP(EQ(1.0), 0.1, (0.0, 1.0))
    here, there = (
        gp.plan(X[[*range(N), 3, 3]], X_star=X_star, epsilon=1.0, delta=0.01, device=d)
        for d in (None, device)
    )
    np.testing.assert_allclose(there.noise_std, here.noise_std, rtol=1e-3)
    np.testing.assert_allclose(there.expected_error, here.expected_error, rtol=1e-3)


def test_seen_from_the_host(device, X, X_star):
    """What a plan needs after the design, in numpy."""
    host, seen = ExactGP(EQ(1.0), 0.1, X, X_star), on(device, EQ(1.0), 0.1, X, X_star).on_host()
    assert (seen.n_rows, seen.n_outputs, seen.jitter) == (N, P, 0.0)
    B = np.random.default_rng(3).normal(size=(2, N))
    pairs = [
        (seen.cross, host.cross),
        (seen.explained_variance, host.explained_variance),
        (seen.posterior_variance, host.posterior_variance),
        (seen.times_covariance(B), host.times_covariance(B)),
        (seen.columns(slice(2, 9)), host.columns(slice(2, 9))),
        (denoising(seen, B, 2.0)[0], denoising(host, B, 2.0)[0]),
    ]
    for actual, expected in pairs:
        assert isinstance(actual, np.ndarray)
        close(actual, expected)


# Matrices that are nearly singular, or no covariances


@pytest.mark.parametrize("failures", [1, 2, 10])
def test_the_ladder_of_jitters(failures, X, X_star, monkeypatch):
    """As in gentle_cholesky, and the matrix is filled again after each failure."""
    really, left = torch_gp.cholesky_in_place, [False] * failures

    def failing(matrix):
        worked = really(matrix)
        return left.pop() if left else worked

    monkeypatch.setattr(torch_gp, "cholesky_in_place", failing)
    there = on("cpu", EQ(1.0, variance=3.0), 0.5, X, X_star)
    assert there.jitter == pytest.approx(3.5 * 10.0 ** (failures - 16), rel=1e-12)
    close(
        there.columns(slice(0, N)),
        ExactGP(EQ(1.0, variance=3.0), 0.5 + there.jitter, X, X_star).columns(slice(0, N)),
    )


def test_no_jitter_helps(X, X_star, monkeypatch):
    monkeypatch.setattr(torch_gp, "cholesky_in_place", lambda matrix: False)
    with pytest.raises(ValueError, match="kernel must return a positive semi-definite matrix"):
        on("cpu", EQ(1.0), 0.5, X, X_star)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda X, Z: X[:, :1] - Z[:, :1].T,
        lambda X, Z: -((X[:, :1] - Z[:, :1].T) ** 2) - 1.0,
        lambda X, Z: X[:, :1] * Z[:, :1].T * float("nan"),
        lambda X, Z: X[:, 0],
    ],
    ids=["not symmetric", "not positive", "not finite", "not a matrix"],
)
def test_kernels_are_refused_in_the_same_words(kernel, X, X_star):
    with pytest.raises(ValueError, match="kernel") as here:
        ExactGP(as_kernel(kernel), 0.1, X, X_star)
    with pytest.raises(ValueError, match="kernel") as there:
        on("cpu", kernel, 0.1, X, X_star)
    assert str(there.value) == str(here.value)


def test_only_float64_tensors_on_one_device(X, X_star):
    with pytest.raises(
        TypeError, match=r"X and X_star must be float64 tensors on one device; got torch\.float32"
    ):
        TorchExactGP(EQ(1.0), 0.1, torch.tensor(X, dtype=torch.float32), torch.tensor(X_star))


# The factorisation


@pytest.mark.parametrize("n", [1, 30])
def test_cholesky_takes_the_place_of_the_matrix(n, device):
    """No copy is made, and what is above the diagonal is never looked at."""
    A = np.random.default_rng(n).normal(size=(n, n + 2))
    A = A @ A.T + np.eye(n)
    matrix = torch.tensor(A, device=device).T
    matrix[tuple(np.triu_indices(n, 1))] = torch.nan
    kept = matrix.data_ptr()
    assert torch_gp.cholesky_in_place(matrix)
    assert matrix.data_ptr() == kept
    close(matrix.tril(), np.linalg.cholesky(A), rtol=1e-13)
    matrix[n // 2, n // 2] = -1.0
    assert not torch_gp.cholesky_in_place(matrix)


# Designs


@pytest.fixture(params=["everything", "working sets"])
def searched(request, monkeypatch):
    if request.param == "working sets":
        monkeypatch.setattr(multipliers, "WORKING_SET", 120)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_runs_on_torch_tensors(design, weighted, device):
    rng = np.random.default_rng(5)
    X, X_star = rng.uniform(0, 6, (300, 2)), rng.uniform(0, 6, (12, 2))
    weights = np.linspace(0.5, 2.0, 12) if weighted else np.ones(12)
    gap, noise = 0.01, 20.0
    host, there = ExactGP(EQ(1.0), 0.3, X, X_star), on(device, EQ(1.0), 0.3, X, X_star)
    theirs, ours = solve(design, host, weights, gap, noise), solve(design, there, weights, gap, noise)
    assert isinstance(ours.objective, float)
    assert ours.reconstruction.device == there.cross.device
    assert ours.status == "converged"
    assert 0 < ours.lower_bound <= ours.objective <= ours.lower_bound * (1 + gap) * (1 + 1e-9)
    assert ours.objective <= theirs.objective * (1 + gap)
    assert theirs.objective <= ours.objective * (1 + gap)
    assert max(ours.lower_bound, theirs.lower_bound) <= min(ours.objective, theirs.objective)
    B = ours.columns(there, slice(0, 300))
    assert float((B**2).sum(axis=0).max()) == pytest.approx(1.0, abs=1e-9)
    if ours.unbiased:
        close(ours.reconstruction @ B, host.columns(slice(0, 300)), 1e-5)
    moved = ours.on_host()
    assert isinstance(moved.reconstruction, np.ndarray)
    close(moved.columns(there.on_host(), slice(0, 300)), B.cpu().numpy(), 1e-12)
