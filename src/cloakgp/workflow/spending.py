"""What a request costs and leaves, told before anything is spent; and its name in the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from cloakgp.accounting import Event
from cloakgp.ledger import Balance, Entry, Ledger


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
