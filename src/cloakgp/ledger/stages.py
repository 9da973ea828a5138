"""Releases in stages: paid for once, then measured several times, each time as the answers before suggest.

A stage's plan is on record before y is read, and its answer before it leaves. So after a crash the stages
that were answered are there, the next one is planned as it was, and no stage is answered twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.errors import ArgumentError, ArgumentTypeError
from cloakgp.ledger.chain import ANSWERED, PLANNED, Entry, sha256
from cloakgp.ledger.charge import Charge, ChargeableInStages, Receipt
from cloakgp.ledger.errors import LedgerError, LedgerTampered
from cloakgp.ledger.records import Records, as_contents, check_number, check_plan, receipt_of
from cloakgp.ledger.stage_order import Progress, progress_of
from cloakgp.measurements.lattice import IntArray


@dataclass(frozen=True)
class StageRecord:
    """What is on record of one stage."""

    number: int
    """From 0."""
    digest: str
    """SHA-256 of the stage's plan."""
    contents: bytes
    """The stage's plan."""
    answer: IntArray | None
    """None until it is answered."""
    receipt: Receipt | None
    """Of the answer."""


class Staged(Records):
    """The part of a ledger that records releases in stages."""

    def stages(self, entry: int, plan: ChargeableInStages) -> list[StageRecord]:
        """What is on record of the stages that an entry paid for, in order and for nothing.

        Parameters
        ----------
        entry : int
            The number of the entry that paid, as in what ``pay`` returned.
        plan
            The plan that it was made from.
        """
        with self._store.reading() as connection:
            progress = _progress(self._checked(connection), entry, plan)
            answers: list[Entry | None] = [*progress.answered, None]
            return [
                StageRecord(
                    planned.what["stage"],
                    planned.what["digest"],
                    self._stage_plan(connection, planned),
                    None if answered is None else self._answer(connection, answered),
                    None if answered is None else receipt_of(answered),
                )
                for planned, answered in zip(progress.planned, answers, strict=False)
            ]

    def is_unfinished(self, entry: int) -> bool:
        """Whether an entry paid for a release in stages, of which some were not answered yet."""
        check_number(entry)
        with self._store.reading() as connection:
            found = progress_of(self._checked(connection)).get(entry)
        if found is None:
            return False
        return not found.planned or len(found.answered) < int(found.planned[0].what["stages"])

    @contextmanager
    def stage(self, entry: int, number: int, plan: ChargeableInStages, stage_plan: bytes) -> Iterator[Charge]:
        """Record a stage's plan, then the answer made inside the block; see :mod:`cloakgp.ledger.charging`.

        Parameters
        ----------
        entry : int
            The number of the entry that paid.
        number : int
            Which stage, from 0: the next one, or one that is on record.
        plan
            The plan that was paid for.
        stage_plan : bytes
            All that the stage is made from; one that is on record, as it is there.
        """
        last = n_stages(plan) - 1
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number <= last:
            raise ArgumentError(
                "number", f"must be a whole number from 0 to {last}, as the plan has stages", repr(number)
            )
        if not isinstance(stage_plan, bytes):
            raise ArgumentTypeError("stage_plan", "must be bytes", type(stage_plan).__name__)
        charge = Charge()
        try:
            dataset = self._plan_stage(entry, int(number), plan, stage_plan)
            with self._answering(charge, dataset, entry, int(number), plan):
                yield charge
        except BaseException:
            charge.answer = None  # not on record, so it must not be had
            raise

    def _plan_stage(self, entry: int, number: int, plan: ChargeableInStages, stage_plan: bytes) -> str:
        """Put a stage's plan on record, or compare it with the one there; returns whose budget paid."""
        with self._store.reading() as connection:
            dataset = _progress(self._checked(connection), entry, plan).paid.dataset
        digest = sha256(stage_plan)
        with self._store.writing() as connection:
            self._store.lock_dataset(connection, dataset)
            self._store.lock_head(connection)
            entries = self._checked_to_write(connection)
            progress = _progress(entries, entry, plan)
            if number < len(progress.planned):
                if progress.planned[number].what["digest"] != digest:
                    said = "is on record with another plan. Plan it as then, from the same answers before it"
                    raise _refused(entry, number, plan, said)
            elif number > len(progress.answered):
                raise _refused(entry, number, plan, "cannot be planned before the one before it is answered")
            else:
                self._append_stage(
                    connection, entries, PLANNED, progress.paid, number, plan, stage_plan, digest=digest
                )
        return dataset

    @contextmanager
    def _answering(
        self, charge: Charge, dataset: str, entry: int, number: int, plan: ChargeableInStages
    ) -> Iterator[None]:
        with self._store.writing() as connection:
            self._store.lock_dataset(connection, dataset)
            progress = _progress(self._checked_to_write(connection), entry, plan)
            if number < len(progress.answered):
                known = progress.answered[number]
                charge.answer, charge.receipt = self._answer(connection, known), receipt_of(known)
                yield
                return
            _check_open(progress, number, plan)
            yield
            if charge.answer is None:
                raise LedgerError("ledger: no answer was given to the stage. Its plan alone is on record.")
            self._store.lock_head(connection)
            entries = self._checked_to_write(connection)
            progress = _progress(entries, entry, plan)
            _check_open(progress, number, plan)  # if the lock ever fails, the first answer stands
            contents = as_contents(charge.answer)
            answered = self._append_stage(
                connection, entries, ANSWERED, progress.paid, number, plan, contents
            )
        charge.receipt = receipt_of(answered)

    def _append_stage(
        self,
        connection: Any,
        entries: Sequence[Entry],
        kind: str,
        paid: Entry,
        number: int,
        plan: ChargeableInStages,
        contents: bytes,
        **more: str,
    ) -> Entry:
        return self._append(
            connection,
            entries,
            kind,
            dataset=paid.dataset,
            why=f"stage {number + 1} of {n_stages(plan)}, paid for in entry {paid.number}",
            what={"paid": paid.number, "stage": number, "stages": n_stages(plan), **more},
            plan=paid.plan,
            contents=contents,
        )

    def _stage_plan(self, connection: Any, planned: Entry) -> bytes:
        contents = self._store.contents(connection, planned.number)
        if contents is None or planned.answer != sha256(contents):
            raise LedgerTampered(f"ledger: the plan in entry {planned.number} was changed.")
        return contents


