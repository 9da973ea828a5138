"""The ledger's entries, and what shows that one was changed or removed: a chain of hashes, and receipts.

Each entry's hash covers all its words, the digests of its answer and its plan, and the hash of the entry
before it. So a hash stands for the whole ledger up to there.

A release is its stages. The `spent` entry pays for all of them and holds the answer of the first; an
`answered` entry, which costs nothing, holds that of a later one. Of a plan with one stage, the `spent` entry
is all there is.

A chain whose end was cut off, or in whose place an old copy was put, is a good chain in itself. Whoever holds
a receipt can tell: it names an entry and its hash. The receipt of a release in stages is that of its last
answer: what paid for it, and its earlier stages, come before.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloakgp.core.errors import Argument, ArgumentTypeError, Message
from cloakgp.files import reading, schema

OPENED, CREATED, ALLOWED, SPENT, ANSWERED = "opened", "created", "allowed", "spent", "answered"


class LedgerError(RuntimeError):
    """The ledger could not be used as asked. Whenever one of these is raised, no answer has left."""


class LedgerAbsent(LedgerError):
    """There is no ledger yet, or no more."""


class DatasetExists(LedgerError):
    """The data set is in the ledger already, and its budget stands."""


class BudgetExceeded(LedgerError):
    """The request does not fit into what is left. y was not read."""


class TermsMismatch(LedgerError):
    """The request is not on the data set's terms: other columns, or a larger delta. y was not read.

    `argument` is what is wrong, `expected` what it must be, and `remedy` says what to do.
    """

    def __init__(self, message: str, argument: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.argument, self.expected, self.remedy = argument, expected, remedy


class UnitMismatch(TermsMismatch):
    """The request protects another unit, or other people, than the data set. y was not read."""


class LedgerTampered(LedgerError):
    """The ledger is not what it was: an entry was changed, removed or put in, or it is an old copy."""


@dataclass(frozen=True)
class Receipt:
    """Where a release stands in a ledger: lets the ledger be checked against the release later."""

    dataset: str
    entry: int
    head: str
    """The hash of that entry, and so of everything up to it."""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Nothing in it depends on y but the digest of the released answer."""

    number: int
    kind: str
    """`opened` (the ledger itself, entry 0), `created` (a data set, its budget and its terms), `allowed`
    (more private columns for it), `spent`, or `answered` (a later stage of a release that was paid for)."""
    who: str
    when: str
    """UTC, ISO 8601."""
    what: dict[str, Any]
    """The budget and terms of a `created` entry; the columns of an `allowed` one; the event of a `spent` one,
    what it was for, and how many stages there are; of an `answered` one, the entry that paid and the stage's
    number, from 1."""
    previous: str = "0" * 64
    """The hash of the entry before; zeros of the first."""
    dataset: str = ""
    why: str = ""
    plan: str = ""
    """SHA-256 of the public plan."""
    inputs: str = ""
    """SHA-256 of X, as in the release file; empty where the plan does not show X."""
    request: str | None = None
    """The caller's name for the request: asked for again, the same answer is given again."""
    answer: str = ""
    """SHA-256 of what was released."""
    question: str = ""
    """SHA-256 of what was asked, of whom: the same on every machine, unlike the plan's last digits."""
    kept: str = ""
    """SHA-256 of the plan, or the stage's plan, that is kept: an answer is read by its own integers."""
    hash: str = ""

    def sealed(self) -> Entry:
        """The same with its hash."""
        words = {name: value for name, value in vars(self).items() if name != "hash"}
        text = json.dumps(words, sort_keys=True, ensure_ascii=True, allow_nan=False)
        return replace(self, hash=sha256(text.encode()))

    @property
    def receipt(self) -> Receipt:
        """What its release carries."""
        return Receipt(self.dataset, self.number, self.hash)


def sha256(data: bytes | None) -> str:
    """A digest; of nothing, nothing."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def tampered(entry: Entry, said: str) -> LedgerTampered:
    """The error for an entry that no ledger wrote as it is."""
    return LedgerTampered(
        f"ledger: entry {entry.number} {said}. Restore the ledger from a backup; until then spend nothing "
        "from it."
    )


def check_chain(entries: Sequence[Entry]) -> None:
    """Raise unless these are all the entries, unchanged, from the first on, and as a ledger writes them."""
    previous = Entry.previous
    for position, entry in enumerate(entries):
        if entry.number != position:
            raise tampered(replace(entry, number=position), "is missing")
        if entry.previous != previous or _hash(entry) != entry.hash:
            raise tampered(entry, "was changed after it was written, or the one before it was")
        if entry.kind not in ((CREATED, ALLOWED, SPENT, ANSWERED) if position else (OPENED,)):
            raise tampered(entry, "is of a kind that has no place there")
        previous = entry.hash
    releases_of(entries)


def _hash(entry: Entry) -> str:
    """The hash that an entry should have; none if it holds what no ledger wrote."""
    try:
        return entry.sealed().hash
    except (TypeError, ValueError, RecursionError):
        return ""


def releases_of(entries: Sequence[Entry]) -> dict[int, list[Entry]]:
    """The entries of each release's answered stages, by the number of the first, which paid for all."""
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.kind == SPENT and entry.plan:
            stages = entry.what.get("stages") if isinstance(entry.what, dict) else None
            if type(stages) is not int or stages < 1 or not entry.answer:
                raise tampered(entry, "pays for a release without stages, or without an answer")
            found[entry.number] = [entry]
        elif entry.kind == ANSWERED:
            said = _fault_of_stage(entry, found)
            if said:
                raise tampered(entry, f"{said}, which no Ledger does")
            found[entry.what["paid"]].append(entry)
    return found


