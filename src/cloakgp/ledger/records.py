"""How the ledger's entries are read, checked and added to: what every kind of charge does."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import checks
from cloakgp.errors import ArgumentTypeError, Message, Phrase
from cloakgp.ledger.chain import BEFORE_ALL, Entry, check_chain, sha256
from cloakgp.ledger.charge import Chargeable, Receipt
from cloakgp.ledger.errors import LedgerAbsent, LedgerError, LedgerTampered
from cloakgp.ledger.stage_order import progress_of
from cloakgp.ledger.units import Reads
from cloakgp.measurements.lattice import IntArray

if TYPE_CHECKING:
    from cloakgp.ledger.store import Store

EMPTY = Message("ledger: it is empty. ", Phrase.CREATE_LEDGER, " makes a data set.")


class Records:
    """A ledger's entries in their database, and who adds to them."""

    def __init__(self, url: str, *, who: str | None = None, timeout: float = 60.0) -> None:
        from cloakgp.ledger.store import Store

        if not isinstance(url, str):
            raise ArgumentTypeError("url", "must be text, such as 'sqlite:///budget.db'", type(url).__name__)
        self._timeout = checks.positive(timeout, "timeout")
        self._who = checks.text(_user() if who is None else who, "who")
        self._store: Store = Store(url, self._timeout)
        self._reads = Reads()

    def _answer(self, connection: Any, entry: Entry) -> IntArray:
        """The answer that was recorded with an entry."""
        contents = self._store.contents(connection, entry.number)
        if contents is None or sha256(contents) != entry.answer or len(contents) % 8:
            raise LedgerTampered(f"ledger: the answer of entry {entry.number} was changed.")
        answer: IntArray = np.frombuffer(contents, dtype="<i8").astype(np.int64)
        return answer

    def _kept_plan(self, connection: Any, entry: Entry) -> bytes | None:
        """The plan that an entry paid for; None where an answer can be read without."""
        kept = self._store.kept_plan(connection, entry.number)
        if entry.kept != ("" if kept is None else sha256(kept)):
            raise LedgerTampered(f"ledger: the plan of entry {entry.number} was changed.")
        return kept

    def _append(
        self,
        connection: Any,
        entries: Sequence[Entry],
        kind: str,
        *,
        what: dict[str, Any],
        dataset: str = "",
        why: str = "",
        plan: str = "",
        inputs: str = "",
        request: str | None = None,
        contents: bytes | None = None,
        question: str = "",
        kept_plan: bytes | None = None,
    ) -> Entry:
        entry = Entry(
            number=len(entries),
            kind=kind,
            dataset=dataset,
            who=self._who,
            why=why,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            what=what,
            plan=plan,
            inputs=inputs,
            request=request,
            answer="" if contents is None else sha256(contents),
            previous=entries[-1].hash if entries else BEFORE_ALL,
            question=question,
            kept="" if kept_plan is None else sha256(kept_plan),
        ).sealed()
        self._store.append(connection, entry, contents, kept_plan)
        return entry

    def _checked(self, connection: Any) -> list[Entry]:
        entries = self._store.entries(connection)
        check_chain(entries)
        progress_of(entries)
        return entries

    def _checked_to_write(self, connection: Any) -> list[Entry]:
        """All entries, before one is added: a subclass may ask for more than an unbroken chain."""
        return self._checked(connection)

    def _read(self) -> list[Entry]:
        with self._store.reading() as connection:
            entries = self._checked(connection)
        if not entries:
            raise LedgerAbsent(EMPTY)
        return entries


def receipt_of(entry: Entry) -> Receipt:
    """What says later that this entry was there."""
    return Receipt(entry.dataset, entry.number, entry.hash)


def as_contents(answer: Any) -> bytes:
    """An answer as it is recorded."""
    return np.asarray(answer, dtype="<i8").tobytes()


def check_number(entry: Any) -> None:
    """Raise unless this may be an entry's number."""
    if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
        raise ArgumentTypeError(
            "entry", "must be the number of an entry", repr(entry), "See ledger.entries()."
        )


def check_plan(entry: Entry, plan: Chargeable) -> None:
    """Raise unless the entry paid for this plan, or for the same question planned on another machine."""
    if entry.plan != plan.digest and entry.question != plan.question_digest:
        raise LedgerError(
            Message(
                f"ledger: entry {entry.number} was made from another plan. Use the same inputs and "
                "settings as then, or ",
                Phrase.NEW_REQUEST,
                ". Nothing was spent.",
            )
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user table
        return f"user {os.getuid()}"
