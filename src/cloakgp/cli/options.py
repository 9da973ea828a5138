"""Options that several commands share, each described once."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cloakgp.errors import InputError
from cloakgp.rows.people import ALIKE, EXACT

_SQLITE = "sqlite:///"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else.")]
Data = Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file with a header.", show_default=False)]
ReleaseFile = Annotated[Path, typer.Argument(help="Release file (.cloak).", show_default=False)]
Inputs = Annotated[
    str, typer.Option(help="Public input column, or several: lat,lon.", show_default=False, metavar="COLUMNS")
]
InputNames = Annotated[
    str | None,
    typer.Option("--inputs", help="Names of the input columns: age, or lat,lon.", metavar="COLUMNS"),
]
Output = Annotated[
    str, typer.Option("--output", help="Private output column.", show_default=False, metavar="COLUMN")
]
OutputName = Annotated[str | None, typer.Option("--output", help="Name of the output column, for labels.")]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(
        help="Where outcomes are publicly known to lie; others are clipped.",
        show_default=False,
        metavar="LO HI",
    ),
]
BoundsOrNone = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--bounds",
        help="Where outcomes are publicly known to lie; others are clipped. Not for yes/no.",
        show_default=False,
        metavar="LO HI",
    ),
]
Mean = Annotated[float | None, typer.Option(help="Prior mean; the middle of the bounds if absent.")]
People = Annotated[
    str | None,
    typer.Option(
        "--people",
        help="Public column that says whose row each is: the promise is to each person, with all their rows.",
        metavar="COLUMN",
    ),
]


class IdsWord(StrEnum):
    """How ids of people are compared."""

    alike = ALIKE
    exact = EXACT


Ids = Annotated[
    IdsWord,
    typer.Option(
        help="With --people: an id is the same however it is written (7, 007, 7.0), or only if it is written "
        "exactly so; the certificate then says that.",
    ),
]
Within = Annotated[
    float | None,
    typer.Option(
        help="With --people: how outcomes of one person go together, from 0 to 1; 1 if absent.", metavar="RHO"
    ),
]
Epsilon = Annotated[float, typer.Option(help="Privacy: smaller is more private.", show_default=False)]
Delta = Annotated[float, typer.Option(help="Privacy: smaller is more private.", show_default=False)]
DeltaOrNone = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Privacy: smaller is more private. If absent, a power of ten below 1/(10 N), N rows or people.",
        show_default=False,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        help="Work on a Dask cluster: its scheduler's address, or 'local'. Needs --inducing, and Parquet "
        "files that the workers see under the same path.",
        metavar="ADDRESS",
    ),
]


class MissingWord(StrEnum):
    """What to do about missing outcomes."""

    error = "error"
    midpoint = "midpoint"


Missing = Annotated[
    MissingWord,
    typer.Option(help="Missing outcomes: 'error' refuses, 'midpoint' puts the middle of the bounds there."),
]
Ledger = Annotated[
    str | None,
    typer.Option(
        envvar="CLOAKGP_LEDGER", help="Ledger that pays, such as sqlite:///budget.db.", metavar="URL"
    ),
]
LedgerUrl = Annotated[
    str,
    typer.Option("--ledger", envvar="CLOAKGP_LEDGER", help="Such as sqlite:///budget.db.", metavar="URL"),
]
Dataset = Annotated[str | None, typer.Option(help="Whose budget pays: the data set's name in the ledger.")]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Release without a ledger: you keep count of what was spent.")
]
Why = Annotated[str, typer.Option(help="For the ledger's record.")]
Who = Annotated[str | None, typer.Option(help="Who is spending; the name of the user if absent.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: for scripts.")]
Again = Annotated[
    str | None,
    typer.Option(
        help="A new spend for what was answered before; the label, such as 2, sets it apart.", metavar="LABEL"
    ),
]


def names(text: str) -> list[str]:
    """Column names from ``lat,lon``; a name with a comma in it is written in double quotes."""
    listed = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row]
    if not listed or not all(listed):
        raise InputError(f"columns must be written as a name, or as names with commas; got {text!r}.")
    return listed


def ledger_file(url: str | None) -> list[Path]:
    """The file of a ledger that is one: it must not be written over either."""
    return [] if url is None or not url.startswith(_SQLITE) else [Path(url.removeprefix(_SQLITE))]


def optional_names(text: str | None) -> list[str] | None:
    """The same for an option that may be absent."""
    return None if text is None else names(text)


def check_writable(*files: Path | None, reads: Sequence[Path | str] = ()) -> None:
    """Raise if a file could not be written: found out before any work, and before anything is spent.

    What is read must not be written over: that would lose the private data.
    """
    for file in files:
        if file is None:
            continue
        if file.exists() and any(Path(path).exists() and file.samefile(path) for path in reads):
            raise InputError(f"{file} is read by this command, so it is not written over. Name another file.")
        if file.is_dir():
            raise InputError(f"{file} is a folder.")
        if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
            raise InputError(f"{file}: cannot be written there: no such folder, or not allowed.")
