"""Held-out error with more observation noise at rows that stand alone, on three real data sets.

    CLOAKGP_DATA=folder python experiments/downweighting.py [--share 1.0]

``downweight="leverage"`` multiplies a row's noise variance by its leverage over the median leverage, by up to
50, going by X alone. The rule was found on the !Kung women, so here it is tried on others too: house prices
around London, and bike trips in New York. The folder holds howell1.csv, london_prices.csv.gz and
citibike.csv.gz; without it, generated look-alikes are used and the tables say so.

Settings are public, as in ``kung_designs.py``, ``inducing_outliers.py`` and ``paper/table1.py``; delta 0.01.
Each split draws rows to learn from and rows to predict, whose inputs are the test points. Outcomes are
clipped to the bounds. "lone" are the 10 % of the held-out rows of a split at which the GP itself knows least
(its posterior std, without downweighting). "better" counts the splits in which downweighting has the smaller
error.

Errors are exact over the privacy noise: a prediction is linear in it, so its expected squared error is that
of the prediction without noise, plus the noise's variance. Nothing is drawn but the splits, by a public
seed. `--share` is the part of the splits that is used.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NamedTuple

import numpy as np

import cloakgp
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
from cloakgp.designs.posterior import denoising
from cloakgp.kernels import EQ, Constant

DESIGNS, EPSILONS, DELTA, LONE = ("volume", "mse", "posterior"), (1.0, 0.2), 0.01, 0.1
KINDS = ("released", "denoised")
RULES = {"": None, ", downweighted": "leverage"}
NO_PRIVACY = "no privacy"


class Study(NamedTuple):
    """A data set, its model, and how often how many rows are held out."""

    words: str
    unit: str
    X: np.ndarray
    y: np.ndarray
    settings: dict  # of the GP
    n_train: int
    n_test: int
    n_splits: int


def kung(kernel, std, words):
    (X, y), source = load(fetch_kung, make_kung_like, "!Kung women, heights by age")
    settings = {"kernel": kernel, "noise": 0.3 * std**2, "bounds": (58.27, 158.27)}
    return Study(f"{source}, {words}", "cm", X, y, settings, 237, 50, 60)


def london(lengthscale, std, noise):
    (X, y), source = load(fetch_london_prices, make_city_like, "sales around London, January 2016")
    settings = {"kernel": EQ(lengthscale, variance=std**2), "noise": noise**2, "bounds": (100.0, 500.0)}
    words = f"{source}, lengthscale {lengthscale:g} km, std {std:g}, noise std {noise:g}"
    return Study(words, "£1000", X / 1000, y / 1000, settings, 2000, 200, 10)


def bikes(lengthscale):
    (X, y), source = load(fetch_month, lambda: make_bike_like(50_000), "Citi Bike trips, June")
    settings = {
        "kernel": EQ(lengthscale, variance=500.0**2),
        "noise": 350.0**2,
        "bounds": (0.0, 2000.0),
        "mean": 800.0,
    }
    return Study(f"{source}, lengthscale {lengthscale:g}°", "s", X, y, settings, 2000, 100, 10)


def fetch_month():
    """The paper's month, or the one that the folder holds."""
    try:
        return fetch_citibike("2016-06", box=CITIBIKE_BOX)
    except DatasetError:
        return fetch_citibike("2017-06", box=CITIBIKE_BOX)


def load(fetch, make, words):
    """A data set and words for it; look-alikes without a folder that has the real one."""
    if os.environ.get("CLOAKGP_DATA"):
        try:
            data = fetch()
            return (data.X, data.y), words
        except FileNotFoundError as error:
            print(f"No real data: {error}\n", file=sys.stderr)
    data = make()
    return (data.X, data.y), "GENERATED look-alikes (set CLOAKGP_DATA for the real data)"


def summed(planner, values):
    """Sums over equal rows, which share a column."""
    groups = planner.inputs.groups
    return values if groups is None else np.bincount(groups.labels, values)


def squared_errors(planner, plan, y, y_test):
    """Expected squared errors of the released and of the denoised predictions."""
    low, high = plan.gp.bounds
    B, scale = plan.measurement.real_matrix(), plan.measurement.noise_scale
    middle = low + (high - low) / 2
    released = plan.first.readout.offset + plan.reconstruction @ (B @ summed(planner, y - middle))
    gain = denoising(planner.smoother, B, scale**2)[0]
    denoised = plan.gp.mean + gain @ (B @ summed(planner, y - plan.gp.mean))
    return {
        "released": (released - y_test) ** 2 + plan.noise_std**2,
        "denoised": (denoised - y_test) ** 2 + scale**2 * np.sum(gain**2, axis=1),
    }


