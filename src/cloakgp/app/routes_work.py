"""Work that takes a while: how far it is, and stopping it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloakgp.app import models
from cloakgp.app.access import REFUSALS, Custodian, Server, WorkId

router = APIRouter(prefix="/api/work", responses=REFUSALS, tags=["work"])


@router.get("/{work}", response_model=models.Work)
def how_far(work: WorkId, person: Custodian, state: Server) -> dict[str, Any]:
    """How far a request is that was sent with this id as its header X-Work."""
    label, done, total = state.watching.get(person.id, work).doing
    return {"doing": label, "done": done, "total": total}


@router.delete("/{work}", response_model=models.Done)
def stop(work: WorkId, person: Custodian, state: Server) -> models.Done:
    """End it between two steps. A release in stages that is paid for goes on when it is asked for again."""
    state.watching.get(person.id, work).stopped.set()
    return models.Done(ok=True)
