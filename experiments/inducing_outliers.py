"""Inducing inputs and outliers: less noise where data are few, and what it costs in bias.

    CLOAKGP_DATA=folder python experiments/inducing_outliers.py [--output docs/pictures/inducing_outliers.png]

The paper closes with the remark that inducing inputs may cut the noise, by making predictions depend less on
outliers. Tried here on heights by age, where few women are old, and on house prices around London, where some
sales stand alone. The folder holds howell1.csv and london_prices.csv.gz; without it, generated look-alikes
are used and the tables say so. Models as in ``paper/figure1.py`` and ``paper/figure3.py``, at (1, 0.01).

A model with few places is another model. Its error about the exact GP's own mean has two parts, noise and
bias, and both are shown: noise alone would always praise the coarser model. The held-out error, exact over
the noise, is about real outcomes, clipped to the bounds. "one row" is how far one row of y can move a
prediction. The places come from X, so that "one row" and "noise" are public; "bias", "both" and "held out"
need y, and stand here because these data are public. Nothing is drawn at random.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree

import cloakgp
from cloakgp.datasets import fetch_kung, fetch_london_prices, make_city_like, make_kung_like
from cloakgp.kernels import EQ

PROMISE = {"epsilon": 1.0, "delta": 0.01}
EXACT, POSTERIOR = "exact GP", "exact GP, posterior design"
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6E6E6E"


class Study(NamedTuple):
    """A data set, its model, and which of its points are near others or alone."""

    words: str
    unit: str
    X: np.ndarray
    y: np.ndarray
    model: dict  # what every GP is given
    X_star: np.ndarray  # for the noise, the bias and the pictures
    crowded: str
    lone: str
    groups: object  # (points, X) -> masks of those among many rows, and of those among few
    n_test: int  # rows held out
    n_splits: int

    def gp(self, **places):
        return cloakgp.GP(**self.model, **places)

    @property
    def settings(self):
        kernel, noise = self.model["kernel"], self.model["noise"]
        return f"lengthscale {kernel.lengthscale:g}, std {kernel.variance**0.5:g}, noise std {noise**0.5:.3g}"


def kung():
    """Heights by age: few women are old."""
    (X, y), source = load(fetch_kung, make_kung_like, "!Kung women")

    def groups(points, _):
        ages = points[:, 0]
        return (ages >= 10) & (ages <= 60), ages > 70

    model = {"kernel": EQ(25.0, variance=25.74**2), "noise": 0.3 * 25.74**2, "bounds": (58.27, 158.27)}
    ages = np.arange(0.0, 91.0)[:, None]
    words = f"{len(X)} {source}"
    return Study(words, "cm", X, y, model, ages, "ages 10-60", "over 70", groups, 50, 60)


def london(lengthscale=15.0, std=400.0, noise=400.0):
    """Prices by place: some sales stand alone."""
    (X, y), source = load(fetch_london_prices, make_city_like, "sales around London, January 2016")
    X, y = X / 1000, y / 1000  # km, thousands of pounds

    def groups(points, rows):
        far = isolation(points, rows)
        return far <= np.quantile(far, 0.5), far >= np.quantile(far, 0.95)

    model = {"kernel": EQ(lengthscale, variance=std**2), "noise": noise**2, "bounds": (100.0, 500.0)}
    grid = np.stack(np.meshgrid(np.arange(480.0, 581.0, 5.0), np.arange(130.0, 231.0, 5.0)), axis=-1)
    words = f"{len(X)} {source}"
    return Study(words, "£1000", X, y, model, grid.reshape(-1, 2), "dense 50%", "lone 5%", groups, 500, 2)


def isolation(points, X):
    """How far one must go from each point to find ten sales."""
    return cKDTree(X).query(points, k=10)[0][:, -1]


def load(fetch, make, words):
    """A data set and words for it; look-alikes without a folder that has the real one."""
    if os.environ.get("CLOAKGP_DATA"):
        try:
            data = fetch()
            return (data.X, data.y), words
        except FileNotFoundError as error:
            print(f"No real data: {error}\n", file=sys.stderr)
    data = make()
    return (data.X, data.y), "GENERATED look-alikes (set CLOAKGP_DATA for the real data)"


def without_noise(plan, y):
    """What a release would say if no noise were added."""
    low, high = plan.gp.bounds
    centred = np.clip(y, low, high) - (low + (high - low) / 2)
    groups = plan.measurement.groups
    sums = centred if groups is None else np.bincount(groups.labels, centred)
    return plan.first.readout.offset + plan.reconstruction @ (plan.measurement.real_matrix() @ sums)


def one_row(plan):
    """(P,) how far one row of y can move each prediction."""
    low, high = plan.gp.bounds
    return (high - low) * np.abs(plan.reconstruction @ plan.measurement.real_matrix()).max(axis=1)


def exact_mean(gp, X, y, X_star):
    """The GP's own posterior mean: no privacy."""
    factor = cho_factor(gp.kernel(X) + gp.noise * np.eye(len(X)), lower=True, overwrite_a=True)
    return gp.mean + gp.kernel(X_star, X) @ cho_solve(factor, np.clip(y, *gp.bounds) - gp.mean)


