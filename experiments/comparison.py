"""What a user could take instead, on the same splits: DP-EBM, randomised labels, linear regression, bins.

    CLOAKGP_DATA=folder python experiments/comparison.py [--data kung london ...] [--splits N] [--epsilon 1]

Five data sets: all of Howell's census (height by age), London prices (by place), Citi Bike (duration by
start and end), Minneapolis (was a person searched, by place and reason of the stop) and RAND HIE (visits to a
doctor by age, site and sex). Every method is told the same: generous bounds of the outcomes, a box of the
inputs, levels of categories. Ours is AutoGP (whole rows on a grid of at most 512 cells, each of which is then
counted on its own), everything else is as in `rivals.py`, and delta is the largest power of ten below
1 / (10 N).

Two promises, and methods are to be compared within one. "outcomes": inputs are public, one outcome may be any
other ("label differential privacy"). "rows": one whole row may be any other, inputs included. DP-EBM's
documentation does not say whether a row is replaced or removed; if removed, one replaced is two steps, so
it is run with all of epsilon and with half of it. In RAND HIE people have several rows. AutoGP protects
people with all of them there; the others, which have no such unit or lose by it, get one year of each person.

Prints each method's error on held-out outcomes, which are clipped to the bounds: RMSE, or log loss for
yes/no; how much more than the better one without privacy, with its standard error over splits (paired), and
that as a share of what one number for everybody would lose, as in the picture. One draw of noise for each
split; 3 splits, and 10 of the small table of heights. Draws `docs/pictures/comparison.png` (`--output`).

DP-EBM needs an environment of its own. `CLOAKGP_RIVALS` names one that has interpret-core; without it, one is
made in the folder for temporary files. Finished pieces are kept (`--results`), so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import minneapolis
import numpy as np
import rivals
import whole_rows
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from cloakgp import AutoGP, Grid, binning
from cloakgp.core.progress import Progress
from cloakgp.datasets import CITIBIKE_BOX, DatasetError, fetch_citibike

HERE = Path(__file__).resolve().parent
NONE, OUTCOMES, ROWS = "no privacy", "outcomes", "rows"
FLOOR = 0.005  # probabilities are kept this far from 0 and 1


class Problem(NamedTuple):
    """A table, and what is public about it."""

    words: str
    unit: str
    X: np.ndarray
    y: np.ndarray
    box: dict  # ranges as tuples, levels as lists, as in a Grid
    bounds: tuple
    cells: object
    train: int | None
    test: int | float
    outcome: str = "real"
    people: np.ndarray | None = None

    @property
    def categories(self):
        return [i for i, extent in enumerate(self.box.values()) if isinstance(extent, list)]

    @property
    def yes_no(self):
        return self.outcome == "yes/no"


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    people: np.ndarray | None
    delta: float


@cache
def problem(name):
    """By name; each reads its file in the folder."""
    return {"kung": kung, "london": london, "citibike": citibike, "stops": stops, "visits": visits}[name]()


def kung():
    X, y, words = whole_rows.howell()
    return Problem(f"!Kung heights ({words})", "cm", X, y, {"age": (0, 90)}, (0, 250), 45, None, 100)


def london():
    X, y, words = whole_rows.london()
    return Problem(words, "£1000", X, y, dict(whole_rows.LONDON), (0, 1000), 20, 4000, 400)


def citibike():
    data = fetch_citibike("2017-06", box=CITIBIKE_BOX)
    ranges = dict(zip(("start_lat", "start_lon", "end_lat", "end_lon"), CITIBIKE_BOX * 2, strict=True))
    return Problem("Citi Bike durations", "s", data.X, data.y, ranges, (0, 3600), 4, 4900, 500)


def stops():
    X, y = minneapolis.stops()
    box = {**minneapolis.BOX, "problem": [0, 1]}
    words = "Minneapolis: searched or not"
    return Problem(words, "nats", X, y.astype(float), box, (0, 1), 10, None, 0.2, "yes/no")


def visits():
    columns = minneapolis.table("randhie.csv.gz", ["xage", "site", "female", "mdvis", "zper"])
    data = np.array(columns, dtype=float).T
    box = {"age": (0, 65), "site": [1, 2, 3, 4, 5, 6], "female": [0, 1]}
    X = np.column_stack([np.floor(data[:, 0]), data[:, 1:3]])
    words = "RAND HIE: visits to a doctor"
    return Problem(words, "visits", X, data[:, 3], box, (0, 50), 20, None, 0.2, "count", data[:, 4])


def available(name):
    """Whether the folder has the file."""
    try:
        problem(name)
    except (FileNotFoundError, DatasetError, SystemExit) as error:
        print(f"without {TITLES[name]}: {error}", file=sys.stderr)
        return False
    return True


def split(p, number):
    """Rows, or people with all of theirs, to learn from and to be predicted."""
    rng = np.random.default_rng([2026, number])
    whose = np.arange(len(p.y)) if p.people is None else np.unique(p.people, return_inverse=True)[1]
    order = rng.permutation(whose.max() + 1)
    n = p.test if isinstance(p.test, int) else int(p.test * len(order))
    held, kept = order[:n], order[n:] if p.train is None else order[n : n + p.train]
    test, train = np.flatnonzero(np.isin(whose, held)), np.flatnonzero(np.isin(whose, kept))
    delta = 10.0 ** np.floor(np.log10(1 / (10 * len(kept))) - 1e-9)
    people = None if p.people is None else whose[train]
    y = np.clip(p.y, *p.bounds)
    return Split(p.X[train], y[train], p.X[test], y[test], people, float(delta))


def one_each(s):
    """One row of each person, the first in the table: for methods that have no people."""
    if s.people is None:
        return s
    first = np.unique(s.people, return_index=True)[1]
    return s._replace(X=s.X[first], y=s.y[first], people=None)


def scaled(p, X):
    """Ranges to [-1, 1], categories as indicators."""
    columns = []
    for column, extent in zip(X.T, p.box.values(), strict=True):
        if isinstance(extent, list):
            columns += [column == level for level in extent]
        else:
            low, high = extent
            columns.append(np.clip(2 * (column - low) / (high - low) - 1, -1, 1))
    return np.column_stack(columns).astype(float)


# Methods: predictions at the held-out inputs.


def one_number(p, s, epsilon, rng):
    return np.full(len(s.y_test), s.y.mean())


def kernel_ridge(p, s, epsilon, rng):
    return rivals.smooth(scaled(p, s.X), s.y, scaled(p, s.X_test))


def trees(p, s, epsilon, rng):
    options = {"learning_rate": 0.05, "max_leaf_nodes": 15, "early_stopping": True, "random_state": 0}
    if p.yes_no:
        model = HistGradientBoostingClassifier(**options).fit(s.X, s.y.astype(int))
        return model.predict_proba(s.X_test)[:, 1]
    return HistGradientBoostingRegressor(**options).fit(s.X, s.y).predict(s.X_test)


def auto(p, s, epsilon, rng):
    model = AutoGP(p.bounds, outcome=p.outcome, categories=p.categories or None)
    plan = model.plan(s.X, epsilon=epsilon, delta=s.delta, people=s.people)
    return plan.release(s.y).predict(s.X_test)


def auto_rows(p, s, epsilon, rng):
    s = one_each(s)
    model = AutoGP(p.bounds, outcome=p.outcome)
    plan = model.plan_rows(Grid(p.box, cells=p.cells), len(s.y), epsilon=epsilon, delta=s.delta)
    return plan.release(s.X, s.y).predict(s.X_test)


def randomised(p, s, epsilon, rng, corrected=False):
    s = one_each(s)
    if p.yes_no:
        labels = rivals.flipped(s.y, epsilon, rng)
    else:
        labels = rivals.randomise(s.y, p.bounds, epsilon, rng)[1 if corrected else 0]
    return rivals.smooth(scaled(p, s.X), labels, scaled(p, s.X_test))


def corrected(p, s, epsilon, rng):
    return randomised(p, s, epsilon, rng, corrected=True)


def line(p, s, epsilon, rng, rows=False):
    s = one_each(s)
    return rivals.linear(
        scaled(p, s.X), s.y, scaled(p, s.X_test), p.bounds, epsilon, s.delta, rng, whole_rows=rows
    )


def adassp(p, s, epsilon, rng):
    return line(p, s, epsilon, rng, rows=True)


def bins(p, s, epsilon, rng):
    """About 50 rows in each, by a rule that needs no outcome."""
    s = one_each(s)
    ranges = len(p.box) - len(p.categories)
    levels = np.prod([len(e) for e in p.box.values() if isinstance(e, list)], initial=1)
    n = max(2, round((len(s.y) / 50 / levels) ** (1 / ranges)))
    edges = [
        np.array([*e, e[-1] + 1]) - 0.5 if isinstance(e, list) else np.linspace(*e, n + 1)
        for e in p.box.values()
    ]
    X, X_test = (inside(p, A) for A in (s.X, s.X_test))
    plan = binning.plan(X, X_star=X_test, edges=edges, bounds=p.bounds, epsilon=epsilon)
    return np.asarray(plan.release(s.y).mean)


def inside(p, X):
    ends = [(e[0], e[-1]) for e in p.box.values()]
    return np.clip(X, *np.array(ends, dtype=float).T)


def ebm(p, s, epsilon, rng):
    return boosted(p, one_each(s), epsilon)


def ebm_half(p, s, epsilon, rng):
    return boosted(p, one_each(s), epsilon / 2)


def ebm_regression(p, s, epsilon, rng):
    """Yes and no as 1 and 0."""
    return boosted(p._replace(outcome="real"), one_each(s), epsilon)


METHODS = {
    "one number, the mean": (NONE, one_number),
    "kernel ridge": (NONE, kernel_ridge),
    "boosted trees": (NONE, trees),
    "cloakgp, AutoGP": (OUTCOMES, auto),
    "bins, Laplace": (OUTCOMES, bins),
    "RR-on-bins": (OUTCOMES, randomised),
    "RR-on-bins, bias corrected": (OUTCOMES, corrected),
    "linear, noisy moments": (OUTCOMES, line),
    "cloakgp, AutoGP on a grid": (ROWS, auto_rows),
    "DP-EBM": (ROWS, ebm),
    "DP-EBM, half of ε": (ROWS, ebm_half),
    "DP-EBM, as a regression": (ROWS, ebm_regression),
    "linear, AdaSSP": (ROWS, adassp),
}
WORST = "one number, the mean"


@cache
def environment():
    """A Python that has interpret-core: named by CLOAKGP_RIVALS, or made."""
    named = os.environ.get("CLOAKGP_RIVALS")
    folder = Path(named or Path(tempfile.gettempdir()) / "cloakgp-rivals")
    python = folder / "bin" / "python"
    if not named and not (folder / "ready").exists():
        print(f"installing interpret-core into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "interpret-core"], check=True)
        (folder / "ready").touch()
    return python


def boosted(p, s, epsilon):
    """DP-EBM's predictions, from its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        lower, upper = np.array([(e[0], e[-1]) for e in p.box.values()], dtype=float).T
        category = np.isin(np.arange(len(p.box)), p.categories)
        np.savez(
            Path(folder) / "split.npz",
            X=s.X, y=s.y, X_test=s.X_test, lower=lower, upper=upper, category=category,
            bounds=np.array(p.bounds, dtype=float), epsilon=epsilon, delta=s.delta, yes_no=p.yes_no,
        )  # fmt: skip
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([environment(), HERE / "comparison_ebm.py", folder], check=True, env=clean)
        return np.load(Path(folder) / "split.ebm.npy")


