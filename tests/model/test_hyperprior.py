"""What is believed beforehand: ranges of inputs, what is usual, and how likely each model is."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import Hyperprior
from cloakgp.model.hyperprior import spread

X = np.linspace(0, 10, 201)[:, None]


def test_one_outlier_does_not_stretch_a_range():
    prior, far = Hyperprior(), np.vstack([X, [[5000.0]]])
    assert prior.spans(X)[0] == pytest.approx(10, rel=0.02)
    assert prior.spans(far)[0] == pytest.approx(10, rel=0.02)


def test_rows_that_are_doubled_change_no_range():
    prior = Hyperprior()
    np.testing.assert_array_equal(prior.spans(np.repeat(X, 3, axis=0)), prior.spans(X))


def test_an_input_with_a_few_other_values_has_the_range_of_all():
    few = np.zeros((100, 1))
    few[:3] = 7.0
    assert Hyperprior().spans(few)[0] == 7.0
    assert Hyperprior().spans(np.zeros((100, 1)))[0] == 0.0


def test_what_is_usual_has_inputs_that_matter_and_bounds_that_fit():
    usual = Hyperprior().usual
    assert usual.lengthscale == (1 / 30, 1.0)
    np.testing.assert_allclose([*usual.signal, *usual.noise], [0.025, 0.4, 0.01, 0.3])
    narrow = Hyperprior(lengthscale=(2.0, 3.0), signal=(1e-3, 2e-3), noise=(0.1, 0.1))
    assert narrow.usual.lengthscale == (2.0, 2.0)
    assert 1e-3 <= narrow.usual.signal[0] <= narrow.usual.signal[1] == 2e-3
    assert narrow.usual.noise == (0.1, 0.1)


def test_long_lengthscales_small_stds_and_odd_ratios_are_less_likely():
    prior = Hyperprior()

    def log_density(*shares, noise=0.1):
        return prior.log_density(np.log([shares]), 2, np.log([noise]))[0]

    middle = log_density(0.3, 0.3, 0.1)
    assert log_density(0.1, 0.9, 0.1) == middle  # up to a range all are alike
    assert log_density(0.3, 4.0, 0.1) == pytest.approx(middle - np.log(4))
    assert log_density(3.0, 4.0, 0.1) == pytest.approx(middle - np.log(12))
    assert log_density(0.3, 0.3, 0.01, noise=0.01) == pytest.approx(middle - 0.6 * np.log(10))
    both = log_density(0.3, 0.3, 0.1 * np.e, noise=0.1 / np.e)
    assert both == pytest.approx(middle - 0.5)  # e^2 apart: one std


def test_with_a_link_only_lengthscales_count():
    found = Hyperprior().log_density(np.log([[0.3, 1e-3], [5.0, 0.1]]), 1)
    np.testing.assert_allclose(found, [0.0, -np.log(5)])


def test_a_few_models_stand_for_all():
    """Each number of them is as spread as those of all: of Sobol's points each 32nd is in one corner."""
    settings = Hyperprior().settings(np.array([1.0, 1.0, 1.0]), 1.0)
    places = spread(len(settings), 16)
    assert len(set(places)) == 16
    for name in ("lengthscale", "signal", "noise"):
        logs = np.log([np.atleast_1d(getattr(one, name)) for one in settings])
        low, high = logs.min(axis=0), logs.max(axis=0)
        shares = (logs[places] - low) / (high - low)
        assert (shares.min(axis=0) < 0.25).all()
        assert (shares.max(axis=0) > 0.75).all()
        assert (np.abs(shares.mean(axis=0) - 0.5) < 0.15).all()
    assert spread(3, 16) == [0, 1, 2]
