"""Releases of many public tables with nothing known but bounds, beside what a user could take instead.

    pip install '.[tables]'
    python experiments/tables.py --tables heights,quakes --epsilon 1 --splits 5 --methods auto,mean --jobs 2
    python experiments/tables.py --export folder                # the tables as .npz files
    python experiments/tables.py --cache folder --jobs 16       # from these, without the extra

`public_tables.py` says where the tables are, and what is public about each: bounds, boxes, levels. All
methods are told the same. Per split 20 % of the rows (1,000 at most) are held out; epsilon is for the rest,
delta the library's default. One line for each table, method, epsilon and split goes to a CSV file
(`--output`); lines that it has already are not measured again, so name a new file for another version. Noise
comes from seeds, so two versions of the library are compared on the same splits, and nothing here is private.

Methods, by what they protect. To be compared within one kind:

    nothing      ridge (kernel ridge regression), trees (boosted trees)
    outcomes     auto (AutoGP), line (linear regression by noisy sums), labels (randomised, bias corrected)
    whole rows   mean (one noisy mean for everybody), adassp (linear regression), ebm (DP-EBM; it needs an
                 environment of its own, as `comparison.py` says, so it runs only if it is named)

Columns, of outcomes that are held out and clipped to the bounds:

    r2            explained share of their variance; explained: of the deviance, for yes/no and counts
    loss          mean squared error, log loss of yes/no, Poisson deviance of counts
    rmse_over_std RMSE over the std of the held-out outcomes
    bias          mean prediction less mean outcome, over the mean; bias_se is its standard error
    coverage      of 95 % intervals for a new outcome; not for yes/no, where it means nothing
    halves        the same below the median of each input and above: held and all
    forecast      root mean square of plan.expected_error over 200 held-out inputs
    noise         std of outcomes about f, as learned
    seconds       of plan and release, and cpu_seconds of the processor

In the summary, "none" is the better method without privacy on the same splits: its R², and its bias, which
is that of the splits; "rival" is the best method with privacy that is not ours.

The error of f itself cannot be seen in real data. So the forecast is compared in three ways, each a ratio
that should be about 1. With the outcomes' scatter: sqrt(forecast² + noise²) to the RMSE; it says little where
the noise is large. Plain: forecast to the RMSE; it is below 1 where outcomes are noisy. With the excess:
forecast to sqrt(MSE - MSE of the better method without privacy), over all splits together; without privacy
there are errors, too, so it is too large where rows are few.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from itertools import groupby
from pathlib import Path

import comparison
import numpy as np
from comparison import NONE, OUTCOMES, ROWS
from public_tables import TABLES, load

from cloakgp import AutoGP
from cloakgp.core.calibration import calibrate, default_delta
from cloakgp.core.progress import Progress
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.testing import insecure_seed

one_blas_thread_for_good()  # processes fill the cores already

HERE = Path(__file__).resolve().parent
TEST_SHARE, MOST_TEST, FORECASTS = 0.2, 1000, 200
LEAST_RATE = 0.05  # deviances are infinite at 0, where lines may be
KEYS = ("table", "method", "epsilon", "split")
FIELDS = (
    *KEYS, "kind", "protects", "delta", "n_train", "n_test", "n_inputs", "r2", "explained", "loss", "rmse",
    "rmse_over_std", "bias", "bias_se", "coverage", "halves", "forecast", "noise", "seconds", "cpu_seconds",
)  # fmt: skip


# Methods


def auto(table, p, s, epsilon):
    """Predictions at the held-out inputs, and what only this method says: intervals and a forecast."""
    model = AutoGP(p.bounds, outcome=p.outcome, categories=p.categories or None, seasons=table.seasons)
    start, start_cpu = time.perf_counter(), time.process_time()
    plan = model.plan(s.X, X_star=s.X_test[:FORECASTS], epsilon=epsilon)
    forecast = float(np.sqrt(np.mean(plan.expected_error**2)))
    release = plan.release(s.y)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    mean, std = release.predict(s.X_test, return_std=True)
    _, std_of_new = release.predict(s.X_test, return_std=True, include_noise=True)
    more = {
        "forecast": forecast,
        "noise": float(np.sqrt(np.mean(std_of_new**2 - std**2))),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }
    if p.outcome == "real":
        low, high = release.interval(s.X_test, include_noise=True).T
    else:
        low, high = mean - 1.96 * std_of_new, mean + 1.96 * std_of_new
    if p.outcome != "yes/no":
        held = (low <= s.y_test) & (s.y_test <= high)
        more |= {"coverage": float(held.mean()), "halves": json.dumps(halves(list(p.box), s.X_test, held))}
    return mean, more


def halves(names, X, held):
    """For each input: how many outcomes were held, and how many there were, below its median and above."""
    found = {}
    for name, x in zip(names, X.T, strict=True):
        lower = x < np.median(x)
        if not lower.any():  # the median is the least value, as of many zeros
            lower = x <= np.median(x)
        found[name] = [int(count) for half in (lower, ~lower) for count in (held[half].sum(), half.sum())]
    return found


def noisy_mean(p, s, epsilon, rng):
    low, high = p.bounds
    scale = (high - low) / len(s.y) / calibrate(epsilon, s.delta)
    return np.full(len(s.y_test), s.y.mean() + rng.normal(scale=scale))


METHODS = {
    "auto": (OUTCOMES, None),
    "ridge": (NONE, comparison.kernel_ridge),
    "trees": (NONE, comparison.trees),
    "mean": (ROWS, noisy_mean),
    "line": (OUTCOMES, comparison.line),
    "labels": (OUTCOMES, comparison.corrected),
    "adassp": (ROWS, comparison.adassp),
    "ebm": (ROWS, comparison.ebm),
}
WITHOUT = [name for name, (protects, _) in METHODS.items() if protects == NONE]


# One line


@cache
def problem(name, folder):
    table, (X, y) = TABLES[name], load(name, folder)
    test = min(MOST_TEST, round(TEST_SHARE * len(y)))
    return comparison.Problem(name, "", X, y, table.box, table.bounds, None, None, test, table.outcome)


def measure(key, folder):
    """A line of the file."""
    name, method, epsilon, number = key
    p = problem(name, folder)
    s = comparison.split(p, number)
    s = s._replace(delta=default_delta(len(s.y)), y_test=np.clip(s.y_test, *p.bounds))
    protects, predict = METHODS[method]
    seed = zlib.crc32(repr((name, number)).encode())
    start, start_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "auto":
            with insecure_seed(seed):
                predicted, more = auto(TABLES[name], p, s, epsilon)
        else:
            predicted = predict(p, s, epsilon, np.random.default_rng(seed))
            more = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    public = {
        "kind": p.outcome,
        "protects": protects,
        "delta": np.nan if protects == NONE else s.delta,
        "n_train": len(s.y),
        "n_test": len(s.y_test),
        "n_inputs": s.X.shape[1],
    }
    return dict(zip(KEYS, key, strict=True)) | public | scores(p, np.asarray(predicted), s.y_test) | more


def scores(p, predicted, y):
    predicted = np.clip(predicted, *p.bounds)
    off, scale = predicted - y, abs(y.mean())
    square, loss = np.mean(off**2), deviance(p.outcome, predicted, y)
    return {
        "r2": 1 - square / y.var(),
        "explained": 1 - loss / deviance(p.outcome, np.full(len(y), y.mean()), y),
        "loss": loss,
        "rmse": np.sqrt(square),
        "rmse_over_std": np.sqrt(square) / y.std(),
        "bias": off.mean() / scale,
        "bias_se": off.std() / np.sqrt(len(y)) / scale,
    }


def deviance(kind, predicted, y):
    if kind == "yes/no":
        p = np.clip(predicted, comparison.FLOOR, 1 - comparison.FLOOR)
        return comparison.minneapolis.log_loss(p, y > 0.5)
    if kind == "count":
        rate = np.maximum(predicted, LEAST_RATE)
        return 2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1) / rate), 0.0) - y + rate)
    return np.mean((predicted - y) ** 2)


# All lines


def wanted(asked):
    """Keys of all lines. Without privacy there is one for each split, and epsilon is infinite."""
    return [
        (name, method, epsilon, number)
        for name in asked.tables
        for method in asked.methods
        for epsilon in ([np.inf] if METHODS[method][0] == NONE else asked.epsilon)
        for number in range(asked.splits)
    ]


def read(path):
    """Lines of the file by their keys."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = [{name: parsed(name, cell) for name, cell in line.items()} for line in csv.DictReader(file)]
    return {tuple(line[name] for name in KEYS): line for line in lines}


