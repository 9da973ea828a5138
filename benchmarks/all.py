"""One table of what takes how long: time, ratio to a yardstick in the same run, memory, and the goal.

    python benchmarks/all.py [--only plan] [--large] [--markdown]

Each case runs in a process of its own, so that memory is its own, and has a yardstick beside it that was
measured in the same process: machines are shared, and seconds alone say little. `--large` adds ten million
rows (some minutes, and 300 MB of data). Cases that need what is not here (a GPU) say so.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Found(NamedTuple):
    """What a case took: seconds or bytes, over its yardstick's if that has a meaning."""

    value: float
    unit: str
    ratio: float | None = None
    yardstick: str = ""


class Case(NamedTuple):
    """What is measured, and what it should reach."""

    run: Callable[[], Found]
    goal: str
    reached: Callable[[Found], bool]
    large: bool = False


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def python(code):
    """Seconds of a fresh interpreter that runs this, the best of three."""
    return min(timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))[0] for _ in range(3))


def importing():
    yardstick = python("import numpy, scipy.linalg, opendp")
    seconds = python("import cloakgp")
    return Found(seconds, "s", seconds / yardstick, "numpy, scipy.linalg and opendp")


def helping():
    command = [sys.executable, "-m", "cloakgp.cli", "--help"]
    run = lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    seconds, bare = min(timed(run)[0] for _ in range(3)), python("pass")
    return Found(seconds, "s", seconds / bare, "an interpreter that does nothing")


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
    from cloakgp.rows.chunks import steps

    total = np.zeros((len(Z), len(Z)))
    for rows in steps(len(X)):
        K = kernel(X[rows], Z)
        total += K.T @ K
    return total


def stream(rows, inducing, points, lengthscale, design="mse"):
    """Plan and release, over the plain sum K_uf K_fu."""
    from functools import partial

    from cloakgp.rows.passes import sweep

    X, y = _clusters(rows)
    gp = _model(lengthscale, inducing)
    seconds, plan = timed(lambda: gp.plan(X, _square(points), epsilon=1.0, delta=1e-8, design=design))
    more, _ = timed(lambda: plan.release(y))
    Z = np.asarray(plan.gp.inducing)
    plain, _ = timed(lambda: sum(sweep(partial(_plain, gp.kernel, Z), X)))
    return Found(seconds + more, "s", (seconds + more) / plain, "the sum K_uf K_fu")


def planning(design):
    """A plan of 17,600 rows, over one product of the size that it is made of."""
    X, _ = _clusters(17_600)
    gp, X_star = _model(12.0, 300), _square(300)
    seconds, plan = timed(lambda: gp.plan(X, X_star, epsilon=1.0, delta=1e-6, design=design))
    A = np.random.default_rng(0).normal(size=(300, 17_600))
    product, _ = timed(lambda: [A @ A.T for _ in range(10)])
    assert plan.certificate.status == "converged"
    return Found(seconds, "s", seconds / product * 10, "a product of 300 x 17,600 with itself")


def again(design):
    """The same plan for another epsilon, over the first."""
    X, _ = _clusters(17_600)
    planner = _model(12.0, 300).planner(X, _square(300))
    first, _ = timed(lambda: planner.plan(epsilon=1.0, delta=1e-6, design=design))
    second, _ = timed(lambda: planner.plan(epsilon=1.1, delta=1e-6, design=design))
    return Found(second, "s", second / first, "the first plan")


