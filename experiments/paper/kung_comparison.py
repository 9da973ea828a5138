"""The paper's comparison on the !Kung women: cloaking, bins, and noise on every height.

    CLOAKGP_DATA=folder python experiments/paper/kung_comparison.py [--out DIR] [--splits 10]

epsilon = 1 throughout; delta = 0.01 for Gaussian noise and 0 for Laplace. The models are the paper's grid:
EQ lengthscales from 3 to 81 years, noise std from 1.1 to 12.7 cm, five of each; kernel std 25.74 cm,
heights clipped to 58.27 to 158.27 cm. Each split holds out 50 of 287 women, whose ages are the test points.

Every number is exact over the privacy noise and over the private choice of a model: squared errors of
all 25 are weighted by the probability that the exponential mechanism chooses them. "best" is the model with
the least error on the held-out women over all splits: a choice that is not private, and flatters. The column
"INVALID" chooses by the summed squared error of the cloaked predictions with the sensitivity that the paper's
supplement derives, 9 d^2 + sum of d^2 max |c|^2 over all folds but one. That leaves out the cross term
2 d e'c, so the choice is not epsilon-DP; it shows where the printed 17.4 cm come from.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import common
import numpy as np
from common import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY
from sklearn.model_selection import ShuffleSplit

import cloakgp
from cloakgp import binning
from cloakgp.data.blas import one_blas_thread
from cloakgp.datasets import fetch_kung, make_kung_like
from cloakgp.kernels import EQ

BOUNDS, EPSILON, DELTA, STD = (58.27, 158.27), 1.0, 0.01, 25.74
GRID = {"lengthscale": np.geomspace(3.0, 81.0, 5), "noise": np.geomspace(1.1, 12.7, 5) ** 2}
WIDTHS = (2, 5, 10, 15, 30)  # years; the paper does not say which
FOLDS = ShuffleSplit(100, test_size=0.2, random_state=0)
CLOAKED = {
    "cloaking, the paper (volume, classic)": {"design": "volume", "calibration": "classic"},
    "cloaking, volume, analytic": {"design": "volume"},
    "cloaking, mse": {"design": "mse"},
    "cloaking, posterior (denoised)": {"design": "posterior"},
}
BINNED = {  # (predictor, knows the privacy noise): words and what the paper prints
    ("constant", True): ("the bin's mean", "23.4-50.7"),
    ("gp", False): ("GP, blind to the noise", "23.4-50.7"),
    ("gp", True): ("GP, knows the noise", ""),
    ("integral", False): ("integral GP, blind", "14.2-20.8"),
    ("integral", True): ("integral GP, knows", ""),
}
NOISES = {"laplace": None, "gaussian": DELTA}
LOCAL = {"laplace": "noise on every height, Laplace", "gaussian": "noise on every height, Gaussian"}


def models():
    return cloakgp.candidates(kernel=EQ, variance=STD**2, bounds=BOUNDS, **GRID)


def binned_errors(plan, y, y_test):
    """Expected squared errors of predictions from noisy bins, and the noise's mean variance."""
    means = np.bincount(plan.measurement.labels, np.clip(y, *BOUNDS)) / plan.counts
    exact = plan.mean + plan.gain(plan.X_star) @ (means - plan.mean)
    return np.mean((exact - y_test) ** 2 + plan.noise_std**2), np.mean(plan.noise_std**2)


def cloaked_errors(plan, y, y_test):
    counted = np.mean(plan.noise_std**2) if plan.certificate.unbiased else plan.certificate.objective
    return np.mean(common.released(plan, y).squared_errors(y_test)), counted


def bin_plan(X, X_test, width, predict, mechanism, gp, knows):
    """Bins of so many years. A GP that is blind takes every bin for equally sure."""
    edges = np.arange(0.0, 90.0 + width, width)
    fit = {} if predict == "constant" else {"kernel": gp.kernel, "noise": gp.noise}
    plan = binning.plan(
        X, X_star=X_test, edges=edges, bounds=BOUNDS, epsilon=EPSILON, delta=NOISES[mechanism],
        mechanism=mechanism, predict=predict, **fit,
    )  # fmt: skip
    if knows:
        return plan
    return replace(plan, variances=np.full(len(plan.counts), gp.noise))


