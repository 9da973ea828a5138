"""The picture of docs/designs.md: the std of the privacy noise by age, for each design.

    python experiments/designs_picture.py [--output docs/pictures/designs.png]

On generated heights, at one promise. Nothing is released, so nothing is random: the picture and the
printed table are the same on each run. The model is that of the first walk, ``cloakgp.demo``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

from cloakgp import demo
from cloakgp.datasets import make_kung_like

DESIGNS = {  # design: (colour, line style); Okabe & Ito's palette
    "volume": ("#D55E00", "--"),
    "max": ("#CC79A7", "-."),
    "mse": ("#0072B2", "-"),
    "posterior": ("#009E73", ":"),
}


def main(output):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, _ = make_kung_like()
    plans = {
        design: demo.MODEL.plan(
            X, X_star=demo.AGES, epsilon=demo.EPSILON, delta=demo.PAPERS_DELTA, design=design
        )
        for design in DESIGNS
    }
    figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    for design, (colour, style) in DESIGNS.items():
        ax.plot(demo.AGES, plans[design].noise_std, style, color=colour, linewidth=2, label=design)
    ages = np.unique(X[X[:, 0] <= demo.AGES.max(), 0])
    ax.plot(ages, np.full(len(ages), 0.015), "|", color="#6E6E6E", transform=ax.get_xaxis_transform())
    top = max(plan.noise_std.max() for plan in plans.values())
    ax.set(xlabel="age in years", ylabel="std of the privacy noise in cm", ylim=(-0.05 * top, 1.05 * top))
    promise = f"({demo.EPSILON:g}, {demo.PAPERS_DELTA:g})-DP"
    ax.set_title(f"{promise}, unit: one row", loc="left", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130, metadata={"Software": None})
    plt.close(figure)

    print("Std of the privacy noise in cm, generated heights, over the ages 0 to 75")
    print(f"{'design':12}{'rms':>8}{'largest':>9}")
    for design, plan in plans.items():
        rms = np.sqrt(np.mean(plan.noise_std**2))
        print(f"{design:12}{rms:8.1f}{plan.noise_std.max():9.1f}")


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "designs.png"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=here)
    main(parser.parse_args().output)
