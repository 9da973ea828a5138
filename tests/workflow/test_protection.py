"""Who is protected: columns that look like people, ids in files, and boxes over private inputs."""

from pathlib import Path

import numpy as np
import pytest

from cloakgp.errors import InputError
from cloakgp.rows import file_cells
from cloakgp.rows.grid import Grid
from cloakgp.workflow import boxes, tables
from cloakgp.workflow.learned_settings import settings_from
from cloakgp.workflow.protection import Protect, looks_like_ids, repeated_ids
from cloakgp.workflow.row_settings import RowSettings


def write(path, header, *rows):
    Path(path).write_text("\n".join([header, *rows]) + "\n")
    return Path(path)


def partition(ids):
    """Which rows are the same person's, numbered by first appearance."""
    return [list(dict.fromkeys(ids.tolist())).index(one) for one in ids]


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "zper", "patient", "patient_id", "PatientID", "personId", "user id", "pid", "Subject"],
)
def test_a_name_says_that_a_column_tells_people_apart(name):
    assert looks_like_ids(name)


@pytest.mark.parametrize("name", ["age", "height", "covid", "grid", "paid", "humidity", "width", "impatient"])
def test_other_names_do_not(name):
    assert not looks_like_ids(name)


def test_only_ids_that_are_repeated_count(tmp_path):
    table = write(tmp_path / "a.csv", "id,patient,age,colour", "1,a,3,red", "2,a,4,red")
    assert repeated_ids(table, ["id", "patient", "age", "colour"]) == "patient"
    assert repeated_ids(table, ["id", "age", "colour"]) is None
    broken = write(tmp_path / "b.csv", "id,age", "1,3", ",4", "1,5")
    assert repeated_ids(broken, ["id"]) is None


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["7", "8", "7"], [0, 1, 0]),
        (["7", "7.0", "07", "+7"], [0, 0, 0, 0]),
        (["a", " a ", "A", "b"], [0, 0, 0, 1]),
        (["7", "x", "7.0", "7x"], [0, 1, 0, 2]),
        (["1e5", "100000", "1e6"], [0, 0, 1]),
        ([str(2**60), str(2**60 + 1), str(2**61)], [0, 0, 1]),  # a float may stand for either
        (["7", "7,0", "7;0"], [0, 0, 1]),
    ],
)
def test_ids_are_the_same_however_a_number_is_written(tmp_path, cells, expected):
    table = write(tmp_path / "a.csv", "id,age", *(f'"{cell}",1' for cell in cells))
    assert partition(tables.read_ids(table, "id")) == expected


def test_one_persons_id_does_not_change_whose_rows_others_are(tmp_path):
    """Where ids are private, or one row would move more than itself."""
    before = write(tmp_path / "a.csv", "id,age", "7,1", "07,2", "9,3")
    after = write(tmp_path / "b.csv", "id,age", "7,1", "07,2", "nine,3")
    assert partition(tables.read_ids(before, "id")) == partition(tables.read_ids(after, "id")) == [0, 0, 1]


def test_parquet_and_folders_of_it_hold_the_same_people(tmp_path):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": [3, 4, 3]}), tmp_path / "part.2.parquet")
    parquet.write_table(pyarrow.table({"id": ["4", "x"]}), tmp_path / "part.10.parquet")
    assert partition(tables.read_ids(tmp_path, "id")) == [0, 1, 0, 1, 2]
    coded = pyarrow.table({"id": pyarrow.array(["a", "b", "a"]).dictionary_encode()})
    parquet.write_table(coded, tmp_path / "coded.pq")
    assert partition(tables.read_ids(tmp_path / "coded.pq", "id")) == [0, 1, 0]
    parquet.write_table(pyarrow.table({"id": [1.0, float("nan")]}), tmp_path / "gap.pq")
    with pytest.raises(InputError, match="row 2 does not"):
        tables.read_ids(tmp_path / "gap.pq", "id")
    parquet.write_table(pyarrow.table({"id": [[1], [2]]}), tmp_path / "lists.pq")
    with pytest.raises(InputError, match="one value in each row"):
        tables.read_ids(tmp_path / "lists.pq", "id")


