"""How a command ends: its answer on stdout, as text or as JSON, and its exit code.

=====  ========================================================================================
code   meaning
=====  ========================================================================================
0      done
1      refused, or a check failed: changed inputs or settings, a file that does not verify, an
       unusable output column, a confirmation that was declined
2      wrong usage, or a file, column or setting that cannot be used
3      the request does not fit into what is left of the budget
4      the ledger could not be used: not there, locked, or without this data set
=====  ========================================================================================

Messages, warnings and progress go to stderr. With ``--json`` stdout holds one JSON object and nothing else,
also when the command fails: then it has the keys `error` and `exit_code`.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer

from cloakgp.container import ReleaseFileError
from cloakgp.signing import SignatureError
from cloakgp.verify import VerificationError
from cloakgp.workflow.errors import Refused

OK, REFUSED, BAD_INPUT, BUDGET, LEDGER = range(5)


@dataclass(frozen=True)
class Answer:
    """What a command found: plain data for ``--json``, and text for people."""

    data: dict[str, Any]
    text: str


def command(function: Callable[..., Answer]) -> Callable[..., None]:
    """A command that prints its answer, and turns errors into a message and an exit code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        as_json = bool(options.get("as_json"))
        try:
            answer = function(*arguments, **options)
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            note(f"cloakgp: {error}")
            if as_json:
                print(_json({"error": str(error), "exit_code": code}))
            raise typer.Exit(code) from None
        print(_json(answer.data) if as_json else answer.text)

    return run


def exit_code(error: Exception) -> int | None:
    """The exit code for an error; None for one that nobody expected, whose traceback is shown."""
    ledger = sys.modules.get("cloakgp.ledger.errors")  # loaded, if it was the ledger's
    if ledger is not None and isinstance(error, ledger.BudgetExceeded):
        return BUDGET
    if ledger is not None and isinstance(error, ledger.LedgerError):
        return REFUSED if isinstance(error, ledger.LedgerTampered) else LEDGER
    if isinstance(error, (Refused, VerificationError, ReleaseFileError, SignatureError)):
        return REFUSED
    if isinstance(error, (ValueError, TypeError, OSError, ImportError, MemoryError)):
        return BAD_INPUT
    return None


def note(message: str) -> None:
    """A line for people, on stderr."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something takes its time: on a terminal only, and on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


def table(rows: list[list[str]], numbers: bool = True) -> str:
    """Rows of cells in columns; all but the first to the right, if they are numbers."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [
            cell.rjust(width) if numbers else cell.ljust(width)
            for cell, width in zip(row[1:], widths[1:], strict=True)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def pairs(rows: list[tuple[str, str]]) -> str:
    """Names and values, one pair to a line."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name.ljust(width)}  {value}" for name, value in rows)


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
