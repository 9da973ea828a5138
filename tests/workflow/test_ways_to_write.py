"""How tables are written is found out from their header and public columns; private ones follow."""

import gzip

import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow")

from cloakgp.errors import InputError  # noqa: E402
from cloakgp.private.outcomes import PrivateColumn, PrivateLabels  # noqa: E402
from cloakgp.rows.formats import Format  # noqa: E402
from cloakgp.workflow import tables  # noqa: E402

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
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_read_as_it_is_written(tmp_path, way, packed):
    text, encoding, form = WAYS[way]
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(text.encode(encoding)) if packed else text.encode(encoding))
    assert tables.columns_of(path) == ["größe", "alter"]
    assert tables.reading(path, ["alter"]) == form
    assert tables.read_columns(path, ["alter"]).tolist() == [[1.5], [20.0]]
    assert np.asarray(PrivateColumn(str(path), "größe", form)).tolist() == [150.5, 160.0]


@pytest.mark.parametrize("private", ["150,5", "150.5", "x", "1,234", '"a;b"', "\xff", "ä"])
def test_nothing_private_decides_how_it_is_read(tmp_path, private):
    path = tmp_path / "a.csv"
    path.write_bytes(f"age;height\n1;{private}\n2;{private}\n".encode("latin-1"))
    assert tables.reading(path, ["age"]) == Format(";")


def test_a_private_cell_that_cannot_be_read_is_missing(tmp_path):
    """Whatever is in it: text, bytes that are none, half of a letter, a number and more."""
    path, nan = tmp_path / "a.csv", np.nan
    odd = [b"x", b"\xff", b"\xe6\x97", b"5\xff", b"1.5.2", b"NA", b""]
    whole = [b"age,height,ill", b"1, -1.5e2 ,yes", *(b"1,%s,%s" % (cell, cell) for cell in odd), b"1,+.5,no"]
    path.write_bytes(b"\n".join(whole))
    column = PrivateColumn(str(path), "height")
    np.testing.assert_array_equal(column, [-150.0, *[nan] * len(odd), 0.5])
    answers = PrivateLabels(PrivateColumn(str(path), "ill"))
    np.testing.assert_array_equal(answers, [1.0, *[nan] * len(odd), 0.0])
    classes = PrivateLabels(PrivateColumn(str(path), "ill"), ("no", "yes", "x"))
    np.testing.assert_array_equal(classes, [1.0, 2.0, *[nan] * (len(odd) - 1), 0.0])


def test_only_public_columns_are_asked(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("age;height\n1,5;100,5\n")
    asked = []
    options = tables.csv_options
    monkeypatch.setattr(tables, "csv_options", lambda f, c, k: asked.append(tuple(c)) or options(f, c, k))
    tables.reading(path, ["age"])
    assert set(asked) == {("age",)}
    asked.clear()
    assert tables.reading(path, []) == Format(";")  # whole rows are private: from the header alone
    assert not asked
    assert tables.reading(path, [], decimal=",", encoding="latin-1") == Format(";", "latin-1", ",")


def test_latin_1_below_a_plain_header_is_found_in_a_public_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("town,rent\nZürich,1\nBern,2\n".encode("latin-1"))
    assert tables.reading(path, ["town"]).encoding == "latin-1"
    assert tables.reading(path, ["rent"]).encoding == "utf-8"


def test_a_comma_that_may_stand_between_thousands_is_not_guessed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('age,height\n"1,500",1\n"2,000",2\n')
    with pytest.raises(InputError, match="rows 1 and 2 do not"):
        tables.read_columns(path, ["age"])
    said = tables.reading(path, ["age"], decimal=",")
    assert tables.read_columns(path, ["age"], said).tolist() == [[1.5], [2.0]]


def test_points_and_commas_are_not_mixed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age;height\n1,5;1\n2.5;2\n")
    with pytest.raises(InputError, match="column 'age' must hold numbers; row 1 does not"):
        tables.read_columns(path, ["age"])


@pytest.mark.parametrize("name", ["a.xlsx", "a.xls", "a.ods", "a.csv"])
def test_a_spreadsheet_is_told_how_to_be_saved(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(InputError, match="save the sheet as CSV"):
        tables.columns_of(tmp_path / name)
