"""What a request reads, costs and leaves, told before anything is spent; and its name in the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.core.accounting import Event
from cloakgp.data.people import ALIKE, EXACT
from cloakgp.ledger import Balance, Entry, Ledger
from cloakgp.ledger.balances import Reads, Terms
from cloakgp.measure.unit import OUTCOME, PERSON, PERSON_ROWS, ROW
from cloakgp.release.settings import Settings

_LISTS = {
    "at": "test points",
    "inducing": "inducing inputs",
    "bounds": "rows with bounds of their own",
    "mean": "rows with a prior mean of their own",
    "noise": "rows with a noise variance of their own",
    "weights": "test points with a weight of their own",
    "basis": "points that the function stands on",
}
"""What of settings may be a list, which nobody reads through: how long it is, is told."""


@dataclass(frozen=True)
class Request:
    """What the private step is asked for: columns, promise, and lists among the settings."""

    terms: Terms
    """What is compared with a data set's terms, before anything is read."""
    epsilon: float
    lists: Sequence[str] = ()
    """Such as ``76 test points``."""
    reading: str = ""
    """How the table is written, if the settings say so."""

    @classmethod
    def by_columns(
        cls,
        inputs: Sequence[str],
        output: str,
        people: str | None,
        *,
        epsilon: float,
        delta: float,
        whole_rows: bool = False,
        ids: str = ALIKE,
        **told: Any,
    ) -> Request:
        """What is asked of these columns; inputs are private, too, where whole rows are protected."""
        private, public = ((*inputs, output), ()) if whole_rows else ((output,), tuple(inputs))
        unit = (OUTCOME, PERSON, ROW, PERSON_ROWS)[2 * whole_rows + (people is not None)]
        return cls(Terms(private, public, people, unit.name, delta=delta, ids=ids), epsilon, **told)

    @classmethod
    def of(cls, settings: Settings) -> Request:
        """What settings ask for."""
        s, reading = settings, "" if settings.reading is None else str(settings.reading)
        lists = [f"{n} {what}" for name, what in _LISTS.items() if (n := _length(getattr(s, name), name))]
        told: Any = {"epsilon": s.epsilon, "delta": s.delta, "ids": s.ids, "lists": lists, "reading": reading}
        return cls.by_columns(s.inputs, s.output, s.people, whole_rows=s.hides_inputs, **told)

    @property
    def reads(self) -> Reads:
        """The columns alone."""
        return Reads(self.terms.private, self.terms.public, self.terms.people)

    @property
    def whole_rows(self) -> bool:
        """Whether inputs are private, too."""
        return self.terms.unit in (ROW.name, PERSON_ROWS.name)

    def lines(self) -> list[str]:
        """What whoever pays must know, in words."""
        terms = self.terms
        who = "" if terms.people is None else f", by the id column {terms.people!r}"
        said = [
            ("read privately", ", ".join(map(repr, terms.private))),
            ("read and published", ", ".join(map(repr, terms.public))),
            ("unit", f"{terms.unit}{who}"),
            ("promises", f"epsilon {self.epsilon:g}, delta {terms.delta:g}"),
            ("ids", "each way of writing one is ANOTHER PERSON" if terms.ids == EXACT else ""),
            ("the table is read as", self.reading),
            ("lists in the settings", ", ".join(self.lists)),
        ]
        return [f"{name}: {value}" for name, value in said if value]


def _length(value: Any, name: str) -> int:
    """Of a list among settings; 0 if it is none, such as a number, or two bounds for all."""
    parts = value if name == "bounds" and value is not None else (value,)
    return max(len(part) if np.ndim(part) else 0 for part in parts)


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
