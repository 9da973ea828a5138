"""Products of wide matrices, in threads."""

from __future__ import annotations

import numpy as np

from cloakgp.kernels import EQ
from cloakgp.model.arrays import times_wide, wide_dots
from cloakgp.model.gp import GP

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(3, 5000))  # more than one thread takes at once


def test_wide_products_are_products():
    A = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(times_wide(A, WIDE), A @ WIDE)
    np.testing.assert_allclose(wide_dots(WIDE, WIDE), WIDE @ WIDE.T)


def test_the_covariance_of_many_rows_is_that_of_the_model():
    X = np.linspace(0.0, 10.0, 5000)[:, None]
    gp = GP(EQ(2.0), 0.3, (-1.0, 1.0), inducing=X[::1000])
    smoother = gp.planner(X, X_star=X[:3]).smoother
    K = gp.kernel(X, X[::1000])
    expected = WIDE @ K @ np.linalg.solve(gp.kernel(X[::1000]), K.T) + 0.3 * WIDE
    np.testing.assert_allclose(smoother.times_covariance(WIDE), expected, atol=1e-6)
