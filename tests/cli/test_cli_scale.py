"""Many rows on the command line: inducing inputs, inputs that no file holds, devices and clusters."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, budget, good, run, write_people

import cloakgp
from cloakgp import Release
from cloakgp.plans import encoding, out_of_core, staged_encoding
from cloakgp.workflow import cluster

SPARSE = f"{PLAN} --inducing 6"
RELEASE = "release plan.json data.csv --no-ledger --yes -o heights.cloak"


@pytest.fixture
def streaming(monkeypatch):
    """As with very many rows: measurements are recipes, and no file holds the inputs."""
    monkeypatch.setattr(out_of_core, "DENSE", 50)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)


def as_parquet(name="data.parquet", rows=16, **changes):
    from pyarrow import csv, parquet

    table = csv.read_csv("data.csv")
    for column, values in changes.items():
        table = table.set_column(table.column_names.index(column), column, values)
    parquet.write_table(table, name, row_group_size=rows)


def write_distinct():
    """Sixty people of sixty ages, as both kinds of table."""
    rows = [f"person {i},{1.25 * i},{100 + i}" for i in range(60)]
    Path("data.csv").write_text("\n".join(["name,age,height", *rows]) + "\n")
    as_parquet()


def settings():
    return json.loads(Path("plan.json").read_text())["settings"]


def test_inducing_inputs_from_the_plan_to_the_report():
    planned = good(f"{SPARSE} --approximation fitc --plot plan.png -o plan.json")
    assert "from 40 rows through 6 inducing inputs (fitc)" in planned.out
    assert (settings()["inducing"], settings()["approximation"]) == (6, "fitc")
    assert "6 inducing inputs (fitc)" in good("show plan.json").out
    released = good(RELEASE)
    assert "warning" not in released.err
    assert Release.load("heights.cloak").plan.gp.inducing.shape == (6, 1)
    assert "6 inducing inputs (fitc)" in good("show heights.cloak").out
    shown = good("show heights.cloak --json").data["model"]
    assert (shown["inducing"], shown["approximation"]) == (6, "fitc")
    good("export heights.cloak --html")
    assert "6 inducing inputs (fitc)" in Path("heights.html").read_text()


def test_an_exact_plan_says_nothing_of_them():
    assert "inducing" not in good(f"{PLAN} -o plan.json").out
    assert "inducing" not in good("show plan.json").out
    good(RELEASE)
    assert "inducing" not in good("show heights.cloak").out
    assert good("show heights.cloak --json").data["model"]["inducing"] is None


def test_inducing_inputs_of_ones_own_are_kept_in_the_plan_file():
    Path("places.csv").write_text("age\n10\n40\n70\n")
    good(f"{PLAN} --inducing places.csv -o plan.json")
    assert settings()["inducing"] == [[10.0], [40.0], [70.0]]
    assert "3 inducing inputs (dtc)" in good("show plan.json").out
    Path("places.csv").unlink()
    good(RELEASE)
    assert Release.load("heights.cloak").plan.gp.inducing.tolist() == [[10.0], [40.0], [70.0]]
    Path("others.csv").write_text("place\n1\n")
    assert "no column 'age'" in run(f"{PLAN} --inducing others.csv").err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--inducing 0", "inducing must be at least 1"),
        ("--inducing 1.5", "1.5: there is no such file"),
        ("--inducing 6 --approximation best", "approximation must be one of"),
        ("--inducing nowhere.csv", "nowhere.csv: there is no such file"),
        ("--inducing 6 --device cpu", "leave --device out"),
        ("--inducing data.csv -o data.csv", "data.csv is read by this command"),
        ("--dask local", "--dask needs --inducing"),
        ("--inducing 6 --dask local", "must be Parquet, which workers can read in parts. Convert it first."),
    ],
)
def test_what_does_not_go_together_is_said(options, words):
    failed = run(f"{PLAN} {options}")
    assert failed.code == 2
    assert words in failed.err


@pytest.mark.torch
def test_a_device_is_kept_in_the_plan_file():
    good(f"{PLAN} --device cpu -o plan.json")
    assert settings()["device"] == "cpu"
    assert "cpu" in good("show plan.json").out
    assert "warning" not in good(RELEASE).err
    assert run(f"{PLAN} --device nowhere").code == 2


def test_a_release_without_its_inputs_is_used_like_any_other(streaming):
    write_people(n=60)
    good(f"{SPARSE} --plot plan.png -o plan.json")
    assert "warning" not in good(RELEASE).err
    assert Release.load("heights.cloak").plan.X is None
    assert good("show heights.cloak --json").data["shows_inputs"] is False
    asked = good("predict heights.cloak grid:3 --json").data["columns"]
    assert len(asked["mean"]) == 3
    good("plot heights.cloak -o a.png")
    good("plot heights.cloak --noise -o b.png")
    good("export heights.cloak --csv")
    good("export heights.cloak --html")
    report = Path("heights.html").read_text()
    assert "verified in part" in report
    assert "cloakgp verify heights.cloak --inputs-from" in report
    assert "sums over them and their digest are in the release file" in report


def test_inputs_for_a_check_are_given_as_a_table(streaming):
    write_people(n=60)
    good(f"{SPARSE} -o plan.json")
    good(RELEASE)
    part = run("verify heights.cloak")
    assert part.code == 5
    assert part.out.startswith("verified IN PART: the sensitivity was not checked")
    assert "(give --inputs-from)" in part.out
    assert run("verify heights.cloak --json").code == 5
    found = good("verify heights.cloak --allow-partial --json").data
    assert (found["verified"], found["complete"], found["proven_delta"]) == (False, False, None)
    assert len(found["unchecked"]) == 1
    as_parquet()
    for table in ("data.csv", "data.parquet"):
        checked = good(f"verify heights.cloak --inputs-from {table} --inputs age").out
        assert "integer sensitivity, from X" in checked
    Path("ages.csv").write_text("age\n" + "\n".join(map(str, range(60))))
    wrong = run("verify heights.cloak --inputs-from ages.csv")  # its one column needs no name
    assert (wrong.code, "its inputs are not X" in wrong.err) == (1, True)
    named = good("verify heights.cloak --inputs-from data.csv").out  # the file knows its inputs' names
    assert "integer sensitivity, from X" in named


def test_inputs_are_compared_with_those_that_a_release_holds():
    good(f"{PLAN} -o plan.json")
    good(RELEASE)
    assert good("verify heights.cloak --inputs-from data.csv --inputs age").out.startswith("verified: ")
    write_people("others.csv", n=41)
    refused = run("verify heights.cloak --inputs-from others.csv --inputs age")
    assert (refused.code, "its inputs are not X" in refused.err) == (1, True)


def test_other_inputs_than_planned_are_refused(streaming):
    write_people(n=60)
    good(f"{SPARSE} -o plan.json")
    text = Path("data.csv").read_text().replace("person 59,", "person 59,1")
    Path("data.csv").write_text(text)
    refused = run(RELEASE)
    assert (refused.code, "not those that the plan was made for" in refused.err) == (1, True)


def test_a_cluster_plans_to_the_last_bit_what_this_machine_does(streaming):
    pytest.importorskip("distributed")
    write_people(n=60)
    as_parquet()
    good(f"{SPARSE} -o plan.json")
    good(f"{SPARSE.replace('data.csv', 'data.parquet')} --dask local -o cluster.json")
    assert Path("plan.json").read_bytes() == Path("cluster.json").read_bytes()


@pytest.mark.parametrize("rows", [40, 60])
def test_small_and_merged_tables_are_released_on_a_cluster_too(rows, monkeypatch):
    """A measurement that is a matrix; and a recipe for rows of which some are equal."""
    dask_array = pytest.importorskip("dask.array")
    monkeypatch.setattr(out_of_core, "DENSE", 50 if rows == 60 else 10_000)
    write_people(n=rows)
    as_parquet()
    good(f"{SPARSE} -o plan.json")
    keep_outcomes_there(dask_array, monkeypatch)
    good("release plan.json data.parquet --no-ledger --yes --dask local -o heights.cloak")
    assert "verified" in good("verify heights.cloak").out


def keep_outcomes_there(dask_array, monkeypatch):
    """Fail if a vector, which only the private column is, becomes an array of this process."""
    whole = dask_array.Array.__array__

    def only_inputs(array, *rest, **options):
        assert array.ndim == 2, "the private column came here"
        return whole(array, *rest, **options)

    monkeypatch.setattr(dask_array.Array, "__array__", only_inputs)


def test_a_cluster_releases_and_keeps_the_outcomes(streaming, monkeypatch):
    dask_array = pytest.importorskip("dask.array")
    write_distinct()
    Path("parts").mkdir()
    as_parquet("parts/a.parquet")
    good(f"{SPARSE} -o plan.json")
    keep_outcomes_there(dask_array, monkeypatch)
    for table in ("data.parquet", "parts"):
        line = f"release plan.json {table} --no-ledger --yes --dask local --overwrite -o heights.cloak"
        assert "warning" not in good(line).err
        assert "integer sensitivity" in good("verify heights.cloak --inputs-from data.csv --inputs age").out
        mean = Release.load("heights.cloak").mean
        assert np.isfinite(mean).all()


def test_an_unusable_column_on_a_cluster_gives_the_one_message(streaming):
    pytest.importorskip("distributed")
    import pyarrow

    write_distinct()
    good(f"{SPARSE} -o plan.json")
    line = "release plan.json data.parquet --no-ledger --yes --dask local -o heights.cloak"
    for bad in (["tall 123.4567"] * 60, [None] * 60):
        as_parquet(height=pyarrow.array(bad))
        refused = run(line)
        assert (refused.code, "the output column cannot be used" in refused.err) == (1, True)
        assert "123.4567" not in refused.err + refused.out
    assert not Path("heights.cloak").exists()


def test_a_cluster_that_is_not_there_is_said(monkeypatch):
    pytest.importorskip("distributed")
    as_parquet()
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    line = SPARSE.replace("data.csv", "data.parquet")
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        failed = run(f"{line} --dask {address}")
        assert (failed.code, "--dask: there is no scheduler at" in failed.err) == (2, True)


def test_a_cluster_needs_its_extra(monkeypatch):
    as_parquet()
    monkeypatch.setitem(sys.modules, "distributed", None)
    failed = run(f"{SPARSE.replace('data.csv', 'data.parquet')} --dask local")
    assert (failed.code, "install the extra cloakgp[dask]" in failed.err) == (2, True)


def test_an_approximation_without_inducing_inputs_is_refused():
    write_people()
    refused = run(f"{PLAN} --approximation fitc -o plan.json")
    assert (refused.code, "--approximation fitc needs --inducing" in refused.err) == (2, True)
    assert not Path("plan.json").exists()


def test_a_model_is_learned_from_rows_that_stay_in_their_file(streaming, monkeypatch):
    """Put into cells chunk by chunk; a file holds only the digest of the inputs, and verify asks for them."""
    monkeypatch.setattr(staged_encoding, "LARGEST_INPUTS", 100)
    write_distinct()
    learn = (
        "plan data.parquet --inputs age --output height --bounds 0 250 --epsilon 2 --delta 0.01 --stages 2"
    )
    good(f"{learn} -o plan.json")
    budget()
    good(f"release plan.json data.parquet {LEDGER} --dataset kung --yes -o heights.cloak")
    release = cloakgp.load("heights.cloak")
    assert release.plan.X is None
    partly = run("verify heights.cloak")
    assert partly.code == 5
    assert "IN PART" in partly.out
    assert good("verify heights.cloak --inputs-from data.parquet --inputs age").out.startswith("verified: ")
    good("predict heights.cloak grid:5")
    good("plot heights.cloak -o a.png")
    good("export heights.cloak --html -o a.html")
    assert "--inputs-from" in Path("a.html").read_text()
    assert "cells of the inputs" in Path("a.html").read_text()
    assert good("show heights.cloak --json").data["shows_inputs"] is False
    again = good(f"release plan.json data.parquet {LEDGER} --dataset kung -o heights.cloak")
    assert "answered before" in again.err
