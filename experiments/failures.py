"""Data on which a release could be wrong without saying so: skewed outcomes, idle inputs, careless bounds.

    python experiments/failures.py [--cases skewed zeros ...] [--releases 100] [--epsilon 1] [--processes 2]

Every case is generated, so the curve is known. For each it prints, over that many releases of fresh data and
fresh noise (from a seed: nothing here is private): the error of the mean against the curve, its bias as a
share of the curve's mean, how many true means the 95 % intervals for the mean hold, the share of the curve's
variance that is explained (R2, and how many releases are below 0.9), the learned noise beside the true one,
and seconds of the processor per release.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from cloakgp import AutoGP
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.testing import insecure_seed

one_blas_thread_for_good()  # processes fill the cores already


class Case(NamedTuple):
    """Inputs, outcomes and curve of one kind of table."""

    bounds: tuple[float, float]
    inputs: Callable
    curve: Callable
    outcomes: Callable
    noise: float = np.nan


def _uniform(n, high=90.0, columns=1):
    return lambda rng: rng.uniform(0, high, (n, columns))


def _gaussian(std):
    return lambda f, x, rng: f + std * rng.normal(size=len(f))


def _lognormal(std):
    """Of this mean, whatever the std of the logarithms."""
    return lambda f, x, rng: f * np.exp(std * rng.normal(size=len(f)) - std**2 / 2)


def _often_zero(share, std):
    def draw(f, x, rng):
        some = rng.uniform(size=len(f)) < share(x[:, 0])
        return some * f / share(x[:, 0]) * np.exp(std * rng.normal(size=len(f)) - std**2 / 2)

    return draw


def _waves(x):
    return 40 * np.exp(0.5 * np.sin(x[:, 0] / 14))


def _heights(x):
    return 120 + 20 * np.sin(x[:, 0] / 14)


def _costs(x):
    return (0.2 + 0.4 * x[:, 0] / 90) * np.exp(6.5 + x[:, 0] / 90)


CASES = {
    "skewed": Case((0, 500), _uniform(1500), _waves, _lognormal(0.8)),
    "zeros": Case((0, 500), _uniform(1500), _waves, _often_zero(lambda x: 0.5 + 0 * x, 0.7)),
    "ones": Case(
        (0, 1),
        _uniform(1500),
        lambda x: 0.04 + 0.12 / (1 + np.exp(-(x[:, 0] - 45) / 8)),
        lambda f, x, rng: (rng.uniform(size=len(f)) < f) * 1.0,
    ),
    "costs": Case((0, 20_000), _uniform(1500), _costs, _often_zero(lambda x: 0.2 + 0.4 * x / 90, 1.0)),
    "incomes": Case(
        (0, 400_000),
        _uniform(1500),
        lambda x: np.exp(10.32 + 0.6 * np.sin(x[:, 0] / 14)),
        _lognormal(0.8),
    ),
    "heights": Case((0, 250), _uniform(1000), _heights, _gaussian(8.0), 8.0),
    "ten": Case((-1130, 1370), _uniform(1000), _heights, _gaussian(8.0), 8.0),
    "hundred": Case((-12_380, 12_620), _uniform(1000), _heights, _gaussian(8.0), 8.0),
    "wave": Case(
        (-30, 50),
        lambda rng: np.arange(1461.0)[:, None],
        lambda x: 16 - 9 * np.cos(2 * np.pi * x[:, 0] / 365.25),
        _gaussian(3.5),
        3.5,
    ),
    "idle": Case(
        (0, 100),
        _uniform(20_000, 1.0, 8),
        lambda x: 50 + 15 * np.sin(3 * x[:, 0]) + 10 * x[:, 1],
        _gaussian(5.0),
        5.0,
    ),
    "idle few": Case(
        (0, 100),
        _uniform(800, 1.0, 4),
        lambda x: 50 + 15 * np.sin(3 * x[:, 0]) + 10 * x[:, 1],
        _gaussian(5.0),
        5.0,
    ),
}


class Result(NamedTuple):
    """Of one release."""

    square: float
    bias: float
    held: float
    explained: float
    noise: float
    seconds: float


def release_once(name, epsilon, stages, seed):
    """Fresh data, fresh noise."""
    case, rng = CASES[name], np.random.default_rng([seed, len(name)])
    x = case.inputs(rng)
    y, low, high = case.outcomes(case.curve(x), x, rng), x.min(axis=0), x.max(axis=0)
    at = np.linspace(low, high, 60) if x.shape[1] == 1 else rng.uniform(low, high, (200, x.shape[1]))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with insecure_seed(seed):
            plan = AutoGP(case.bounds, stages=stages).plan(x, X_star=at, epsilon=epsilon)
            released = plan.release(y)

            mean, std = released.predict(at, return_std=True)
    seconds, f = time.process_time() - start, case.curve(at)
    square = float(np.mean((mean - f) ** 2))
    held = float(np.mean(np.abs(mean - f) < 1.96 * std))
    noise = float(np.sqrt(released.learned.noise))
    return Result(
        square, float(np.mean(mean - f) / f.mean()), held, 1 - square / float(f.var()), noise, seconds
    )


def show(name, results):
    """One line."""
    square, bias, held, explained, noise, seconds = np.array(results).T
    rmse, n, true = np.sqrt(square.mean()), len(square), CASES[name].noise
    words = [
        f"RMSE {rmse:.4g} (s.e. {square.std() / np.sqrt(n) / 2 / rmse:.2g})",
        f"bias {bias.mean():+.1%} (s.e. {bias.std() / np.sqrt(n):.1%})",
        f"held {held.mean():.1%}",
        f"R2 {np.median(explained):.3f} (worst {explained.min():.3f})",
        f"{np.sum(explained < 0.9)} of {n} below 0.9",
    ]
    if np.isfinite(true):
        words.append(
            f"noise {noise.mean():.3g} ({noise.min() / true:.2f} to {noise.max() / true:.2f} times {true:g})"
        )
    print(f"{name:9}: {', '.join(words)}, {np.median(seconds):.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--stages", type=int)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        tasks = {}
        for name in asked.cases:
            one = partial(release_once, name, asked.epsilon, asked.stages)
            tasks[name] = [pool.submit(one, asked.seed + seed) for seed in range(asked.releases)]
        for name, found in tasks.items():
            show(name, [one.result() for one in found])


if __name__ == "__main__":
    main()
