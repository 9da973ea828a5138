"""Public columns of CSV and Parquet files: read exactly, and errors by row number."""

import contextlib
import csv
import gzip

import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from cloakgp import GP  # noqa: E402
from cloakgp.errors import InputError  # noqa: E402
from cloakgp.kernels import EQ  # noqa: E402
from cloakgp.private.outcomes import PrivateColumn  # noqa: E402
from cloakgp.rows import file_cells  # noqa: E402
from cloakgp.workflow import tables  # noqa: E402
from cloakgp.workflow.releases import released_table  # noqa: E402


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "data.csv", "name,age,height\nA,1.5,100\nB,20,150\n")


def test_columns_come_in_the_order_asked_for(table):
    assert tables.columns_of(table) == ["name", "age", "height"]
    assert tables.read_columns(table, ["height", "age"]).tolist() == [[100.0, 1.5], [150.0, 20.0]]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.pq"])
def test_what_is_written_is_read_again_to_the_last_bit(tmp_path, name):
    values = np.random.default_rng(0).normal(size=100) * 10.0 ** np.arange(-50, 50)
    columns = {"a": values, "b,c": np.arange(100), 'd"': -values}
    tables.write_columns(tmp_path / name, columns)
    assert tables.columns_of(tmp_path / name) == list(columns)
    again = tables.read_columns(tmp_path / name, list(columns))
    assert np.array_equal(again, np.column_stack(list(columns.values())))