def score(p, predicted, y):
    if p.yes_no:
        return float(minneapolis.log_loss(np.clip(predicted, FLOOR, 1 - FLOOR), y > 0.5))
    return float(np.sqrt(np.mean((np.clip(predicted, *p.bounds) - y) ** 2)))


def wanted(p):
    """Yes/no has one randomised response, which is corrected already, and can be taken for numbers."""
    without = "RR-on-bins" if p.yes_no else "DP-EBM, as a regression"
    return [name for name in METHODS if name != without]


def work(names, splits, epsilon, path):
    """Scores by (data, method, split), those found before from the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    found = {tuple(key): value for key, value in map(json.loads, lines)}
    keys = [(n, m, k, epsilon) for n in names for m in wanted(problem(n)) for k in range(splits[n])]
    missing = [key for key in keys if key not in found]
    with path.open("a") as file, Progress("pieces", len(missing)) as progress:
        for key in missing:
            name, method, number, _ = key
            p = problem(name)
            s, rng = split(p, number), np.random.default_rng([7, number])
            found[key] = score(p, METHODS[method][1](p, s, epsilon, rng), s.y_test)
            file.write(json.dumps([key, found[key]]) + "\n")
            file.flush()
            progress.advance()
    return {(n, m): np.array([found[n, m, k, epsilon] for k in range(splits[n])]) for n, m, _, _ in keys}


def reference(name, scores):
    """The better of the two methods without privacy."""
    return min((scores[name, "kernel ridge"], scores[name, "boosted trees"]), key=np.mean)


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def report(names, splits, epsilon, scores):
    for name in names:
        p, s = problem(name), split(problem(name), 0)
        unit = "people" if p.people is not None else "rows"
        n = len(np.unique(s.people)) if p.people is not None else len(s.y)
        best, low, high = reference(name, scores), *p.bounds
        gap = (scores[name, WORST] - best).mean()
        what = f"{'log loss' if p.yes_no else 'RMSE'} in {p.unit}"
        print(f"\n{p.words}: {n} {unit}, {splits[name]} splits, {what}")
        print(f"bounds {low:g} to {high:g}, epsilon {epsilon:g}, delta {s.delta:g}")
        print(f"  {'protects':11}{'method':27}{'error':>8}{'above no privacy':>19}{'share':>7}")
        for method in wanted(p):
            values = scores[name, method]
            more = values - best
            shown = f"{more.mean():.3g} ± {standard_error(more):.2g}" if more.any() else ""
            row = f"{METHODS[method][0]:11}{method:27}{values.mean():8.4g}{shown:>19}{more.mean() / gap:7.2f}"
            print(f"  {row}")


# The picture.

COLOURS = {NONE: "#6E6E6E", OUTCOMES: "#0072B2", ROWS: "#D55E00"}
TITLES = {
    "kung": "!Kung heights", "london": "London prices", "citibike": "Citi Bike", "stops": "Minneapolis",
    "visits": "RAND HIE",
}  # fmt: skip
END = 1.65


def draw(names, epsilon, scores, output):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [name for name in METHODS if name != WORST]
    places = {name: -i - 0.6 * list(COLOURS).index(METHODS[name][0]) for i, name in enumerate(shown)}
    figure, axes = plt.subplots(
        1, len(names), figsize=(2.6 + 1.9 * len(names), 4.6), sharey=True, layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[0], names, strict=True):
        best = reference(name, scores)
        gap = scores[name, WORST].mean() - best.mean()
        for x, style in ((0, ":"), (1, "--")):
            ax.axvline(x, color="#6E6E6E", linestyle=style, linewidth=1.1)
        for method in shown:
            if (name, method) in scores:
                more = (scores[name, method] - best) / gap
                draw_dot(ax, places[method], more, COLOURS[METHODS[method][0]], "cloakgp" in method)
        ax.set(xlim=(-0.45, END + 0.12), title=TITLES[name])
        ax.set_xticks([0, 1], ["no\nprivacy", "one\nnumber"])
        ax.grid(axis="y", color="#ECECEC", linewidth=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0, 0].set_yticks(list(places.values()), list(places))
    for label, method in zip(axes[0, 0].get_yticklabels(), places, strict=True):
        label.set_color(COLOURS[METHODS[method][0]])
        label.set_weight("bold" if "cloakgp" in method else "normal")
    words = {NONE: "no privacy", OUTCOMES: "outcomes are protected", ROWS: "whole rows are"}
    dots = [plt.Line2D([], [], marker="o", color=c, linestyle="") for c in COLOURS.values()]
    figure.legend(dots, [words[key] for key in COLOURS], loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(
        f"Held-out error, ε = {epsilon:g}, from the better one without privacy to one number for everybody. "
        "Bars: ± 1 standard error over splits.",
        fontsize=9, color="#404040",
    )  # fmt: skip
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130, metadata={"Software": None})
    plt.close(figure)


def draw_dot(ax, place, more, colour, ours):
    mean, size = more.mean(), 9 if ours else 6.5
    if mean > END:
        ax.plot(END - 0.02, place, ">", color=colour, markersize=size - 1)
        words = f"{mean:.1f}" if mean < 20 else f"{mean:.0f}"
        ax.annotate(words, (END - 0.1, place), ha="right", va="center", fontsize=8, color=colour)
        return
    face = colour if ours else "white"
    options = {"color": colour, "markerfacecolor": face, "markersize": size, "elinewidth": 1.4}
    ax.errorbar(mean, place, xerr=standard_error(more), fmt="o", **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=list(TITLES), nargs="+", default=list(TITLES))
    parser.add_argument("--splits", type=int, help="of each data set")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--results", type=Path, default=HERE / "output" / "comparison.jsonl")
    picture = HERE.parent / "docs" / "pictures" / "comparison.png"
    parser.add_argument("--output", type=Path, default=picture)
    asked = parser.parse_args()
    if not os.environ.get("CLOAKGP_DATA"):
        raise SystemExit("set CLOAKGP_DATA to a folder with the real data: see experiments/README.md")
    there = [name for name in asked.data if available(name)]
    splits = {name: asked.splits or (10 if name == "kung" else 3) for name in there}
    scores = work(there, splits, asked.epsilon, asked.results)
    report(there, splits, asked.epsilon, scores)
    draw(there, asked.epsilon, scores, asked.output)


if __name__ == "__main__":
    main()
