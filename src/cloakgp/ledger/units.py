"""A data set's terms: whom its promises are about, which columns they may read, and how large delta may be.

Spends are added up to one promise, and a sum is a promise about somebody only if each part is one about them.
So a data set has one unit, and one partition of the rows into people. Settings come from others, too, and may
name another id column, publish a private column as an input, or promise next to nothing. So it also has one
id column, a way of comparing ids, a list of the private columns that it pays for, and a largest delta. What
was not fixed when the data set was created is fixed by the first spend that knows it, and what differs is
refused.

Names are compared where a request has them: columns of files and frames do, arrays do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cloakgp import checks
from cloakgp.errors import Argument, ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.ledger.chain import ALLOWED, CREATED, SPENT, Entry
from cloakgp.ledger.errors import LedgerTampered, TermsMismatch, UnitMismatch
from cloakgp.measurements.unit import OUTCOME, PERSON, PERSON_ROWS, UNITS
from cloakgp.rows.people import ALIKE, EXACT, IDS, as_ids

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

    def over(self, other: Reads) -> Reads:
        """The same, and what only `other` knows."""
        return Reads(self.private or other.private, self.public or other.public, self.people or other.people)

    def then(self, other: Reads) -> Reads:
        """What a data set's are once `other` was read."""
        public = (*self.public, *(name for name in other.public if name not in self.public))
        return Reads(self.private or other.private, public, self.people or other.people)


@dataclass(frozen=True)
class Protected:
    """What a data set has fixed; or what a request is for."""

    unit: str | None = None
    """A unit's name; None where nothing has fixed it yet."""
    partition: str = ""
    """Of a plan that protects people; empty where nothing has fixed it, or there are none."""
    reads: Reads = Reads()
    delta: float | None = None
    """The largest of one release; of a request, its own. None where it is not known."""
    ids: str = ALIKE
    """How people's ids are compared: exactly as they are written only where a data set allows that."""

    @property
    def published(self) -> set[str]:
        """Columns that are told to everybody: inputs and, where it is public who has which rows, ids."""
        ids = {self.reads.people} if self.unit == PERSON.name and self.reads.people else set()
        return {*self.reads.public, *ids}

    def difference(self, other: Protected) -> str:
        """The first term in which `other` is not as a data set with these asks; empty if it is."""
        private, own = set(self.reads.private), set(other.reads.private)
        differs = {
            "unit": self.unit not in (None, other.unit),
            "partition": _differ(self.partition, other.partition),
            "people": _differ(self.reads.people, other.reads.people),
            "inputs": bool(private & other.published),
            "published": bool(own & self.published),
            "private": bool(private) and not own <= private,
            "ids": other.ids == EXACT != self.ids,
            "delta": None not in (self.delta, other.delta) and other.delta > self.delta,  # type: ignore[operator]
        }
        return next((term for term, is_other in differs.items() if is_other), "")

    def then(self, other: Protected) -> Protected:
        """What is fixed once `other` is paid for."""
        delta = other.delta if self.delta is None else self.delta
        reads, partition = self.reads.then(other.reads), self.partition or other.partition
        return Protected(self.unit or other.unit, partition, reads, delta, self.ids)

    def allowing(self, private: Sequence[str]) -> Protected:
        """The same with more private columns; raises if one of them was published, or tells who is who."""
        for name in private:
            if name in self.published or name == self.reads.people:
                expected = f"must not have {name!r}, which was read as public or is the id column"
                raise ArgumentError("private", expected, remedy="What was published cannot be protected.")
        listed = (*self.reads.private, *(name for name in private if name not in self.reads.private))
        return replace(self, reads=replace(self.reads, private=listed))

    def words(self) -> dict[str, Any]:
        """For an entry of the ledger."""
        found = {
            "unit": self.unit,
            "partition": self.partition,
            "people": self.reads.people,
            "private": list(self.reads.private),
            "public": list(self.reads.public),
            "release_delta": self.delta,
            "ids": self.ids,
        }
        return {name: value for name, value in found.items() if value not in (None, "", [], ALIKE)}


