"""The paper's table 1: durations of Citi Bike journeys from where they start and end, held out 30 times.

    CLOAKGP_DATA=folder python experiments/paper/table1.py [--folds 30] [--only KERNEL] [--fresh] [--out DIR]

Each fold draws 5000 journeys by a public seed: 4900 to learn from, and 100 whose inputs are the test points.
Durations are clipped to 0 to 2000 s, also in the test. Settings are round numbers, the same for all
methods: a journey takes 800 s, places differ by a std of 500 s, journeys between the same two by 350 s.

Four kernels. "one EQ" is the paper's, with one lengthscale for all four inputs. "as printed" is the same with
the stds that the paper prints, 1581 s for places and 1605 s for journeys. "stretched" has the lengthscale for
the displacement from start to end, and four times as much for where in town. "mixed" adds both, 300 s each,
to a trend of lengthscale 0.125 degrees, 1500 s.

"paper" is the volume design with the classic calibration. Bins get Laplace noise at (epsilon, 0), as in the
paper, or Gaussian noise at (epsilon, 0.01), the promise of the other rows.

Errors are exact over the privacy noise: a prediction is linear in it, so its expected squared error is that
of the prediction without noise, plus the noise's variance. Intervals are over the folds. The best lengthscale
is the one with the least error in the table: a choice that is not private, for "no privacy" as for others.

Finished pieces are kept in table1.jsonl, so a run that was stopped goes on where it was; `--fresh` starts
again. Processes have one thread each.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache

import common
import numpy as np
from common import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, Noisy
from scipy.stats import t as student

import cloakgp
from cloakgp import binning
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.datasets import CITIBIKE_BOX, DatasetError, fetch_citibike, make_bike_like
from cloakgp.designs.posterior import denoising
from cloakgp.kernels import EQ

one_blas_thread_for_good()  # processes fill the cores already

EPSILONS, DELTA, FOLDS, TRAIN, TEST = (1.0, 0.5, 0.2), 0.01, 30, 4900, 100
BOUNDS, MEAN, STD, NOISE = (0.0, 2000.0), 800.0, 500.0, 350.0
MIXED, TREND, TREND_STD, STRETCH = 300.0, 0.125, 1500.0, 4.0
BINS, INTEGRAL = (10, 6, 3), 0.05  # bins along each input; lengthscale of the integral kernel
LENGTHSCALES = (0.781, 0.312, 0.125, 0.05, 0.02)
KERNELS = {
    "one EQ": LENGTHSCALES,
    "as printed": LENGTHSCALES,
    "stretched": LENGTHSCALES,
    "mixed": LENGTHSCALES[-2:],
}
PRINTED_STD, PRINTED_NOISE = 1581.0, 1605.0
CLOAKED = {
    "paper": {"design": "volume", "calibration": "classic"},
    "mse": {"design": "mse"},
    "posterior": {"design": "posterior"},
}
BINNED = {
    "integral, Laplace": ("integral", "laplace", None),
    "integral, Gaussian": ("integral", "gaussian", DELTA),
    "simple, Laplace": ("constant", "laplace", None),
    "simple, Gaussian": ("constant", "gaussian", DELTA),
}
ONLY = None  # the group of rows that was asked for
NONE, DENOISED = "no privacy", "mse, denoised"
METHODS, LENGTHSCALE = ("paper", "mse", DENOISED, "posterior"), "{:.3f}°"
PRINTED = {  # by the paper, June 2016: no privacy, epsilon = 1, 0.5, 0.2
    "cloaking": [(490, 493, 498, 525), (492, 497, 502, 545), (402, 437, 476, 758), (333, 434, 612, 1163),
                 (314, 478, 854, 1868)],
    "integral": [(581, 586, 597, 627), (641, 640, 658, 736), (643, 649, 677, 770)],
    "simple": [(596, 1064, 1927, 4402), (587, 768, 1202, 2373), (550, 575, 629, 809)],
}  # fmt: skip
PRINTED_BESIDE = {"one EQ": ("cloaking",), "as printed": ("cloaking",), "bins": ("integral", "simple")}


def fetch():
    """The paper's month, or the one that the folder holds."""
    try:
        return fetch_citibike("2016-06", box=CITIBIKE_BOX)
    except DatasetError:
        return fetch_citibike("2017-06", box=CITIBIKE_BOX)


