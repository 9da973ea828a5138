"""A first walk through the library, on generated heights: ``python -m cloakgp.demo``."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import cloakgp
from cloakgp import GP, AutoGP, Plan, StagedRelease, plots
from cloakgp.calibration import WeakPromiseWarning
from cloakgp.checks import FloatArray
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All that must be known, without a look at y: nobody is taller than 250 cm.
BOUNDS = (0.0, 250.0)
AGES = np.arange(0.0, 76.0)
EPSILON, PAPERS_DELTA = 1.0, 0.01

# For comparison, what public knowledge would suggest: heights of girls and women lie between 50 and 170 cm,
# vary by some 25 cm over the ages, change over some 20 years, and differ by 14 cm or less at one age.
MODEL = GP(kernel=EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=(50.0, 170.0))
_PLANS = {  # heading: (design, calibration)
    "mse, analytic": ("mse", "analytic"),
    "volume, analytic": ("volume", "analytic"),
    "volume, classic": ("volume", "classic"),
}
_OURS, _PAPERS = "mse, analytic", "volume, classic"


def main(arguments: list[str] | None = None) -> None:
    """Plan, release, save, verify and draw."""
    options = _options(arguments)
    start = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    pictures = options.pictures or options.output
    pictures.mkdir(parents=True, exist_ok=True)

    X, y = make_kung_like()
    gp = AutoGP(bounds=BOUNDS)
    print(f"Heights of {len(X)} generated women by age. Ages are public, heights are private.\n{gp}\n")

    print("1. Plan: public, free, without a look at the heights")
    plan = gp.plan(X, X_star=AGES, epsilon=EPSILON)
    print(f"{plan}\n")

    print("2. Release: the private step, which learns the model on its way")
    release = plan.release(y)
    print(
        f"{release.certificate}\n\n{prediction_table(release)}\n\n   what was learned:\n{release.learned}\n"
    )

    print("3. Save, and verify as a reader would")
    saved = options.output / "heights.cloak"
    release.save(saved)
    print(f"{cloakgp.verify(saved)}\n")

    print("4. Pictures")
    written = [
        _write(_labelled(plots.plot_plan(plan), "std in cm"), pictures / "plan.png"),
        _write(_picture_of_release(release), pictures / "release.png"),
        _write(plots.plot_stages(release, labels=("age in years", "height in cm")), pictures / "stages.png"),
        _write(plots.plot_learned(release), pictures / "learned.png"),
    ]
    if options.custodian:
        marked = _picture_of_release(release, private_data=(X, y))
        written.append(_write(marked, pictures / "NOT-FOR-RELEASE.png"))
    print(f"release file: {saved}")
    for path in written:
        print(f"picture:      {path}")

    print("\n5. For comparison: one step with a model that is set beforehand, by its design and calibration,")
    print(f"   and with the paper's delta, {PAPERS_DELTA:g}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPromiseWarning)  # the paper's delta is large
        plans = {
            heading: MODEL.plan(
                X, X_star=AGES, epsilon=EPSILON, delta=PAPERS_DELTA, design=design, calibration=calibration
            )
            for heading, (design, calibration) in _PLANS.items()
        }
    print(noise_table(plans))
    print(f"This library's default is {_OURS!r}; {_PAPERS!r} is the paper's choice.\n")
    print(f"done in {time.perf_counter() - start:.1f} s\n")
    print("The same in a browser, with such heights in it: make app, or cloakgp serve --demo --data demo-app")


def prediction_table(release: StagedRelease) -> str:
    """Predictions in cm by age, how uncertain they are, and what privacy adds to that."""
    mean, std = release.predict(AGES[::10], return_std=True)
    lines = ["   age  height, cm  std  of which privacy"]
    for age, height, whole, privacy in zip(AGES[::10], mean, std, release.noise_std[::10], strict=True):
        lines.append(f"{age:6g}  {height:10.1f}  {whole:3.1f}  {privacy:16.1f}")
    return "\n".join(lines)


def noise_table(plans: dict[str, Plan]) -> str:
    """Std of the privacy noise in cm, by age and plan, and its root mean square over all ages."""
    width = max(map(len, plans))
    rows = [["age", *plans]]
    for age in AGES[::10]:
        at = int(np.flatnonzero(age == AGES)[0])
        rows.append([f"{age:g}", *(f"{plan.noise_std[at]:.1f}" for plan in plans.values())])
    rows.append(["rms", *(f"{_root_mean_square(plan.noise_std):.1f}" for plan in plans.values())])
    lines = ["  ".join([row[0].rjust(5), *(cell.rjust(width) for cell in row[1:])]) for row in rows]
    return "\n".join(["   noise std, cm:", *lines])


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _picture_of_release(release: StagedRelease, private_data: object = None) -> Figure:
    return _labelled(plots.plot_release(release, private_data=private_data), "height in cm")


def _labelled(ax: Axes, words: str) -> Figure:
    from matplotlib.figure import Figure

    ax.set(xlabel="age in years", ylabel=words)
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return figure


def _write(figure: Figure, path: Path) -> Path:
    from matplotlib.pyplot import close

    figure.savefig(path, dpi=130, metadata={"Software": None})
    close(figure)
    return path


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cloakgp.demo", description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder to write to (default: demo-output)"
    )
    parser.add_argument("--pictures", type=Path, help="folder for the pictures, if another")
    parser.add_argument(
        "--custodian",
        action="store_true",
        help="also draw a picture with the private points, marked as not for release",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