def parsed(name, cell):
    if name in ("table", "method", "kind", "protects", "halves"):
        return cell
    if name in ("split", "n_train", "n_test", "n_inputs"):
        return int(cell)
    return float(cell or "nan")


def shortened(value):
    return f"{value:.6g}" if isinstance(value, float) else value


def work(keys, path, folder, jobs):
    """Measure what the file does not have yet; how many lines failed."""
    found, failed = read(path), 0
    missing = [key for key in keys if key not in found]
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(keys) - len(missing)} of {len(keys)} lines are in {path}", file=sys.stderr)
    with (
        path.open("a", newline="", encoding="utf-8") as file,
        ProcessPoolExecutor(jobs) as pool,
        Progress("lines", len(missing)) as progress,
    ):
        writer = csv.DictWriter(file, FIELDS)
        if not found:
            writer.writeheader()
        running = {pool.submit(measure, key, folder): key for key in missing}
        for one in as_completed(running):
            try:
                line = one.result()
                writer.writerow({name: shortened(value) for name, value in line.items()})
                file.flush()
            except Exception as error:  # of one line: the others go on
                print(f"failed: {running[one]}: {error!r}", file=sys.stderr)
                failed += 1
            progress.advance()
    return failed


# The summary


def summarise(lines):
    ordered = sorted(lines, key=lambda line: tuple(line[name] for name in KEYS))
    found = {
        key: list(some) for key, some in groupby(ordered, key=lambda line: tuple(line[k] for k in KEYS[:3]))
    }
    epsilons = sorted({epsilon for _, _, epsilon in found if np.isfinite(epsilon)})
    show_r2(found, epsilons)
    for epsilon in epsilons:
        show_auto(found, epsilon)


