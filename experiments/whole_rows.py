"""Whole rows protected, inputs included: held-out errors on heights by age, and on London prices.

    CLOAKGP_DATA=folder python experiments/whole_rows.py [--data howell] [--splits 40] [--processes 2]

`--data` is howell (all of Howell's census, 2-year cells) or london (prices by place, 30 x 30 cells; beside a
release that protects outcomes alone). Nothing is known but bounds, a box and the number of rows. For each
split one draw of the noise: prints the RMSE over all splits with its standard error, and how many held-out
outcomes the 95 % intervals hold, on average and in the worst split. `--export folder` writes the London
splits as CSV files instead, for `dp_ebm.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np

from cloakgp import AutoGP, Grid
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.datasets import fetch_london_prices, make_city_like, make_kung_like
from cloakgp.datasets.data_files import local, numbers

one_blas_thread_for_good()  # processes fill the cores already

LONDON = {"easting": (480_000, 580_000), "northing": (130_000, 230_000)}  # 100 km on a side, in m
TRAIN, TEST = 4000, 400


@cache
def howell():
    """Ages, heights, and words for them."""
    file = local(None, ["Howell1.csv", "Howell1.csv.gz"]) if os.environ.get("CLOAKGP_DATA") else None
    if file is None:
        data = make_kung_like()
        return np.asarray(data.X, dtype=float).reshape(-1, 1), np.asarray(data.y), "GENERATED look-alikes"
    table = numbers(file, [["age"], ["height"]])
    return table[:, :1], table[:, 1], "everybody in Howell's census"


@cache
def london():
    """Places, prices in £1000, and words for them."""
    if os.environ.get("CLOAKGP_DATA"):
        data, words = fetch_london_prices(), "London prices"
    else:
        data, words = make_city_like(5000), "GENERATED look-alikes of London prices"
    return np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float) / 1000, words


def heights(number):
    """Mean squared error, and the share of outcomes that the intervals hold."""
    X, y, _ = howell()
    rows = np.random.default_rng([2026, number]).permutation(len(X))
    test, train = rows[:100], rows[100:]
    grid = Grid({"age": (0, 90)}, cells=45)
    plan = AutoGP((40, 190)).plan_rows(grid, len(train), epsilon=1.0, delta=1e-3)
    return scored(plan.release(X[train], y[train]), X[test], y[test])


def london_split(number):
    X, y, _ = london()
    rows = np.random.default_rng([2026, number]).permutation(len(X))
    y = np.clip(y, 100, 500)
    test, train = rows[:TEST], rows[TEST : TEST + TRAIN]
    return X[train], y[train], X[test], y[test]


def prices(epsilon, whole, number):
    X, y, X_test, y_test = london_split(number)
    model = AutoGP((100, 500))
    if not whole:
        return scored(model.plan(X, epsilon=epsilon, delta=1e-6).release(y), X_test, y_test)
    grid = Grid(LONDON, cells=30) if os.environ.get("CLOAKGP_DATA") else box_of_generated(X)
    return scored(model.plan_rows(grid, len(X), epsilon=epsilon, delta=1e-6).release(X, y), X_test, y_test)


def box_of_generated(X):
    """Look-alikes are nobody's, so a box may be taken from them."""
    return Grid({f"x{i}": (X[:, i].min(), X[:, i].max()) for i in range(X.shape[1])}, cells=30)


def scored(release, X, y):
    mean, std = release.predict(X, return_std=True, include_noise=True)
    return float(np.mean((mean - y) ** 2)), float(np.mean(np.abs(mean - y) < 1.96 * std))


def told(words, function, splits, pool):
    with Progress(words, splits) as progress:
        results = []
        for result in pool.map(function, range(splits)):
            results.append(result)
            progress.advance()
    errors, held = np.array(results).T
    rmse = np.sqrt(errors.mean())
    error = errors.std() / np.sqrt(len(errors)) / 2 / rmse
    print(
        f"  {words}: RMSE {rmse:.4g} (standard error {error:.2g}); 95 % intervals hold {held.mean():.1%} on "
        f"average, {held.min():.0%} in the worst split",
        flush=True,
    )


def export(folder, splits):
    """Splits as files, for other programs."""
    for number in range(splits):
        X, y, X_test, y_test = london_split(number)
        for name, inputs, outputs in (("train", X, y), ("test", X_test, y_test)):
            header = "easting,northing,price"
            path = Path(folder) / f"{name}_{number}.csv"
            np.savetxt(path, np.column_stack([inputs, outputs]), delimiter=",", header=header, comments="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=["howell", "london"], default="howell")
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--export")
    asked = parser.parse_args()
    if asked.export:
        export(asked.export, asked.splits)
        sys.exit()
    with ProcessPoolExecutor(asked.processes) as pool:
        if asked.data == "howell":
            print(f"{howell()[2]}, height in cm by age, bounds 40 to 190, delta 1e-3, {asked.splits} splits")
            told("x and y private, epsilon 1", heights, asked.splits, pool)
            return
        print(f"{london()[2]}, £1000, bounds 100 to 500, {TRAIN} rows, delta 1e-6, {asked.splits} splits")
        for epsilon in (1.0, 0.2):
            for whole, words in ((True, "x and y private"), (False, "y alone private")):
                told(f"{words}, epsilon {epsilon:g}", partial(prices, epsilon, whole), asked.splits, pool)


if __name__ == "__main__":
    main()
