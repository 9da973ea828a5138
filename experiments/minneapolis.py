"""Yes/no outcomes and counts: who is searched in Minneapolis, and visits to a doctor.

    CLOAKGP_DATA=folder python experiments/minneapolis.py [--data stops] [--splits 5] [--epsilon 1 0.5]

`--data` is stops (was a person searched, by place and reason of the stop: 80 % of the rows are released, 20 %
held out), rows (the same with whole rows private, on a grid of `--cells` a side), plain (outcomes private,
but taken for numbers from 0 to 1: no link), once (the same in one stage: no windows) or visits (to a doctor,
as counts by age, site and sex, the promise being to people). Nothing is known but public ranges and levels;
delta is 10⁻⁶. For each split one draw of the noise: prints by how much the log loss is below that of the base
rate on the same split, which is not private, with the standard error over the splits; of visits the Poisson
deviance. `--export folder` writes the splits of stops as CSV files instead, for `dp_ebm.py`. Needs
`mpls_stops.csv.gz` and `randhie.csv.gz` in the folder.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from pathlib import Path

import numpy as np

from cloakgp import AutoGP, Grid
from cloakgp.core.progress import Progress

DELTA = 1e-6
PROBLEMS = ["suspicious", "traffic"]
BOX = {"lat": (44.88, 45.06), "long": (-93.34, -93.19), "problem": PROBLEMS}
MOST_VISITS = 50
LEAST = 1e-3  # probability: where numbers are predicted that may be below 0


def table(name, columns):
    """Columns of a file in the folder, as texts."""
    path = Path(os.environ.get("CLOAKGP_DATA", "")) / name
    if not path.is_file():
        raise SystemExit(f"no {name} in CLOAKGP_DATA: nothing to do")
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return [[row[column] for row in rows] for column in columns]


def stops():
    """Place and reason of each stop, and whether the person was searched."""
    lat, long, problem, searched = table("mpls_stops.csv.gz", ["lat", "long", "problem", "personSearch"])
    levels = [PROBLEMS.index(one) for one in problem]
    return np.array([lat, long, levels], dtype=float).T, np.array(searched) == "YES"


def log_loss(p, y):
    return -np.mean(np.where(y, np.log(p), np.log(1 - p)))


def split(n, number):
    rows = np.random.default_rng([2026, number]).permutation(n)
    return rows[: int(0.8 * n)], rows[int(0.8 * n) :]


def gained(y, train, test, p):
    """Below the base rate's log loss."""
    return log_loss(np.full(len(test), y[train].mean()), y[test]) - log_loss(p, y[test])


def of_stops(number, epsilon, model=None):
    """Outcomes private."""
    X, y = stops()
    train, test = split(len(y), number)
    model = AutoGP(outcome="yes/no", categories=[2]) if model is None else model
    release = model.plan(X[train], epsilon=epsilon, delta=DELTA).release(y[train])
    return gained(y, train, test, np.clip(release.predict(X[test]), LEAST, 1 - LEAST))


def of_numbers(number, epsilon, stages=None):
    """The same with a linear model of outcomes: no and yes are the numbers 0 and 1."""
    return of_stops(number, epsilon, AutoGP((0, 1), categories=[2], stages=stages))


def at_once(number, epsilon):
    return of_numbers(number, epsilon, stages=1)


def of_rows(number, epsilon, cells):
    """Whole rows private, on a grid of so many cells along each side."""
    X, y = stops()
    train, test = split(len(y), number)
    grid = Grid(BOX, cells=cells)
    plan = AutoGP(outcome="yes/no").plan_rows(grid, len(train), epsilon=epsilon, delta=DELTA)
    shown = {name: X[:, i] for i, name in enumerate(BOX)} | {
        "problem": np.array(PROBLEMS)[X[:, 2].astype(int)]
    }
    release = plan.release({name: column[train] for name, column in shown.items()}, y[train])
    return gained(y, train, test, release.predict({name: column[test] for name, column in shown.items()}))


def export(folder, splits):
    """Splits as files, for other programs."""
    X, y = stops()
    for number in range(splits):
        for name, rows in zip(("train", "test"), split(len(y), number), strict=True):
            table = np.column_stack([X[rows], y[rows]])
            path = Path(folder) / f"{name}_{number}.csv"
            np.savetxt(path, table, delimiter=",", header="lat,long,problem,searched", comments="")


def deviance(rate, y):
    """Poisson's, per row."""
    return 2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1) / rate), 0.0) - (y - rate))


def of_visits(number, epsilon):
    """Below the base rate's deviance; people, not rows, are split."""
    columns = table("randhie.csv.gz", ["xage", "site", "female", "mdvis", "zper"])
    data = np.array(columns, dtype=float).T
    ids, whose = np.unique(data[:, 4], return_inverse=True)
    own, others = split(len(ids), number)
    train, test = np.isin(whose, own), np.isin(whose, others)
    X, y = data[:, :3], data[:, 3]
    model = AutoGP((0, MOST_VISITS), outcome="count", categories=[1, 2])
    release = model.plan(X[train], epsilon=epsilon, delta=DELTA, people=whose[train]).release(y[train])
    base = np.full(test.sum(), y[train].mean())
    return deviance(base, y[test]) - deviance(release.predict(X[test]), y[test])


STUDIES = {
    "stops": (of_stops, "searches, outcomes private: log loss below the base rate's"),
    "rows": (of_rows, "searches, whole rows private: log loss below the base rate's"),
    "plain": (of_numbers, "searches, outcomes private and taken for numbers: log loss below the base rate's"),
    "once": (at_once, "searches, the same in one stage: log loss below the base rate's"),
    "visits": (of_visits, "visits to a doctor, people protected: deviance below the base rate's"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=STUDIES, nargs="+", default=list(STUDIES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 0.5])
    parser.add_argument("--cells", type=int, default=6, help="of the grid, along each side")
    parser.add_argument("--export")
    options = parser.parse_args()
    if options.export:
        export(options.export, options.splits)
        return
    for name in options.data:
        study, words = STUDIES[name]
        for epsilon in options.epsilon:
            with Progress("splits", options.splits) as progress:
                found = []
                for number in range(options.splits):
                    more = (options.cells,) if name == "rows" else ()
                    found.append(study(number, epsilon, *more))
                    progress.advance()
            error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
            each = ", ".join(f"{one:.4f}" for one in found)
            if name == "rows":
                each += f" ({options.cells} cells a side)"
            print(f"{words}, epsilon {epsilon:g}: {np.mean(found):.4f} (se {error:.4f}): {each}", flush=True)


if __name__ == "__main__":
    main()
