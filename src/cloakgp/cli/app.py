"""All commands in one place: ``cloakgp --help``. Each is loaded when it is asked for, and none for that.

So nothing is imported here that takes long.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import cloakgp

COMMANDS = {
    "plan": ("planning", "Plan a release: public and free."),
    "release": ("releasing", "Release from a plan file: reads the output column, and spends."),
    "select": ("selecting", "Choose a kernel and a noise variance privately: reads the output column."),
    "predict": ("predicting", "Predict at new points from a release: free, and without the data."),
    "combine": ("predicting", "Predict from release files of several custodians together: free."),
    "show": ("inspecting", "Show what is in a release file or a plan file."),
    "verify": ("inspecting", "Work out a release file's promise again from its contents, or fail."),
    "plot": ("inspecting", "Draw a release: a curve, a map, or slices."),
    "export": ("inspecting", "Write a release as a table or as a report for readers."),
    "ledger": ("ledger", "Budgets: create one, show what was spent, verify that nobody meddled."),
    "demo": ("serving", "Plan, release, verify and draw generated heights, with explanations."),
    "serve": ("serving", "Open the app in a browser: the same steps with pictures."),
}
"""Each command's module, and what it does in a few words."""


class Commands(TyperGroup):
    """All commands together: what was typed wrongly is found out before any of them runs."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)  # None until one is asked for

    def get_command(self, ctx: Any, name: str) -> Any:
        """A command, loaded now; None if there is none of this name."""
        if name in COMMANDS and self.commands[name] is None:
            from cloakgp.cli.options import Command

            own = import_module(f"cloakgp.cli.{COMMANDS[name][0]}")
            found = typer.Typer(add_completion=False, rich_markup_mode=None)
            if name == "ledger":
                found = own.app
            else:
                found.command(name, cls=Command)(getattr(own, name))
            self.commands[name] = typer.main.get_command(found)
        return self.commands.get(name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each does, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run what was typed; with ``--json`` in it, wrong usage gives a JSON object, too."""
        typed = sys.argv[1:] if args is None else args
        if "--json" not in typed or not options.get("standalone_mode", True):
            return super().main(args, *rest, **options)
        try:
            code = super().main(args, *rest, **options | {"standalone_mode": False})
        except Exception as error:
            if not hasattr(error, "format_message"):  # not one of typer's
                raise
            from cloakgp.cli.exits import print_json

            usage: Any = error
            usage.show()
            print_json({"error": usage.format_message(), "exit_code": usage.exit_code})
            code = usage.exit_code
        raise SystemExit(code)


app = typer.Typer(
    name="cloakgp",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # A traceback that shows variables could show private outcomes.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"cloakgp {cloakgp.__version__}")
        raise typer.Exit


@app.callback()
def cloakgp_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish regressions of private outcomes under differential privacy.

    A plan is public, a release is private, a prediction is free. Only "release" and "select" read the
    output column; everything else can be run as often as you like.

    \b
      cloakgp plan data.csv --inputs age --output height --bounds 0 250 --epsilon 1 -o plan.json
      cloakgp ledger create --ledger sqlite:///budget.db --dataset kung --epsilon 1 --delta 1e-4
      cloakgp release plan.json data.csv --ledger sqlite:///budget.db --dataset kung -o heights.cloak
      cloakgp verify heights.cloak
      cloakgp predict heights.cloak points.csv -o out.csv

    Exit codes: 0 done; 1 refused, or a check failed; 2 wrong usage or input; 3 does not fit into the
    budget; 4 the ledger cannot be used; 5 verified in part.
    """
