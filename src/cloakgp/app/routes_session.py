"""Signing in and out; who one is; what the terms mean."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

import cloakgp
from cloakgp.app import limits, models
from cloakgp.app.access import REFUSALS, Person, Server
from cloakgp.app.errors import Problem, too_many
from cloakgp.app.guard import client_of
from cloakgp.app.people import Person as Someone
from cloakgp.app.sessions import COOKIE, HOURS
from cloakgp.app.state import State
from cloakgp.app.terms import TERMS
from cloakgp.plans.staged_planner import MOST_COLUMNS

router = APIRouter(responses=REFUSALS, tags=["session"])
_WORN = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>cloakgp</title></head><body>
<p>This link is not good any more: it works once. Start the server again for a new one, or sign in with a
token on the <a href="/">first page</a>.</p></body></html>"""


@router.get("/enter/{token}", include_in_schema=False)
async def enter(token: str, request: Request, state: Server) -> Response:
    """Sign in by a link, which works once."""
    found = state.sessions.enter(token, by_link=True)
    if found is None:
        if not state.failed.allows(client_of(request.scope)):
            raise too_many("too many failed sign-ins. Wait a minute.", retry_after=60)
        return HTMLResponse(_WORN, 401)
    answer = RedirectResponse("/", 303)
    _give_cookie(answer, request, found[1])
    return answer


@router.post("/api/session", response_model=models.Me)
async def sign_in(asked: models.SignIn, request: Request, response: Response, state: Server) -> models.Me:
    """Sign in with a token: a session cookie for browsers. Programs send `Authorization: Bearer` instead."""
    found = state.sessions.enter(asked.token)
    if found is None:
        if not state.failed.allows(client_of(request.scope)):
            raise too_many("too many failed sign-ins. Wait a minute.", retry_after=60)
        raise Problem(401, "not_signed_in", "this token is unknown, used up, expired or revoked.")
    _give_cookie(response, request, found[1])
    return _me(found[0], state)


@router.delete("/api/session", response_model=models.Done)
async def sign_out(person: Person, request: Request, response: Response, state: Server) -> models.Done:
    """Sign out."""
    state.sessions.leave(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return models.Done(ok=True)


@router.get("/api/me", response_model=models.Me)
async def me(person: Person, state: Server) -> models.Me:
    """Who is signed in."""
    return _me(person, state)


@router.get("/api/terms", response_model=dict[str, str])
async def terms() -> dict[str, str]:
    """Every term in plain words, for everybody: the page to sign in on uses some."""
    return TERMS


@router.get("/api/defaults", response_model=models.Defaults)
async def defaults(person: Person) -> models.Defaults:
    """What the pages suggest to begin with."""
    return models.Defaults()


def _me(person: Someone, state: State) -> models.Me:
    return models.Me(
        name=person.name,
        role=person.role,
        version=cloakgp.__version__,
        ledger=True,
        demo=state.demo,
        upload_bytes=state.limits.upload_bytes,
        exact_rows=limits.ROWS,
        most_rows=limits.INDUCING_ROWS,
        most_inducing=limits.INDUCING,
        learned_inputs=MOST_COLUMNS,
        most_cells=limits.CELLS,
        most_classes=limits.CLASSES,
    )


def _give_cookie(response: Response, request: Request, cookie: str) -> None:
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=HOURS * 3600,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https" or request.app.state.cloakgp.any_host,
    )
