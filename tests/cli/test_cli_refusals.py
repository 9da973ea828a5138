"""What a command refuses, with which exit code, and that nothing is spent or read by it."""

import errno
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, joined, run, spends, write_people

import cloakgp.cli
from cloakgp.errors import ArgumentError
from cloakgp.files import atomic
from cloakgp.ledger import LedgerError
from cloakgp.private import room
from cloakgp.workflow import tables
from cloakgp.workflow.private_step import UNUSABLE

SAID = UNUSABLE.replace("missing = midpoint", "--missing midpoint")


@pytest.fixture
def unread(monkeypatch):
    """Reading the output column fails the test."""

    def read(self, dtype=None, copy=None):
        pytest.fail("the output column was read")

    monkeypatch.setattr(room.PrivateColumn, "__array__", read)


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
        assert result.data == {"error": SAID, "exit_code": 1}
        assert result.err.splitlines()[-1] == f"cloakgp: {SAID}"
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
    assert result.data == {"error": SAID, "exit_code": 1}
    assert spends() == 0


@pytest.mark.usefixtures("planned")
def test_missing_outcomes_can_be_put_in_the_middle():
    write_people(heights=["150.0"] * 39 + ["tall"])
    whole = Path("data.csv").read_bytes()
    for cell in (b"", b"tall", b"t\xe4ll"):  # no number, whatever it is; and the last is no UTF-8
        Path("data.csv").write_bytes(whole.replace(b"tall", cell))
        line = "release plan.json data.csv --no-ledger --yes --overwrite -o heights.cloak --json"
        assert run(line).data == {"error": SAID, "exit_code": 1}
        good(f"{line} --missing midpoint")
    assert run(f"{RELEASE} --yes --missing drop").code == 2


@pytest.mark.usefixtures("planned")
def test_a_failure_in_the_private_room_shows_no_value(monkeypatch):
    def read(self, dtype=None, copy=None):
        raise RuntimeError("123.456 is private")

    monkeypatch.setattr(room.PrivateColumn, "__array__", read)
    result = run(f"{RELEASE} --yes --json")
    assert result.data == {"error": SAID, "exit_code": 1}
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
    first, asked, *balance = result.data["error"].splitlines()
    assert "does not fit" in first
    assert first.endswith("The output column was not read, and nothing was spent.")
    assert asked == "Release 'height' of data.csv: (1, 0.01)-DP."
    assert balance == good(f"ledger show {LEDGER}").out.splitlines()
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
        patch.setattr(atomic, "write", full)
        result = run(f"{RELEASE} --yes")
        assert result.code == 2
        assert "run the same command again, for nothing" in result.err
    assert spends() == 1
    again = good(f"{RELEASE} --json", "")  # nothing to confirm
    assert again.data["spent"] is False
    assert "(1, 0.01)-DP.\nThis was answered before: entry 2" in again.err
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


def test_a_file_that_is_no_release_file_is_called_that():
    budget()
    with zipfile.ZipFile("sheets.xlsx", "w") as archive:
        archive.writestr("sheet1.xml", "")
    for name in ("data.csv", "sheets.xlsx"):
        for line in (
            f"verify {name}",
            f"predict {name} grid:3",
            f"plot {name} -o a.png",
            f"export {name} --html -o a.html",
            f"ledger verify {LEDGER} --release {name}",
        ):
            result = run(line)
            assert result.code == 1, line
            words = "not a release file (.cloak), or a damaged one. cloakgp release makes one."
            assert result.err == f"cloakgp: {name}: {words}\n"
    assert "neither a release file (.cloak) nor a plan file (.json)" in run("show data.csv").err


def test_a_ledger_that_was_changed_ends_with_1():
    import sqlite3

    budget()
    with sqlite3.connect("budget.db") as database:
        database.execute("DROP TRIGGER cloakgp_ledger_no_update")
        database.execute("UPDATE cloakgp_ledger SET who = 'nobody' WHERE number = 1")
    database.close()
    assert run(f"ledger verify {LEDGER}").code == 1


def tables_that_are_read(monkeypatch):
    """The names of the public columns that are read of files, as they are."""
    found = []
    for name in ("read_words", "read_columns"):
        right = getattr(tables, name)
        monkeypatch.setattr(
            tables,
            name,
            lambda path, names, *more, _right=right, **options: (
                found.extend(names) or _right(path, names, *more, **options)
            ),
        )
    return found


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "line",
    [
        PLAN.replace("--inputs age", "--inputs age,height"),
        PLAN.replace("--inputs age", "--inputs age --people height"),
        "plan data.csv --inputs age,height --output height --bounds 50 170 --epsilon 1",
        "plan data.csv --inputs age,height --output height --bounds 50 170 --epsilon 1 --categories height",
        "plan data.csv --inputs age,height --output height --bounds 50 170 --epsilon 1 --protect rows "
        "--box age 0 90 --box height 0 200",
        "select data.csv --inputs age,height --output height --bounds 50 170 --kernel 'EQ(5)' --noise 1 "
        "--noise 2 --epsilon 1 --no-ledger --yes",
    ],
)
def test_the_output_column_is_no_input(line, monkeypatch):
    read = tables_that_are_read(monkeypatch)
    failed = run(line)
    assert failed.code == 2
    assert "'height' must not be" in failed.err
    assert "height" not in read


