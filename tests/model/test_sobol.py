"""Sobol's points are SciPy's, to the bit: files say which windows followed from them."""

import numpy as np
import pytest

from cloakgp.model.sobol import MOST, sobol


@pytest.mark.parametrize("n", [1, 512])
@pytest.mark.parametrize("dimensions", [1, 4, MOST, MOST + 1])
def test_they_are_scipys(dimensions, n):
    qmc = pytest.importorskip("scipy.stats").qmc
    np.testing.assert_array_equal(
        sobol(dimensions, n), qmc.Sobol(dimensions, scramble=False).random(n), strict=True
    )
