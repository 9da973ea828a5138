"""What a data set's budget was, what was spent of it, and what is left: read from the ledger's entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloakgp.accounting import Approximate, Event, Exponential, Gaussian, compose, from_spec
from cloakgp.budget import Budget
from cloakgp.errors import Message, Phrase
from cloakgp.ledger.chain import CREATED, SPENT, Entry
from cloakgp.ledger.errors import LedgerError, LedgerTampered
from cloakgp.ledger.units import Protected, check_same, protected_in, split

_NUMBERS = 1000  # a release of so many numbers stands for any in what is said to be left


@dataclass(frozen=True)
class Balance:
    """What a data set's budget was, what was spent, and what may still be spent."""

    dataset: str
    budget: Budget
    events: tuple[Event, ...]
    protected: Protected

    @property
    def unit(self) -> str | None:
        """Whom all that is spent must protect; None until the first spend fixes it."""
        return self.protected.unit

    @property
    def partition(self) -> str:
        """The digest of who has which rows, if people are protected."""
        return self.protected.partition

    def check_terms(self, asked: Protected) -> None:
        """Raise unless what is asked is on this data set's terms."""
        check_same(self.dataset, self.protected, asked)

    def terms(self) -> dict[str, Any]:
        """What is fixed of columns and delta: names of the id column, private and public ones."""
        return {**asdict(self.protected.reads), "largest_delta": self.protected.delta}

    def left_for_release(self, delta: float | None = None) -> float:
        """The largest epsilon of one more release planned with `delta` (the budget's, if absent)."""
        delta = self.budget.delta if delta is None else delta
        mu = self.budget.largest(self.events, lambda mu: Gaussian(mu, _NUMBERS))
        return compose([Gaussian(mu, _NUMBERS)]).epsilon(delta) * (1 - 1e-9) if mu > 1e-6 else 0.0

    def left_for_selection(self) -> float:
        """The largest epsilon of one more private selection."""
        return self.budget.largest(self.events, Exponential)

    @property
    def spent(self) -> float:
        """What was spent, as an epsilon at the budget's delta, if sizes were settled beforehand (theorem 9).

        If later requests, or the decision to stop, depended on earlier answers, only the whole budget is
        proven (theorem 10).
        """
        return min(compose(self.events).epsilon(self.budget.delta), self.budget.epsilon)

    def __str__(self) -> str:
        b, n = self.budget, len(self.events)
        aside = f", {b.pure:g} of epsilon set aside for pure mechanisms" if b.pure else ""
        unit = "unit fixed by the first spend" if self.unit is None else f"unit: {self.unit}"
        return (
            f"{self.dataset}: ({b.epsilon:g}, {b.delta:g}) in all{aside}; {unit}\n"
            f"{self._terms()}"
            f"  {n} spend{'' if n == 1 else 's'}; epsilon {self.spent:.4g} at delta {b.delta:g}, if planned "
            "beforehand\n"
            f"  left for one more release: epsilon {_down(self.left_for_release())} at delta {b.delta:g}\n"
            f"  or for a selection: epsilon {_down(self.left_for_selection())}"
        )

    def _terms(self) -> str:
        """A line on columns and the largest delta, where there is something to say."""
        reads, delta = self.protected.reads, self.protected.delta
        said = [f"private columns: {', '.join(reads.private)}"] if reads.private else []
        said += [f"id column: {reads.people}"] if reads.people else []
        said += [f"delta of a release at most {delta:g}"] if delta not in (None, self.budget.delta) else []
        return f"  {'; '.join(said)}\n" if said else ""


def budgets_of(entries: Sequence[Entry]) -> dict[str, Budget]:
    """Every data set's budget, by its name."""
    budgets: dict[str, Budget] = {}
    for entry in entries:
        if entry.kind != CREATED:
            continue
        if entry.dataset in budgets:
            raise LedgerTampered(
                f"ledger: entry {entry.number} gives a second budget to data set {entry.dataset!r}, which no "
                "Ledger does."
            )
        try:
            budgets[entry.dataset] = Budget(**split(entry)[0])
        except (TypeError, ValueError):
            raise LedgerTampered(f"ledger: entry {entry.number} holds no budget.") from None
    return budgets


def event_of(entry: Entry) -> Event:
    """What a `spent` entry paid for."""
    try:
        return from_spec(split(entry)[0])
    except (TypeError, ValueError):
        raise LedgerTampered(f"ledger: entry {entry.number} holds no event.") from None


def balance_of(entries: Sequence[Entry], dataset: str) -> Balance:
    """A data set's, or an error that says which there are."""
    budgets = budgets_of(entries)
    if dataset not in budgets:
        known = ", ".join(map(repr, budgets)) or "none yet"
        raise LedgerError(
            Message(
                f"dataset {dataset!r} is not in this ledger (there: {known}). ",
                Phrase.CREATE_LEDGER,
                " makes one. Nothing was spent.",
            )
        )
    spends = (entry for entry in entries if entry.kind == SPENT and entry.dataset == dataset)
    events = tuple(event_of(entry) for entry in spends)
    return Balance(dataset, budgets[dataset], events, protected_in(entries, dataset))


def refusal(balance: Balance, event: Event) -> str:
    """Why an event is not paid for."""
    if isinstance(event, Gaussian):
        delta = balance.budget.delta
        asked = f"Gaussian noise, epsilon {compose([event]).epsilon(delta):.4g} at delta {delta:g}"
    else:
        asked = f"{type(event).__name__} mechanism, epsilon {event.epsilon:.4g}"
    first = ""
    if isinstance(event, Approximate) and event.delta > 0 and balance.events:
        first = " An approximate mechanism can only be the first: what follows must not choose its delta."
    refused = f"the request ({asked}) does not fit into what is left; "
    return Message(refused, Phrase.NOT_READ, f".{first}\n{balance}")


def _down(value: float) -> str:
    """Four digits, rounded down: what is said to be left must fit (plans calibrate with a margin of 1e-8)."""
    if value < 1e-6:  # no plan is made with less
        return "0"
    unit = 10.0 ** (np.floor(np.log10(value)) - 3)
    return f"{np.floor(value / unit * (1 + 2e-9)) * unit:.4g}"
