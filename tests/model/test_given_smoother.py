"""A prior given as covariances, whole or in factors: the same smoother as from a kernel."""

from __future__ import annotations

import numpy as np

from cloakgp.kernels import EQ
from cloakgp.model.given_smoother import FactoredGP, GivenGP
from cloakgp.model.smoothers import ExactGP

rng = np.random.default_rng(0)
X, X_STAR = rng.uniform(0, 5, size=(12, 1)), rng.uniform(0, 5, size=(4, 1))
OWN, KERNEL = np.linspace(0.2, 0.9, 12), EQ(1.5, variance=2.0)


def test_both_are_the_exact_gp() -> None:
    expected = ExactGP(KERNEL, OWN, X, X_STAR)
    K, cross, variance = KERNEL(X), KERNEL(X, X_STAR), KERNEL.diag(X_STAR)
    B = rng.normal(size=(3, 12))
    given = GivenGP(K + np.diag(OWN), cross, variance)
    factors = rng.normal(size=(12, 12))
    inner = np.linalg.solve(factors, np.linalg.solve(factors, K).T).T
    factored = FactoredGP(factors, inner, np.linalg.solve(factors, cross), OWN, variance)
    for found in (given, factored):
        assert (found.n_rows, found.n_outputs) == (12, 4)
        np.testing.assert_allclose(found.columns(slice(2, 7)), expected.columns(slice(2, 7)), atol=1e-8)
        np.testing.assert_allclose(found.cross, expected.cross, atol=1e-9)
        np.testing.assert_allclose(found.times_covariance(B), expected.times_covariance(B), atol=1e-8)
        np.testing.assert_allclose(found.posterior_variance, expected.posterior_variance, atol=1e-8)
        np.testing.assert_allclose(found.explained_variance, expected.explained_variance, atol=1e-8)
