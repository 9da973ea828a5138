"""One table of what takes how long: time, ratio to a yardstick in the same run, memory, and the goal.

    python benchmarks/all.py [--only plan] [--large] [--write docs/scale.md]

Each case runs in a process of its own, so that memory is its own, and has a yardstick beside it that was
measured in the same process: machines are shared, and seconds alone say little. `--large` adds ten million
rows (some minutes, and 300 MB of data). Cases that need what is not here (a GPU) say so. For streams a second
table has what rounding to integers does to predictions: at worst, as certified, and what is to be expected of
it. `--write` puts both tables into a page, between two comments that name this script.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Took(NamedTuple):
    """Seconds on the clock, and of all cores together: what others do on them adds to the first only."""

    clock: float
    used: float

    def __add__(self, other):
        return Took(self.clock + other.clock, self.used + other.used)

    def __truediv__(self, n):
        return Took(self.clock / n, self.used / n)


class Found(NamedTuple):
    """What a case took: seconds or bytes, over its yardstick's if that has a meaning."""

    value: float
    unit: str
    ratio: float | None = None
    yardstick: str = ""
    rounding: tuple[float, float, float] | None = None
    """Std of the privacy noise, error by rounding at worst, and its root mean square: for predictions."""
    used: float | None = None
    """Seconds of all cores together."""


class Case(NamedTuple):
    """What is measured, and what it should reach."""

    run: Callable[[], Found]
    goal: str
    reached: Callable[[Found], bool]
    large: bool = False
    gigabytes: float = np.inf
    """Memory that it should stay below."""


def timed(function):
    start, used = time.perf_counter(), _used()
    result = function()
    return Took(time.perf_counter() - start, _used() - used), result


def _used():
    both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(sum(resource.getrusage(who)[:2]) for who in both)


def seconds_of(took, yardstick, name, rounding=None):
    return Found(took.clock, "s", took.clock / yardstick.clock, name, rounding, took.used)


def best(command):
    """What a command takes, the best of three: the first may compile modules, as an installation does."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL, env=env)
    return min(timed(run)[0] for _ in range(3))


def python(code):
    """What a fresh interpreter takes that runs this."""
    return best([sys.executable, "-c", code])


def importing():
    yardstick = python("import numpy, scipy.linalg, opendp")
    return seconds_of(python("import cloakgp"), yardstick, "numpy, scipy.linalg and opendp")


def helping():
    command = [sys.executable, "-m", "cloakgp.cli", "--help"]
    return seconds_of(best(command), python("pass"), "an interpreter that does nothing")


def _clusters(rows, spread=100.0, seed=0):
    """Rows about forty centres in a square, and outcomes about a wave."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, spread, (40, 2))
    X = centres[rng.integers(0, 40, rows)] + rng.normal(scale=spread / 25, size=(rows, 2))
    y = np.sin(X[:, 0] / spread * 6) + X[:, 1] / spread + 0.3 * rng.normal(size=rows)
    return X, y


def _square(points, spread=100.0):
    axis = np.linspace(0.02, 0.98, round(points**0.5)) * spread
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def _model(lengthscale, inducing):
    import cloakgp

    kernel = cloakgp.kernels.EQ(lengthscale)
    return cloakgp.GP(kernel, noise=0.1, bounds=(-3.0, 4.0), inducing=inducing)


def _plain(kernel, Z, X):
    from cloakgp.data.chunks import steps

    total = np.zeros((len(Z), len(Z)))
    for rows in steps(len(X)):
        K = kernel(X[rows], Z)
        total += K.T @ K
    return total


def stream(rows, inducing, points, lengthscale, design="mse"):
    """Plan and release, over the plain sum K_uf K_fu."""
    from cloakgp.data.passes import sweep

    X, y = _clusters(rows)
    gp = _model(lengthscale, inducing)
    gp.with_inducing(X[:1000])  # loads what is loaded once
    seconds, plan = timed(lambda: gp.plan(X, X_star=_square(points), epsilon=1.0, delta=1e-8, design=design))
    more, _ = timed(lambda: plan.release(y))
    Z = np.asarray(plan.gp.inducing)
    plain, _ = timed(lambda: sum(sweep(partial(_plain, gp.kernel, Z), X)))
    # A `posterior` plan is biased by what it leaves to the prior, beside which rounding does not show.
    told = (_rms(plan.noise_std), plan.certificate.bias, _rounding(plan, y)) if design == "mse" else None
    return seconds_of(seconds + more, plain, "the sum K_uf K_fu", told)


