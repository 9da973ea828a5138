"""What a plan of some thousands of rows takes, and what the next one takes for another promise.

    python benchmarks/planners.py [--rows 17600] [--inducing 300] [--points 289]

Clustered rows in two columns. One planner for each design: its first plan, a plan for another epsilon, and a
preview for another, which makes no integers. Times are also ratios to the plain sum K_uf K_fu over the same
rows, in one run.
"""

from __future__ import annotations

import argparse

import numpy as np
from streaming import plain_sum, timed

import cloakgp
from cloakgp.kernels import EQ
from designs import clustered_city

GOAL = 1.0  # seconds of a preview


def main(rows, inducing, points):
    X, _ = clustered_city(rows)
    axis = np.linspace(0, 100, round(points**0.5))
    X_star = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    gp = cloakgp.GP(EQ(12.0), noise=0.1, bounds=(-3.0, 4.0), inducing=inducing).with_inducing(X)
    plain = timed(lambda: plain_sum(gp.kernel, np.asarray(gp.inducing), X))[0]
    print(f"{rows:,} rows, {inducing} inducing inputs, {len(X_star)} test points")
    print(f"{'':34}{'seconds':>9}{'of all cores':>14}{'ratio to the plain sum':>24}")
    for design in ("mse", "posterior"):
        planner = gp.planner(X, X_star=X_star)
        asked = {
            "first plan": lambda design=design, planner=planner: planner.plan(epsilon=1.0, design=design),
            "another epsilon": lambda design=design, planner=planner: planner.plan(
                epsilon=0.7, design=design
            ),
            "preview": lambda design=design, planner=planner: planner.preview(epsilon=0.8, design=design),
        }
        for name, function in asked.items():
            seconds, found = timed(function)
            error = np.sqrt(np.mean(found.expected_error**2))
            goal = f"  goal {'met' if seconds[0] < GOAL else 'missed'}" if name == "preview" else ""
            print(
                f"{design + ', ' + name:34}{seconds[0]:9.2f}{seconds[1]:14.2f}{seconds[1] / plain[1]:24.1f}"
                f"  expected error {error:.4g}{goal}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=17_600)
    parser.add_argument("--inducing", type=int, default=300)
    parser.add_argument("--points", type=int, default=289)
    main(**vars(parser.parse_args()))
