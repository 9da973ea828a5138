"""Noise and intervals where the promise is to a person with all of their rows: visits to a doctor by age.

    CLOAKGP_DATA=folder python experiments/people.py [--splits 10] [--epsilon 1]

The RAND Health Insurance Experiment: 20,190 years of 5,912 people, who have one to five years each. Outcomes
are visits in a year, clipped to 0-20. Prints the std of the noise in the curve for one row, for one person
exactly, and for as many times a row's as somebody has rows, which a release would have to pay without the
person's own sensitivity; then how often 95 % intervals hold. The curve itself is not known there, so held-out
people's outcomes stand for it (`include_noise`), and their means; where it is known, it is by simulation:
people with a level of their own, so that the rows of one go together. Without `randhie.csv.gz` in the folder
there is only the simulation.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from pathlib import Path

import numpy as np

from cloakgp import GP, AutoGP
from cloakgp.kernels import EQ

BOUNDS = (0.0, 20.0)
NOISE = 16.0  # variance of one year's visits about the curve: a public guess


def visits(path: Path):
    """Who, at which age, how often."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ids = np.array([row["zper"] for row in rows])
    return (
        ids,
        np.array([[float(row["xage"])] for row in rows]),
        np.array([float(row["mdvis"]) for row in rows]),
    )


def model() -> GP:
    return GP(EQ(15.0, variance=4.0), NOISE, BOUNDS, mean=3.0)


def noise(ids, X, ages, epsilon: float, delta: float) -> None:
    """Of the curve: its mean over ages 5 to 60."""
    k = np.unique(ids, return_counts=True)[1].max()
    years = np.floor(X)  # ages in whole years, as a table would have them
    who = f"{len(X)} rows of {len(np.unique(ids))} people, at most {k} each"
    print(f"{who}; epsilon {epsilon:g}, delta {delta:g}")
    for name, where in (("age in whole years", years), ("age to the day", X)):
        gp = model() if where is years else GP(EQ(15.0, variance=4.0), NOISE, BOUNDS, 3.0, inducing=30)
        row = gp.plan(where, X_star=ages, epsilon=epsilon, delta=delta)
        print(f"  {name}: noise std of the curve, mean over ages")
        print(f"    one row                           {row.noise_std.mean():.4f}")
        for within in (1.0, 0.5, 0.0):
            plan = gp.plan(where, X_star=ages, epsilon=epsilon, delta=delta, people=ids, within=within)
            print(f"    one person, within {within:3.1f}            {plan.noise_std.mean():.4f}")
        print(f"    one person, as {k} times one row's  {k * row.noise_std.mean():.4f}")
    for who, label in ((None, "one row"), (ids, "one person")):
        plan = AutoGP(BOUNDS).plan(years, X_star=ages, epsilon=epsilon, delta=delta, people=who)
        print(f"  learned in stages, {label}: expected error {plan.expected_error.mean():.4f}")


def held_out(ids, X, y, ages, epsilon: float, delta: float, splits: int) -> None:
    """Intervals for outcomes of people who were left out."""
    rng, everybody = np.random.default_rng(3), np.unique(ids)
    years, hold = np.floor(X), {name: [] for name in ("set by hand", "learned in stages")}
    means = {name: [] for name in hold}
    for _ in range(splits):
        out = np.isin(ids, rng.choice(everybody, 500, replace=False))
        for name in hold:
            maker = model() if name == "set by hand" else AutoGP(BOUNDS)
            options = {"epsilon": epsilon, "delta": delta, "people": ids[~out]}
            release = maker.plan(years[~out], X_star=ages, **options).release(y[~out])
            extra = NOISE if name == "set by hand" else True
            mean, std = release.predict(years[out], return_std=True, include_noise=extra)
            hold[name].append(np.mean(np.abs(np.clip(y[out], *BOUNDS) - mean) < 1.96 * std))
            means[name].append(_means_held(release, ids[out], years[out], y[out], extra))
    print(f"  95 % intervals, {splits} splits with 500 people held out: share that hold")
    for name, found in hold.items():
        error = np.std(found) / np.sqrt(splits)
        outcomes, people = np.mean(found), np.mean(means[name])
        print(f"    {name:18} outcomes {outcomes:.3f} (se {error:.3f}), people's means {people:.3f}")


def _means_held(release, ids, X, y, extra) -> float:
    """The share of held-out people whose mean outcome is within its interval, as if they had one row."""
    _, who = np.unique(ids, return_inverse=True)
    rows = np.bincount(who)
    outcome = np.bincount(who, np.clip(y, *BOUNDS)) / rows
    age = np.bincount(who, X[:, 0]) / rows
    mean, std = release.predict(age[:, None], return_std=True, include_noise=extra)
    return float(np.mean(np.abs(outcome - mean) < 1.96 * std))


def simulated(ages, epsilon: float, delta: float, splits: int) -> None:
    """A known curve; people have a level of their own, and rows scatter about it."""
    rng = np.random.default_rng(7)
    found: dict[str, list[float]] = {}
    for _ in range(splits):
        rows = rng.integers(1, 6, size=1500)
        ids = np.repeat(np.arange(1500), rows)
        X = np.floor(
            np.repeat(rng.uniform(5, 56, size=1500), rows) + np.concatenate([np.arange(n) for n in rows])
        )
        truth = lambda age: 6 + 3 * np.sin(age / 12) + 0.03 * age  # noqa: E731
        y = truth(X) + rng.normal(0, 2.0, size=1500)[ids] + rng.normal(0, 1.2, size=len(ids))
        options = {"epsilon": epsilon, "delta": delta}
        gp = GP(EQ(12.0, variance=6.0), 5.4, BOUNDS, mean=7.0)
        for name, maker in (("set by hand", gp), ("learned in stages", AutoGP(BOUNDS))):
            for who, label in ((ids, "one person"), (None, "one row")):
                release = maker.plan(X, X_star=ages, people=who, **options).release(y)
                mean, std = release.predict(ages, return_std=True)
                near = np.abs(mean - truth(ages[:, 0])) < 1.96 * std
                found.setdefault(f"{name}, {label}", []).append(float(near.mean()))
                found.setdefault(f"{name}, {label}: RMSE", []).append(
                    float(np.sqrt(np.mean((mean - truth(ages[:, 0])) ** 2)))
                )
    print(f"  simulation, {splits} times 1500 people with 1 to 5 rows each, correlation 0.74 within a person")
    for name, values in found.items():
        print(f"    {name:40} {np.mean(values):.3f} (se {np.std(values) / np.sqrt(splits):.3f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-4, help="below one over the number of people")
    asked = parser.parse_args()
    ages = np.arange(5.0, 61.0)[:, None]
    path = Path(os.environ.get("CLOAKGP_DATA", "")) / "randhie.csv.gz"  # columns zper, xage and mdvis
    if path.exists():
        ids, X, y = visits(path)
        noise(ids, X, ages, asked.epsilon, asked.delta)
        held_out(ids, X, y, ages, asked.epsilon, asked.delta, asked.splits)
    else:
        print("no randhie.csv.gz in CLOAKGP_DATA: simulation only")
    simulated(ages, asked.epsilon, asked.delta, asked.splits)


if __name__ == "__main__":
    main()
