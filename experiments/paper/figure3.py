"""Figure 3 of the paper: a map of London house prices, released with privacy.

    CLOAKGP_DATA=folder python experiments/paper/figure3.py [--out DIR] [--custodian]

Left the paper's method (volume design, classic calibration), right ours (mse, analytic), for the same
promise. Lengthscale 15 km, prices clipped to 100 to 500 thousand pounds, epsilon = 1, delta = 0.01, noise
std 400 thousand as printed. A circle's area is its price, as in the paper, and so is its colour. The
kernel's variance is not in print; here it equals the noise's, as nearly in the paper's other large example.
The map goes 35 km beyond the sales, to show where predictions return to the prior mean. With --custodian
the GP's own prediction is drawn too, by contours. That picture shows what privacy is to hide, and is stamped.
"""

from __future__ import annotations

import common
import matplotlib as mpl
import numpy as np
from common import BLACK, ORANGE

import cloakgp
from cloakgp.datasets import LONDON_BOX, fetch_london_prices, make_city_like
from cloakgp.kernels import EQ
from cloakgp.plots import NOT_FOR_RELEASE
from cloakgp.private.room import custodian_view

BOUNDS = (100.0, 500.0)  # thousands of pounds
WIDTH = BOUNDS[1] - BOUNDS[0]
GP = cloakgp.GP(EQ(15.0, variance=400.0**2), 400.0**2, BOUNDS)  # km
FADED = 0.4  # noise std, as a share of the bounds' width, at which a circle is not seen
MARGIN, STEP, NEAR = 35.0, 8.5, 5.0  # km
RIM = "#9A9A9A"
LARGEST = 200.0  # area of a circle of the upper bound, in square points
LEVELS = (225, 250, 275, 300, 325, 350, 375, 400, 425)
METHODS = {
    "The paper: volume design, classic calibration": {"design": "volume", "calibration": "classic"},
    "Ours, same promise: mse design, analytic calibration": {"design": "mse", "calibration": "analytic"},
}
COLOURS = mpl.colors.LinearSegmentedColormap.from_list(
    "dark ends, no pale colours", ["#0D2A6B", "#3E4FA8", "#8C4FA3", "#C9497B", "#E0662F", "#E8950C"]
)


def sales():
    """Places in km, prices in thousands, and words for them."""
    data, source = common.load(fetch_london_prices, make_city_like, "sales of January 2016, HM Land Registry")
    return data.X / 1000, data.y / 1000, f"{len(data.X)} {source} (in print: 4766 sales, 2013 to 2016)"


def grid_points(step=STEP):
    (west, east), (south, north) = np.array(LONDON_BOX) / 1000
    axes = [np.arange(a - MARGIN, b + MARGIN + 0.1, step) for a, b in ((west, east), (south, north))]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def in_box(points, inset=0.0):
    """Whether points lie in the square of the sales, and so far from its edge."""
    low, high = np.array(LONDON_BOX).T / 1000
    return ((points > low + inset) & (points < high - inset)).all(axis=1)


def nearby(points, X, radius):
    """How many sales lie within so many km of each point."""
    apart = np.linalg.norm(points[:, None] - X[None], axis=2)
    return np.count_nonzero(apart < radius, axis=1), apart.min(axis=1)


def regions(points, X, std):
    """The paper's A to D, found by public rules: places, what they are, and a test point of each."""
    counts, distance = nearby(points, X, NEAR)
    around = np.array([between(point, X) for point in points])
    bridges = in_box(points, 6.0) & around
    few = max(2, counts[bridges].min(initial=len(X)))
    quiet = np.where(bridges & (counts <= few), std, np.inf)
    return {
        "A": ("dense: little noise", int(np.argmax(counts))),
        "B": ("sparse: much noise", int(np.argmax(np.where(in_box(points) | (counts > 0), std, 0.0)))),
        "C": ("empty corner: prior mean, no noise", int(np.argmax(distance))),
        "D": ("bridge: few sales, but some on both sides", int(np.argmin(quiet))),
    }


