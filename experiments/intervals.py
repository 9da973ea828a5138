"""How many new outcomes the 95 % intervals of a release hold, where outcomes are not Gaussian.

    python experiments/intervals.py [--cases gaussian ...] [--epsilon 0.2 1 3] [--rows 500 5000] [--releases
    20]

Every table is generated: one input, a wave, and outcomes about it that are Gaussian, have heavy tails
(Student's t with 2 degrees of freedom), are log-normal, or are zero in half of all cases. New outcomes are
drawn like the rows that were released, and clipped to the bounds as these were. For each case it prints,
over that many releases of fresh data and fresh noise (from a seed: nothing here is private), the share of
new outcomes that are within, below and above the interval; the same of the model's own intervals, which know
nothing of where outcomes fell; and how often the model check was amber.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cloakgp import AutoGP
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.testing import insecure_seed

one_blas_thread_for_good()  # processes fill the cores already
NEW = 4000  # outcomes


def _wave(x):
    return 100 + 25 * np.sin(x / 14)


def _lognormal(mean, rng):
    return mean * np.exp(0.8 * rng.normal(size=len(mean)) - 0.32)


class Case(NamedTuple):
    """Outcomes of one kind."""

    bounds: tuple[float, float]
    outcomes: Callable


CASES = {
    "gaussian": Case((0, 250), lambda x, rng: _wave(x) + 10 * rng.normal(size=len(x))),
    "heavy tails": Case((0, 250), lambda x, rng: _wave(x) + 6 * rng.standard_t(2, size=len(x))),
    "log-normal": Case((0, 500), lambda x, rng: _lognormal(_wave(x) / 2.5, rng)),
    "half zeros": Case((0, 500), lambda x, rng: _lognormal(_wave(x), rng) * (rng.uniform(size=len(x)) < 0.5)),
}


class Result(NamedTuple):
    """Of one release: shares within, below and above, those within the model's own interval, and seconds."""

    held: float
    below: float
    above: float
    by_model: float
    amber: float
    seconds: float


def release_once(name, n, epsilon, seed):
    """Fresh data, fresh noise."""
    case, rng = CASES[name], np.random.default_rng([seed, n, len(name)])
    x, new_x = rng.uniform(0, 90, n), rng.uniform(0, 90, NEW)
    y, new = (np.clip(case.outcomes(at, rng), *case.bounds) for at in (x, new_x))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with insecure_seed(seed):
            released = AutoGP(case.bounds).plan(x, epsilon=epsilon).release(y)
            seconds = time.process_time() - start
            low, high = released.interval(new_x, 0.95, include_noise=True).T
            own = released.learned
            own = replace(own, shape=None) if hasattr(own, "shape") else own
            model_low, model_high = own.interval(new_x, 0.95, include_noise=True).T
            amber = float(not released.check_model().fits)
    held, by_model = np.mean((new >= low) & (new <= high)), np.mean((new >= model_low) & (new <= model_high))
    return Result(held, np.mean(new < low), np.mean(new > high), by_model, amber, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.2, 1.0, 3.0])
    parser.add_argument("--rows", nargs="*", type=int, default=[500, 5000])
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        tasks = {
            (name, n, epsilon): [
                pool.submit(release_once, name, n, epsilon, asked.seed + seed)
                for seed in range(asked.releases)
            ]
            for name in asked.cases
            for n in asked.rows
            for epsilon in asked.epsilon
        }
        for (name, n, epsilon), found in tasks.items():
            each = np.array([one.result() for one in found])
            held, below, above, by_model, amber, seconds = each.mean(axis=0)
            print(
                f"{name:11} {n:5} rows, epsilon {epsilon:3}: held {held:.1%} (worst {each[:, 0].min():.1%}), "
                f"below {below:.1%}, above {above:.1%}; by the model alone {by_model:.1%} "
                f"(worst {each[:, 3].min():.1%}); amber {amber:.0%}; {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
