"""What a command refuses, with which exit code, and that nothing is spent or read by it."""

import json
import sys
from pathlib import Path

import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, spends, write_people

import cloakgp.cli
from cloakgp import files, measure
from cloakgp.workflow.private_step import UNUSABLE


@pytest.fixture
def unread(monkeypatch):
    """Reading the output column fails the test."""

    def read(self, dtype=None, copy=None):
        pytest.fail("the output column was read")

    monkeypatch.setattr(measure.PrivateColumn, "__array__", read)


@pytest.fixture
def planned():
    budget()
    good(f"{PLAN} -o plan.json")


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.usefixtures("unread")
def test_nothing_but_release_and_select_reads_the_output_column():
    write_people(heights=["private"] * 40)
    good(f"{PLAN} -o plan.json --plot plan.png")
    good("show plan.json")
    line = "select data.csv --inputs age --output height --bounds 50 170 --kernel 'EQ(5)' --noise 100"
    good(f"{line} --noise 200 --epsilon 1 --dry-run")


UNUSABLE_COLUMNS = {
    "text": ["tall"] * 40,
    "one text": ["tall"] + ["150.0"] * 39,
    "missing": [""] * 40,
    "one missing": ["150.0"] * 39 + [""],
    "NaN": ["nan"] * 40,
    "infinite": ["150.0"] * 39 + ["inf"],
    "dates": ["2020-01-01"] * 40,
    "decimal commas": ['"150,5"'] * 40,
}


@pytest.mark.parametrize("kind", UNUSABLE_COLUMNS)
@pytest.mark.usefixtures("planned")
def test_whatever_is_wrong_with_the_output_column_the_message_is_the_same(kind):
    write_people(heights=UNUSABLE_COLUMNS[kind])
    with_ledger = run(f"{RELEASE} --yes --json")
    without = run("release plan.json data.csv --no-ledger --yes -o heights.cloak --json")
    line = "select data.csv --inputs age --output height --bounds 50 170 --kernel 'EQ(5)' --noise 100"
    chosen = run(f"{line} --noise 200 --epsilon 1 --no-ledger --yes --json")
    for result in (with_ledger, without, chosen):
        assert result.data == {"error": UNUSABLE, "exit_code": 1}
        assert result.err.splitlines()[-1] == f"cloakgp: {UNUSABLE}"
    assert not Path("heights.cloak").exists()
    assert spends() == 0


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("kind", ["text", "timestamps", "lists"])
def test_so_for_parquet(kind):
    import pyarrow
    from pyarrow import csv, parquet

    table = csv.read_csv("data.csv")
    columns = {
        "text": pyarrow.array(["tall"] * 40),
        "timestamps": pyarrow.array([0] * 40, pyarrow.timestamp("s")),
        "lists": pyarrow.array([[1.0]] * 40),
    }
    place = table.column_names.index("height")
    parquet.write_table(table.set_column(place, "height", columns[kind]), "data.parquet")
    result = run(f"{RELEASE.replace('data.csv', 'data.parquet')} --yes --json")
    assert result.data == {"error": UNUSABLE, "exit_code": 1}
    assert spends() == 0


@pytest.mark.usefixtures("planned")
def test_missing_outcomes_can_be_put_in_the_middle():
    write_people(heights=["150.0"] * 39 + [""])
    good(f"{RELEASE} --yes --missing midpoint")
    assert run(f"{RELEASE} --yes --missing drop").code == 2


@pytest.mark.usefixtures("planned")
def test_a_failure_in_the_private_room_shows_no_value(monkeypatch):
    def read(self, dtype=None, copy=None):
        raise RuntimeError("123.456 is private")

    monkeypatch.setattr(measure.PrivateColumn, "__array__", read)
    result = run(f"{RELEASE} --yes --json")
    assert result.data == {"error": UNUSABLE, "exit_code": 1}
    assert "123.456" not in result.err


# ---------------------------------------------------------------------------------------- changes


@pytest.mark.usefixtures("planned", "unread")
def test_other_inputs_are_refused_before_the_output_column_is_read():
    lines = Path("data.csv").read_text().splitlines()
    for changed in (
        [*lines, "one more,50.0,150.0"],
        [lines[0], lines[2], lines[1], *lines[3:]],
        [lines[0], "person 0,50.05,150.0", *lines[2:]],
    ):
        Path("data.csv").write_text("\n".join(changed))
        result = run(f"{RELEASE} --yes")
        assert result.code == 1
        assert "nothing was spent" in result.err
    assert spends() == 0


@pytest.mark.usefixtures("planned", "unread")
@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 2.0), ("output", "age2"), ("bounds", [0.0, 170.0]), ("at", "grid:10")]
)
def test_an_edited_plan_file_is_refused(name, value):
    body = json.loads(Path("plan.json").read_text())
    body["settings"][name] = value
    Path("plan.json").write_text(json.dumps(body))
    result = run(f"{RELEASE} --yes")
    assert result.code == 1
    assert "changed after it was made" in result.err
    assert run("show plan.json").code == 1


def test_bounds_may_be_negative():
    good(PLAN.replace("--bounds 50 170", "--bounds -170 -50.5"))


