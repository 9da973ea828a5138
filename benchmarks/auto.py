"""How long releases in stages take: heights, a table of 5,000 rows and four columns, and many rows.

    python benchmarks/auto.py [--rows 1000000] [--inducing 300]

Data are generated. Times are the processor's, over all threads, since machines are shared; the last ones also
as ratios to the plain sum K_uf K_fu over the same rows in the same run, which is what a GP with inducing
inputs computes that looks at every row. Memory is the process's largest resident size, the data included.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from streaming import data, grid, plain_sum

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ


def timed(function):
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def report(name, model, X, y, X_star, delta):
    """Prints a line; seconds of plan and release, and the release."""
    planning, plan = timed(lambda: model.plan(X, X_star=X_star, epsilon=1.0, delta=delta))
    releasing, release = timed(lambda: plan.release(y))
    predicting, _ = timed(lambda: release.predict(X_star, return_std=True))
    print(
        f"{name}: plan {planning:.1f} s, release {releasing:.1f} s in {len(release.stages)} stages, "
        f"predictions {predicting:.1f} s",
        flush=True,
    )
    return planning + releasing, release


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inducing", type=int, default=300)
    asked = parser.parse_args()

    X, y = make_kung_like()
    report("287 heights, 76 test points", cloakgp.AutoGP((0, 250)), X, y, np.arange(0.0, 76.0), 1e-4)

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 4))
    y = 100 + 20 * np.sin(6 * X[:, 0]) + 10 * X[:, 1] + 5 * rng.normal(size=5000)
    points = rng.uniform(size=(200, 4))
    report("5,000 rows, 4 columns, 200 test points", cloakgp.AutoGP((0, 250)), X, y, points, 1e-5)

    X, y = data(asked.rows)
    model = cloakgp.AutoGP((-3.0, 4.0), inducing=asked.inducing)
    name = f"{asked.rows:,} rows, 2 columns, {asked.inducing} support points, 144 test points"
    seconds, release = report(name, model, X, y, grid(144), 1e-7)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    plain, _ = timed(lambda: plain_sum(EQ(0.2), np.asarray(release.plan.rule.support), X))
    stages = len(release.stages)
    print(
        f"  {seconds / plain:.1f} times the plain sum ({plain:.1f} s) in all, {seconds / plain / stages:.1f} "
        f"times for each stage; {memory:.1f} GB of memory",
        flush=True,
    )


if __name__ == "__main__":
    main()
