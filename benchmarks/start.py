"""How long it takes until something happens: ``cloakgp --help``, ``import cloakgp``, ``cloakgp predict``.

    python benchmarks/start.py

Each is run by itself in a new process, the middle of five, and its processor time in brackets; beside them,
what any work needs: numpy, scipy.linalg and opendp. All of a name's modules are imported when it is first
used: that is the third line. Predictions are at 10,000 points, from releases of 5,000 rows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
NEEDED = "import numpy, scipy.linalg, opendp"
STARTS = {
    "cloakgp --help": ["-m", "cloakgp.cli", "--help"],
    "import cloakgp": ["-c", "import cloakgp"],
    "from cloakgp import AutoGP, verify": ["-c", "from cloakgp import AutoGP, verify"],
    NEEDED: ["-c", NEEDED],
    "nothing": ["-c", "pass"],
}


def seconds(arguments: list[str]) -> tuple[float, float]:
    """By the clock, and of the processor."""
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def predictions(folder: Path) -> dict[str, list[str]]:
    """What predicts at 10,000 points: from a model that was known, and from one that was learned."""
    import numpy as np

    import cloakgp
    from cloakgp.kernels import EQ
    from designs import clustered_city

    X, _ = clustered_city(5000)
    y, star = np.sin(X[:, 0] / 15), X[::50]
    known = cloakgp.GP(EQ(12.0), noise=0.1, bounds=(-3.0, 4.0), inducing=200)
    plans = {"known": known, "learned": cloakgp.AutoGP(bounds=(-3.0, 4.0))}
    points = folder / "points.csv"
    np.savetxt(points, clustered_city(10_000)[0], delimiter=",", header="a,b", comments="")
    found = {}
    for name, model in plans.items():
        path = folder / f"{name}.cloak"
        model.plan(X, X_star=star, epsilon=1.0, delta=1e-6).release(y).save(path)
        asked = ["-m", "cloakgp.cli", "predict", str(path), str(points), "--inputs", "a,b"]
        found[f"cloakgp predict, 10,000 points, model {name}"] = asked
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in (STARTS | predictions(Path(folder))).items():
            seconds(arguments)  # compiles what is not compiled yet
            runs = [seconds(arguments) for _ in range(RUNS)]
            found = [statistics.median(each) for each in zip(*runs, strict=True)]
            print(f"{found[0]:6.2f} s ({found[1]:.2f} s)  {name}", flush=True)


if __name__ == "__main__":
    main()
