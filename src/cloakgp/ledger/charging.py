"""Charge a ledger for an answer, in the one transaction in which the answer is recorded; or in stages.

    with charged(plan, Account(ledger, dataset)) as charge:
        if charge.answer is None:
            charge.answer = measure(...)      # y is read here, and only here

On entering, the ledger is locked and the request refused if it does not fit: y has not been read.
On leaving, the charge and the answer are written together and committed. So the caller never holds
an answer that is not on record, and an answer on record can be fetched again for nothing. If anything
fails in between, nothing was charged and the answer is forgotten.

A release in stages is charged once, before the first, and each stage is planned from the answers before it:

    entry = paid(plan, Account(ledger, dataset))
    for number in range(plan.stages):
        with staged(plan, ledger, entry, number, stage_plan) as charge:
            if charge.answer is None:
                charge.answer = measure(...)

On entering, the stage's plan is put on record and committed, or compared with the one that is there; then the
ledger is locked, and the answer is there already if the stage has one. On leaving, the answer is committed.
Whatever fails, what was answered stays on record, and the same calls go on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cloakgp import testing
from cloakgp.errors import Message, Phrase, parts_of
from cloakgp.ledger.book import Ledger
from cloakgp.ledger.charge import Account, Charge, Chargeable, ChargeableInStages
from cloakgp.ledger.errors import LedgerError


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


@contextmanager
def charged(plan: Chargeable, account: Account) -> Iterator[Charge]:
    """See the top of this file. Without a ledger, nothing is recorded."""
    if account.ledger is None:
        yield Charge()
        return
    _check_secure()
    assert account.dataset is not None
    with as_ledger(account.ledger).charge(plan, account.dataset, account.why, account.request) as charge:
        yield charge


def paid(plan: ChargeableInStages, account: Account, ready: Callable[[], None]) -> int | None:
    """Charge for all stages of a release; the number of the entry that paid, or None without a ledger.

    `ready` is called before, once the budget is found to allow it: it raises if y cannot be used.
    """
    if account.ledger is None:
        return None
    _check_secure()
    assert account.dataset is not None
    return as_ledger(account.ledger).pay(plan, account.dataset, account.why, account.request, ready).entry


@contextmanager
def staged(
    plan: ChargeableInStages, ledger: Any, entry: int | None, number: int, stage_plan: bytes
) -> Iterator[Charge]:
    """See the top of this file. Without a ledger, nothing is recorded."""
    if ledger is None:
        yield Charge()
        return
    _check_secure()
    assert entry is not None
    try:
        with as_ledger(ledger).stage(entry, number, plan, stage_plan) as charge:
            yield charge
    except LedgerError as error:
        if type(error) is not LedgerError:  # such as tampering, after which nobody should go on
            raise
        paid_for = f" All stages were paid for before, in entry {entry}: "
        raise LedgerError(Message(*parts_of(error), paid_for, Phrase.GO_ON, ".")) from None


def _check_secure() -> None:
    if testing.insecure_generator() is not None:
        raise ValueError(
            "ledger: inside insecure_seed nothing is private, so no budget can pay for it. "
            "Leave the block, or the ledger out. Nothing was spent."
        )