def between(point, X, reach=18.0):
    """Whether sales lie on opposite sides of a point, near enough to matter, but not very near."""
    away = X - point
    far = np.linalg.norm(away, axis=1)
    angles = np.arctan2(*away[(far > NEAR) & (far < reach)].T)
    sides = np.bincount(((angles + np.pi) / (np.pi / 4)).astype(int) % 8, minlength=8)
    return bool((np.minimum(sides[:4], sides[4:]) >= 15).any())


def shade(values, std):
    """Colours by price, opacity by noise."""
    colours = COLOURS(np.clip((values - BOUNDS[0]) / WIDTH, 0, 1))
    colours[:, 3] = np.clip(1 - std / (FADED * WIDTH), 0, 1)
    return colours


def area(values):
    """Of circles: in proportion to the price."""
    return LARGEST * np.clip(values, *BOUNDS) / BOUNDS[1]


def draw_map(ax, release, X, title, places):
    std = release.noise_std
    ax.plot(*X.T, ".", color=BLACK, markersize=1.6, markeredgewidth=0, alpha=0.75, zorder=1)
    sizes = area(release.mean)
    ax.scatter(*release.X_star.T, s=sizes, c=shade(release.mean, std), linewidths=0, zorder=3)
    rim = {"s": sizes, "facecolors": "none", "edgecolors": RIM, "linewidths": 0.35}
    ax.scatter(*release.X_star.T, **rim, zorder=2)
    for letter, (_, index) in places.items():
        point = release.X_star[index]
        ax.scatter(*point, s=330, facecolors="none", edgecolors=BLACK, linewidths=1.6, zorder=6)
        frame = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": BLACK, "linewidth": 0.8}
        style = {"weight": "bold", "fontsize": 10, "bbox": frame, "zorder": 7}
        ax.annotate(letter, point, (10, -17), textcoords="offset points", **style)
    ax.set(aspect="equal", xlabel="easting in km", title=title)
    ax.margins(0.03)


def exact_surface(X, y):
    """The custodian's view: the GP's own prediction on a fine grid."""
    points = grid_points(3.0)
    side = int(np.sqrt(len(points)))
    exact = common.exact_mean(GP, X, custodian_view(y, len(X)), points).reshape(side, side)
    inside = exact.ravel()[in_box(points)]
    print(f"\nNOT PRIVATE: the GP's own prediction among the sales is {inside.min():.0f} to ", end="")
    print(f"{inside.max():.0f} thousand pounds (contours in print: 215 to 437)")
    return points[:side, 0], points[::side, 1], exact


def draw_exact(ax, surface):
    """Contours that are not private, and are stamped so."""
    limits = ax.axis()
    lines = ax.contour(*surface, levels=LEVELS, colors=BLACK, linewidths=0.8, zorder=5)
    ax.clabel(lines, levels=LEVELS[::2], fmt="%d", fontsize=7.5)
    ax.axis(limits)
    frame = {"facecolor": "white", "edgecolor": ORANGE, "boxstyle": "square,pad=0.25"}
    style = {"color": ORANGE, "weight": "bold", "fontsize": 12, "ha": "center", "va": "top"}
    ax.text(0.5, 0.975, NOT_FOR_RELEASE, transform=ax.transAxes, bbox=frame, zorder=10, **style)


