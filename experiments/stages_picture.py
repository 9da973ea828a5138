"""Draw how windows close in on generated heights, stage by stage: docs/pictures/stages.png.

python experiments/stages_picture.py [--output FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np

import cloakgp
from cloakgp.datasets import make_kung_like
from cloakgp.plots import plot_stages

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "stages.png"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=PICTURE)
    asked = parser.parse_args()
    X, y = make_kung_like()
    gp = cloakgp.AutoGP(bounds=(0, 250), stages=4)
    columns = cloakgp.Columns((cloakgp.Column("age", unit="years"),), response="height in cm")
    plan = gp.plan(X, X_star=np.arange(0.0, 76.0), epsilon=1.0, delta=0.001, columns=columns)
    release = plan.release(y)
    figure = plot_stages(release)
    for ax in figure.axes:  # generated heights, nobody's: they may be shown
        ax.scatter(X, y, s=8, color="#444444", alpha=0.35, linewidth=0, zorder=1)
    figure.savefig(asked.output, dpi=110)
    for number, stage in enumerate(release.stages, start=1):
        width = float(np.mean(np.subtract(stage.upper, stage.lower)))
        print(f"stage {number}: windows {width:.0f} cm wide on average, mu {stage.mu:.2f}")
    print(f"drawn: {asked.output.name}")


if __name__ == "__main__":
    main()
