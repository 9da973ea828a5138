"""Run by ``test_fork.py`` as a program: release the same data in many processes and threads, print every z.

Usage: python draws_in_children.py {os.fork,fork,spawn,threads}

All is done twice, "secure" and "insecure"; the latter has the insecure seed of ``cloakgp.testing`` in force
everywhere: the planted bug.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from privacy_helpers import small_plan

from cloakgp import testing

CHILDREN, RELEASES = 3, 3


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
        before = draws_on_its_own(jobs[0])
        if kind == "threads":
            with ThreadPoolExecutor(CHILDREN) as pool:
                results = [before, *pool.map(draws_on_its_own, jobs)]
        else:
            with multiprocessing.get_context(kind).Pool(CHILDREN) as pool:
                results = [before, *pool.map(draws_on_its_own, jobs, chunksize=1)]
    return results


if __name__ == "__main__":
    print(json.dumps({mode: everywhere(sys.argv[1], mode) for mode in ("secure", "insecure")}))
