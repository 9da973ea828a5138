"""What rows lose where they are put into cells, beside all of them written down.

    python experiments/cells.py [--rows 20000] [--inducing 200] [--draws 5]

Generated data whose truth is known: four inputs that are spread like the ends of bike trips, and eight, of
which two matter most. A GP with inducing inputs is planned twice: as the library does, which puts more than
4,096 distinct rows into cells, and with each distinct row told apart. Prints how long each plan took, the
error of its predictions against the truth, and the error that the plan had said: for a usual epsilon, and for
a large one, where little noise is left and the loss by cells (lemma 13f of docs/proofs.md) would show more.
"""

from __future__ import annotations

import argparse
import time
import warnings
from unittest import mock

import numpy as np

from cloakgp import GP
from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.data import cells
from cloakgp.datasets import make_bike_like
from cloakgp.kernels import EQ

NOISE_STD = 0.5


def bike_trips(n, random):
    """Where trips start and end, in units of their spread, and a smooth function of that."""
    X, _ = make_bike_like(n)
    X = (X + random.normal(scale=1e-4, size=X.shape) - X.mean(axis=0)) / X.std(axis=0)
    length = np.sqrt((X[:, 0] - X[:, 2]) ** 2 + (X[:, 1] - X[:, 3]) ** 2)
    return X, np.sin(length) + 0.3 * X[:, 0]


def eight_inputs(n, random):
    X = random.uniform(size=(n, 8))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.2 * X[:, 2:] @ np.linspace(1, 0, 6)


DATA = {
    "bike trips, 4 inputs": (bike_trips, EQ((1.0,) * 4)),
    "8 inputs": (eight_inputs, EQ((0.7, 0.9, *(3.0,) * 6))),
}


def planned(gp, X, **asked):
    start = time.perf_counter()
    plan = gp.plan(X, **asked)
    return plan, time.perf_counter() - start


def main(rows: int, inducing: int, draws: int) -> None:
    warnings.simplefilter("ignore", WeakPromiseWarning)
    print(f"{rows} rows, {inducing} inducing inputs, {draws} draws of the noise, outcomes' std {NOISE_STD}")
    print(
        f"{'data':<22}{'epsilon':>8}  {'rows are':<12}{'columns':>8}{'plan':>9}{'error':>9}{'expected':>10}"
    )
    for name, (make, kernel) in DATA.items():
        random = np.random.default_rng(0)
        X, truth = make(rows + 500, random)
        X, X_star, truth, wanted = X[:rows], X[rows:], truth[:rows], truth[rows:]
        y = truth + random.normal(scale=NOISE_STD, size=rows)
        gp = GP(kernel, noise=NOISE_STD**2, bounds=(-4.0, 4.0), inducing=inducing)
        for epsilon in (1.0, 10.0):
            asked = {"X_star": X_star, "epsilon": epsilon, "delta": 1e-6, "design": "posterior"}
            for how, most in (("in cells", cells.MOST_CELLS), ("told apart", rows)):
                with mock.patch.object(cells, "MOST_CELLS", most):
                    plan, took = planned(gp, X, **asked)
                    found = [plan.release(y).predict(X_star) for _ in range(draws)]
                error = float(np.sqrt(np.mean((np.array(found) - wanted) ** 2)))
                expected = float(np.sqrt(np.mean(plan.expected_error**2)))
                columns = plan.measurement.matrix.shape[1]
                figures = f"{columns:>8}{took:>7.1f} s{error:>9.4f}{expected:>10.4f}"
                print(f"{name:<22}{epsilon:>8g}  {how:<12}{figures}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--inducing", type=int, default=200)
    parser.add_argument("--draws", type=int, default=5)
    main(**vars(parser.parse_args()))
