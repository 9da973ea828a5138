"""Who may use a route, and how its refusals look in the API's description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request

from cloakgp.app import models
from cloakgp.app.errors import Problem
from cloakgp.app.folder import ID, UPLOAD_NAME
from cloakgp.app.people import CUSTODIAN
from cloakgp.app.people import Person as Someone
from cloakgp.app.state import State

_MEANINGS = {
    400: "The request cannot be read.",
    401: "Not signed in.",
    403: "Not allowed: another role's, or from another site.",
    404: "Not there.",
    405: "Not done there.",
    408: "It took too long to arrive.",
    409: "Does not fit: with what is there, or into the budget.",
    413: "Too large.",
    422: "Something in the request cannot be used.",
    429: "Too many requests.",
    500: "The server failed.",
    503: "Busy; ask again.",
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Refusal, "description": meaning} for status, meaning in _MEANINGS.items()
}


async def _state(request: Request) -> State:
    state: State = request.app.state.cloakgp
    return state


async def _signed_in(request: Request) -> Someone:
    """The guard has found out already."""
    person: Someone | None = request.state.person
    if person is None:
        raise Problem(401, "not_signed_in", "sign in first.")
    return person


async def _custodian(person: Annotated[Someone, Depends(_signed_in)]) -> Someone:
    if person.role != CUSTODIAN:
        raise Problem(403, "not_allowed", "that is for custodians.")
    return person


def _watched(
    person: Annotated[Someone, Depends(_signed_in)],
    state: Annotated[State, Depends(_state)],
    x_work: Annotated[str | None, Header(pattern=ID, description="To ask how far it is.")] = None,
) -> Iterator[None]:
    with state.watching.under(person.id, x_work):
        yield


Watched = Annotated[None, Depends(_watched)]
Server = Annotated[State, Depends(_state)]
Person = Annotated[Someone, Depends(_signed_in)]
Custodian = Annotated[Someone, Depends(_custodian)]
PlanId = Annotated[str, Path(pattern=ID, examples=["0123456789abcdef"])]
ReleaseId = Annotated[str, Path(pattern=ID, examples=["0123456789abcdef"])]
WorkId = Annotated[str, Path(pattern=ID, examples=["0123456789abcdef"])]
PersonId = Annotated[str, Path(pattern=ID, examples=["0123456789abcdef"])]
FileName = Annotated[str, Path(min_length=1, max_length=255, examples=["heights 2024.csv"])]
TableName = Annotated[str, Path(pattern=UPLOAD_NAME, max_length=100, examples=["heights.csv"])]
