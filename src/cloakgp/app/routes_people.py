"""Routes about people and budgets: signing in and out, accounts, the ledger, and work that takes a while."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

import cloakgp
from cloakgp.app import accounts, models, settings
from cloakgp.app.accounts import COOKIE
from cloakgp.app.checked_ledger import left
from cloakgp.app.errors import REMEDY, Problem, conflict, not_found, public_work, spending
from cloakgp.app.guard import client_of
from cloakgp.app.state import Custodian, Id, Person, Server, State, router
from cloakgp.ledger import DatasetExists, Ledger, LedgerAbsent, LedgerTampered

session, people = router("session"), router("people", "/api/people")
ledger, work = router("ledger", "/api/ledger"), router("work", "/api/work")
TERMS: dict[str, str] = json.loads((Path(__file__).parent / "pages" / "terms.json").read_bytes())
"""Every term that the app uses, in plain words: the one source, for the pages and for programs."""
_WORN = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>cloakgp</title></head><body>
<p>This link is not good any more: it works once. Start the server again for a new one, or sign in with a
token on the <a href="/">first page</a>.</p></body></html>"""


@session.get("/enter/{token}", include_in_schema=False)
async def enter(token: str, request: Request, state: Server) -> Response:
    """Sign in by a link, which works once."""
    found = state.sessions.enter(token, by_link=True)
    if found is None:
        state.count_failure(client_of(request.scope))
        return HTMLResponse(_WORN, 401)
    answer = RedirectResponse("/", 303)
    _give_cookie(answer, request, found[1])
    return answer


@session.post("/api/session", response_model=models.Me)
async def sign_in(asked: settings.SignIn, request: Request, response: Response, state: Server) -> models.Me:
    """Sign in with a token: a session cookie for browsers. Programs send `Authorization: Bearer` instead."""
    found = state.sessions.enter(asked.token)
    if found is None:
        state.count_failure(client_of(request.scope))
        raise Problem(401, "not_signed_in", "this token is unknown, used up, expired or revoked.")
    _give_cookie(response, request, found[1])
    return _me(found[0], state)


@session.delete("/api/session", response_model=models.Done)
async def sign_out(person: Person, request: Request, response: Response, state: Server) -> models.Done:
    """Sign out."""
    state.sessions.leave(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return models.Done(ok=True)


@session.get("/api/me", response_model=models.Me)
async def me(person: Person, state: Server) -> models.Me:
    """Who is signed in."""
    return _me(person, state)


@session.get("/api/terms", response_model=dict[str, str])
async def terms() -> dict[str, str]:
    """Every term in plain words, for everybody: the page to sign in on uses some."""
    return TERMS


@session.get("/api/defaults", response_model=settings.Defaults)
async def defaults(person: Person) -> settings.Defaults:
    """What the pages suggest to begin with."""
    return settings.USUAL


@people.get("", response_model=list[models.Person])
def everybody(person: Custodian, state: Server) -> list[accounts.Person]:
    """Everybody who ever had a token."""
    return state.accounts.everyone()


@people.post("", response_model=models.NewPerson, status_code=201)
def invite(asked: settings.AskPerson, person: Custodian, state: Server) -> Any:
    """Give somebody a token. It is shown this once, and only its hash is kept."""
    with public_work():
        added, token = state.accounts.add(asked.name, asked.role, asked.days)
    return {"person": added, "token": token}


@people.delete("/{person_id}", response_model=models.Person)
def revoke(person_id: Id, person: Custodian, state: Server) -> accounts.Person:
    """Make somebody's token worthless, at once."""
    gone = state.accounts.revoke(person_id)
    if gone is None:
        raise not_found("person")
    return gone


@ledger.get("", response_model=models.LedgerBook)
def book(person: Custodian, state: Server) -> Any:
    """All entries, what is left of each budget, and whether the chain holds."""
    with spending():
        checked = state.releasing.ledger(person.name)
        problem = trouble = checked.trouble()
        head, datasets, entries = "", [], []
        try:
            found = checked.entries()
            datasets = [_dataset(checked, name) for name in checked.datasets()]
            head, entries = found[-1].hash, found
            if trouble is None:
                checked.verify([*state.releasing.receipts.all, *state.releases.loaded()])
        except LedgerTampered as error:
            problem = trouble or str(error)
        except LedgerAbsent:
            pass
        return {
            "head": head,
            "datasets": datasets,
            "entries": entries,
            "verified": problem is None,
            "problem": problem,
            "read_only": trouble is not None,
            "remedy": None if trouble is None else REMEDY,
        }


@ledger.post("/datasets", response_model=models.Dataset, status_code=201)
def create(asked: settings.AskDataset, person: Custodian, state: Server) -> Any:
    """Open a budget for a data set, for good."""
    with spending(), public_work():
        paying = state.releasing.paying_ledger(person.name)
        try:
            paying.create(asked.name, **asked.model_dump(exclude={"name"}))
        except DatasetExists as error:
            raise conflict(str(error)) from None
        return _dataset(paying, asked.name)


@ledger.post("/private", response_model=models.Dataset)
def allow(asked: settings.AskPrivate, person: Custodian, state: Server) -> Any:
    """Let a data set's budget pay for more private columns, too."""
    with spending(), public_work():
        paying = state.releasing.paying_ledger(person.name)
        paying.check_dataset(asked.dataset)
        paying.allow(asked.dataset, asked.private, asked.why)
        return _dataset(paying, asked.dataset)


@work.get("/{work}", response_model=models.Work)
def how_far(work: Id, person: Person, state: Server) -> Any:
    """How far a request is that was sent with this id as its header X-Work; or that it is not under way."""
    found = state.watched.get((person.id, work))
    label, done, total = ("", 0, 0) if found is None else found.doing
    return {"under_way": found is not None, "doing": label, "done": done, "total": total}


@work.delete("/{work}", response_model=models.Done)
def stop(work: Id, person: Custodian, state: Server) -> models.Done:
    """End it between two steps. A release in stages that is paid for goes on when it is asked for again."""
    found = state.watched.get((person.id, work))
    if found is not None:
        found.stopped.set()
    return models.Done(ok=found is not None)


def _me(person: accounts.Person, state: State) -> models.Me:
    return models.Me(
        name=person.name,
        role=person.role,
        version=cloakgp.__version__,
        demo=state.demo,
        upload_bytes=state.limits.upload_bytes,
    )


def _give_cookie(response: Response, request: Request, cookie: str) -> None:
    state: State = request.app.state.cloakgp
    secure, seconds = request.url.scheme == "https" or state.any_host, 3600 * state.sessions.hours
    response.set_cookie(COOKIE, cookie, max_age=seconds, httponly=True, samesite="strict", secure=secure)


def _dataset(checked: Ledger, name: str) -> Any:
    balance = checked.balance(name)
    now = left(balance)
    return {
        "name": name,
        **asdict(balance.budget),
        "unit": balance.unit,
        **balance.terms(),
        "spent": now.spent,
        "left_release": now.release,
        "left_selection": now.selection,
        "events": len(balance.events),
    }
