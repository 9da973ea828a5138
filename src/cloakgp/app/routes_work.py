"""Work that takes a while: how far it is, and stopping it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloakgp.app import models
from cloakgp.app.access import REFUSALS, Custodian, Person, Server, WorkId

router = APIRouter(prefix="/api/work", responses=REFUSALS, tags=["work"])


@router.get("/{work}", response_model=models.Work)
def how_far(work: WorkId, person: Person, state: Server) -> dict[str, Any]:
    """How far a request is that was sent with this id as its header X-Work; or that it is not under way."""
    found = state.watching.get(person.id, work)
    label, done, total = ("", 0, 0) if found is None else found.doing
    return {"under_way": found is not None, "doing": label, "done": done, "total": total}


@router.delete("/{work}", response_model=models.Done)
def stop(work: WorkId, person: Custodian, state: Server) -> models.Done:
    """End it between two steps. A release in stages that is paid for goes on when it is asked for again."""
    found = state.watching.get(person.id, work)
    if found is not None:
        found.stopped.set()
    return models.Done(ok=found is not None)
