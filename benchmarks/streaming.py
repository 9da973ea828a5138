"""Plan and release over many rows, beside the plain sum K_uf K_fu over the same rows.

    python benchmarks/streaming.py [--rows 10000000] [--inducing 500] [--points 400] [--lengthscale 0.2]

Rows are random in the unit square, with a few apart from the others; y is generated. The plain sum is what
a GP with inducing inputs computes that looks at every row, in the same threads and chunks; the other times
are ratios to it, in the same run. Memory is the process's largest resident size, the data included. With
`--growth`, each setting is varied on its own up to the given one (measurements beyond), and the times are
drawn to scale.png.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial

import numpy as np

import cloakgp
from cloakgp.data.chunks import steps
from cloakgp.data.passes import sweep
from cloakgp.kernels import EQ
from designs import clustered_city

PICTURE = "scale.png"  # where the script is run
GOALS = 4.0, 3.0  # times the plain sum: a million rows, ten million


def data(rows, clustered=False):
    """Inputs, in towns or evenly over the square, and outcomes around a wave."""
    rng = np.random.default_rng(0)
    if clustered:
        X = clustered_city(rows)[0] / 100
    else:
        X = rng.uniform(size=(rows, 2))
        X[:: max(1, rows // 20)] *= 1.3  # some stand alone
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=rows)
    return X, y


def grid(points):
    side = round(points**0.5)
    axis = np.linspace(0.02, 0.98, side)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def _plain(kernel, Z, X):
    total = np.zeros((len(Z), len(Z)))
    for rows in steps(len(X)):
        K = kernel(X[rows], Z)
        total += K.T @ K
    return total


def plain_sum(kernel, Z, X):
    """K_uf K_fu."""
    return sum(sweep(partial(_plain, kernel, Z), X))


def processor_seconds():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def timed(function):
    """Seconds on the clock and of all cores together, and the result."""
    start, used = time.perf_counter(), processor_seconds()
    result = function()
    return np.array([time.perf_counter() - start, processor_seconds() - used]), result


def run(rows, inducing, points, lengthscale, design, clustered=False):
    """Seconds of each part, on the clock and of all cores."""
    X, y = data(rows, clustered)
    X_star, kernel = grid(points), EQ(lengthscale)
    gp = cloakgp.GP(kernel, noise=0.1, bounds=(-3.0, 4.0), inducing=inducing)
    choosing, gp = timed(lambda: gp.with_inducing(X))
    planning, plan = timed(lambda: gp.plan(X, X_star=X_star, epsilon=1.0, delta=1e-6, design=design))
    releasing, release = timed(lambda: plan.release(y))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    plain, _ = timed(lambda: plain_sum(kernel, np.asarray(plan.gp.inducing), X))
    truth = np.sin(6 * X_star[:, 0]) + X_star[:, 1]
    return {
        "plain sum": plain,
        "choosing inducing inputs": choosing,
        "plan": planning,
        "release": releasing,
        "rows": rows,
        "memory": memory,
        "measurements": plan.certificate.n_measurements,
        "gap": plan.certificate.gap,
        "noise": float(np.sqrt(np.mean(release.noise_std**2))),
        "error": float(np.sqrt(np.mean((release.predict(X_star) - truth) ** 2))),
    }


def _line(name, seconds, plain):
    ratio = seconds / plain
    print(f"{name:28}{seconds[0]:9.1f} s{ratio[0]:8.2f}{seconds[1]:13.1f} s{ratio[1]:8.2f}")


def report(found):
    plain, both = found["plain sum"], found["plan"] + found["release"]
    print(f"{'':28}{'seconds':>11}{'ratio':>8}{'of all cores':>15}{'ratio':>8}")
    for name in ("plain sum", "choosing inducing inputs", "plan", "release"):
        _line(name, found[name], plain)
    _line("plan and release", both, plain)
    goal = GOALS[1] if found["rows"] >= 10**7 else GOALS[0]
    print(f"goal: at most {goal:g} times the plain sum: {'met' if (both / plain)[0] <= goal else 'missed'}")
    print(f"memory at most {found['memory'] / 1e9:.2f} GB; {found['measurements']} measurements, ", end="")
    print(
        f"gap {found['gap']:.2%}; noise std {found['noise']:.2g}, error of predictions {found['error']:.2g}"
    )


def growth(base):
    """Each setting varied on its own, and a picture."""
    import matplotlib.pyplot as plt

    varied = {
        "rows": [base["rows"] // 8, base["rows"] // 4, base["rows"] // 2, base["rows"]],
        "inducing": [base["inducing"] // 4, base["inducing"] // 2, base["inducing"]],
        "points": [base["points"] // 16, base["points"] // 4, base["points"]],
        "lengthscale": [0.4, 0.2, 0.1],
    }
    titles = {
        "rows": "rows of X, N",
        "inducing": "inducing inputs, m",
        "points": "test points, P",
        "lengthscale": "measurements, r (shorter lengthscales)",
    }
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), sharey=True, layout="constrained")
    for ax, (name, values) in zip(axes, varied.items(), strict=True):
        found = [run(**base | {name: value}) for value in values]
        x = [one["measurements"] for one in found] if name == "lengthscale" else values
        for part in ("plain sum", "plan", "release"):
            ax.loglog(x, [one[part][0] for one in found], "o-", label=part)
        for value, one in zip(values, found, strict=True):
            times = "  ".join(f"{part} {one[part][0]:.1f} s" for part in ("plain sum", "plan", "release"))
            print(f"{name} {value}: {one['measurements']} measurements  {times}", flush=True)
        ax.set_xlabel(titles[name])
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(PICTURE, dpi=150)
    print(f"drawn: {PICTURE}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--inducing", type=int, default=500)
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--lengthscale", type=float, default=0.2)
    parser.add_argument("--design", default="mse")
    parser.add_argument("--clustered", action="store_true", help="rows in towns, some apart")
    parser.add_argument("--growth", action="store_true")
    options = vars(parser.parse_args())
    if options.pop("growth"):
        growth(options)
    else:
        sizes = f"{options['inducing']} inducing inputs, {options['points']} test points"
        print(f"{options['rows']:,} rows, {sizes}")
        report(run(**options))
