"""What custodians keep: the ledger, and who may enter."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloakgp.app import ledger_page, models
from cloakgp.app.access import REFUSALS, Custodian, PersonId, Server
from cloakgp.app.errors import not_found, public_work

router = APIRouter(prefix="/api", responses=REFUSALS, tags=["keeping"])


@router.get("/ledger", response_model=models.LedgerBook)
def ledger(person: Custodian, state: Server) -> dict[str, Any]:
    """All entries, what is left of each budget, and whether the chain holds."""
    return ledger_page.book(state.counter, state.shelf, person)


@router.post("/ledger/datasets", response_model=models.Dataset, status_code=201)
def create(asked: models.AskDataset, person: Custodian, state: Server) -> dict[str, Any]:
    """Open a budget for a data set, for good."""
    return ledger_page.create(state.counter, asked, person)


@router.get("/people", response_model=list[models.Person])
def people(person: Custodian, state: Server) -> list[dict[str, Any]]:
    """Everybody who ever had a token."""
    return [each.shown() for each in state.people.everyone()]


@router.post("/people", response_model=models.NewPerson, status_code=201)
def invite(asked: models.AskPerson, person: Custodian, state: Server) -> dict[str, Any]:
    """Give somebody a token. It is shown this once, and only its hash is kept."""
    with public_work():
        added, token = state.people.add(asked.name, asked.role, asked.days)
    return {"person": added.shown(), "token": token}


@router.delete("/people/{person_id}", response_model=models.Person)
def revoke(person_id: PersonId, person: Custodian, state: Server) -> dict[str, Any]:
    """Make somebody's token worthless, at once."""
    gone = state.people.revoke(person_id)
    if gone is None:
        raise not_found("person")
    return gone.shown()
