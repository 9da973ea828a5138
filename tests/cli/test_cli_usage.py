"""What commands refuse: the message begins with the option that was typed, or says what to change."""

import contextlib
import errno
import re
import shutil
import sys
import tomllib
import zipfile
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, commands, good, run, write_people

import cloakgp
import cloakgp.cli
from cloakgp.cli import options
from cloakgp.core.errors import ArgumentError
from cloakgp.files.labels import NAMES as LABELS
from cloakgp.kernels import EQ
from cloakgp.ledger import LedgerError
from cloakgp.model.outcome import OutcomeName
from cloakgp.release.settings import Settings

MODELS = "select data.csv --inputs age --output height --bounds 50 170 --kernel EQ(5) --noise 1 --noise 2"
FREE = f"{MODELS} --epsilon 1 --no-ledger"
SELECT = f"{MODELS} --epsilon 1 {LEDGER} --dataset kung --yes"
THEN = f"{SELECT} --then-at grid:5 --then-epsilon 1 --then-delta 0.1"
LEARN = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.1"
KNOWN = f"{LEARN} --kernel EQ(20) --noise 196 --at grid:9"
BOX = "--protect rows --box age 0 90"
ROWS = f"{LEARN} --protect rows"
CREATE = f"ledger create {LEDGER} --dataset mine --epsilon 1 --delta 0.1"

PAYS = "ledger nonsense|dataset ' kung'|why ' because'|who ' me'"
WORDS = "|".join(f"{name} {201 * 'x'}" for name in LABELS)
MAP = "coordinates lon,late|outline plan.json"
MODEL = "bounds 2 1|kernel ''|noise 0|mean nan|epsilon 0"
REFUSED = {
    "plan": {
        PLAN: f"{MODEL}|delta 2|design best|inducing 0|ids exact",
        f"{PLAN} --epsilon 2": "calibration classic",
        f"{PLAN} --inducing 3": "approximation best|device cpu",
        f"{PLAN} --people name": "within 2",
        f"{PLAN} --kernel EQ(1)": "at far.csv",
        LEARN: "kernels best|classes yes|stages 0|categories ward|season age week",
        f"{LEARN} --protect rows": "box age 90 0|levels age 7",
        f"{LEARN} {BOX}": "missing-inputs drop|cells 0",
        f"{LEARN} {BOX} --people name --n-people 40": "max-rows 0",
    },
    "release": {f"{RELEASE} --yes": f"{PAYS}|again ' 2'|{WORDS}"},
    "plot": {
        "plot heights.cloak -o a.png": WORDS,
        "plot homes.cloak -o a.png": MAP,
        "plot heights.cloak -o .": "formats gif",
    },
    "export": {
        "export heights.cloak --html -o a.html": f"{WORDS}|ledger nonsense",
        "export homes.cloak --html -o a.html": MAP,
    },
    "select": {
        FREE: "categories ward|ids exact",
        f"{FREE} --people name": "within 2",
        SELECT: f"{MODEL}|folds 1|loss best|loss-clip 0|{PAYS}|again ' 2'",
        THEN: "then-epsilon 0|then-delta 2|then-design best",
    },
    "predict": {"predict heights.cloak grid:5": "level 2"},
    "combine": {"combine heights.cloak heights.cloak --at grid:5": "level 2"},
    "verify": {"verify heights.cloak": "signed-by abc"},
    "serve": {"serve": "data .|ledger nonsense"},
    "ledger create": {
        CREATE: f"{PAYS}|epsilon 0|delta 2|pure 2|unit somebody|largest-delta 2|ids exact",
        f"{CREATE} --unit 'one person' --people name": "private name",
    },
    "ledger allow": {
        f"ledger allow {LEDGER} --dataset kung --private weight": PAYS,
        f"ledger allow {LEDGER} --dataset kung": "private age",
    },
    "ledger show": {f"ledger show {LEDGER}": "ledger nonsense|dataset ' kung'"},
    "ledger verify": {"ledger verify": "ledger nonsense"},
}
"""By command: a line, and options that it refuses."""


def lines_of(command):
    """Each option with the line that refuses it."""
    for line, refused in REFUSED.get(command, {}).items():
        for option in refused.split("|"):
            yield option.split()[0].replace("-", "_"), f"{line} --{option}"


# Names of columns, files and addresses, which the commands look at themselves, and words for labels.
OWN = {"dask", "decimal", "encoding", "folder", "head", "host", "inputs", "inputs_from", "missing", "out"}
OWN |= {
    "n_people",
    "rows",
    "outcome",
    "output",
    "people",
    "picture",
    "port",
    "protect",
    "release",
    "then_at",
    "tls",
}


