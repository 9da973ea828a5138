"""Public columns of CSV and Parquet files: read exactly, however they are written, and errors by row number.

How a table is written is found out from its header and public columns; private ones decide nothing.
"""

import contextlib
import csv
import gzip

import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from cloakgp import GP  # noqa: E402
from cloakgp.core.errors import ArgumentError, InputError  # noqa: E402
from cloakgp.data import file_cells  # noqa: E402
from cloakgp.data.formats import Format  # noqa: E402
from cloakgp.kernels import EQ  # noqa: E402
from cloakgp.private.outcomes import PrivateColumn, PrivateLabels  # noqa: E402
from cloakgp.workflow import tables  # noqa: E402
from cloakgp.workflow.inputs import looks_like_ids, repeated_ids  # noqa: E402
from cloakgp.workflow.releases import released_table  # noqa: E402


@pytest.fixture
def write(tmp_path):
    """Text or bytes in a file, whose path is given back; its columns as Parquet, if it is a mapping."""

    def writing(contents, name="a.csv", encoding="utf-8"):
        path = tmp_path / name
        if isinstance(contents, dict):
            parquet.write_table(pyarrow.table(contents), path)
        else:
            path.write_bytes(contents.encode(encoding) if isinstance(contents, str) else contents)
        return path

    return writing


# How tables are written

