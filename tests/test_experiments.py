"""What experiments say of public tables, on generated ones: no data come with the project."""

import csv
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments"


@pytest.fixture
def public_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("public_tables")


def test_every_table_says_what_is_public(public_tables):
    for name, table in public_tables.TABLES.items():
        low, high = table.bounds
        assert low < high, name
        assert table.why, name
        assert (low, high) == (0, 1) or table.outcome != "yes/no", name
        assert low == 0 or table.outcome != "count", name
        assert 1 <= len(table.inputs) <= 8, name
        assert all(extent[0] < extent[-1] for extent in table.box.values()), name


def test_cells_become_numbers_and_rows_that_lack_something_are_left_out(public_tables):
    table = public_tables.TABLES["titanic"]
    row = {"class": "3rd class", "age": "adults", "sex": "women", "survived": "yes"}
    assert public_tables._numbers(table, row) == [2, 0, 1, 1]
    assert public_tables._numbers(table, row | {"sex": "NA"}) is None
    earnings = {"age": "40", "educatn": "12", "hours": "1800", "kids": "2", "earnings": "20000"}
    assert public_tables._numbers(public_tables.TABLES["earnings"], earnings) == [40, 12, 1800, 2, 20000]
    assert public_tables._numbers(public_tables.TABLES["earnings"], earnings | {"kids": "98"}) is None


def test_a_run_from_a_folder_measures_each_line_once(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(60, 80, 150), rng.integers(0, 2, 150)])
    np.savez(tmp_path / "heights.npz", X=X, y=X[:, 0] + 4 * X[:, 1] + rng.normal(size=150))
    X = rng.integers(0, [3, 2, 2], size=(150, 3)).astype(float)
    np.savez(tmp_path / "titanic.npz", X=X, y=1.0 * (rng.uniform(size=150) < 0.1 + 0.8 * X[:, 2]))
    command = [sys.executable, FOLDER / "tables.py", "--tables", "heights,titanic", "--epsilon", "3"]
    command += ["--splits", "1", "--methods", "auto,ridge,mean,line,adassp", "--jobs", "1"]
    command += ["--cache", tmp_path, "--output", tmp_path / "lines.csv"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    written = (tmp_path / "lines.csv").read_text()
    lines = {(line["table"], line["method"]): line for line in csv.DictReader(written.splitlines())}
    assert len(lines) == 10
    assert float(lines["heights", "ridge"]["r2"]) > 0.9 > 0.1 > float(lines["heights", "mean"]["r2"])
    assert lines["heights", "ridge"]["epsilon"] == "inf"
    assert lines["heights", "line"]["epsilon"] == "3"
    ours = lines["heights", "auto"]
    for low_held, low, high_held, high in json.loads(ours["halves"]).values():
        assert low + high == 30
        assert low_held + high_held == round(30 * float(ours["coverage"]))
    assert 0 < float(ours["forecast"]) < 96 - 36
    assert lines["titanic", "auto"]["halves"] == ""
    assert "R² above that of mean: 2 of 2 tables" in said
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == said
    assert (tmp_path / "lines.csv").read_text() == written
