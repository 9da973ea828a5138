"""The paper's histogram of Citi Bike durations, and what clipping at 2000 s does to it.

    CLOAKGP_DATA=folder python experiments/paper/histogram.py [--out DIR]

5000 trips, as in the paper, drawn with a public seed from those between its stations. Clipping bounds what
one trip can do: sensitivity is proportional to the upper bound. It also moves the mean, which no privacy
noise shows; the table says by how much for other bounds. These numbers are computed from all trips
without noise: choose bounds from public knowledge, not like this.
"""

from __future__ import annotations

import common
import numpy as np
from common import BLACK, BLUE, ORANGE

from cloakgp.datasets import CITIBIKE_BOX, DatasetError, fetch_citibike, make_bike_like

CLIP, TRIPS, BIN, END = 2000.0, 5000, 50.0, 4000.0


def fetch():
    """The paper's month, or the one that the folder holds."""
    try:
        return fetch_citibike("2016-06", box=CITIBIKE_BOX)
    except DatasetError:
        return fetch_citibike("2017-06", box=CITIBIKE_BOX)


def durations():
    """Seconds of 5000 trips, and words for them."""
    data, source = common.load(fetch, make_bike_like, "")
    if not data.generated:
        source = f"{data.source.partition(',')[0]} (in print: June 2016)"
    rows = np.random.default_rng(0).choice(len(data.y), size=min(TRIPS, len(data.y)), replace=False)
    return data.y[rows], source


def report(y, source):
    print(f"{len(y)} {source}")
    print(
        f"  mean {y.mean():.0f} s, median {np.median(y):.0f} s, std {y.std():.0f} s, longest {y.max():.0f} s"
    )
    print(f"\n  {'clipped at':>12}{'trips clipped':>16}{'mean':>8}{'std':>8}")
    for limit in (1000.0, 1500.0, CLIP, 3000.0, 5000.0):
        kept = np.minimum(y, limit)
        print(f"  {limit:10.0f} s{100 * np.mean(y >= limit):14.1f} %{kept.mean():8.0f}{kept.std():8.0f}")


def draw(y, source, out):
    plt = common.pyplot()
    figure, ax = plt.subplots(figsize=(7.6, 4.5), layout="constrained")
    edges = np.arange(0.0, END + BIN, BIN)
    inside, beyond = y[y < CLIP], y[y >= CLIP]
    ax.hist(inside, edges, color=BLUE, edgecolor="white", linewidth=0.4, label="below 2000 s: kept")
    ax.hist(
        np.full(len(beyond), CLIP - BIN / 2), edges, bottom=np.histogram(inside, edges)[0], color=ORANGE,
        edgecolor="white", linewidth=0.4, label="longer: counted as 2000 s",
    )  # fmt: skip
    style = {"histtype": "step", "color": ORANGE, "linewidth": 1.2, "linestyle": (0, (3, 1.5))}
    ax.hist(beyond, edges, **style, label="where those were")
    ax.axvline(CLIP, color=BLACK, linewidth=1, linestyle=":")
    top = ax.get_ylim()[1]
    share, later = 100 * np.mean(y >= CLIP), np.count_nonzero(y > END)
    if len(beyond):
        words = f"{len(beyond)} trips ({share:.1f} %)\nmoved to the bound"
        height = np.count_nonzero((y > CLIP - BIN) & (y < CLIP)) + len(beyond)
        arrow = {"arrowstyle": "->", "color": BLACK}
        ax.annotate(words, (CLIP, height * 0.62), (CLIP + 300, height * 0.62), arrowprops=arrow, va="center")
    if later:
        ax.text(END, 0.06 * top, f"{later} beyond {END:.0f} s →", ha="right", fontsize=8.5)
    ax.set(xlim=(0, END), xlabel="duration in s", ylabel=f"trips in bins of {BIN:.0f} s")
    ax.legend(loc="upper right")
    mean, clipped = y.mean(), np.minimum(y, CLIP).mean()
    common.caption(
        figure,
        f"{len(y)} {source}.",
        f"The mean falls from {mean:.0f} to {clipped:.0f} s. Drawn from the durations: not private.",
    )
    common.save(figure, out / "histogram.png")
    plt.close(figure)


def main(out):
    y, source = durations()
    report(y, source)
    draw(y, source, out)


if __name__ == "__main__":
    main(common.parser(__doc__).parse_args().out)