def test_an_open_quote_swallows_no_row(tmp_path):
    table = write(tmp_path / "a.csv", "id,name", '1,"a', '2,b"', "3,c")
    for read in (file_cells.read_ids, file_cells.read_numbers, file_cells.read_texts):
        with pytest.raises(InputError, match="cannot be read as a regular table"):
            read(table, "id")


def test_rows_are_counted_without_their_cells(tmp_path):
    assert file_cells.n_rows(write(tmp_path / "a.csv", "x", "?", "", "??")) == 2


def test_a_box_is_made_of_what_was_typed():
    grid = boxes.make_grid(
        ["age", "sex", "grade"], {"age": (0, 90)}, {"sex": ["f", "m"], "grade": ["1", "2"]}, 9
    )
    assert grid == Grid({"age": (0, 90), "sex": ["f", "m"], "grade": [1, 2]}, 9)
    assert boxes.range_words(grid) == ["age: 0 to 90 in 9 cells", "sex: f, m", "grade: 1, 2"]
    with pytest.raises(InputError, match="public range of 'sex' must be given"):
        boxes.make_grid(["age", "sex"], {"age": (0, 90)}, {})
    with pytest.raises(InputError, match="has a range and levels"):
        boxes.make_grid(["age"], {"age": (0, 90)}, {"age": ["a", "b"]})


def test_points_in_a_box_have_levels_by_name(tmp_path):
    grid = Grid({"age": (0, 90), "sex": ["f", "m"], "grade": [1, 2]})
    X = boxes.from_file(str(write(tmp_path / "a.csv", "sex,grade,age", "m,2,10", "f,1,200")), grid)
    assert X.tolist() == [[10, 1, 1], [200, 0, 0]]
    assert grid.columns.shown(X)["sex"].tolist() == ["m", "f"]
    assert grid.columns.shown(X)["grade"].tolist() == [2, 1]
    assert len(boxes.over(grid, "grid:3")) == 3 * 2 * 2
    assert boxes.over(grid, "grid:2")[:, 0].min() == 0
    with pytest.raises(ValueError, match="must hold levels of 'sex'"):
        boxes.from_file(str(write(tmp_path / "b.csv", "sex,grade,age", "q,2,10")), grid)
    with pytest.raises(InputError, match="above the limit"):
        boxes.over(grid, "grid:20000")


def settings(**changes):
    grid = Grid({"age": (0, 90), "sex": ["f", "m"]}, 9)
    given = {"grid": grid, "output": "visits", "bounds": (0, 20), "epsilon": 1.0, "delta": 1e-3, "size": 50}
    return RowSettings(**given | changes)


@pytest.mark.parametrize(
    "changes",
    [{}, {"people": "id", "max_rows": 3}, {"at": np.array([[1.0, 0.0]]), "stages": 3}, {"at": "grid:3"}],
)
def test_settings_of_whole_rows_are_described_and_read_again(changes):
    one = settings(**changes)
    assert settings_from(one.to_dict()).to_dict() == one.to_dict()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"people": "id"}, "go together"),
        ({"max_rows": 3}, "go together"),
        ({"people": "age", "max_rows": 3}, "must not be an input"),
        ({"output": "age"}, "must not be an input"),
        ({"people": "visits", "max_rows": 3}, "must not be that of people"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        settings(**changes)


@pytest.mark.parametrize("key", ["grid", "size", "epsilon", "at"])
def test_a_description_with_something_else_in_it_is_refused(key):
    words = settings().to_dict()
    for wrong in ("nonsense", {}, [["x"]]):
        if (key, wrong) != ("at", "nonsense"):  # which is found out when it is planned
            with pytest.raises(InputError, match="settings: "):
                settings_from({**words, key: wrong})


def test_what_may_be_protected():
    assert [*Protect] == ["outcomes", "people", "rows"]
