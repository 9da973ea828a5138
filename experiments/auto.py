"""Releases in stages with nothing known but bounds: held-out errors on heights, bike trips and house prices.

    CLOAKGP_DATA=folder python experiments/auto.py [--data kung] [--splits 200] [--processes 2]

`--data` is kung (the paper's and careless bounds), citibike (4,900 journeys, as in the paper's table 1),
london, or cliffs (generated data that could go wrong: compared with one stage). For each split one draw of
the noise, since the errors of stages have no closed form; prints the RMSE over all splits with its standard
error, how many held-out outcomes the 95 % intervals hold on average and in the worst split, and the learned
noise. Outcomes to be predicted are clipped to the bounds for the intervals, and for the errors where the data
set's own comparison does so.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np

from cloakgp import AutoGP
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.datasets import (
    CITIBIKE_BOX,
    DatasetError,
    fetch_citibike,
    fetch_kung,
    fetch_london_prices,
    make_bike_like,
    make_city_like,
    make_kung_like,
)

one_blas_thread_for_good()  # processes fill the cores already


class Study(NamedTuple):
    """What is asked of one data set."""

    data: str
    unit: str
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    train: int | None
    test: int
    clipped: bool
    """Whether errors are of clipped outcomes."""
    stages: int | None = None


def kung(epsilon, bounds):
    return Study("kung", "cm", bounds, epsilon, 0.01, None, 50, clipped=False)


STUDIES = {
    "kung": [kung(epsilon, bounds) for bounds in ((58.27, 158.27), (0.0, 250.0)) for epsilon in (1.0, 0.2)],
    "citibike": [Study("citibike", "s", (0.0, 2000.0), e, 0.01, 4900, 100, True) for e in (1.0, 0.2)],
    "london": [Study("london", "£1000", (100.0, 500.0), e, 0.01, 2000, 200, True) for e in (1.0, 0.2)],
}
CLIFFS = ("step", "constant", "two clusters", "heavy tails", "five rows", "one row", "beyond the bounds")


@cache
def table(name):
    """Inputs, outcomes, and words for them."""
    fetch, make = {
        "kung": (fetch_kung, make_kung_like),
        "citibike": (fetch_month, lambda: make_bike_like(50_000)),
        "london": (fetch_london_prices, lambda: make_city_like(5000)),
    }[name]
    words = {"kung": "!Kung women", "citibike": "Citi Bike journeys", "london": "London prices"}[name]
    data = None
    if os.environ.get("CLOAKGP_DATA"):
        try:
            data = fetch()
        except FileNotFoundError as error:
            print(f"No real data: {error}\n", file=sys.stderr)
    if data is None:
        data, words = make(), f"GENERATED look-alikes of {words}"
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
    return X.reshape(len(y), -1), y / 1000 if name == "london" else y, words


def fetch_month():
    """The paper's month, or the one that the folder holds."""
    try:
        return fetch_citibike("2016-06", box=CITIBIKE_BOX)
    except DatasetError:
        return fetch_citibike("2017-06", box=CITIBIKE_BOX)


def cliff(name, rng):
    """Inputs, outcomes and the curve of data that could go wrong."""
    n = {"five rows": 5, "one row": 1}.get(name, 150)
    X = rng.uniform(0, 10, size=(n, 1))
    if name == "two clusters":
        X = np.where(rng.uniform(size=(n, 1)) < 0.5, X / 20, 9.5 + X / 20)
    noise = 3 * (rng.standard_t(2, size=n) if name == "heavy tails" else rng.normal(size=n))
    curve = {
        "step": lambda x: np.where(x < 5, 20.0, 80.0),
        "constant": lambda x: np.full_like(x, 37.0),
        "beyond the bounds": lambda x: 400 + 5 * x,
    }.get(name, lambda x: 50 + 30 * np.sin(x))
    X_test = np.linspace(X.min(), X.max(), 20)[:, None] if n > 1 else X
    return X, curve(X[:, 0]) + noise, X_test, curve(X_test[:, 0]) + 3 * rng.normal(size=len(X_test))


def split(study, number):
    """Mean squared error, share of outcomes held by the intervals, learned noise std."""
    rng = np.random.default_rng([2026, number])
    if study.data in CLIFFS:
        X, y, X_test, y_test = cliff(study.data, rng)
    else:
        X, y, _ = table(study.data)
        rows = rng.permutation(len(X))
        if study.data == "citibike":  # the folds of experiments/paper/table1.py
            rows = np.random.default_rng([0, number]).choice(len(X), study.train + study.test, replace=False)
        test = rows[: study.test]
        train = rows[study.test :] if study.train is None else rows[study.test : study.test + study.train]
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    clipped = np.clip(y_test, *study.bounds)
    plan = AutoGP(study.bounds, stages=study.stages).plan(
        X, X_star=X_test, epsilon=study.epsilon, delta=study.delta
    )
    release = plan.release(y)
    mean, std = release.predict(X_test, return_std=True, include_noise=True)
    error = float(np.mean((mean - (clipped if study.clipped else y_test)) ** 2))
    return error, float(np.mean(np.abs(mean - clipped) < 1.96 * std)), float(np.sqrt(release.learned.noise))


def measured(study, splits, pool, progress):
    results = []
    for result in pool.map(split, [study] * splits, range(splits)):
        results.append(result)
        progress.advance()
    errors, held, noise = np.array(results).T
    rmse = float(np.sqrt(errors.mean()))
    return rmse, float(errors.std() / np.sqrt(len(errors)) / 2 / rmse), held, noise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=[*STUDIES, "cliffs"], default="kung")
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        if asked.data == "cliffs":
            cliffs(asked.splits, pool)
            return
        studies = STUDIES[asked.data]
        print(f"{table(asked.data)[2]}, {asked.splits} splits, nothing known but bounds")
        with Progress("splits", len(studies) * asked.splits) as progress:
            for study in studies:
                rmse, error, held, noise = measured(study, asked.splits, pool, progress)
                low, high = study.bounds
                print(
                    f"  bounds {low:g} to {high:g}, epsilon {study.epsilon:g}, delta {study.delta:g}: "
                    f"RMSE {rmse:.4g} {study.unit} (standard error {error:.2g}); 95 % intervals hold "
                    f"{held.mean():.1%} on average, {held.min():.0%} in the worst split; "
                    f"learned noise {noise.mean():.3g} {study.unit}",
                    flush=True,
                )


def cliffs(splits, pool) -> None:
    print(f"Generated data that could go wrong, bounds 0 to 100, delta 1e-3, {splits} splits each: RMSE")
    with Progress("splits", 4 * len(CLIFFS) * splits) as progress:
        for epsilon in (1.0, 0.2):
            for name in CLIFFS:
                study = Study(name, "", (0.0, 100.0), epsilon, 1e-3, None, 0, clipped=True)
                staged = measured(study, splits, pool, progress)[0]
                once = measured(study._replace(stages=1), splits, pool, progress)[0]
                ratio = f"in one stage {once:.3g} (ratio {staged / once:.2f})"
                print(f"  epsilon {epsilon:g}, {name}: {staged:.3g}, {ratio}", flush=True)


if __name__ == "__main__":
    main()
