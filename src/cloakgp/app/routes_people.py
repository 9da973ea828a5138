"""Who may sign in, which is for custodians to say."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloakgp.app import models
from cloakgp.app.access import REFUSALS, Custodian, PersonId, Server
from cloakgp.app.errors import not_found, public_work

router = APIRouter(prefix="/api/people", responses=REFUSALS, tags=["people"])


@router.get("", response_model=list[models.Person])
def people(person: Custodian, state: Server) -> list[dict[str, Any]]:
    """Everybody who ever had a token."""
    return [each.shown() for each in state.people.everyone()]


@router.post("", response_model=models.NewPerson, status_code=201)
def invite(asked: models.AskPerson, person: Custodian, state: Server) -> dict[str, Any]:
    """Give somebody a token. It is shown this once, and only its hash is kept."""
    with public_work():
        added, token = state.people.add(asked.name, asked.role, asked.days)
    return {"person": added.shown(), "token": token}


@router.delete("/{person_id}", response_model=models.Person)
def revoke(person_id: PersonId, person: Custodian, state: Server) -> dict[str, Any]:
    """Make somebody's token worthless, at once."""
    gone = state.people.revoke(person_id)
    if gone is None:
        raise not_found("person")
    return gone.shown()
