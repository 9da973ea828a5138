"""Whom a data set's promises are about: one unit, and one partition of the rows into people.

Spends are added up to one promise, and a sum is a promise about somebody only if each part is one about them.
So a data set's first spend fixes its unit, unless that was done when it was created, and the first spend that
knows who has which rows fixes that. What is for another unit, or for other people, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cloakgp.errors import Argument, ArgumentError, Message, Phrase
from cloakgp.ledger.chain import CREATED, SPENT, Entry
from cloakgp.ledger.errors import LedgerTampered, UnitMismatch
from cloakgp.measurements.unit import OUTCOME, PERSON, UNITS


@dataclass(frozen=True)
class Protected:
    """A unit of protection and, of people, the digest of who has which rows."""

    unit: str | None = None
    """A unit's name; None where nothing has fixed it yet."""
    partition: str = ""
    """Of a plan that protects people; empty where nothing has fixed it, or there are none."""

    def allows(self, other: Protected) -> bool:
        """Whether what protects `other` adds up with what protects these."""
        same_people = "" in (self.partition, other.partition) or self.partition == other.partition
        return self.unit in (None, other.unit) and same_people

    def then(self, other: Protected) -> Protected:
        """What is fixed once `other` is paid for."""
        return Protected(self.unit or other.unit, self.partition or other.partition)

    def words(self) -> dict[str, str]:
        """For an entry of the ledger."""
        found = {"unit": self.unit, "partition": self.partition}
        return {name: value for name, value in found.items() if value}


def protected_by(plan: Any) -> Protected:
    """Whom a plan protects."""
    if plan.unit == PERSON.name and not plan.partition:  # or any other partition would pass for the same
        raise ArgumentError("plan", f"must know who has which rows: its unit is {plan.unit}")
    return as_protected(plan.unit, plan.partition)


def as_protected(unit: Any, partition: Any = "") -> Protected:
    """A unit and a partition that were given, checked."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise ArgumentError("unit", f"must be one of {', '.join(map(repr, UNITS))}", repr(unit))
    if not isinstance(partition, str) or (partition and unit != PERSON.name):
        remedy = "It is a plan's partition, for the unit 'one person' alone."
        raise ArgumentError("partition", "must be the digest of who has which rows", remedy=remedy)
    return Protected(unit, partition)


def split(entry: Entry) -> tuple[dict[str, Any], Protected]:
    """What an entry says beside its unit and partition; and these, as it has them."""
    what = dict(entry.what) if isinstance(entry.what, dict) else {}
    if entry.kind == CREATED and "unit" not in what:
        return what, Protected()
    # Without one it was spent when there was no other.
    unit, partition = what.pop("unit", OUTCOME.name), what.pop("partition", "")
    try:
        return what, as_protected(unit, partition)
    except ArgumentError:
        raise LedgerTampered(f"ledger: entry {entry.number} protects nobody that can be named.") from None


def protected_in(entries: Iterable[Entry], dataset: str) -> Protected:
    """Whom a data set's promises are about, by all that was paid for; raises if that is not one promise."""
    found = Protected()
    for entry in entries:
        if entry.dataset != dataset or entry.kind not in (CREATED, SPENT):
            continue
        _, other = split(entry)
        if not found.allows(other):
            raise LedgerTampered(
                f"ledger: entry {entry.number} protects {other.unit} in the data set {dataset!r} of "
                f"{found.unit}, or other people: no Ledger does that."
            )
        found = found.then(other)
    return found


def check_same(dataset: str, fixed: Protected, asked: Protected) -> None:
    """Raise, with the reason and what to do, unless both can be paid from one budget."""
    if fixed.allows(asked):
        return
    if fixed.unit != asked.unit:
        said = (
            f"dataset {dataset!r} has the unit {fixed.unit!r}, and this is for {asked.unit!r}. Promises for "
            "different units do not add up to one promise. "
        )
    else:
        said = (
            f"dataset {dataset!r} has the unit {fixed.unit!r}, and this is for rows that are shared out "
            "among people in another way. Promises to different people do not add up to one promise. "
        )
    public_inputs = asked.unit in (OUTCOME.name, PERSON.name)
    if fixed.unit == OUTCOME.name and public_inputs:
        remedy = ["When planning, leave out ", Argument("people")]
    elif fixed.unit == PERSON.name and public_inputs:
        said += "When planning, say whose row each is: "
        remedy = ["the same rows, and the same ", Argument("people"), ", as before"]
    else:
        remedy = [f"Make a plan for {fixed.unit}"]
    own = "; or give this a data set of its own, with its own budget (", Phrase.CREATE_LEDGER, "). "
    raise UnitMismatch(Message(said, *remedy, *own, "Nothing was spent, and ", Phrase.NOT_READ, "."))