def local_plan(X, X_test, mechanism, gp):
    return binning.local(
        X, X_star=X_test, kernel=gp.kernel, noise=gp.noise, bounds=BOUNDS, epsilon=EPSILON,
        delta=NOISES[mechanism], mechanism=mechanism,
    )  # fmt: skip


def all_errors(gps, X, y, X_test, y_test):
    """For each method an array (models, 2): expected squared error, and what the noise adds."""
    found = {
        "no privacy": [(np.mean((common.exact_mean(gp, X, y, X_test) - y_test) ** 2), 0.0) for gp in gps]
    }
    for name, options in CLOAKED.items():
        plans = (gp.plan(X, X_star=X_test, epsilon=EPSILON, delta=DELTA, **options) for gp in gps)
        found[name] = [cloaked_errors(plan, y, y_test) for plan in plans]
    for mechanism in NOISES:
        plans = (local_plan(X, X_test, mechanism, gp) for gp in gps)
        found[LOCAL[mechanism]] = [binned_errors(plan, y, y_test) for plan in plans]
        for predict, knows in BINNED:
            for width in WIDTHS:
                tried = gps[:1] if predict == "constant" else gps
                plans = (bin_plan(X, X_test, width, predict, mechanism, gp, knows) for gp in tried)
                found[predict, knows, mechanism, width] = [binned_errors(plan, y, y_test) for plan in plans]
    return {name: np.array(pairs) for name, pairs in found.items()}


def choice(utility, sensitivity):
    """The exponential mechanism's probabilities."""
    log_odds = EPSILON / (2 * sensitivity) * utility
    odds = np.exp(log_odds - log_odds.max())
    return odds / odds.sum()


def paper_losses(gps, X, y):
    """Mean squared errors with the paper's clip, 4 d, and the paper's sensitivity of their sum: too small."""
    width = BOUNDS[1] - BOUNDS[0]
    plan = cloakgp.plan_selection(gps, X, epsilon=EPSILON, folds=FOLDS, loss_clip=4 * width)
    sensitivity = max(paper_sensitivity(gp, X, width) for gp in gps)
    return plan.custodian_probabilities(y).losses, sensitivity


def paper_sensitivity(gp, X, width):
    """9 d^2, and d^2 max_j |c_j|^2 for every fold but the one with the least."""
    moved = []
    for train, test in FOLDS.split(X):
        K = gp.kernel(X[train]) + gp.noise * np.eye(len(train))
        columns = np.linalg.solve(K, gp.kernel(X[train], X[test]))
        moved.append(np.max(np.sum(columns**2, axis=1)))
    return width**2 * (9 + np.sum(moved) - np.min(moved))


def study(X, y, n_splits):
    """Per method, over splits: errors of all models, and expected errors by how one is chosen."""
    gps, errors, chosen = models(), defaultdict(list), defaultdict(list)
    for train, test in common.splits(len(X), 50, n_splits):
        selection = cloakgp.plan_selection(gps, X[train], epsilon=EPSILON, folds=FOLDS)
        losses = selection.custodian_probabilities(y[train]).losses
        tested = selection.certificate.n_tested
        squared, too_small = paper_losses(gps, X[train], y[train])
        found = all_errors(gps, X[train], y[train], X[test], y[test])
        for name, pairs in found.items():
            errors[name].append(pairs[:, 0])
            if len(pairs) > 1:
                for how, extra in (("private", 0.0), ("counted", pairs[:, 1])):
                    odds = choice(-tested * (losses + extra), selection.sensitivity)
                    chosen[name, how].append(odds @ pairs[:, 0])
                odds = choice(-tested * (squared + pairs[:, 1]), too_small)
                chosen[name, "invalid"].append(odds @ pairs[:, 0])
    best, private = {}, {key: np.sqrt(np.mean(values)) for key, values in chosen.items()}
    for name, values in errors.items():
        by_model = np.mean(values, axis=0)
        best[name] = (np.sqrt(by_model.min()), gps[int(np.argmin(by_model))])
        if len(by_model) > 1:
            private[name, "lot"] = np.sqrt(by_model.mean())
    return best, private


