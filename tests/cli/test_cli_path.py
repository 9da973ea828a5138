"""The way as a user walks it, beside what every kind does: JSON, selections, functions, other files."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, spends

import cloakgp
from blas_watch import watched
from cloakgp.data import blas
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.planning import plan_from

SELECTING = "select data.csv --inputs age --output height --bounds 50 170 --epsilon 0.3"
FREE = "release plan.json data.csv --no-ledger --yes -o heights.cloak"


def test_every_command_speaks_json():
    budget()
    Path("points.csv").write_text("age\n12.5\n")
    planned = good(f"{PLAN} --plot plan.png -o plan.json --json").data
    assert planned["certificate"]["epsilon"] == 1.0
    assert planned["noise_std"]["largest"] >= planned["noise_std"]["smallest"] > 0
    released = good(f"{RELEASE} --json", "y\n").data
    assert (released["spent"], released["ledger"]["entry"]) == (True, 2)
    more = f"ledger create {LEDGER} --dataset more --epsilon 1 --delta 0.01 --json"
    answers = {
        "predict heights.cloak points.csv -o out.csv": ("table", "out.csv"),
        "verify heights.cloak": ("verified", True),
        "show heights.cloak": ("kind", "predictions"),
        "show plan.json": ("kind", "plan"),
        "plot heights.cloak -o a.png": ("picture", "a.png"),
        "export heights.cloak --csv": ("table", "heights.csv"),
        "export heights.cloak --html": ("report", "heights.html"),
        f"ledger verify {LEDGER}": ("verified", True),
        more: ("left_for_release", pytest.approx(1.0, rel=1e-6)),
    }
    for line, (key, value) in answers.items():
        assert good(f"{line} --json").data[key] == value, line
    assert good("predict heights.cloak points.csv --json").data["columns"]["age"] == [12.5]
    shown = good(f"ledger show {LEDGER} --entries --json").data
    assert shown["datasets"][0]["dataset"] == "kung"
    assert [entry["kind"] for entry in shown["entries"]] == ["opened", "created", "spent", "created"]
    failed = run(more)
    assert failed.data == {"error": failed.data["error"], "exit_code": 4}


def test_pictures_come_in_every_form():
    good(f"{PLAN} --plot plan.svg -o plan.json")
    assert b"<svg" in Path("plan.svg").read_bytes()
    good(FREE)
    Path("pictures").mkdir()
    good("plot heights.cloak --formats pdf,csv --dark -o pictures")
    names = {path.name for path in Path("pictures").iterdir()}
    assert names == {"heights-prediction.pdf", "heights-prediction.csv"}
    good("plot heights.cloak --formats png -o new/")  # as in its help: a folder that is not there yet
    assert [path.name for path in Path("new").iterdir()] == ["heights-prediction.png"]
    good("plot heights.cloak --dark -o dark.svg")
    good("plot heights.cloak -o light.svg")
    papers = [
        re.search(r"<path[^>]* style=\"fill: (#[0-9a-f]+)", Path(f).read_text())[1]
        for f in ("light.svg", "dark.svg")
    ]
    assert papers[0] == "#ffffff" > papers[1]


def test_parquet_is_read_and_written_as_csv_is():
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv("data.csv"), "data.parquet")
    good(f"{PLAN} -o plan.json")
    good(f"{PLAN.replace('data.csv', 'data.parquet')} -o other.json")
    assert Path("plan.json").read_bytes() == Path("other.json").read_bytes()
    good(FREE.replace("data.csv", "data.parquet"))
    good("predict heights.cloak grid:5 --inputs age -o out.parquet")
    table = parquet.read_table("out.parquet")
    assert (table.column_names, table.num_rows) == (["age", "mean", "std", "lower", "upper"], 5)


def test_two_inputs_and_points_from_a_file():
    rng = np.random.default_rng(0)
    rows = [",".join(f"{v:.3f}" for v in row) for row in rng.uniform(0, 1, (30, 3))]
    Path("homes.csv").write_text("\n".join(["lat,price,lon", *rows]))
    model = '--bounds 0 1 --kernel "Matern32([0.3, 0.5], variance=0.1)" --noise 0.05'
    line = f"plan homes.csv --inputs lat,lon --output price {model} --epsilon 1 --delta 0.01"
    good(f"{line} --at grid:4 --plot plan.png -o grid.json")
    Path("points.csv").write_text("lon,lat\n0.1,0.2\n0.5,0.6\n0.9,0.1\n")
    good(f"{line} --at points.csv -o plan.json")
    assert json.loads(Path("plan.json").read_text())["settings"]["at"] == [[0.2, 0.1], [0.6, 0.5], [0.1, 0.9]]
    good("release plan.json homes.csv --no-ledger --yes -o homes.cloak")
    assert good("predict homes.cloak points.csv --inputs lat,lon --json").data["columns"]["lat"] == [
        0.2,
        0.6,
        0.1,
    ]
    good("export homes.cloak --html --inputs lat,lon --output price")
    assert Path("homes.html").read_text().count("<figure>") == 4


@pytest.mark.parametrize("more", ["--inducing 12", "--kernels EQ,Matern52"])
def test_the_plan_of_a_learned_model_is_that_of_the_library(more):
    learn = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.01 --stages 3"
    good(f"{learn} --at grid:8 {more} -o plan.json")
    X = np.loadtxt("data.csv", delimiter=",", skiprows=1, usecols=1)
    options = {"inducing": 12} if "inducing" in more else {"kernels": ("EQ", "Matern52")}
    gp = cloakgp.AutoGP((0, 250), stages=3, **options)
    expected = gp.plan(X, X_star=np.linspace(X.min(), X.max(), 8), epsilon=1.0, delta=0.01)
    settings = PlanFile.read("plan.json").settings
    kept = plan_from(settings, X[:, None])
    assert (kept.rule.prior, kept.stages, settings.at) == (gp.prior, 4, "grid:8")
    np.testing.assert_allclose(kept.noise_std, expected.noise_std, rtol=1e-6)
    good(FREE)
    release = cloakgp.load("heights.cloak")
    assert release.plan.digest == kept.digest
    shown = good("show heights.cloak").out
    assert str(release.learned).splitlines()[1].strip() in shown
    assert good("show heights.cloak --json").data["model"]["learned"][0]["family"] in gp.prior.kernels


def test_select_then_plan_with_what_was_chosen():
    budget()
    line = (
        f"{SELECTING} --kernel 'EQ(5, variance=625)' --kernel 'EQ(20, variance=625)' --noise 100 --noise 196"
    )
    line += " --then-at grid:5 --then-epsilon 0.9 --then-delta 0.01"
    dry = good(f"{line} --dry-run --json").data
    assert (dry["choice"], dry["certificate"]["n_candidates"], spends()) == (None, 4, 0)
    first = good(f"{line} {LEDGER} --dataset kung --yes -o chosen.json --json").data
    again = good(f"{line} {LEDGER} --dataset kung --yes --json").data
    assert (first["spent"], again["spent"], spends()) == (True, False, 1)
    assert again["choice"] == first["choice"] == json.loads(Path("chosen.json").read_text())["choice"]
    assert "--mean" not in good(f"{line} --no-ledger --yes").out
    text = good(f"{line} --no-ledger --yes --mean 120").out
    assert text.endswith("--bounds 50.0 170.0 --mean 120.0\n")
    model = text[text.index("--kernel") :].strip()
    good(f"plan data.csv --inputs age --output height {model} --at grid:5 --epsilon 0.9 --delta 0.01")


def test_a_kernel_may_be_spelled_otherwise_and_is_still_the_same_question():
    budget()
    line = f"{SELECTING} --noise 100 {LEDGER} --dataset kung --yes --json"
    first = good(f"{line} --kernel 'EQ(5, variance=625)' --kernel 'EQ(20, variance=625)'").data
    other = "--kernel 'EQ( 5.0,variance=25**2)' --kernel 'EQ(2e1, variance=6.25e2)' --mean 110"
    spelled = good(f"{line} {other}").data
    assert spelled["choice"] == first["choice"]
    assert (first["spent"], spelled["spent"], spends()) == (True, False, 1)


def test_functions_are_shown_asked_drawn_and_exported():
    X = np.linspace(0.0, 24.0, 40)
    gp = cloakgp.GP(cloakgp.kernels.EQ(3.0, variance=0.06), noise=0.25, bounds=(0.0, 1.0))
    whole = gp.plan_function(X, epsilon=1.0, delta=0.01)
    hidden = gp.plan_function(X, epsilon=1.0, delta=0.01, bound="input-free", basis=np.linspace(0.0, 24.0, 7))
    for name, plan in (("whole.cloak", whole), ("hidden.cloak", hidden)):
        plan.release(np.sin(X) > 0).save(name)
        assert good(f"show {name} --json").data["kind"] == "function"
        assert run(f"verify {name}").code == (5 if plan is hidden else 0)
        assert good(f"predict {name} grid:3 --json").data["columns"]["x"] == [0.0, 12.0, 24.0]
        good(f"plot {name} -o picture.png")
        good(f"export {name} --html")
        good(f"export {name} --csv --at grid:11 -o table.csv")
        assert len(Path("table.csv").read_text().splitlines()) == 12


@pytest.mark.parametrize(
    "lines",
    [
        [f"{PLAN} -o plan.json", FREE],
        [
            "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --stages 2 -o plan.json",
            FREE,
        ],
        [f"{SELECTING} --kernel EQ(5) --noise 1 --noise 2 --no-ledger --yes"],
    ],
    ids=["known", "learned", "select"],
)
def test_every_command_has_one_blas_thread(lines, monkeypatch):
    """Also for a large plan: another number of threads could give another one, for which nobody paid."""
    monkeypatch.setattr(blas, "LARGE", 0)
    with watched() as several:
        for line in lines:
            run(line)
            assert several == set(), line


def test_the_demo_runs(monkeypatch):
    """It is run by tests/test_demo.py; what it prints is no JSON."""

    def demo(arguments):
        option, folder = arguments
        assert option == "--output"
        Path(folder).mkdir(exist_ok=True)
        (Path(folder) / "heights.cloak").touch()
        print("3. Save, and verify as a reader would")

    monkeypatch.setattr("cloakgp.demo.main", demo)
    assert "3. Save, and verify as a reader would" in good("demo -o shown").out
    assert str(Path("shown") / "heights.cloak") in good("demo -o shown --json").data["files"]


def test_the_installed_command_in_a_process_of_its_own():
    good(f"{PLAN} -o plan.json")
    line = f"{FREE.replace('--yes ', '')} --json"
    declined = run(line)  # nobody there to say yes
    assert (declined.code, declined.data["exit_code"]) == (1, 1)
    command = [sys.executable, "-m", "cloakgp.cli", *shlex.split(line), "--yes"]
    released = subprocess.run(command, capture_output=True, text=True)
    assert released.returncode == 0, released.stderr
    assert json.loads(released.stdout)["release"] == "heights.cloak"
    assert cloakgp.verify("heights.cloak").epsilon == 1.0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--epsilon 1", "delta is 0.001: the largest power of ten below 1/(10 N), for N = 40 rows."),
        ("--epsilon 6 --delta 0.1", "warning: epsilon 6 is a weak promise"),
        ("--epsilon 1 --delta 0.1", "warning: delta 0.1 is a weak promise to 40"),
    ],
)
def test_what_must_not_be_asked_for_is_said_once(more, said):
    planned = good(f"plan data.csv --inputs age --output height --bounds 0 250 --stages 2 {more} --json")
    assert planned.err.count(said) == 1
    assert planned.data["certificate"]["delta"] == (0.1 if "delta" in more else 1e-3)
