"""A first walk through the library, on generated heights: ``python -m cloakgp.demo``."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import cloakgp
from cloakgp import GP, AutoGP, Column, Columns, Plan, Release, plots
from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ

# All that must be known, without a look at y: nobody is taller than 250 cm.
BOUNDS = (0.0, 250.0)
AGES = np.arange(0.0, 76.0)
COLUMNS = Columns((Column("age", unit="years"),), response="height")
EPSILON, PAPERS_DELTA = 1.0, 0.01

# For comparison, what public knowledge would suggest: heights of girls and women lie between 50 and 170 cm,
# vary by some 25 cm over the ages, change over some 20 years, and differ by 14 cm or less at one age.
MODEL = GP(kernel=EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=(50.0, 170.0))
_PLANS = ("mse, analytic", "volume, analytic", "volume, classic")
"""Designs, and how their noise is calibrated."""


def main(arguments: list[str] | None = None) -> None:
    """Plan, release, save, verify and draw."""
    options = _options(arguments)
    start = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)

    X, y = make_kung_like()
    gp = AutoGP(bounds=BOUNDS)
    print(f"Heights of {len(X)} generated women by age. Ages are public, heights are private.\n{gp}\n")

    print("1. Plan: public, free, without a look at the heights")
    plan = gp.plan(X, X_star=AGES, epsilon=EPSILON, columns=COLUMNS)
    print(f"{plan}\n")

    print("2. Release: the private step, which learns the model on its way")
    release = plan.release(y).labelled(units="cm")
    learned = f"   what was learned:\n{release.learned}\n"
    print(f"{release.certificate}\n\n{prediction_table(release)}\n\n{learned}")

    print("3. Save, and verify as a reader would")
    saved = options.output / "heights.cloak"
    release.save(saved)
    print(f"{cloakgp.verify(saved)}\n")

    print("4. Pictures")
    drawn: dict[str, Any] = {
        "plan.png": plots.plot_plan(plan),
        "release.png": plots.plot_release(release),
        "stages.png": plots.plot_stages(release),
        "learned.png": plots.plot_learned(release),
    }
    if options.custodian:
        drawn["NOT-FOR-RELEASE.png"] = plots.plot_release(release, private_data=(X, y))
    print(f"release file: {saved}")
    for name, one in drawn.items():
        _write(one, options.output / name)
        print(f"picture:      {options.output / name}")

    print("\n5. For comparison: one step with a model that is set beforehand, by its design and calibration,")
    print(f"   and with the paper's delta, {PAPERS_DELTA:g}")
    plans = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPromiseWarning)  # the paper's delta is large
        for name in _PLANS:
            how: Any = dict(zip(("design", "calibration"), name.split(", "), strict=True))
            plans[name] = MODEL.plan(X, X_star=AGES, epsilon=EPSILON, delta=PAPERS_DELTA, **how)
    print(noise_table(plans))
    print("This library's default is 'mse, analytic'; 'volume, classic' is the paper's choice.\n")
    print(f"done in {time.perf_counter() - start:.1f} s\n")
    print("The same in a browser, with such heights in it: make app, or cloakgp serve --demo --data demo-app")


def prediction_table(release: Release) -> str:
    """Predictions in cm by age, how uncertain they are, and what privacy adds to that."""
    mean, std = release.predict(AGES[::10], return_std=True)
    lines = ["   age  height, cm  std  of which privacy"]
    for age, height, whole, privacy in zip(AGES[::10], mean, std, release.noise_std[::10], strict=True):
        lines.append(f"{age:6g}  {height:10.1f}  {whole:3.1f}  {privacy:16.1f}")
    return "\n".join(lines)


def noise_table(plans: dict[str, Plan]) -> str:
    """Std of the privacy noise in cm, by age and plan, and its root mean square over all ages."""
    width, stds = max(map(len, plans)), np.array([plan.noise_std for plan in plans.values()])
    rows = {f"{age:g}": stds[:, age == AGES].ravel() for age in AGES[::10]}
    rows["rms"] = np.sqrt((stds**2).mean(axis=1))
    lines = ["   noise std, cm:", "  ".join(["  age", *(name.rjust(width) for name in plans)])]
    lines += ["  ".join([row.rjust(5), *(f"{std:{width}.1f}" for std in own)]) for row, own in rows.items()]
    return "\n".join(lines)


def _write(drawn: Any, path: Path) -> None:
    from matplotlib.pyplot import close

    figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
    figure.savefig(path, dpi=130, metadata={"Software": None})
    close(figure)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cloakgp.demo", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder to write to (default: demo-output)"
    )
    parser.add_argument(
        "--custodian",
        action="store_true",
        help="also draw a picture with the private points, marked as not for release",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
