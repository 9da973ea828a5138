"""Figure 2 of the paper: why cloaking needs less noise, with two training and two test points.

    python experiments/paper/figure2.py [--out DIR] [--docs]

Nothing here is data: four made-up points. Noise is drawn to one scale: its std equals what one person
can do (mu = 1), so an ellipse hides a change if the change is not outside it. A real release multiplies
all of it by 1.88 for (1, 0.01). With --docs the picture is also written to docs/pictures/two_points.png.
"""

from __future__ import annotations

from pathlib import Path

import common
import numpy as np
from common import BLACK, BLUE, GREEN, GREY, ORANGE, PALE

import cloakgp
from cloakgp.kernels import EQ

X = np.array([[2.0], [4.6]])
X_STAR = np.array([[2.4], [5.6]])
Y = np.array([1.2, 0.7])
D = 1.0  # how far one person's y may move
GP = cloakgp.GP(EQ(5.0, variance=1.0), 0.02, (0.5, 1.5), mean=0.0)
GRID = np.linspace(0.0, 7.5, 200)[:, None]
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "two_points.png"
BEFORE, AFTER, NOISED = GREY, ORANGE, BLUE


def predicted(y, where):
    return GP.mean + cloak(where) @ (y - GP.mean)


def cloak(where):
    """The cloaking matrix C: how predictions move with y."""
    return GP.kernel(where, X) @ np.linalg.inv(GP.kernel(X) + GP.noise * np.eye(len(X)))


def shapes():
    """Covariances of the noise at the test points for mu = 1: function's release, and cloaked ones."""
    promise = {"epsilon": 1.0, "delta": 0.01}
    whole = GP.plan_function(X, **promise)
    root = whole.function.weights(X_STAR) * whole.measurement.noise_scale
    found = {"function": root @ root.T * whole.measurement.mu() ** 2}
    for design in ("volume", "mse"):
        plan = GP.plan(X, X_star=X_STAR, **promise, design=design, gap=1e-4)
        found[design] = plan.noise_cov * plan.measurement.mu() ** 2
    return found


def outline(covariance, centre):
    """The ellipse of one std."""
    angle = np.linspace(0, 2 * np.pi, 200)
    return centre[:, None] + np.linalg.cholesky(covariance) @ np.array([np.cos(angle), np.sin(angle)])


def draw_fit(ax, y, after, colour, words):
    """The fit before, and what it becomes."""
    x = GRID[:, 0]
    ax.plot(x, predicted(Y, GRID), color=BEFORE, linewidth=1.5)
    if after is not None:
        ax.plot(x, after(GRID), color=colour, linewidth=2)
    before, now = predicted(Y, X_STAR), after(X_STAR)
    for place, low, high in zip(X_STAR[:, 0], before, now, strict=True):
        ax.annotate(
            "", (place, high), (place, low), arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.3}
        )
        ax.axvline(place, color=PALE, linewidth=0.8, linestyle=":", zorder=0)
    ax.plot(X_STAR[:, 0], before, "*", color=BEFORE, markersize=11, zorder=5)
    ax.plot(X_STAR[:, 0], now, "*", color=colour, markersize=13, zorder=6)
    ax.plot(X[:, 0], Y, "o", color=BLACK, markersize=6.5, zorder=7)
    for i in np.flatnonzero(y != Y):
        ax.annotate(
            "", (X[i, 0], y[i] - 0.04), (X[i, 0], Y[i]), arrowprops={"arrowstyle": "-|>", "color": BLACK}
        )
        ax.plot(X[i, 0], y[i], "o", color="white", markeredgecolor=BLACK, markersize=6.5, zorder=7)
        ax.text(X[i, 0] - 0.15, (y[i] + Y[i]) / 2, "$d$", ha="right", va="center")
    for i, name in enumerate(("$y_1$", "$y_2$")):
        ax.text(X[i, 0] - 0.15, Y[i] - 0.09, name, ha="right", va="top")
    ax.set(xlim=(0.3, 7.2), ylim=(-0.85, 3.05), yticks=[])
    ax.set_xticks(X_STAR[:, 0], ["test point 1", "test point 2"])
    ax.tick_params(length=0)
    ax.set_title(words, linespacing=1.3)


def draw_plane(ax, covariance, colour, now, hollow=()):
    """Both predictions as one point in the plane, and the noise's ellipse."""
    before = predicted(Y, X_STAR)
    if covariance is not None:
        ax.fill(*outline(covariance, before), color=colour, alpha=0.14, linewidth=0)
        ax.plot(*outline(covariance, before), color=colour, linewidth=1.6)
    for move in hollow:
        for sign in (1, -1):
            ax.plot(
                *(before + sign * move), "*", color="white", markeredgecolor=AFTER, markersize=11, zorder=4
            )
    if now is not None:
        points, shade = now
        ax.annotate("", points, before, arrowprops={"arrowstyle": "->", "color": shade, "lw": 1.3}, zorder=5)
        ax.plot(*points, "*", color=shade, markersize=13, zorder=6)
    ax.plot(*before, "*", color=BEFORE, markersize=11, zorder=5)
    ax.set(aspect="equal", xlim=(-0.85, 3.1), ylim=(-1.55, 2.4), xticks=[], yticks=[])
    ax.set_xlabel("prediction at test point 1")