def n_stages(plan: ChargeableInStages) -> int:
    """How many stages a plan has at most."""
    stages = plan.stages
    if isinstance(stages, bool) or not isinstance(stages, (int, np.integer)) or stages < 1:
        raise ArgumentError("plan", "must have a whole number of stages, above 0", repr(stages))
    return int(stages)


def _progress(entries: Sequence[Entry], entry: Any, plan: ChargeableInStages) -> Progress:
    """How far the release is that an entry paid for, if that entry was made from this plan."""
    check_number(entry)
    found = progress_of(entries).get(entry)
    if found is None:
        raise LedgerError(
            f"entry: number {entry} in this ledger does not pay for a release in stages. Nothing was spent."
        )
    check_plan(found.paid, plan)
    if found.planned and found.planned[0].what["stages"] != n_stages(plan):
        raise LedgerError(
            f"ledger: entry {entry} pays for {found.planned[0].what['stages']} stages, and this plan has "
            f"{n_stages(plan)}. Use the plan that was paid for. Nothing was spent."
        )
    return found


def _check_open(progress: Progress, number: int, plan: ChargeableInStages) -> None:
    """Raise unless this stage is planned, and not answered."""
    if (len(progress.planned), len(progress.answered)) != (number + 1, number):
        said = "is not to be answered now: the ledger has changed meanwhile. Ask again"
        raise _refused(progress.paid.number, number, plan, said)


def _refused(entry: int, number: int, plan: ChargeableInStages, said: str) -> LedgerError:
    return LedgerError(
        f"ledger: stage {number + 1} of {n_stages(plan)}, paid for in entry {entry}, {said}. No answer was "
        "given out, and nothing was spent."
    )
