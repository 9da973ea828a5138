"""Charge a ledger for an answer, in the one transaction in which the answer is recorded.

    with charged(plan, Account(ledger, dataset)) as charge:
        if charge.answer is None:
            charge.answer = measure(...)      # y is read here, and only here

On entering, the ledger is locked and the request refused if it does not fit: y has not been read.
On leaving, the charge and the answer are written together and committed. So the caller never holds
an answer that is not on record, and an answer on record can be fetched again for nothing. If anything
fails in between, nothing was charged and the answer is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cloakgp import checks, testing
from cloakgp.accounting import Event
from cloakgp.checks import FloatArray
from cloakgp.lattice import IntArray

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger


class Chargeable(Protocol):
    """What a ledger needs to know of a plan."""

    @property
    def cost(self) -> Event: ...
    @property
    def digest(self) -> str: ...
    @property
    def X(self) -> FloatArray | None: ...


@dataclass(frozen=True)
class Receipt:
    """Where a release stands in a ledger: lets the ledger be checked against the release later."""

    dataset: str
    entry: int
    head: str
    """The hash of that entry, and so of everything up to it."""


@dataclass
class Charge:
    """A charge in the making: give it the answer."""

    answer: IntArray | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True)
class Account:
    """Who pays: the ledger, the data set, why, and the caller's name for the request."""

    ledger: Any = None
    dataset: str | None = None
    why: str = ""
    request: str | None = None

    def __post_init__(self) -> None:
        if self.ledger is None and (self.dataset is not None or self.why or self.request is not None):
            raise ValueError("ledger must be given with dataset, why or request. Nothing was spent.")
        if self.ledger is not None and self.dataset is None:
            raise ValueError("dataset must be given with ledger: whose budget pays? Nothing was spent.")
        if self.dataset is not None:  # or the release could not be saved once it is paid for
            checks.text(self.dataset, "dataset", checks.LONGEST_NAME)


def as_ledger(ledger: Any) -> Ledger:
    """A ledger from itself or from its URL."""
    from cloakgp.ledger import Ledger

    if isinstance(ledger, str):
        return Ledger(ledger)
    if not isinstance(ledger, Ledger):
        raise TypeError(
            f"ledger must be a cloakgp.Ledger or its URL, such as 'sqlite:///budget.db'; "
            f"got {type(ledger).__name__}."
        )
    return ledger


@contextmanager
def charged(plan: Chargeable, account: Account) -> Iterator[Charge]:
    """See the top of this file. Without a ledger, nothing is recorded."""
    if account.ledger is None:
        yield Charge()
        return
    if testing.insecure_generator() is not None:
        raise ValueError(
            "ledger: inside insecure_seed nothing is private, so no budget can pay for it. "
            "Leave the block, or the ledger out. Nothing was spent."
        )
    assert account.dataset is not None
    with as_ledger(account.ledger).charge(plan, account.dataset, account.why, account.request) as charge:
        yield charge
