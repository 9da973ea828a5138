"""Outcomes that are not in memory: the same integers as from an array, chunk by chunk."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import GP
from cloakgp.kernels import EQ
from cloakgp.measurements.lattice import Measurement
from cloakgp.measurements.recipes import FactoredMeasurement
from cloakgp.plans import out_of_core
from cloakgp.private.outcomes import EXPECTED_NUMBERS, INCOMPLETE, PrivateColumn
from cloakgp.private.room import measure
from cloakgp.rows import chunks
from cloakgp.rows.parquet import ParquetColumns

RNG = np.random.default_rng(3)
N = 90
DISTINCT = RNG.uniform(0, 10, size=(N, 1))
REPEATED = RNG.integers(0, 12, size=(N, 1)).astype(float)
Y = RNG.uniform(-1, 2, size=N)
X_STAR = np.arange(1.0, 9.0)[:, None]
PLANS = {
    "a matrix": (DISTINCT, 10**6),
    "a matrix of merged rows": (REPEATED, 10**6),
    "a recipe": (DISTINCT, 1),
    "a recipe for merged rows": (REPEATED, 1),
}


@pytest.fixture(params=PLANS.values(), ids=PLANS)
def plan(request, monkeypatch):
    X, dense = request.param
    monkeypatch.setattr(out_of_core, "DENSE", dense)
    monkeypatch.setattr(chunks, "CHUNK", 32)  # several chunks, the last one shorter
    monkeypatch.setattr(chunks, "STEP", 10)
    gp = GP(EQ(2.0), noise=0.1, bounds=(-1.0, 2.0), inducing=6)
    plan = gp.plan(X, X_star=X_STAR, epsilon=1.0, delta=0.01)
    assert isinstance(plan.measurement, FactoredMeasurement if dense == 1 else Measurement)
    assert (plan.measurement.groups is None) == (X is DISTINCT)
    return plan


@pytest.fixture
def exact(monkeypatch):
    """The private room without its noise."""
    monkeypatch.setattr("cloakgp.private.room.add_noise", lambda exact, sigma: exact)
    return measure


def memory_map(y, folder):
    np.save(folder / "y.npy", y)
    return np.load(folder / "y.npy", mmap_mode="r")


def parquet_column(y, folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"y": y, "other": np.zeros(len(y))})
    parquet.write_table(table, folder / "y.parquet", row_group_size=25)
    return PrivateColumn(str(folder / "y.parquet"), "y")


def parquet_columns(y, folder):
    column = parquet_column(y, folder)
    return ParquetColumns(column.place[0], ["y"])


def dask_array(y, folder):
    array = pytest.importorskip("dask.array")
    return array.from_array(y, chunks=37, name=False)


every_place = pytest.mark.parametrize("kept", [memory_map, parquet_column, parquet_columns, dask_array])


@every_place
def test_the_same_integers_wherever_they_are(plan, exact, kept, tmp_path):
    wanted = exact(plan.measurement, Y, "error")
    assert np.abs(wanted).max() > 2**20
    np.testing.assert_array_equal(exact(plan.measurement, kept(Y, tmp_path), "error"), wanted)


@every_place
@pytest.mark.parametrize("place", [0, N - 1])
def test_a_missing_outcome_anywhere(plan, exact, kept, tmp_path, place):
    holed = Y.copy()
    holed[place] = np.nan
    source = kept(holed, tmp_path)
    with pytest.raises(ValueError, match="y must be finite") as refused:
        exact(plan.measurement, source, "error")
    assert str(refused.value) == INCOMPLETE
    wanted = exact(plan.measurement, holed, "midpoint")
    np.testing.assert_array_equal(exact(plan.measurement, source, "midpoint"), wanted)


@every_place
@pytest.mark.parametrize("n", [N - 1, N + 1])
def test_another_number_of_rows(plan, exact, kept, tmp_path, n):
    with pytest.raises(ValueError, match="y must have shape"):
        exact(plan.measurement, kept(np.resize(Y, n), tmp_path), "error")


def test_two_columns_are_not_outcomes(plan, exact, tmp_path):
    parquet_column(Y, tmp_path)
    with pytest.raises(ValueError, match="y must have shape"):
        exact(plan.measurement, ParquetColumns(tmp_path / "y.parquet", ["y", "other"]), "error")


def test_a_column_of_words_gives_the_one_message(plan, exact, tmp_path):
    column = parquet_column(np.array(["secret"] * N), tmp_path)
    with pytest.raises(TypeError) as refused:
        exact(plan.measurement, column, "midpoint")
    assert str(refused.value) == EXPECTED_NUMBERS
    assert refused.value.__cause__ is None


def test_a_file_that_is_gone_gives_the_one_message(plan, exact, tmp_path):
    with pytest.raises(TypeError) as refused:
        exact(plan.measurement, PrivateColumn(str(tmp_path / "gone.parquet"), "y"), "midpoint")
    assert str(refused.value) == EXPECTED_NUMBERS