@pytest.mark.usefixtures("planned", "unread")
def test_a_plan_file_cannot_have_the_output_column_read_as_an_input(monkeypatch):
    body = json.loads(Path("plan.json").read_text())
    inputs = [{"name": "name", "kind": "level", "levels": ["person 1"]}, {"name": "height", "kind": "number"}]
    body["settings"]["columns"] = {"inputs": inputs, "response": "", "people": ""}
    body.pop("sha256")
    text = json.dumps(body, indent=1, sort_keys=True).encode()
    Path("plan.json").write_text(json.dumps(body | {"sha256": hashlib.sha256(text).hexdigest()}))
    read = tables_that_are_read(monkeypatch)
    assert run(f"{RELEASE} --yes").code == 2
    assert "height" not in read
    assert spends() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--inputs age", "--inputs weight"), "there is no column 'weight'"),
        (("--output height", "--output weight"), "there is no column 'weight'"),
        (("--inputs age", "--inputs height"), "must not be an input"),
        (("--inputs age", "--inputs name"), "must not measure distances between levels of 'name'"),
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
        (("--at", "--plot plan.gif --at"), ".png"),
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
    Path("two.csv").write_text("height,name\n1,2\n")
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
    Path("cert.pem").touch()
    Path("key.pem").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    good("serve --demo --behind-proxy --tls cert.pem key.pem")
    assert asked["demo"]
    assert asked["behind_proxy"]
    assert asked["tls"] == (Path("cert.pem"), Path("key.pem"))
    assert asked["data"] == Path("cloakgp-data")
    assert "[default: cloakgp-data]" in " ".join(good("serve --help").out.split())
    monkeypatch.setitem(sys.modules, "cloakgp.app", None)
    assert "install the extra cloakgp[app] (in a clone: pip install '.[app]')" in run("serve").err


@pytest.fixture
def app_that(monkeypatch):
    """Put a function in the place of the app's serve."""

    def put(serve):
        monkeypatch.setitem(sys.modules, "cloakgp.app", SimpleNamespace(serve=serve))

    return put


def test_serve_says_how_to_stop_it_and_that_it_was_stopped(app_that):
    def serve(**options):
        raise KeyboardInterrupt

    app_that(serve)
    answer = good("serve")
    assert "Ctrl-C stops it" in answer.err
    assert answer.out == "stopped.\n"


@pytest.mark.parametrize(
    ("said", "link"),
    [
        (
            "open this link; it works once:\n  https://[::1]:8765/enter/a-b_c",
            "https://[::1]:8765/enter/a-b_c",
        ),
        ("people sign in with their tokens.", None),
    ],
)
def test_serve_gives_its_link_as_json_once_it_listens(app_that, said, link):
    def serve(**options):
        print(said, flush=True)
        print("more")
        raise KeyboardInterrupt

    app_that(serve)
    assert good("serve --json").data == {"link": link}


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("--ledger nonsense", 2, "--ledger must look like 'sqlite:///budget.db'"),
        ("--ledger mysql://x/y", 2, "--ledger must begin with sqlite: or postgresql:"),
        ("--tls nowhere.pem data.csv", 2, "nowhere.pem: there is no such file"),
        ("--tls data.csv data.csv", 2, "must be a certificate and its key, as PEM files"),
    ],
)
def test_serve_refuses_before_it_starts(app_that, line, code, words):
    app_that(lambda **options: pytest.fail("started"))
    result = run(f"serve {line} --json")
    assert (result.code, result.data["exit_code"]) == (code, code)
    assert words in result.data["error"]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ArgumentError("data", "must be a folder of the app's own"), 2, "--data must be a folder"),
        (LedgerError("ledger: there is no folder here."), 4, "there is no folder here."),
        (OSError(errno.EADDRINUSE, "in use"), 2, "port 8765: the port is in use. Name another with --port"),
        (OSError(errno.EACCES, "denied"), 2, "Name a port above 1023"),
        (PermissionError(errno.EACCES, "denied", "a-folder"), 2, "denied: 'a-folder'"),
    ],
)
def test_what_the_app_cannot_use_is_said_in_words(app_that, error, code, words):
    def serve(**options):
        raise error

    app_that(serve)
    result = run("serve --json")
    assert (result.code, result.data["exit_code"]) == (code, code)
    assert words in result.data["error"]
    assert "Traceback" not in result.err


def test_without_the_extra_the_command_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        cloakgp.cli.main()
    assert end.value.code == 2
    assert "install the extra cloakgp[cli] (in a clone: pip install '.[cli]')" in capsys.readouterr().err