def _differ(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and one != other


def protected_by(plan: Any, reads: Reads) -> Protected:
    """What a plan is for, if it reads these columns."""
    if plan.unit == PERSON.name and not plan.partition:  # or any other partition would pass for the same
        raise ArgumentError("plan", f"must know who has which rows: its unit is {plan.unit}")
    ids = getattr(getattr(plan, "certificate", None), "ids", ALIKE)
    return replace(as_protected(plan.unit, plan.partition), reads=reads, delta=float(plan.delta), ids=ids)


def as_protected(unit: Any, partition: Any = "") -> Protected:
    """A unit and a partition that were given, checked."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise ArgumentError("unit", f"must be one of {', '.join(map(repr, UNITS))}", repr(unit))
    if not isinstance(partition, str) or (partition and unit != PERSON.name):
        remedy = "It is a plan's partition, for the unit 'one person' alone."
        raise ArgumentError("partition", "must be the digest of who has which rows", remedy=remedy)
    return Protected(unit, partition)


def as_terms(unit: Any, people: Any, private: Any, largest_delta: Any, ids: Any = ALIKE) -> Protected:
    """The terms that a data set is created with, checked."""
    terms = Protected() if unit is None else as_protected(unit)
    terms = replace(terms, ids=as_ids(ids, unit in (PERSON.name, PERSON_ROWS.name)))
    if people is not None:
        _check_name(people, "people")
        if unit not in (PERSON.name, PERSON_ROWS.name):
            expected = f"must be {PERSON.name!r} or {PERSON_ROWS.name!r} where people names the id column"
            raise ArgumentError("unit", expected, repr(unit))
    terms = replace(terms, reads=Reads(people=people))
    delta = checks.number(largest_delta, "largest_delta", above=0.0, below=1.0)
    return replace(terms.allowing(as_names(private, "private")), delta=delta)


def as_names(names: Any, argument: str) -> tuple[str, ...]:
    """Names of columns, each once; one may stand by itself."""
    if not isinstance(names, Iterable):
        raise ArgumentTypeError(argument, "must be names of columns", type(names).__name__)
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        _check_name(name, argument)
    return tuple(dict.fromkeys(listed))


def _check_name(name: Any, argument: str) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentTypeError(argument, "must name columns as the table does", f"{name!r:.100}")
    checks.text(name, argument)


def split(entry: Entry) -> tuple[dict[str, Any], Protected]:
    """What an entry says beside its terms; and these, as it has them."""
    what = dict(entry.what) if isinstance(entry.what, dict) else {}
    # A data set that says nothing allows releases no larger a delta than it has itself.
    delta = what.pop("release_delta", what.get("delta") if entry.kind == CREATED else None)
    columns = {name: what.pop(name, ()) for name in ("private", "public")}
    people, partition = what.pop("people", None), what.pop("partition", "")
    ids = what.pop("ids", ALIKE)
    unit = what.pop("unit", None)
    try:
        open_unit = unit is None and not partition and entry.kind != SPENT
        fixed = Protected() if open_unit else as_protected(unit, partition)
        private, public = (as_names(columns[name], name) for name in columns)
        if people is not None:
            _check_name(people, "people")
        if delta is not None:
            delta = checks.number(delta, "delta")
        checks.choice(ids, "ids", IDS)
    except ArgumentError:
        raise LedgerTampered(f"ledger: entry {entry.number} protects nobody that can be named.") from None
    return what, replace(fixed, reads=Reads(private, public, people), delta=delta, ids=ids)


def protected_in(entries: Iterable[Entry], dataset: str) -> Protected:
    """A data set's terms, by all that was allowed and paid for; raises if a spend does not keep to them."""
    found = Protected()
    for entry in entries:
        if entry.dataset != dataset or entry.kind not in (CREATED, SPENT, ALLOWED):
            continue
        _, other = split(entry)
        if entry.kind == ALLOWED:
            try:
                found = found.allowing(other.reads.private)
            except ArgumentError:
                raise LedgerTampered(
                    f"ledger: entry {entry.number} makes a column of the data set {dataset!r} private that "
                    "was published: no Ledger does that."
                ) from None
            continue
        if entry.kind == CREATED and found == Protected():
            found = other
            continue
        if found.difference(other):
            raise LedgerTampered(
                f"ledger: entry {entry.number} protects {other.unit} in the data set {dataset!r} of "
                f"{found.unit}, or other people, reads other columns, or has a larger delta than that "
                "allows: no Ledger does that."
            )
        found = found.then(other)
    return found


def check_same(dataset: str, fixed: Protected, asked: Protected) -> None:
    """Raise, with the reason and what to do, unless what is asked can be paid from this data set's budget."""
    term = fixed.difference(asked)
    if term in ("unit", "partition"):
        raise _other_unit(dataset, fixed, asked)
    if term:
        raise _other_terms(dataset, term, fixed, asked)


def _other_unit(dataset: str, fixed: Protected, asked: Protected) -> UnitMismatch:
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
    argument = "unit" if fixed.unit != asked.unit else "people"
    return UnitMismatch(Message(said, *remedy, *_OWN, *_NOTHING), argument, said.strip(), "".join(remedy))


_OWN = "; or give this a data set of its own, with its own budget (", Phrase.CREATE_LEDGER, "). "
_NOTHING = "Nothing was spent, and ", Phrase.NOT_READ, "."


def _other_terms(dataset: str, term: str, fixed: Protected, asked: Protected) -> TermsMismatch:
    """What is wrong with columns or delta."""
    listed, own = fixed.reads, asked.reads
    remedy: list[Any]
    if term == "people":
        said = f"the id column must be {listed.people!r}; got {own.people!r}"
        remedy = [f"Plan with {listed.people!r}", *_OWN]
    elif term == "inputs":
        leaked = _named(name for name in listed.private if name in asked.published)
        said = f"public inputs and ids are published, and must not have {leaked}, which is private there"
        remedy = ["Plan without it. "]
    elif term == "published":
        public = _named(name for name in own.private if name in fixed.published)
        said = f"private columns must not have {public}, which is public there"
        remedy = ["What was published cannot be protected: plan without it. "]
    elif term == "private":
        others = [name for name in own.private if name not in listed.private]
        said = f"private columns must be among {_named(listed.private)}; got {_named(others)}"
        remedy = ["If the same budget is to pay for it, too, its custodian says so first: "]
        remedy += [Phrase.ALLOW_COLUMNS, ". "]
    elif term == "ids":
        said = "ids must be compared alike; this takes each way of writing one for another person"
        remedy = ["Plan without ", Argument("ids"), *_OWN]
    else:
        said = f"delta of a release must be at most {fixed.delta:g}; got {asked.delta:g}"
        remedy = ["Plan with a smaller one", *_OWN]
    message = Message(f"dataset {dataset!r}: {said}. ", *remedy, *_NOTHING)
    argument = {"inputs": "X", "published": "private"}.get(term, term)
    return TermsMismatch(message, argument, said, "".join(map(str, remedy)).strip())


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
