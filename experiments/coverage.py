"""Yes/no outcomes and counts: how many true probabilities or rates the 95 % intervals hold, and their error.

    python experiments/coverage.py [--outcome yes/no count] [--sets 600] [--learned 60]

Generated data, from a model of f. First it is known, and f is about several levels: so many data sets of 120
rows, epsilon 3, delta 10⁻³, 8 test points. Then nothing is known but bounds, the model is learned in
stages, and f is about one level: data sets of 200 rows. Prints the share that the intervals hold with its
standard error over data sets, and the error of predictions over what the plan had said.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import ndtr

from cloakgp import GP, AutoGP
from cloakgp.core.progress import Progress
from cloakgp.kernels import EQ, Constant

KERNEL = EQ(2.0, variance=1.5) + Constant(2.0)
CALM = EQ(2.0, variance=0.6) + Constant(0.3)  # a rate's logarithm
POINTS = np.linspace(0, 10, 8)[:, None]
MOST = 50
PROMISE = {"epsilon": 3.0, "delta": 1e-3}


def drawn(kernel, level, rows, outcome, rng):
    """Inputs, outcomes, and the truth at the test points."""
    X = rng.uniform(0, 10, (rows, 1))
    everywhere = np.vstack([X, POINTS])
    K = np.asarray(kernel(everywhere)) + 1e-8 * np.eye(len(everywhere))
    f = level + np.linalg.cholesky(K) @ rng.normal(size=len(K))
    if outcome == "count":
        rate = np.minimum(np.exp(f), MOST)
        return X, np.minimum(rng.poisson(rate[:rows]), MOST), rate[rows:]
    return X, rng.uniform(size=rows) < ndtr(f[:rows]), ndtr(f[rows:])


def models(outcome):
    """What is known, where f is, how many rows there are, and a word for it."""
    if outcome == "count":
        yield GP(CALM, 1.0, (0, MOST), mean=1.5, outcome=outcome), CALM, 1.5, 120, "known model, level 1.5"
        yield AutoGP((0, MOST), outcome=outcome), CALM, 1.5, 200, "learned, level 1.5"
        return
    for level in (0.0, -2.5, 3.0):
        known = GP(KERNEL, mean=level, outcome=outcome)
        yield known, KERNEL, level, 120, f"known model, level {level:g}"
    yield AutoGP(outcome=outcome), KERNEL, -0.5, 200, "learned, level -0.5"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outcome", choices=["yes/no", "count"], nargs="+", default=["yes/no", "count"])
    parser.add_argument("--sets", type=int, default=600, help="data sets where the model is known")
    parser.add_argument("--learned", type=int, default=60, help="data sets where it is learned")
    asked = parser.parse_args()
    for outcome in asked.outcome:
        for model, kernel, level, rows, words in models(outcome):
            sets = asked.sets if isinstance(model, GP) else asked.learned
            held, errors, said = [], [], []
            with Progress("data sets", sets) as progress:
                for number in range(sets):
                    X, y, truth = drawn(kernel, level, rows, outcome, np.random.default_rng([7, number]))
                    plan = model.plan(X, X_star=POINTS, **PROMISE)
                    release = plan.release(y)
                    low, high = release.interval(POINTS).T
                    held.append(np.mean((low <= truth) & (truth <= high)))
                    errors.append(np.mean((release.predict(POINTS) - truth) ** 2))
                    said.append(np.mean(plan.expected_error**2))
                    progress.advance()
            se = np.std(held, ddof=1) / np.sqrt(sets)
            ratio = np.sqrt(np.mean(errors) / np.mean(said))
            print(
                f"{outcome}, {words}, {sets} data sets: 95 % intervals hold {100 * np.mean(held):.1f} % "
                f"(se {100 * se:.1f}); error over what was expected {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
