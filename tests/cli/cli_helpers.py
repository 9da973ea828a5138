"""A table of made-up people, and the command line as a user would type it."""

from __future__ import annotations

import csv
import json
import shlex
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def commands(command: Any = None, name: str = "") -> dict[str, Any]:
    """Every command by the words that call it, such as "ledger show"."""
    command = typer.main.get_command(app) if command is None else command
    if not hasattr(command, "commands"):
        return {name: command}
    parts = [
        commands(command.get_command(None, word), f"{name} {word}".strip())
        for word in command.list_commands(None)
    ]
    return {words: found for part in parts for words, found in part.items()}


def write_people(path: str = "data.csv", n: int = 40, heights: list[str] | None = None) -> None:
    """A table with a name, an age and a height; the heights as given, if they are."""
    rng = np.random.default_rng(5)
    ages = rng.uniform(0, 80, n).round(1)
    heights = [f"{h:.1f}" for h in 150 - 80 * np.exp(-ages / 8)] if heights is None else heights
    rows = [f"person {i},{age},{height}" for i, (age, height) in enumerate(zip(ages, heights, strict=True))]
    Path(path).write_text("\n".join(["name,age,height", *rows]) + "\n")


N = 40
_RNG = np.random.default_rng(4)
_AGES = _RNG.uniform(20, 80, N).round(1)
COLUMNS: dict[str, Any] = {
    "id": [f"p{one}" for one in _RNG.integers(0, 12, N)],
    "age": _AGES,
    "sex": _RNG.choice(["f", "m"], N),
    "day": [f"2024-0{1 + row % 9}-1{row % 7}" for row in range(N)],
    "score": _RNG.uniform(0, 20, N).round(1),
    "health": np.where(_RNG.uniform(size=N) < _AGES / 100, "ill", "well"),
    "truth": np.where(_RNG.uniform(size=N) < _AGES / 100, "TRUE", "FALSE"),
    "way": np.where(_RNG.uniform(size=N) < _AGES / 100, "bus", "train"),
    "falls": _RNG.poisson(_AGES / 30),
}


def write_table(path: str = "table.csv", **changes: Any) -> None:
    """A table with a column of every kind, or with others."""
    columns = COLUMNS | changes
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([list(columns), *zip(*columns.values(), strict=True)])


def budget(epsilon: float = 3.0) -> None:
    """A ledger for them."""
    good(f"ledger create {LEDGER} --dataset kung --epsilon {epsilon} --delta 0.01")


def spends() -> int:
    """How often the ledger was charged."""
    shown = good(f"ledger show {LEDGER} --json").data
    return int(shown["datasets"][0]["spends"])
