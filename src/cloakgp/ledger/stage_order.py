"""Releases in stages: which entries stand for them, and in which order.

A `spent` entry with a plan and without an answer of its own pays for a release in stages. Each stage is two
entries that cost nothing: `planned`, on record before y is read, and then `answered`. A stage is planned when
the one before it is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cloakgp.ledger.chain import ANSWERED, PLANNED, SPENT, Entry
from cloakgp.ledger.errors import LedgerTampered


@dataclass
class Progress:
    """How far a release in stages is."""

    paid: Entry
    planned: list[Entry] = field(default_factory=list)
    answered: list[Entry] = field(default_factory=list)


def pays_for_stages(entry: Entry) -> bool:
    """Whether this entry's answers come in stages."""
    return entry.kind == SPENT and entry.plan != "" and entry.answer == ""


def progress_of(entries: Sequence[Entry]) -> dict[int, Progress]:
    """How far each release in stages is, by the entry that paid; raises at an entry that no ledger wrote."""
    found: dict[int, Progress] = {}
    for entry in entries:
        if pays_for_stages(entry):
            found[entry.number] = Progress(entry)
        elif entry.kind in (PLANNED, ANSWERED):
            said = _fault(entry, found)
            if said:
                raise LedgerTampered(
                    f"ledger: entry {entry.number} {said}, which no Ledger does. Restore the ledger from a "
                    "backup; until then spend nothing from it."
                )
            progress = found[entry.what["paid"]]
            (progress.planned if entry.kind == PLANNED else progress.answered).append(entry)
    return found


def _fault(entry: Entry, found: dict[int, Progress]) -> str:
    """Why this cannot be the next entry of a release in stages; nothing if it can."""
    what: Any = entry.what
    words = {"paid", "stage", "stages"} | ({"digest"} if entry.kind == PLANNED else set())
    if not isinstance(what, dict) or what.keys() != words or entry.request is not None:
        return "holds no stage"
    if any(type(what[word]) is not int for word in ("paid", "stage", "stages")):
        return "holds no stage"
    progress = found.get(what["paid"])
    if progress is None or (progress.paid.dataset, progress.paid.plan) != (entry.dataset, entry.plan):
        return "is a stage that no earlier entry of its data set and plan pays for"
    same = all(before.what["stages"] == what["stages"] for before in progress.planned)
    if not same or not 0 <= what["stage"] < what["stages"]:
        return "is a stage more than its release has"
    planned, answered = len(progress.planned), len(progress.answered)
    if entry.kind == PLANNED:
        if not what["stage"] == planned == answered:
            return "plans a stage twice, or out of order"
        if entry.answer != what["digest"]:
            return "keeps another plan than it names"
    else:
        if not what["stage"] == answered == planned - 1:
            return "answers a stage twice, out of order or before it was planned"
        if entry.answer == "":
            return "answers a stage without an answer"
    return ""
