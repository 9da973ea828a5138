"""Whether the error that a plan forecasts is the one that comes out: their ratio, over generated tables.

    python experiments/forecast.py [--releases 5] [--epsilon 0.2 1 3] [--processes 2]

The tables are those of failures.py, whose curves are known, but for `idle`, which takes long. For each table
and epsilon it prints the forecast error at the plan's own test points (root mean square), the actual one
against the curve, and their ratio; then the median of all ratios, and the quartiles.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from failures import CASES

from cloakgp import AutoGP
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.testing import insecure_seed

one_blas_thread_for_good()  # processes fill the cores already
TABLES = [name for name in CASES if name != "idle"]


def errors(name, epsilon, seed):
    """Forecast and actual, at test points that the plan chooses."""
    case, rng = CASES[name], np.random.default_rng([seed, len(name)])
    x = case.inputs(rng)
    y = case.outcomes(case.curve(x), x, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with insecure_seed(seed):
            plan = AutoGP(case.bounds).plan(x, epsilon=epsilon)
            release = plan.release(y)
    actual = release.predict(plan.X_star) - case.curve(plan.X_star)
    return [float(np.sqrt(np.mean(np.square(each)))) for each in (plan.expected_error, actual)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.2, 1.0, 3.0])
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    ratios = []
    with ProcessPoolExecutor(asked.processes) as pool:
        for name in asked.tables:
            for epsilon in asked.epsilon:
                tasks = [pool.submit(errors, name, epsilon, seed) for seed in range(asked.releases)]
                forecast, actual = np.median([task.result() for task in tasks], axis=0)
                ratios.append(forecast / actual)
                words = f"forecast {forecast:9.4g}, actual {actual:9.4g}, ratio {ratios[-1]:.2f}"
                print(f"{name:9} epsilon {epsilon:3g}: {words}", flush=True)
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    print(f"ratio: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}")


if __name__ == "__main__":
    main()
