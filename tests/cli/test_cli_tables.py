"""Tables as they are: texts, dates, yes and no, empty cells, semicolons; names, levels and ways are kept."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import good, run

from cloakgp.data.formats import Format
from cloakgp.release.plan_file import PlanFile

INPUTS = "--inputs alter,klinik,tag,krank --output druck --bounds 60 220"
PLAN = f"plan visits.csv {INPUTS} --epsilon 3 --delta 1e-4 --stages 3"
CLINICS = ("Nord", "Süd", "West, alt")


def write_visits(path="visits.csv", between=";", decimal=",", encoding="latin-1", outcome=None):
    rng, n = np.random.default_rng(1), 40
    out = io.StringIO()
    writer = csv.writer(out, delimiter=between, lineterminator="\r\n")
    writer.writerow(["", "alter", "klinik", "tag", "krank", "druck"])
    for row in range(n):
        age = rng.integers(20, 80) + 0.5
        pressure = 95 + 0.6 * age + rng.normal(0, 6)
        numbers = [f"{number:.1f}".replace(".", decimal) for number in (age, pressure)]
        clinic, ill = CLINICS[row % 3], ("True", "False")[row % 2]
        day = np.datetime64("2024-01-01") + int(rng.integers(0, 200))
        shown = numbers[1] if outcome is None else outcome
        writer.writerow([row, "" if row == 7 else numbers[0], clinic, day, ill, shown])
    Path(path).write_bytes(out.getvalue().encode(encoding))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A plan and a release of such a table, made once."""
    folder = tmp_path_factory.mktemp("visits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_visits()
        good(f"{PLAN} --missing-inputs drop --season tag week -o plan.json")
        good("release plan.json visits.csv --no-ledger --yes -o visits.cloak")
    return folder


@pytest.fixture
def here(released, monkeypatch):
    monkeypatch.chdir(released)


@pytest.mark.usefixtures("here")
def test_the_plan_keeps_what_it_found():
    settings = PlanFile.read("plan.json").settings
    assert settings.reading == Format(";", "latin-1", ",")
    kinds = [(column.kind, column.levels) for column in settings.columns.inputs]
    assert kinds == [("number", ()), ("level", CLINICS), ("date", ()), ("level", (False, True))]
    assert (settings.columns.response, settings.missing_inputs) == ("druck", "drop")
    assert settings.seasons == (("tag", "week"),)
    for file in ("plan.json", "visits.cloak"):
        shown = good(f"show {file}").out
        assert all(word in shown for word in ("Süd", "days since 2000-01-01", "False, True", "druck"))
    assert "decimal comma" in good("show plan.json").out
    assert good("show visits.cloak --json").data["columns"]["inputs"][1]["levels"] == list(CLINICS)


@pytest.mark.usefixtures("here")
def test_points_have_the_names_and_levels_of_the_table():
    """In any order, written in another way, with a level that nobody had."""
    Path("points.csv").write_text(
        'krank,klinik,alter,tag\nTRUE,"West, alt",50,2024-07-01\nfalse,Ost,50,2024-07-01\n'
    )
    table = good("predict visits.cloak points.csv --json").data["columns"]
    assert table["klinik"] == ["West, alt", "Ost"]
    assert (table["tag"], table["krank"]) == (["2024-07-01"] * 2, [True, False])
    assert table["std"][1] > table["std"][0]
    grid = good("predict visits.cloak grid:2 --json").data["columns"]
    assert len(grid["mean"]) == 2 * 3 * 2 * 2
    assert (set(grid["klinik"]), set(grid["krank"])) == (set(CLINICS), {False, True})
    assert len(grid["tag"][0]) == len("2024-07-01")
    Path("points.csv").write_text("klinik,alter\nNord,50\n")
    refused = run("predict visits.cloak points.csv")
    assert (refused.code, "there is no column 'tag'" in refused.err) == (2, True)


def test_a_slip_of_the_pen_makes_no_category():
    Path("slip.csv").write_text("age,height\n1,2\n4o,3\n")
    refused = run("plan slip.csv --inputs age --output height --bounds 0 9 --epsilon 1 --delta 0.01")
    assert refused.code == 2
    assert "column 'age' must hold numbers; row 2 does not" in refused.err
    assert "--categories age" in refused.err


def test_numbers_that_are_categories():
    rows = [f"{(3, 7, 11)[i % 3]},{i},{i % 5}" for i in range(30)]
    Path("wards.csv").write_text("\n".join(["ward,age,score", *rows]))
    line = "plan wards.csv --inputs ward,age --output score --bounds 0 5 --epsilon 3 --delta 1e-3 --stages 2"
    good(f"{line} --categories ward -o plan.json")
    assert PlanFile.read("plan.json").settings.columns.inputs[0].levels == (3, 7, 11)
    good("release plan.json wards.csv --no-ledger --yes -o wards.cloak")
    Path("points.csv").write_text("age,ward\n3,7\n")
    assert good("predict wards.cloak points.csv --json").data["columns"]["ward"] == [7.0]


def test_a_column_may_be_called_as_an_option_is():
    Path("odd.csv").write_text("alike,error\n1,2\n2,3\n3,5\n")
    line = "plan odd.csv --inputs alike --output error --bounds 0 9 --epsilon 1 --delta 0.01 --stages 1"
    good(f"{line} -o plan.json")
    assert PlanFile.read("plan.json").settings.output == "error"


@pytest.mark.parametrize("outcome", ["1,5", "1.5", "nobody's", "1;5"])
def test_what_is_planned_does_not_depend_on_how_outcomes_are_written(outcome):
    write_visits()
    good(f"{PLAN} --missing-inputs drop -o plan.json")
    write_visits("other.csv", outcome=outcome)
    good(f"{PLAN.replace('visits.csv', 'other.csv')} --missing-inputs drop -o other.json")
    assert Path("plan.json").read_bytes() == Path("other.json").read_bytes()


def test_whole_rows_are_read_as_was_said():
    rows = [f"{20 + i},5;{'Süd' if i % 2 else 'Nord'};{100 + i},5" for i in range(40)]
    Path("rows.csv").write_bytes("\n".join(["age;clinic;pressure", *rows]).encode("latin-1"))
    line = (
        "plan rows.csv --inputs age,clinic --output pressure --bounds 60 220 --epsilon 3 --delta 1e-3 "
        "--protect rows --box age 0 100 --levels clinic Nord,Süd --cells 8 --rows 40 --stages 2 -o plan.json"
    )
    assert "--decimal ," in good(line).err  # nothing public tells
    unread = run("release plan.json rows.csv --no-ledger --yes -o rows.cloak")
    assert (unread.code, "the table cannot be used" in unread.err) == (1, True)
    good(f"{line} --decimal , --encoding latin-1")
    assert PlanFile.read("plan.json").settings.reading == Format(";", "latin-1", ",")
    good("release plan.json rows.csv --no-ledger --yes -o rows.cloak")


BY_CLINIC = '--kernel "EQ(20, variance=100, active_dims=[0]) + Category(variance=50, active_dims=[1])"'
ASKED = "--inputs alter,klinik --output druck --bounds 60 220 --missing-inputs drop --epsilon 1"


def test_models_are_selected_by_tables_as_they_are():
    write_visits()
    line = f"select visits.csv {ASKED} {BY_CLINIC} --kernel EQ(20,variance=100,active_dims=[0]) --noise 40"
    planned = good(f"{line} --then-at grid:3 --then-epsilon 1 --dry-run --json")
    assert "default delta, 0.001" in planned.err
    assert planned.data["certificate"]["n_rows"] == 39
    assert planned.data["certificate"]["plan_for"].endswith("9 test points")  # 3 ages at 3 clinics
    assert good(f"{line} --no-ledger --yes --json").data["choice"]["index"] in (0, 1)


def test_files_with_categories_are_combined():
    for name, between, decimal in (("north", ";", ","), ("south", ",", ".")):
        write_visits(f"{name}.csv", between, decimal)
        noise = ord(name[0])  # their models differ, and so do their files
        good(f"plan {name}.csv {ASKED} {BY_CLINIC} --noise {noise} --at grid:3 -o {name}.json")
        good(f"release {name}.json {name}.csv --no-ledger --yes -o {name}.cloak")
    Path("points.csv").write_text("klinik,alter\nNord,30\nOst,30\n")
    lines = good("combine north.cloak south.cloak --at points.csv --learn").out.splitlines()
    assert lines[0] == "alter,klinik,mean,std,lower,upper"
    assert [line.split(",")[1] for line in lines[1:]] == ['"Nord"', '"Ost"']
    levels = good("combine north.cloak south.cloak --at grid:2 --learn --json").data["columns"]["klinik"]
    assert sorted(set(levels)) == sorted(CLINICS)
