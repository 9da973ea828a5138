"""More draws than fit into memory are refused before anything is drawn, whatever the release."""

from __future__ import annotations

import numpy as np
import pytest

import cloakgp
from cloakgp import ArgumentError
from cloakgp.kernels import EQ
from cloakgp.posterior import conditioning

pytestmark = pytest.mark.usefixtures("few_models")

X, NEW = np.linspace(0, 10, 40)[:, None], np.linspace(1, 9, 7)[:, None]
Y, PROMISE = np.sin(X[:, 0]), {"epsilon": 1.0, "delta": 1e-3}
KNOWN, LEARNED = cloakgp.GP(EQ(2.0), 0.1, (-2.0, 2.0)), cloakgp.AutoGP((-2.0, 2.0), stages=2)
GRID = cloakgp.Grid({"x": (0, 10)}, cells=8)
CLASSES = cloakgp.AutoGP(outcome="classes", classes=(0, 1, 2), stages=2)

RELEASES = {
    "known": lambda: KNOWN.plan(X, X_star=X[::9], **PROMISE).release(Y),
    "inducing": lambda: (
        cloakgp.GP(EQ(2.0), 0.1, (-2.0, 2.0), inducing=8).plan(X, X_star=X[::9], **PROMISE).release(Y)
    ),
    "function": lambda: KNOWN.plan_function(X, **PROMISE).release(Y),
    "learned": lambda: LEARNED.plan(X, X_star=X[::9], **PROMISE).release(Y),
    "whole rows": lambda: LEARNED.plan_rows(GRID, n_rows=40, X_star=X[::9], **PROMISE).release(X, Y),
    "yes/no": lambda: (
        cloakgp.AutoGP(outcome="yes/no", stages=2).plan(X, X_star=X[::9], **PROMISE).release(Y > 0)
    ),
    "classes": lambda: CLASSES.plan(X, X_star=X[::9], **PROMISE).release(np.arange(40) % 3),
    "combined": lambda: cloakgp.combine([RELEASES["known"](), RELEASES["known"]()]),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_too_many_draws_are_refused_with_the_limit(kind, monkeypatch):
    release = RELEASES[kind]()
    each = 3 * len(NEW) if kind == "classes" else len(NEW)
    for n in (10**9, np.int64(10**9), conditioning.MOST_DRAWN // each + 1):
        with pytest.raises(ArgumentError) as refused:
            release.sample(NEW, n)
        assert refused.value.name == "n"
        assert str(conditioning.MOST_DRAWN // each) in refused.value.expected
    monkeypatch.setattr(conditioning, "MOST_DRAWN", 4 * each)
    assert len(release.sample(NEW, 4)) == 4
    with pytest.raises(ArgumentError):
        release.sample(NEW, 5)


def test_the_estimator_names_its_own_argument():
    model = cloakgp.PrivateGPRegressor(bounds=(-2.0, 2.0), **PROMISE, kernel=EQ(2.0), noise=0.1).fit(X, Y)
    with pytest.raises(ArgumentError) as refused:
        model.sample_y(NEW, 10**9)
    assert refused.value.name == "n_samples"


@pytest.mark.parametrize("kind", RELEASES)
def test_draws_at_too_many_inputs_are_refused(kind, monkeypatch):
    """One draw needs the covariances of all of its numbers."""
    release = RELEASES[kind]()
    monkeypatch.setattr(conditioning, "MOST_TOGETHER", 6)
    with pytest.raises(ArgumentError) as refused:
        release.sample(NEW, 1)
    assert refused.value.name == "X"
