"""One BLAS thread, whatever of cloakgp is called, and as many as before afterwards (`data/blas.py`).

The command line's test is in tests/cli/test_cli_path.py, the app's in tests/app/test_api_path.py.
"""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import cloakgp
from blas_watch import watched
from cloakgp import binning
from cloakgp.data import blas
from cloakgp.kernels import EQ
from cloakgp.model.outcome import REAL
from release.test_every_kind import AT, AUTO, BOUNDS, HIDDEN, KINDS, PROMISE, Kind, X, Y

pytestmark = pytest.mark.usefixtures("few_models")

S, NEW = X[:3], np.linspace(1.0, 8.0, 7)[:, None]
KERNEL = EQ(2.0)
KNOWN, OTHER = cloakgp.GP(KERNEL, 0.1, BOUNDS), cloakgp.GP(EQ(5.0), 0.2, BOUNDS)
KINDS_HERE = {
    **KINDS,
    "learned further": Kind(
        lambda: AUTO.plan(X, given=[KNOWN.plan(X, X_star=S, **PROMISE).release(Y)], **AT), []
    ),
}


@pytest.mark.parametrize("kind", KINDS_HERE)
def test_the_library(kind, tmp_path):
    own = KINDS_HERE[kind]
    with watched() as several:
        plan = own.plan()
        _, _ = plan.noise_at(plan.X_star) if plan.alone else plan.expected_error, plan.noise_std
        release = plan.release(y=own.outcomes, **own.private)
        release.released_at(release.X_star)
        release.save(tmp_path / "a.cloak")
        cloakgp.verify(tmp_path / "a.cloak")
        loaded, at = cloakgp.load(tmp_path / "a.cloak"), release.X_star[[0, 1, 0]]
        if kind not in HIDDEN:
            for asked in (release, loaded):
                asked.predict(at, return_std=True)
            release.uncertainty(at, include_noise=False)
            release.sample(at, 3)
            release.check_model()
        if plan.rule.outcome == REAL and plan.columns is None and kind not in HIDDEN:
            release.evidence(KNOWN)
            release.remodel(OTHER).predict(at)
            release.learn().predict(at)
    assert several == set()


def of_one(name):
    return KINDS[name].plan().release(Y)


OTHERS = {
    "compare": lambda: KNOWN.planner(X, X_star=S).compare(**PROMISE),
    "preview": lambda: KNOWN.planner(X, X_star=S).preview(**PROMISE),
    "combine": lambda: cloakgp.combine([of_one("mse"), of_one("mse")]).predict(NEW),
    "select": lambda: cloakgp.plan_selection([KNOWN, OTHER], X, epsilon=1.0).select(Y),
    "bins": lambda: (
        binning.plan(
            X,
            X_star=S,
            edges=[np.linspace(0, 10, 6)],
            bounds=BOUNDS,
            predict="gp",
            kernel=KERNEL,
            noise=0.1,
            epsilon=1.0,
        )
        .release(Y)
        .predict(NEW)
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_rest_of_the_library(what):
    with watched() as several:
        OTHERS[what]()
    assert several == set()


def test_a_large_exact_plan_has_all_threads(monkeypatch):
    """Or what is called here would say nothing about the limit."""
    monkeypatch.setattr(blas, "LARGE", len(X) - 1)
    with watched() as several:
        KNOWN.plan(X, X_star=S, **PROMISE)
    assert several


def test_the_limit_holds_until_the_last_one_leaves():
    """Also where that is another of Python's threads than the first, as in the app."""
    inside, alone = threading.Event(), threading.Event()

    def last() -> None:
        with blas.one_blas_thread():
            inside.set()
            alone.wait(60)
            KERNEL(X)

    with watched() as several:
        other = threading.Thread(target=last)
        with blas.one_blas_thread():
            other.start()
            inside.wait(60)
        alone.set()
        other.join()
    assert several == set()


def test_a_library_that_is_loaded_within_is_limited_when_somebody_asks_again():
    code = """
from threadpoolctl import threadpool_info
from cloakgp.data.blas import one_blas_thread
with one_blas_thread():
    import scipy.linalg
    with one_blas_thread():
        inside = [library["num_threads"] for library in threadpool_info()]
print(inside, [library["num_threads"] for library in threadpool_info()])
"""
    env = {"OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split("] [") == ["[1, 1", "2, 2]\n"]
