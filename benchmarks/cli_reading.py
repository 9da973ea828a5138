"""How long it takes to read two input columns of a file with a million rows.

    python benchmarks/cli_reading.py

Beside it, the same columns of the same file with numpy.loadtxt, and with Python's csv module.
"""

from __future__ import annotations

import csv
import tempfile
import time
from pathlib import Path

import numpy as np

from cloakgp.workflow import tables

ROWS = 1_000_000


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def by_csv_module(path):
    with open(path, newline="") as lines:
        return np.array([[float(row["lat"]), float(row["lon"])] for row in csv.DictReader(lines)])


def main():
    rng = np.random.default_rng(0)
    columns = {"id": np.arange(ROWS), "lat": rng.normal(size=ROWS), "lon": rng.normal(size=ROWS)}
    columns |= {"price": rng.normal(size=ROWS), "year": rng.integers(1990, 2020, ROWS)}
    with tempfile.TemporaryDirectory() as folder:
        table, other = Path(folder) / "data.csv", Path(folder) / "data.parquet"
        tables.write_columns(table, columns)
        tables.write_columns(other, columns)
        ways = {
            "cloakgp, CSV": lambda: tables.read_columns(table, ["lat", "lon"]),
            "cloakgp, Parquet": lambda: tables.read_columns(other, ["lat", "lon"]),
            "numpy.loadtxt": lambda: np.loadtxt(table, delimiter=",", skiprows=1, usecols=(1, 2)),
            "csv module": lambda: by_csv_module(table),
        }
        print(f"two of {len(columns)} columns, {ROWS:,} rows, {table.stat().st_size / 1e6:.0f} MB as CSV")
        base, expected = None, np.column_stack([columns["lat"], columns["lon"]])
        for name, read in ways.items():
            seconds, found = timed(read)
            assert np.array_equal(found, expected)
            base = seconds if base is None else base
            print(f"{name:17} {seconds:6.2f} s  {seconds / base:5.1f} times as long")


if __name__ == "__main__":
    main()
