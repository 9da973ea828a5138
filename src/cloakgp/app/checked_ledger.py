"""The ledger as the app uses it: checked against the data folder's receipts before it sells anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cloakgp.app.errors import not_found
from cloakgp.app.receipts import ReadOnly, Receipts, trouble
from cloakgp.ledger import Entry, Ledger, LedgerAbsent, LedgerError, LedgerTampered
from cloakgp.ledger.charge import Charge, Chargeable, ChargeableInStages
from cloakgp.ledger.stages import StageRecord


class CheckedLedger(Ledger):
    """A ledger for one request, which notes whether its charge was paid now or had been before.

    It keeps a receipt of all that was paid for, and sells nothing if the ledger has forgotten one of them.
    """

    paid = False

    def __init__(self, url: str, receipts: Receipts, *, who: str, timeout: float = 20.0) -> None:
        super().__init__(url, who=who, timeout=timeout)
        self._receipts = receipts

    @contextmanager
    def _spending(self, charge: Charge, *what: Any, **more: Any) -> Iterator[None]:
        """As the ledger's own; the receipt is there from the start if it was paid for before."""
        with super()._spending(charge, *what, **more):
            known = charge.receipt is not None
            yield
        self.paid = not known
        assert charge.receipt is not None
        self._receipts.add(charge.receipt)

    def fetch(self, entry: int, plan: Chargeable) -> Charge:
        """As the ledger's own."""
        fetched = super().fetch(entry, plan)
        assert fetched.receipt is not None
        self._receipts.add(fetched.receipt)
        return fetched

    @contextmanager
    def stage(self, entry: int, number: int, plan: ChargeableInStages, stage_plan: bytes) -> Iterator[Charge]:
        """As the ledger's own."""
        with super().stage(entry, number, plan, stage_plan) as charge:
            yield charge
        assert charge.receipt is not None
        self._receipts.add(charge.receipt)

    def stages(self, entry: int, plan: ChargeableInStages) -> list[StageRecord]:
        """As the ledger's own."""
        found = super().stages(entry, plan)
        for stage in found:
            if stage.receipt is not None:
                self._receipts.add(stage.receipt)
        return found

    def trouble(self) -> str | None:
        """Why nothing may be spent, if the ledger was changed, replaced or removed."""
        paid_for = self._receipts.everything()  # first: what others pay for meanwhile is in what is read then
        try:
            return trouble(paid_for, self.entries())
        except LedgerTampered as error:
            return str(error)
        except LedgerAbsent:
            return trouble(paid_for, [])

    def _checked_to_write(self, connection: Any) -> list[Entry]:
        """Look once more in the very transaction that pays: the ledger may have been replaced just now."""
        paid_for = self._receipts.everything()
        entries = super()._checked_to_write(connection)
        said = trouble(paid_for, entries)
        if said is not None:
            raise ReadOnly(said)
        return entries

    def check(self) -> None:
        """Raise if it cannot be read, or made. One that was tampered with can: its page says so."""
        with suppress(LedgerTampered):
            datasets_of(self)
        path = self._store.path
        if path is not None and not path.parent.is_dir():
            raise LedgerError(f"ledger: there is no folder {path.parent}. Make it, or name another file.")


def check_dataset(ledger: Ledger, dataset: str) -> None:
    """A data set that the ledger does not have is not found."""
    if dataset not in datasets_of(ledger):
        raise not_found("data set in the ledger; nothing was spent")


def datasets_of(ledger: Ledger) -> list[str]:
    """The names of all data sets; none where there is no ledger yet."""
    try:
        return ledger.datasets()
    except LedgerAbsent:
        return []
