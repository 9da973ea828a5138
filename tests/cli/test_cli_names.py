"""Whatever the library refuses, the message names the option that was typed, in every command that has it."""

import contextlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer
from cli_helpers import LEDGER, PLAN, RELEASE, budget, good, run, write_people

import cloakgp
from cloakgp.cli.app import app
from cloakgp.cli.exits import options_of
from cloakgp.files.labels import NAMES as LABELS
from cloakgp.kernels import EQ

MODELS = "select data.csv --inputs age --output height --bounds 50 170 --kernel EQ(5) --noise 1 --noise 2"
SELECT = f"{MODELS} --epsilon 1 {LEDGER} --dataset kung --yes"
THEN = f"{SELECT} --then-at grid:5 --then-epsilon 1 --then-delta 0.1"
LEARN = "plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 --delta 0.1"
ROWS = f"{LEARN} --protect rows"
CREATE = f"ledger create {LEDGER} --dataset mine --epsilon 1 --delta 0.1"

REFUSED = {
    "plan": {
        "bounds": f"{PLAN} --bounds 2 1",
        "kernel": f"{PLAN} --kernel ''",
        "noise": f"{PLAN} --noise 0",
        "at": f"{PLAN} --kernel EQ(1) --at far.csv",
        "epsilon": f"{PLAN} --epsilon 0",
        "delta": f"{PLAN} --delta 2",
        "design": f"{PLAN} --design best",
        "calibration": f"{PLAN} --calibration classic --epsilon 2",
        "mean": f"{PLAN} --mean nan",
        "inducing": f"{PLAN} --inducing 0",
        "approximation": f"{PLAN} --inducing 3 --approximation best",
        "device": f"{PLAN} --inducing 3 --device cpu",
        "kernels": f"{LEARN} --kernels best",
        "classes": f"{LEARN} --classes yes",
        "stages": f"{LEARN} --stages 0",
        "categories": f"{LEARN} --categories ward",
        "season": f"{LEARN} --season age week",
        "missing_inputs": f"{ROWS} --box age 0 90 --missing-inputs drop",
        "protect": f"{PLAN} --protect people",
        "within": f"{PLAN} --people name --within 2",
        "ids": f"{PLAN} --ids exact",
        "box": f"{ROWS} --box age 90 0",
        "levels": f"{ROWS} --levels age 7",
        "cells": f"{ROWS} --box age 0 90 --cells 0",
        "rows": f"{ROWS} --box age 0 90 --rows 0",
        "max_rows": f"{ROWS} --box age 0 90 --people name --max-rows 0",
        "n_people": f"{ROWS} --box age 0 90 --people name --max-rows 1 --n-people 0",
    },
    "release": {
        "ledger": f"{RELEASE} --yes --ledger nonsense",
        "dataset": f"{RELEASE} --yes --dataset ' kung'",
        "why": f"{RELEASE} --yes --why ' because'",
        "who": f"{RELEASE} --yes --who ' me'",
        "again": f"{RELEASE} --yes --again ' 2'",
        **{name: f"{RELEASE} --yes --{name} {201 * 'x'}" for name in LABELS},
    },
    "plot": {
        **{name: f"plot heights.cloak -o a.png --{name} {201 * 'x'}" for name in LABELS},
        "coordinates": "plot homes.cloak -o a.png --coordinates lon,late",
        "outline": "plot homes.cloak -o a.png --outline plan.json",
        "formats": "plot heights.cloak -o . --formats gif",
    },
    "export": {
        **{name: f"export heights.cloak --html -o a.html --{name} {201 * 'x'}" for name in LABELS},
        "ledger": "export heights.cloak --html -o a.html --ledger nonsense",
        "coordinates": "export homes.cloak --html -o a.html --coordinates lon,late",
        "outline": "export homes.cloak --html -o a.html --outline plan.json",
    },
    "select": {
        "categories": f"{MODELS} --epsilon 1 --no-ledger --categories ward",
        "season": f"{MODELS} --epsilon 1 --no-ledger --season age week",
        "bounds": f"{SELECT} --bounds 2 1",
        "kernel": f"{SELECT} --kernel ''",
        "noise": f"{SELECT} --noise 0",
        "epsilon": f"{SELECT} --epsilon 0",
        "mean": f"{SELECT} --mean nan",
        "folds": f"{SELECT} --folds 1",
        "loss": f"{SELECT} --loss best",
        "loss_clip": f"{SELECT} --loss-clip 0",
        "then_epsilon": f"{THEN} --then-epsilon 0",
        "then_delta": f"{THEN} --then-delta 2",
        "then_design": f"{THEN} --then-design best",
        "ledger": f"{SELECT} --ledger nonsense",
        "dataset": f"{SELECT} --dataset ' kung'",
        "why": f"{SELECT} --why ' because'",
        "who": f"{SELECT} --who ' me'",
        "again": f"{SELECT} --again ' 2'",
        "within": f"{MODELS} --epsilon 1 --no-ledger --people name --within 2",
        "ids": f"{MODELS} --epsilon 1 --no-ledger --ids exact",
    },
    "predict": {"level": "predict heights.cloak grid:5 --level 2"},
    "combine": {"level": "combine heights.cloak heights.cloak --at grid:5 --level 2"},
    "verify": {"signed_by": "verify heights.cloak --signed-by abc"},
    "serve": {"data": "serve --data .", "ledger": "serve --ledger nonsense"},
    "ledger create": {
        "ledger": f"{CREATE} --ledger nonsense",
        "dataset": f"{CREATE} --dataset ' mine'",
        "epsilon": f"{CREATE} --epsilon 0",
        "delta": f"{CREATE} --delta 2",
        "pure": f"{CREATE} --pure 2",
        "unit": f"{CREATE} --unit somebody",
        "private": f"{CREATE} --unit 'one person' --people name --private name",
        "largest_delta": f"{CREATE} --largest-delta 2",
        "ids": f"{CREATE} --ids exact",
        "why": f"{CREATE} --why ' because'",
        "who": f"{CREATE} --who ' me'",
    },
    "ledger allow": {
        "ledger": "ledger allow --ledger nonsense --dataset kung --private weight",
        "dataset": f"ledger allow {LEDGER} --dataset ' kung' --private weight",
        "private": f"ledger allow {LEDGER} --dataset kung --private age",
        "why": f"ledger allow {LEDGER} --dataset kung --private weight --why ' because'",
        "who": f"ledger allow {LEDGER} --dataset kung --private weight --who ' me'",
    },
    "ledger show": {
        "ledger": "ledger show --ledger nonsense",
        "dataset": f"ledger show {LEDGER} --dataset ' kung'",
    },
    "ledger verify": {"ledger": "ledger verify --ledger nonsense"},
}
# Names of columns, files and addresses, which the commands look at themselves, and words for labels.
OWN = {
    "dask",
    "decimal",
    "encoding",
    "folder",
    "head",
    "host",
    "inputs",
    "inputs_from",
    "missing",
    "out",
    "output",
    "people",
    "picture",
    "port",
}
OWN |= {"outcome", "release", "then_at", "tls"}