def rms(values):
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else float("nan")


class Errors(NamedTuple):
    """Of one way to release, by point of X_star."""

    moved: np.ndarray  # by one row
    noise: np.ndarray
    bias: np.ndarray  # about the exact GP's mean

    @property
    def both(self):
        return np.hypot(self.noise, self.bias)


def at_the_points(study, methods):
    """Errors about the exact GP's mean, of each method: all rows, points of X_star."""
    truth = exact_mean(study.gp(), study.X, study.y, study.X_star)
    found = {}
    for name, (places, design) in methods.items():
        plan = study.gp(**places).plan(study.X, X_star=study.X_star, design=design, **PROMISE)
        found[name] = Errors(one_row(plan), plan.noise_std, without_noise(plan, study.y) - truth)
    return found


def held_out(study, methods):
    """Root of the expected squared error about held-out outcomes: (all, among few), of each method."""
    rng, errors, lone = np.random.default_rng(0), {}, []
    for _ in range(study.n_splits):
        order = rng.permutation(len(study.X))
        test, train = order[: study.n_test], order[study.n_test :]
        X, y, X_test, y_test = study.X[train], study.y[train], study.X[test], study.y[test]
        y_test = np.clip(y_test, *study.model["bounds"])
        lone.append(study.groups(X_test, X)[1])
        missed = (exact_mean(study.gp(), X, y, X_test) - y_test) ** 2
        errors.setdefault("no privacy", []).append(missed)
        for name, (places, design) in methods.items():
            plan = study.gp(**places).plan(X, X_star=X_test, design=design, **PROMISE)
            missed = (without_noise(plan, y) - y_test) ** 2 + plan.noise_std**2
            errors.setdefault(name, []).append(missed)
    few = np.concatenate(lone)
    joined = {name: np.sqrt(np.concatenate(values)) for name, values in errors.items()}
    return {name: (rms(values), rms(values[few])) for name, values in joined.items()}, int(few.sum())


def table(study, errors, scores, n_lone):
    crowded, lone = study.groups(study.X_star, study.X)
    split = f"{study.n_splits} splits of {len(study.X) - study.n_test} + {study.n_test}"
    print(f"{study.words}; (1, 0.01)-DP; {study.settings}; rms in {study.unit}")
    print(
        f"Test points: {crowded.sum()} {study.crowded}, {lone.sum()} {study.lone}. "
        f"Held out: {split}, {n_lone} of the outcomes {study.lone}.\n"
    )
    columns = ("one row", "noise", "bias", "both")
    print(f"{'':30}{study.crowded:>34}  {study.lone:>34}  {'held out':>18}")
    print(f"{'':30}" + "".join(f"{c:>{10 if c == 'one row' else 8}}" for c in columns), end="  ")
    print("".join(f"{c:>{10 if c == 'one row' else 8}}" for c in columns) + f"  {'all':>9}{study.lone:>10}")
    print(f"{'no privacy':30}{'':72}{scores['no privacy'][0]:9.1f}{scores['no privacy'][1]:10.1f}")
    for name, found in errors.items():
        cells = [
            [rms(values[mask]) for values in (found.moved, found.noise, found.bias, found.both)]
            for mask in (crowded, lone)
        ]
        shown = "  ".join(f"{a:10.1f}{b:8.1f}{c:8.1f}{d:8.1f}" for a, b, c, d in cells)
        score = "".join(f"{value:{width}.1f}" for value, width in zip(scores[name], (11, 10), strict=True))
        print(f"{name:30}{shown}{score}")
    print()


def kmeans(numbers, approximation="dtc", design="mse"):
    """Methods: so many places by k-means."""
    label = "" if approximation == "dtc" else f", {approximation}"
    label += "" if design == "mse" else f", {design} design"
    return {f"{m} places{label}": ({"inducing": m, "approximation": approximation}, design) for m in numbers}


def in_the_bulk(X, numbers):
    """Methods: places at even distances from the 5th to the 95th percentile of the ages."""
    ends = np.quantile(X[:, 0], [0.05, 0.95])
    return {
        f"{m} places, {ends[0]:.0f} to {ends[1]:.0f} years": (
            {"inducing": np.linspace(*ends, m)[:, None]},
            "mse",
        )
        for m in numbers
    }


EXACTLY = {EXACT: ({}, "mse"), POSTERIOR: ({}, "posterior")}


def run(study, methods):
    errors = at_the_points(study, methods)
    table(study, errors, *held_out(study, methods))
    return errors


