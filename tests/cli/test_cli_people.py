"""``--people``: the promise is to each person, from the table's own column of ids."""
import re
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import LEDGER, MODEL, budget, good, run

TABLE = "visits.csv"
PLAN = f"plan {TABLE} --inputs age --output visits {MODEL.replace('50 170', '0 20')} --at grid:5 --epsilon 1 --delta 0.01"


def write_visits(ids=None, path=TABLE):
    rng = np.random.default_rng(3)
    ages = rng.integers(20, 60, 40)
    ids = [f"p{one}" for one in rng.integers(0, 12, 40)] if ids is None else ids
    rows = [f"{one},{age},{visits}" for one, age, visits in zip(ids, ages, rng.integers(0, 20, 40), strict=True)]
    Path(path).write_text("\n".join(["zper,age,visits", *rows]) + "\n")


def test_first():
    write_visits()
    r = good(f"{PLAN}")
    print(r.out, r.err)
    r = good(f"{PLAN} --people zper --within 0.5 -o plan.json")
    print(r.out, r.err)
    budget()
    r = good(f"release plan.json {TABLE} {LEDGER} --dataset kung --yes -o v.cloak")
    print(r.out, r.err)
    print(good("show v.cloak").out)
    print(good("show plan.json").out)
