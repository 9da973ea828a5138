"""The ledger as the app uses it: checked against what was ever paid for in the data folder, before it sells.

An old copy of a ledger is a good chain in itself, and would sell what was sold already once more. So before
anything is spent, each receipt here must be in the ledger; if one is not, the server only reads. Receipts are
kept in a file of their own: a release that is deleted was paid for all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cloakgp.app import folder as stored
from cloakgp.app.errors import ReadOnly, not_found
from cloakgp.ledger import Balance, Entry, Ledger, LedgerAbsent, LedgerError, LedgerTampered
from cloakgp.ledger.book import Charge, Chargeable
from cloakgp.ledger.chain import Claim, Receipt


class Left(NamedTuple):
    """What is left for a release and for a selection, and what was spent, as epsilon."""

    release: float
    selection: float
    spent: float


class Receipts:
    """The receipts of one data folder; none is ever removed."""

    def __init__(self, path: Path, found: Iterable[Receipt] = ()) -> None:
        self._path, self._lock = path, threading.Lock()
        kept = _read(path)
        self.all, self._on_disk = tuple(dict.fromkeys([*kept, *found])), len(kept)
        self._write()

    def add(self, receipt: Receipt | None) -> None:
        """Remember one, on disk before this returns."""
        assert receipt is not None
        with self._lock:
            if receipt not in self.all:
                self.all = (*self.all, receipt)  # first: the next spend must see it in any case
            self._write()

    def _write(self) -> None:
        if len(self.all) > self._on_disk:
            stored.write_json(self._path, {"receipts": [asdict(each) for each in self.all]})
            self._on_disk = len(self.all)


class CheckedLedger(Ledger):
    """A ledger for one request, which notes whether its charge was paid now or had been before.

    It keeps a receipt of all that was paid for, and sells nothing if the ledger has forgotten one of them.
    """

    paid = False

    def __init__(self, url: str, receipts: Receipts, *, who: str, timeout: float = 20.0) -> None:
        super().__init__(url, who=who, timeout=timeout)
        self._receipts = receipts

    @contextmanager
    def charge(self, *what: Any, **more: Any) -> Iterator[Charge]:
        """As the ledger's own; the receipt is there from the start if it was paid for before."""
        with super().charge(*what, **more) as charge:
            known = charge.receipt is not None
            yield charge
        self.paid = not known

    @contextmanager
    def _answering(self, *what: Any) -> Iterator[Charge]:
        with super()._answering(*what) as charge:
            yield charge
        self._receipts.add(charge.receipt)

    def answers(self, entry: int, plan: Chargeable) -> list[Charge]:
        """As the ledger's own."""
        found = super().answers(entry, plan)
        for charge in found:
            self._receipts.add(charge.receipt)
        return found

    def trouble(self) -> str | None:
        """Why nothing may be spent, if the ledger was changed, replaced or removed."""
        paid_for = self._receipts.all  # first: what others pay for meanwhile is in what is read then
        try:
            return _trouble(paid_for, self.entries())
        except LedgerTampered as error:
            return str(error)
        except LedgerAbsent:
            return _trouble(paid_for, [])

    def _checked_to_write(self, connection: Any) -> list[Entry]:
        """Look once more in the very transaction that pays: the ledger may have been replaced just now."""
        paid_for = self._receipts.all
        entries = super()._checked_to_write(connection)
        said = _trouble(paid_for, entries)
        if said is not None:
            raise ReadOnly(said)
        return entries

    def check(self) -> None:
        """Raise if it cannot be read, or made. One that was tampered with can: its page says so."""
        with suppress(LedgerTampered):
            self.known_datasets()
        path = self._store.path
        if path is not None and not path.parent.is_dir():
            raise LedgerError(f"ledger: there is no folder {path.parent}. Make it, or name another file.")

    def known_datasets(self) -> list[str]:
        """The names of all data sets; none where there is no ledger yet."""
        try:
            return self.datasets()
        except LedgerAbsent:
            return []

    def check_dataset(self, dataset: str) -> None:
        """A data set that the ledger does not have is not found."""
        if dataset not in self.known_datasets():
            raise not_found("data set in the ledger; nothing was spent")


@lru_cache(1000)
def left(balance: Balance) -> Left:
    """The same of a balance, which takes a while."""
    return Left(balance.left_for_release(), balance.left_for_selection(), balance.spent)


def receipt_of(words: dict[str, Any]) -> Receipt:
    """A receipt from its words in a file."""
    receipt = Receipt(**words)
    if [type(value) for value in (receipt.dataset, receipt.entry, receipt.head)] != [str, int, str]:
        raise ValueError("that is no receipt.")
    return receipt


def _trouble(receipts: Sequence[Receipt], entries: Sequence[Entry], most_named: int = 5) -> str | None:
    """What is wrong, for people, if a receipt is not in the ledger."""
    missing = [each for each in receipts if Claim("", each).fault(entries) is not None]
    if not missing:
        return None
    named = "; ".join(f"entry {each.entry} of {each.dataset!r}" for each in missing[:most_named])
    return (
        f"the ledger does not know {len(missing)} of {len(receipts)} payment(s) for releases made here "
        f"({named}{'; ...' if len(missing) > most_named else ''}): an old copy was put in its place, or this "
        "is another ledger."
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