def test_every_hint_on_extras_is_worded_alike():
    """No registry has the package, so a plain pip install of its name would fail."""
    package = Path(cloakgp.__file__).parent
    for file in package.rglob("*.py"):
        if "app" in file.relative_to(package).parts:
            continue
        source = joined(file.read_text(encoding="utf-8"))
        assert "pip install 'cloakgp" not in source, file
        for extra in re.findall(r"extra cloakgp\[(\w+)\]", source):
            assert f"install the extra cloakgp[{extra}] (in a clone: pip install '.[{extra}]')" in source, (
                file
            )


def test_the_readme_lists_every_extra():
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(
        r"^pip install '\.\[(\w+)\]' +# ", (root / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert {*listed, "dev"} == set(project["optional-dependencies"])


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


def test_nor_are_points_or_the_ledger():
    budget()
    Path("points.csv").write_text("age\n12.5\n30\n")
    good(f"{PLAN} -o plan.json")
    good(f"{RELEASE} --yes")
    choose = "select data.csv --inputs age --output height --bounds 50 170 --kernel EQ(5) --noise 1 --noise 2"
    paid = f"{LEDGER} --dataset kung --yes"
    for line in (
        "predict heights.cloak points.csv -o points.csv",
        PLAN.replace("grid:9", "points.csv") + " -o points.csv",
        f"{choose} --epsilon 1 {paid} --then-at points.csv --then-epsilon 1 --then-delta 0.1 -o points.csv",
        f"{choose} --epsilon 1 {paid} -o budget.db",
        RELEASE.replace("heights.cloak", "budget.db") + " --again 2 --overwrite --yes",
    ):
        before = Path("points.csv").read_bytes(), Path("budget.db").read_bytes()
        result = run(line)
        assert result.code == 2, line
        assert "read by this command" in result.err
        assert (Path("points.csv").read_bytes(), Path("budget.db").read_bytes()) == before


def test_export_writes_over_no_file_that_was_not_named():
    """Its own choice of a name may be that of the private data."""
    good(f"{PLAN} -o plan.json")
    good("release plan.json data.csv --no-ledger --yes -o data.cloak")
    before = Path("data.csv").read_bytes()
    result = run("export data.cloak --csv")
    assert result.code == 1
    assert "data.csv exists already. Say -o data.csv to replace it" in result.err
    assert Path("data.csv").read_bytes() == before
    good("export data.cloak --html")
    assert run("export data.cloak --html").code == 1
    good("export data.cloak --html -o data.html")


# ------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    "line",
    ["plan --jsn", "plan", "nonsense", "ledger", "ledger show", "verify a b", "serve --port x", "predict a"],
)
def test_what_was_typed_wrongly_gives_json_too(line):
    result = run(f"{line} --json")
    assert result.code == 2
    assert result.data["exit_code"] == 2
    assert result.data["error"] in result.err
    assert run(line).out in ("", good("ledger --help").out)


def test_so_in_a_process_of_its_own():
    words = [sys.executable, "-m", "cloakgp.cli", "plan", "--jsn", "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"error": json.loads(done.stdout)["error"], "exit_code": 2}
    assert "--jsn" in json.loads(done.stdout)["error"]


def test_messages_name_commands_and_options_not_python():
    budget()
    good(f"{PLAN} -o plan.json")
    good(f"{RELEASE} --yes")
    Path("empty.db").touch()
    model = "--inputs age --output height --bounds 50 170 --epsilon 1 --no-ledger"
    for line, words in (
        ("ledger show --ledger sqlite:///no.db", "cloakgp ledger create makes one"),
        ("ledger show --ledger sqlite:///empty.db", "cloakgp ledger create makes one"),
        (f"ledger show {LEDGER} --dataset nobody", "cloakgp ledger create makes one"),
        ("ledger show --ledger nonsense", "--ledger must look like"),
        (
            "verify heights.cloak --signed-by abc",
            "--signed-by must be an Ed25519 public key, as 64 hex digits.",
        ),
        (f"select data.csv {model} --kernel EQ(5) --kernel EQ(5.0) --noise 1", "candidate 1 and candidate 2"),
        (f"select data.csv {model} --kernel EQ(5) --noise 1 --noise 2 --loss-clip 0", "--loss-clip must be"),
    ):
        result = run(f"{line} --json")
        assert result.code in (2, 4), line
        assert words in result.data["error"]
        assert words in result.err
    checked = good("verify heights.cloak --json")
    assert "(cloakgp ledger verify --release compares it with the ledger)" in checked.data["checks"][-1]
    assert "(cloakgp ledger verify --release compares it with the ledger)" in good("verify heights.cloak").out
    good("export heights.cloak --html")
    assert "<code>cloakgp ledger verify --release</code>" in Path("heights.html").read_text()


def test_an_answer_of_another_plan_says_which_option_gives_a_new_one(monkeypatch):
    """The ledger's words for it are Python's."""
    budget()
    good(f"{PLAN} -o plan.json")
    good(f"{RELEASE} --yes")
    monkeypatch.setattr(cloakgp.Plan, "digest", "of another plan")
    monkeypatch.setattr(cloakgp.Plan, "question_digest", "of another question")
    result = run(f"{RELEASE} --yes")
    assert result.code == 4
    assert "Use the same inputs and settings as then, or --again LABEL for a new answer." in result.err
