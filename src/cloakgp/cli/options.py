"""Options: what a command's parameters are to typer, by the table in ``options.toml``; and what people type.

A command is a function with plain parameters. Help, other names and choices are in the table.
"""

from __future__ import annotations

import csv
import inspect
import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from cloakgp.core.errors import InputError
from cloakgp.data.people import ALIKE

_TABLE = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))
_TYPES = {"text": str, "int": int, "float": float, "two floats": tuple[float, float]}


class Parameters:
    """What a command takes.

    A parameter that is a dataclass stands for its fields, and ``**chosen`` for all else that the table lists
    for the command.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._said = _TABLE.get(function.__name__, {})
        self._records: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        """By parameters' names: ``{"signed_by": "--signed-by"}``."""
        self.words: dict[str, int] = {}
        """Parameters that may be repeated, of so many words: typer has no type for these."""
        own: list[inspect.Parameter] = []
        listed = {}
        for one in inspect.signature(function, eval_str=True).parameters.values():
            if one.kind is one.VAR_KEYWORD:
                listed = self._said
            elif is_dataclass(one.annotation):
                self._records[one.name] = one.annotation
                own += inspect.signature(self._records[one.name], eval_str=True).parameters.values()
            else:
                own.append(one)
        named = {one.name for one in own}
        needed = [one for one in own if one.default is one.empty]
        more = [_parameter(name, **said) for name, said in listed.items() if name not in named]
        shown = [*needed, *more, *(one for one in own if one.default is not one.empty)]
        self.signature = inspect.Signature([self._as_typer(one) for one in shown])

    def _as_typer(self, one: inspect.Parameter) -> inspect.Parameter:
        name, kind = one.name, one.annotation
        if name not in self._said and name in _TABLE["arguments"]:
            kind = Annotated[kind, typer.Argument(**_TABLE["arguments"][name])]
            return one.replace(annotation=kind, kind=one.KEYWORD_ONLY)
        told = dict(self._said.get(name) or _TABLE["every"][name])
        names = told.pop("names", [f"--{name.replace('_', '-')}"])
        self.options[name] = next(word for word in names if word.startswith("--"))
        if choices := told.pop("choices", ()):
            kind = Literal[tuple(choices)] if one.default is not None else Literal[tuple(choices)] | None
        if words := told.pop("words", 0):
            self.words[name], told["parser"] = words, _as_typed
        for known in ("type", "default", "required"):
            told.pop(known, None)
        kind = Annotated[kind, typer.Option(*names, **told)]  # a flag that has a name has no --no- of it
        return one.replace(annotation=kind, kind=one.KEYWORD_ONLY)

    def gathered(self, given: dict[str, Any]) -> dict[str, Any]:
        """What typer gives, as the function takes it."""
        records = {
            name: record(**{own.name: given.pop(own.name) for own in fields(record)})
            for name, record in self._records.items()
        }
        return given | records


def _parameter(
    name: str, type: str = "text", default: Any = None, required: bool = False, words: int = 0, **_: Any
) -> inspect.Parameter:
    """One that only the table knows."""
    kind: Any = list[str] if words else _TYPES[type]
    default = inspect.Parameter.empty if required else default
    annotation = kind if default is not None else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _as_typed(words: Any) -> Any:
    """The parser of options of several words."""
    return words


class Command(TyperCommand):
    """A command with options of several words."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        callback: Any = self.callback
        self.own: Parameters = callback.own
        for parameter in self.params:
            parameter.nargs = self.own.words.get(str(parameter.name), parameter.nargs)


# What people type


def names(text: str | None) -> list[str]:
    """Column names from ``lat,lon``; a name with a comma in it is written in double quotes. None of None."""
    if text is None:
        return []
    listed = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row]
    if not listed or not all(listed):
        raise InputError(f"columns must be written as a name, or as names with commas; got {text!r}.")
    return listed


def check_writable(*files: Path | None, reads: Sequence[Path | str | None] = ()) -> None:
    """Raise if a file could not be written: found out before any work, and before anything is spent.

    What is read must not be written over: that would lose the private data. A ledger may be a file, too.
    """
    read = [Path(str(path).removeprefix("sqlite:///")) for path in reads if path is not None]
    for file in filter(None, files):
        if file.exists() and any(path.exists() and file.samefile(path) for path in read):
            raise InputError(f"{file} is read by this command, so it is not written over. Name another file.")
        if file.is_dir():
            raise InputError(f"{file} is a folder.")
        if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
            raise InputError(f"{file}: cannot be written there: no such folder, or not allowed.")


@dataclass(frozen=True)
class Labels:
    """Words for pictures and reports; None where the release's own stay."""

    title: str | None = None
    units: str | None = None
    source: str | None = None
    date: str | None = None


@dataclass(frozen=True)
class Table:
    """What a plan and a selection are told of a table: its columns, and how it is written."""

    inputs: str
    output: str
    people: str | None = None
    within: float | None = None
    ids: str = ALIKE
    categories: str | None = None
    missing_inputs: str = "error"
    decimal: str | None = None
    encoding: str | None = None
