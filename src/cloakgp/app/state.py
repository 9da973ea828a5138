"""Everything that one server knows, put together; and how routes ask for it, and for who is asking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Annotated, Any
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, Header, Path, Request

from cloakgp.app import folder as stored
from cloakgp.app.accounts import CUSTODIAN, Accounts, Sessions
from cloakgp.app.accounts import Person as Someone
from cloakgp.app.checked_ledger import CheckedLedger, Receipts
from cloakgp.app.errors import Problem, too_many
from cloakgp.app.folder import ID, UPLOAD_NAME, Folder
from cloakgp.app.limits import Limits, Rate
from cloakgp.app.models import Refusal
from cloakgp.app.planning import Planning
from cloakgp.app.plans import Plans
from cloakgp.app.reader import Reader
from cloakgp.app.releases import Releases
from cloakgp.app.releasing import Releasing
from cloakgp.app.uploads import Uploads
from cloakgp.app.work import CurrentRequest, current
from cloakgp.workflow import tables


class State:
    """One data folder, one ledger, and what is kept in memory about them.

    To open it finishes what a killed server left unfinished.

    Parameters
    ----------
    data : path
        Made if it is not there; from then on its owner alone can read it.
    ledger : str, optional
        The ledger's URL; a file in the data folder if absent.
    limits : Limits, optional
    any_host : bool
        Whether requests may name a host other than this machine: true behind a proxy, or beyond loopback.
    host : str
        The address that the server listens on, by which it may be called like by 127.0.0.1 and localhost.
    demo : bool
        Put generated data and a budget for them there.

    Raises
    ------
    ValueError, LedgerError
        If the folder or the ledger cannot be used.
    """

    def __init__(
        self,
        data: str | os.PathLike[str],
        ledger: str | None = None,
        *,
        limits: Limits | None = None,
        any_host: bool = False,
        host: str = "127.0.0.1",
        demo: bool = False,
    ) -> None:
        self.limits, self.any_host, self.demo = limits or Limits(), any_host, demo
        named = ["127.0.0.1", "localhost", "[::1]", host if ":" not in host else f"[{IPv6Address(host)}]"]
        self.hosts = ["*"] if any_host else named
        self.folder = folder = Folder(data)
        folder.tidy()
        self.ledger_url = ledger or f"sqlite:///{folder.path / 'ledger.db'}"
        self.accounts = Accounts(folder.path / "people.json")
        self.sessions = Sessions(self.accounts)
        self.uploads, self.releases = Uploads(folder), Releases(folder)
        self.reader = Reader(self.releases)
        self.planning = Planning(self.uploads, self.releases)
        self.plans = Plans(folder, self.planning)
        receipts = Receipts(folder.receipts, self.releases.receipts())
        self.releasing = Releasing(self.ledger_url, self.uploads, self.plans, self.releases, receipts)
        self.releasing.ledger("the server").check()
        self.releasing.reconcile()
        if demo and (paying := self.releasing.ledger("demo")).trouble() is None:
            _add_demo(folder, paying)
        self.watched: dict[tuple[str, str], CurrentRequest] = {}
        """Requests that are under way, by who sent them and the ids that they gave them."""
        self.asked = Rate(self.limits.requests_per_second, self.limits.burst)
        self._failed = Rate(self.limits.failures_per_minute / 60, self.limits.failures_per_minute)
        self.predicting = CapacityLimiter(max(2, min(8, os.cpu_count() or 2)))
        self._predicting: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    def one_prediction_of(self, person: str) -> CapacityLimiter:
        """To be held for one: at a time of one person, so that nobody queues behind another's many."""
        return self._predicting.setdefault(person, CapacityLimiter(1))

    def count_failure(self, address: str) -> None:
        """Somebody at this address sent a token that is worth nothing; refuse if that is one of many."""
        if not self._failed.allows(address):
            raise too_many("too many failed sign-ins. Wait a minute.", retry_after=60)


def _add_demo(folder: Folder, ledger: CheckedLedger) -> None:
    """Generated heights, nobody's, and a budget for them: to try the app without private data."""
    from cloakgp.datasets import make_kung_like

    if not (table := folder.upload("heights.csv")).exists():
        ages, heights = make_kung_like()
        columns = {"age": ages[:, 0].round(1), "height": heights.round(1)}
        stored.write(table, tables.encoded(columns))
    if "kung" not in ledger.known_datasets():
        ledger.create("kung", epsilon=1.0, delta=0.01, why="generated heights, to try the app")


_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 500, 503)
}


def router(tag: str, prefix: str = "") -> APIRouter:
    """A group of routes, each of which may be refused."""
    return APIRouter(prefix=prefix, responses=_REFUSALS, tags=[tag])


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
    key = person.id, x_work or ""
    state.watched[key] = current()
    try:
        yield
    finally:
        state.watched.pop(key, None)


Watched = Annotated[None, Depends(_watched)]
Server = Annotated[State, Depends(_state)]
Person = Annotated[Someone, Depends(_signed_in)]
Custodian = Annotated[Someone, Depends(_custodian)]
Id = Annotated[str, Path(pattern=ID, examples=["0123456789abcdef"])]
FileName = Annotated[str, Path(min_length=1, max_length=255, examples=["heights 2024.csv"])]
TableName = Annotated[str, Path(pattern=UPLOAD_NAME, max_length=100, examples=["heights.csv"])]