def test_no_option_is_left_out():
    for name, command in commands().items():
        takes = {
            parameter.name
            for parameter in command.params
            if parameter.param_type_name == "option" and not parameter.is_flag
        }
        own = OWN | {"export": {"at"}, "combine": {"at"}, "select": {"missing_inputs"}}.get(name, set())
        assert takes - own == {parameter for parameter, _ in lines_of(name)}, name


def test_the_table_of_options_is_that_of_settings():
    """Plan's own options are settings by their names, or what the command makes settings of."""
    made = {"inputs", "season", "box", "levels", "cells", "rows", "n_people", "protect"}
    listed = options._TABLE["plan"]
    assert set(listed) - made - {"compare", "out", "picture"} <= {one.name for one in fields(Settings)}
    assert tuple(listed["outcome"]["choices"]) == get_args(OutcomeName)


@pytest.fixture(scope="module")
def made(tmp_path_factory, private_key):
    """A folder with everything that commands ask for."""
    folder = tmp_path_factory.mktemp("made")
    with contextlib.chdir(folder):
        write_people()
        budget()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv("data.csv"), "data.parquet")
        for name, text in (
            ("far.csv", "age\n100000\n"),
            ("mean.csv", "mean\n1\n"),
            ("two.csv", "a,b\n1,2\n"),
        ):
            Path(name).write_text(text)
        wide = np.random.default_rng(0).normal(size=(20, 12)).round(3).astype(str)
        Path("wide.csv").write_text("\n".join(map(",".join, [[*(f"a{i}" for i in range(11)), "y"], *wide])))
        with zipfile.ZipFile("sheets.xlsx", "w") as archive:
            archive.writestr("sheet1.xml", "")
        good(f"{PLAN} -o plan.json")
        good(f"{RELEASE} --yes")
        X = np.random.default_rng(0).uniform(size=(12, 2))
        model = cloakgp.GP(EQ(1.0), noise=1.0, bounds=(0, 1))
        plan = model.plan({"lon": X[:, 0], "lat": X[:, 1]}, X_star=X[:2], epsilon=1.0, delta=1e-3)
        release = plan.release(X[:, 0])
        release.save("homes.cloak")
        model.plan(X, X_star=X[:2], epsilon=1.0, delta=1e-3).release(X[:, 0]).save("unnamed.cloak")
        release.save("signed.cloak", sign_with=private_key)
    return folder


@pytest.fixture
def here(made):
    shutil.copytree(made, ".", dirs_exist_ok=True)


def begins_with(command, parameter, result):
    option = commands()[command].own.options[parameter]
    begins = (f"cloakgp: {option} ", f"cloakgp: {option}: ")
    return result.code == 2 and result.err.splitlines()[-1].startswith(begins)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_begins_with_the_option(command):
    for parameter, line in lines_of(command):
        assert begins_with(command, parameter, run(line)), line


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "parameter", "line", "packages"),
    [
        ("plan", "device", f"{PLAN} --device cpu", ["torch"]),
        ("plan", "dask", f"{PLAN.replace('.csv', '.parquet')} --inducing 3 --dask local", ["distributed"]),
        ("plan", "picture", f"{PLAN} --plot a.png", ["matplotlib.figure"]),
        ("verify", "signed_by", f"verify signed.cloak --signed-by {'ab' * 32}", ["cryptography.hazmat"]),
        ("release", "ledger", f"{RELEASE} --yes --ledger postgresql://nowhere/a", ["psycopg"]),
    ],
)
def test_a_package_that_is_not_installed_is_asked_for_by_the_option(
    command, parameter, line, packages, monkeypatch
):
    for package in packages:
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)
    result = run(line)
    assert begins_with(command, parameter, result), result.err
    assert "install the extra cloakgp[" in result.err


TOGETHER = {
    LEARN: "noise 9|mean 9|design mse|calibration analytic|device cuda|approximation dtc|dask local|"
    "within 0.5|box age 0 9|levels age 1,2|cells 9|rows 9|max-rows 3|n-people 3|ids exact",
    f"{KNOWN} {BOX}": "kernels EQ|stages 3|season age 3|categories age|missing-inputs drop",
}


@pytest.mark.parametrize("line", TOGETHER)
def test_an_option_that_goes_with_others_is_refused_without_them(line):
    """Which go together is said in release/settings; here that the command tells it of every option."""
    for option in TOGETHER[line].split("|"):
        failed = run(f"{line} --{option} -o plan.json")
        assert failed.code == 2, option
        assert failed.err.startswith(f"cloakgp: --{option.split()[0]} must be left out where"), failed.err
    assert not Path("plan.json").exists()


