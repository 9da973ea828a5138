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
from typing import Any

from cloakgp import testing
from cloakgp.ledger.book import Ledger
from cloakgp.ledger.charge import Account, Charge, Chargeable


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
    if testing.insecure_generator() is not None:
        raise ValueError(
            "ledger: inside insecure_seed nothing is private, so no budget can pay for it. "
            "Leave the block, or the ledger out. Nothing was spent."
        )
    assert account.dataset is not None
    with as_ledger(account.ledger).charge(plan, account.dataset, account.why, account.request) as charge:
        yield charge
