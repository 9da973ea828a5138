"""Who pays, and a last look at what will be left before anything is spent."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace

from cloakgp import checks
from cloakgp.cli.exits import note
from cloakgp.errors import InputError, Refused
from cloakgp.ledger import BudgetExceeded, Entry, Ledger
from cloakgp.ledger.charge import Account, Chargeable
from cloakgp.ledger.units import protected_by
from cloakgp.workflow.spending import Quote, Request, quote


def open_account(
    ledger: str | None,
    dataset: str | None,
    no_ledger: bool,
    why: str,
    who: str | None,
    again: str | None,
    asked: Request,
) -> Account:
    """The account that pays; none only if that was said in so many words.

    Refused before anything is read if what is asked is not on the data set's terms: settings may be somebody
    else's.
    """
    if no_ledger:
        if dataset is not None or why or again is not None:
            raise InputError("--no-ledger goes without --dataset, --why and --again, which are the ledger's.")
        return Account()
    if ledger is None or dataset is None:
        raise InputError(
            "who pays? Give --ledger URL and --dataset NAME (cloakgp ledger create makes both), or "
            "--no-ledger to keep count of what was spent yourself."
        )
    # What is wrong with these is said here: later it would look like something wrong with the output column.
    for name, words in (("dataset", dataset), ("why", why or "-"), ("again", again or "-")):
        checks.text(words, name)
    book = Ledger(ledger, who=who).naming(**vars(asked.reads))
    book.balance(dataset).check_terms(asked.terms)
    return Account(book, dataset, why)


def for_request(account: Account, request: str) -> Account:
    """The same account, with the request's name."""
    return account if account.ledger is None else replace(account, request=checks.text(request, "request"))


def confirm(
    account: Account,
    plan: Chargeable,
    what: str,
    asked: Request,
    yes: bool,
    before: Callable[[], None] = lambda: None,
) -> Entry | None:
    """Show what will be read, spent and left, and ask. The ledger's entry, if it was paid for before.

    `before` is called once it is clear that something would be spent.
    """
    columns = "input and output columns" if asked.whole_rows else "output column"
    said = "\n  ".join([f"{what}.", *asked.lines()])
    if account.ledger is None:
        before()
        note(f"{said}\n  no ledger keeps count of what is spent")
    else:
        price = quote(account.ledger, str(account.dataset), plan.cost, str(account.request))
        if price.known is not None:
            unfinished = account.ledger.is_unfinished(price.known.number)
            note(f"{said if unfinished else what + '.'}\n{_known(price.known, unfinished, columns)}")
            return price.known
        before()
        price.before.check_terms(protected_by(plan, asked.reads))
        if not price.fits:
            raise BudgetExceeded(
                f"the request does not fit into what is left of the budget. The {columns} {_were(columns)} "
                f"not read, and nothing was spent.\n{what}.\n{price.before}"
            )
        note(f"{said}\n{_left(price)}")
    if not yes and not _agreed(f"Read the {columns} and spend this? [y/N]"):
        raise Refused(f"declined. The {columns} {_were(columns)} not read, and nothing was spent.")
    return None


def _were(columns: str) -> str:
    return "were" if columns.endswith("s") else "was"


def _known(entry: Entry, unfinished: bool, columns: str) -> str:
    read = f"{columns} {'are' if columns.endswith('s') else 'is'}"
    paid = f"entry {entry.number}, {entry.when}, by {entry.who}"
    if unfinished:
        return (
            f"This was paid for before, and not finished: {paid}. It goes on where it stopped: the "
            f"{read} read, and nothing more is spent. If the outcomes changed since, use --again LABEL."
        )
    return (
        f"This was answered before: {paid}. That answer is given again, the {read} not read, and "
        "nothing is spent. If the outcomes changed since, or for a new answer, use --again LABEL."
    )


def _left(price: Quote) -> str:
    before, after = price.before, price.after
    budget = before.budget
    return (
        f"  budget of {before.dataset!r}: epsilon {budget.epsilon:g} at delta {budget.delta:g}\n"
        f"  spent so far: epsilon {before.spent:.4g}; with this: {after.spent:.4g}\n"
        f"  left for one more release: epsilon {_down(before.left_for_release())} now, "
        f"{_down(after.left_for_release())} afterwards"
    )


def _agreed(question: str) -> bool:
    """Ask on stderr, since stdout is for the answer; no answer is a no."""
    print(question, end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _down(epsilon: float) -> str:
    """Rounded down: what is said to be left must fit (plans calibrate with a margin of 1e-8)."""
    return f"{math.floor(epsilon * 1e4 * (1 + 2e-9)) / 1e4:g}"
