"""DP-EBM, differentially private boosted trees (interpret-core), on the splits of `comparison.py`.

`comparison.py` installs interpret-core into an environment of its own and runs this there, without cloakgp:

    python comparison_ebm.py folder

The folder has `NAME.npz` for each split (X, y, X_test, lower and upper ends of the box, which inputs are
categories, bounds, epsilon, delta, yes_no); predictions go to `NAME.ebm.npy`. Whole rows are protected. If
its neighbours are data sets with one row more or less, one row replaced is two such steps. The outcomes'
range must contain 0, so outcomes are given less the middle of their bounds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor


def predictions(split):
    X, X_test, category = split["X"], split["X_test"], split["category"]
    low, high = split["bounds"]
    ends = dict(enumerate(zip(split["lower"], split["upper"], strict=True)))
    options = {
        "epsilon": float(split["epsilon"]),
        "delta": float(split["delta"]),
        "privacy_bounds": ends,
        "feature_types": ["nominal" if one else "continuous" for one in category],
        "random_state": None,
        "n_jobs": 1,
    }
    X, X_test = (named(A, category) for A in (X, X_test))
    if split["yes_no"]:
        model = DPExplainableBoostingClassifier(**options).fit(X, split["y"].astype(int))
        return model.predict_proba(X_test)[:, 1]
    middle = (low + high) / 2
    options |= {"privacy_target_min": low - middle, "privacy_target_max": high - middle}
    model = DPExplainableBoostingRegressor(**options).fit(X, np.clip(split["y"], low, high) - middle)
    return model.predict(X_test) + middle


def named(X, category):
    """Categories as texts."""
    if not category.any():
        return X
    made = X.astype(object)
    for i in np.flatnonzero(category):
        made[:, i] = [f"level {value:.0f}" for value in X[:, i]]
    return made


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        np.save(path.with_suffix(".ebm.npy"), predictions(np.load(path)))
