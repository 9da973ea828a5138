"""A first walk through the library, on generated heights: ``python -m cloakgp.demo``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import cloakgp
from cloakgp import GP, Plan, Release, plots
from cloakgp.checks import FloatArray
from cloakgp.datasets import make_kung_like
from cloakgp.kernels import EQ

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Public knowledge only, no look at y: heights of girls and women lie between 50 and 170 cm, vary by
# some 25 cm over the ages, change over some 20 years, and differ by 14 cm or less at one age.
MODEL = GP(kernel=EQ(20.0, variance=25.0**2), noise=14.0**2, bounds=(50.0, 170.0))
AGES = np.arange(0.0, 76.0)
EPSILON, DELTA = 1.0, 0.01

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
    print(f"Heights of {len(X)} generated women by age. Ages are public, heights are private.\n{MODEL}\n")

    print("1. Plan: public, free, without a look at the heights")
    plans = {
        heading: MODEL.plan(X, AGES, epsilon=EPSILON, delta=DELTA, design=design, calibration=calibration)
        for heading, (design, calibration) in _PLANS.items()
    }
    print(noise_table(plans))
    print(f"This library's default is {_OURS!r}; {_PAPERS!r} is the paper's choice.\n")
    plan = plans[_OURS]

    print("2. Release: the one private step")
    release = plan.release(y)
    print(f"{release.certificate}\n")

    print("3. Save, and verify as a reader would")
    saved = options.output / "heights.cloak"
    release.save(saved)
    print(f"{cloakgp.verify(saved)}\n")

    print("4. Pictures")
    written = [
        _write(_picture_of_plans(plan, plans[_PAPERS]), pictures / "plan.png"),
        _write(_picture_of_release(release), pictures / "release.png"),
    ]
    if options.custodian:
        marked = _picture_of_release(release, private_data=(X, y))
        written.append(_write(marked, pictures / "NOT-FOR-RELEASE.png"))
    print(f"release file: {saved}")
    for path in written:
        print(f"picture:      {path}")
    print(f"done in {time.perf_counter() - start:.1f} s\n")
    print("The same in a browser, with such heights in it: make app, or cloakgp serve --demo --data demo-app")


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


def _picture_of_plans(plan: Plan, papers: Plan) -> Axes:
    ax = plots.plot_plan(plan)
    label = "privacy noise, the paper's design and calibration"
    ax.plot(AGES, papers.noise_std, color="#D55E00", linestyle="--", label=label)
    top = papers.noise_std.max()
    ax.set(xlabel="age in years", ylabel="std in cm", ylim=(-0.05 * top, 1.05 * top))
    ax.legend(frameon=False, fontsize="small")
    return ax


def _picture_of_release(release: Release, private_data: object = None) -> Axes:
    ax = plots.plot_release(release, private_data=private_data)
    ax.set(xlabel="age in years", ylabel="height in cm")
    return ax


def _write(ax: Axes, path: Path) -> Path:
    from matplotlib.figure import Figure
    from matplotlib.pyplot import close

    figure = ax.get_figure()
    assert isinstance(figure, Figure)
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
