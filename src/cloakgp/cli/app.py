"""All commands in one place: ``cloakgp --help``."""

from __future__ import annotations

from typing import Annotated

import typer

import cloakgp
from cloakgp.cli.commands import Commands

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
