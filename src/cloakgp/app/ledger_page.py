"""The ledger as the budget page shows it: entries, what is left, and whether the chain holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cloakgp.app import models
from cloakgp.app.balances import left
from cloakgp.app.checked_ledger import check_dataset
from cloakgp.app.errors import conflict, public_work, spending
from cloakgp.app.people import Person
from cloakgp.app.receipts import REMEDY
from cloakgp.app.releases import Releases
from cloakgp.app.releasing import Releasing
from cloakgp.ledger import DatasetExists, Ledger, LedgerAbsent, LedgerTampered


def book(releasing: Releasing, releases: Releases, person: Person) -> dict[str, Any]:
    """Everything that is in the ledger, checked against itself and against what was paid for here."""
    with spending():
        ledger = releasing.ledger(person.name)
        trouble = ledger.trouble()
        found: dict[str, Any] = {"head": "", "datasets": [], "entries": []}
        problem = trouble
        try:
            found = _found(ledger)
            if trouble is None:
                ledger.verify([*releasing.receipts.everything(), *releases.loaded()])
        except LedgerTampered as error:
            problem = trouble or str(error)
        except LedgerAbsent:
            pass
        return {
            **found,
            "verified": problem is None,
            "problem": problem,
            "read_only": trouble is not None,
            "remedy": None if trouble is None else REMEDY,
        }


def _found(ledger: Ledger) -> dict[str, Any]:
    entries = ledger.entries()
    shown = models.LedgerEntry.model_fields
    return {
        "head": entries[-1].hash,
        "datasets": [_dataset(ledger, name) for name in ledger.datasets()],
        "entries": [{key: value for key, value in asdict(each).items() if key in shown} for each in entries],
    }


def create(releasing: Releasing, asked: models.AskDataset, person: Person) -> dict[str, Any]:
    """A budget for a new data set."""
    with spending(), public_work():
        ledger = releasing.paying_ledger(person.name)
        try:
            ledger.create(
                asked.name,
                epsilon=asked.epsilon,
                delta=asked.delta,
                pure=asked.pure,
                why=asked.why,
                unit=asked.unit,
                people=asked.people,
                private=asked.private,
                largest_delta=asked.largest_delta,
                ids=asked.ids,
            )
        except DatasetExists as error:
            raise conflict(str(error)) from None
        return _dataset(ledger, asked.name)


def allow(releasing: Releasing, asked: models.AskPrivate, person: Person) -> dict[str, Any]:
    """More private columns for a data set's budget to pay for."""
    with spending(), public_work():
        ledger = releasing.paying_ledger(person.name)
        check_dataset(ledger, asked.dataset)
        ledger.allow(asked.dataset, asked.private, asked.why)
        return _dataset(ledger, asked.dataset)


def _dataset(ledger: Ledger, name: str) -> dict[str, Any]:
    balance = ledger.balance(name)
    release, selection, spent = left(balance)
    return {
        "name": name,
        "epsilon": balance.budget.epsilon,
        "delta": balance.budget.delta,
        "pure": balance.budget.pure,
        "unit": balance.unit,
        **balance.terms(),
        "spent": spent,
        "left_release": release,
        "left_selection": selection,
        "events": len(balance.events),
    }
