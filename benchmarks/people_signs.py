"""What a plan and `verify` take where many people have twelve different columns each, and no bound helps.

Lemma 19a tries 2,048 signs for each of them. At worst everybody has to be tried: people whose columns are
turned copies of one another all have the same sum of absolute inner products, and none attains it. With one
thread on a shared machine, 20,000 people take `verify` 2 s (12 minutes when signs were tried one by one), and
a plan 3 s.

    python benchmarks/people_signs.py --people 20000
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cloakgp.data.people import People
from cloakgp.measure.sensitivity import largest_squared_move
from cloakgp.verification.exact import longest_together


def turned_copies(n_people: int, d: int = 12, q: int = 8, seed: int = 0) -> np.ndarray:
    """(q, n d) columns: each person's are the same d, with coordinates in another order and other signs."""
    rng = np.random.default_rng(seed)
    own = rng.integers(-(2**28), 2**28, size=(q, d))
    return np.hstack([own[rng.permutation(q)] * rng.choice([-1, 1], size=(q, 1)) for _ in range(n_people)])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--people", type=int, nargs="+", default=[2000, 20000, 32000, 100000])
    for n_people in asked.parse_args().people:
        matrix, labels = turned_copies(n_people), np.arange(12 * n_people)
        people = np.repeat(np.arange(n_people), 12)
        times = []
        for find in (
            lambda m=matrix, r=labels, p=people: largest_squared_move(m, r, People(p)),
            lambda m=matrix, r=labels, p=people: longest_together(m, r, p),
        ):
            start = time.perf_counter()
            found = find()
            times.append((found, time.perf_counter() - start))
        assert times[0][0] == times[1][0]
        print(f"{n_people:7} people: plan {times[0][1]:6.1f} s, verify {times[1][1]:6.1f} s")


if __name__ == "__main__":
    main()