@cache
def journeys():
    """Inputs, clipped durations, and words for them."""
    data, source = common.load(fetch, lambda: make_bike_like(50_000), "")
    return data.X, np.clip(data.y, *BOUNDS), source if data.generated else data.source.partition(",")[0]


def fold_of(number):
    """Inputs and durations: of the journeys to learn from, and of those to predict."""
    X, y, _ = journeys()
    rows = np.random.default_rng([0, number]).choice(len(y), TRAIN + TEST, replace=False)
    return X[rows[TEST:]], y[rows[TEST:]], X[rows[:TEST]], y[rows[:TEST]]


def turned(X):
    """Displacement and midpoint, scaled so that distances are as between (start, end)."""
    start, end = X[:, :2], X[:, 2:]
    return np.hstack([end - start, end + start]) / np.sqrt(2)


def kernel_of(name, lengthscale):
    """For turned inputs."""
    far = STRETCH * lengthscale
    stretched = [lengthscale, lengthscale, far, far]
    if name == "one EQ":
        return EQ(lengthscale, variance=STD**2)
    if name == "as printed":
        return EQ(lengthscale, variance=PRINTED_STD**2)
    if name == "stretched":
        return EQ(stretched, variance=STD**2)
    detail = EQ(stretched, variance=MIXED**2) + EQ(lengthscale, variance=MIXED**2)
    return EQ(TREND, variance=TREND_STD**2) + detail


def cloaked(fold, kernel, lengthscale):
    """Expected mean squared errors of every method and epsilon."""
    X, y, X_test, y_test = fold_of(fold)
    noise = PRINTED_NOISE if kernel == "as printed" else NOISE
    gp = cloakgp.GP(kernel_of(kernel, lengthscale), noise**2, BOUNDS, MEAN)
    planner = gp.planner(turned(X), X_star=turned(X_test))
    exact = MEAN + planner.smoother.columns(slice(None)) @ summed(planner, y - MEAN)
    errors = {NONE: {"inf": np.mean((exact - y_test) ** 2)}}
    for method, options in CLOAKED.items():
        for epsilon in EPSILONS:
            plan = planner.plan(epsilon=epsilon, delta=DELTA, **options)
            errors.setdefault(method, {})[epsilon] = error(common.released(plan, y), y_test)
            if method == "mse":
                predicted = denoised(planner, plan, y)
                errors.setdefault(DENOISED, {})[epsilon] = error(predicted, y_test)
    return errors


def denoised(planner, plan, y):
    """What `release.predict` would say at the test points (common.denoised would build K again)."""
    B, scale = plan.measurement.real_matrix(), plan.measurement.noise_scale
    gain = denoising(planner.smoother, B, scale**2)[0]
    return Noisy(MEAN + gain @ (B @ summed(planner, y - MEAN)), scale * gain)


def summed(planner, values):
    """Sums over equal journeys, which share a column."""
    groups = planner.inputs.groups
    return values if groups is None else np.bincount(groups.labels, values)


def binned(fold, bins):
    """The same for predictions from noisy bins; and how many bins there are, occupied, with one journey."""
    X, y, X_test, y_test = fold_of(fold)
    errors = {}
    for name, (predict, mechanism, delta) in BINNED.items():
        model = {"kernel": EQ(INTEGRAL, variance=STD**2), "noise": NOISE**2, "mean": MEAN}
        options = {"predict": predict, "mechanism": mechanism, **(model if predict == "integral" else {})}
        for epsilon in EPSILONS:
            plan = binning.plan(
                X, X_star=X_test, edges=bins, bounds=BOUNDS, epsilon=epsilon, delta=delta, **options
            )
            errors.setdefault(name, {})[epsilon] = error(from_bins(plan, y, plan.bin_noise_std), y_test)
        errors[name]["inf"] = error(from_bins(plan, y, np.zeros(len(plan.counts))), y_test)
    occupancy = plan.occupancy
    return errors, [occupancy.bins, occupancy.occupied, occupancy.single]


