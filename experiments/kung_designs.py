"""Held-out error on the !Kung women: each design, with and without free denoising.

    CLOAKGP_DATA=folder python experiments/kung_designs.py [--splits 60]

The folder holds howell1.csv; without it, generated look-alikes are used and the table says so.
Every setting is public: EQ lengthscale 10 years, kernel variance 25.9^2 beside a constant of the
same, noise variance 0.3 * 25.9^2, bounds 58.27 to 158.27 cm. Each split holds out 50 of 287 women; the
test points are the held-out ages. "paper" is the volume design with the classic calibration, and
"no privacy" the GP's own mean.

The table is exact over the privacy noise: a prediction is linear in it, so its expected squared
error is that of the prediction without noise, plus the noise's variance. One real release per plan is
made too; the last column pair shows what it gave, which varies from run to run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ, Constant

METHODS = {
    "paper (volume, classic)": {"design": "volume", "calibration": "classic"},
    "volume": {"design": "volume"},
    "mse": {"design": "mse"},
    "max": {"design": "max"},
    "posterior": {"design": "posterior"},
}


def heights():
    folder = os.environ.get("CLOAKGP_DATA")
    if folder:
        table = np.genfromtxt(Path(folder) / "howell1.csv", delimiter=";", names=True)
        women = table[table["male"] == 0]
        return women["age"][:, None], women["height"], "287 !Kung women"
    return *make_kung_like(), "generated look-alikes (set CLOAKGP_DATA for the real data)"


def squared_errors(gp, plan, X, y, X_test, y_test):
    """Expected squared errors of the released and of the denoised predictions, and a drawn one."""
    low, high = gp.bounds
    middle = low + (high - low) / 2
    B, s = plan.measurement.by_row(), plan.measurement.noise_scale**2
    seen = B @ (np.clip(y, low, high) - middle)  # the measurements without noise
    released = plan.first.readout.offset + plan.reconstruction @ seen
    K = gp.kernel(X) + gp.noise * np.eye(len(X))
    gain = np.linalg.solve(B @ K @ B.T + s * np.eye(len(B)), B @ gp.kernel(X, X_test)).T
    denoised = gp.mean + gain @ (seen - B.sum(axis=1) * (gp.mean - middle))
    drawn = plan.release(y)
    assert np.allclose(
        gain @ (drawn.z - plan.measurement.midpoint) * plan.measurement.step
        + gp.mean
        - gain @ B.sum(axis=1) * (gp.mean - middle),
        drawn.predict(X_test),
    )
    return {
        "released": (released - y_test) ** 2 + plan.noise_std**2,
        "denoised": (denoised - y_test) ** 2 + s * np.sum(gain**2, axis=1),
        "drawn": (drawn.predict(X_test) - y_test) ** 2,
    }


def main(splits):
    X, y, source = heights()
    gp = cloakgp.GP(EQ(10.0, variance=25.9**2) + Constant(25.9**2), 0.3 * 25.9**2, (58.27, 158.27))
    errors = {}
    rng = np.random.default_rng(0)
    for split in range(splits):
        order = rng.permutation(len(X))
        test, train = order[:50], order[50:]
        K = gp.kernel(X[train]) + gp.noise * np.eye(len(train))
        exact = gp.mean + gp.kernel(X[test], X[train]) @ np.linalg.solve(K, y[train] - gp.mean)
        errors.setdefault("no privacy", []).append((exact - y[test]) ** 2)
        for epsilon in (1.0, 0.2):
            for name, options in METHODS.items():
                plan = gp.plan(X[train], X_star=X[test], epsilon=epsilon, delta=0.01, **options)
                found = squared_errors(gp, plan, X[train], y[train], X[test], y[test])
                for kind, values in found.items():
                    errors.setdefault((name, epsilon, kind), []).append(values)
        if sys.stderr.isatty():
            print(f"\rsplit {split + 1} of {splits}", end="", file=sys.stderr)
    print(f"Held-out RMSE in cm, {splits} splits of 237 + 50, delta = 0.01, {source}\n")
    rmse = {key: np.sqrt(np.mean(values)) for key, values in errors.items()}
    print(f"{'':26}{'released':>20}{'denoised':>20}{'denoised, as drawn':>20}")
    print(f"{'':26}" + f"{'eps = 1':>10}{'eps = 0.2':>10}" * 3)
    print(f"{'no privacy':26}{rmse['no privacy']:10.1f}")
    for name in METHODS:
        cells = [rmse[name, e, kind] for kind in ("released", "denoised", "drawn") for e in (1.0, 0.2)]
        print(f"{name:26}" + "".join(f"{cell:10.1f}" for cell in cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=60)
    main(parser.parse_args().splits)
