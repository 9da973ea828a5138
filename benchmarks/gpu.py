"""How long a plan takes on a GPU, beside what the GPU needs for the GP alone.

    python benchmarks/gpu.py [--rows 50000 100000] [--points 400] [--device cuda]

Inputs are random and public; y is not needed. "GP alone" is the Gram matrix, torch's own Cholesky
and its solve, on the same device in the same run; the others are ratios to it. Then how far C is
from numpy's on a smaller problem. Needs torch, numpy, scipy and array-api-compat.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

try:
    import torch
except ImportError:
    print("needs PyTorch: skipped")
    raise SystemExit(0) from None

import cloakgp
from cloakgp import designs
from cloakgp.kernels import EQ
from cloakgp.model.smoothers import ExactGP
from cloakgp.model.torch_gp import TorchExactGP, tensor

KERNEL, NOISE = EQ(15.0), 1.0
SMALL = 3000  # rows on which numpy is compared
SHAPED_FOR = 400.0  # noise variance of a measurement, for the posterior design
STRIP = 2048  # rows of the Gram matrix at a time


def inputs(rows, points, device):
    """Rows at random in a 100 x 100 box, and as many test points; on the host and on the device."""
    rng = np.random.default_rng(0)
    X, X_star = rng.uniform(0, 100, (rows, 2)), rng.uniform(0, 100, (points, 2))
    return X, X_star, tensor(X, device), tensor(X_star, device)


def timed(function, device, repeat):
    """Best time of a few runs, the device's queue included, and the last result."""
    times, result = [], None
    for _ in range(repeat):
        result = None  # frees the last one's memory
        gc.collect()
        _wait(device)
        start = time.perf_counter()
        result = function()
        _wait(device)
        times.append(time.perf_counter() - start)
    return min(times), result


def gp_alone(X, X_star):
    """C^T the usual way."""
    n = len(X)
    gram = torch.empty((n, n), dtype=torch.float64, device=X.device)
    for start in range(0, n, STRIP):
        gram[start : start + STRIP] = KERNEL(X[start : start + STRIP], X)
    gram.diagonal().add_(NOISE)
    return torch.cholesky_solve(KERNEL(X, X_star), torch.linalg.cholesky(gram))


def row(label, seconds, base, note=""):
    ratio = "" if base is None else f"{seconds / base:10.2f}"
    print(f"{label:44}{seconds:10.2f}{ratio:>10}   {note}", flush=True)


def times(rows, points, device, chosen, repeat):
    X, X_star, tX, tX_star = inputs(rows, points, device)
    print(f"\n{rows} rows, {points} test points, {_name(device)}")
    print(f"{'':44}{'seconds':>10}{'ratio':>10}")
    try:
        base, _ = timed(lambda: gp_alone(tX, tX_star), device, repeat)
        row("GP alone: Gram, Cholesky, solve", base, base)
    except torch.OutOfMemoryError:
        base = None  # torch keeps three copies of the matrix
        print("GP alone: Gram, Cholesky, solve: does not fit into the device's memory")
    smoother_and_designs(tX, tX_star, device, chosen, repeat, base)
    gp = cloakgp.GP(KERNEL, noise=NOISE, bounds=(-3.0, 3.0))
    for design in chosen:
        arguments = {"epsilon": 1.0, "delta": 1e-7, "design": design, "device": device}
        took, plan = timed(lambda: gp.plan(X, X_star=X_star, **arguments), device, repeat)  # noqa: B023
        error = float(np.sqrt((plan.expected_error**2).mean()))
        note = f"expected error {error:.3g}, gap {plan.certificate.gap:.2%}"
        row(f"whole plan, GP included: {design}", took, base, note)


def smoother_and_designs(X, X_star, device, chosen, repeat, base):
    took, smoother = timed(lambda: TorchExactGP(KERNEL, NOISE, X, X_star), device, repeat)
    row("the same in place, block by block", took, base, _memory(device))
    weights = np.ones(len(X_star))
    for design in chosen:
        took, solution = timed(
            lambda: designs.solve(design, smoother, weights, 0.01, SHAPED_FOR),  # noqa: B023
            device,
            repeat,
        )
        size = solution.reconstruction.shape[1]
        note = f"gap {solution.gap:.2%}, {solution.iterations} steps, {size} numbers"
        row(f"{design} design", took, base, note)


def agreement(points, device, design):
    X, X_star, tX, tX_star = inputs(SMALL, points, device)
    host, there = ExactGP(KERNEL, NOISE, X, X_star), TorchExactGP(KERNEL, NOISE, tX, tX_star)
    rows = slice(0, SMALL)
    C, other = host.columns(rows), there.on_host().columns(rows)
    print(f"\n{SMALL} rows: C is within {np.abs(C - other).max() / np.abs(C).max():.1e} of numpy's, relative")
    ours, theirs = (designs.solve(design, s, np.ones(points), 0.01).objective for s in (host, there))
    print(f"and the {design} design's noise within {abs(theirs / ours - 1):.1e}")


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def _name(device):
    return torch.cuda.get_device_name() if device == "cuda" else device


def _memory(device):
    return f"at most {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB so far" if device == "cuda" else ""


if __name__ == "__main__":
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000] if cuda else [2000, 4000])
    parser.add_argument("--points", type=int, default=400 if cuda else 100)
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--designs", nargs="+", default=["mse", "posterior"], choices=designs.DESIGNS)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    agreement(options.points, options.device, options.designs[0])  # also wakes the device up
    for n in options.rows:
        times(n, options.points, options.device, options.designs, options.repeat)