def file_size():
    import cloakgp

    X, y = _clusters(21_613)
    release = _model(12.0, 200).plan(X, _square(144), epsilon=1.0, delta=1e-6).release(y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        release.save(path)
        size = path.stat().st_size
        cloakgp.verify(path)
    return Found(size / 1e6, "MB", size / X.nbytes, "the inputs")


def staged_size():
    import cloakgp

    X, y = _clusters(21_613)
    release = cloakgp.AutoGP(bounds=(-3.0, 4.0)).plan(X, _square(100), epsilon=1.0).release(y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        release.save(path)
        size = path.stat().st_size
    return Found(size / 1e6, "MB", size / X.nbytes, "the inputs")


def verifying():
    import cloakgp

    X, y = _clusters(21_613)
    seconds, plan = timed(lambda: _model(12.0, 200).plan(X, _square(144), epsilon=1.0, delta=1e-6))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.cloak"
        plan.release(y).save(path)
        took, _ = timed(lambda: cloakgp.verify(path))
    return Found(took, "s", took / seconds, "its plan")


def predicting():
    """`cloakgp predict` of 10,000 points, over `import cloakgp`."""
    X, y = _clusters(5_000)
    with tempfile.TemporaryDirectory() as folder:
        path, points, out = (Path(folder) / name for name in ("a.cloak", "points.csv", "out.csv"))
        _model(12.0, 200).plan(X, _square(144), epsilon=1.0, delta=1e-6).release(y).save(path)
        rows = [f"{a},{b}" for a, b in _clusters(10_000, seed=1)[0]]
        points.write_text("\n".join(["a,b", *rows]))
        command = [sys.executable, "-m", "cloakgp.cli", "predict", str(path), str(points)]
        command += ["--inputs", "a,b", "-o", str(out)]
        seconds, _ = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    return Found(seconds, "s", seconds / python("import cloakgp"), "import cloakgp")


def learning():
    import cloakgp

    X, y = _clusters(5_000)
    exact = cloakgp.GP(cloakgp.kernels.EQ(12.0), noise=0.1, bounds=(-3.0, 4.0))
    yardstick, _ = timed(lambda: exact.plan(X[:2000], _square(100), epsilon=1.0, delta=1e-6))
    seconds, _ = timed(lambda: cloakgp.AutoGP((-3.0, 4.0)).plan(X, _square(100), epsilon=1.0).release(y))
    return Found(seconds, "s", seconds / yardstick, "an exact plan of 2,000 rows")


def below(limit):
    return lambda found: found.value < limit


def times(limit):
    return lambda found: found.ratio is not None and found.ratio <= limit


CASES = {
    "import cloakgp": Case(importing, "1.5 times", times(1.5)),
    "cloakgp --help": Case(helping, "0.4 s", below(0.4)),
    "predict 10,000 points": Case(predicting, "2 s", below(2)),
    "plan 17,600 rows, mse": Case(lambda: planning("mse"), "2.5 s", below(2.5)),
    "plan 17,600 rows, posterior": Case(lambda: planning("posterior"), "4.3 s", below(4.3)),
    "another epsilon, mse": Case(lambda: again("mse"), "1 s", below(1)),
    "another epsilon, posterior": Case(lambda: again("posterior"), "1 s", below(1)),
    "stream, a million rows": Case(lambda: stream(1_000_000, 200, 144, 12.0), "4 times", times(4)),
    "stream, a million rows, short": Case(lambda: stream(1_000_000, 200, 144, 5.0), "4 times", times(4)),
    "stream, ten million rows": Case(lambda: stream(10_000_000, 500, 400, 20.0), "3 times", times(3), True),
    "file, 21,613 rows": Case(file_size, "3 MB", below(3)),
    "file, 21,613 rows, learned": Case(staged_size, "3 MB", below(3)),
    "verify, 21,613 rows": Case(verifying, "5 s", below(5)),
    "AutoGP, 5,000 rows": Case(learning, "", lambda _: True),
}


def in_child(name):
    """A case in a process of its own."""
    command = [sys.executable, __file__, "--child", name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed"
    found, memory = json.loads(done.stdout.strip().splitlines()[-1])
    return (Found(*found), memory), ""


def main(only, large, markdown):
    cells = ["what", "took", "times", "of", "memory", "goal", ""]
    widths = [31, 9, 7, 39, 8, 9, 4]
    line = (lambda row: "| " + " | ".join(row) + " |") if markdown else None
    line = line or (
        lambda row: "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
    )
    print(line(cells))
    if markdown:
        print(line(["---"] * len(cells)))
    for name, case in CASES.items():
        if only not in name or (case.large and not large):
            continue
        measured, why = in_child(name)
        if measured is None:
            print(line([name, why, "", "", "", case.goal, ""]), flush=True)
            continue
        found, memory = measured
        told = [name, f"{found.value:.2f} {found.unit}", f"{found.ratio:.2f}", found.yardstick]
        told += [f"{memory / 1e9:.1f} GB", case.goal, "yes" if case.reached(found) else "no"]
        print(line(told if case.goal else [*told[:-1], ""]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--large", action="store_true", help="ten million rows, too")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/scale.md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        result = CASES[options.child].run()
        print(json.dumps([result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
    else:
        main(options.only, options.large, options.markdown)
