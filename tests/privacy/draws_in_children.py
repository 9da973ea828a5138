"""Run by ``test_fork.py`` as a program: release the same data in many processes and threads, print every z.

All is done twice, "secure" and "insecure"; the latter has the insecure seed of ``cloakgp.testing`` in force
everywhere: the planted bug.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from privacy_helpers import small_plan

from cloakgp import testing

CHILDREN, RELEASES = 3, 3
MODES = ("secure", "insecure")
FORKS = ("os.fork", "fork") if hasattr(os, "fork") else ()


def seed(mode):
    """The insecure seed, or nothing."""
    return testing.insecure_seed(5) if mode == "insecure" else nullcontext()


def draws(plan):
    """A few releases of the same data."""
    return [plan.release(np.full(6, 0.25)).z.tolist() for _ in range(RELEASES)]


def draws_on_its_own(job):
    """In a process or thread that inherits no seed."""
    plan, mode = job
    with seed(mode):
        return draws(plan)


def by_os_fork(plan):
    """Children that inherit all of the parent's memory, mid-stream."""
    results = []
    for _ in range(CHILDREN):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(draws(plan)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            results.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    return results


def everywhere(kind, mode):
    plan = small_plan()
    if kind == "os.fork":
        with seed(mode):
            before = draws(plan)
            results = [before, *by_os_fork(plan), draws(plan)]
    elif kind == "fork":
        with seed(mode):
            before = draws(plan)
            with multiprocessing.get_context("fork").Pool(CHILDREN) as pool:
                # One batch for each process: a worker that took two would have drawn on.
                results = [before, *pool.map(draws, [plan] * CHILDREN, chunksize=1)]
    else:
        jobs = [(plan, mode)] * CHILDREN
        with ThreadPoolExecutor(CHILDREN) as pool:
            results = [draws_on_its_own(jobs[0]), *pool.map(draws_on_its_own, jobs)]
    return results


def spawned():
    """In processes that begin with nothing: three, for either mode one after the other."""
    plan = small_plan()
    with multiprocessing.get_context("spawn").Pool(CHILDREN) as pool:
        jobs = {mode: [(plan, mode)] * CHILDREN for mode in MODES}
        return {
            mode: [draws_on_its_own(jobs[mode][0]), *pool.map(draws_on_its_own, jobs[mode], chunksize=1)]
            for mode in MODES
        }


if __name__ == "__main__":
    found = {kind: {mode: everywhere(kind, mode) for mode in MODES} for kind in FORKS}
    found["spawn"] = spawned()
    found["threads"] = {mode: everywhere("threads", mode) for mode in MODES}
    print(json.dumps(found))
