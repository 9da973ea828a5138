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

from cloakgp.app.receipts import REMEDY, ReadOnly
from cloakgp.errors import Argument, InputError, Phrase, Refused, told
from cloakgp.ledger import BudgetExceeded, LedgerError, LedgerTampered, TermsMismatch, UnitMismatch
from cloakgp.rows.blas import one_blas_thread
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
_LONGEST = 2000
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


class Problem(HTTPException):
    """A request that is refused, and why."""

    def __init__(self, status: int, code: str, error: str, retry_after: int | None = None) -> None:
        super().__init__(status, error, None if retry_after is None else {"Retry-After": str(retry_after)})
        self.code = code


def bad_input(error: str) -> Problem:
    return Problem(422, "bad_input", error)


def not_found(what: str) -> Problem:
    return Problem(404, "not_found", f"there is no such {what}.")


def conflict(error: str) -> Problem:
    return Problem(409, "conflict", error)


def read_only(trouble: str) -> Problem:
    return Problem(409, "read_only", f"{trouble} {REMEDY} Nothing was spent.")


def busy(error: str) -> Problem:
    return Problem(503, "busy", error, retry_after=1)


def stopped(error: str) -> Problem:
    return Problem(409, "stopped", error)


def too_many(error: str, retry_after: int = 1) -> Problem:
    return Problem(429, "busy", error, retry_after)


def answer(status: int, code: str, error: str) -> JSONResponse:
    """The one form of all refusals."""
    return JSONResponse({"error": error[:_LONGEST], "code": code}, status)


@contextmanager
def public_work() -> Iterator[None]:
    """For work on public numbers alone: whatever is wrong with them may be told in the library's words."""
    try:
        with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is refused, not warned of
            yield
    except (InputError, ValueError, TypeError, ArithmeticError) as error:
        raise bad_input(told(error, _on_pages)) from None
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
    except BudgetExceeded as error:
        raise Problem(409, "budget_exceeded", str(error)) from None
    except ReadOnly as error:
        raise read_only(str(error)) from None
    except UnitMismatch as error:
        raise Problem(409, "other_unit", told(error, _on_pages)) from None
    except TermsMismatch as error:
        raise Problem(409, "other_terms", told(error, _on_pages)) from None
    except LedgerTampered as error:
        raise conflict(str(error)) from None
    except LedgerError as error:
        raise busy(str(error)) from None
    except UnusableOutput as error:
        raise Problem(422, "unusable_output", str(error)) from None
    except Refused as error:
        raise conflict(str(error)) from None
    except ValueError as error:  # nobody expects one here, so its words stay here, too
        report(error)
        raise Problem(503, "failed", _NO_LEDGER) from None


def _on_pages(part: Argument | Phrase) -> str:
    return LABELS.get(part, part)


def add_handlers(app: FastAPI) -> None:
    """Every refusal in the one form."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)


def report(error: BaseException) -> None:
    """Note an error that nobody expected: its type and place, not its words, which may quote data."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    log.error("failed: %s at %s", type(error).__name__, " < ".join(reversed(places[-8:])))


_CODES = {400: "bad_input", 401: "not_signed_in", 403: "not_allowed", 404: "not_found", 405: "bad_input"}


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = error.code if isinstance(error, Problem) else _CODES.get(error.status_code, "failed")
    sentence = str(error.detail)
    if not isinstance(error, Problem):  # starlette's and FastAPI's own
        sentence = {404: "there is no such page.", 405: "that cannot be done there."}.get(
            error.status_code, "the request cannot be read."
        )
    made = answer(error.status_code, code, sentence)
    made.headers.update(error.headers or {})
    return made


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return answer(422, "bad_input", "; ".join(dict.fromkeys(_said(each) for each in error.errors()[:5])))


def _said(each: dict[str, Any]) -> str:
    """Where and what, without the value that was sent."""
    where = ".".join(str(part)[:60] for part in each["loc"] if part not in ("body", "path", "query"))
    what = str(each["msg"]).removeprefix("Value error, ")
    if "at" in each["loc"]:  # one of two forms, of which pydantic would tell both stories
        return 'at: must be "grid:n", or {"points": [[...], ...]} with at most 2500 rows of numbers'
    if "points" in each["loc"] and len(each["loc"]) > 1:
        return "points: each must be a list of numbers; levels of categories and dates are texts"
    if "box" in each["loc"] and {"Range", "Levels"} & set(each["loc"]):
        return (
            'box: each input needs {"low": ..., "high": ..., "cells": ...} of numbers, or {"levels": [...]} '
            "with 2 to 200 texts or whole numbers"
        )
    return f"{where}: {what}" if where else what
