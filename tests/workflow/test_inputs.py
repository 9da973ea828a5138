"""Input columns of any size: the same numbers, and the same plan, wherever they are kept."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from pyarrow import parquet, table

from cloakgp.core.errors import InputError
from cloakgp.data import cells
from cloakgp.data.columns import Column, Columns
from cloakgp.data.parquet import ParquetColumns
from cloakgp.data.passes import dask_columns
from cloakgp.kernels import EQ
from cloakgp.release import encoding
from cloakgp.release.settings import Settings
from cloakgp.workflow import inputs

X = np.random.default_rng(3).uniform(0, 9, size=(300, 2))
SETTINGS = Settings(
    columns=Columns((Column("lat"), Column("lon")), "price"),
    output="price",
    bounds=(0.0, 1.0),
    kernel=EQ(3.0, variance=0.1),
    noise=0.05,
    at="grid:4",
    epsilon=1.0,
    delta=0.01,
    inducing=7,
)
NAMES = SETTINGS.inputs


@pytest.fixture
def path(tmp_path):
    """A table with row groups of other sizes than any chunk."""
    columns = {"lat": X[:, 0], "price": np.full(300, 0.5), "lon": X[:, 1]}
    parquet.write_table(table(columns), tmp_path / "homes.parquet", row_group_size=70)
    return tmp_path / "homes.parquet"


@pytest.fixture
def small_files(monkeypatch):
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)


def sources(path):
    """The same inputs, three times."""
    pytest.importorskip("dask.array")
    return [X, ParquetColumns(path, NAMES), dask_columns(str(path), NAMES)]


@pytest.mark.parametrize("most", [64, 4096])
@pytest.mark.parametrize("largest", [100, 2**26])
def test_a_plan_does_not_depend_on_where_the_inputs_are(path, monkeypatch, most, largest):
    monkeypatch.setattr(cells, "MOST_CELLS", most)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", largest)
    plans = [inputs.plan_for(SETTINGS, source, None) for source in sources(path)]
    assert len({plan.digest for plan in plans}) == 1
    assert all(isinstance(plan.X, np.ndarray) or largest == 100 for plan in plans)


def test_only_what_is_large_and_can_be_read_in_parts_stays_in_its_file(path, small_files, monkeypatch):
    assert isinstance(inputs.open_inputs(path, NAMES, inducing=True, dask=False), ParquetColumns)
    assert np.array_equal(inputs.open_inputs(path, NAMES, inducing=False, dask=False), X)
    csv = path.with_suffix(".csv")
    csv.write_text("lat,lon\n" + "1,2\n" * 20)
    assert isinstance(inputs.open_inputs(csv, NAMES, inducing=True, dask=False), np.ndarray)
    monkeypatch.undo()
    assert isinstance(inputs.open_inputs(path, NAMES, inducing=True, dask=False), np.ndarray)


def test_a_folder_of_parquet_files_is_a_table_for_a_cluster(path, tmp_path):
    pytest.importorskip("dask.array")
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in (0, 1):
        columns = {"lat": X[part::2, 0], "lon": X[part::2, 1], "price": np.ones(150)}
        parquet.write_table(table(columns), folder / f"part.{part}.parquet")
    inputs.check_columns(folder, NAMES, "price", dask=True)
    found = dask_columns(str(folder), NAMES)
    assert np.array_equal(np.asarray(found), np.vstack([X[::2], X[1::2]]))
    nowhere = tmp_path / "none.parquet"
    for file, output, dask, words in (
        (folder, "rent", True, "there is no column 'rent'"),
        (folder, "price", False, "there is no such file"),
        (nowhere, "price", True, "there is no such file"),
    ):
        with pytest.raises(InputError, match=words):
            inputs.check_columns(file, NAMES, output, dask=dask)


@pytest.mark.parametrize("at", ["grid:4", X[:5]])
def test_what_is_missing_among_large_inputs_is_said(path, small_files, at):
    holed = X[:, 0].copy()
    holed[200] = np.nan
    parquet.write_table(table({"lat": holed, "lon": X[:, 1]}), path)
    source = inputs.open_inputs(path, NAMES, inducing=True, dask=False)
    with pytest.raises(ValueError, match=r"finite"):
        inputs.plan_for(replace(SETTINGS, at=at), source, None)


def test_a_cluster_is_there_for_the_time_of_a_command_and_reads_a_changed_file_anew(path):
    distributed = pytest.importorskip("distributed")
    with inputs.connected("local"):
        assert distributed.default_client().scheduler.address.startswith("inproc:")
        assert np.array_equal(np.asarray(dask_columns(str(path), ["lat"])), X[:, :1])
        parquet.write_table(table({"lat": X[:, 1]}), path, row_group_size=70)
        assert np.array_equal(np.asarray(dask_columns(str(path), ["lat"])), X[:, 1:])
    with inputs.connected(None), pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()