WRONG = {
    f"{PLAN} --inputs weight": "there is no column 'weight'",
    f"{PLAN} --output weight": "there is no column 'weight'",
    f"{PLAN} --inputs height": "must not be an input",
    f"{PLAN} --inputs age,": "columns must be written",
    PLAN.replace("data.csv", "nowhere.csv"): "there is no such file",
    f"{PLAN} --at grid:1": "grid:n",
    f"{PLAN} --at points.csv": "there is no such file",
    f"{PLAN} --plot plan.gif": ".png",
    f"{PLAN} -o nowhere/plan.json": "cannot be written there",
    f"{PLAN} -o .": "is a folder",
    f"{PLAN} --inducing 1.5": "1.5: there is no such file",
    f"{PLAN} --inducing two.csv": "no column 'age'",
    f"{PLAN} --dask local": "--dask needs --inducing",
    f"{PLAN} --inducing 6 --dask local": "must be Parquet, which workers can read in parts",
    f"{LEARN} --compare": "--compare is for real outcomes",
    f"{PLAN} --compare --design mse": "leave out --design",
    f"{KNOWN} --outcome count --compare": "--compare is for real outcomes",
    f"plan wide.csv --inputs {','.join(f'a{i}' for i in range(11))} --output y --bounds 0 1 --epsilon 1 "
    "--delta 0.01": "--inputs must have at most 10 columns",
    f"{ROWS}": "--box NAME LO HI, or --levels NAME A,B,...",
    **{f"{LEARN} {BOX} --box {name} 0 80": "of each of age, once" for name in ("name", "age")},
    f"{ROWS} --box age 0 old": "--box age must have two numbers",
    f"{ROWS} --box age 0": "requires 3 arguments",
    f"{LEARN} {BOX} --cells many": "--cells must be a whole number, or NAME=N",
    f"{LEARN} {BOX} --people name --max-rows 3 --rows 40": "Their number is private then",
    f"{FREE} --then-at grid:5": "--then-at and --then-epsilon go together",
    f"{FREE} --kernel EQ(5.0)": "candidate 3 must differ",
    MODELS.replace("--noise 2", "") + " --epsilon 1 --no-ledger": "",
    f"release plan.json data.csv -o a.cloak --yes {LEDGER}": "who pays?",
    "release plan.json data.csv -o a.cloak --no-ledger --dataset kung": "--no-ledger goes without",
    f"{RELEASE} --again '\x07'": "--again",
    f"{RELEASE} -o nowhere/a.cloak": "cannot be written there",
    "export heights.cloak --csv --html": "--csv or --html",
    "export heights.cloak --csv --at grid:4": "--at is for functions",
    "export heights.cloak --csv --inputs a,b": "1 input column(s); 2 were named",
    "export heights.cloak --csv -o nowhere/out.csv": "cannot be written there",
    "predict heights.cloak grid:3 -o nowhere/out.csv": "cannot be written there",
    "predict heights.cloak mean.csv": "no column 'age'",
    "predict heights.cloak two.csv --inputs a,b": "1 input column(s); 2 were named",
    "predict nowhere.cloak grid:3": "there is no such file",
    "predict unnamed.cloak mean.csv": "--inputs, in the order",
    "combine heights.cloak homes.cloak --at grid:3": "must all have the same number of input columns",
    "plot heights.cloak -o picture.gif": "written as .png, .svg or .pdf",
    "plot heights.cloak --formats png -o a.png": "--formats is for a folder",
    "plot heights.cloak --formats png -o nowhere/new": "cannot be written there",
    "verify heights.cloak --people name": "give that with --inputs-from",
    "show nowhere.cloak": "there is no such file",
    "show data.csv": "neither a release file (.cloak) nor a plan file (.json)",
    "ledger show --ledger mysql://x/y": "--ledger must begin with sqlite: or postgresql:",
    "demo -o data.csv": "data.csv is a file. Name a folder",
    "serve --tls nowhere.pem data.csv": "nowhere.pem: there is no such file",
    "serve --tls data.csv data.csv": "must be a certificate and its key, as PEM files",
}


@pytest.mark.usefixtures("here")
def test_wrong_usage_ends_with_2_and_says_what_to_change(monkeypatch):
    app = SimpleNamespace(serve=lambda **given: pytest.fail("the app was started"))
    monkeypatch.setitem(sys.modules, "cloakgp.app", app)
    for line, words in WRONG.items():
        result = run(line)
        assert result.code == 2, line
        assert words in " ".join(result.err.split()), (line, result.err)
        assert "Traceback" not in result.err


