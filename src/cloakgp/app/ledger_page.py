"""The ledger as the budget page shows it: entries, what is left, and whether the chain holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cloakgp.app import models
from cloakgp.app.errors import conflict, public_work, spending
from cloakgp.app.people import Person
from cloakgp.app.releasing import Counter, left
from cloakgp.app.shelf import Shelf
from cloakgp.ledger import Ledger, LedgerError, LedgerTampered

_EMPTY: dict[str, Any] = {"verified": True, "problem": None, "head": "", "datasets": [], "entries": []}


def book(counter: Counter, shelf: Shelf, person: Person) -> dict[str, Any]:
    """Everything that is in the ledger, checked against itself and against the releases made from it."""
    with spending():
        ledger = counter.ledger(person.name)
        try:
            entries = ledger.entries()
        except LedgerTampered as error:
            return {**_EMPTY, "verified": False, "problem": str(error)}
        except LedgerError as error:
            if "is empty" in str(error) or "there is no file" in str(error):
                return {**_EMPTY, "problem": _forgotten(shelf), "verified": _forgotten(shelf) is None}
            raise
        problem = _problem(ledger, shelf)
        shown = models.LedgerEntry.model_fields
        return {
            "verified": problem is None,
            "problem": problem,
            "head": entries[-1].hash,
            "datasets": [_dataset(ledger, name) for name in ledger.datasets()],
            "entries": [
                {key: value for key, value in asdict(each).items() if key in shown} for each in entries
            ],
        }


def create(counter: Counter, asked: models.AskDataset, person: Person) -> dict[str, Any]:
    """A budget for a new data set."""
    with spending(), public_work():
        ledger = counter.ledger(person.name)
        try:
            ledger.create(
                asked.name, epsilon=asked.epsilon, delta=asked.delta, pure=asked.pure, why=asked.why
            )
        except LedgerError as error:
            if "already" in str(error):
                raise conflict(str(error)) from None
            raise
        return _dataset(ledger, asked.name)


def _problem(ledger: Ledger, shelf: Shelf) -> str | None:
    try:
        ledger.verify(shelf.loaded())
    except LedgerTampered as error:
        return str(error)
    return None


def _forgotten(shelf: Shelf) -> str | None:
    if not shelf.everything():
        return None
    return "the ledger is empty, but there are releases that it paid for. Restore it from a backup."


def _dataset(ledger: Ledger, name: str) -> dict[str, Any]:
    balance = ledger.balance(name)
    release, selection, spent = left(balance)
    return {
        "name": name,
        "epsilon": balance.budget.epsilon,
        "delta": balance.budget.delta,
        "pure": balance.budget.pure,
        "spent": spent,
        "left_release": release,
        "left_selection": selection,
        "events": len(balance.events),
    }