def _rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def _rounding(plan, y):
    """Root mean square of what rounding adds to predictions, if roundings go up and down by chance.

    An entry of the matrix is off by a uniform number, times the sum of how far a cell's outcomes are from the
    prior mean; an outcome is off by a uniform number, times its influence on the prediction.
    """
    m, gp = plan.measurement, plan.gp
    sums = np.bincount(m.labels, np.clip(y, *gp.bounds) - gp.level)
    columns = (plan.reconstruction**2).sum(axis=1) * float(sums @ sums) * 4.0**-m.matrix_bits / 12
    influence = (plan.reconstruction @ m.real_matrix()) ** 2 @ m.counts
    off = m.width * 2.0**-m.y_bits / np.sqrt(12)
    return _rms(np.sqrt(columns + influence * off**2))


def planning(design):
    """A plan of 17,600 rows, their inducing inputs known, over one product of the size that it is made of."""
    X, _ = _clusters(17_600)
    gp, X_star = _model(12.0, 300).with_inducing(X), _square(300)
    gp.plan(X[:2000], X_star=X_star[:9], epsilon=1.0, delta=1e-3, design=design)  # loads what is loaded once
    seconds, plan = timed(lambda: gp.plan(X, X_star=X_star, epsilon=1.0, delta=1e-6, design=design))
    A = np.random.default_rng(0).normal(size=(300, 17_600))
    product, _ = timed(lambda: [A @ A.T for _ in range(10)])
    assert plan.certificate.status == "converged"
    return seconds_of(seconds, product / 10, "a product of 300 x 17,600 with itself")


def again(design):
    """Steps of epsilon up and down, on average, over the first plan."""
    X, _ = _clusters(17_600)
    planner = _model(12.0, 300).planner(X, X_star=_square(300))
    first, _ = timed(lambda: planner.plan(epsilon=1.0, delta=1e-6, design=design))
    steps = (0.9, 0.8, 0.7, 1.1, 1.2)
    took, _ = timed(lambda: [planner.plan(epsilon=step, delta=1e-6, design=design) for step in steps])
    return seconds_of(took / len(steps), first, "the first plan")


def previewing(design):
    """What a page shows while a slider moves."""
    X, _ = _clusters(17_600)
    planner = _model(12.0, 300).planner(X, X_star=_square(300))
    first, _ = timed(lambda: planner.plan(epsilon=1.0, delta=1e-6, design=design))
    took, _ = timed(lambda: planner.preview(epsilon=0.8, delta=1e-6, design=design))
    return seconds_of(took, first, "the first plan")


def on_gpu(rows, design):
    """A whole plan of an exact GP, over its factorisation alone, once that has warmed up."""
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        raise SystemExit("no GPU here")
    import cloakgp
    from cloakgp.model.torch_gp import TorchExactGP, tensor

    X, X_star = np.split(np.random.default_rng(0).uniform(0, 100, (rows + 400, 2)), [rows])
    kernel = cloakgp.kernels.EQ(15.0)
    gp = cloakgp.GP(kernel, noise=1.0, bounds=(-3.0, 3.0))

    def alone():
        TorchExactGP(kernel, 1.0, tensor(X, "cuda"), tensor(X_star, "cuda"))
        torch.cuda.synchronize()

    alone()
    bare, _ = timed(alone)
    seconds, _ = timed(
        lambda: gp.plan(X, X_star=X_star, epsilon=1.0, delta=1e-7, design=design, device="cuda")
    )
    return seconds_of(seconds, bare, "Gram, Cholesky and solve there")


