"""The paper's "standard" method: its scale on the !Kung data, and the case that suits it.

    CLOAKGP_DATA=folder python experiments/function_release.py

1. The scale of the prior draw that the paper adds at epsilon = 50 (normalised units), by its own
   formula, beside what each bound needs for the same promise when calibrated correctly.
2. Counts: outcomes 0 or 1 (d = 1) at ordinary epsilon, where the noise is small enough to use.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ


def ages():
    folder = os.environ.get("CLOAKGP_DATA")
    if folder:
        table = np.genfromtxt(Path(folder) / "howell1.csv", delimiter=";", names=True)
        return table["age"][table["male"] == 0][:, None], "287 !Kung women"
    return make_kung_like()[0], "generated look-alikes (set CLOAKGP_DATA for the real data)"


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
            scale = plan.rkhs_sensitivity * plan.measurement.noise_scale * std
            print(f"  {f'{bound} bound, calibrated for epsilon = {epsilon:g}':60}{scale:10.2f}")


def counts():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 24, (5000, 1))  # hour of the day
    truth = 0.15 + 0.5 * np.exp(-0.5 * ((X[:, 0] - 17) / 3) ** 2)
    y = (rng.uniform(size=len(X)) < truth).astype(float)
    gp = cloakgp.GP(EQ(3.0, variance=0.25**2), 0.25, (0.0, 1.0))
    X_star = np.linspace(0, 24, 97)[:, None]
    expected = 0.15 + 0.5 * np.exp(-0.5 * ((X_star[:, 0] - 17) / 3) ** 2)
    print("\n5,000 generated yes/no outcomes by hour of the day (d = 1), delta = 1e-5")
    print(f"  {'epsilon':>8}{'noise std in the data':>24}{'RMSE of query':>16}{'RMSE of predict':>18}")
    for epsilon in (0.5, 1.0, 2.0):
        plan = gp.plan_function(X, epsilon=epsilon, delta=1e-5)
        release = plan.release(y)
        errors = [np.sqrt(np.mean((f(X_star) - expected) ** 2)) for f in (release.query, release.predict)]
        print(f"  {epsilon:8g}{plan.noise_at(X_star).max():24.4f}{errors[0]:16.4f}{errors[1]:18.4f}")


if __name__ == "__main__":
    paper_scale()
    counts()