@pytest.mark.usefixtures("here")
def test_columns_that_no_file_names_are_named_in_their_order():
    assert good("predict unnamed.cloak two.csv --inputs b,a --json").data["columns"]["b"] == [2.0]


@pytest.mark.usefixtures("here")
def test_other_exit_codes_have_their_reasons():
    not_one = "not a release file (.cloak), or a damaged one. cloakgp release makes one."
    Path("cut.cloak").write_bytes(b"PK no zip")
    for name in ("data.csv", "sheets.xlsx", "plan.json", "cut.cloak"):
        uses = ("verify {}", "predict {} grid:3", "plot {} -o a.png", "export {} --html -o a.html")
        for line in (*uses, f"ledger verify {LEDGER} --release {{}}"):
            result = run(line.format(name))
            assert (result.code, result.err) == (1, f"cloakgp: {name}: {not_one}\n"), line
    Path("empty.db").touch()
    for line in (
        "release plan.json data.csv -o a.cloak --yes --ledger sqlite:///no.db --dataset kung",
        f"release plan.json data.csv -o a.cloak --yes {LEDGER} --dataset nobody",
        "ledger show --ledger sqlite:///no.db",
        "ledger show --ledger sqlite:///empty.db",
        f"ledger show {LEDGER} --dataset nobody",
    ):
        result = run(line)
        assert (result.code, "cloakgp ledger create makes one" in result.err) == (4, True), line


@pytest.mark.parametrize(
    "line",
    ["plan --jsn", "plan", "nonsense", "ledger", "ledger show", "verify a b", "serve --port x", "predict a"],
)
def test_what_was_typed_wrongly_gives_json_too(line):
    result = run(f"{line} --json")
    assert result.code == result.data["exit_code"] == 2
    assert result.data["error"] in result.err
    assert run(line).out in ("", good("ledger --help").out)


def test_help_shows_examples_and_exit_codes():
    shown = good("--help").out
    assert "Exit codes: 0 done; 1 refused" in shown
    for name in commands():
        assert name.split()[0] in shown
        assert f"cloakgp {name} " in good(f"{name} --help").out
    assert good("--version").out == f"cloakgp {cloakgp.__version__}\n"


# The app


@pytest.fixture
def app_that(monkeypatch):
    """Put a function in the place of the app's serve."""
    return lambda serve: monkeypatch.setitem(sys.modules, "cloakgp.app", SimpleNamespace(serve=serve))


def test_serve_starts_the_app_that_is_there(app_that, monkeypatch):
    asked = {}
    app_that(lambda **given: asked.update(given))
    good("serve --port 8123 --data . --ledger sqlite:///budget.db")
    assert asked.pop("host") == "127.0.0.1"
    assert asked == {
        "port": 8123,
        "data": Path("."),
        "ledger": "sqlite:///budget.db",
        "tls": None,
        "behind_proxy": False,
        "demo": False,
        "announce": None,
    }
    Path("cert.pem").touch()
    Path("key.pem").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    good("serve --demo --behind-proxy --tls cert.pem key.pem")
    assert asked["demo"]
    assert asked["behind_proxy"]
    assert asked["tls"] == (Path("cert.pem"), Path("key.pem"))
    assert asked["data"] == Path("cloakgp-data")
    monkeypatch.setitem(sys.modules, "cloakgp.app", None)
    assert "install the extra cloakgp[app]" in run("serve").err


@pytest.mark.parametrize("link", ["https://[::1]:8765/a/b-c_d", None])
def test_serve_gives_its_link_as_json_once_it_listens_and_is_stopped_in_peace(app_that, link):
    def serve(announce, **given):
        if announce is not None:
            announce(link)
        raise KeyboardInterrupt

    app_that(serve)
    assert good("serve --json").data == {"link": link}
    answer = good("serve")
    assert "Ctrl-C stops it" in answer.err
    assert answer.out.endswith("stopped.\n")


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
    def serve(**given):
        raise error

    app_that(serve)
    result = run("serve --json")
    assert result.code == result.data["exit_code"] == code
    assert words in result.data["error"]


# Extras


def test_without_the_extra_the_command_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        cloakgp.cli.main()
    assert end.value.code == 2
    assert "install the extra cloakgp[cli] (in a clone: pip install '.[cli]')" in capsys.readouterr().err


def test_the_readme_lists_every_extra():
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (root / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^pip install '\.\[(\w+)\]' +# ", readme, re.M)
    assert {*listed, "dev"} == set(project["optional-dependencies"])
