"""What it costs to add a kernel, a design, a statistic or an outcome: toys, in a copy of the library.

Each is used as users would: planned, released, kept, verified and asked, in Python and on the command line.
In the library as it is none of that works, so the toy is what makes it work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toys import TOYS, Toy

import cloakgp

SOURCE = Path(cloakgp.__file__).parent
USE = """
import shlex, sys
import numpy as np
from typer.testing import CliRunner
import cloakgp
from cloakgp import GP, AutoGP, kernels
from cloakgp.cli.app import app
from cloakgp.kernels import EQ

assert cloakgp.__file__.startswith(sys.argv[1]), cloakgp.__file__
PROMISE = {{"epsilon": 2.0, "delta": 0.001}}
X, at = np.linspace(0.0, 80.0, 40), np.array([10.0, 30.0, 70.0])
y = {y}

def ask(release):
    found = release.predict([5.0, 45.0], return_std=True)
    assert np.isfinite(found).all(), found
    return found

def run(line):
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == 0, (line, done.output, done.exception)
    return done.output

plan = {plan}
measured = type(plan.first.measurement.statistic).__name__
assert measured == {measured!r}, f"measures {{measured}}"
release = plan.release(y)
release.save("python.cloak")
assert cloakgp.verify("python.cloak").complete
loaded = cloakgp.load("python.cloak")
assert np.array_equal(ask(loaded), ask(release))

rows = "".join(f"{{a}},{{b}}\\n" for a, b in zip(X.tolist(), y.tolist()))
open("data.csv", "w").write("age,height\\n" + rows)
open("points.csv", "w").write("age\\n10\\n30\\n70\\n")
table = "--inputs age --output height --at points.csv --epsilon 2 --delta 0.001"
run("plan data.csv -o plan.json " + table + " " + {command!r})
run("release plan.json data.csv --no-ledger --yes -o shell.cloak")
assert "verified: (2, 0.001)-DP" in run("verify shell.cloak")
run("predict shell.cloak points.csv -o out.csv")
assert len(open("out.csv").readlines()) == 4
assert {shown!r} in run("show shell.cloak")
"""


def used(toy: Toy, root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What becomes of it, with the library that is there."""
    folder.mkdir()
    program = USE.format(**vars(toy))
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "ignore", "-c", program, str(root)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", TOYS)
def test_a_toy_works_everywhere_once_few_files_are_edited(name, tmp_path):
    toy = TOYS[name]
    assert len(toy.files) <= toy.most
    shutil.copytree(SOURCE, tmp_path / "cloakgp", ignore=shutil.ignore_patterns("__pycache__"))
    done = used(toy, tmp_path, tmp_path / "without")
    assert done.returncode == 1
    assert toy.unknown in done.stderr.splitlines()[-1]
    for edit in toy.edits:
        edit.apply(tmp_path / "cloakgp")
    done = used(toy, tmp_path, tmp_path / "with")
    assert done.returncode == 0, done.stderr


def test_a_statistic_that_the_verifier_does_not_know_is_refused(tmp_path):
    """Outcomes and statistics are closed sets for that reason."""
    shutil.copytree(SOURCE, tmp_path / "cloakgp", ignore=shutil.ignore_patterns("__pycache__"))
    for edit in TOYS["statistic"].edits:
        if not edit.path.startswith("verification/"):
            edit.apply(tmp_path / "cloakgp")
    done = used(TOYS["statistic"], tmp_path, tmp_path / "with")
    assert "its sensitivity is not that of its columns" in done.stderr.splitlines()[-1]