@pytest.mark.usefixtures("planned")
def test_a_plan_file_may_be_laid_out_anew():
    Path("plan.json").write_text(json.dumps(json.loads(Path("plan.json").read_text())))
    good(f"{RELEASE} --yes")


# ----------------------------------------------------------------------------------------- budget


@pytest.mark.usefixtures("planned", "unread")
def test_declining_spends_nothing():
    for answer in ("n\n", "\n", "", "yess\n"):
        result = run(RELEASE, answer)
        assert result.code == 1
        assert "declined" in result.err
        assert result.out == ""
    assert spends() == 0
    assert not Path("heights.cloak").exists()


@pytest.mark.usefixtures("unread")
def test_what_does_not_fit_is_refused_before_asking():
    budget(epsilon=0.5)
    good(f"{PLAN} -o plan.json")
    result = run(f"{RELEASE} --json")
    assert (result.code, result.data["exit_code"]) == (3, 3)
    assert "does not fit" in result.data["error"]
    assert "[y/N]" not in result.err


@pytest.mark.usefixtures("planned", "unread")
def test_somebody_must_pay_or_be_said_not_to():
    for line in ("", LEDGER, "--dataset kung", "--no-ledger --dataset kung", "--no-ledger --again 2"):
        result = run(f"release plan.json data.csv -o heights.cloak --yes {line}")
        assert result.code == 2, line
    assert "who pays?" in run("release plan.json data.csv -o heights.cloak --yes").err
    unknown = run(f"release plan.json data.csv -o heights.cloak --yes {LEDGER} --dataset nobody")
    assert unknown.code == 4
    nowhere = run("release plan.json data.csv -o a.cloak --yes --ledger sqlite:///no.db --dataset kung")
    assert nowhere.code == 4
    assert run("ledger show --ledger mysql://x/y").code == 2


@pytest.mark.usefixtures("planned")
def test_the_ledger_may_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER", "sqlite:///budget.db")
    good("release plan.json data.csv --dataset kung --yes -o heights.cloak")
    good("ledger verify --release heights.cloak")


@pytest.mark.usefixtures("planned")
def test_a_command_that_died_is_run_again_for_nothing(monkeypatch):
    def full(path, contents):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        result = run(f"{RELEASE} --yes")
        assert result.code == 2
        assert "run the same command again, for nothing" in result.err
    assert spends() == 1
    again = good(f"{RELEASE} --json", "")  # nothing to confirm
    assert again.data["spent"] is False
    assert "was answered before: entry 2" in again.err
    first = Path("heights.cloak").read_bytes()
    good(RELEASE)  # the file is there already, and the same
    assert Path("heights.cloak").read_bytes() == first
    assert spends() == 1


@pytest.mark.usefixtures("planned")
def test_a_second_release_of_one_plan_must_be_asked_for():
    good(f"{RELEASE} --yes")
    second = RELEASE.replace("heights.cloak", "second.cloak")
    assert good(f"{second} --again 2 --yes --json").data["spent"] is True
    assert good(f"{second} --again 2 --yes --json").data["spent"] is False
    assert Path("second.cloak").read_bytes() != Path("heights.cloak").read_bytes()
    assert spends() == 2
    Path("other.csv").write_bytes(Path("data.csv").read_bytes())  # a file of another name: another question
    third = RELEASE.replace("data.csv", "other.csv").replace("heights.cloak", "third.cloak")
    assert good(f"{third} --yes --json").data["spent"] is True
    assert run(f"{RELEASE} --yes --again '\x07'").code == 2


@pytest.mark.usefixtures("planned")
def test_a_release_file_is_not_overwritten_by_another():
    Path("heights.cloak").write_text("something else")
    assert run(f"{RELEASE} --yes").code == 1
    assert spends() == 0
    assert Path("heights.cloak").read_text() == "something else"
    good(f"{RELEASE} --yes --overwrite")
    Path("heights.cloak").write_text("something else")
    assert run(f"{RELEASE} --yes").code == 1  # on record, so free; but the file is another
    good(f"{RELEASE} --yes --overwrite")
    assert spends() == 1
    assert run(RELEASE.replace("heights.cloak", "nowhere/heights.cloak")).code == 2
    Path("folder").mkdir()
    assert run(RELEASE.replace("heights.cloak", "folder")).code == 2


# ------------------------------------------------------------------------------------------ files


def test_a_release_file_that_does_not_verify_ends_with_1(tamper):
    good(f"{PLAN} -o plan.json")
    good("release plan.json data.csv --no-ledger --yes -o heights.cloak")

    def lie(manifest, arrays):
        manifest["certificate"]["epsilon"] = 0.5

    tamper(Path("heights.cloak"), lie)
    result = run("verify heights.cloak --json")
    assert (result.code, result.data["exit_code"]) == (1, 1)
    Path("heights.cloak").write_bytes(b"PK no zip")
    assert run("verify heights.cloak").code == 1
    assert run("show heights.cloak").code == 1
    assert run("verify nowhere.cloak").code == 2
    assert run("verify plan.json").code == 1


