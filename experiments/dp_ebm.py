"""DP-EBM, differentially private boosted trees (interpret-core), on the London splits of `whole_rows.py`.

It needs an environment of its own, without cloakgp:

    python -m venv ebm && ebm/bin/pip install interpret-core
    CLOAKGP_DATA=folder python experiments/whole_rows.py --export splits --splits 6
    ebm/bin/python experiments/dp_ebm.py splits

Whole rows are protected there, too. If its neighbours are data sets with one row more or less, one row
replaced is two such steps, so errors are printed for all of epsilon and for half of it. The box and the
outcomes' range are public; the range must contain 0, so prices are given less the middle of their bounds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingRegressor

BOX = [(480_000, 580_000), (130_000, 230_000)]
LOW, HIGH, DELTA = 100.0, 500.0, 1e-6


def error(folder, number, epsilon):
    """Mean squared error on a split."""
    train, test = (
        np.loadtxt(Path(folder) / f"{name}_{number}.csv", delimiter=",", skiprows=1)
        for name in ("train", "test")
    )
    middle = (LOW + HIGH) / 2
    model = DPExplainableBoostingRegressor(
        epsilon=epsilon,
        delta=DELTA,
        privacy_bounds=np.array(BOX, dtype=float),
        privacy_target_min=LOW - middle,
        privacy_target_max=HIGH - middle,
        random_state=None,
    )
    model.fit(train[:, :2], train[:, 2] - middle)
    return float(np.mean((model.predict(test[:, :2]) + middle - test[:, 2]) ** 2))


def main() -> None:
    folder = sys.argv[1]
    splits = len(list(Path(folder).glob("train_*.csv")))
    print(f"DP-EBM on {splits} splits of London prices, £1000, delta {DELTA:g}")
    for epsilon in (1.0, 0.2):
        for given, words in ((epsilon, "one row added or removed"), (epsilon / 2, "one row replaced")):
            rmse = np.sqrt(np.mean([error(folder, number, given) for number in range(splits)]))
            print(f"  epsilon {epsilon:g}, {words}: RMSE {rmse:.4g}", flush=True)


if __name__ == "__main__":
    main()
