"""How a command ends: its answer on stdout, as text or as JSON, and its exit code.

=====  ========================================================================================
code   meaning
=====  ========================================================================================
0      done
1      refused, or a check failed: changed inputs or settings, a file that does not verify, an
       unusable output column, other columns or a larger delta than the data set's terms allow, a
       confirmation that was declined
2      wrong usage, or a file, column or setting that cannot be used
3      the request does not fit into what is left of the budget
4      the ledger could not be used: not there, locked, or without this data set
5      verified in part: the release file does not hold all that its promise rests on
130    stopped by Ctrl-C
=====  ========================================================================================

Messages, warnings and progress go to stderr. With ``--json`` stdout holds one JSON object and nothing else,
also when the command fails or was typed wrongly: then it has the keys `error` and `exit_code`.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from cloakgp.cli.options import Parameters
from cloakgp.core.calibration import WeakPromiseWarning
from cloakgp.data.blas import one_blas_thread
from cloakgp.workflow.shell_words import in_shell_words

OK, REFUSED, BAD_INPUT, BUDGET, LEDGER, PARTIAL = range(6)
STOPPED = 130  # as shells have it
_CODES = {
    "BudgetExceeded": BUDGET,
    **dict.fromkeys(("LedgerTampered", "TermsMismatch"), REFUSED),
    "LedgerError": LEDGER,
    **dict.fromkeys(("Refused", "VerificationError", "ReleaseFileError", "SignatureError"), REFUSED),
    **dict.fromkeys(("ValueError", "TypeError", "OSError", "ImportError", "MemoryError"), BAD_INPUT),
    "KeyboardInterrupt": STOPPED,
}
"""By the name of an error's class, or of the first of those that it derives from: none is loaded for this."""


@dataclass(frozen=True)
class Answer:
    """What a command found: plain data for ``--json``, and text for people."""

    data: dict[str, Any]
    text: str
    code: int = OK


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """A command that prints its answer, if it has not itself, and turns errors into a message and a code."""
    own = Parameters(function)

    @functools.wraps(function)
    def run(**given: Any) -> None:
        as_json = bool(given.get("as_json"))
        try:
            with one_blas_thread(), warnings.catch_warnings():
                warnings.simplefilter("once", WeakPromiseWarning)
                warnings.showwarning = lambda message, *_, **__: note(f"warning: {message}")
                answer = function(**own.gathered(given))
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code(error)
            if code is None:
                raise
            message, before = in_shell_words(error, own.options), ""
            if code == STOPPED:
                message, before = message or "stopped. Nothing was spent.", "\n"
            note(f"{before}cloakgp: {message}")
            if as_json:
                print_json({"error": message, "exit_code": code})
            raise typer.Exit(code) from None
        if answer is None:
            return
        if as_json:
            print_json(answer.data)
        else:
            print(answer.text)
        if answer.code != OK:
            raise typer.Exit(answer.code)

    run.__dict__.update(__signature__=own.signature, own=own)
    return run


def exit_code(error: BaseException) -> int | None:
    """The exit code for an error; None for one that nobody expected, whose traceback is shown."""
    return next((_CODES[one.__name__] for one in type(error).__mro__ if one.__name__ in _CODES), None)


def note(message: str) -> None:
    """A line for people, on stderr."""
    print(message, file=sys.stderr, flush=True)


def working(what: str) -> None:
    """Say that something takes its time, on a terminal only: there a bar shows how far it is."""
    if sys.stderr.isatty():
        note(f"{what} ... (Ctrl-C stops it)")


def table(rows: Sequence[Sequence[str]], numbers: bool = True) -> str:
    """Rows of cells in columns; all but the first to the right, if they are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [
            cell.rjust(width) if numbers else cell.ljust(width)
            for cell, width in zip(rest, widths[1:], strict=True)
        ]
        lines.append("  ".join(["", first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def print_json(data: dict[str, Any]) -> None:
    """The one object on stdout; arrays are lists."""
    print(json.dumps(data, indent=1, allow_nan=False, default=lambda array: array.tolist()), flush=True)