def from_bins(plan, y, noise_std):
    """Predictions from the bins' means with such noise."""
    means = np.bincount(plan.measurement.labels, y) / plan.counts
    # A GP knows the noise. Without one, the prior mean is where a bin is empty: the paper's, of all y, is not
    # public.
    gain = replace(plan, variances=noise_std**2 + NOISE**2 / plan.counts).gain(plan.X_star)
    return Noisy(MEAN + gain @ (means - MEAN), gain * noise_std)


def error(predicted, y):
    return float(np.mean(predicted.squared_errors(y)))


# A run: pieces of work, each of one fold and one row of the table.


def rows():
    return [(name, size) for name, _, sizes, _ in groups() for size in sizes]


def settings():
    """What finished pieces depend on, as a digest."""
    X, y, source = journeys()
    numbers = [EPSILONS, DELTA, TRAIN, TEST, BOUNDS, MEAN, STD, NOISE]
    numbers += [MIXED, TREND, TREND_STD, STRETCH, INTEGRAL, PRINTED_STD, PRINTED_NOISE]
    words = json.dumps([numbers, CLOAKED, BINNED, source, cloakgp.__version__])
    return hashlib.sha256(words.encode() + X.tobytes() + y.tobytes()).hexdigest()[:16]


def piece(fold, row):
    """One line of the file of results, but for the settings."""
    name, size = row
    began = time.process_time()
    errors, occupancy = binned(fold, size) if name == "bins" else (cloaked(fold, name, size), None)
    errors = {method: {str(e): float(v) for e, v in found.items()} for method, found in errors.items()}
    cpu = time.process_time() - began
    return {"fold": fold, "row": list(row), "errors": errors, "occupancy": occupancy, "cpu": cpu}


def finished(path, digest):
    """Pieces done before, with the same settings; a line cut short by a stop is passed over."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry["settings"] == digest:
            found[entry["fold"], tuple(entry["row"])] = entry
    return found


def work(folds, path, fresh, processes):
    """All pieces, those done before from the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if fresh:
        path.unlink(missing_ok=True)
    digest = settings()
    done = finished(path, digest)
    wanted = [(fold, row) for fold in range(folds) for row in rows()]
    missing = [key for key in wanted if key not in done]
    if missing:
        with path.open("a") as file, Progress("table 1", len(wanted)) as progress:
            file.write("\n")  # after a line cut short
            progress.done = len(wanted) - len(missing)
            for entry in computed(missing, processes):
                done[entry["fold"], tuple(entry["row"])] = entry
                file.write(json.dumps({"settings": digest, **entry}) + "\n")
                file.flush()
                progress.advance()
    return {key: done[key] for key in wanted}


def computed(keys, processes):
    """Pieces as they finish."""
    deaf = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), signal.signal, deaf)
    try:
        for future in as_completed([pool.submit(piece, *key) for key in keys]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


# The table.


def collect(pieces, folds):
    """RMSE by (kernel or "bins", method, size, epsilon): one for each fold."""
    table = defaultdict(lambda: np.full(folds, np.nan))
    for (fold, (name, size)), entry in pieces.items():
        for method, found in entry["errors"].items():
            for epsilon, value in found.items():
                table[name, method, size, float(epsilon)][fold] = np.sqrt(value)
    for name, methods, sizes, _ in groups():
        for size in sizes if methods is METHODS else ():
            for method in METHODS:
                table[name, method, size, np.inf] = table[name, NONE, size, np.inf]
    return dict(table)


def half_width(values):
    """Of the 95 % interval of a mean."""
    n = len(values)
    return student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n) if n > 1 else np.nan


def cell(values):
    return f"{np.mean(values):.0f} ± {half_width(values):<3.0f}"


def groups():
    """Kernel or "bins", its methods, its sizes, and a word for these; all, or the one that was asked for."""
    found = [(name, METHODS, sizes, LENGTHSCALE) for name, sizes in KERNELS.items()]
    found.append(("bins", tuple(BINNED), BINS, "{}^4"))
    return [group for group in found if ONLY in (None, group[0])]