def commands(command=None, name=""):
    command = typer.main.get_command(app) if command is None else command
    if not hasattr(command, "commands"):
        return {name: command}
    parts = [commands(part, f"{name} {word}".strip()) for word, part in command.commands.items()]
    return {words: found for part in parts for words, found in part.items()}


def test_no_option_is_left_out():
    for name, command in commands().items():
        takes = {
            parameter.name
            for parameter in command.params
            if parameter.param_type_name == "option" and not parameter.is_flag
        }
        own = OWN | {"export": {"at"}, "combine": {"at"}, "select": {"missing_inputs"}}.get(name, set())
        assert takes - own == set(REFUSED.get(name, {})), name


@pytest.fixture(scope="module")
def made(tmp_path_factory, private_key):
    """A folder with everything that commands ask for."""
    folder = tmp_path_factory.mktemp("made")
    with contextlib.chdir(folder):
        write_people()
        budget()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv("data.csv"), "data.parquet")
        Path("far.csv").write_text("age\n100000\n")
        good(f"{PLAN} -o plan.json")
        good(f"{RELEASE} --yes")
        X = np.random.default_rng(0).uniform(size=(12, 2))
        model = cloakgp.GP(EQ(1.0), noise=1.0, bounds=(0, 1))
        plan = model.plan({"lon": X[:, 0], "lat": X[:, 1]}, X_star=X[:2], epsilon=1.0, delta=1e-3)
        release = plan.release(X[:, 0])
        release.save("homes.cloak")
        release.save("signed.cloak", sign_with=private_key)
    return folder


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_begins_with_the_option(command, made):
    shutil.copytree(made, ".", dirs_exist_ok=True)
    for parameter, line in REFUSED[command].items():
        assert begins_with(command, parameter, run(line)), line


def begins_with(command, parameter, result):
    option = options_of(commands()[command].callback)[parameter]
    begins = (f"cloakgp: {option} ", f"cloakgp: {option}: ")
    return result.code == 2 and result.err.splitlines()[-1].startswith(begins)


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
    command, parameter, line, packages, made, monkeypatch
):
    shutil.copytree(made, ".", dirs_exist_ok=True)
    for package in packages:
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)
    result = run(line)
    assert begins_with(command, parameter, result), result.err
    assert "install the extra cloakgp[" in result.err
