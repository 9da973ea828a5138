"""How large release files are, and how long it takes to verify them.

    python benchmarks/files.py [--rows 21613] [--points 144] [--inducing 200]

Generated rows in two columns, as of houses in a county. Prints each file's size, what its largest members
take of it, and the time that `verify` takes beside that of the plan; in brackets, and for the goal,
processor time, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import zipfile

import numpy as np

import cloakgp
from cloakgp.kernels import EQ
from designs import clustered_city

GOAL_MB, GOAL_S = 3.0, 5.0
PROMISE = {"epsilon": 1.0, "delta": 1e-6}


def timed(function):
    """Seconds, processor seconds, and the result."""
    start, used = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - start, time.process_time() - used, result


def described(name, planning, release):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.cloak")
        release.save(path)
        size = os.path.getsize(path) / 1e6
        verifying, used, result = timed(lambda: cloakgp.verify(path))
        with zipfile.ZipFile(path) as archive:
            members = sorted(archive.infolist(), key=lambda member: -member.file_size)[:4]
    shown = ", ".join(f"{member.filename} {member.file_size / 1e6:.2f}" for member in members)
    goal = "met" if size < GOAL_MB and used < GOAL_S else "missed"
    print(
        f"{name:18}{size:6.2f} MB  plan {planning:5.1f} s  verify {verifying:5.1f} s ({used:.1f} s)  "
        f"goal {goal}  [{shown}]  complete: {result.complete}",
        flush=True,
    )


def main(rows, points, inducing):
    X, _ = clustered_city(rows)
    y = np.clip(np.sin(X[:, 0] / 15) + 0.3 * np.random.default_rng(0).normal(size=rows), -3, 4)
    axis = np.linspace(0, 100, round(points**0.5))
    X_star = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    gp = cloakgp.GP(EQ(12.0), noise=0.1, bounds=(-3.0, 4.0), inducing=inducing)
    print(f"{rows:,} rows, {len(X_star)} test points, {inducing} inducing inputs")
    for design in ("mse", "posterior"):
        planning, _, plan = timed(lambda design=design: gp.plan(X, X_star=X_star, design=design, **PROMISE))
        described(design, planning, plan.release(y))
    planning, _, plan = timed(lambda: cloakgp.AutoGP(bounds=(-3.0, 4.0)).plan(X, X_star=X_star, **PROMISE))
    described("AutoGP, in stages", planning, plan.release(y))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=21_613)
    parser.add_argument("--points", type=int, default=144)
    parser.add_argument("--inducing", type=int, default=200)
    main(**vars(parser.parse_args()))