def print_table(table):
    """Rows for each size and epsilon, a column for each method; last, what the paper prints."""
    for name, methods, sizes, words in groups():
        printed = PRINTED_BESIDE.get(name, ())
        titles = [*methods, *(f"printed: {title}" for title in printed)]
        print(f"\n{name:12}{'eps':>6}" + "".join(f"{title:>20}" for title in titles))
        for row, size in enumerate(sizes):
            for column, epsilon in enumerate((np.inf, *EPSILONS)):
                cells = [cell(table[name, method, size, epsilon]) for method in methods]
                cells += [f"{PRINTED[title][row][column]}" for title in printed]
                start = words.format(size) if column == 0 else ""
                print(f"{start:12}{epsilon:6g}" + "".join(f"{value:>20}" for value in cells))


def best(table, name, method, epsilon):
    """The size with the least error, and its errors by fold."""
    sizes = {key[2] for key in table if key[:2] == (name, method)}
    size = min(sorted(sizes), key=lambda size: np.mean(table[name, method, size, epsilon]))
    return size, table[name, method, size, epsilon]


def loss(values, reference):
    """How much larger in %, and half its 95 % interval, folds being paired (a ratio of means)."""
    ratio = np.mean(values) / np.mean(reference)
    return 100 * (ratio - 1), 100 * half_width(values - ratio * reference) / np.mean(reference)


def print_best(table):
    kernels = [name for name, methods, _, _ in groups() if methods is METHODS]
    everywhere = min((best(table, name, NONE, np.inf)[1] for name in kernels), key=np.mean)
    print("\nBest lengthscale or bins each: RMSE, and in brackets the loss in % against no privacy, with the")
    print(f"same kernel (bins: one EQ) | with the best kernel, {np.mean(everywhere):.0f} s")
    for name, methods, _, words in groups():
        size, own = best(table, "one EQ" if name == "bins" else name, NONE, np.inf)
        print(f"\n{name}: no privacy {np.mean(own):.0f} s at {LENGTHSCALE.format(size)}")
        for method in methods:
            found = (best(table, name, method, epsilon) for epsilon in EPSILONS)
            print(f"  {method:20}" + "".join(best_cell(words, *pair, own, everywhere) for pair in found))


def best_cell(words, size, values, own, everywhere):
    more, within = loss(values, own)
    losses = f"{more:.1f} ± {within:.1f} | {loss(values, everywhere)[0]:.1f}"
    return f"{f'{np.mean(values):.0f} at {words.format(size)} ({losses})':>39}"


def print_printed():
    print("\nAs printed in the paper, best each, loss against its best without privacy (314 s):")
    for method, lines in PRINTED.items():
        least = np.min(lines, axis=0)
        print(
            f"  {method:20}"
            + "".join(f"{value:10.0f} ({100 * (value / 314 - 1):.0f} %)" for value in least[1:])
        )


def print_occupancy(pieces):
    print()
    for bins in BINS:
        found = [entry["occupancy"] for (_, row), entry in pieces.items() if row == ("bins", bins)]
        total, occupied, single = np.mean(found, axis=0)
        print(
            f"{bins}^4 bins: {occupied / total:.0%} occupied, {single / occupied:.0%} of these by one journey"
        )


# The picture.

LINES = [  # kernel, method, words, style
    ("one EQ", "paper", "the paper's method", {"color": ORANGE, "marker": "s"}),
    ("one EQ", "mse", "mse", {"color": PINK, "marker": "v"}),
    ("one EQ", DENOISED, "mse, denoised", {"color": SKY, "marker": "^"}),
    ("one EQ", "posterior", "posterior", {"color": BLUE, "marker": "o"}),
    ("mixed", "posterior", "posterior, mixed kernel", {"color": GREEN, "marker": "o", "linestyle": "--"}),
    ("bins", "integral, Laplace", "integral bins, Laplace", {"color": GREY, "marker": "D", "linestyle": ":"}),
    ("bins", "simple, Laplace", "simple bins, Laplace", {"color": BLACK, "marker": "x", "linestyle": ":"}),
]


TOP = 690.0  # of the first panel


