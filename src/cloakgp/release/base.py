"""What plans of one answer, of bins and of selections, do: release, be charged, put on record, recovered.

Each says what it costs and how it measures y, through one door of the private room. How the noisy integers
are paid for, marked and handed on is written here, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from cloakgp import testing
from cloakgp.core.accounting import Event
from cloakgp.core.checks import FloatArray, IntArray, frozen
from cloakgp.data.columns import Columns
from cloakgp.data.inputs import TableRows
from cloakgp.data.people import People
from cloakgp.files import container
from cloakgp.ledger import charging
from cloakgp.ledger.balances import Reads
from cloakgp.ledger.book import Charge
from cloakgp.ledger.chain import Receipt
from cloakgp.ledger.charging import Account, as_ledger

Released = TypeVar("Released")


def naming(ledger: Any, found: Reads, columns: Columns | None) -> Any:
    """The ledger, told the names of what a release reads: as found, as it was told, or as `columns` says."""
    if ledger is None:
        return None
    book = as_ledger(ledger)
    reads = found.then(book.reads)
    if columns is not None:
        said = (columns.response,) if columns.response else ()
        reads = reads.then(Reads(said, columns.names, columns.people or None))
    return book if reads == book.reads else book.naming(**vars(reads))


@dataclass(frozen=True, eq=False, repr=False)
class Answered:
    """What may be published: the noisy integers of one private step, with the plan that they are read by."""

    plan: Any
    z: IntArray
    """All that y left behind, as a ledger keeps it."""
    receipt: Receipt | None = None
    """Where the release stands in the ledger that paid for it."""

    @property
    def certificate(self) -> Any:
        """The guarantee."""
        return self.plan.certificate


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlanBase(ABC, Generic[Released]):
    """A public plan for one private step."""

    X: FloatArray
    certificate: Any
    columns: Columns | None
    """Names of the columns of X, and how levels and dates became numbers, if X was a table."""
    rows: TableRows | None
    """Which rows of the table count, and what they are called."""
    people: People | None
    """Who has which rows, if the promise is to each person; None if it is to each row."""

    stages: ClassVar[int] = 1
    """How many answers the cost pays for."""
    _result: ClassVar[Any]
    """What comes out: made of the plan, noisy integers and a receipt."""

    @property
    @abstractmethod
    def cost(self) -> Event:
        """What a release will spend, for :mod:`cloakgp.core.accounting` and a ledger."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of the plan: the same settings and inputs give the same."""

    @cached_property
    def inputs_digest(self) -> str:
        """SHA-256 of the inputs, for the ledger."""
        return container.digest(self.X)

    @property
    def unit(self) -> str:
        """Whom the promise is to: one row, or one person."""
        return str(self.certificate.unit)

    @property
    def partition(self) -> str:
        """SHA-256 of who has which rows, for the ledger; empty where the promise is to each row."""
        return "" if self.people is None else self.people.digest

    @property
    def delta(self) -> float:
        """Of the promise, for the ledger; 0 where it has none."""
        return float(getattr(self.certificate, "delta", 0.0))

    @cached_property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom; the same on every machine, unlike the plan's digest."""
        return self.digest

    def to_bytes(self) -> bytes | None:
        """All that an answer is read by, for the ledger: nothing, since the plan is made again to read it."""
        return None

    def _reads(self, y: Any) -> Reads:
        """What y is called, if it is a column with a name."""
        from cloakgp.private.room import column_names

        return Reads(column_names(y)[0])

    @abstractmethod
    def _measure(self, y: Any, missing: str) -> IntArray:
        """The noisy integers: y goes through a door of the private room, and nowhere else."""

    def release(
        self,
        y: Any,
        *,
        missing: str = "error",
        ledger: Any = None,
        dataset: str | None = None,
        why: str = "",
        request: str | None = None,
    ) -> Released:
        """Release from the private outcomes: the one private step.

        Each call draws fresh noise and is a new spend of what the plan promises, also when called twice on
        the same plan with the same y.

        Parameters
        ----------
        y : (N,) array
            Private outcomes, in the order of X's rows. Values outside the bounds are clipped;
            how many is not told, since that would leak.
        missing : {"error", "midpoint"}
            NaN and infinities are refused before anything is spent, or replaced row by row by the
            middle of the bounds, which protects missingness too.
        ledger : Ledger or its URL, optional
            Pays for the release: refused before y is read if it does not fit, and on record, answer
            included, before this returns. See :class:`cloakgp.Ledger`.
        dataset : str
            Which of the ledger's data sets pays.
        why : str
            For the record.
        request : str, optional
            A name for this request, unlike any other of the data set's. Asked again after a crash, the
            ledger gives the same answer for nothing.
        """
        ledger = naming(ledger, self._reads(y), self.columns)
        with charging.charge(self, Account(ledger, dataset, why, request)) as charge:
            if charge.answer is None:
                charge.answer = self._measure(y, missing)
        return self._released(charge)

    def recover(self, ledger: Any, entry: int) -> Released:
        """What an entry of the ledger paid for, once more and for nothing; y is not needed.

        For when a program died after the charge: ``ledger.entries(dataset)`` shows the number.
        """
        return self._released(as_ledger(ledger).answers(entry, self)[0])

    def _released(self, charge: Charge) -> Released:
        assert charge.answer is not None
        insecure = charge.receipt is None and testing.insecure_generator() is not None
        marked = replace(self, certificate=replace(self.certificate, insecure=insecure))
        released: Released = self._result(marked, frozen(charge.answer), charge.receipt)
        return released
