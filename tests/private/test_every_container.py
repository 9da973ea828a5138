"""Whatever y is kept in, every door takes it and sees the same integers; or says why it does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cloakgp import GP, binning, plan_selection
from cloakgp.data import chunks
from cloakgp.data.parquet import ParquetColumns
from cloakgp.kernels import EQ
from cloakgp.measure.measurement import measurement_of
from cloakgp.measure.statistics import Outside
from cloakgp.private import room
from cloakgp.private.outcomes import EXPECTED_NUMBERS

RNG = np.random.default_rng(8)
N = 90
BOUNDS = (-1.0, 2.0)
DISTINCT = RNG.uniform(0, 10, size=(N, 1))
REPEATED = RNG.integers(0, 12, size=(N, 1)).astype(float)
REPEATED[17], REPEATED[70] = 12.5, 14.5  # groups of one, in different chunks
Y = RNG.uniform(-2, 3, size=N)
HOLED = np.where(np.arange(N) % 31 == 5, np.nan, Y)
X_STAR = np.arange(1.0, 9.0)[:, None]


@pytest.fixture(autouse=True)
def many_chunks_without_noise(monkeypatch):
    """Rows come in three chunks; what noise would be added to comes out."""
    monkeypatch.setattr(chunks, "CHUNK", 32)
    monkeypatch.setattr(chunks, "STEP", 10)
    monkeypatch.setattr(room, "add_noise", lambda exact, scale: exact)
    monkeypatch.setattr(room, "add_laplace", lambda exact, scale: exact)


# ------------------------------------------------------------------------------------- containers


def memory_map(y, folder):
    np.save(folder / "y.npy", y)
    return np.load(folder / "y.npy", mmap_mode="r")


def series(y, folder):
    """Whose labels are not the rows' places."""
    return pytest.importorskip("pandas").Series(y, index=np.arange(len(y))[::-1])


def polars_frame(y, folder):
    """With nulls, as polars has what is missing."""
    values = [None if np.isnan(value) else value for value in y.tolist()]
    return pytest.importorskip("polars").DataFrame({"y": values})


def parquet_file(y, folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"y": y}), folder / "y.parquet", row_group_size=25)
    return str(folder / "y.parquet")


def csv_column(y, folder):
    pytest.importorskip("pyarrow")
    lines = ["" if np.isnan(value) else repr(value) for value in y.tolist()]
    (folder / "y.csv").write_text("\n".join(["y,other", *(f"{line},0" for line in lines)]))
    return room.PrivateColumn(str(folder / "y.csv"), "y")


def dask_array(y, folder):
    return pytest.importorskip("dask.array").from_array(y, chunks=37, name=False)


def dask_column(y, folder):
    pytest.importorskip("dask.array")
    return room.private_dask_column(parquet_file(y, folder), "y")


HERE = {
    "list": lambda y, folder: y.tolist(),
    "list with None": lambda y, folder: [None if np.isnan(value) else value for value in y.tolist()],
    "tuple": lambda y, folder: tuple(y.tolist()),
    "strided array": lambda y, folder: np.repeat(y, 2)[::2],
    "masked array": lambda y, folder: np.ma.masked_invalid(y),
    "Series": series,
    "table of one column": lambda y, folder: series(y, folder).to_frame(),
    "polars table": polars_frame,
    "pyarrow table": lambda y, folder: pytest.importorskip("pyarrow").table({"y": y}),
    "memory map": memory_map,
    "ParquetColumns": lambda y, folder: ParquetColumns(parquet_file(y, folder), ["y"]),
    "column of a Parquet file": lambda y, folder: room.PrivateColumn(parquet_file(y, folder), "y"),
    "column of a CSV file": csv_column,
}
ON_DASK = {"Dask array": dask_array, "Dask array of a Parquet file": dask_column}


# ------------------------------------------------------------------------------------------ doors


def a_measurement(X):
    plan = GP(EQ(2.0), 0.1, BOUNDS, inducing=6).plan(X, X_star=X_STAR, epsilon=1.0, delta=0.01)
    assert (plan.measurement.groups is None) == (X is DISTINCT)
    return plan.measurement