def draw():
    plt = common.pyplot()
    found, C = shapes(), cloak(X_STAR)
    before = predicted(Y, X_STAR)
    figure, axes = plt.subplots(2, 4, figsize=(13.2, 7.0), layout="constrained", height_ratios=(1, 1.15))
    whole = prior_draw(found["function"])
    cloaked = before + np.linalg.cholesky(found["volume"]) @ np.array([-0.7, 0.5])
    changed = [Y + D * unit for unit in np.eye(2)]
    moved = [predicted(y, X_STAR) for y in changed]

    draw_fit(axes[0, 0], Y, whole, NOISED, "The function's release adds\na draw of the prior")
    draw_plane(axes[1, 0], found["function"], NOISED, (whole(X_STAR), NOISED))
    for column, (y, now, words) in enumerate(zip(changed, moved, ("first", "second"), strict=True), 1):
        title = f"Change the {words} person's $y$\nas far as it can"
        draw_fit(axes[0, column], y, lambda where, y=y: predicted(y, where), AFTER, title)
        draw_plane(axes[1, column], found["function"], PALE, (now, AFTER))
    bend = np.linalg.solve(GP.kernel(X_STAR), cloaked - before)
    draw_fit(
        axes[0, 3],
        Y,
        lambda where: predicted(Y, where) + GP.kernel(where, X_STAR) @ bend,
        GREEN,
        "Cloaking adds only what\ncan hide such changes",
    )
    draw_plane(axes[1, 3], found["volume"], GREEN, (cloaked, GREEN), hollow=D * C.T)
    axes[1, 3].plot(*outline(found["function"], before), color=PALE, linewidth=1.3)
    for letter, ax in zip("ACEGBDFH", axes.flat, strict=True):
        common.letter(ax, letter)
    axes[0, 0].set_ylabel("outcome $y$, prediction $f$")
    axes[1, 0].set_ylabel("prediction at test point 2")
    explain(plt, figure)
    return plt, figure, found, C


def prior_draw(covariance):
    """One draw of the scaled prior, added to the fit: all of it moves together."""
    scale = np.sqrt(covariance[0, 0] / GP.kernel(X_STAR)[0, 0])
    gram = GP.kernel(X_STAR)
    heights = scale * np.linalg.cholesky(gram) @ np.array([0.8, 0.25])
    weights = np.linalg.solve(gram, heights)
    return lambda where: predicted(Y, where) + GP.kernel(where, X_STAR) @ weights


def explain(plt, figure):
    line = plt.Line2D
    entries = [
        (line([], [], marker="o", color=BLACK, linestyle=""), "training outcomes (○ changed by $d$)"),
        (line([], [], marker="*", color=BEFORE, markersize=11), "predictions without noise"),
        (line([], [], marker="*", color=AFTER, markersize=11), "after one outcome changed"),
        (line([], [], marker="*", color=NOISED, markersize=11), "function's release, and its noise"),
        (line([], [], marker="*", color=GREEN, markersize=11), "cloaked release, and its noise"),
        (line([], [], color=PALE), "the function's noise, for comparison"),
        (
            line([], [], marker="*", color="white", markeredgecolor=AFTER, linestyle="", markersize=11),
            "all that one person could do",
        ),
    ]
    figure.legend(*zip(*entries, strict=True), loc="outside upper center", ncols=4)
    common.caption(
        figure,
        "Top: two people and two test points. Bottom: the same predictions, one against the other. "
        "One person can push them along two directions only (D, F); noise must cover those,",
        "and nothing else (H). A draw of the prior (B) moves both predictions together, which no one person "
        "can do. Ellipses are one std, for noise as large as the change that it hides.",
    )


def main(out, docs):
    plt, figure, found, C = draw()
    before = predicted(Y, X_STAR)
    print("Two training and two test points, made up. Cloaking matrix C:")
    print("\n".join("  " + "".join(f"{value:8.3f}" for value in row) for row in C))
    print(f"\n  {'noise for mu = 1':20}{'std 1':>8}{'std 2':>8}{'corr':>8}{'area':>8}")
    for name, covariance in found.items():
        std = np.sqrt(np.diag(covariance))
        area = np.pi * np.sqrt(np.linalg.det(covariance))
        corr = covariance[0, 1] / std.prod()
        print(f"  {name:20}{std[0]:8.3f}{std[1]:8.3f}{corr:8.2f}{area:8.3f}")
        reach = [np.sqrt(c @ np.linalg.solve(covariance, c)) for c in D * C.T]
        print(f"  {'':4}one person's change, in its stds: {reach[0]:.3f} and {reach[1]:.3f}")
    print(f"\n  predictions without noise: {before[0]:.3f}, {before[1]:.3f}")
    common.save(figure, out / "figure2.png")
    if docs:
        common.save(figure, PICTURE, dpi=115, colours=96)
    plt.close(figure)


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--docs", action="store_true", help="also write docs/pictures/two_points.png")
    arguments = options.parse_args()
    main(arguments.out, arguments.docs)
