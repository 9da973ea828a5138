"""Everything that one server knows, put together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address

from anyio import CapacityLimiter

from cloakgp.app.folder import Folder
from cloakgp.app.limits import Limits, OnePerPerson, Rate
from cloakgp.app.maps import Maps
from cloakgp.app.people import People
from cloakgp.app.planning import Planning
from cloakgp.app.plans import Plans
from cloakgp.app.receipts import Receipts
from cloakgp.app.releases import Releases
from cloakgp.app.releasing import Releasing
from cloakgp.app.sessions import Sessions
from cloakgp.app.uploads import Uploads
from cloakgp.app.watching import Watching

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass
class State:
    """One data folder, one ledger, and what is kept in memory about them."""

    folder: Folder
    ledger_url: str
    people: People
    sessions: Sessions
    uploads: Uploads
    planning: Planning
    plans: Plans
    releases: Releases
    maps: Maps
    releasing: Releasing
    watching: Watching
    limits: Limits
    asked: Rate
    failed: Rate
    predicting: CapacityLimiter
    one_per_person: OnePerPerson
    any_host: bool
    hosts: frozenset[str]
    demo: bool

    def answers_to(self, name: str) -> bool:
        """Whether a request may call the server by this name, which another site could have rebound."""
        return self.any_host or plain_host(name) in self.hosts


def open_state(
    data: str | os.PathLike[str],
    ledger: str | None = None,
    *,
    limits: Limits | None = None,
    any_host: bool = False,
    host: str = "127.0.0.1",
    demo: bool = False,
) -> State:
    """Open a data folder, and finish what a killed server left unfinished.

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
    limits = limits or Limits()
    folder = Folder(data)
    folder.tidy()
    url = ledger or f"sqlite:///{folder.path / 'ledger.db'}"
    uploads = Uploads(folder)
    releases = Releases(folder)
    planning = Planning(uploads, releases)
    plans = Plans(folder, uploads, planning)
    people = People(folder.path / "people.json")
    releasing = Releasing(url, uploads, plans, releases, Receipts(folder.receipts, releases.receipts()))
    releasing.check_ledger()
    releasing.reconcile()
    if demo and releasing.ledger("demo").trouble() is None:
        from cloakgp.app.demo_data import add_demo

        add_demo(folder, releasing.ledger("demo"))
    return State(
        folder=folder,
        ledger_url=url,
        people=people,
        sessions=Sessions(people),
        uploads=uploads,
        planning=planning,
        plans=plans,
        releases=releases,
        maps=Maps(releases),
        releasing=releasing,
        watching=Watching(),
        limits=limits,
        asked=Rate(limits.requests_per_second, limits.burst),
        failed=Rate(limits.failures_per_minute / 60, limits.failures_per_minute),
        predicting=CapacityLimiter(max(2, min(8, os.cpu_count() or 2))),
        one_per_person=OnePerPerson(),
        any_host=any_host,
        hosts=_LOOPBACK | {plain_host(host)},
        demo=demo,
    )


def plain_host(name: str) -> str:
    """A host's name in one spelling: addresses have several."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name.lower()
