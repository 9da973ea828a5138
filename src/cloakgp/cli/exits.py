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
import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from typer.models import OptionInfo

from cloakgp.calibration import WeakPromiseWarning
from cloakgp.errors import Refused
from cloakgp.files.container import ReleaseFileError
from cloakgp.files.signing import SignatureError
from cloakgp.progress import heard_by
from cloakgp.rows.blas import one_blas_thread
from cloakgp.verification import VerificationError
from cloakgp.workflow.shell_words import in_shell_words

OK, REFUSED, BAD_INPUT, BUDGET, LEDGER, PARTIAL = range(6)
STOPPED = 130  # as shells have it


@dataclass(frozen=True)
class Answer:
    """What a command found: plain data for ``--json``, and text for people."""

    data: dict[str, Any]
    text: str
    code: int = OK


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """A command that prints its answer, if it has not itself, and turns errors into a message and a code."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        as_json = bool(options.get("as_json"))
        try:
            with one_blas_thread(), _weak_promises_in_words():
                answer = function(*arguments, **options)
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            message = in_shell_words(error, options_of(function))
            note(f"cloakgp: {message}")
            if as_json:
                print_json({"error": message, "exit_code": code})
            raise typer.Exit(code) from None
        except KeyboardInterrupt as stopped:
            message = str(stopped) or "stopped. Nothing was spent."
            note(f"\ncloakgp: {message}")
            if as_json:
                print_json({"error": message, "exit_code": STOPPED})
            raise typer.Exit(STOPPED) from None
        if answer is not None and as_json:
            print_json(answer.data)
        elif answer is not None:
            print(answer.text)
        if answer is not None and answer.code != OK:
            raise typer.Exit(answer.code)

    return run


@contextmanager
def _weak_promises_in_words() -> Iterator[None]:
    """Warn of them in a line on stderr, once each; other warnings are shown as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", WeakPromiseWarning)
        shown = warnings.showwarning

        def told(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, WeakPromiseWarning):
                note(f"warning: {message}")
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = told
        yield


def options_of(function: Callable[..., Any]) -> dict[str, str]:
    """A command's options by the names of its parameters: ``{"signed_by": "--signed-by"}``."""
    found = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                written = (
                    info.default,
                    *(info.param_decls or ()),
                )  # inside Annotated, the first is a name, too
                given = [word for word in written if isinstance(word, str) and word.startswith("--")]
                found[name] = given[0] if given else f"--{name.replace('_', '-')}"
    return found


def exit_code(error: Exception) -> int | None:
    """The exit code for an error; None for one that nobody expected, whose traceback is shown."""
    ledger = sys.modules.get("cloakgp.ledger.errors")  # loaded, if it was the ledger's
    if ledger is not None and isinstance(error, ledger.BudgetExceeded):
        return BUDGET
    if ledger is not None and isinstance(error, ledger.LedgerError):
        return REFUSED if isinstance(error, (ledger.LedgerTampered, ledger.TermsMismatch)) else LEDGER
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
    """Show that something takes its time, and how far it is: on a terminal only, and on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ... (Ctrl-C stops it)") as status:

        def told(label: str, done: int, total: int) -> None:
            status.update(f"{what}: {label}, {done} of {total} ... (Ctrl-C stops it)")

        with heard_by(told):
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


def print_json(data: dict[str, Any]) -> None:
    """The one object on stdout."""
    print(json.dumps(data, indent=1, allow_nan=False, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