def setting(gp):
    return f"{gp.kernel.lengthscale:.0f} years, {np.sqrt(gp.noise):.1f} cm"


def report(best, private, source, n_splits):
    print(f"Expected held-out RMSE in cm, epsilon = 1, {n_splits} splits of 237 + 50, {source}\n")
    columns = ("best", "private", "counted", "by lot", "INVALID", "in print")
    print(
        f"{'':40}" + "".join(f"{column:>10}" for column in columns) + "  best model: lengthscale, noise std"
    )
    printed = {PAPER: "14.3/17.4"}
    for name in ("no privacy", *CLOAKED, *LOCAL.values()):
        cells = [best[name][0], *(private[name, how] for how in HOW)]
        row = "".join(f"{cell:10.1f}" for cell in cells)
        print(f"{name:40}{row}{printed.get(name, ''):>10}  {setting(best[name][1])}")
    for mechanism in NOISES:
        print(f"\nBins with {mechanism.capitalize()} noise: best model's error by width of the bins in years")
        print(f"{'':40}" + "".join(f"{width:10d}" for width in WIDTHS) + f"{'in print':>12}")
        for (predict, knows), (words, text) in BINNED.items():
            cells = [best[predict, knows, mechanism, width][0] for width in WIDTHS]
            print(f"{words:40}" + "".join(f"{cell:10.1f}" for cell in cells) + f"{text:>12}")
    print("\nWith the model chosen privately (noise not counted), bins of 10 years, Laplace and Gaussian")
    for (predict, knows), (words, _) in BINNED.items():
        if predict != "constant":
            cells = [private[(predict, knows, mechanism, 10), "private"] for mechanism in NOISES]
            print(f"{words:40}" + "".join(f"{cell:10.1f}" for cell in cells))
    print("\nbest: chosen by the held-out women themselves, not private. private: chosen at epsilon = 1 by")
    print("cross-validation, beside the release's own; counted: the same, with the noise of the coming")
    print("release added to each model's loss (public); by lot: any model, without looking at heights;")
    print("INVALID: counted, by the paper's sensitivity, which one height can exceed: not private.")


PAPER = "cloaking, the paper (volume, classic)"
HOW = ("private", "counted", "lot", "invalid")
SHORT = dict(
    zip(
        (*LOCAL.values(), *CLOAKED),
        (
            "every\nheight,\nLaplace",
            "every\nheight,\nGaussian",
            "paper:\nvolume,\nclassic",
            "volume,\nanalytic",
            "mse",
            "posterior",
        ),
        strict=True,
    )
)
STYLES = {
    ("constant", True): (ORANGE, "-", "o"),
    ("gp", False): (PINK, "--", "s"),
    ("gp", True): (PINK, "-", "s"),
    ("integral", False): (BLUE, "--", "D"),
    ("integral", True): (BLUE, "-", "D"),
}


def draw_bins(ax, best, mechanism):
    for low, high, colour, words in (
        (23.4, 50.7, ORANGE, "in print: simple 23.4 to 50.7"),
        (14.2, 20.8, SKY, "in print: integral 14.2 to 20.8"),
    ):
        ax.axhspan(low, high, color=colour, alpha=0.13, linewidth=0, label=words)
    for key, (colour, style, marker) in STYLES.items():
        values = [best[*key, mechanism, width][0] for width in WIDTHS]
        places = np.array(WIDTHS) * {"gp": 0.96, "integral": 1.04}.get(key[0], 1.0)  # else they would overlap
        ax.plot(places, values, style, marker=marker, color=colour, markersize=5, label=BINNED[key][0])
    for name, colour, style in (("cloaking, posterior (denoised)", GREEN, "-"), ("no privacy", BLACK, ":")):
        ax.axhline(best[name][0], color=colour, linestyle=style, linewidth=1.6, label=name)
    ax.set(xscale="log", xlabel="width of the bins in years")
    ax.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
    promise = "(1, 0)" if mechanism == "laplace" else "(1, 0.01)"
    ax.set_title(f"Bins, {mechanism.capitalize()} noise\n{promise}-DP", linespacing=1.3)


