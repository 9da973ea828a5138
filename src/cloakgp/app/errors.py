"""How a request ends without an answer: a status, a word for programs and a sentence for people.

No sentence is made from an error that nobody expected, since it might quote what it worked on. Those give one
fixed answer, and the log gets their type and place alone.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from cloakgp.core.errors import Argument, InputError, Phrase, Refused, tell
from cloakgp.data.blas import one_blas_thread
from cloakgp.ledger import BudgetExceeded, LedgerError, LedgerTampered, TermsMismatch, UnitMismatch
from cloakgp.workflow.private_step import UnusableOutput

log = logging.getLogger("cloakgp.app")
FAILED = (
    "something went wrong in the server; its log says where. If it was a release, ask again: nothing is paid "
    "for twice."
)
_NO_LEDGER = (
    "the ledger could not be asked; the server's log says where it failed. If it was a release, ask again: "
    "nothing is paid for twice."
)
LABELS = {
    "X": "the inputs",
    "X_star": "the points",
    "categories": "that it is a category:",
    Phrase.CREATE_LEDGER: "on the page Budget",
    Phrase.ALLOW_COLUMNS: "on the page Budget",
    Phrase.GO_ON: "ask again, and it goes on where it stopped, for nothing",
    Phrase.NAME_LEVELS: "say that it is a category,",
    Phrase.NOT_READ: "what is private was not read",
}
"""Arguments and phrases that people meet under another name here; the others are fields of the same name."""


REMEDY = (
    "Nothing can be spent until the ledger that paid is back: put its newest file in its place, or start the "
    "server with the --ledger that was used before. If it is lost for good, keep this data folder for "
    "reading and start a new one; docs/app.md says how."
)


class ReadOnly(LedgerTampered):
    """The ledger does not know what was paid for here, so nothing more is spent from it."""

    def __init__(self, trouble: str) -> None:
        super().__init__(f"{trouble} {REMEDY} Nothing was spent.")


_KINDS: dict[type[Exception], tuple[int, str]] = {
    BudgetExceeded: (409, "budget_exceeded"),
    ReadOnly: (409, "read_only"),
    UnitMismatch: (409, "other_unit"),
    TermsMismatch: (409, "other_terms"),
    LedgerTampered: (409, "conflict"),
    LedgerError: (503, "busy"),
    UnusableOutput: (422, "unusable_output"),
    Refused: (409, "conflict"),
}
"""What the ledger and the private step may refuse, and what programs are told of it."""


class Problem(HTTPException):
    """A request that is refused, and why."""

    def __init__(self, status: int, code: str, error: str, retry_after: int | None = None) -> None:
        later = {"Retry-After": str(retry_after or 1)} if status in (429, 503) else None
        super().__init__(status, error, later)
        self.code = code


def bad_input(error: str) -> Problem:
    return Problem(422, "bad_input", error)


def not_found(what: str) -> Problem:
    return Problem(404, "not_found", f"there is no such {what}.")


def conflict(error: str) -> Problem:
    return Problem(409, "conflict", error)


def busy(error: str) -> Problem:
    return Problem(503, "busy", error)


def stopped(error: str) -> Problem:
    return Problem(409, "stopped", error)


def too_many(error: str, retry_after: int = 1) -> Problem:
    return Problem(429, "busy", error, retry_after)


def too_large(most: int) -> Problem:
    shown = f"{most / 2**20:.3g} MB" if most >= 2**20 else f"{most / 2**10:.3g} KB"
    return Problem(413, "too_large", f"that is more than the {shown} that are allowed here.")


def answer(problem: Problem, most_letters: int = 2000) -> JSONResponse:
    """The one form of all refusals."""
    said = {"error": str(problem.detail)[:most_letters], "code": problem.code}
    return JSONResponse(said, problem.status_code, problem.headers)


@contextmanager
def public_work() -> Iterator[None]:
    """For work on public numbers alone: whatever is wrong with them may be told in the library's words."""
    try:
        with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is refused, not warned of
            yield
    except (InputError, ValueError, TypeError, ArithmeticError) as error:
        raise bad_input(tell(error, _on_pages)) from None
    except Refused as error:
        raise conflict(str(error)) from None
    except MemoryError:
        raise busy("this needs more memory than there is. Take fewer rows or points.") from None
    except ImportError as error:
        raise Problem(503, "failed", f"a package is not installed here: {error}") from None


@contextmanager
def spending() -> Iterator[None]:
    """For what the ledger and the private step may say: their own sentences, which quote nothing private."""
    try:
        yield
    except (LedgerError, Refused) as error:
        status, code = next(_KINDS[kind] for kind in type(error).__mro__ if kind in _KINDS)
        raise Problem(status, code, tell(error, _on_pages)) from None
    except ValueError as error:  # nobody expects one here, so its words stay here, too
        report(error)
        raise Problem(503, "failed", _NO_LEDGER) from None


def _on_pages(part: Argument | Phrase) -> str:
    return LABELS.get(part, part)


def add_handlers(app: FastAPI) -> None:
    """Every refusal in the one form."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(HTTPException, _refused_by_others)


def report(error: BaseException) -> None:
    """Note an error that nobody expected: its type and place, not its words, which may quote data."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    log.error("failed: %s at %s", type(error).__name__, " < ".join(reversed(places[-8:])))


async def _refused(request: Request, problem: Any) -> JSONResponse:
    return answer(problem)


async def _refused_by_others(request: Request, error: Any) -> JSONResponse:
    """Starlette's and FastAPI's own refusals, in our words."""
    unread = ("bad_input" if error.status_code == 400 else "failed", "the request cannot be read.")
    known = {404: ("not_found", "there is no such page."), 405: ("bad_input", "that cannot be done there.")}
    made = answer(Problem(error.status_code, *known.get(error.status_code, unread)))
    made.headers.update(error.headers or {})
    return made


async def _invalid(request: Request, error: Any) -> JSONResponse:
    return answer(bad_input("; ".join(dict.fromkeys(_said(each) for each in error.errors()[:5]))))


_FORMS = {  # of which pydantic would tell several stories
    "at": 'must be "grid:n", or {"points": [[...], ...]} with at most 2500 rows of numbers',
    "points": "each must be a list of numbers; levels of categories and dates are texts",
    "box": (
        'each input needs {"low": ..., "high": ..., "cells": ...} of numbers, or {"levels": [...]} with 2 to '
        "200 texts or whole numbers"
    ),
}


def _said(each: dict[str, Any]) -> str:
    """Where and what, without the value that was sent."""
    for name, form in _FORMS.items():
        if name in each["loc"]:
            return f"{name}: {form}"
    where = ".".join(str(part)[:60] for part in each["loc"] if part not in ("body", "path", "query"))
    what = str(each["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    what = "is not known here" if each["type"] == "extra_forbidden" else what
    return f"{where}: {what}" if where else what
