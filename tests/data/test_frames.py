"""Tables of any library become the same columns and the same numbers."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp import ArgumentError, Column, Columns
from cloakgp.data.frames import read
from cloakgp.data.inputs import as_inputs, as_points, same_ids, same_inputs

pl = pytest.importorskip("polars")
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "mapping": dict}
TABLE = {
    "age": [31, 45, None],
    "sex": ["m", "f", "m"],
    "member": [True, False, True],
    "seen": [datetime(2024, 1, 1), datetime(2024, 1, 2, 12), datetime(2000, 1, 1)],
    "born": ["1990-05-31", "1980-01-01", "2000-01-02"],
}
NUMBERS = [
    [31, 1, 1, 8766, -3502],
    [45, 0, 0, 8767.5, -7305],
    [np.nan, 1, 1, 0, 1],
]


@pytest.fixture(params=LIBRARIES)
def make(request):
    return LIBRARIES[request.param]


def test_every_library_gives_the_same_columns_and_numbers(make):
    columns = Columns.of(make(TABLE))
    assert columns.inputs == (
        Column("age"),
        Column("sex", "level", ("f", "m")),
        Column("member", "level", (False, True)),
        Column("seen", "date", origin="2000-01-01"),
        Column("born", "date", origin="2000-01-01"),
    )
    assert columns.categories == (1, 2)
    np.testing.assert_array_equal(columns.numbers(make(TABLE)), NUMBERS)


def test_columns_are_found_by_name_in_any_order(make):
    columns = Columns.of(make(TABLE))
    turned = make({name: TABLE[name] for name in reversed(TABLE)})
    np.testing.assert_array_equal(columns.numbers(turned), NUMBERS)


def test_an_absent_or_unknown_column_is_refused_by_name(make):
    columns = Columns.of(make(TABLE))
    with pytest.raises(ArgumentError, match=r"'age', 'sex', .*none named 'age'"):
        columns.numbers(make({name: TABLE[name] for name in TABLE if name != "age"}))
    with pytest.raises(ArgumentError, match=r"and no others; got 'height'. Leave it out"):
        columns.numbers(make({**TABLE, "height": [1, 2, 3]}))


def test_columns_with_another_role_are_not_inputs(make):
    columns = Columns.of(make({name: TABLE[name] for name in ("age", "sex")}), people="sex", response="born")
    assert columns.names == ("age",)
    both = make({name: TABLE[name] for name in ("age", "sex", "born")})
    np.testing.assert_array_equal(columns.numbers(both)[:2], [[31], [45]])
    with pytest.raises(ArgumentError, match=r"public inputs only; got the outcome 'born'"):
        as_inputs(both, columns=columns)


def test_numbers_become_the_table_again():
    columns = Columns.of(TABLE)
    shown = columns.shown(np.array(NUMBERS)[:2])
    assert shown["sex"].tolist() == ["m", "f"]
    assert shown["member"].tolist() == [True, False]
    assert shown["seen"].tolist() == TABLE["seen"][:2]
    assert shown["age"].tolist() == [31, 45]


def test_levels_are_a_categorys_own_in_their_order():
    pandas = pd.DataFrame({"size": pd.Categorical(["s", "l", "s"], categories=["s", "m", "l"])})
    polars = pl.DataFrame({"size": pl.Series(["s", "l", "s"], dtype=pl.Enum(["s", "m", "l"]))})
    for frame in (pandas, polars):
        columns = Columns.of(frame)
        assert columns.inputs[0].levels == ("s", "m", "l")
        assert columns.numbers(frame)[:, 0].tolist() == [0, 2, 0]


def test_levels_that_are_given_may_be_numbers():
    columns = Columns.of({"site": [3, 1, 2]}, levels={"site": [1, 2, 3, 4]}, units={"site": "place"})
    assert columns.inputs[0] == Column("site", "level", (1, 2, 3, 4), unit="place")
    assert columns.numbers({"site": [4, 1]})[:, 0].tolist() == [3, 0]
    with pytest.raises(ArgumentError, match=r"levels must be of inputs in X; got 'town'. There are 'site'"):
        Columns.of({"site": [3]}, levels={"town": [1]})
    with pytest.raises(ArgumentError, match=r"levels of 'site', 1, 2, 3, 4; got 5.0 in row 1"):
        as_inputs({"site": [1, 5]}, columns=columns)


def test_new_levels_differ_from_all_others_and_from_each_other():
    columns = Columns.of({"site": ["a", "b", "a"]})
    assert columns.numbers({"site": ["c", "a", "d", "c"]})[:, 0].tolist() == [2, 0, 3, 2]


def test_a_level_of_another_kind_is_no_new_level():
    columns = Columns.of({"site": ["1", "2"]})
    with pytest.raises(ArgumentError, match=r"must hold levels of 'site', '1', '2'; got 1.0 in row 0"):
        columns.numbers({"site": [1, 2]})


def test_zones_are_told_from_each_other_and_days_from_text():
    east = timezone(timedelta(hours=2))
    noon = ["2000-01-02T12:00:00Z", "2000-01-02T14:00+02:00", datetime(2000, 1, 2, 14, tzinfo=east)]
    columns = Columns.of({"t": noon})
    assert columns.numbers({"t": noon})[:, 0].tolist() == [1.5] * 3
    aware = pd.DataFrame({"t": pd.to_datetime(["2000-01-02T14:00+02:00"])})
    assert columns.numbers(aware)[:, 0].tolist() == [1.5]
    zoned = pl.DataFrame({"t": [datetime(2000, 1, 2, 12, tzinfo=UTC)]})
    assert columns.numbers(zoned)[:, 0].tolist() == [1.5]
    assert columns.numbers({"t": [date(2000, 1, 3)]})[:, 0].tolist() == [2]
    with pytest.raises(ArgumentError, match="a time zone in all or in none of the dates in 't'"):
        columns.numbers({"t": ["2000-01-02T12:00Z", "2000-01-02"]})
    with pytest.raises(ArgumentError, match=r"must hold dates in 't'.*got '2\. 1\. 2000' in row 1"):
        columns.numbers({"t": ["2000-01-02", "2. 1. 2000"]})
    with pytest.raises(ArgumentError, match="must hold dates in 't'; got numbers"):
        columns.numbers({"t": [1, 2]})


def test_texts_like_numbers_of_a_file_are_levels():
    assert Columns.of({"code": ["20240101", "20240102"]}).inputs[0].kind == "level"


@pytest.mark.parametrize(
    "table",
    [
        {"age": [1.0, np.nan, 3.0], "sex": ["f", "m", "f"]},
        {"age": [1.0, 2.0, 3.0], "sex": ["f", None, "f"]},
        {"age": pd.array([1, None, 3], dtype="Int64"), "sex": ["f", "m", "f"]},
    ],
)
def test_missing_inputs_are_refused_by_row_and_name_or_left_out(table):
    frame = pd.DataFrame(table)
    name = "age" if frame["age"].isna().any() else "sex"
    with pytest.raises(ArgumentError, match=rf"{name!r} is missing in row 1 .*missing_inputs='drop'"):
        as_inputs(frame)
    found = as_inputs(frame, ["p", "q", "p"], missing_inputs="drop")
    assert found.rows.dropped.tolist() == [1]
    assert found.X[:, 0].tolist() == [1, 3]
    assert list(found.people) == ["p", "p"]
    with pytest.raises(ArgumentError, match=rf"X_star must be complete; {name!r} is missing in row 1"):
        as_points(frame, "X_star", 2, found.columns)
    again = same_inputs(frame, found.columns, found.rows)
    np.testing.assert_array_equal(again, found.X)


def test_what_is_infinite_is_not_missing():
    for how in ("error", "drop"):
        with pytest.raises(ArgumentError, match="'age' is infinite in row 0"):
            as_inputs({"age": [np.inf, 1.0]}, missing_inputs=how)


def test_arrays_can_leave_rows_out_and_have_names():
    X = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, 2.0]])
    columns = Columns((Column("age"), Column("site", "level", ("a", "b", "c"))))
    found = as_inputs(X, columns=columns, missing_inputs="drop")
    assert found.X.tolist() == [[1, 0], [3, 2]]
    assert found.columns is columns
    with pytest.raises(ArgumentError, match=r"columns must be as many as X has, whose shape is \(3, 1\)"):
        as_inputs(X[:, :1], columns=columns)
    with pytest.raises(ArgumentError, match="a row of which nothing is missing"):
        as_inputs(X * np.nan, missing_inputs="drop")


def test_people_are_ids_or_the_name_of_their_column(make):
    frame = make({"age": [1, 2, 3], "who": ["p", "q", "p"]})
    found = as_inputs(frame, "who")
    assert list(found.people) == ["p", "q", "p"]
    assert found.columns.names == ("age",)
    assert found.columns.people == "who"
    assert list(same_ids("who", frame, None)) == ["p", "q", "p"]
    with pytest.raises(ArgumentError, match=r"name of a column of X; got 'whom'. There are 'age', 'who'"):
        as_inputs(frame, "whom")
    with pytest.raises(ArgumentError, match="A name is for a table"):
        as_inputs(np.ones((3, 1)), "who")


def test_frames_without_names_are_arrays():
    frame = pd.DataFrame([[1, 2], [3, 4]])
    assert read(frame) is None
    assert as_inputs(frame).columns is None
    assert read(pd.Series([1.0, 2.0])) is None
    assert list(read(pd.Series([1.0, 2.0], name="age"))) == ["age"]
    with pytest.raises(ArgumentError, match="texts as names"):
        read(pd.DataFrame([[1, "a"]]))


def test_a_table_is_read_by_position_after_an_array():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert as_points(frame, "X", 2, None).tolist() == [[1, 3], [2, 4]]
    with pytest.raises(ArgumentError, match="made with an array; got something else in 'b'"):
        as_points(frame.assign(b="text"), "X", 2, None)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, 7])
def test_names_that_no_file_should_hold_are_refused(name):
    with pytest.raises(ArgumentError, match="printable text of 1 to 200 characters as the name"):
        Column(name)


def test_a_column_that_cannot_be_an_input_is_refused_by_name():
    with pytest.raises(ArgumentError, match="numbers, texts or dates in 'how'; got Duration"):
        Columns.of(pd.DataFrame({"how": pd.to_timedelta([1, 2])}))
    with pytest.raises(ArgumentError, match="X must have another name for each column"):
        Columns.of(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    for odd in ("31/05/2024", "5/31/24 12:00", "2024-5-31", "2024-02-30"):
        with pytest.raises(ArgumentError, match=r"all dates as 2024-05-31 .* in row 1 .* name its levels"):
            Columns.of({"day": ["2024-05-30", odd]})
    kept = Columns.of({"day": ["31/05/2024"]}, levels={"day": ["31/05/2024"]})
    assert kept.inputs[0].levels == ("31/05/2024",)
    assert Columns.of({"odd": ["1/2", "10-12-14-16", "3.5.1", "v1.2.3"]}).inputs[0].kind == "level"
    with pytest.raises(ArgumentError, match="hold something in 'none'"):
        Columns.of({"none": [None, None]})
    with pytest.raises(ArgumentError, match=r"at most 1,000 levels in 'id'; got 1,001.*people="):
        Columns.of({"id": [f"p{i}" for i in range(1001)]})
    with pytest.raises(ArgumentError, match=r"in memory.*X.collect"):
        read(pl.LazyFrame({"a": [1]}))
