"""One BLAS thread, whatever of cloakgp is called, and as many as before afterwards (`rows/blas.py`).

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
from cloakgp.kernels import EQ
from cloakgp.rows import blas

pytestmark = pytest.mark.usefixtures("few_models")

RNG = np.random.default_rng(0)
X, S, NEW = RNG.uniform(0, 10, (60, 1)), np.linspace(0, 10, 5)[:, None], np.linspace(1, 9, 7)[:, None]
Y, BOUNDS = np.sin(X[:, 0]), (-2.0, 2.0)
KERNEL = EQ(2.0)
KNOWN, OTHER = cloakgp.GP(KERNEL, 0.1, BOUNDS), cloakgp.GP(EQ(5.0), 0.2, BOUNDS)
LEARNED = cloakgp.AutoGP(BOUNDS, stages=2)
EDGES, GRID = np.linspace(0, 10, 6), cloakgp.Grid({"x": (0, 10)}, cells=8)
PROMISE = {"epsilon": 1.0, "delta": 1e-3}

RELEASES = {
    "exact": lambda: KNOWN.plan(X, X_star=S, **PROMISE).release(Y),
    "posterior": lambda: KNOWN.plan(X, X_star=S, design="posterior", **PROMISE).release(Y),
    "inducing": lambda: cloakgp.GP(KERNEL, 0.1, BOUNDS, inducing=8).plan(X, X_star=S, **PROMISE).release(Y),
    "leverage": lambda: (
        cloakgp.GP(KERNEL, 0.1, BOUNDS, downweight="leverage").plan(X, X_star=S, **PROMISE).release(Y)
    ),
    "people": lambda: KNOWN.plan(X, X_star=S, people=np.arange(60) // 2, **PROMISE).release(Y),
    "function": lambda: KNOWN.plan_function(X, **PROMISE).release(Y),
    "learned": lambda: LEARNED.plan(X, X_star=S, **PROMISE).release(Y),
    "learned further": lambda: LEARNED.plan(
        X, X_star=S, given=[KNOWN.plan(X, X_star=S, **PROMISE).release(Y)], **PROMISE
    ).release(Y),
    "whole rows": lambda: LEARNED.plan_rows(GRID, n_rows=60, X_star=S, **PROMISE).release(X, Y),
    "yes/no": lambda: cloakgp.AutoGP(outcome="yes/no", stages=2).plan(X, X_star=S, **PROMISE).release(Y > 0),
    "classes": lambda: (
        cloakgp.AutoGP(outcome="classes", classes=("a", "b", "c"), stages=2)
        .plan(X, X_star=S, **PROMISE)
        .release(np.resize(["a", "b", "c"], 60))
    ),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_the_library(kind, tmp_path):
    with watched() as several:
        release = RELEASES[kind]()
        _ = release.plan.noise_at(NEW) if hasattr(release.plan, "noise_at") else release.plan.expected_error
        release.predict(NEW, return_std=True)
        release.uncertainty(NEW, include_noise=False)
        release.sample(NEW, 3)
        release.released_at(S)
        release.check_model()
        release.save(tmp_path / "a.cloak")
        cloakgp.verify(tmp_path / "a.cloak")
        cloakgp.load(tmp_path / "a.cloak").predict(NEW)
        if kind not in ("yes/no", "classes"):
            release.evidence(KNOWN)
            release.remodel(OTHER).predict(NEW)
            release.learn().predict(NEW)
    assert several == set()


OTHERS = {
    "compare": lambda: KNOWN.planner(X, X_star=S).compare(**PROMISE),
    "preview": lambda: KNOWN.planner(X, X_star=S).preview(**PROMISE),
    "combine": lambda: cloakgp.combine([RELEASES["exact"](), RELEASES["exact"]()]).predict(NEW),
    "select": lambda: cloakgp.plan_selection([KNOWN, OTHER], X, epsilon=1.0).select(Y),
    "bins": lambda: (
        binning.plan(
            X, X_star=S, edges=[EDGES], bounds=BOUNDS, predict="gp", kernel=KERNEL, noise=0.1, epsilon=1.0
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
    monkeypatch.setattr(blas, "LARGE", 59)
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
from cloakgp.rows.blas import one_blas_thread
with one_blas_thread():
    import scipy.linalg
    with one_blas_thread():
        inside = [library["num_threads"] for library in threadpool_info()]
print(inside, [library["num_threads"] for library in threadpool_info()])
"""
    env = {"OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split("] [") == ["[1, 1", "2, 2]\n"]
