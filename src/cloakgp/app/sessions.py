"""Who is asking: a browser's session cookie, a program's bearer token, or the one-time link.

Sessions are kept in memory: after a restart people sign in again. A revoked or expired token ends its
sessions with the next request.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections import OrderedDict
from datetime import datetime, timedelta

from cloakgp.app.people import CUSTODIAN, OWNER, People, Person, stamp, utc_now
from cloakgp.app.tokens import hashed, new_token, same

COOKIE = "cloakgp_session"
HOURS = 12
_LINK_HOURS = 12
_MOST = 10_000


class Sessions:
    """Open sessions, and the one-time link."""

    def __init__(self, people: People) -> None:
        self._people, self._lock = people, threading.Lock()
        self._open: OrderedDict[str, tuple[str, datetime]] = OrderedDict()
        self._link: tuple[str, datetime] | None = None
        now = utc_now()
        self._owner = Person(OWNER, _user(), CUSTODIAN, stamp(now), stamp(now + timedelta(days=36500)))

    def new_link(self) -> str:
        """A token that signs in whoever started the server, once."""
        token = new_token()
        self._link = hashed(token), utc_now() + timedelta(hours=_LINK_HOURS)
        return token

    def enter(self, token: str, by_link: bool = False) -> tuple[Person, str] | None:
        """Somebody's new session, for the one-time link's token or a person's own.

        Not the latter `by_link`: what lasts does not belong into addresses, which end up in logs.
        """
        person = self._by_link(token) or (None if by_link else self._people.by_token(token))
        if person is None:
            return None
        cookie = new_token()
        with self._lock:
            self._open[hashed(cookie)] = person.id, utc_now() + timedelta(hours=HOURS)
            while len(self._open) > _MOST:
                self._open.popitem(last=False)
        return person, cookie

    def by_cookie(self, cookie: str) -> Person | None:
        """Whose session this is."""
        person_id, until = self._open.get(hashed(cookie), ("", None))
        if until is None or utc_now() >= until:
            return None
        person = self._owner if person_id == OWNER else self._people.get(person_id)
        return person if person is not None and person.may_enter(utc_now()) else None

    def by_bearer(self, token: str) -> Person | None:
        """Whose token this is; the one-time link is not for programs."""
        return self._people.by_token(token)

    def leave(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(hashed(cookie), None)

    def _by_link(self, token: str) -> Person | None:
        with self._lock:
            link = self._link
            if link is None or not same(link[0], hashed(token)) or utc_now() >= link[1]:
                return None
            self._link = None
            return self._owner


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user table
        return f"user {os.getuid()}"