def file_size():
    import cloakgp

    X, y = _clusters(21_613)
    release = described(X).release(y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        release.save(path)
        size = path.stat().st_size
        cloakgp.verify(path)
    return Found(size / 1e6, "MB", size / X.nbytes, "the inputs")


def described(X):
    return _model(12.0, 200).plan(X, X_star=_square(144), epsilon=1.0, delta=1e-6)


def learned(X):
    import cloakgp

    return cloakgp.AutoGP(bounds=(-3.0, 4.0)).plan(X, X_star=_square(100), epsilon=1.0)


def staged_size():
    X, y = _clusters(21_613)
    release = learned(X).release(y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        release.save(path)
        size = path.stat().st_size
    return Found(size / 1e6, "MB", size / X.nbytes, "the inputs")


def verifying():
    import cloakgp

    X, y = _clusters(21_613)
    seconds, plan = timed(lambda: described(X))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        plan.release(y).save(path)
        took, _ = timed(lambda: cloakgp.verify(path))
    return seconds_of(took, seconds, "its plan")


def predicting(plan, n):
    """`cloakgp predict` of 10,000 points from a release of `n` rows, over `import cloakgp`."""
    X, y = _clusters(n)
    with tempfile.TemporaryDirectory() as folder:
        path, points, out = (Path(folder) / name for name in ("a.cloak", "points.csv", "out.csv"))
        plan(X).release(y).save(path)
        rows = [f"{a},{b}" for a, b in _clusters(10_000, seed=1)[0]]
        points.write_text("\n".join(["a,b", *rows]))
        command = [sys.executable, "-m", "cloakgp.cli", "predict", str(path), str(points)]
        command += ["--inputs", "a,b", "-o", str(out)]
        seconds = best(command)
    return seconds_of(seconds, python("import cloakgp"), "import cloakgp")


def commands():
    """Plan, release, predictions and report of 1,000 rows with commands, over the same from Python.

    By processor time, which BLAS threads use up while they wait for each other (data/blas.py). Python is
    told to have one from the start, so that it would show if the library had more.
    """
    X, y = _clusters(1_000)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        np.savetxt("a.csv", np.column_stack([X, y]), delimiter=",", header="lat,long,mag", comments="")
        plan = "plan a.csv --inputs lat,long --output mag --bounds -3 4 --epsilon 1 --at grid:10 -o plan.json"
        lines = [plan, "release plan.json a.csv --no-ledger --yes -o a.cloak"]
        lines += ["predict a.cloak grid:30 -o predictions.csv", "export a.cloak --html"]
        quietly = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        typed = [[sys.executable, "-m", "cloakgp.cli", *line.split()] for line in lines]
        took, _ = timed(lambda: [subprocess.run(command, **quietly) for command in typed])
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        inside, _ = timed(lambda: subprocess.run([sys.executable, "-c", _IN_PYTHON], env=env, **quietly))
    return Found(took.clock, "s", took.used / inside.used, "the same in Python, by all cores", used=took.used)


_IN_PYTHON = """
import cloakgp, numpy as np
from cloakgp.workflow import report

data = np.loadtxt("a.csv", delimiter=",", skiprows=1)
X, y = {"lat": data[:, 0], "long": data[:, 1]}, data[:, 2]
axes = [np.linspace(*limits, 30) for limits in zip(data.min(axis=0)[:2], data.max(axis=0)[:2])]
grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
release = cloakgp.AutoGP(bounds=(-3, 4)).plan(X, X_star=grid[::9], epsilon=1.0).release(y)
release.predict(grid, return_std=True)
release.save("b.cloak")
report.html("b.cloak", ["lat", "long"], "mag")
"""


def learning():
    import cloakgp

    X, y = _clusters(5_000)
    exact = cloakgp.GP(cloakgp.kernels.EQ(12.0), noise=0.1, bounds=(-3.0, 4.0))
    yardstick, _ = timed(lambda: exact.plan(X[:2000], X_star=_square(100), epsilon=1.0, delta=1e-6))
    seconds, _ = timed(lambda: learned(X).release(y))
    return seconds_of(seconds, yardstick, "an exact plan of 2,000 rows")


def below(limit):
    return lambda found: found.value < limit


def times(limit):
    return lambda found: found.ratio is not None and found.ratio <= limit


MILLION, TEN = (1_000_000, 200, 144), (10_000_000, 500, 400)
CASES = {
    "import cloakgp": Case(importing, "1.5 times", times(1.5)),
    "cloakgp --help": Case(helping, "0.4 s", below(0.4)),
    "predict 10,000 points": Case(lambda: predicting(described, 5_000), "2 s", below(2)),
    "predict 10,000 points, learned": Case(lambda: predicting(learned, 21_613), "2 s", below(2)),
    "plan 17,600 rows, mse": Case(lambda: planning("mse"), "2.5 s", below(2.5)),
    "plan 17,600 rows, posterior": Case(lambda: planning("posterior"), "4.3 s", below(4.3)),
    "another epsilon, mse": Case(lambda: again("mse"), "1 s", below(1)),
    "another epsilon, posterior": Case(lambda: again("posterior"), "1 s", below(1)),
    "preview, mse": Case(lambda: previewing("mse"), "1 s", below(1)),
    "preview, posterior": Case(lambda: previewing("posterior"), "1 s", below(1)),
    "stream, a million rows": Case(lambda: stream(*MILLION, 12.0), "4 times", times(4), gigabytes=2),
    "stream, a million rows, short": Case(lambda: stream(*MILLION, 5.0), "4 times", times(4), gigabytes=2),
    "stream, a million, posterior": Case(lambda: stream(*MILLION, 12.0, "posterior"), "", lambda _: True),
    "stream, ten million rows": Case(lambda: stream(*TEN, 20.0), "3 times", times(3), True, 2),
    "stream, ten million rows, short": Case(lambda: stream(*TEN, 8.0), "3 times", times(3), True, 2),
    "file, 21,613 rows": Case(file_size, "3 MB", below(3)),
    "file, 21,613 rows, learned": Case(staged_size, "3 MB", below(3)),
    "verify, 21,613 rows": Case(verifying, "5 s", below(5)),
    "commands, 1,000 rows, learned": Case(commands, "2 times", times(2)),
    "AutoGP, 5,000 rows": Case(learning, "", lambda _: True),
    "GPU, 50,000 rows, mse": Case(lambda: on_gpu(50_000, "mse"), "2.2 s", below(2.2)),
    "GPU, 50,000 rows, posterior": Case(lambda: on_gpu(50_000, "posterior"), "2.2 s", below(2.2)),
    "GPU, 100,000 rows, mse": Case(lambda: on_gpu(100_000, "mse"), "9 s", below(9)),
    "GPU, 100,000 rows, posterior": Case(lambda: on_gpu(100_000, "posterior"), "9 s", below(9)),
}
HEADER = ["what", "took", "all cores", "times", "of", "memory", "goal", "reached"]
ROUNDING = ["", "privacy noise", "rounding at worst", "rounding, rms"]
MARKS = "<!-- tables of benchmarks/all.py -->", "<!-- end of the tables of benchmarks/all.py -->"


def in_child(name):
    """A case in a process of its own, and its memory; or why there is nothing."""
    command = [sys.executable, __file__, "--child", name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"
    found, memory = json.loads(done.stdout.strip().splitlines()[-1])
    return (Found(*found), memory), ""


def cells(name, case, found, memory):
    """A row of the table."""
    goal = case.goal + (f", {case.gigabytes:g} GB" if case.gigabytes < np.inf else "")
    reached = case.reached(found) and memory / 1e9 < case.gigabytes
    used = "" if found.used is None else f"{found.used:.2f} s"
    told = [name, f"{found.value:.2f} {found.unit}", used, f"{found.ratio:.2f}", found.yardstick]
    return [*told, f"{memory / 1e9:.1f} GB", goal, ("yes" if reached else "no") if goal else ""]


def markdown(header, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def write(path, tables):
    """Put the tables in place of those that are there."""
    before, rest = path.read_text().split(MARKS[0])
    path.write_text("\n\n".join([before + MARKS[0], *tables, MARKS[1] + rest.split(MARKS[1])[1]]))


def main(only, large, page):
    widths = [31, 9, 9, 7, 38, 8, 14, 7]
    line = lambda row: "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()  # noqa: E731
    print(line(HEADER))
    rows, rounding = [], []
    for name, case in CASES.items():
        if only not in name or (case.large and not large):
            continue
        measured, why = in_child(name)
        rows.append(
            [name, why, "", "", "", "", case.goal, ""] if measured is None else cells(name, case, *measured)
        )
        print(line(rows[-1]), flush=True)
        if measured is not None and measured[0].rounding is not None:
            rounding.append([name, *(f"{value:.2g}" for value in measured[0].rounding)])
        if page is not None:
            write(page, [markdown(HEADER, rows), markdown(ROUNDING, rounding)])
    for row in [ROUNDING, *rounding] if rounding else []:
        print("  ".join(f"{cell:<31}" for cell in row).rstrip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--large", action="store_true", help="ten million rows, too")
    parser.add_argument("--write", type=Path, help="a page that has these tables, such as docs/scale.md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        result = CASES[options.child].run()
        print(json.dumps([result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
    else:
        main(options.only, options.large, options.write)