def bins(mechanism, edges=(0.0, 4.0, 8.0, 15.0)):
    options = {"bounds": BOUNDS, "epsilon": 1.0, "mechanism": mechanism}
    options |= {} if mechanism == "laplace" else {"delta": 0.01}
    return binning.plan(REPEATED[:, 0], X_star=X_STAR[:, 0], edges=list(edges), **options).measurement


def scores():
    gps = [GP(EQ(lengthscale), 0.4, BOUNDS) for lengthscale in (0.5, 5.0)]
    return plan_selection(gps, DISTINCT, epsilon=1.0, folds=3).scores


def chosen_from(s, y, missing):
    """The scores that the noisy minimum is given."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "noisy_minimum", lambda scores: lambda exact: seen.append(exact) or 0)
        room.choose(s, y, missing)
    return seen[0]


def cut_off(X):
    """What windows cut off of outcomes: of each input's, or of each row's."""
    m = a_measurement(X)
    n = m.matrix.shape[1]
    statistic = Outside(np.linspace(-0.9, 0.9, n), np.linspace(0.0, 1.0, n), bounds=BOUNDS)
    promise: tuple[float, ...] = (1.0, 0.01, 0.5)
    return measurement_of(m.real_matrix() / 3, statistic, *promise, groups=m.groups)


SUMS = {  # doors that need sums over rows alone
    "a matrix": lambda y, missing: room.measure(a_measurement(DISTINCT), y, missing),
    "a matrix of merged rows": lambda y, missing: room.measure(a_measurement(REPEATED), y, missing),
    "what windows cut off": lambda y, missing: room.measure(cut_off(DISTINCT), y, missing),
    "what windows cut off, of merged rows": lambda y, missing: room.measure(cut_off(REPEATED), y, missing),
    "bins, Laplace noise": lambda y, missing: room.measure(bins("laplace"), y, missing),
    "bins, Gaussian noise": lambda y, missing: room.measure(bins("gaussian"), y, missing),
}
SINGLE = {  # doors that need every outcome
    "a selection": lambda y, missing: chosen_from(scores(), y, missing),
    "the custodian's scores": lambda y, missing: room.custodian_scores(scores(), y, missing),
    "bins of one row": lambda y, missing: room.measure(
        bins("laplace", (0.0, 8.0, 12.0, 13.0, 15.0)), y, missing
    ),
    "a bin of one row in each of two chunks": lambda y, missing: room.measure(
        bins("laplace", (0.0, 8.0, 12.0, 15.0)), y, missing
    ),
}
DOORS = SUMS | SINGLE


@pytest.mark.parametrize("door", DOORS)
def test_every_door_sees_the_same_integers_in_every_container(door, tmp_path):
    enter = DOORS[door]
    wanted, with_holes = enter(Y, "error"), enter(HOLED, "midpoint")
    assert np.abs(wanted).max() > 2**16
    for name, container in HERE.items():
        np.testing.assert_array_equal(enter(container(Y, tmp_path), "error"), wanted, name)
        holed = container(HOLED, tmp_path)
        np.testing.assert_array_equal(enter(holed, "midpoint"), with_holes, name)
        with pytest.raises(ValueError, match="y must be finite") as refused:
            enter(holed, "error")
        assert str(refused.value) == room.INCOMPLETE, name


@pytest.mark.parametrize("door", SUMS)
@pytest.mark.parametrize("container", ON_DASK)
def test_sums_over_rows_are_the_same_on_dask(container, door, tmp_path):
    enter = SUMS[door]
    np.testing.assert_array_equal(enter(ON_DASK[container](Y, tmp_path), "error"), enter(Y, "error"))
    holed = ON_DASK[container](HOLED, tmp_path)
    np.testing.assert_array_equal(enter(holed, "midpoint"), enter(HOLED, "midpoint"))
    with pytest.raises(ValueError, match="y must be finite"):
        enter(holed, "error")


@pytest.mark.parametrize("door", SINGLE)
@pytest.mark.parametrize("container", ON_DASK)
def test_single_outcomes_are_not_fetched_from_dask(container, door, tmp_path, monkeypatch):
    """Refused by what y is kept in: no block of it is computed."""
    y = ON_DASK[container](Y, tmp_path)
    blocks = []
    unread = y.map_blocks(lambda block: blocks.append(1) or block, dtype=float, meta=np.empty(0))
    with pytest.raises(ValueError, match=r"single outcomes .* y\.compute\(\).* Nothing was spent") as refused:
        SINGLE[door](unread, "error")
    assert str(refused.value) == room.STAYS
    assert blocks == []
    np.testing.assert_array_equal(SINGLE[door](unread.compute(), "error"), SINGLE[door](Y, "error"))


@pytest.mark.parametrize("container", HERE | ON_DASK)
def test_the_custodian_sees_y_as_it_is(container, tmp_path):
    given = (HERE | ON_DASK)[container](HOLED, tmp_path)
    np.testing.assert_array_equal(room.custodian_view(given, N), HOLED)
    with pytest.raises(ValueError, match=r"y must have shape \(89,\)"):
        room.custodian_view(given, N - 1)


@pytest.mark.parametrize("door", DOORS)
def test_another_number_of_rows_is_refused_by_every_door(door, tmp_path):
    for container, n in itertools.product(HERE.values(), (N - 1, N + 1)):
        with pytest.raises(ValueError, match=r"y must have shape \(90,\)"):
            DOORS[door](container(np.resize(Y, n), tmp_path), "midpoint")


@pytest.mark.parametrize("door", DOORS)
def test_booleans_in_a_parquet_file_are_zeros_and_ones(door, tmp_path):
    y = Y > 0.5
    column = room.PrivateColumn(parquet_file(y, tmp_path), "y")
    np.testing.assert_array_equal(DOORS[door](column, "error"), DOORS[door](y, "error"))


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_column_of_numbers_gives_the_one_message(door, tmp_path):
    words = parquet_file(np.array(["secret"] * N), tmp_path)
    for column in (room.PrivateColumn(words, "y"), room.PrivateColumn(str(tmp_path / "gone.parquet"), "y")):
        with pytest.raises(TypeError) as refused:
            DOORS[door](column, "midpoint")
        assert str(refused.value) == EXPECTED_NUMBERS
        assert refused.value.__cause__ is None


def test_two_columns_are_not_outcomes(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"y": Y, "other": Y}), tmp_path / "two.parquet")
    with pytest.raises(ValueError, match="y must have shape"):
        SUMS["a matrix"](ParquetColumns(tmp_path / "two.parquet", ["y", "other"]), "error")


# ---------------------------------------------------------------------------------------- answers


def parquet_column(values):
    def write(folder):
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"y": values(pyarrow)}), folder / "y.parquet")
        return room.PrivateColumn(str(folder / "y.parquet"), "y")

    return write


def csv_of(*words):
    def write(folder):
        (folder / "y.csv").write_text("\n".join(["y,other", *(f"{word},0" for word in words)]))
        return room.PrivateColumn(str(folder / "y.csv"), "y")

    return write


@pytest.mark.parametrize(
    "column",
    [
        csv_of("yes", "no", "maybe", ""),
        csv_of("YES", " No ", "2", "NA"),
        csv_of("True", "false", "truth", ""),
        csv_of("1", "0.0", "-1", ""),
        parquet_column(lambda pa: pa.array([True, False, None, None])),
        parquet_column(lambda pa: pa.array([1, 0, 7, None])),
        parquet_column(lambda pa: pa.array([1.0, 0.0, 0.5, np.nan])),
        parquet_column(lambda pa: pa.array(["Yes", "n", "o", None]).dictionary_encode()),
    ],
)
def test_answers_are_read_by_words_that_do_not_depend_on_the_column(column, tmp_path):
    np.testing.assert_array_equal(room.PrivateLabels(column(tmp_path)), [1.0, 0.0, np.nan, np.nan])


def test_classes_are_compared_with_the_texts_of_a_column(tmp_path):
    column = csv_of("alive", "dead", "Dead", "")(tmp_path)
    np.testing.assert_array_equal(room.PrivateLabels(column, ("alive", "dead")), [0.0, 1.0, np.nan, np.nan])
