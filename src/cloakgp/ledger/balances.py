"""A data set's terms and budget, what was spent of it, and what is left: read from the ledger's entries.

Spends are added up to one promise, and a sum is a promise about somebody only if each part is one about them.
So a data set has one unit, and one partition of the rows into people. Settings come from others, too, and may
name another id column, publish a private column as an input, or promise next to nothing. So it also has one
id column, a way of comparing ids, a list of the private columns that it pays for, and a largest delta. What
was not fixed when the data set was created is fixed by the first spend that knows it, and what differs is
refused.

Names are compared where a request has them: columns of files and frames do, arrays do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from cloakgp.core import checks
from cloakgp.core.accounting import Event, Exponential, Gaussian, compose, from_spec
from cloakgp.core.budget import Budget
from cloakgp.core.errors import Argument, ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.data.people import ALIKE, EXACT, IDS
from cloakgp.ledger.chain import (
    ALLOWED,
    ANSWERED,
    CREATED,
    OPENED,
    Entry,
    LedgerError,
    TermsMismatch,
    UnitMismatch,
    tampered,
)
from cloakgp.measure.unit import OUTCOME, PERSON, UNITS

Names = str | Sequence[str]


@dataclass(frozen=True)
class Reads:
    """The columns that a request reads, by their names; empty where they have none."""

    private: tuple[str, ...] = ()
    """For the private step alone: outcomes and, of whole rows, inputs."""
    public: tuple[str, ...] = ()
    """Inputs that are published."""
    people: str | None = None
    """The id column."""

    def then(self, other: Reads) -> Self:
        """The same with what only `other` knows, and with all that either publishes."""
        known = {
            field.name: getattr(self, field.name) or getattr(other, field.name) for field in fields(self)
        }
        return replace(self, **known | {"public": tuple(dict.fromkeys((*self.public, *other.public)))})


@dataclass(frozen=True)
class Terms(Reads):
    """What a data set has fixed; or what a request is for."""

    unit: str | None = None
    """A unit's name; None where nothing has fixed it yet."""
    partition: str = ""
    """Of a plan that protects people; empty where nothing has fixed it, or there are none."""
    delta: float | None = None
    """The largest of one release; of a request, its own. None where it is not known."""
    ids: str = ALIKE
    """How people's ids are compared: exactly as they are written only where a data set allows that."""

    def __post_init__(self) -> None:
        for name in ("private", "public"):
            object.__setattr__(self, name, as_names(getattr(self, name), name))
        as_names(() if self.people is None else [self.people], "people")
        if self.unit is not None:
            checks.choice(self.unit, "unit", UNITS)
        if not isinstance(self.partition, str) or (self.partition and self.unit != PERSON.name):
            remedy = "It is a plan's partition, for the unit 'one person' alone."
            raise ArgumentError("partition", "must be the digest of who has which rows", remedy=remedy)
        if self.delta is not None:
            object.__setattr__(self, "delta", checks.number(self.delta, "delta"))
        checks.choice(self.ids, "ids", IDS)

    @property
    def published(self) -> set[str]:
        """Columns that are told to everybody: inputs and, where it is public who has which rows, ids."""
        ids = {self.people} if self.unit == PERSON.name and self.people else set()
        return {*self.public, *ids}

    def allowing(self, private: Sequence[str]) -> Terms:
        """The same with more private columns; raises if one of them was published, or tells who is who."""
        for name in private:
            if name in self.published or name == self.people:
                expected = f"must not have {name!r}, which was read as public or is the id column"
                raise ArgumentError("private", expected, remedy="What was published cannot be protected.")
        return replace(self, private=(*self.private, *private))

    def words(self) -> dict[str, Any]:
        """For an entry of the ledger: what is not as it is by itself."""
        own: dict[str, Any] = vars(self)
        found = {name: value for name, value in own.items() if value not in (None, "", (), ALIKE)}
        found |= {name: list(found[name]) for name in ("private", "public") if name in found}
        return {_IN_ENTRIES.get(name, name): value for name, value in found.items()}

    def check(self, dataset: str, asked: Terms) -> None:
        """Raise, with the reason and what to do, unless what is asked can be paid from this data set."""
        for kind, argument, said, remedy in self._differences(asked):
            end = " Nothing was spent, and ", Phrase.NOT_READ, "."
            message = Message(f"dataset {dataset!r}{said} ", *remedy, *end)
            raise kind(message, argument, said.lstrip(": "), "".join(remedy))

    def _differences(self, asked: Terms) -> Iterator[tuple[type[TermsMismatch], str, str, list[str]]]:
        """Each term in which `asked` differs: the error, the argument, what it must be, and what to do."""
        of_its_own: list[str] = ["; or give this a data set of its own, with its own budget ("]
        of_its_own += [Phrase.CREATE_LEDGER, ")."]
        if self.unit not in (None, asked.unit) or _differ(self.partition, asked.partition):
            same = self.unit == asked.unit
            about = (
                "rows that are shared out among people in another way. Promises to different people"
                if same
                else f"{asked.unit!r}. Promises for different units"
            )
            remedy: list[str] = [f"Make a plan for {self.unit}"]
            if {self.unit, asked.unit} <= {OUTCOME.name, PERSON.name}:  # whose X is public
                remedy = ["When planning, leave out ", Argument("people")]
                if self.unit == PERSON.name:
                    remedy = ["When planning, say whose row each is: the same rows, and the same "]
                    remedy += [Argument("people"), ", as before"]
            said = f" has the unit {self.unit!r}, and this is for {about} do not add up to one promise."
            yield UnitMismatch, "people" if same else "unit", said, remedy + of_its_own
        if _differ(self.people, asked.people):
            said = f": the id column must be {self.people!r}; got {asked.people!r}."
            yield TermsMismatch, "people", said, [f"Plan with {self.people!r}", *of_its_own]
        if leaked := _named(name for name in self.private if name in asked.published):
            said = f": inputs and ids are published, and must not have {leaked}, which is private there."
            yield TermsMismatch, "X", said, ["Plan without it."]
        if public := _named(name for name in asked.private if name in self.published):
            said = f": private columns must not have {public}, which is public there."
            remedy = ["What was published cannot be protected: plan without it."]
            yield TermsMismatch, "private", said, remedy
        if self.private and (others := _named(name for name in asked.private if name not in self.private)):
            said = f": private columns must be among {_named(self.private)}; got {others}."
            remedy = ["If the same budget is to pay for it, too, its custodian says so first: "]
            yield TermsMismatch, "private", said, [*remedy, Phrase.ALLOW_COLUMNS, "."]
        if asked.ids == EXACT != self.ids:
            said = ": ids must be compared alike; this takes each way of writing one for another person."
            yield TermsMismatch, "ids", said, ["Plan without ", Argument("ids"), *of_its_own]
        if self.delta is not None and asked.delta is not None and asked.delta > self.delta:
            said = f": delta of a release must be at most {self.delta:g}; got {asked.delta:g}."
            yield TermsMismatch, "delta", said, ["Plan with a smaller one", *of_its_own]