def one_split(study, number):
    """Squared errors and variances, by name; which rows are lone; the share of rows with more noise."""
    rows = np.random.default_rng([0, number]).permutation(len(study.X))
    test, train = rows[: study.n_test], rows[study.n_test : study.n_test + study.n_train]
    y = np.clip(study.y, *study.settings["bounds"])
    errors, lone, raised = {}, None, 0.0
    for label, rule in RULES.items():
        gp = cloakgp.GP(**study.settings, downweight=rule)
        planner = gp.planner(study.X[train], X_star=study.X[test])
        exact = gp.mean + planner.smoother.columns(slice(None)) @ summed(planner, y[train] - gp.mean)
        errors[NO_PRIVACY + label] = (exact - y[test]) ** 2
        if rule is None:
            variance = planner.smoother.posterior_variance
            lone = variance >= np.quantile(variance, 1 - LONE)
            errors["GP"] = variance
        else:
            raised = float(np.mean(planner.gp.noise > 2 * study.settings["noise"]))
        for design in DESIGNS:
            for epsilon in EPSILONS:
                plan = planner.plan(epsilon=epsilon, delta=DELTA, design=design)
                errors[design + label, epsilon, "noise"] = plan.noise_std**2
                for kind, values in squared_errors(planner, plan, y[train], y[test]).items():
                    errors[design + label, epsilon, kind] = values
    return errors, lone, raised


def run(study, share):
    n_splits = max(1, round(share * study.n_splits))
    found = []
    for number in range(n_splits):
        found.append(one_split(study, number))
        if sys.stderr.isatty():
            print(f"\rsplit {number + 1} of {n_splits}", end="", file=sys.stderr)
    raised = np.mean([each[2] for each in found])
    print(f"\n{study.words}; {n_splits} splits of {study.n_train} + {study.n_test}")
    print(f"Rows with over twice the noise variance: {100 * raised:.0f} %. At lone points, in {study.unit}:")
    width = np.ptp(study.settings["bounds"])
    stds = {epsilon: lone_rms(found, ("mse", epsilon, "noise")) for epsilon in EPSILONS}
    noise = ", ".join(
        f"{std:.1f} at eps = {epsilon:g} ({100 * std / width:.0f} % of the bounds' width)"
        for epsilon, std in stds.items()
    )
    print(f"the GP's own std {lone_rms(found, 'GP'):.1f}, mse's noise {noise}. RMSE:\n")
    print(f"{'':26}" + "".join(f"{f'eps = {e:g}, {kind}':>22}" for e in EPSILONS for kind in KINDS))
    print(f"{'':26}" + f"{'all':>8}{'lone':>7}{'better':>7}" * 4)
    for label in RULES:
        print((f"{NO_PRIVACY + label:26}" + cell(found, NO_PRIVACY + label, None)).rstrip())
    for design in DESIGNS:
        for label in RULES:
            cells = [
                cell(found, (design + label, epsilon, kind), (design, epsilon, kind) if label else None)
                for epsilon in EPSILONS
                for kind in KINDS
            ]
            print((f"{design + label:26}" + "".join(cells)).rstrip())


def cell(found, key, other):
    """RMSE over all held-out rows and over the lone ones; in how many splits it is below that of `other`."""
    everywhere = np.sqrt(np.mean([errors[key] for errors, *_ in found]))
    won = ""
    if other is not None:
        won = f"{sum(errors[key].mean() < errors[other].mean() for errors, *_ in found)}/{len(found)}"
    return f"{everywhere:8.1f}{lone_rms(found, key):7.1f}{won:>7}"


def lone_rms(found, key):
    return np.sqrt(np.mean(np.concatenate([errors[key][lone] for errors, lone, _ in found])))


def main(share):
    studies = (
        kung(EQ(25.0, variance=25.74**2), 25.74, "lengthscale 25 years"),
        kung(EQ(10.0, variance=25.9**2) + Constant(25.9**2), 25.9, "lengthscale 10 years and a constant"),
        london(15.0, 400.0, 400.0),
        london(5.0, 100.0, 80.0),
        bikes(0.125),
        bikes(0.05),
    )
    for study in studies:
        run(study, share)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0)
    main(parser.parse_args().share)