def draw_cloaked(ax, best, private):
    for place, name in enumerate(SHORT):
        colour = GREY if name in LOCAL.values() else GREEN
        for shift, value, face, size in (
            (0.0, best[name][0], colour, 9),
            (-0.16, private[name, "counted"], SKY, 7),
            (0.16, private[name, "private"], "white", 7),
        ):
            ax.plot(place + shift, value, "o", markerfacecolor=face, markeredgecolor=colour, markersize=size)
        ax.plot(place + 0.32, private[name, "invalid"], "x", color=BLACK, markersize=6)
        if name == PAPER:
            ax.plot([place] * 2, (14.3, 17.4), "_", color=ORANGE, markersize=26, markeredgewidth=2.2)
    ax.axhline(best["no privacy"][0], color=BLACK, linestyle=":", linewidth=1.6)
    ax.set_xticks(range(len(SHORT)), SHORT.values())
    ax.tick_params(axis="x", length=0)
    ax.axvline(1.5, color="#C8C8C8", linewidth=0.8)
    ax.set_title("Noise on every height: (1, 0), (1, 0.01)\nCloaking: (1, 0.01)-DP", linespacing=1.3)


def draw(best, private, source, n_splits, out):
    plt = common.pyplot()
    figure, axes = plt.subplots(
        1, 3, figsize=(13.4, 6.0), sharey=True, layout="constrained", width_ratios=(1, 1, 1.25)
    )
    for ax, mechanism in zip(axes, NOISES, strict=False):
        draw_bins(ax, best, mechanism)
    draw_cloaked(axes[2], best, private)
    ticks = (5, 7, 10, 15, 20, 30, 50)
    axes[0].set(yscale="log", ylabel="expected held-out RMSE in cm")
    axes[0].set_yticks(ticks, [str(tick) for tick in ticks])
    axes[0].set_ylim(5, 62)
    for ax in axes:
        ax.minorticks_off()
        ax.grid(axis="y", color="#E6E6E6", linewidth=0.7)
        ax.set_axisbelow(True)
    entries = list(zip(*axes[0].get_legend_handles_labels(), strict=True))
    line = plt.Line2D
    entries += [
        (line([], [], marker="o", color=GREEN, linestyle="", markersize=9), "best model, choice not private"),
        (dot(line, SKY), "chosen privately, noise counted"),
        (dot(line, "white"), "chosen privately, noise not counted"),
        (line([], [], marker="x", color=BLACK, linestyle="", markersize=6),
         "the paper's sensitivity, counted: INVALID"),
        (line([], [], marker="_", color=ORANGE, linestyle="", markersize=16, markeredgewidth=2.2),
         "in print: 14.3; 17.4 if chosen privately"),
    ]  # fmt: skip
    figure.legend(*zip(*entries, strict=True), loc="outside upper center", ncols=4)
    common.caption(
        figure,
        f"Data: {source}; {n_splits} splits of 237 + 50. Curves: best of 25 models. Exact over the privacy "
        "noise and over the private choice, so nothing is drawn at random but the splits (public seed).",
    )
    common.save(figure, out / "kung_comparison.png")
    plt.close(figure)


def dot(line, face):
    return line([], [], marker="o", markerfacecolor=face, markeredgecolor=GREEN, linestyle="", markersize=7)


def main(out, n_splits):
    (X, y), source = common.load(fetch_kung, make_kung_like, "287 !Kung women, Howell's census")
    with one_blas_thread():
        best, private = study(X, y, n_splits)
    report(best, private, source, n_splits)
    draw(best, private, source, n_splits, out)


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--splits", type=int, default=10)
    arguments = options.parse_args()
    main(arguments.out, arguments.splits)