WAYS = {
    "semicolons": ("größe;alter\n150.5;1.5\n160;20\n", "utf-8", Format(";")),
    "tabs in .csv": ("größe\talter\n150.5\t1.5\n160\t20\n", "utf-8", Format("\t")),
    "decimal comma": ("größe;alter\n150,5;1,5\n160;20\n", "utf-8", Format(";", decimal=",")),
    "three digits": ("größe;alter\n150,500;1,500\n160;20\n", "utf-8", Format(";", decimal=",")),
    "quoted": ('"größe","alter"\n"150,5","1,5"\n"160","20"\n', "utf-8", Format(decimal=",")),
    "BOM": ("größe;alter\r\n150.5;1.5\r\n160;20\r\n", "utf-8-sig", Format(";")),
    "Latin-1": ("größe,alter\n150.5,1.5\n160,20\n", "latin-1", Format(encoding="latin-1")),
    "UTF-16": ("größe\talter\n150,5\t1,5\n160\t20\n", "utf-16", Format("\t", "utf-16-le", ",")),
    "UTF-16, no mark": ("größe,alter\n150.5,1.5\n160,20\n", "utf-16-be", Format(encoding="utf-16-be")),
    "row labels": (",größe,alter\n0,150.5,1.5\n1,160,20\n", "utf-8", Format()),
    "row labels, quoted": (
        '"";"größe";"alter"\n"a";150,5;1,5\n"b";160;20\n',
        "utf-8",
        Format(";", decimal=","),
    ),
    "separators in quotes": ('größe,alter,x\n150.5,1.5,"a; b"\n160,20,"c, d"\n', "utf-8", Format()),
    "spaces": ("größe,alter\n150.5, 1.5\n 160 ,20", "utf-8", Format()),
    "blank lines": ("größe,alter\r\n150.5,1.5\r\n\r\n160,20\r\n\r\n", "utf-8", Format()),
    "line breaks": ('x,größe,alter\n"a\nb",150.5,1.5\n"a ""b"", c\n\nd",160,20', "utf-8", Format()),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_read_as_it_is_written(write, way, packed):
    text, encoding, form = WAYS[way]
    whole = text.encode(encoding)
    path = write(gzip.compress(whole), "a.csv.gz") if packed else write(whole)
    assert [name for name in tables.columns_of(path) if name != "x"] == ["größe", "alter"]
    assert tables.reading(path, ["alter"]) == form
    assert tables.read_columns(path, ["alter", "größe"]).tolist() == [[1.5, 150.5], [20.0, 160.0]]
    assert np.asarray(PrivateColumn(str(path), "größe", form)).tolist() == [150.5, 160.0]
    assert file_cells.n_rows(path) == 2


@pytest.mark.parametrize("private", ["150,5", "150.5", "x", "1,234", '"a;b"', "\xff", "ä"])
def test_nothing_private_decides_how_it_is_read(write, private):
    path = write(f"age;height\n1;{private}\n2;{private}\n", encoding="latin-1")
    assert tables.reading(path, ["age"]) == Format(";")


def test_a_private_cell_that_cannot_be_read_is_missing(write):
    """Whatever is in it: text, bytes that are none, half of a letter, a number and more."""
    nan = np.nan
    odd = [b"x", b"\xff", b"\xe6\x97", b"5\xff", b"1.5.2", b"NA", b""]
    cells = [b"1, -1.5e2 ,yes", *(b"1,%s,%s" % (cell, cell) for cell in odd), b"1,+.5,no"]
    path = str(write(b"\n".join([b"age,height,ill", *cells])))
    column = PrivateColumn(path, "height")
    np.testing.assert_array_equal(column, [-150.0, *[nan] * len(odd), 0.5])
    assert repr(column) == str(column) == "<PrivateColumn, unread>"
    assert not hasattr(column, "__dict__")
    answers = PrivateLabels(PrivateColumn(path, "ill"))
    np.testing.assert_array_equal(answers, [1.0, *[nan] * len(odd), 0.0])
    classes = PrivateLabels(PrivateColumn(path, "ill"), ("no", "yes", "x"))
    np.testing.assert_array_equal(classes, [1.0, 2.0, *[nan] * (len(odd) - 1), 0.0])


def test_only_public_columns_are_asked(write, monkeypatch):
    path = write("age;height\n1,5;100,5\n")
    asked = []
    options = tables.csv_options
    monkeypatch.setattr(tables, "csv_options", lambda f, c, k: asked.append(tuple(c)) or options(f, c, k))
    tables.reading(path, ["age"])
    assert set(asked) == {("age",)}
    asked.clear()
    assert tables.reading(path, []) == Format(";")  # whole rows are private: from the header alone
    assert not asked
    assert tables.reading(path, [], decimal=",", encoding="latin-1") == Format(";", "latin-1", ",")


def test_latin_1_below_a_plain_header_is_found_in_a_public_column(write):
    path = write("town,rent\nZürich,1\nBern,2\n", encoding="latin-1")
    assert tables.reading(path, ["town"]).encoding == "latin-1"
    assert tables.reading(path, ["rent"]).encoding == "utf-8"


def test_a_comma_that_may_stand_between_thousands_is_not_guessed(write):
    path = write('age,height\n"1,500",1\n"2,000",2\n')
    with pytest.raises(InputError, match="rows 1 and 2 do not"):
        tables.read_columns(path, ["age"])
    said = tables.reading(path, ["age"], decimal=",")
    assert tables.read_columns(path, ["age"], said).tolist() == [[1.5], [2.0]]


# What is refused

REFUSED = {
    "a text": ("age,h\n1,S\nx,S\n3,S\n", "must hold numbers; row 2 does not"),
    "a date": ("age,h\n1,S\n2020-01-01,S\nx,S\n", "must hold numbers; rows 2 and 3 do not"),
    "many texts": ("age,h\n" + 9 * "x,S\n", "rows 1, 2, 3, 4, 5 and others do not"),
    "an empty cell": ("age,h\n1,S\n,S\n3,S\n", "must hold a finite number in every row; row 2 does not"),
    "no finite number": ("age,h\n1,S\nnan,S\ninf,S\n", "finite number in every row; rows 2 and 3 do not"),
    "many missing": ("age,h\n" + 9 * "NA,S\n", "every row; rows 1, 2, 3, 4, 5 and others do not"),
    "an underscore": ("age,h\n1_000,S\n1,S\n", "must hold numbers; row 1 does not"),
    "a point and a comma": ("age;h\n1,5;S\n2.5;S\n", "column 'age' must hold numbers; row 1 does not"),
    "a swallowed cell": ('age,h\n"1,S",2\n2,3\n', "row 1 does not"),
    "far below": ("age,h\n" + 76_543 * "1,0\n" + "oops,0\n" + 9 * "1,0\n", "row 76544 does not"),
    "nothing": ("", "no header"),
    "no rows": ("age,h\n", "no rows"),
    "a cell too many": ("age,h\n1,2\n3,S,4\n", "cannot be read as a regular table"),
    "swallowed rows": ('age,h\n1,"2\n2,5\n3,6"\n4,7\n', "cannot be read as a regular table"),
    "another column": ("weight,h\n1,2\n", "there is no column 'age'. There: 'weight', 'h'"),
    "two of a name": ("age,age\n1,2\n", "column 'age' is there 2 times"),
    "another separator": ("age|h\n1|2\n", "must name the columns"),
    "a quote in the header": ('"age,h\n1,S\n', "cannot be read as a table"),
    **{
        f"data in the first line: {first}": (f"{first}\n24,160\n", "must name the columns")
        for first in (
            *("23,151.2", "2.3e+01,1.512e+02", "23;151.2;F", "23\t151.2\tF", "23y,151cm", "nan,inf", "-1,2"),
            *(".5,x", "Anna,151", "Anna;151,2", "Anna,151,ill;better", "Anna\t151,2", "nobody,3;5"),
        )
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_told_by_row_and_quotes_no_other_cell(write, what):
    text, words = REFUSED[what]
    with pytest.raises(InputError) as error:
        tables.read_columns(write(text), ["age"])
    said = str(error.value)
    assert words in said
    assert "a.csv" in said
    assert not any(cell in said.replace("CSV", "") for cell in ("S", "151", "23", "inf"))
    assert error.value.__cause__ is None


@pytest.mark.parametrize("cell", ['"2', '2"', '"2\n7"', '""2"'])
def test_a_private_cell_does_not_decide_which_rows_there_are(write, cell):
    """A quote left open in the private column would swallow the rows below it."""
    rows, path = None, write(f"age,height\n1,{cell}\n2,5\n3,6\n")
    with contextlib.suppress(InputError):
        rows = tables.read_columns(path, ["age"])[:, 0].tolist()
    assert rows in (None, [1.0, 2.0, 3.0])
    for read in (file_cells.read_ids, file_cells.read_numbers, file_cells.read_texts):
        with contextlib.suppress(InputError):
            assert len(read(path, "age")) == 3


def test_bytes_below_the_header_do_not_decide_what_is_said_of_it(write):
    path = write(b"age,height\n1,2\n2,\xff3\n")
    assert tables.columns_of(path) == ["age", "height"]
    assert tables.read_columns(path, ["age"])[:, 0].tolist() == [1.0, 2.0]


def test_files_that_are_no_tables(write, tmp_path):
    write("no", "a.parquet")
    write("no", "a.xlsx")
    write(b"age,h\x81\n1,2\n", "b.csv")
    write(b"age,h\n1,2\n" * 5000 + b"\xff,\xfe,3\n", "c.csv")
    for name in ("a.parquet", "a.xlsx", "b.csv", "c.csv", "nowhere.csv"):
        with pytest.raises(InputError):
            tables.read_columns(tmp_path / name, ["age"])
    with pytest.raises(InputError, match="twice"):
        tables.read_columns(write("age\n1\n"), ["age", "age"])
    for name in ("b.xlsx", "b.xls", "b.ods", "d.csv"):
        with pytest.raises(InputError, match="save the sheet as CSV"):
            tables.columns_of(write(b"PK\x03\x04 and so on", name))


def test_only_the_columns_asked_for_are_decoded(write):
    assert tables.read_columns(write("age,height\n1,nobody's business\n"), ["age"]).tolist() == [[1.0]]
    odd = {"age": [1, 2], "height": [{"a": 1}, {"a": 2}], "when": pyarrow.array([0, 1], "date32")}
    path = write(odd, "a.parquet")
    assert tables.read_columns(path, ["age"]).tolist() == [[1.0], [2.0]]
    with pytest.raises(ArgumentError, match="must hold numbers in 'when'"):
        tables.read_columns(path, ["when"])
    with pytest.raises(InputError, match="row 2 does not"):
        tables.read_columns(write({"age": [1.0, None, 3.0]}, "b.parquet"), ["age"])


# What is written


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.pq"])
def test_what_is_written_is_read_again_to_the_last_bit(tmp_path, name):
    values = np.random.default_rng(0).normal(size=100) * 10.0 ** np.arange(-50, 50)
    columns = {"a": values, "b,c": np.arange(100), 'd"': -values}
    tables.write_columns(tmp_path / name, columns)
    assert tables.columns_of(tmp_path / name) == list(columns)
    again = tables.read_columns(tmp_path / name, list(columns))
    assert np.array_equal(again, np.column_stack(list(columns.values())))


RISKY = ["=1+1", "+1-2", "-x", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://a","b")']


@pytest.mark.parametrize("name", ["out.csv", "out.tsv"])
def test_no_cell_is_run_by_a_spreadsheet(tmp_path, name):
    texts = [*RISKY, "-5", "+1.5e-3", "-.5", "a=1", "", "'=1"]
    columns = {"=name": texts, "-1": -np.ones(len(texts)), "odd": [None, *texts[1:]], "-y": texts}
    tables.write_columns(tmp_path / name, columns)
    with open(tmp_path / name, newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t" if name.endswith("tsv") else ",")
    assert header == ["'=name", "-1", "odd", "'-y"]
    written = [f"'{text}" for text in RISKY] + texts[len(RISKY) :]
    assert [row[0] for row in rows] == [row[3] for row in rows] == written
    assert {row[1] for row in rows} == {"-1"}
    assert [row[2] for row in rows] == ["", *written[1:]]
    tables.write_columns(tmp_path / "out.parquet", {"=name": RISKY})  # which has texts as they are
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict() == {"=name": RISKY}


def test_an_input_keeps_its_column_whatever_it_is_called():
    X = {"released": np.linspace(0.0, 1.0, 20)}
    plan = GP(EQ(0.3), 1.0, (0.0, 1.0)).plan(X, X_star=X, epsilon=1.0, delta=0.01)
    table = released_table(plan.release(X["released"]), plan.X_star)
    assert list(table) == ["released", "released_", "noise_std", "denoised", "denoised_std"]
    np.testing.assert_array_equal(table["released"], plan.X_star[:, 0])


# Who is who


def partition(ids):
    """Which rows are the same person's, numbered by first appearance."""
    return [list(dict.fromkeys(ids.tolist())).index(one) for one in ids]


@pytest.mark.parametrize(
    ("names", "are_ids"),
    [
        ("id ID zper patient patient_id PatientID personId pid Subject", True),
        ("age height covid grid paid humidity width impatient", False),
    ],
)
def test_a_name_says_whether_a_column_tells_people_apart(names, are_ids):
    for name in [*names.split(), *(["user id"] if are_ids else [])]:
        assert looks_like_ids(name) == are_ids, name


def test_only_ids_that_are_repeated_count(write):
    table = write("id,patient,age,colour\n1,a,3,red\n2,a,4,red\n")
    assert repeated_ids(table, ["id", "patient", "age", "colour"]) == "patient"
    assert repeated_ids(table, ["id", "age", "colour"]) is None
    assert repeated_ids(write("id,age\n1,3\n,4\n1,5\n", "b.csv"), ["id"]) is None


def test_parquet_and_folders_of_it_hold_the_same_people(write, tmp_path):
    write({"id": [3, 4, 3]}, "part.2.parquet")
    write({"id": ["4", "x"]}, "part.10.parquet")
    assert partition(tables.read_ids(tmp_path, "id")) == [0, 1, 0, 1, 2]
    coded = {"id": pyarrow.array(["a", "b", "a"]).dictionary_encode()}
    assert partition(tables.read_ids(write(coded, "coded.pq"), "id")) == [0, 1, 0]
    for ids, words in (([1.0, float("nan")], "row 2 does not"), ([[1], [2]], "one value in each row")):
        with pytest.raises(InputError, match=words):
            tables.read_ids(write({"id": ids}, "odd.pq"), "id")
