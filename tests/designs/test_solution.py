"""A design's answer."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.designs import Solution


@pytest.mark.parametrize("rows", [slice(None), slice(1, 3), np.array([3, 0, 3])], ids=str)
def test_columns_are_reduced_or_given_outright(dense, rows):
    rng = np.random.default_rng(0)
    C, reduce, matrix = rng.normal(size=(3, 5)), rng.normal(size=(2, 3)), rng.normal(size=(2, 5))
    rest = ("any", np.eye(3), 1.0, 1.0, 1, "converged")
    np.testing.assert_allclose(
        Solution(*rest, reduce=reduce).columns(dense(C), rows), (reduce @ C)[:, rows], rtol=1e-14
    )
    np.testing.assert_array_equal(Solution(*rest, matrix=matrix).columns(dense(C), rows), matrix[:, rows])
