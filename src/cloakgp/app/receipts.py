"""What was ever paid for in this data folder, and whether the ledger still knows it.

An old copy of a ledger is a good chain in itself, and would sell what was sold already once more. So before
anything is spent, each receipt here must be in the ledger; if one is not, the server only reads. Receipts are
kept in a file of their own: a release that is deleted was paid for all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cloakgp.app import folder as stored
from cloakgp.ledger import Entry, LedgerTampered
from cloakgp.ledger.charge import Receipt
from cloakgp.ledger.receipts import Claim, fault

REMEDY = (
    "Nothing can be spent until the ledger that paid is back: put its newest file in its place, or start the "
    "server with the --ledger that was used before. If it is lost for good, keep this data folder for "
    "reading and start a new one; docs/app.md says how."
)
_NAMED = 5


class ReadOnly(LedgerTampered):
    """The ledger does not know what was paid for here, so nothing more is spent from it."""


class Receipts:
    """The receipts of one data folder; none is ever removed."""

    def __init__(self, path: Path, found: Iterable[Receipt] = ()) -> None:
        self._path, self._lock = path, threading.Lock()
        kept = _read(path)
        self._receipts, self._on_disk = tuple(dict.fromkeys([*kept, *found])), len(kept)
        self._write()

    def everything(self) -> tuple[Receipt, ...]:
        """All of them, in no order."""
        return self._receipts

    def add(self, receipt: Receipt) -> None:
        """Remember one, on disk before this returns."""
        with self._lock:
            if receipt not in self._receipts:
                self._receipts = (*self._receipts, receipt)  # first: the next spend must see it in any case
            self._write()

    def _write(self) -> None:
        if len(self._receipts) > self._on_disk:
            stored.write_json(self._path, {"receipts": [asdict(each) for each in self._receipts]})
            self._on_disk = len(self._receipts)


def trouble(receipts: Sequence[Receipt], entries: Sequence[Entry]) -> str | None:
    """What is wrong, for people, if a receipt is not in the ledger."""
    missing = [each for each in receipts if fault(Claim("", each), entries) is not None]
    if not missing:
        return None
    named = "; ".join(f"entry {each.entry} of {each.dataset!r}" for each in missing[:_NAMED])
    return (
        f"the ledger does not know {len(missing)} of {len(receipts)} payment(s) for releases made here "
        f"({named}{'; ...' if len(missing) > _NAMED else ''}): an old copy was put in its place, or this is "
        "another ledger."
    )


def _read(path: Path) -> list[Receipt]:
    if not path.exists():
        return []
    try:
        return [receipt_of(each) for each in (stored.read_json(path) or {})["receipts"]]
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{path} cannot be read: it lists what was paid for in this folder. Restore it from a backup; if "
            "there is none, move it away: the releases in the folder tell most of it."
        ) from None


def receipt_of(words: dict[str, Any]) -> Receipt:
    """A receipt from its words in a file."""
    receipt = Receipt(**words)
    if [type(value) for value in (receipt.dataset, receipt.entry, receipt.head)] != [str, int, str]:
        raise ValueError("that is no receipt.")
    return receipt