RISKY = ["=1+1", "+1-2", "-x", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://a","b")']
NUMBERS = ["-5", "+1.5e-3", "-.5"]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv"])
def test_no_cell_is_run_by_a_spreadsheet(tmp_path, name):
    texts = [*RISKY, *NUMBERS, "a=1", "", "'=1"]
    columns = {"=name": texts, "-1": -np.ones(len(texts)), "odd": [None, *texts[1:]], "-y": texts}
    tables.write_columns(tmp_path / name, columns)
    with open(tmp_path / name, newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t" if name.endswith("tsv") else ",")
    assert header == ["'=name", "-1", "odd", "'-y"]
    written = [f"'{text}" for text in RISKY] + texts[len(RISKY) :]
    assert [row[0] for row in rows] == [row[3] for row in rows] == written
    assert {row[1] for row in rows} == {"-1"}
    assert [row[2] for row in rows] == ["", *written[1:]]


def test_other_files_have_texts_as_they_are(tmp_path):
    tables.write_columns(tmp_path / "out.parquet", {"=name": RISKY})
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict() == {"=name": RISKY}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffage,height\r\n1,2\r\n3,4\r\n",
        'age,height,note\n1,2,"a; b"\n3,4,"c, d"\n',
        "age,height\n1, 2\n 3 ,4",
        '"age","height"\n"1","2"\n3,4\n',
    ],
)
def test_many_ways_to_write_a_table(tmp_path, text):
    path = write(tmp_path / "a.csv", text)
    assert tables.read_columns(path, ["age", "height"]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert np.asarray(PrivateColumn(str(path), "height")).tolist() == [2.0, 4.0]


def test_compressed_and_tab_separated(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as out:
        out.write("age\n1\n")
    write(tmp_path / "a.tsv", "age\tb\n1\tx\n")
    for name in ("a.csv.gz", "a.tsv"):
        assert tables.read_columns(tmp_path / name, ["age"]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1", "x", "3"], "must hold numbers; row 2 does not"),
        (["1", "2020-01-01", "x"], "must hold numbers; rows 2 and 3 do not"),
        (["x"] * 9, "rows 1, 2, 3, 4, 5 and others do not"),
        (["1", "", "3"], "must hold a finite number in every row; row 2 does not"),
        (["1", "nan", "inf"], "must hold a finite number in every row; rows 2 and 3 do not"),
        (["NA"] * 9, "finite number in every row; rows 1, 2, 3, 4, 5 and others do not"),
        (["1_000", "1"], "must hold numbers; row 1 does not"),
    ],
)
def test_bad_cells_are_named_by_row(tmp_path, cells, words):
    path = write(tmp_path / "a.csv", "age,height\n" + "".join(f"{cell},SECRET\n" for cell in cells))
    with pytest.raises(InputError) as error:
        tables.read_columns(path, ["age"])
    assert words in str(error.value)
    assert "a.csv" in str(error.value)
    assert "SECRET" not in str(error.value)


def test_the_row_is_found_in_a_large_file(tmp_path):
    cells = ["1"] * 100_000
    cells[76_543] = "oops"
    path = write(tmp_path / "a.csv", "age,b\n" + "".join(f"{cell},0\n" for cell in cells))
    with pytest.raises(InputError, match="row 76544 does not"):
        tables.read_columns(path, ["age"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header"),
        ("age,height\n", "no rows"),
        ("age,height\n1,2\n3,SECRET,4\n", "cannot be read as a regular table"),
        ("weight,height\n1,2\n", "there is no column 'age'. There: 'weight', 'height'"),
        ("age,age\n1,2\n", "column 'age' is there 2 times"),
        ("age|height\n1|2\n", "must name the columns"),
    ],
)
def test_other_troubles_quote_no_cell(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as error:
        tables.read_columns(write(tmp_path / "a.csv", text), ["age"])
    assert "SECRET" not in str(error.value)
    assert error.value.__cause__ is None


def test_files_that_are_no_tables(tmp_path):
    write(tmp_path / "a.parquet", "no")
    write(tmp_path / "a.xlsx", "no")
    (tmp_path / "b.csv").write_bytes(b"age,h\x81\n1,2\n")
    (tmp_path / "c.csv").write_bytes(b"age,h\n1,2\n" * 5000 + b"\xff,\xfe,3\n")
    for name in ("a.parquet", "a.xlsx", "b.csv", "c.csv", "nowhere.csv"):
        with pytest.raises(InputError):
            tables.read_columns(tmp_path / name, ["age"])
    with pytest.raises(InputError, match="twice"):
        tables.read_columns(write(tmp_path / "d.csv", "age\n1\n"), ["age", "age"])


def test_only_the_columns_asked_for_are_decoded(tmp_path):
    write(tmp_path / "a.csv", "age,height\n1,nobody's business\n")
    assert tables.read_columns(tmp_path / "a.csv", ["age"]).tolist() == [[1.0]]
    odd = pyarrow.table(
        {"age": [1, 2], "height": [{"a": 1}, {"a": 2}], "when": pyarrow.array([0, 1], "date32")}
    )
    parquet.write_table(odd, tmp_path / "a.parquet")
    assert tables.read_columns(tmp_path / "a.parquet", ["age"]).tolist() == [[1.0], [2.0]]
    with pytest.raises(InputError, match=r"must hold numbers; it holds date32\[day\]"):
        tables.read_columns(tmp_path / "a.parquet", ["when"])


def test_missing_values_of_parquet_are_named_by_row(tmp_path):
    parquet.write_table(pyarrow.table({"age": [1.0, None, 3.0]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="row 2 does not"):
        tables.read_columns(tmp_path / "a.parquet", ["age"])


def test_a_private_column_says_nothing_of_itself(table):
    column = PrivateColumn(str(table), "height")
    assert repr(column) == str(column) == "<PrivateColumn, unread>"
    assert not hasattr(column, "__dict__")


@pytest.mark.parametrize(
    "first",
    [
        *(
            "23,151.2",
            "2.3e+01,1.512e+02",
            "23;151.2;F",
            "23\t151.2\tF",
            "23y,151cm",
            "nan,inf",
            "-1,2",
            ".5,x",
        ),
        *("-1,2", ".5,x", "Anna,151", "Anna;151,2", "Anna,151,ill;better", "Anna\t151,2", "nobody,3;5"),
    ],
)
def test_a_first_line_of_data_is_refused_and_not_shown(tmp_path, first):
    """It would be somebody's outcome."""
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n24,160\n")
    with pytest.raises(InputError, match="must name the columns") as error:
        tables.check_columns(path, ["age"])
    assert not any(cell in str(error.value) for cell in ("151", "23", "inf"))


def test_a_stray_quote_does_not_make_the_table_a_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"age,height\n23,151.2\n24,160\n')
    with pytest.raises(InputError, match="cannot be read as a table") as error:
        tables.check_columns(path, ["age"])
    assert "151" not in str(error.value)


@pytest.mark.parametrize("cell", ['"2', '2"', '"2\n7"', '""2"'])
def test_a_private_cell_does_not_decide_which_rows_there_are(tmp_path, cell):
    """A quote left open in the private column would swallow the rows below it."""
    path = tmp_path / "a.csv"
    path.write_text(f"age,height\n1,{cell}\n2,5\n3,6\n")
    rows = None
    with contextlib.suppress(InputError):
        rows = tables.read_columns(path, ["age"])[:, 0].tolist()
    assert rows in (None, [1.0, 2.0, 3.0])


def test_rows_swallowed_by_a_quote_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('age,height\n1,"2\n2,5\n3,6"\n4,7\n')
    with pytest.raises(InputError, match="cannot be read as a regular table"):
        tables.read_columns(path, ["age"])


@pytest.mark.parametrize(
    "rows",
    ['1,"a\nb",5\n2,c,6\n', '1,"a ""b"", c\r\n\r\nd",5\r\n2,c,6\r\n', '\n1,"a\n2,",5\n\n2,"2 5"" nails\n",6'],
    ids=["plain", "quotes and Windows line ends", "no end of the last line"],
)
def test_a_cell_in_quotes_may_hold_line_breaks(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_bytes(b"age,note,height\n" + rows.encode())
    assert tables.read_columns(path, ["age"])[:, 0].tolist() == [1.0, 2.0]
    assert np.asarray(PrivateColumn(str(path), "height")).tolist() == [5.0, 6.0]
    assert file_cells.n_rows(path) == 2


def test_bytes_below_the_header_do_not_decide_what_is_said_of_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"age,height\n1,2\n2,\xff3\n")
    assert tables.columns_of(path) == ["age", "height"]
    assert tables.read_columns(path, ["age"])[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_line_ends_of_every_kind(tmp_path, end):
    newline = "\r\n" if end == "\r\n" else "\n"
    path = tmp_path / "a.csv"
    path.write_bytes((newline.join(["age,height", "1,2", "2,3"]) + end).encode())
    assert tables.read_columns(path, ["age"])[:, 0].tolist() == [1.0, 2.0]


def test_an_input_cell_that_swallowed_a_private_one_is_not_shown(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('age,height\n"1,151.25",2\n2,3\n')
    with pytest.raises(InputError, match="row 1 does not") as error:
        tables.read_columns(path, ["age"])
    assert "151" not in str(error.value)


def test_an_input_keeps_its_column_whatever_it_is_called():
    X = {"released": np.linspace(0.0, 1.0, 20)}
    plan = GP(EQ(0.3), 1.0, (0.0, 1.0)).plan(X, X_star=X, epsilon=1.0, delta=0.01)
    table = released_table(plan.release(X["released"]), ["released"], plan.X_star)
    assert list(table) == ["released", "released_", "noise_std", "denoised", "denoised_std"]
    np.testing.assert_array_equal(table["released"], plan.X_star[:, 0])