_IN_ENTRIES = {"delta": "release_delta"}  # a budget has a delta, too


def _differ(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and one != other


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def as_names(names: Any, argument: str) -> tuple[str, ...]:
    """Names of columns, each once; one may stand by itself."""
    if not isinstance(names, Iterable):
        raise ArgumentTypeError(argument, "must be names of columns", type(names).__name__)
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(argument, "must name columns as the table does", f"{name!r:.100}")
        checks.text(name, argument)
    return tuple(dict.fromkeys(listed))


def terms_of(plan: Any, reads: Reads) -> Terms:
    """What a plan is for, if it reads these columns."""
    if plan.unit == PERSON.name and not plan.partition:  # or any other partition would pass for the same
        raise ArgumentError("plan", f"must know who has which rows: its unit is {plan.unit}")
    ids = getattr(getattr(plan, "certificate", None), "ids", ALIKE)
    return Terms(**vars(reads), unit=plan.unit, partition=plan.partition, delta=plan.delta, ids=ids)


@dataclass(frozen=True)
class Balance:
    """What a data set's budget was, what was spent, and what may still be spent."""

    dataset: str
    budget: Budget
    events: tuple[Event, ...]
    protected: Terms

    @property
    def unit(self) -> str | None:
        """Whom all that is spent must protect; None until the first spend fixes it."""
        return self.protected.unit

    def check_terms(self, asked: Terms) -> None:
        """Raise unless what is asked is on this data set's terms."""
        self.protected.check(self.dataset, asked)

    def terms(self) -> dict[str, Any]:
        """What is fixed of columns and delta: names of the id column, private and public ones."""
        named = {field.name: getattr(self.protected, field.name) for field in fields(Reads)}
        return {**named, "largest_delta": self.protected.delta}

    def left_for_release(self, delta: float | None = None) -> float:
        """The largest epsilon of one more release planned with `delta` (the budget's, if absent)."""
        delta = self.budget.delta if delta is None else delta
        numbers = 1000  # a release of so many stands for any
        mu = self.budget.largest(self.events, lambda mu: Gaussian(mu, numbers))
        return compose([Gaussian(mu, numbers)]).epsilon(delta) * (1 - 1e-9) if mu > 1e-6 else 0.0

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
        b, terms = self.budget, self.protected
        spends = f"{len(self.events)} spend{'' if len(self.events) == 1 else 's'}"
        aside = f", {b.pure:g} of epsilon set aside for pure mechanisms" if b.pure else ""
        unit = "unit fixed by the first spend" if terms.unit is None else f"unit: {terms.unit}"
        said = [f"private columns: {', '.join(terms.private)}"] if terms.private else []
        said += [f"id column: {terms.people}"] if terms.people else []
        said += [f"delta of a release at most {terms.delta:g}"] if terms.delta not in (None, b.delta) else []
        left, chosen = self.left_for_release(), self.left_for_selection()
        return "\n  ".join(
            [
                f"{self.dataset}: ({b.epsilon:g}, {b.delta:g}) in all{aside}; {unit}",
                *(["; ".join(said)] if said else []),
                f"{spends}; epsilon {self.spent:.4g} at delta {b.delta:g}, if planned beforehand",
                f"left for one more release: epsilon {rounded_down(left)} at delta {b.delta:g}",
                f"or for a selection: epsilon {rounded_down(chosen)}",
            ]
        )

    def refusal(self, event: Event) -> str:
        """Why an event is not paid for."""
        delta, first = self.budget.delta, ""
        asked = f"{type(event).__name__} mechanism, epsilon {event.epsilon:.4g}"
        if not event.epsilon:
            asked = f"Gaussian noise, epsilon {compose([event]).epsilon(delta):.4g} at delta {delta:g}"
        if event.delta > 0 and self.events:
            first = " An approximate mechanism can only be the first: what follows must not choose its delta."
        refused = f"the request ({asked}) does not fit into what is left; "
        return Message(refused, Phrase.NOT_READ, f".{first}\n{self}")


def balances_in(entries: Iterable[Entry], *, whole: bool = False) -> dict[str, Balance]:
    """Every data set's balance, by its name; raises if an entry does not keep to its data set's terms.

    `whole`: and if it was not covered by what was left of the budget.
    """
    found: dict[str, Balance] = {}
    events: dict[str, list[Event]] = {}
    for entry in entries:
        if entry.kind in (OPENED, ANSWERED):
            continue
        try:
            _enter(entry, found, events, whole)
        except (TypeError, ValueError, TermsMismatch) as error:
            reason = getattr(error, "expected", error)
            said = f"is nothing that a Ledger writes about the data set {entry.dataset!r} ({reason})"
            raise tampered(entry, said) from None
    return {name: replace(balance, events=tuple(events[name])) for name, balance in found.items()}


def _enter(entry: Entry, found: dict[str, Balance], events: dict[str, list[Event]], whole: bool) -> None:
    """Add what an entry says to what is known before it."""
    name, what = entry.dataset, dict(entry.what)
    what.pop("stages", None)
    names = {_IN_ENTRIES.get(field.name, field.name): field.name for field in fields(Terms)}
    terms = Terms(**{names[word]: what.pop(word) for word in list(what) if word in names})
    if entry.kind == CREATED:
        if name in found:
            raise ValueError("a second budget")
        budget, events[name] = Budget(**what), []
        # A data set that says nothing allows releases no larger a delta than it has itself.
        fixed = terms if terms.delta is not None else replace(terms, delta=budget.delta)
        found[name] = Balance(name, budget, (), fixed)
        return
    if name not in found:
        raise ValueError("it is not there")
    balance = found[name]
    if entry.kind == ALLOWED:
        fixed = balance.protected.allowing(terms.private)
    else:
        if terms.unit is None:
            raise ValueError("it protects nobody that can be named")
        event = from_spec(what)
        if whole and not balance.budget.allows(events[name], event):
            raise ValueError("it is not covered by the budget")
        balance.check_terms(terms)
        fixed = balance.protected.then(terms)
        events[name].append(event)
    found[name] = replace(balance, protected=fixed)


def balance_of(entries: Sequence[Entry], dataset: str) -> Balance:
    """A data set's, or an error that says which there are."""
    found = balances_in(entries)
    if dataset not in found:
        known = ", ".join(map(repr, found)) or "none yet"
        absent = f"dataset {dataset!r} is not in this ledger (there: {known}). "
        raise LedgerError(Message(absent, Phrase.CREATE_LEDGER, " makes one. Nothing was spent."))
    return found[dataset]


def rounded_down(value: float) -> str:
    """Four digits, rounded down: what is said to be left must fit (plans calibrate with a margin of 1e-8)."""
    if value < 1e-6:  # no plan is made with less
        return "0"
    unit = 10.0 ** (np.floor(np.log10(value)) - 3)
    return f"{np.floor(value / unit * (1 + 2e-9)) * unit:.4g}"
