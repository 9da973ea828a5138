"""Quantiles of mixtures of normals: by their definition, wherever Newton's steps lead."""

import numpy as np
import pytest
from scipy.special import ndtr

from cloakgp.posterior.learning import mixture_quantiles

RNG = np.random.default_rng(3)
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS, STDS = RNG.normal(size=(3, 40)), RNG.uniform(0.5, 2.0, size=(3, 40))
CASES = {
    "alike": (MEANS, STDS),
    "far apart": (50 * MEANS, STDS),
    "some narrow": (MEANS, STDS * 10.0 ** RNG.uniform(-6, 0, size=(3, 40))),
}


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("case", CASES)
def test_so_much_of_a_mixture_is_below_each_end(case, level):
    means, stds = CASES[case]
    ends = mixture_quantiles(WEIGHTS, means, stds, ((1 - level) / 2, (1 + level) / 2))
    below = [WEIGHTS @ ndtr((end - means) / stds) for end in ends]
    np.testing.assert_allclose(below[0], (1 - level) / 2, rtol=1e-7)
    np.testing.assert_allclose(below[1], (1 + level) / 2, rtol=1e-9)


def test_ends_are_found_where_models_are_certain():
    means, stds = np.array([[1.0], [2.0], [4.0]]), np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_allclose(mixture_quantiles(WEIGHTS, means, stds, (0.25, 0.75)), [[1.0], [2.0]])
