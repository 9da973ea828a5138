"""More draws than fit into memory are refused before anything is drawn, whatever the release."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import ArgumentError
from cloakgp.estimators import RepeatedFitWarning
from cloakgp.kernels import EQ
from cloakgp.posterior import conditioning
from release.test_every_kind import GP, HIDDEN, KINDS, PROMISE, X, Y


@pytest.fixture(scope="module", params=[*(kind for kind in KINDS if kind not in HIDDEN), "combined"])
def release(request, few_models):
    if request.param == "combined":
        plan = GP.plan(X, X_star=X[:3], **PROMISE)
        return cloakgp.combine([plan.release(Y), plan.release(Y)])
    kind = KINDS[request.param]
    return kind.plan().release(y=kind.outcomes, **kind.private)


def test_too_many_draws_are_refused_with_the_limit(release, monkeypatch):
    """And one draw at too many inputs, which needs the covariances of all of its numbers."""
    at = getattr(release, "X_star", X)[[0, 1, 2, 0, 1, 2, 0]]
    numbers = release.sample(at, 1).size
    for n in (10**9, np.int64(10**9), conditioning.MOST_DRAWN // numbers + 1):
        with pytest.raises(ArgumentError) as refused:
            release.sample(at, n)
        assert refused.value.name == "n"
        assert str(conditioning.MOST_DRAWN // numbers) in refused.value.expected
    monkeypatch.setattr(conditioning, "MOST_DRAWN", 4 * numbers)
    assert len(release.sample(at, 4)) == 4
    with pytest.raises(ArgumentError):
        release.sample(at, 5)
    monkeypatch.setattr(conditioning, "MOST_TOGETHER", 6)
    with pytest.raises(ArgumentError) as refused:
        release.sample(at, 1)
    assert refused.value.name == "X"


@pytest.mark.parametrize("seed", ["one", -1, 0.5, [None]])
def test_a_seed_that_is_none_is_refused_by_name(release, seed):
    with pytest.raises(ArgumentError) as refused:
        release.sample(getattr(release, "X_star", X)[:2], 2, seed)
    assert refused.value.name == "seed"


@pytest.mark.filterwarnings("ignore", category=RepeatedFitWarning)
def test_the_estimator_names_its_own_argument():
    model = cloakgp.PrivateGPRegressor(bounds=(-2.0, 6.0), **PROMISE, kernel=EQ(2.0), noise=0.1).fit(X, Y)
    with pytest.raises(ArgumentError) as refused:
        model.sample_y(X, 10**9)
    assert refused.value.name == "n_samples"
