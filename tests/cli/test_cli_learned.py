"""Without a kernel the model is learned: fewer options, the same way, and a crash half-way costs nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, spends, write_people

import cloakgp
from cloakgp.plans.staged import StagedPlan
from cloakgp.workflow.plan_file import read_plan_file

ASKED = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.01"
LEARN = f"{ASKED} --stages 3 --at grid:8"


def test_from_a_table_to_a_report_with_bounds_and_a_promise_alone():
    planned = good(f"{ASKED} --plot plan.png -o plan.json")
    assert "std of the privacy noise" in planned.out
    assert "stages the release learns where" in planned.out
    assert "'height' was not read" in planned.out
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")
    shown = good("show plan.json").out
    assert "learned on the way" in shown
    assert "points that cover the inputs" in shown

    budget()
    released = good(RELEASE, "y\n")
    assert spends() == 1
    assert "On record up to entry" in released.out
    release = cloakgp.load("heights.cloak")
    assert (release.certificate.epsilon, release.certificate.delta) == (1.0, 0.01)
    assert good("verify heights.cloak").out.startswith("verified: (1, 0.01)-DP")

    Path("points.csv").write_text("age\n12.5\n30\n")
    good("predict heights.cloak points.csv -o out.csv")
    table = np.array([row.split(",") for row in Path("out.csv").read_text().splitlines()[1:]], dtype=float)
    mean, std = release.predict([12.5, 30.0], return_std=True)
    assert np.allclose(table[:, 1:3], np.column_stack([mean, std]))

    shown = good("show heights.cloak").out
    assert "what was learned:" in shown
    assert str(release.learned).splitlines()[1].strip() in shown
    assert good("show heights.cloak --json").data["model"]["learned"][0]["family"] == "EQ"
    for more in ("", "--noise"):
        good(f"plot heights.cloak --inputs age --output height {more} -o a.png")
        assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    good("export heights.cloak --csv -o heights.csv")
    header, *rows = Path("heights.csv").read_text().splitlines()
    assert header == "age,released,noise_std,denoised,denoised_std"
    assert np.allclose([float(row.split(",")[2]) for row in rows], release.noise_std)
    good("export heights.cloak --html --inputs age --output height")
    report = Path("heights.html").read_text()
    assert "What was learned" in report
    assert report.count("<figure>") == 3  # the curve, the stages, the models
    good(f"ledger verify {LEDGER} --release heights.cloak")
    good(
        f"ledger verify {LEDGER} --releases ."
    )  # the ledger's own file, with plans inside, is not one of them


def test_the_plan_is_that_of_the_library():
    good(f"{LEARN} --kernels EQ,Matern52 --inducing 12 -o plan.json")
    X = np.loadtxt("data.csv", delimiter=",", skiprows=1, usecols=1)
    gp = cloakgp.AutoGP((0, 250), kernels=("EQ", "Matern52"), stages=3, inducing=12)
    where = np.linspace(X.min(), X.max(), 8)
    expected = gp.plan(X, X_star=where, epsilon=1.0, delta=0.01)
    kept = read_plan_file("plan.json")[1].plan(X[:, None])
    assert kept.rule.prior == gp.prior
    assert kept.stages == 3
    assert len(kept.rule.support) == 12
    np.testing.assert_allclose(kept.noise_std, expected.noise_std, rtol=1e-6)
    settings = json.loads(Path("plan.json").read_text())["settings"]
    assert (settings["kernels"], settings["stages"], settings["at"]) == (["EQ", "Matern52"], 3, "grid:8")
    assert "kernel" not in settings
    assert "EQ or Matern52" in good("show plan.json").out
    budget()
    released = good(RELEASE, "y\n")
    assert "warning" not in released.err
    assert cloakgp.load("heights.cloak").plan.digest == kept.digest


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--noise 100", "--noise needs --kernel, such as"),
        ('--kernel "EQ(20)"', "--kernel needs --noise, the variance"),
        ('--kernel "EQ(20)" --noise 100', "--kernel needs --at"),
        ('--kernel "EQ(20)" --noise 100 --at grid:9 --stages 3', "--stages is for a model that is learned"),
        (
            '--kernel "EQ(20)" --noise 100 --at grid:9 --kernels EQ',
            "--kernels is for a model that is learned",
        ),
        ("--design mse", "--design needs --kernel and --noise"),
        ("--calibration analytic", "--calibration needs --kernel"),
        ("--mean 100", "--mean needs --kernel"),
        ("--approximation dtc", "--approximation needs --kernel"),
        ("--device cuda", "--device needs --kernel"),
        ("--dask local", "--dask needs --kernel"),
        ("--stages 40", "--stages must be a whole number from 1 to 12"),
        ("--kernels EQ,Nice", "--kernels must be one of 'EQ', 'Matern32', 'Matern52'; got 'Nice'"),
    ],
)
def test_options_that_do_not_go_together(more, said):
    result = run(f"{ASKED} {more} -o plan.json")
    assert result.code == 2
    assert f"cloakgp: {said}" in result.err
    assert not Path("plan.json").exists()


def test_too_many_columns_are_told_in_the_shells_words():
    names = [f"a{i}" for i in range(11)]
    rows = np.random.default_rng(0).normal(size=(20, 12)).round(3).astype(str)
    Path("wide.csv").write_text("\n".join(",".join(row) for row in [[*names, "y"], *rows]))
    asked = f"plan wide.csv --inputs {','.join(names)} --output y --bounds 0 1 --epsilon 1 --delta 0.01"
    said = run(asked).err
    assert "--inputs must have at most 10 columns" in said
    assert "give --kernel and --noise" in said


def crash_after(monkeypatch, stages):
    """The program dies once it has measured so many stages."""
    left, measure = [stages], StagedPlan._measure_stage

    def dying(self, *arguments):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return measure(self, *arguments)

    monkeypatch.setattr(StagedPlan, "_measure_stage", dying)


@pytest.mark.parametrize("answered", [0, 2])
def test_a_release_that_died_half_way_goes_on_for_nothing(monkeypatch, answered):
    budget()
    good(f"{LEARN} -o plan.json")
    with monkeypatch.context() as dying:
        crash_after(dying, answered)
        stopped = run(f"{RELEASE} --yes")
        assert stopped.code == 130
        assert "stopped after it was paid for" in stopped.err
    assert not Path("heights.cloak").exists()
    assert spends() == 1
    again = good(RELEASE)  # without a question: it is paid for
    assert "paid for before, and not finished" in again.err
    assert "goes on where it stopped" in again.err
    assert spends() == 1
    assert len(cloakgp.load("heights.cloak").stages) == 3
    assert good("verify heights.cloak").code == 0
    once = Path("heights.cloak").read_bytes()
    known = good(RELEASE)
    assert "This was answered before" in known.err
    assert Path("heights.cloak").read_bytes() == once
    assert spends() == 1


def test_a_column_that_changes_half_way_is_not_said_to_cost_nothing(monkeypatch):
    budget()
    good(f"{LEARN} -o plan.json")
    measure = StagedPlan._measure_stage

    def changed(self, *arguments):
        answer = measure(self, *arguments)
        write_people(heights=["secret"] * 40)
        return answer

    monkeypatch.setattr(StagedPlan, "_measure_stage", changed)
    result = run(f"{RELEASE} --yes")
    assert result.code == 1
    assert "stopped after it was paid for" in result.err
    assert "nothing was spent" not in result.err
    assert "secret" not in result.err + result.out
    assert spends() == 1


def test_an_unusable_column_is_found_out_before_anything_is_paid():
    budget()
    good(f"{LEARN} -o plan.json")
    write_people(heights=["secret"] * 40)
    result = run(f"{RELEASE} --yes")
    assert result.code == 1
    assert "nothing was spent" in result.err
    assert "secret" not in result.err + result.out
    assert spends() == 0


def test_a_cluster_has_nothing_to_do():
    good(f"{LEARN} -o plan.json")
    result = run("release plan.json data.csv --no-ledger --yes --dask local -o a.cloak")
    assert result.code == 2
    assert "a model that is learned, is worked out on this machine" in result.err


def test_another_answer_is_a_new_spend():
    budget()
    good(f"{LEARN} -o plan.json")
    good(f"{RELEASE} --yes")
    good(f"release plan.json data.csv {LEDGER} --dataset kung --again 2 --yes -o second.cloak")
    assert spends() == 2
    first, second = (cloakgp.load(name) for name in ("heights.cloak", "second.cloak"))
    assert not np.array_equal(first.stages[0].answer, second.stages[0].answer)


def test_a_model_that_is_set_has_no_stages():
    good(f"{PLAN} -o plan.json")
    assert json.loads(Path("plan.json").read_text())["settings"]["design"] == "mse"
    assert "learned" not in good("show plan.json").out