def test_a_ledger_that_was_changed_ends_with_1():
    import sqlite3

    budget()
    with sqlite3.connect("budget.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_update")
        database.execute("UPDATE cloakgp_ledger SET who = 'nobody' WHERE number = 1")
    database.close()
    assert run(f"ledger verify {LEDGER}").code == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--inputs age", "--inputs weight"), "there is no column 'weight'"),
        (("--output height", "--output weight"), "there is no column 'weight'"),
        (("--inputs age", "--inputs height"), "must not be an input"),
        (("--inputs age", "--inputs name"), "column 'name' must hold numbers; rows 1, 2, 3, 4, 5 and others"),
        (("--inputs age", "--inputs age,"), "columns must be written"),
        (("data.csv", "nowhere.csv"), "there is no such file"),
        (("data.csv", "data.xlsx"), "there is no such file"),
        (("EQ(20", "RBF(20"), "only kernels can be written with brackets"),
        (("--noise 196", "--noise -1"), "noise must be finite and above 0"),
        (("--bounds 50 170", "--bounds 170 50"), "lo < hi"),
        (("grid:9", "grid:1"), "grid:n"),
        (("grid:9", "grid:90000"), "above the limit"),
        (("grid:9", "points.csv"), "there is no such file"),
        (("--epsilon 1", "--epsilon 0"), "epsilon"),
        (("--delta 0.01", "--delta 1"), "delta"),
        (("--at", "--design best --at"), "design must be one of"),
        (("--at", "--plot plan.pdf --at"), ".png"),
        (("--at", "-o nowhere/plan.json --at"), "cannot be written there"),
        (("--at", "-o . --at"), "is a folder"),
        (("--epsilon 1", ""), "epsilon"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_change(change, words):
    result = run(PLAN.replace(*change))
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


def test_more_wrong_usage():
    good(f"{PLAN} -o plan.json")
    good("release plan.json data.csv --no-ledger --yes -o heights.cloak")
    Path("mean.csv").write_text("mean\n1\n")
    Path("two.csv").write_text("age,name\n1,2\n")
    for line in (
        "export heights.cloak",
        "export heights.cloak --csv --html",
        "export heights.cloak --csv --at grid:4",
        "export heights.cloak --csv --inputs a,b",
        "predict heights.cloak mean.csv",
        "predict heights.cloak two.csv",
        "predict heights.cloak two.csv --inputs a,b",
        "predict heights.cloak grid:3 --level 1",
        "predict nowhere.cloak grid:3",
        "plot heights.cloak -o picture.gif",
        "predict heights.cloak grid:3 -o nowhere/out.csv",
        "export heights.cloak --csv -o nowhere/out.csv",
        "show nowhere.cloak",
        "show data.csv",
        "select data.csv --inputs age --output height --bounds 50 170 --kernel 'EQ(5)' --noise 1 --epsilon 1",
        "select data.csv --inputs age --output age --bounds 50 170 --kernel 'EQ(5)' --noise 1 --epsilon 1",
        "nonsense",
    ):
        assert run(line).code == 2, line


def test_serve_starts_the_app_that_is_there(monkeypatch):
    from types import SimpleNamespace

    asked = {}
    monkeypatch.setitem(sys.modules, "cloakgp.app", SimpleNamespace(serve=lambda **kw: asked.update(kw)))
    good("serve --port 8123 --data . --ledger sqlite:///budget.db")
    assert asked == {
        "host": "127.0.0.1",
        "port": 8123,
        "data": Path("."),
        "ledger": "sqlite:///budget.db",
        "tls": None,
        "behind_proxy": False,
        "demo": False,
    }
    good("serve --demo --behind-proxy --tls cert.pem key.pem")
    assert asked["demo"]
    assert asked["behind_proxy"]
    assert asked["tls"] == (Path("cert.pem"), Path("key.pem"))
    monkeypatch.setitem(sys.modules, "cloakgp.app", None)
    assert "pip install 'cloakgp[app]'" in run("serve").err


def test_without_the_extra_the_command_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        cloakgp.cli.main()
    assert end.value.code == 2
    assert "pip install 'cloakgp[cli]'" in capsys.readouterr().err


def test_help_shows_examples_and_exit_codes():
    shown = good("--help").out
    assert "Exit codes: 0 done; 1 refused" in shown
    for name in ("plan", "release", "select", "predict", "show", "verify", "plot", "export", "demo", "serve"):
        assert name in shown
        assert f"cloakgp {name} " in good(f"{name} --help").out
    for name in ("create", "show", "verify"):
        assert f"cloakgp ledger {name} " in good(f"ledger {name} --help").out
    assert good("--version").out == f"cloakgp {cloakgp.__version__}\n"


def test_what_is_read_is_not_written_over():
    """Least of all the private data."""
    before = Path("data.csv").read_bytes()
    line = "plan data.csv --inputs age --output height --bounds 50 170 --kernel EQ(20) --noise 196 "
    answer = run(line + "--at grid:5 --epsilon 1 --delta 0.01 -o data.csv")
    assert answer.code == 2
    assert "read by this command" in answer.err
    assert Path("data.csv").read_bytes() == before
