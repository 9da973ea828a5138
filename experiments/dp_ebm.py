"""DP-EBM, private boosted trees (interpret-core), on the splits of `whole_rows.py` or `minneapolis.py`.

It needs an environment of its own, without cloakgp:

    python -m venv ebm && ebm/bin/pip install interpret-core
    CLOAKGP_DATA=folder python experiments/whole_rows.py --export splits --splits 6
    ebm/bin/python experiments/dp_ebm.py splits
    CLOAKGP_DATA=folder python experiments/minneapolis.py --export stops --splits 5
    ebm/bin/python experiments/dp_ebm.py stops

Whole rows are protected there, too. If its neighbours are data sets with one row more or less, one row
replaced is two such steps, so errors are printed for all of epsilon and for half of it. The box and the
outcomes' range are public; the range must contain 0, so prices are given less the middle of their bounds. Of
prices the RMSE is printed, and of searches by how much the log loss is below the base rate's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

LONDON = [(480_000, 580_000), (130_000, 230_000)]
MINNEAPOLIS = [(44.88, 45.06), (-93.34, -93.19), (0, 1)]
LOW, HIGH, DELTA = 100.0, 500.0, 1e-6


def error(train, test, epsilon):
    """Mean squared error on a split of prices."""
    middle = (LOW + HIGH) / 2
    model = DPExplainableBoostingRegressor(
        epsilon=epsilon,
        delta=DELTA,
        privacy_bounds=np.array(LONDON, dtype=float),
        privacy_target_min=LOW - middle,
        privacy_target_max=HIGH - middle,
        random_state=None,
    )
    model.fit(train[:, :2], train[:, 2] - middle)
    return float(np.mean((model.predict(test[:, :2]) + middle - test[:, 2]) ** 2))


def log_loss(p, y):
    return -np.mean(np.where(y, np.log(p), np.log(1 - p)))


def gained(train, test, epsilon):
    """Log loss below the base rate's, on a split of searches."""
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=DELTA,
        privacy_bounds=np.array(MINNEAPOLIS, dtype=float),
        feature_types=["continuous"] * 3,
        random_state=None,
    )
    y, seen = train[:, 3] == 1, test[:, 3] == 1
    p = model.fit(train[:, :3], y).predict_proba(test[:, :3])[:, 1]
    return float(log_loss(np.full(len(seen), y.mean()), seen) - log_loss(p, seen))


def splits(folder, number):
    names = (f"train_{number}.csv", f"test_{number}.csv")
    return [np.loadtxt(Path(folder) / name, delimiter=",", skiprows=1) for name in names]


def main() -> None:
    folder = sys.argv[1]
    n = len(list(Path(folder).glob("train_*.csv")))
    found = [splits(folder, number) for number in range(n)]
    prices = found[0][0].shape[1] == 3
    what = "London prices, £1000" if prices else "searches in Minneapolis"
    print(f"DP-EBM on {n} splits of {what}, delta {DELTA:g}")
    for epsilon in (1.0, 0.2) if prices else (1.0, 0.5):
        for given, words in ((epsilon, "one row added or removed"), (epsilon / 2, "one row replaced")):
            if prices:
                rmse = np.sqrt(np.mean([error(*one, given) for one in found]))
                print(f"  epsilon {epsilon:g}, {words}: RMSE {rmse:.4g}", flush=True)
                continue
            gain = [gained(*one, given) for one in found]
            se = np.std(gain, ddof=1) / np.sqrt(n)
            print(f"  epsilon {epsilon:g}, {words}: {np.mean(gain):.4f} (se {se:.4f})", flush=True)


if __name__ == "__main__":
    main()
