"""All commands together, each loaded when it is asked for: ``cloakgp --help`` needs none of them.

So does nothing else here that takes long to import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from cloakgp.cli.typed_numbers import plain_words
from cloakgp.errors import InputError

COMMANDS = {
    "plan": ("planning", "Plan a release: public and free."),
    "release": ("releasing", "Release from a plan file: reads the output column, and spends."),
    "select": ("selecting", "Choose a kernel and a noise variance privately: reads the output column."),
    "predict": ("predicting", "Predict at new points from a release: free, and without the data."),
    "combine": ("combining", "Predict from release files of several custodians together: free."),
    "show": ("inspecting", "Show what is in a release file or a plan file."),
    "verify": ("inspecting", "Work out a release file's promise again from its contents, or fail."),
    "plot": ("inspecting", "Draw a release: a curve, a map, or slices."),
    "export": ("inspecting", "Write a release as a table or as a report for readers."),
    "ledger": ("ledger", "Budgets: create one, show what was spent, verify that nobody meddled."),
    "demo": ("extras", "Plan, release, verify and draw generated heights, with explanations."),
    "serve": ("extras", "Open the app in a browser: the same steps with pictures."),
}
"""Each command's module, and what it does in a few words."""


_WORDS = {"box": 3, "levels": 2, "season": 2}


class SeveralWords(TyperCommand):
    """A command with options of several words each that may be repeated, which typer has no type for."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        for parameter in self.params:
            parameter.nargs = _WORDS.get(str(parameter.name), parameter.nargs)


class _Loaded(MutableMapping[str, Any]):
    """Commands by name, each loaded when it is looked at."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = _load(name)
        return self._known[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _load(name: str) -> Any:
    module = import_module(f"cloakgp.cli.{COMMANDS[name][0]}")
    if name == "ledger":
        return typer.main.get_command(module.app)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=SeveralWords)(getattr(module, name))
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """All commands together: here, what was typed wrongly is found out before any of them runs."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.commands = _Loaded()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of their use."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each does, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run what was typed; with ``--json`` in it, wrong usage gives a JSON object, too."""
        typed = sys.argv[1:] if args is None else args
        try:
            args = plain_words(typed)
        except InputError as error:
            from cloakgp.cli.exits import BAD_INPUT, note, print_json

            note(f"cloakgp: {error}")
            if "--json" in typed:
                print_json({"error": str(error), "exit_code": BAD_INPUT})
            raise SystemExit(BAD_INPUT) from None
        if "--json" not in typed or not options.get("standalone_mode", True):
            return super().main(args, *rest, **options)
        try:
            code = super().main(args, *rest, **options | {"standalone_mode": False})
        except Exception as error:
            if not hasattr(error, "format_message"):  # not one of typer's
                raise
            _wrong_usage(error)
        raise SystemExit(code)


def _wrong_usage(error: Any) -> NoReturn:
    from cloakgp.cli.exits import print_json

    error.show()
    print_json({"error": error.format_message(), "exit_code": error.exit_code})
    raise SystemExit(error.exit_code)