def _fault_of_stage(entry: Entry, found: dict[int, list[Entry]]) -> str:
    """Why this cannot be the next stage of a release; nothing if it can."""
    what: Any = entry.what
    if not isinstance(what, dict) or what.keys() != {"paid", "stage"} or entry.request is not None:
        return "holds no stage"
    if any(type(number) is not int for number in what.values()):  # a bool is none
        return "holds no stage"
    release = found.get(what["paid"])
    if release is None or (release[0].dataset, release[0].plan) != (entry.dataset, entry.plan):
        return "is a stage that no earlier entry of its data set and plan pays for"
    if not 0 <= what["stage"] < release[0].what["stages"]:
        return "is a stage more than its release has"
    if what["stage"] != len(release):
        return "answers a stage twice, or out of order"
    return "" if entry.answer and entry.kept else "answers a stage without an answer, or without its plan"


@dataclass(frozen=True)
class Claim:
    """What says that it is in the ledger: a receipt and, of a release, its plan's digest and its answers'."""

    name: str
    """For messages: a release file's, or nothing."""
    receipt: Receipt | None
    plan: str = ""
    answers: tuple[str, ...] = ()
    """One for each stage; none of a receipt by itself."""
    unreadable: str = ""
    """Why nothing is known of it, if it is a file that cannot be read."""

    def fault(self, entries: Sequence[Entry]) -> str | None:
        """Why it does not hold, in one line; None if it does."""
        said = self.unreadable or self._fault(entries)
        return f"{self.name}: {said}" if said and self.name else said

    def _fault(self, entries: Sequence[Entry]) -> str | None:
        receipt = self.receipt
        if receipt is None:
            return "a release that carries no receipt: it was not made through a ledger"
        name = f"entry {receipt.entry} of data set {receipt.dataset!r}"
        if not 0 <= receipt.entry < len(entries):
            return f"{name} is not there any more: the end was cut off, or an old copy was put in its place"
        entry = entries[receipt.entry]
        if entry.receipt != receipt:
            return f"{name} is another one there: this is another ledger, or its history was written anew"
        releases = releases_of(entries[: entry.number + 1]).values() if self.answers else ()
        release = next((each for each in releases if each[-1] == entry), [])
        if [(each.plan, each.answer) for each in release] != [(self.plan, answer) for answer in self.answers]:
            return f"{name} was made from another plan or gave another answer, in this stage or one before"
        return None


def claim_of(given: Any, argument: str = "receipts") -> Claim:
    """The claim of a receipt, of a release, or of the release in a file."""
    if isinstance(given, Claim):
        return given
    if isinstance(given, Receipt):
        return Claim("", given)
    if isinstance(given, (str, os.PathLike)):
        name = os.fspath(given)
        try:
            manifest, arrays, _ = reading.read(given)
        except FileNotFoundError:
            said = Message(Argument(argument), f": there is no file {name!r}.")
            raise FileNotFoundError(said) from None
        plan, receipt = reading.plan_digest(manifest, arrays), None
        answers = reading.answers_of(manifest, arrays)
        if manifest["ledger"] is not None:
            receipt = Receipt(manifest[schema.CUSTODIANS_WORDS]["dataset"], **manifest["ledger"])
    elif all(hasattr(given, word) for word in ("plan", "z", "receipt")):
        name, plan, receipt = "", given.plan.digest, given.receipt
        answers = [stage.answer for stage in getattr(given, "stages", ())] or [given.z]
    else:
        raise ArgumentTypeError(
            argument, "must be receipts, release files, or what release or select gave", type(given).__name__
        )
    digests = tuple(sha256(np.asarray(answer, dtype="<i8").tobytes()) for answer in answers)
    return Claim(str(name), receipt, plan, digests)


def claims_of(given: Any, argument: str) -> list[Claim]:
    """The claims of one or many receipts, releases or release files."""
    if isinstance(given, (str, os.PathLike, Receipt, Claim)) or not isinstance(given, Iterable):
        given = [given]
    return [claim_of(each, argument) for each in given]


def check_claims(claims: Sequence[Claim], entries: Sequence[Entry]) -> None:
    """Raise, with a line for each claim that does not hold, unless all do."""
    faults = [said for claim in claims if (said := claim.fault(entries)) is not None]
    if not faults:
        return
    lost = f"{len(faults)} of {len(claims)} receipts are not in it" if len(faults) > 1 else faults[0]
    listed = [f"  {said}" for said in faults] if len(faults) > 1 else []
    advice = "Restore the newest ledger, or use the one that paid; until then spend nothing from this one."
    raise LedgerTampered("\n".join([f"ledger: {lost}. {advice}", *listed]))
