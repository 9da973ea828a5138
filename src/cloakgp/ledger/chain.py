"""The ledger's entries, and the chain of hashes that shows when one was changed or removed.

Each entry's hash covers all its words, the digest of its answer, and the hash of the entry before it.
So a hash stands for the whole ledger up to there: a release file that carries one can tell later
whether that ledger still holds what it held then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cloakgp.ledger.errors import LedgerTampered

OPENED, CREATED, ALLOWED, SPENT = "opened", "created", "allowed", "spent"
PLANNED, ANSWERED = "planned", "answered"  # of a stage; see stage_order
BEFORE_ALL = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Nothing in it depends on y but the digest of the released answer."""

    number: int
    kind: str
    """`opened` (the ledger itself, entry 0), `created` (a data set, its budget and its terms), `allowed`
    (more private columns for it) or `spent`; of a release in stages that was paid for, `planned` and
    `answered`, which cost nothing."""
    dataset: str
    who: str
    why: str
    when: str
    """UTC, ISO 8601."""
    what: dict[str, Any]
    """The budget and terms of a `created` entry; the columns of an `allowed` one; the event of a `spent` one,
    and what it was for; of a stage, the entry that paid, its own number, from 0, and how many
    there are, with the SHA-256 of its plan where that is `planned`."""
    plan: str
    """SHA-256 of the public plan."""
    inputs: str
    """SHA-256 of X, as in the release file; empty where the plan does not show X."""
    request: str | None
    """The caller's name for the request: asked for again, the same answer is given again."""
    answer: str
    """SHA-256 of what was released; of a `planned` stage, of its plan."""
    previous: str
    question: str = ""
    """SHA-256 of what was asked, of whom: the same on every machine, unlike the plan's last digits."""
    kept: str = ""
    """SHA-256 of the plan that is kept with the charge: an answer is read by its own integers."""
    hash: str = ""

    def sealed(self) -> Entry:
        """The same with its hash."""
        words = {name: value for name, value in vars(self).items() if name != "hash"}
        text = json.dumps(words, sort_keys=True, ensure_ascii=True, allow_nan=False)
        return replace(self, hash=sha256(text.encode()))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_chain(entries: Sequence[Entry]) -> None:
    """Raise unless these are all the entries, unchanged, from the first on."""
    previous = BEFORE_ALL
    for position, entry in enumerate(entries):
        if entry.number != position:
            raise LedgerTampered(
                f"ledger: entry {position} is missing. Restore the ledger from a backup; until then spend "
                "nothing from it."
            )
        if entry.previous != previous or _hash(entry) != entry.hash:
            raise LedgerTampered(
                f"ledger: entry {position} was changed after it was written, or the one before it was. "
                "Restore the ledger from a backup; until then spend nothing from it."
            )
        previous = entry.hash
    for position, entry in enumerate(entries):
        if entry.kind not in ((CREATED, ALLOWED, SPENT, PLANNED, ANSWERED) if position else (OPENED,)):
            raise LedgerTampered(f"ledger: entry {position} is of a kind that has no place there.")


def _hash(entry: Entry) -> str:
    """The hash that an entry should have; none if it holds what no ledger wrote."""
    try:
        return entry.sealed().hash
    except (TypeError, ValueError, RecursionError):
        return ""
