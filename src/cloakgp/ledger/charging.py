"""Charge a ledger for a release. A release is its stages, and each is one transaction.

    with charge(plan, Account(ledger, dataset)) as found:           # all of plan.cost; the first stage
        if found.answer is None:
            found.answer = measure(...)       # y is read here, and only here

    with stage(plan, ledger, entry, number, stage_plan) as found:   # a later one, for nothing
        if found.answer is None:
            found.answer = measure(...)

On entering, the ledger is locked, and what does not fit is refused: y has not been read. A stage that was
answered before, or a request by a name that was charged for before, has its answer already, with the plan
that it is read by. On leaving, the answer is committed together with what it is an answer to: the charge for
the whole promise, with the plan, or a later stage's plan.

So there is one rule for crashes. What is not on record was seen by nobody: the caller has no answer before
its commit, and an answer that cannot be committed is forgotten. What is on record is had again for nothing.
If the first stage fails, nothing was charged. If a later one fails, ``Ledger.answers`` has those before it,
from which the next one is planned once more, and measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from cloakgp import testing
from cloakgp.core import checks
from cloakgp.core.errors import Message, Phrase, parts_of
from cloakgp.ledger.book import Charge, Chargeable, Ledger
from cloakgp.ledger.chain import LedgerError


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
    if isinstance(ledger, str):
        return Ledger(ledger)
    if not isinstance(ledger, Ledger):
        raise TypeError(
            f"ledger must be a cloakgp.Ledger or its URL, such as 'sqlite:///budget.db'; "
            f"got {type(ledger).__name__}."
        )
    return ledger


def charge(plan: Chargeable, account: Account) -> AbstractContextManager[Charge]:
    """See the top of this file. Without a ledger, nothing is recorded."""
    if account.ledger is None:
        return nullcontext(Charge())
    assert account.dataset is not None
    return _paying(account.ledger).charge(plan, account.dataset, account.why, account.request)


@contextmanager
def stage(
    plan: Chargeable, ledger: Any, entry: int | None, number: int, stage_plan: bytes
) -> Iterator[Charge]:
    """See the top of this file. Without a ledger, nothing is recorded."""
    if ledger is None:
        yield Charge()
        return
    assert entry is not None
    try:
        with _paying(ledger).stage(entry, number, plan, stage_plan) as found:
            yield found
    except LedgerError as error:
        if type(error) is not LedgerError:  # such as tampering, after which nobody should go on
            raise
        paid_for = f" All stages were paid for before, in entry {entry}: "
        raise LedgerError(Message(*parts_of(error), paid_for, Phrase.GO_ON, ".")) from None


def _paying(ledger: Any) -> Ledger:
    """A ledger that may pay: not for what is reproducible."""
    if testing.insecure_generator() is not None:
        raise ValueError(
            "ledger: inside insecure_seed nothing is private, so no budget can pay for it. "
            "Leave the block, or the ledger out. Nothing was spent."
        )
    return as_ledger(ledger)