def draw(table, source, folds, out):
    plt = common.pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.9), layout="constrained")
    draw_best(left, table)
    draw_lengthscales(right, table)
    common.letter(left, "A")
    common.letter(right, "B")
    common.caption(
        figure,
        f"{source}, {folds} folds of {TRAIN} + {TEST} journeys; δ = {DELTA:g} (Laplace: 0). "
        "Bars: 95 % intervals of the difference from no privacy, folds being paired.",
        "The paper prints 314 s without privacy and 434, 476 and 525 s at ε = 1, 0.5 and 0.2, for June 2016. "
        "Computed from the durations: not private.",
    )
    common.save(figure, out / "table1.png")
    plt.close(figure)


def draw_best(ax, table):
    levels, reference = (np.inf, *EPSILONS), best(table, "one EQ", NONE, np.inf)[1]
    for shift, (name, method, words, style) in zip(np.linspace(-0.09, 0.09, len(LINES)), LINES, strict=True):
        values = [best(table, name, method, epsilon)[1] for epsilon in levels]
        means, bars = [np.mean(v) for v in values], [half_width(v - reference) for v in values]
        options = {
            "label": words,
            "linewidth": 1.5,
            "markersize": 5,
            "elinewidth": 0.8,
            "capsize": 2,
            **style,
        }
        ax.errorbar(np.arange(4) + shift, means, bars, **options)
        if means[-1] > TOP:
            ax.text(3.03, TOP - 60, f"{means[-1]:.0f} s ↑", color=style["color"], ha="right", fontsize=8.5)
    ax.set_ylim(350.0, TOP)
    ax.set_xticks(range(4), ["no privacy", *(f"ε = {e:g}" for e in EPSILONS)])
    ax.set(ylabel="held-out RMSE in s", title="Best lengthscale or bins for each method and ε")
    ax.legend(loc="upper left", fontsize=8.5, ncols=2)


def draw_lengthscales(ax, table):
    epsilon = EPSILONS[-1]
    reference = [np.mean(table["one EQ", NONE, size, np.inf]) for size in LENGTHSCALES]
    ax.plot(LENGTHSCALES, reference, color=BLACK, linewidth=1.2, linestyle="-.", label="no privacy")
    for name, method, words, style in LINES[:4]:
        values = [np.mean(table[name, method, size, epsilon]) for size in LENGTHSCALES]
        ax.plot(LENGTHSCALES, values, label=words, linewidth=1.5, markersize=5, **style)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(LENGTHSCALES, [f"{size:g}" for size in LENGTHSCALES])
    ax.set_yticks([400, 500, 700, 1000, 2000], ["400", "500", "700", "1000", "2000"])
    ax.minorticks_off()
    ax.set(xlabel="lengthscale in degrees", title=f"By lengthscale, one EQ kernel, ε = {epsilon:g}")
    ax.legend(loc="upper right", fontsize=8.5)


def main(folds, fresh, only, processes, out):
    global ONLY
    ONLY, began = only, time.monotonic()
    pieces = work(folds, out / "table1.jsonl", fresh, processes)
    table, source = collect(pieces, folds), journeys()[2]
    print(f"Held-out RMSE in s, {folds} folds of {TRAIN} + {TEST} journeys, ± 95 % interval over folds")
    print(f"{source}; the paper: June 2016, so compare ratios, not seconds; delta = {DELTA:g}")
    print_table(table)
    print_best(table)
    print_printed()
    if only is None:
        print_occupancy(pieces)
    cpu, took = sum(entry["cpu"] for entry in pieces.values()) / 60, (time.monotonic() - began) / 60
    print(f"\nCPU time {cpu:.0f} min in all, one thread; this run took {took:.1f} min")
    if only is None:
        draw(table, source, folds, out)


if __name__ == "__main__":
    parser = common.parser(__doc__)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument(
        "--only", choices=list(KERNELS), help="one kernel's rows of the table, without the picture"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    options = parser.parse_args()
    try:
        main(options.folds, options.fresh, options.only, options.processes, options.out)
    except KeyboardInterrupt:
        sys.exit("Stopped. The next run goes on from here.")
