"""The private step, for a column of a file: the only place outside of the library's core that names it.

The column goes to ``release`` or ``select`` as an unread :class:`cloakgp.private.room.PrivateColumn`, or as a
Dask array of which no block was read. Nothing here sees a value of it, and whatever is wrong with it gives
the one message below.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloakgp.errors import Message, OtherSize, Phrase, Refused
from cloakgp.ledger.charge import Account
from cloakgp.ledger.charging import as_ledger
from cloakgp.model.outcome import CHANCES, YES_NO
from cloakgp.plans.opening import AnyPlan, AnyRelease
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.plots.labels import outcome_of
from cloakgp.private.room import PrivateColumn, PrivateLabels
from cloakgp.rows.formats import Format
from cloakgp.selection import Selection, SelectionPlan

UNUSABLE = Message(
    "the output column cannot be used. It must hold one number in every row; missing values are allowed "
    "with ",
    Phrase.MIDPOINT,
    ", which puts the middle of the bounds in their place. More is not said, because it would tell about "
    "private outcomes. Nothing was released, and nothing was spent.",
)

UNUSABLE_ANSWERS = Message(
    "the output column cannot be used. It must have a class that the plan names in every row or, if it names "
    "none, say yes or no: yes and no, true and false, 1 and 0. Missing values, and others, are allowed with ",
    Phrase.MIDPOINT,
    ", which protects them, too. More is not said, because it would tell about "
    "private outcomes. Nothing was released, and nothing was spent.",
)

UNUSABLE_ROWS = Message(
    "the table cannot be used. It must have an id in each row where all rows of a person are protected, a "
    "number or a date for each input with a range, one of the levels for others, and a number as its "
    "outcome, or what the plan says. Missing and unknown ones are allowed with ",
    Phrase.MIDPOINT,
    ", which protects them, too. More is not said, because it would tell about private rows. Nothing was "
    "released, and nothing was spent.",
)

UNFINISHED = (
    "the release stopped after it was paid for: the output column cannot be used any more, or the arithmetic "
    "failed. What was answered is on record. Once the column is as it was, ask for the same again: it goes "
    "on, for nothing."
)


STOPPED = (
    "stopped after it was paid for. What was answered is on record: run the same command again, and it goes "
    "on where it stopped, for nothing."
)
STOPPED_UNCOUNTED = "stopped. Nothing was written: whatever was drawn is gone with this process."


class UnusableOutput(Refused):
    """Something is wrong with the output column; what it is, is not said."""


def release(
    plan: AnyPlan,
    path: str,
    column: str,
    missing: str,
    account: Account,
    form: Format | None = None,
) -> AnyRelease:
    """The release of a plan, from a column of a file; `form` is how that is written, as public columns are.

    Where the plan names classes, cells are compared with these; where it is of yes and no, with common words.
    """
    unusable = UNUSABLE_ANSWERS if outcome_of(plan) in CHANCES else UNUSABLE
    with _one_message(account, unusable):
        return plan.release(
            PrivateLabels(PrivateColumn(path, column, form))
            if _in_common_words(plan)
            else PrivateColumn(path, column, form),
            missing=missing,
            **_paid_by(account),
        )


def _in_common_words(plan: AnyPlan) -> bool:
    """Whether outcomes are yes or no, and nobody said how that is written."""
    return isinstance(plan, StagedPlan) and plan.rule.outcome == YES_NO and not plan.rule.classes


def release_rows(
    plan: RowsPlan,
    path: str,
    column: str,
    people: str | None,
    missing: str,
    account: Account,
    form: Format | None = None,
) -> AnyRelease:
    """The release of a plan of whole rows, from a file: its inputs are read where its outcomes are."""
    with _one_message(account, UNUSABLE_ROWS):
        return plan.release(
            {name: PrivateColumn(path, name, form) for name in plan.grid.names},
            PrivateLabels(PrivateColumn(path, column, form))
            if _in_common_words(plan)
            else PrivateColumn(path, column, form),
            people=None if people is None else PrivateColumn(path, people, form),
            missing=missing,
            **_paid_by(account),
        )


def release_on_cluster(plan: Plan, path: str, column: str, missing: str, account: Account) -> Release:
    """The same from Parquet files that the workers of a Dask cluster read: no value comes to this process."""
    from cloakgp.private.room import private_dask_column

    whole = str(Path(path).resolve())
    with _one_message(account):
        return plan.release(private_dask_column(whole, column), missing=missing, **_paid_by(account))


def select(
    plan: SelectionPlan, path: str, column: str, missing: str, account: Account, form: Format | None = None
) -> Selection:
    """The choice of a selection plan, from a column of a file."""
    with _one_message(account):
        return plan.select(PrivateColumn(path, column, form), missing=missing, **_paid_by(account))


def _paid_by(account: Account) -> dict[str, Any]:
    return (
        {}
        if account.ledger is None
        else {name: getattr(account, name) for name in ("ledger", "dataset", "why", "request")}
    )


@contextmanager
def _one_message(account: Account, unusable: Message = UNUSABLE) -> Iterator[None]:
    """Whatever the doors say about the column becomes one sentence; a ledger's refusal passes.

    Only a release in stages is paid for before all of it is answered.
    """
    try:
        yield
    except KeyboardInterrupt:
        if account.ledger is None:
            raise KeyboardInterrupt(STOPPED_UNCOUNTED) from None
        raise KeyboardInterrupt(*[STOPPED] * _is_paid(account)) from None
    except OtherSize as error:  # which tells of the plan alone
        failed = str(error)
    except (TypeError, ValueError):
        failed = unusable
    else:
        failed = ""
    if failed:
        raise UnusableOutput(UNFINISHED if _is_paid(account) else failed)


def _is_paid(account: Account) -> bool:
    if account.ledger is None or account.request is None:
        return False
    entries = as_ledger(account.ledger).entries(account.dataset)
    return any(entry.request == account.request for entry in entries)
