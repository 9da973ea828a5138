"""Options of ``cloakgp plan`` about the table: what its columns hold, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from cloakgp.cli import options
from cloakgp.cli.exits import note
from cloakgp.errors import InputError
from cloakgp.model.outcome import COUNT, REAL, YES_NO
from cloakgp.rows.formats import Format


class MissingInputsWord(StrEnum):
    """What to do about rows of which an input is missing."""

    error = "error"
    drop = "drop"


class OutcomeWord(StrEnum):
    """What outcomes are."""

    real = REAL
    yes_no = YES_NO
    counts = COUNT


class EncodingWord(StrEnum):
    """How texts are written."""

    utf_8 = "utf-8"
    latin_1 = "latin-1"
    utf_16_le = "utf-16-le"
    utf_16_be = "utf-16-be"


class DecimalWord(StrEnum):
    """How decimals are written."""

    point = "."
    comma = ","


def _as_typed(words: Any) -> Any:
    return words


Categories = Annotated[
    str | None,
    typer.Option(
        "--categories",
        help="Inputs that are categories though they look like numbers: ward,code. Texts are by themselves.",
        metavar="COLUMNS",
    ),
]
Season = Annotated[
    list[str] | None,
    typer.Option(
        "--season",
        help="Where outcomes may repeat: a column of dates and day, week, year; or one of numbers and after "
        "how much; may be repeated.",
        metavar="COLUMN PERIODS",
        parser=_as_typed,
        show_default=False,
    ),
]
NoSeason = Annotated[
    list[str] | None,
    typer.Option("--season", hidden=True, metavar="COLUMN PERIODS", parser=_as_typed, show_default=False),
]
Outcome = Annotated[
    OutcomeWord,
    typer.Option(
        "--outcome",
        help="What outcomes are: yes/no (also true/false, 1/0) is told as a probability, count as a rate.",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="What outcomes may be, as the output column has it: no,yes in this order, or car,bus,train.",
        metavar="A,B,...",
    ),
]
MissingInputs = Annotated[
    MissingInputsWord,
    typer.Option(
        "--missing-inputs", help="Rows with an empty input: 'error' refuses, 'drop' leaves them out."
    ),
]
Decimal = Annotated[
    DecimalWord | None,
    typer.Option(
        "--decimal",
        help="How decimals are written in the table; as in its inputs if absent.",
        metavar=". | ,",
    ),
]
Encoding = Annotated[
    EncodingWord | None,
    typer.Option("--encoding", help="Of a CSV file; as its header and inputs say if absent."),
]


def seasons(typed: Sequence[Any]) -> dict[str, list[str | float]]:
    """Columns and their periods."""
    found: dict[str, list[str | float]] = {}
    for name, periods in typed:
        found.setdefault(name, []).extend(map(_period, options.names(periods)))
    return found


def _period(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:
        return word


def check_for_rows(categories: list[str], season: Any, missing_inputs: MissingInputsWord) -> None:
    """Raise where the inputs are private: what is typed here would have them read."""
    given = {"categories": categories, "season": season, "missing-inputs": missing_inputs.value == "drop"}
    for name, typed in given.items():
        if typed:
            raise InputError(
                f"--{name} is for public inputs. Where whole rows are private, say what is publicly known: "
                "--box and --levels."
            )


def note_decimal(form: Format, plan: Any, private: bool) -> None:
    """Say so where nothing public tells how decimals are written, and they may well have commas."""
    if form.delimiter == "," or form.decimal == ",":
        return
    X = None if private else np.asarray(plan.X)
    if X is None or bool((np.rint(X) == X).all()):
        note(
            f"note: the table is {form}: no public column has decimals to see. If its numbers are written "
            "like 3,5, say --decimal ,"
        )
