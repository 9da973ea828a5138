"""Learn the model from one release, with nothing known but bounds: held-out errors on the !Kung heights.

    python experiments/learning.py [--splits 60] [--epsilon 1]

With CLOAKGP_DATA set to a folder that has the data, on the real women; else on generated look-alikes. One
draw of the noise for each split; prints the RMSE over all splits with its standard error, and how many
held-out outcomes the 95 % intervals hold, for the learned mixture and for a model set by hand.
"""

from __future__ import annotations

import argparse

import numpy as np

from cloakgp import GP, Hyperprior
from cloakgp.datasets import fetch_kung, make_kung_like
from cloakgp.kernels import EQ

BOUNDS = (58.27, 158.27)


def data():
    try:
        found = fetch_kung()
        return found.X, found.y, "the !Kung women"
    except Exception:
        X, y = make_kung_like()
        return X, y, "generated look-alikes of the !Kung women"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=60)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=0.01)
    asked = parser.parse_args()
    X, y, what = data()
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    rng = np.random.default_rng(11)
    errors: dict[str, list[float]] = {"learned": [], "by hand": []}
    held: dict[str, list[float]] = {"learned": [], "by hand": []}
    hand = GP(EQ(10.0, variance=25.9**2), 0.3 * 25.9**2, BOUNDS)
    for _ in range(asked.splits):
        order = rng.permutation(len(X))
        test, train = order[:50], order[50:]
        outcomes = np.clip(y[test], *BOUNDS)
        for name in errors:
            gp = GP.of(Hyperprior().model(X[train], BOUNDS)) if name == "learned" else hand
            plan = gp.plan(
                X[train],
                X_star=X[test],
                epsilon=asked.epsilon,
                delta=asked.delta,
                design="posterior",
                gap=0.05,
            )
            release = plan.release(y[train])
            reader = release.learn() if name == "learned" else release
            mean, std = reader.predict(X[test], return_std=True, include_noise=True)
            errors[name].append(float(np.mean((mean - y[test]) ** 2)))
            held[name].append(float(np.mean(np.abs(mean - outcomes) < 1.96 * std)))
    print(f"{what}, epsilon {asked.epsilon:g}, delta {asked.delta:g}, bounds {BOUNDS}, {asked.splits} splits")
    for name, found in errors.items():
        rmse, spread = np.sqrt(np.mean(found)), np.std(found) / np.sqrt(len(found))
        print(
            f"  {name:8} RMSE {rmse:6.2f} cm (standard error {spread / 2 / rmse:.2f}); 95 % intervals hold "
            f"{np.mean(held[name]):.1%} on average, {min(held[name]):.0%} at worst"
        )


if __name__ == "__main__":
    main()
