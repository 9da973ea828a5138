"""``cloakgp combine``: what several custodians published, read together."""

from pathlib import Path

import numpy as np
from cli_helpers import PLAN, good, write_people

import cloakgp


def release(name, options="", n=40):
    write_people(f"{name}.csv", n)
    good(f"{PLAN.replace('data.csv', f'{name}.csv')} {options} -o {name}.json")
    good(f"release {name}.json {name}.csv --no-ledger --yes -o {name}.cloak")


def test_files_of_different_people_are_read_together():
    release("north")
    release("south", "--epsilon 2", 30)
    Path("points.csv").write_text("age\n10\n40\n")
    said = good("combine north.cloak south.cloak --at points.csv -o map.csv").out
    assert said == "2 predictions from 2 files: map.csv. Nothing was spent.\n"
    header, *rows = Path("map.csv").read_text().splitlines()
    assert header == "age,mean,std,lower,upper"
    files = [cloakgp.load(f"{name}.cloak") for name in ("north", "south")]
    mean, std = cloakgp.combine(files, same_data=False).predict([10.0, 40.0], return_std=True)
    table = np.array([row.split(",") for row in rows], dtype=float)
    assert np.allclose(table[:, 1:3], np.column_stack([mean, std]))
    assert np.allclose(table[:, 4] - table[:, 3], 2 * 1.959964 * std)
    ages = good("combine north.cloak south.cloak --at grid:3 --inputs age --json").data["columns"]["age"]
    whole = np.vstack([file.plan.X for file in files])
    assert (ages[0], ages[-1]) == (whole.min(), whole.max())


def test_whole_rows_are_read_together_with_public_inputs():
    release("north")
    rows = "plan data.csv --inputs age --output height --bounds 50 170 --epsilon 1 --delta 0.01 --stages 2"
    good(f"{rows} --protect rows --box age 0 80 --cells 8 -o rows.json")
    good("release rows.json data.csv --no-ledger --yes -o rows.cloak")
    files = [cloakgp.load(f"{name}.cloak") for name in ("north", "rows")]
    mean = cloakgp.combine(files, same_data=False).predict([0.0, 40.0, 80.0])
    for pair in ("north.cloak rows.cloak", "rows.cloak north.cloak"):
        columns = good(f"combine {pair} --at grid:3 --json").data["columns"]
        assert columns["age"] == [0, 40, 80]  # the box, which is wider than the public inputs
        assert np.allclose(columns["mean"], mean, rtol=1e-3)
