"""A table of made-up people, and the command line as a user would type it."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import typer.testing

from cloakgp.cli.app import app

MODEL = '--bounds 50 170 --kernel "EQ(20, variance=625)" --noise 196'
PLAN = f"plan data.csv --inputs age --output height {MODEL} --at grid:9 --epsilon 1 --delta 0.01"
LEDGER = "--ledger sqlite:///budget.db"
RELEASE = f"release plan.json data.csv {LEDGER} --dataset kung -o heights.cloak"

# Else all options are made anew for each line.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


def run(line: str, answer: str | None = None) -> SimpleNamespace:
    """Type a command; exit code, stdout, stderr, and what stdout holds as JSON if it was asked for."""
    result = typer.testing.CliRunner().invoke(app, shlex.split(line), input=answer)
    expected = result.exception is None or isinstance(result.exception, SystemExit)
    assert expected, repr(result.exception)
    found = json.loads(result.stdout) if "--json" in line and result.stdout else None
    return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr, data=found)


def good(line: str, answer: str | None = None) -> SimpleNamespace:
    """The same, for a command that must succeed."""
    result = run(line, answer)
    assert result.code == 0, result.err
    return result


def write_people(path: str = "data.csv", n: int = 40, heights: list[str] | None = None) -> None:
    """A table with a name, an age and a height; the heights as given, if they are."""
    rng = np.random.default_rng(5)
    ages = rng.uniform(0, 80, n).round(1)
    heights = [f"{h:.1f}" for h in 150 - 80 * np.exp(-ages / 8)] if heights is None else heights
    rows = [f"person {i},{age},{height}" for i, (age, height) in enumerate(zip(ages, heights, strict=True))]
    Path(path).write_text("\n".join(["name,age,height", *rows]) + "\n")


def joined(source: str) -> str:
    """A program's text with the parts of each long message put together."""
    return re.sub(r'"\s*\n\s*f?"', "", source)


def budget(epsilon: float = 3.0) -> None:
    """A ledger for them."""
    good(f"ledger create {LEDGER} --dataset kung --epsilon {epsilon} --delta 0.01")


def spends() -> int:
    """How often the ledger was charged."""
    shown = good(f"ledger show {LEDGER} --json").data
    return int(shown["datasets"][0]["spends"])
