"""How long the kernel matrix of boxes takes, against the plain EQ kernel's on the boxes' centres.

    python benchmarks/integral_kernel.py [--bins 6] [--dimensions 4]

Bins on a grid share their sides, of which only the distinct ones are computed; boxes at random
places have nothing to share. Times are the best of three runs.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from cloakgp.kernels import EQ, Boxes, Integral, Points


def timed(function, repeat=3):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def grid(bins, dimensions):
    """All bins of a grid on the unit cube, and their centres."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    lower = np.array(list(itertools.product(edges[:-1], repeat=dimensions)))
    upper = np.array(list(itertools.product(edges[1:], repeat=dimensions)))
    return Boxes(lower, upper), (lower + upper) / 2


def scattered(count, dimensions, seed=0):
    """Boxes of different sizes at random places, and their centres."""
    rng = np.random.default_rng(seed)
    lower = rng.uniform(0.0, 0.9, (count, dimensions))
    upper = lower + 10.0 ** rng.uniform(-4.0, 0.0, (count, dimensions))
    return Boxes(lower, upper), (lower + upper) / 2


def main(bins, dimensions):
    kernel = EQ([0.3] * dimensions)
    print(f"{'seconds for the matrix of':44}{'EQ, centres':>12}{'Integral':>10}{'ratio':>8}")
    for name, (boxes, centres) in {
        "bins on a grid": grid(bins, dimensions),
        "boxes at random places": scattered(bins**dimensions, dimensions),
    }.items():
        plain = timed(lambda X=centres: kernel(X))
        points = Points(np.random.default_rng(1).uniform(size=(len(boxes), dimensions)))
        for what, other in (("themselves", None), ("as many points", points)):
            took = timed(lambda X=boxes, Z=other: Integral(kernel)(X, Z))
            title = f"{len(boxes)} {name}, with {what}"
            print(f"{title:44}{plain:12.3f}{took:10.3f}{took / plain:8.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bins", type=int, default=6, help="per dimension")
    parser.add_argument("--dimensions", type=int, default=4)
    arguments = parser.parse_args()
    main(arguments.bins, arguments.dimensions)
