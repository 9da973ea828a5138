"""Options of ``cloakgp plan`` for whole rows, whose inputs are private: a box, its cells, how many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cloakgp.cli import options
from cloakgp.cli.exits import note
from cloakgp.cli.typed_numbers import plain
from cloakgp.errors import InputError
from cloakgp.rows import file_cells
from cloakgp.rows.dates import day_of
from cloakgp.rows.grid import Grid
from cloakgp.workflow import boxes


def _as_typed(words: Any) -> Any:
    return words


Box = Annotated[
    list[str] | None,
    typer.Option(
        "--box",
        help="With --protect rows: the public range of an input, such as lat 47.1 47.8, or "
        "day 2024-01-01 2024-12-31; may be repeated.",
        metavar="NAME LO HI",
        parser=_as_typed,
        show_default=False,
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--levels",
        help="With --protect rows: the public levels of a category, such as sex f,m; may be repeated.",
        metavar="NAME A,B,...",
        parser=_as_typed,
        show_default=False,
    ),
]
Cells = Annotated[
    list[str] | None,
    typer.Option(
        "--cells",
        help="With --protect rows: cells along each range, or NAME=N for one; 40 if absent.",
        metavar="N|NAME=N",
        show_default=False,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        "--rows", help="With --protect rows: how many rows there are, which is public; counted if absent."
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows", help="With --protect rows and --people: rows of one person that count, at most."
    ),
]
NPeople = Annotated[
    int | None,
    typer.Option(
        "--n-people", help="With --max-rows: how many people there are, which is public; counted if absent."
    ),
]


@dataclass(frozen=True)
class PrivateInputs:
    """What was typed of that."""

    box: Sequence[Any] | None
    levels: Sequence[Any] | None
    cells: Sequence[str] | None
    rows: int | None
    max_rows: int | None
    n_people: int | None

    def check_absent(self) -> None:
        """Raise if anything was typed: it is for private inputs."""
        for name, given in vars(self).items():
            if given:
                raise InputError(
                    f"--{name.replace('_', '-')} is for private inputs: it needs --protect rows. Without, "
                    "the inputs are public, and read."
                )

    def grid(self, inputs: Sequence[str]) -> Grid:
        """The public grid."""
        ranges = {name: (_end(low, name), _end(high, name)) for name, low, high in self.box or ()}
        levels = {name: options.names(listed) for name, listed in self.levels or ()}
        typed = [name for name, *_ in [*(self.box or ()), *(self.levels or ())]]
        for name in typed:
            if typed.count(name) > 1:
                raise InputError(f"--box and --levels: {name!r} is there twice.")
            if name in levels and len(set(levels[name])) < max(2, len(levels[name])):
                raise InputError(f"--levels {name} must be two or more different ones: A,B,...")
        missing = [name for name in inputs if name not in typed]
        if missing:
            raise InputError(
                f"--protect rows: the inputs are private, so say where {missing[0]!r} lies by public "
                f"knowledge: --box {missing[0]} LO HI, or --levels {missing[0]} A,B,... for a category."
            )
        return boxes.make_grid(inputs, ranges, levels, self._cells(ranges))

    def _cells(self, ranges: dict[str, Any]) -> int | dict[str, int] | None:
        """How many along each range."""
        common, own = None, {}
        for typed in self.cells or ():
            name, _, number = typed.rpartition("=")
            if not number.isdigit():
                raise InputError(f"--cells must be a whole number, or NAME=N; got {typed!r}.")
            if name:
                own[name] = int(number)
            else:
                common = int(number)
        if not own:
            return common
        return ({} if common is None else dict.fromkeys(ranges, common)) | own

    def size(self, data: Path, people: str | None, ids: str) -> int:
        """How many rows, or people, there are: public. If nobody said it, it is counted, and that is said."""
        if people is None and (self.max_rows is not None or self.n_people is not None):
            raise InputError("--max-rows and --n-people are for people: they need --people COLUMN.")
        if people is not None and self.max_rows is None:
            raise InputError(
                "--protect rows with --people needs --max-rows: how many rows of a person count, at most."
            )
        if people is not None and self.rows is not None:
            raise InputError(
                "--rows: where people are protected with all of their rows, the number of rows is private. "
                "Leave it out, or say how many people there are: --n-people."
            )
        given = self.rows if people is None else self.n_people
        what, option = ("rows", "--rows") if people is None else ("people", "--n-people")
        if given is not None and given < 1:
            raise InputError(f"{option} must be a whole number above 0; got {given}.")
        if given is not None:
            return given
        counted = _counted(data, people, ids)
        note(
            f"note: {data.name} has {counted} {what}, which was counted, and becomes public. "
            f"If it is known otherwise, give {option}."
        )
        return counted


def _counted(data: Path, people: str | None, how: str) -> int:
    try:
        if people is None:
            return file_cells.n_rows(data)
        ids = file_cells.read_ids(data, people, how=how)
    except Exception:  # which might tell of private rows
        raise file_cells.irregular(data) from None
    if np.isnan(ids).any():
        raise InputError(
            f"{data.name}: it cannot be counted how many there are. Every row must name someone."
        )
    return len(np.unique(ids))


def _end(typed: str, name: str) -> float | str:
    """A number, or a date as it was typed."""
    if day_of(typed) is not None:
        return typed
    try:
        return float(plain(typed, f"--box {name}"))
    except ValueError:
        raise InputError(
            f"--box {name} must have two numbers, LO and HI, or two dates such as 2024-05-31; got {typed!r}."
        ) from None
