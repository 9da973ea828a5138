"""Many rows on the command line: inducing inputs, inputs that no file holds, devices and clusters."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, PLAN, budget, good, run, write_people

import cloakgp
from cloakgp.cli import planning
from cloakgp.data import cells
from cloakgp.release import encoding
from cloakgp.workflow.inputs import connected

SPARSE = f"{PLAN} --inducing 6"
RELEASE = "release plan.json data.csv --no-ledger --yes -o heights.cloak"
CLUSTER = "release plan.json data.parquet --no-ledger --yes --dask local --overwrite -o heights.cloak"


@pytest.fixture
def streaming(monkeypatch):
    """As with very many rows: they are in cells, and no file holds the inputs."""
    monkeypatch.setattr(cells, "MOST_CELLS", 16)
    monkeypatch.setattr(encoding, "LARGEST_INPUTS", 100)
    write_people(n=60)


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


def test_inducing_inputs_of_ones_own_are_kept_in_the_plan_file():
    Path("places.csv").write_text("age\n10\n40\n70\n")
    good(f"{PLAN} --inducing places.csv -o plan.json")
    assert settings()["inducing"] == [[10.0], [40.0], [70.0]]
    assert re.search(r"inducing +3", good("show plan.json").out)
    Path("places.csv").unlink()
    good(RELEASE)
    assert cloakgp.load("heights.cloak").plan.gp.inducing.tolist() == [[10.0], [40.0], [70.0]]
    model = good("show heights.cloak --json").data["model"]
    assert (model["inducing"], model["approximation"]) == (3, "dtc")


@pytest.mark.torch
def test_a_device_is_kept_in_the_plan_file():
    good(f"{PLAN} --device cpu -o plan.json")
    assert settings()["device"] == "cpu"
    assert "cpu" in good("show plan.json").out
    assert "warning" not in good(RELEASE).err
    assert run(f"{PLAN} --device nowhere").code == 2


@pytest.mark.parametrize("learned", [False, True])
def test_a_release_without_its_inputs_is_used_like_any_other(streaming, learned):
    """A file holds only the digest of the inputs, which verify asks for; what is learned has cells."""
    write_distinct()
    learn = (
        "plan data.parquet --inputs age --output height --bounds 0 250 --epsilon 2 --delta 0.01 --stages 2"
    )
    good(f"{learn if learned else SPARSE} --plot plan.png -o plan.json")
    budget()
    release = f"release plan.json data.parquet {LEDGER} --dataset kung --yes -o heights.cloak"
    assert "warning" not in good(release.replace("parquet", "csv" if not learned else "parquet")).err
    assert cloakgp.load("heights.cloak").plan.X is None
    assert good("show heights.cloak --json").data["shows_inputs"] is False
    part = run("verify heights.cloak")
    assert (part.code, "IN PART" in part.out, "(give --inputs-from)" in part.out) == (5, True, True)
    found = good("verify heights.cloak --allow-partial --json").data
    assert (found["verified"], found["proven_delta"] is None, len(found["unchecked"])) == (False, False, 1)
    for table in ("data.csv", "data.parquet"):  # the file knows its inputs' names
        for more in ("", "--inputs age"):
            assert good(f"verify heights.cloak --inputs-from {table} {more}").out.startswith("verified: ")
    Path("ages.csv").write_text("age\n" + "\n".join(map(str, range(60))))
    assert run("verify heights.cloak --inputs-from ages.csv").code == 1
    assert len(good("predict heights.cloak grid:3 --json").data["columns"]["mean"]) == 3
    for line in ("plot {} -o a.png", "plot {} --noise -o b.png", "export {} --csv", "export {} --html"):
        good(line.format("heights.cloak"))
    report = Path("heights.html").read_text()
    for said in ("verified in part", "cloakgp verify heights.cloak --inputs-from", "cells that they are in"):
        assert said in report
    assert ("cells of the inputs" in report) == learned


# Clusters


@pytest.fixture
def kept_there(monkeypatch):
    """Fail if a vector, which only the private column is, becomes an array of this process."""
    dask_array = pytest.importorskip("dask.array")
    whole = dask_array.Array.__array__

    def only_inputs(array, *rest, **options):
        assert array.ndim == 2, "the private column came here"
        return whole(array, *rest, **options)

    return lambda: monkeypatch.setattr(dask_array.Array, "__array__", only_inputs)


def test_a_cluster_releases_and_keeps_the_outcomes(streaming, kept_there):
    write_distinct()
    Path("parts").mkdir()
    as_parquet("parts/a.parquet")
    good(f"{SPARSE} -o plan.json")
    kept_there()
    for table in ("data.parquet", "parts"):
        assert "warning" not in good(CLUSTER.replace("data.parquet", table)).err
        assert "integer sensitivity" in good("verify heights.cloak --inputs-from data.csv --inputs age").out
        assert np.isfinite(cloakgp.load("heights.cloak").mean).all()


def test_an_unusable_column_on_a_cluster_gives_the_one_message(streaming):
    pytest.importorskip("distributed")
    import pyarrow

    write_distinct()
    good(f"{SPARSE} -o plan.json")
    for bad in (["tall 123.4567"] * 60, [None] * 60):
        as_parquet(height=pyarrow.array(bad))
        refused = run(CLUSTER)
        assert (refused.code, "the output column cannot be used" in refused.err) == (1, True)
        assert "123.4567" not in refused.err + refused.out
    assert not Path("heights.cloak").exists()


def test_a_cluster_with_nothing_to_do_or_that_is_not_there_is_said(monkeypatch):
    pytest.importorskip("distributed")
    as_parquet()
    monkeypatch.setattr(planning, "connected", partial(connected, patience=0.2))
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        failed = run(f"{SPARSE.replace('data.csv', 'data.parquet')} --dask {address}")
        assert (failed.code, "--dask: there is no scheduler at" in failed.err) == (2, True)
    good("plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --stages 2 -o plan.json")
    failed = run(f"{RELEASE} --dask local")
    assert (failed.code, failed.err.startswith("cloakgp: --dask needs --inducing")) == (2, True)
