"""``cloakgp ledger``: budgets that cannot be overspent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, table
from cloakgp.files.container import ReleaseFileError
from cloakgp.ledger import Balance, Ledger
from cloakgp.ledger.receipts import Claim, claim_of
from cloakgp.workflow import releases

app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Budgets: create one, show what was spent, verify that nobody meddled.",
)


@app.command("create")
@command
def create(
    ledger: options.LedgerUrl,
    dataset: Annotated[str, typer.Option(help="A name for the people in the data.", show_default=False)],
    epsilon: options.Epsilon,
    delta: options.Delta,
    pure: Annotated[float, typer.Option(help="Part of epsilon set aside for selections.")] = 0.0,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Whom all that is spent must protect: one row, one person, one whole row, or one person's "
            "whole rows. If absent, the first spend fixes it.",
            show_default=False,
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Option(
            help="The id column, for a unit of people. If absent, the first spend fixes it.",
            show_default=False,
            metavar="COLUMN",
        ),
    ] = None,
    private: Annotated[
        str | None,
        typer.Option(
            help="All columns that may be read privately: outcomes and, of whole rows, inputs. None of them "
            "can be a public input. If absent, the first spend fixes them.",
            show_default=False,
            metavar="COLUMNS",
        ),
    ] = None,
    largest_delta: Annotated[
        float | None,
        typer.Option(help="Of one release; the budget's delta if absent.", show_default=False),
    ] = None,
    ids: options.Ids = options.IdsWord.alike,
    why: options.Why = "",
    who: options.Who = None,
    as_json: options.Json = False,
) -> Answer:
    """Open a budget for a data set, for good: it cannot be raised later.

    A data set stands for a set of people. Everything about them is paid from its one budget, on its terms:
    unit, id column, private columns and largest delta. What differs is refused before anything is read.

    \b
      cloakgp ledger create --ledger sqlite:///budget.db --dataset kung --epsilon 1 --delta 1e-4
      cloakgp ledger create --ledger sqlite:///budget.db --dataset visits --epsilon 1 --delta 1e-5 \\
          --unit "one person" --people patient --private pressure,weight
    """
    book = Ledger(ledger, who=who)
    balance = book.create(
        dataset,
        epsilon=epsilon,
        delta=delta,
        pure=pure,
        why=why,
        unit=unit,
        people=people,
        private=options.optional_names(private) or (),
        largest_delta=largest_delta,
        ids=ids.value,
    )
    return Answer(_data(balance), str(balance))


@app.command("allow")
@command
def allow(
    ledger: options.LedgerUrl,
    dataset: Annotated[str, typer.Option(help="The data set's name.", show_default=False)],
    private: Annotated[
        str,
        typer.Option(help="Columns: height, or height,weight.", show_default=False, metavar="COLUMNS"),
    ],
    why: options.Why = "",
    who: options.Who = None,
    as_json: options.Json = False,
) -> Answer:
    """Let a data set's budget pay for more private columns. Costs nothing, and is on record.

    \b
      cloakgp ledger allow --ledger sqlite:///budget.db --dataset kung --private weight
    """
    balance = Ledger(ledger, who=who).allow(dataset, options.names(private), why)
    return Answer(_data(balance), str(balance))


@app.command("show")
@command
def show(
    ledger: options.LedgerUrl,
    dataset: Annotated[str | None, typer.Option(help="One data set; all of them if absent.")] = None,
    entries: Annotated[bool, typer.Option("--entries", help="List every entry, too.")] = False,
    as_json: options.Json = False,
) -> Answer:
    """Show what was spent, and what is left.

    \b
      cloakgp ledger show --ledger sqlite:///budget.db
      cloakgp ledger show --ledger sqlite:///budget.db --dataset kung --entries
    """
    book = Ledger(ledger)
    names = book.datasets() if dataset is None else [dataset]
    balances = [book.balance(name) for name in names]
    found: dict[str, Any] = {"datasets": [_data(balance) for balance in balances], "head": book.head}
    text = [str(balance) for balance in balances]
    if entries:
        listed = book.entries(dataset)
        found["entries"] = [vars(entry) for entry in listed]
        rows = [["number", "kind", "data set", "who", "when", "why"]]
        rows += [[str(e.number), e.kind, e.dataset, e.who, e.when, e.why] for e in listed]
        text += ["", table(rows, numbers=False)]
    return Answer(found, "\n".join(text))


@app.command("verify")
@command
def verify(
    ledger: options.LedgerUrl,
    release: Annotated[
        list[Path] | None,
        typer.Option(help="Release file that must still be in the ledger; may be repeated."),
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--releases",
            help="Folder whose release files must all still be in the ledger; may be repeated. Folders in it "
            "are not looked into.",
            metavar="FOLDER",
        ),
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="A head that was noted earlier, and must still be in the chain.")
    ] = None,
    as_json: options.Json = False,
) -> Answer:
    """Check that the ledger is whole and its budgets were kept, or fail with exit code 1.

    A ledger that was replaced by an old copy is whole in itself. Release files show it, and a head that was
    noted elsewhere: give them all. Each release file that is not in the ledger is listed.

    \b
      cloakgp ledger verify --ledger sqlite:///budget.db --releases published
      cloakgp ledger verify --ledger sqlite:///budget.db --release heights.cloak
    """
    for file in release or []:
        releases.check_kind(file)
    found, ignored = releases.in_folders(folder or [])
    if ignored:
        note(f"ignored: {ignored} file(s) that are no release files.")
    audit = Ledger(ledger).verify([*(release or []), *map(_claim, found)], head)
    return Answer({"verified": True, **vars(audit), "ignored": ignored}, str(audit))


def _claim(file: Path) -> Claim:
    """What a file says; one that cannot be read is listed among those that are not in the ledger."""
    try:
        return claim_of(file)
    except ReleaseFileError as error:
        return Claim(str(file), None, unreadable=f"it cannot be read: {error}")


def _data(balance: Balance) -> dict[str, Any]:
    return {
        "dataset": balance.dataset,
        "epsilon": balance.budget.epsilon,
        "delta": balance.budget.delta,
        "pure": balance.budget.pure,
        "unit": balance.unit,
        **balance.terms(),
        "spends": len(balance.events),
        "spent": balance.spent,
        "left_for_release": balance.left_for_release(),
        "left_for_selection": balance.left_for_selection(),
    }
