"""Receipts compared with the chain: what was paid for must still be in the ledger that paid for it.

A chain whose end was cut off, or in whose place an old copy was put, is a good chain in itself. Whoever holds
a receipt can tell: it names an entry, and the hash of that entry stands for everything up to it. The receipt
of a release in stages is that of its last answer: what paid for it, and its earlier stages, come before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.errors import Argument, ArgumentTypeError, Message
from cloakgp.files import reading, schema
from cloakgp.ledger.chain import ANSWERED, SPENT, Entry, sha256
from cloakgp.ledger.charge import Receipt
from cloakgp.ledger.errors import LedgerTampered

_ADVICE = "Restore the newest ledger, or use the one that paid; until then spend nothing from this one."


@dataclass(frozen=True)
class Claim:
    """What says that it is in the ledger: a receipt and, of a release, its plan's digest and its answer's."""

    name: str
    """For messages: a release file's, or nothing."""
    receipt: Receipt | None
    plan: str | None = None
    answer: str | None = None
    unreadable: str = ""
    """Why nothing is known of it, if it is a file that cannot be read."""
    earlier: tuple[str, ...] | None = None
    """The digests of the answers to a release's earlier stages, if they are known."""


def claims_of(given: Any, argument: str) -> list[Claim]:
    """The claims of one or many receipts, releases or release files."""
    if isinstance(given, (str, os.PathLike, Receipt, Claim)) or not isinstance(given, Iterable):
        given = [given]
    return [claim_of(each, argument) for each in given]


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
    *earlier, last = (sha256(np.asarray(answer, dtype="<i8").tobytes()) for answer in answers)
    return Claim(str(name), receipt, plan, last, earlier=tuple(earlier))


def fault(claim: Claim, entries: Sequence[Entry]) -> str | None:
    """Why a claim does not hold, in one line; None if it does."""
    said = _fault(claim, entries)
    return said if said is None or not claim.name else f"{claim.name}: {said}"


def _fault(claim: Claim, entries: Sequence[Entry]) -> str | None:
    receipt = claim.receipt
    if claim.unreadable:
        return claim.unreadable
    if receipt is None:
        return "a release that carries no receipt: it was not made through a ledger"
    name = f"entry {receipt.entry} of data set {receipt.dataset!r}"
    if not 0 <= receipt.entry < len(entries):
        return f"{name} is not there any more: the end was cut off, or an old copy was put in its place"
    entry = entries[receipt.entry]
    if (entry.hash, entry.dataset) != (receipt.head, receipt.dataset):
        return f"{name} is another one there: this is another ledger, or its history was written anew"
    of_release = (entry.plan, entry.answer) if entry.kind in (SPENT, ANSWERED) else ()
    if (claim.plan, claim.answer) not in ((None, None), of_release):
        return f"{name} was made from another plan or gave another answer"
    if claim.earlier is not None and claim.earlier != _earlier(entry, entries):
        return f"{name} was planned from other answers to the stages before"
    return None


def _earlier(entry: Entry, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The digests of the answers that came before, if this is one of a release in stages."""
    if entry.kind != ANSWERED:
        return ()
    before = (each for each in entries[: entry.number] if each.kind == ANSWERED)
    return tuple(each.answer for each in before if each.what["paid"] == entry.what["paid"])


def check_claims(claims: Sequence[Claim], entries: Sequence[Entry]) -> None:
    """Raise, with a line for each claim that does not hold, unless all do."""
    faults = [said for claim in claims if (said := fault(claim, entries)) is not None]
    if len(faults) == 1:
        raise LedgerTampered(f"ledger: {faults[0]}. {_ADVICE}")
    if faults:
        listed = "\n".join(f"  {said}" for said in faults)
        raise LedgerTampered(
            f"ledger: {len(faults)} of {len(claims)} receipts are not in it. {_ADVICE}\n{listed}"
        )