def mean_of(lines, column):
    return float(np.mean([line[column] for line in lines]))


def splits_of(found, name, method, epsilon):
    """Lines of all splits; without privacy they have no epsilon. Empty, if they are not there."""
    return found.get((name, method, np.inf if method in WITHOUT else epsilon), [])


def show_r2(found, epsilons):
    print("Mean R² over tables; R² below -1 counts as -1")
    print(f"  {'method':8}{'protects':12}{'tables':>6}" + "".join(f"{f'ε = {e:g}':>10}" for e in epsilons))
    for method, (protects, _) in METHODS.items():
        names = sorted({name for name, of, _ in found if of == method})
        cells = []
        for epsilon in epsilons:
            there = [some for name in names if (some := splits_of(found, name, method, epsilon))]
            values = [max(mean_of(some, "r2"), -1) for some in there]
            cells.append(f"{np.mean(values):10.3f}" if values else f"{'':10}")
        if names:
            print(f"  {method:8}{protects:12}{len(names):6}" + "".join(cells))


def show_auto(found, epsilon):
    """A line for each table, and what they say together."""
    names = [name for name in TABLES if (name, "auto", epsilon) in found]
    if not names:
        return
    print(f"\nε = {epsilon:g}, AutoGP; ! marks coverage below 90 % and a bias beyond both 5 % and two errors")
    print(
        f"  {'':12}{'kind':7}{'rows':>6}{'R²':>7}{'expl.':>7}{'none':>7}{'rival':>7} {'':7}{'cover':>7}"
        f"  {'worst half':26}{'bias':>8}{'':8}{'none':>8}{'scatter':>9}{'plain':>8}{'excess':>8}{'cpu s':>7}"
    )
    rows = [summary_of(found, name, epsilon) for name in names]
    for row in rows:
        print(f"  {words_of(row)}")
    print(f"ε = {epsilon:g}, together:")
    for method in METHODS:
        both = [(row["r2"], row["others"][method]) for row in rows if method in row["others"]]
        if both:
            wins = sum(ours > theirs for ours, theirs in both)
            print(f"  R² above that of {method}: {wins} of {len(both)} tables")
    for column in ("coverage", "half"):
        values = [(row[column], row["name"]) for row in rows if np.isfinite(row[column])]
        if values:
            least, name = min(values)
            middle = np.median([value for value, _ in values])
            print(f"  {TITLES[column]}: median {middle:.1%}, least {least:.1%} ({name})")
    for column in ("scatter", "plain", "excess", "cpu_seconds"):
        values = [row[column] for row in rows if np.isfinite(row[column])]
        if values:
            shown = " ".join(f"{value:.2f}" for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
            print(f"  {TITLES[column]}: {shown} (least, quartiles, greatest)")


TITLES = {
    "coverage": "coverage",
    "half": "coverage in the worst half of an input",
    "scatter": "forecast ratio with the scatter",
    "plain": "forecast ratio, plain",
    "excess": "forecast ratio with the excess",
    "cpu_seconds": "seconds of the processor",
}


def summary_of(found, name, epsilon):
    """What one table says of AutoGP, all splits together."""
    lines = found[name, "auto", epsilon]
    others = {
        method: mean_of(some, "r2")
        for method in METHODS
        if method != "auto" and (some := splits_of(found, name, method, epsilon))
    }
    forecast, noise, square = (
        np.mean([line[c] ** 2 for line in lines]) for c in ("forecast", "noise", "rmse")
    )
    without = [some for method in WITHOUT if (some := splits_of(found, name, method, epsilon))]
    squares = [np.mean([line["rmse"] ** 2 for line in some]) for some in without]
    excess = square - min(squares, default=np.nan)
    half, where = worst_half(lines)
    columns = ("r2", "explained", "bias", "coverage", "cpu_seconds")
    return {column: mean_of(lines, column) for column in columns} | {
        "name": name,
        "kind": lines[0]["kind"],
        "rows": lines[0]["n_train"],
        "others": others,
        "half": half,
        "where": where,
        "bias_without": mean_of(without[np.argmin(squares)], "bias") if without else np.nan,
        "bias_se": np.sqrt(np.mean([line["bias_se"] ** 2 for line in lines]) / len(lines)),
        "scatter": np.sqrt((forecast + noise) / square),
        "plain": np.sqrt(forecast / square),
        "excess": np.sqrt(forecast / excess) if excess > 0 else np.nan,
    }


def words_of(row):
    none = max((r2 for method, r2 in row["others"].items() if method in WITHOUT), default=np.nan)
    rival, which = max(
        ((r2, method) for method, r2 in row["others"].items() if method not in WITHOUT), default=(np.nan, "")
    )
    covered = worst = ""
    if row["where"]:
        covered = f"{row['coverage']:.1%}{'!' if row['coverage'] < 0.9 else ' '}"
        worst = f"{row['half']:.1%} {row['where']}"
    biased = "!" if abs(row["bias"]) > max(0.05, 2 * row["bias_se"]) else " "
    return (
        f"{row['name']:12}{row['kind']:7}{row['rows']:6}{row['r2']:7.3f}{row['explained']:7.3f}{none:7.3f}"
        f"{rival:7.3f} {which:7}{covered:>7}  {worst:26}{row['bias']:+8.1%}{biased}± {row['bias_se']:5.1%}"
        f"{row['bias_without']:+8.1%}{row['scatter']:9.2f}{row['plain']:8.2f}{row['excess']:8.2f}{row['cpu_seconds']:7.1f}"
    )


def worst_half(lines):
    """The least coverage in a half of an input, all splits together, and which half."""
    counts = [json.loads(line["halves"]) for line in lines if line["halves"]]
    if not counts:
        return np.nan, ""
    sums = {name: np.sum([one[name] for one in counts], axis=0) for name in counts[0]}
    shares = [
        (held / n, f"{words} {name}")
        for name, four in sums.items()
        for words, (held, n) in zip(("low", "high"), four.reshape(2, 2), strict=True)
        if n
    ]
    return min(shares)


def export(names, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        X, y = load(name)
        np.savez_compressed(folder / f"{name}.npz", X=X, y=y)
        print(f"{name:12}{len(y):7} rows, {X.shape[1]} inputs, {TABLES[name].outcome}: {TABLES[name].why}")


def listed(known, kind):
    """For argparse: names apart by commas."""

    def names(text):
        chosen = text.split(",")
        for one in chosen:
            if one not in known:
                raise argparse.ArgumentTypeError(f"no {kind} {one}; there are {', '.join(known)}")
        return chosen

    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=listed(TABLES, "table"), default=list(TABLES))
    usual = [name for name in METHODS if name not in ("labels", "ebm")]
    parser.add_argument("--methods", type=listed(METHODS, "method"), default=usual)
    parser.add_argument("--epsilon", type=partial(str.split, sep=","), default=["0.2", "1", "3"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="a folder that --export wrote")
    parser.add_argument("--export", type=Path, help="write the tables into this folder, and stop")
    parser.add_argument("--output", type=Path, default=HERE / "output" / "tables.csv")
    asked = parser.parse_args()
    asked.epsilon = [float(one) for one in asked.epsilon]
    if asked.export:
        export(asked.tables, asked.export)
        return
    keys = wanted(asked)
    failed = work(keys, asked.output, asked.cache, asked.jobs)
    found = read(asked.output)
    summarise([found[key] for key in keys if key in found])
    if failed:
        raise SystemExit(f"{failed} lines failed")


if __name__ == "__main__":
    main()
