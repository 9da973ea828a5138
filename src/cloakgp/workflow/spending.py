"""What a request reads, costs and leaves, told before anything is spent; and its name in the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.accounting import Event
from cloakgp.ledger import Balance, Entry, Ledger
from cloakgp.ledger.units import Protected, Reads
from cloakgp.measurements.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.rows.people import ALIKE, EXACT
from cloakgp.workflow.learned_settings import AnySettings
from cloakgp.workflow.row_settings import RowSettings

_LISTS = {
    "at": "test points",
    "inducing": "inducing inputs",
    "bounds": "rows with bounds of their own",
    "mean": "rows with a prior mean of their own",
    "noise": "rows with a noise variance of their own",
}
"""What of settings may be a list, which nobody reads through: how long it is, is told."""


@dataclass(frozen=True)
class Request:
    """What the private step is asked for: columns, promise, and lists among the settings."""

    reads: Reads
    epsilon: float
    delta: float
    whole_rows: bool = False
    lists: tuple[str, ...] = ()
    """Such as ``76 test points``."""
    ids: str = ALIKE
    reading: str = ""
    """How the table is written, if the settings say so."""

    @classmethod
    def of(cls, settings: AnySettings) -> Request:
        """What settings ask for."""
        whole_rows = isinstance(settings, RowSettings)
        private = (*settings.inputs, settings.output) if whole_rows else (settings.output,)
        reads = Reads(private, () if whole_rows else tuple(settings.inputs), settings.people)
        lists = [f"{n} {what}" for name, what in _LISTS.items() if (n := _length(settings, name))]
        reading = "" if settings.reading is None else str(settings.reading)
        promise = settings.epsilon, settings.delta
        return cls(reads, *promise, whole_rows, tuple(lists), settings.ids, reading)

    @property
    def unit(self) -> str:
        """Whom it protects."""
        if self.whole_rows:
            return (ROW if self.reads.people is None else PERSON_ROWS).name
        return (OUTCOME if self.reads.people is None else PERSON).name

    @property
    def terms(self) -> Protected:
        """What is compared with a data set's terms, before anything is read."""
        return Protected(self.unit, "", self.reads, self.delta, self.ids)

    def lines(self) -> list[str]:
        """What whoever pays must know, in words."""
        reads = self.reads
        who = "" if reads.people is None else f", by the id column {reads.people!r}"
        said = [
            ("read privately", _named(reads.private)),
            ("read and published", _named(reads.public)),
            ("unit", f"{self.unit}{who}"),
            ("promises", f"epsilon {self.epsilon:g}, delta {self.delta:g}"),
            ("ids", "each way of writing one is ANOTHER PERSON" if self.ids == EXACT else ""),
            ("the table is read as", self.reading),
            ("lists in the settings", ", ".join(self.lists)),
        ]
        return [f"{name}: {value}" for name, value in said if value]


def _length(settings: AnySettings, name: str) -> int:
    """Of a list among settings; 0 if it is none, such as a number, or two bounds for all."""
    value: Any = getattr(settings, name, None)
    parts = value if name == "bounds" and value is not None else (value,)
    return max(len(part) if np.ndim(part) else 0 for part in parts)


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))


@dataclass(frozen=True)
class Quote:
    """A request's price, in terms of a data set's budget."""

    before: Balance
    event: Event
    known: Entry | None
    """The ledger's entry, if this very request was answered before: asking again is free."""

    @property
    def fits(self) -> bool:
        """Whether it may be granted."""
        return self.known is not None or self.before.budget.allows(self.before.events, self.event)

    @property
    def after(self) -> Balance:
        """The balance that granting it would leave."""
        spent = () if self.known is not None else (self.event,)
        return replace(self.before, events=(*self.before.events, *spent))


def quote(ledger: Ledger, dataset: str, event: Event, request: str) -> Quote:
    """Look up what `event` would cost; nothing is changed."""
    entries = ledger.entries(dataset)
    known = next((entry for entry in entries if entry.request == request), None)
    return Quote(ledger.balance(dataset), event, known)


def request_name(kind: str, again: str | None, **asked: Any) -> str:
    """A name for a request that is the same whenever the same thing is asked.

    The ledger gives an answered request's answer again for nothing, so a command that died can simply be run
    again. `again` sets a new request apart from an old one that asks the same.
    """
    words = json.dumps(asked, sort_keys=True, allow_nan=False)
    name = f"{kind} {hashlib.sha256(words.encode()).hexdigest()[:32]}"
    return name if again is None else f"{name} again: {again}"
