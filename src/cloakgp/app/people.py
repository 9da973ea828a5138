"""Who may do what: people with a role and a token, of which the file keeps a hash."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cloakgp import checks
from cloakgp.app import folder
from cloakgp.app.tokens import hashed, new_id, new_token, same

CUSTODIAN, ANALYST = "custodian", "analyst"
ROLES = (CUSTODIAN, ANALYST)
OWNER = "owner"  # id of whoever started the server


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

    def may_enter(self, now: datetime) -> bool:
        """Whether the token is still good."""
        return not self.revoked and now < datetime.fromisoformat(self.expires)

    def shown(self) -> dict[str, Any]:
        """All but the token's hash."""
        return {name: value for name, value in asdict(self).items() if name != "token_sha256"}


class People:
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
        checks.choice(role, "role", ROLES)
        checks.number(days, "days")
        now, token = utc_now(), new_token()
        person = Person(
            id=new_id(),
            name=name,
            role=role,
            created=stamp(now),
            expires=stamp(now + timedelta(days=days)),
            token_sha256=hashed(token),
        )
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
        digest, found = hashed(token), None
        for person in self.everyone():
            if same(person.token_sha256, digest):
                found = person
        return found if found is not None and found.may_enter(utc_now()) else None

    def anybody(self) -> bool:
        """Whether somebody could sign in."""
        now = utc_now()
        return any(person.may_enter(now) for person in self.everyone())

    def _change(self, person: Person) -> None:
        with self._lock:
            people = {**self._people, person.id: person}
            folder.write_json(self._path, {"people": [asdict(each) for each in people.values()]})
            self._people = people


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(when: datetime) -> str:
    """UTC, ISO 8601, to the second."""
    return when.isoformat(timespec="seconds")