def clean(ax):
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def draw_curves(ax, study, errors, shown):
    ages = study.X_star[:, 0]
    for name, (colour, style) in shown.items():
        ax.plot(ages, errors[name].noise, style, color=colour, linewidth=2, label=name)
    women = np.unique(study.X[:, 0])
    ax.plot(women, np.full(len(women), 0.02), "|", color=GREY, transform=ax.get_xaxis_transform())
    ax.set(xlabel="age in years (ticks: women)", ylabel="std of the noise in cm", ylim=(-4, None))
    ax.set_title("!Kung heights: noise by age", loc="left", fontsize="medium")
    ax.legend(frameon=False)
    clean(ax)


def draw_map(ax, study, noise, title, norm, places):
    side = int(np.sqrt(len(study.X_star)))
    x, y = study.X_star[:side, 0], study.X_star[::side, 1]
    shades = ax.pcolormesh(x, y, noise.reshape(side, side), cmap="viridis", norm=norm, shading="gouraud")
    ax.plot(*study.X.T, ".", color="white", markersize=1.3, markeredgewidth=0, alpha=0.55)
    if places is not None:
        ax.plot(*places.T, "+", color=ORANGE, markersize=6, markeredgewidth=1.5)
    ax.set(aspect="equal", xlim=(480, 580), ylim=(130, 230), xlabel="easting in km")
    ax.set_title(title, loc="left", fontsize="medium")
    return shades


def draw_sizes(ax, study, errors, numbers, group, title):
    """Noise, bias and both, by the number of places."""
    mask = study.groups(study.X_star, study.X)[group]
    found = [errors[f"{m} places"] for m in numbers]
    for label, colour, style, pick in (
        ("noise", BLUE, "o--", lambda e: e.noise),
        ("bias", ORANGE, "s:", lambda e: e.bias),
        ("both", "black", "D-", lambda e: e.both),
    ):
        values = [rms(pick(each)[mask]) for each in found]
        ax.plot(numbers, values, style, color=colour, markersize=4.5, label=label)
    ax.axhline(rms(errors[EXACT].noise[mask]), color=GREY, linewidth=1, label="exact GP: noise")
    ax.axhline(
        rms(errors[POSTERIOR].both[mask]),
        color=GREEN,
        linewidth=1,
        linestyle="-.",
        label="exact GP, posterior: both",
    )
    ax.set_xscale("log")
    ax.set_xticks(numbers, [str(m) for m in numbers])
    ax.minorticks_off()
    ax.set(xlabel="number of places", ylabel=f"rms in {study.unit}", ylim=(0, None))
    ax.set_title(title, loc="left", fontsize="medium")
    clean(ax)


def picture(output, women, by_age, sales, by_place):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12.6, 7.6), layout="constrained")
    shown = {
        EXACT: (GREY, "-"),
        "6 places": (PINK, "-."),
        "5 places": (GREEN, "--"),
        "4 places": (BLUE, "-"),
    }
    draw_curves(axes[0, 0], women, by_age, shown)
    norm = mpl.colors.Normalize(0.0, by_place[EXACT].noise.max())
    places = sales.gp(inducing=50).planner(sales.X, X_star=sales.X_star).gp.inducing
    draw_map(axes[0, 1], sales, by_place[EXACT].noise, "London prices: noise, exact GP", norm, None)
    shades = draw_map(
        axes[0, 2],
        sales,
        by_place["50 places"].noise,
        "London prices: noise, 50 places (crosses)",
        norm,
        places,
    )
    axes[0, 1].set_ylabel("northing in km")
    figure.colorbar(shades, ax=axes[0, 1:], label="std of the noise in £1000", pad=0.01)
    draw_sizes(axes[1, 0], women, by_age, KUNG_PLACES, 1, "!Kung heights, ages over 70")
    draw_sizes(axes[1, 1], sales, by_place, LONDON_PLACES, 1, "London prices, the 5 % that stand most alone")
    draw_sizes(axes[1, 2], sales, by_place, LONDON_PLACES, 0, "London prices, the denser half")
    axes[1, 0].legend(frameon=False)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110, metadata={"Software": None})
    plt.close(figure)


KUNG_PLACES = (3, 4, 5, 6, 8, 12, 20, 40)
LONDON_PLACES = (25, 50, 75, 100, 200, 500)


def main(output):
    women, sales = kung(), london()
    methods = EXACTLY | kmeans(KUNG_PLACES) | kmeans((4, 5), "fitc") | in_the_bulk(women.X, (4, 5, 20))
    by_age = run(women, methods | kmeans((5,), design="posterior"))
    methods = EXACTLY | kmeans(LONDON_PLACES) | kmeans((50,), "fitc") | kmeans((50,), design="posterior")
    by_place = run(sales, methods)
    run(london(5.0, 100.0, 80.0), EXACTLY | kmeans((50, 200, 500)))
    picture(output, women, by_age, sales, by_place)


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "inducing_outliers.png"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=here)
    main(parser.parse_args().output)
