"""The whole way as a user walks it: table, plan, ledger, release, prediction, check, report."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, spends, write_people
from threadpoolctl import threadpool_limits

import cloakgp
from blas_watch import watched
from cloakgp.rows import blas

SELECTING = "select data.csv --inputs age --output height --bounds 50 170 --kernel EQ(5) --noise 1 --noise 2"


def test_from_a_table_to_a_report():
    planned = good(f"{PLAN} --design posterior --plot plan.png -o plan.json")
    assert "std of the privacy noise" in planned.out
    assert "(1, 0.01)-differential privacy of y, unit: one row" in planned.out
    assert "'height' was not read" in planned.out
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")

    budget()
    released = good(RELEASE, "y\n")
    assert "left for one more release" in released.err
    assert "afterwards" in released.err
    assert "Paid for by entry 2 of 'kung'." in released.out

    Path("points.csv").write_text("age\n12.5\n30\n")
    assert "Nothing was spent" in good("predict heights.cloak points.csv -o out.csv").out
    header, *rows = Path("out.csv").read_text().splitlines()
    assert header == "age,mean,std,lower,upper"
    release = cloakgp.Release.load("heights.cloak")
    mean, std = release.predict([12.5, 30.0], return_std=True)
    table = np.array([row.split(",") for row in rows], dtype=float)
    assert np.allclose(table[:, 1:3], np.column_stack([mean, std]))
    assert np.allclose(table[:, 4] - table[:, 3], 2 * 1.959964 * std)

    assert good("verify heights.cloak").out.startswith("verified: (1, 0.01)-DP")
    assert "epsilon 1, delta 0.01" in good("show heights.cloak").out
    assert "grid:9" in good("show plan.json").out
    good("plot heights.cloak --inputs age --output height -o heights.png")
    assert Path("heights.png").read_bytes().startswith(b"\x89PNG")
    good("plot heights.cloak --noise -o noise.svg")
    assert b"<svg" in Path("noise.svg").read_bytes()
    Path("pictures").mkdir()
    good("plot heights.cloak --formats pdf,csv --dark -o pictures")
    assert {path.name for path in Path("pictures").iterdir()} == {
        "heights-prediction.pdf",
        "heights-prediction.csv",
    }
    good("export heights.cloak --csv")
    assert Path("heights.csv").read_text().splitlines()[0] == "age,released,noise_std,denoised,denoised_std"
    good("export heights.cloak --html --inputs age --output height")
    assert "height by age" in Path("heights.html").read_text()
    good(f"ledger verify {LEDGER} --release heights.cloak")


def test_every_command_speaks_json():
    budget()
    good(f"{PLAN} -o plan.json")
    Path("points.csv").write_text("age\n12.5\n")
    planned = good(f"{PLAN} --plot plan.png --json").data
    assert planned["certificate"]["epsilon"] == 1.0
    assert planned["noise_std"]["largest"] >= planned["noise_std"]["smallest"] > 0
    released = good(f"{RELEASE} --json", "y\n")
    assert released.data["spent"] is True
    assert released.data["ledger"]["entry"] == 2
    assert good("predict heights.cloak points.csv --json").data["columns"]["age"] == [12.5]
    assert good("predict heights.cloak points.csv -o out.csv --json").data["table"] == "out.csv"
    assert good("verify heights.cloak --json").data["verified"] is True
    assert good("show heights.cloak --json").data["kind"] == "predictions"
    assert good("show plan.json --json").data["settings"]["output"] == "height"
    assert good("plot heights.cloak -o a.png --json").data["picture"] == "a.png"
    assert good("export heights.cloak --csv --json").data["table"] == "heights.csv"
    assert good("export heights.cloak --html --json").data["report"] == "heights.html"
    shown = good(f"ledger show {LEDGER} --entries --json").data
    assert shown["datasets"][0]["dataset"] == "kung"
    assert [entry["kind"] for entry in shown["entries"]] == ["opened", "created", "spent"]
    assert good(f"ledger verify {LEDGER} --json").data["verified"] is True
    more = f"ledger create {LEDGER} --dataset more --epsilon 1 --delta 0.01 --json"
    assert good(more).data["left_for_release"] == pytest.approx(1.0, rel=1e-6)
    failed = run(f"{more}")
    assert failed.data == {"error": failed.data["error"], "exit_code": 4}
    assert "is in this ledger already" in failed.data["error"]


def test_parquet_is_read_and_written_as_csv_is():
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv("data.csv"), "data.parquet")
    good(f"{PLAN} -o plan.json")
    good(f"{PLAN.replace('data.csv', 'data.parquet')} -o other.json")
    assert Path("plan.json").read_bytes() == Path("other.json").read_bytes()
    good("release plan.json data.parquet --no-ledger --yes -o heights.cloak")
    good("predict heights.cloak grid:5 --inputs age -o out.parquet")
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["age", "mean", "std", "lower", "upper"]
    assert table.num_rows == 5


def test_two_inputs_and_points_from_a_file():
    rng = np.random.default_rng(0)
    rows = [",".join(f"{v:.3f}" for v in row) for row in rng.uniform(0, 1, (30, 3))]
    Path("homes.csv").write_text("\n".join(["lat,price,lon", *rows]))
    model = '--bounds 0 1 --kernel "Matern32([0.3, 0.5], variance=0.1)" --noise 0.05'
    line = f"plan homes.csv --inputs lat,lon --output price {model} --epsilon 1 --delta 0.01"
    good(f"{line} --at grid:4 --plot plan.png -o grid.json")
    assert good("show grid.json --json").data["certificate"]["n_rows"] == 30
    Path("points.csv").write_text("lon,lat\n0.1,0.2\n0.5,0.6\n0.9,0.1\n")
    good(f"{line} --at points.csv -o plan.json")
    assert json.loads(Path("plan.json").read_text())["settings"]["at"] == [[0.2, 0.1], [0.6, 0.5], [0.1, 0.9]]
    good("release plan.json homes.csv --no-ledger --yes -o homes.cloak")
    asked = good("predict homes.cloak points.csv --inputs lat,lon --json").data["columns"]
    assert asked["lat"] == [0.2, 0.6, 0.1]
    good("export homes.cloak --html --inputs lat,lon --output price")
    assert Path("homes.html").read_text().count("<figure>") == 4


def test_select_then_plan_with_what_was_chosen():
    budget()
    line = (
        "select data.csv --inputs age --output height --bounds 50 170 --kernel 'EQ(5, variance=625)' "
        "--kernel 'EQ(20, variance=625)' --noise 100 --noise 196 --epsilon 0.3 "
        "--then-at grid:5 --then-epsilon 0.9 --then-delta 0.01"
    )
    dry = good(f"{line} --dry-run --json").data
    assert dry["choice"] is None
    assert dry["certificate"]["n_candidates"] == 4
    assert spends() == 0
    first = good(f"{line} {LEDGER} --dataset kung --yes -o chosen.json --json").data
    again = good(f"{line} {LEDGER} --dataset kung --yes --json").data
    assert (first["spent"], again["spent"]) == (True, False)
    assert again["choice"] == first["choice"] == json.loads(Path("chosen.json").read_text())["choice"]
    assert spends() == 1
    assert "--mean" not in good(f"{line} --no-ledger --yes").out
    text = good(f"{line} --no-ledger --yes --mean 120").out
    assert text.endswith("--bounds 50.0 170.0 --mean 120.0\n")
    model = text[text.index("--kernel") :].strip()
    good(f"plan data.csv --inputs age --output height {model} --at grid:5 --epsilon 0.9 --delta 0.01")


def test_a_kernel_may_be_spelled_otherwise_and_is_still_the_same_question():
    budget()
    line = (
        "select data.csv --inputs age --output height --bounds 50 170 --noise 100 --epsilon 0.3 "
        f"{LEDGER} --dataset kung --yes --json"
    )
    first = good(f"{line} --kernel 'EQ(5, variance=625)' --kernel 'EQ(20, variance=625)'").data
    spelled = good(
        f"{line} --kernel 'EQ( 5.0,variance=25**2)' --kernel 'EQ(2e1, variance=6.25e2)' --mean 110"
    ).data
    assert spelled["choice"] == first["choice"]
    assert (first["spent"], spelled["spent"], spends()) == (True, False, 1)


@pytest.mark.parametrize(
    "lines",
    [
        [f"{PLAN} -o plan.json", "release plan.json data.csv --no-ledger --yes -o heights.cloak"],
        [
            "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.1 -o plan.json",
            "release plan.json data.csv --no-ledger --yes -o heights.cloak",
            "verify heights.cloak",
            "predict heights.cloak grid:5",
            "plot heights.cloak -o a.png",
            "export heights.cloak --html",
            "combine heights.cloak heights.cloak --at grid:5",
        ],
        [f"{SELECTING} --epsilon 1 --no-ledger --yes"],
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


def test_what_lies_beside_the_plan_file_is_not_looked_at():
    good(f"{PLAN} -o plan.json")
    assert not Path("plan.plan").exists()
    Path("plan.plan").mkdir()  # which nobody can read
    good("release plan.json data.csv --no-ledger --yes -o a.cloak")
    assert good("verify a.cloak").out.startswith("verified: ")


def test_functions_are_shown_asked_drawn_and_exported():
    X = np.linspace(0.0, 24.0, 40)
    gp = cloakgp.GP(cloakgp.kernels.EQ(3.0, variance=0.06), noise=0.25, bounds=(0.0, 1.0))
    whole = gp.plan_function(X, epsilon=1.0, delta=0.01)
    hidden = gp.plan_function(X, epsilon=1.0, delta=0.01, bound="input-free", basis=np.linspace(0.0, 24.0, 7))
    for name, plan in (("whole.cloak", whole), ("hidden.cloak", hidden)):
        plan.release(np.sin(X) > 0).save(name)
        assert good(f"show {name} --json").data["kind"] == "function"
        assert run(f"verify {name}").code == (5 if plan is hidden else 0)
        asked = good(f"predict {name} grid:3 --json").data["columns"]
        assert asked["x"] == [0.0, 12.0, 24.0]
        good(f"plot {name} -o picture.png")
        good(f"export {name} --html")
        good(f"export {name} --csv --at grid:11 -o table.csv")
        assert len(Path("table.csv").read_text().splitlines()) == 12


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
    assert "data.csv is a file. Name a folder" in run("demo -o data.csv").err


def test_the_installed_command_in_a_process_of_its_own():
    good(f"{PLAN} -o plan.json")
    line = "release plan.json data.csv --no-ledger -o heights.cloak --json"
    declined = run(line)  # nobody there to say yes
    assert (declined.code, declined.data["exit_code"]) == (1, 1)
    command = [sys.executable, "-m", "cloakgp.cli", *shlex.split(line), "--yes"]
    released = subprocess.run(command, capture_output=True, text=True)
    assert released.returncode == 0, released.stderr
    assert json.loads(released.stdout)["release"] == "heights.cloak"
    assert cloakgp.verify("heights.cloak").epsilon == 1.0


def test_a_plan_is_the_same_whatever_the_number_of_threads():
    """Else an answer that was paid for could not be fetched again. Enough rows for threads to share work."""
    write_people(n=400)
    line, made = PLAN.replace("grid:9", "grid:200"), []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            good(f"{line} -o plan{threads}.json")
        made.append(Path(f"plan{threads}.json").read_bytes())
    assert made[0] == made[1]
