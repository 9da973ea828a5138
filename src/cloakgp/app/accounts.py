"""Who may do what, and who is asking: people with a role and a token, and their sessions.

A token is 256 random bits; the file of accounts keeps a hash. A plain hash is enough: nobody can try 2^256
tokens. A browser has a session cookie, a program sends its token, and whoever started the server has a link
that works once. Sessions are kept in memory: after a restart people sign in again. A revoked or expired token
ends its sessions with the next request.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cloakgp.app import folder
from cloakgp.core import checks
from cloakgp.ledger.book import user_name

CUSTODIAN, ANALYST = "custodian", "analyst"
OWNER = "owner"  # id of whoever started the server
COOKIE = "cloakgp_session"


@dataclass(frozen=True)
class Person:
    """Somebody with a token."""

    id: str
    name: str
    role: str
    created: str
    expires: str
    revoked: bool = False
    token_sha256: str = ""

    def may_enter(self) -> bool:
        """Whether the token is still good."""
        return not self.revoked and utc_now() < datetime.fromisoformat(self.expires)


class Accounts:
    """All people with a token, in one file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        stored = folder.read_json(path) or {"people": []}
        self._people = {values["id"]: Person(**values) for values in stored["people"]}

    def everyone(self) -> list[Person]:
        """In the order in which they were added."""
        return list(self._people.values())

    def get(self, person_id: str) -> Person | None:
        """Somebody by id."""
        return self._people.get(person_id)

    def add(self, name: str, role: str, days: float) -> tuple[Person, str]:
        """A new person and the token, which is not kept: it is shown this once."""
        checks.text(name, "name")
        checks.choice(role, "role", (CUSTODIAN, ANALYST))
        checks.number(days, "days")
        now, token = utc_now(), new_token()
        expires = stamp(now + timedelta(days=days))
        person = Person(new_id(), name, role, stamp(now), expires, token_sha256=_hashed(token))
        self._change(person)
        return person, token

    def revoke(self, person_id: str) -> Person | None:
        """Make a token worthless, at once and for good."""
        person = self._people.get(person_id)
        if person is None:
            return None
        gone = replace(person, revoked=True)
        self._change(gone)
        return gone

    def by_token(self, token: str) -> Person | None:
        """Who holds this token, if it is still good. Every hash is compared, in constant time."""
        digest, found = _hashed(token), None
        for person in self.everyone():
            if hmac.compare_digest(person.token_sha256, digest):
                found = person
        return found if found is not None and found.may_enter() else None

    def anybody(self) -> bool:
        """Whether somebody could sign in."""
        return any(person.may_enter() for person in self.everyone())

    def _change(self, person: Person) -> None:
        with self._lock:
            people = {**self._people, person.id: person}
            folder.write_json(self._path, {"people": [asdict(each) for each in people.values()]})
            self._people = people


class Sessions:
    """Open sessions, and the one-time link."""

    hours = 12
    """That both last."""

    def __init__(self, accounts: Accounts, most: int = 10_000) -> None:
        self._accounts, self._most, self._lock = accounts, most, threading.Lock()
        self._open: OrderedDict[str, tuple[str, datetime]] = OrderedDict()
        self._link: tuple[str, datetime] | None = None
        now = utc_now()
        self._owner = Person(OWNER, user_name(), CUSTODIAN, stamp(now), stamp(now + timedelta(days=36500)))

    def new_link(self) -> str:
        """A token that signs in whoever started the server, once."""
        token = new_token()
        self._link = _hashed(token), utc_now() + timedelta(hours=self.hours)
        return token

    def enter(self, token: str, by_link: bool = False) -> tuple[Person, str] | None:
        """Somebody's new session, for the one-time link's token or a person's own.

        Not the latter `by_link`: what lasts does not belong into addresses, which end up in logs.
        """
        person = self._by_link(token) or (None if by_link else self._accounts.by_token(token))
        if person is None:
            return None
        cookie = new_token()
        with self._lock:
            self._open[_hashed(cookie)] = person.id, utc_now() + timedelta(hours=self.hours)
            while len(self._open) > self._most:
                self._open.popitem(last=False)
        return person, cookie

    def by_cookie(self, cookie: str) -> Person | None:
        """Whose session this is."""
        person_id, until = self._open.get(_hashed(cookie), ("", None))
        if until is None or utc_now() >= until:
            return None
        person = self._owner if person_id == OWNER else self._accounts.get(person_id)
        return person if person is not None and person.may_enter() else None

    def leave(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(_hashed(cookie), None)

    def _by_link(self, token: str) -> Person | None:
        with self._lock:
            link = self._link
            if link is None or not hmac.compare_digest(link[0], _hashed(token)) or utc_now() >= link[1]:
                return None
            self._link = None
            return self._owner


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(when: datetime) -> str:
    """UTC, ISO 8601, to the second."""
    return when.isoformat(timespec="seconds")


def new_token() -> str:
    """A token that nobody can guess, fit for an address."""
    return secrets.token_urlsafe(32)


def new_id() -> str:
    """A name for a person or a folder; not a secret."""
    return secrets.token_hex(8)


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
