"""The paper's "standard" method: its scale on the !Kung data, and the case that suits it.

    CLOAKGP_DATA=folder python experiments/function_release.py

1. The scale of the prior draw that the paper adds at epsilon = 50 (normalised units), by its own
   formula, beside what each bound needs for the same promise when calibrated correctly.
2. Counts, which the paper names as the case for it, at ordinary epsilon. Generated ones (yes/no, d = 1), and
   real ones where the folder has them: was a person searched, by the hour of the stop (`mpls_stops.csv.gz`:
   yes/no, d = 1), and visits to a doctor in a year by age (`randhie.csv.gz`: 0 to 20, d = 20; the promise is
   to one year of one person). Each time 4,000 rows, drawn by a public seed, since this release needs an exact
   GP.
"""

from __future__ import annotations

import csv
import gzip
import os
import warnings
from pathlib import Path

import numpy as np

import cloakgp
from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ

warnings.simplefilter("ignore", WeakPromiseWarning)  # the paper's delta is compared here, not advised


def ages():
    folder = os.environ.get("CLOAKGP_DATA")
    if folder:
        table = np.genfromtxt(Path(folder) / "howell1.csv", delimiter=";", names=True)
        return table["age"][table["male"] == 0][:, None], "287 !Kung women"
    return make_kung_like().X, "generated look-alikes (set CLOAKGP_DATA for the real data)"


def paper_scale():
    X, source = ages()
    std, delta = 25.74, 0.01
    inverse = np.linalg.inv(EQ(25.0)(X) + 0.3 * np.eye(len(X)))
    one_signed = max(np.maximum(inverse, 0).sum(axis=0).max(), np.maximum(-inverse, 0).sum(axis=0).max())
    printed = 100 * one_signed * np.sqrt(2 * np.log(2 / delta)) / 50
    print(f"Scale of the prior draw (unit variance) that is added, in cm; delta = 0.01, d = 100 cm, {source}")
    print(f"  {'the paper, its own formula, epsilon = 50 (prints 28.53)':60}{printed:10.2f}")
    gp = cloakgp.GP(EQ(25.0, variance=std**2), 0.3 * std**2, (58.27, 158.27))
    for epsilon in (50.0, 1.0):
        for bound in ("infinity", "paper", "exact"):
            plan = gp.plan_function(X, epsilon=epsilon, delta=delta, bound=bound)
            scale = plan.function.reach * plan.measurement.noise_scale * std
            print(f"  {f'{bound} bound, calibrated for epsilon = {epsilon:g}':60}{scale:10.2f}")


def generated():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 24, (5000, 1))  # hour of the day
    truth = 0.15 + 0.5 * np.exp(-0.5 * ((X[:, 0] - 17) / 3) ** 2)
    y = (rng.uniform(size=len(X)) < truth).astype(float)
    return "5,000 generated yes/no outcomes by hour of the day (d = 1)", X, y, YES_NO, np.linspace(0, 24, 97)


def searches(path):
    """Was a person searched, by local hour in tenths (the table has UTC)."""
    rows = read(path)
    times = np.array([row["date"].rstrip("Z") for row in rows], dtype="datetime64[m]")
    minutes = (times - np.timedelta64(6, "h")).astype(int) % 1440
    y = np.array([row["personSearch"] == "YES" for row in rows], dtype=float)
    words = f"{len(y):,} stops in Minneapolis: searched or not, by hour of the day (d = 1)"
    return words, (minutes // 6 / 10)[:, None], y, YES_NO, np.linspace(0, 24, 97)


def visits(path):
    """Visits to a doctor in a year, by age in whole years."""
    rows = read(path)
    X = np.floor([[float(row["xage"])] for row in rows])
    y = np.array([float(row["mdvis"]) for row in rows])
    words = f"{len(y):,} years of people: visits to a doctor, by age (d = 20)"
    gp = cloakgp.GP(EQ(15.0, variance=2.0**2), 16.0, (0.0, 20.0), mean=3.0)
    return words, X, y, gp, np.arange(0, 62)


ROWS = 4000
YES_NO = cloakgp.GP(EQ(3.0, variance=0.25**2), 0.25, (0.0, 1.0))


def read(path):
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [rows[i] for i in np.random.default_rng(0).choice(len(rows), ROWS, replace=False)]


def data_sets():
    yield generated()
    folder = Path(os.environ.get("CLOAKGP_DATA", ""))
    for name, reader in (("mpls_stops.csv.gz", searches), ("randhie.csv.gz", visits)):
        if (folder / name).is_file():
            yield reader(folder / name)


def counts(words, X, y, gp, where):
    """The largest noise, and how far one release is from the same GP without privacy."""
    print(f"\n{words}, delta = 1e-5")
    X_star = where.astype(float)[:, None]
    exact = without_privacy(gp, X, y, X_star)
    print(f"  without privacy the curve goes from {exact.min():.3f} to {exact.max():.3f}")
    columns = ("noise std", "of cloaking", "RMSE of query", "of predict", "of cloaking")
    print(f"  {'epsilon':>8}" + "".join(f"{column:>15}" for column in columns))
    for epsilon in (0.5, 1.0, 2.0):
        plan = gp.plan_function(X, epsilon=epsilon, delta=1e-5)
        release = plan.release(y)
        cloaked = gp.plan(X, X_star=X_star, epsilon=epsilon, delta=1e-5)
        answers = (release.query(X_star), release.predict(X_star), cloaked.release(y).mean)
        errors = [np.sqrt(np.mean((answer - exact) ** 2)) for answer in answers]
        cells = [plan.noise_at(X_star).max(), cloaked.noise_std.max(), *errors]
        print(f"  {epsilon:8g}" + "".join(f"{cell:15.4f}" for cell in cells))


def without_privacy(gp, X, y, X_star):
    """The GP's mean, by means of equal rows."""
    places, labels, n = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(labels.ravel(), np.clip(y, *gp.bounds)) / n
    K = gp.kernel(places) + np.diag(gp.noise / n)
    return gp.mean + gp.kernel(X_star, places) @ np.linalg.solve(K, means - gp.mean)


if __name__ == "__main__":
    paper_scale()
    for data in data_sets():
        counts(*data)
