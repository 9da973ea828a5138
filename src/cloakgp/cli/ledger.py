"""``cloakgp ledger``: budgets that cannot be overspent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, table
from cloakgp.files.container import ReleaseFileError
from cloakgp.ledger import Balance, Ledger
from cloakgp.ledger.chain import Claim, claim_of
from cloakgp.workflow import releases

app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Budgets: create one, show what was spent, verify that nobody meddled.",
)


@app.command("create", cls=options.Command)
@command
def ledger_create(
    ledger: str,
    dataset: str,
    private: str | None = None,
    who: str | None = None,
    as_json: bool = False,
    **terms: Any,
) -> Answer:
    """Open a budget for a data set, for good: it cannot be raised later.

    A data set stands for a set of people. Everything about them is paid from its one budget, on its terms:
    unit, id column, private columns and largest delta. What differs is refused before anything is read.

    \b
      cloakgp ledger create --ledger sqlite:///budget.db --dataset kung --epsilon 1 --delta 1e-4
      cloakgp ledger create --ledger sqlite:///budget.db --dataset visits --epsilon 1 --delta 1e-5 \\
          --unit "one person" --people patient --private pressure,weight
    """
    return _answer(Ledger(ledger, who=who).create(dataset, private=options.names(private), **terms))


@app.command("allow", cls=options.Command)
@command
def ledger_allow(
    ledger: str, dataset: str, private: str, why: str = "", who: str | None = None, as_json: bool = False
) -> Answer:
    """Let a data set's budget pay for more private columns. Costs nothing, and is on record.

    \b
      cloakgp ledger allow --ledger sqlite:///budget.db --dataset kung --private weight
    """
    return _answer(Ledger(ledger, who=who).allow(dataset, options.names(private), why))


@app.command("show", cls=options.Command)
@command
def ledger_show(
    ledger: str, dataset: str | None = None, entries: bool = False, as_json: bool = False
) -> Answer:
    """Show what was spent, and what is left.

    \b
      cloakgp ledger show --ledger sqlite:///budget.db
      cloakgp ledger show --ledger sqlite:///budget.db --dataset kung --entries
    """
    book = Ledger(ledger)
    balances = [book.balance(name) for name in (book.datasets() if dataset is None else [dataset])]
    found: dict[str, Any] = {"datasets": [_data(balance) for balance in balances], "head": book.head}
    text = [str(balance) for balance in balances]
    if entries:
        listed = book.entries(dataset)
        found["entries"] = [vars(entry) for entry in listed]
        rows = [["number", "kind", "data set", "who", "when", "why"]]
        rows += [[str(e.number), e.kind, e.dataset, e.who, e.when, e.why] for e in listed]
        text += ["", table(rows, numbers=False)]
    return Answer(found, "\n".join(text))


@app.command("verify", cls=options.Command)
@command
def ledger_verify(
    ledger: str,
    release: list[Path] | None = None,
    folder: list[Path] | None = None,
    head: str | None = None,
    as_json: bool = False,
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


def _answer(balance: Balance) -> Answer:
    return Answer(_data(balance), str(balance))


def _data(balance: Balance) -> dict[str, Any]:
    return {
        "dataset": balance.dataset,
        **vars(balance.budget),
        "unit": balance.unit,
        **balance.terms(),
        "spends": len(balance.events),
        "spent": balance.spent,
        "left_for_release": balance.left_for_release(),
        "left_for_selection": balance.left_for_selection(),
    }
