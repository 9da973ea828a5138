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

from cloakgp.core.errors import Message, OtherSize, Phrase, Refused
from cloakgp.data.formats import Format
from cloakgp.ledger.charging import Account, as_ledger
from cloakgp.model.outcome import ANSWERS
from cloakgp.private.room import PrivateColumn, PrivateLabels, private_dask_column
from cloakgp.release.plan import Plan
from cloakgp.release.release import Release
from cloakgp.selection import Selection, SelectionPlan


def _unusable(what: str, expected: str, allowed: str, whose: str = "outcomes") -> Message:
    return Message(
        f"{what} cannot be used. It must {expected} are allowed with ",
        Phrase.MIDPOINT,
        f", which {allowed}. More is not said, because it would tell about private {whose}. Nothing was "
        "released, and nothing was spent.",
    )


UNUSABLE = _unusable(
    "the output column",
    "hold one number in every row; missing values",
    "puts the middle of the bounds in their place",
)
UNUSABLE_ANSWERS = _unusable(
    "the output column",
    "have a class that the plan names in every row or, if it names none, say yes or no: yes and no, true and "
    "false, 1 and 0. Missing values, and others,",
    "protects them, too",
)
UNUSABLE_ROWS = _unusable(
    "the table",
    "have an id in each row where all rows of a person are protected, a number or a date for each input with "
    "a range, one of the levels for others, and a number as its outcome, or what the plan says. Missing and "
    "unknown ones",
    "protects them, too",
    "rows",
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
    plan: Plan,
    path: str,
    column: str,
    missing: str,
    account: Account,
    form: Format | None = None,
    people: str | None = None,
    dask: bool = False,
) -> Release:
    """The release of a plan, from a column of a file; `form` is how that is written, as public columns are.

    Where the plan names classes, cells are compared with these; where it is of yes and no, with common words.
    Where it protects whole rows, inputs, and the ids in the column `people`, are read where outcomes are.
    With `dask`, the workers of a cluster read Parquet files, and no value comes to this process.
    """
    grid, outcome = plan.grid, plan.outcome
    by_words = outcome.cells == ANSWERS and not outcome.classes  # nobody said how that is written
    unusable = UNUSABLE_ROWS if grid is not None else UNUSABLE_ANSWERS if outcome.labels else UNUSABLE
    with _one_message(account, unusable):
        return plan.release(
            private_dask_column(str(Path(path).resolve()), column)
            if dask
            else PrivateLabels(PrivateColumn(path, column, form))
            if by_words
            else PrivateColumn(path, column, form),
            X=None if grid is None else {name: PrivateColumn(path, name, form) for name in grid.names},
            people=None if grid is None or people is None else PrivateColumn(path, people, form),
            missing=missing,
            **_paid_by(account),
        )


def select(
    plan: SelectionPlan, path: str, column: str, missing: str, account: Account, form: Format | None = None
) -> Selection:
    """The choice of a selection plan, from a column of a file."""
    with _one_message(account, UNUSABLE):
        return plan.select(PrivateColumn(path, column, form), missing=missing, **_paid_by(account))


def _paid_by(account: Account) -> dict[str, Any]:
    return {} if account.ledger is None else vars(account)


@contextmanager
def _one_message(account: Account, unusable: Message) -> Iterator[None]:
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
        return
    raise UnusableOutput(UNFINISHED if _is_paid(account) else failed)


def _is_paid(account: Account) -> bool:
    if account.ledger is None or account.request is None:
        return False
    entries = as_ledger(account.ledger).entries(account.dataset)
    return any(entry.request == account.request for entry in entries)
