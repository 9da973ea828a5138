"""What the design `posterior` costs beside the GP itself, and how close to the best it comes.

    python benchmarks/posterior.py [--rows 4900] [--points 100]

Generated trips between stations (four inputs), one plan per lengthscale and epsilon. Times are printed as
ratios to the GP's own Gram matrix, Cholesky and solve in this run; `left` is what denoised
predictions leave unknown, as a share of what y could tell, and `bound` what no design can beat.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from cloakgp import designs
from cloakgp.core import calibration
from cloakgp.kernels import EQ
from cloakgp.model.smoothers import ExactGP

LENGTHSCALES = (0.781, 0.312, 0.125, 0.05, 0.02)  # degrees, as in the paper's table
EPSILONS, DELTA = (1.0, 0.5, 0.2), 0.01
VARIANCE, NOISE, WIDTH = 400.0**2, 250.0**2, 2000.0  # seconds of a trip


def trips(n, seed=0):
    """Start and end of n trips between 300 stations, near ones more often."""
    rng = np.random.default_rng(seed)
    stations = np.array([40.74, -73.98]) + rng.normal(size=(300, 2)) * np.array([0.025, 0.02])
    popular = rng.dirichlet(np.ones(300))
    start = rng.choice(300, size=n, p=popular)
    guesses = rng.choice(300, size=(n, 4), p=popular)
    far = np.linalg.norm(stations[guesses] - stations[start][:, None], axis=2)
    end = guesses[np.arange(n), far.argmin(axis=1)]
    return np.hstack([stations[start], stations[end]])


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def plain_gp(kernel, X, X_star):
    gram = kernel(X)
    gram[np.diag_indices_from(gram)] += NOISE
    return cho_solve(cho_factor(gram, lower=True, check_finite=False), kernel(X, X_star), check_finite=False)


def main(rows, points):
    inputs = trips(rows + points)
    X, X_star, weights = inputs[:rows], inputs[rows:], np.ones(points)
    print(f"{rows} rows, {points} test points, four inputs, delta {DELTA}, to a 1 % gap")
    print("lengthscale     design  epsilon  time / GP      left     bound     gap  steps    q")
    for lengthscale in LENGTHSCALES:
        kernel = EQ(lengthscale, variance=VARIANCE)
        base, _ = timed(plain_gp, kernel, X, X_star)
        smoother = ExactGP(kernel, NOISE, X, X_star)
        known = float(smoother.explained_variance.mean())
        for design, epsilon in [("mse", 1.0), ("volume", 1.0), *(("posterior", e) for e in EPSILONS)]:
            s = (WIDTH / calibration.calibrate(epsilon, DELTA)) ** 2
            took, found = timed(designs.solve, design, smoother, weights, 0.01, s)
            line = f"{lengthscale:11}{design:>11}{epsilon:9}{took / base:11.2f}"
            if design == "posterior":
                line += f"{found.objective * s / known:10.3%}{found.lower_bound * s / known:10.3%}"
            else:  # sizes of noise, not comparable with that
                line += f"{'':20}"
            q = found.reconstruction.shape[1]
            print(f"{line}{found.gap:8.2%}{found.iterations:7}{q:5}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4900)
    parser.add_argument("--points", type=int, default=100)
    arguments = parser.parse_args()
    main(arguments.rows, arguments.points)
