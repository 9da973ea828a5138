"""How long it takes until something happens: ``cloakgp --help``, and ``import cloakgp``.

    python benchmarks/start.py

Each is run by itself in a new process, the middle of five; beside them, what any work needs: numpy,
scipy.linalg and opendp. All of a name's modules are imported when it is first used: that is the third line.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 5
NEEDED = "import numpy, scipy.linalg, opendp"
STARTS = {
    "cloakgp --help": ["-m", "cloakgp.cli", "--help"],
    "import cloakgp": ["-c", "import cloakgp"],
    "from cloakgp import AutoGP, verify": ["-c", "from cloakgp import AutoGP, verify"],
    NEEDED: ["-c", NEEDED],
    "nothing": ["-c", "pass"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    for name, arguments in STARTS.items():
        seconds(arguments)  # compiles what is not compiled yet
        print(f"{statistics.median(seconds(arguments) for _ in range(RUNS)):6.2f} s  {name}")


if __name__ == "__main__":
    main()