def explain(figure, axes, places, source, custodian):
    plt = common.pyplot()
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(*BOUNDS), COLOURS)
    bar = figure.colorbar(scale, ax=axes, shrink=0.55, pad=0.012, aspect=28)
    bar.set_label("released price in thousand pounds (colour and area)")
    entries = [(plt.Line2D([], [], marker=".", color=BLACK, linestyle="", markersize=4), "a sale")]
    for price in (100, 300, 500):
        style = {"marker": "o", "linestyle": "", "markersize": np.sqrt(area(price)), "markeredgewidth": 0}
        colour = COLOURS((price - BOUNDS[0]) / WIDTH)
        entries.append((plt.Line2D([], [], color=colour, **style), f"£{price}k"))
    for share in (0.0, 0.1, 0.2, 0.3):
        colour = mpl.colors.to_rgba("#8C4FA3", 1 - share / FADED)
        dot = plt.Line2D([], [], marker="o", color=colour, linestyle="", markersize=12, markeredgewidth=0)
        entries.append((dot, f"noise std {share * WIDTH:.0f}"))
    hollow = plt.Line2D([], [], marker="o", color="white", markeredgecolor=RIM, markersize=12, linestyle="")
    entries.append((hollow, f"{FADED * WIDTH:.0f} or more: not seen"))
    figure.legend(*zip(*entries, strict=True), loc="outside upper center", ncols=9, handletextpad=0.3)
    contours = "Contours: the GP's own prediction." if custodian else ""
    words = "; ".join(f"{letter} {name}" for letter, (name, _) in places.items())
    common.caption(
        figure,
        f"Data: {source}; all are kept, and prices clipped to 100 to 500 thousand pounds. "
        f"ε = 1, δ = 0.01, lengthscale 15 km. Opacity: noise. {contours}",
        f"{words}. {common.SEEDED}",
    )


def draw(plans, X, y, source, places, out, custodian):
    plt = common.pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(14.2, 8.1), sharey=True, layout="constrained")
    surface = exact_surface(X, y) if custodian else None
    for ax, (title, plan) in zip(axes, plans.items(), strict=True):
        with common.seeded(3):
            release = plan.release(y)
        draw_map(ax, release, X, title, places)
        if custodian:
            draw_exact(ax, surface)
    axes[0].set_ylabel("northing in km")
    explain(figure, axes, places, source, custodian)
    common.save(figure, out / ("figure3-custodian.png" if custodian else "figure3.png"))
    plt.close(figure)


def report(plans, X, y, source, places):
    points = grid_points()
    clipped = 100 * np.mean((y < BOUNDS[0]) | (y > BOUNDS[1]))
    print(f"{source}; {clipped:.0f} % of the prices lie outside of the bounds and are clipped")
    print(f"{len(points)} test points, {np.count_nonzero(in_box(points))} of them in the square of the sales")
    print("\nStd of the privacy noise in thousand pounds")
    columns = ("rms", "median", "largest", "not seen", *places)
    print(f"{'':54}" + "".join(f"{column:>9}" for column in columns))
    for method, plan in plans.items():
        std = plan.noise_std
        gone = np.count_nonzero(std >= FADED * WIDTH)
        shown = "".join(f"{std[index]:9.1f}" for _, index in places.values())
        print(f"{method:54}{common.rms(std):9.1f}{np.median(std):9.1f}{std.max():9.1f}{gone:9d}{shown}")
    (_, one), (_, other) = plans.items()
    ratio = one.noise_std / other.noise_std
    print(f"paper / ours: median {np.median(ratio):.2f}, from {ratio.min():.2f} to {ratio.max():.2f}")
    counts, distance = nearby(points, X, NEAR)
    for letter, (name, index) in places.items():
        where = f"({points[index, 0]:.1f}, {points[index, 1]:.1f}) km"
        print(f"  {letter} {where}: {name}; sales within {NEAR:g} km: {counts[index]}", end="")
        print(f", nearest {distance[index]:.1f} km")


def main(out, custodian):
    X, y, source = sales()
    points = grid_points()
    plans = {
        name: GP.plan(X, X_star=points, epsilon=1.0, delta=0.01, **options)
        for name, options in METHODS.items()
    }
    places = regions(points, X, next(iter(plans.values())).noise_std)
    report(plans, X, y, source, places)
    draw(plans, X, y, source, places, out, custodian)


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--custodian", action="store_true", help="draw what is not private too")
    arguments = options.parse_args()
    main(arguments.out, arguments.custodian)
