"""The private step as the app takes it: quote, confirm, release; and what to do after a crash.

What is about to happen is noted before the ledger is asked. So at the next start each note either finds
its entry in the ledger, and the release is finished from there for nothing, or it finds none: then nothing
was spent, nothing got out, and the note is removed. A release in stages goes on where it stopped, for which
the table is needed once more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloakgp import checks
from cloakgp.accounting import Gaussian, to_spec
from cloakgp.app import models, releases
from cloakgp.app.balances import left, quote_words, told
from cloakgp.app.checked_ledger import CheckedLedger, check_dataset, datasets_of
from cloakgp.app.current_request import current
from cloakgp.app.errors import (
    Problem,
    bad_input,
    busy,
    conflict,
    public_work,
    read_only,
    spending,
    stopped,
)
from cloakgp.app.people import Person, stamp, utc_now
from cloakgp.app.plans import Plans
from cloakgp.app.protection import columns_of, request_of, written_as
from cloakgp.app.public_inputs import form_of
from cloakgp.app.receipts import REMEDY, Receipts
from cloakgp.app.releases import Releases
from cloakgp.app.uploads import Uploads
from cloakgp.app.watching import check_wanted, listening
from cloakgp.files.labels import NAMES, Labels
from cloakgp.ledger import Entry, Ledger, LedgerError
from cloakgp.ledger.charge import Account
from cloakgp.ledger.units import Protected
from cloakgp.plans import opening
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.rows.file_cells import n_rows
from cloakgp.rows.formats import Format
from cloakgp.rows.people import ALIKE, as_people
from cloakgp.workflow import private_step, tables
from cloakgp.workflow.inputs import complete_rows, digest_of, open_inputs
from cloakgp.workflow.spending import quote, request_name

log = logging.getLogger("cloakgp.app")
_NOT_PAID = (
    "unusable_output",
    "budget_exceeded",
    "other_unit",
    "other_terms",
    "conflict",
    "bad_input",
    "not_found",
    "stopped",
)
"""Why a release was refused before it was paid for; one in stages, maybe, afterwards."""
_UNFINISHED = (
    "This release is paid for, and some of its stages are not answered yet: put the table back as it was and "
    "ask again. It goes on where it stopped, for nothing."
)


_STOPPED = (
    "the release was stopped. It is paid for, and what was answered is on record: ask again, and it goes on "
    "where it stopped, for nothing."
)


class Releasing:
    """Where plans become releases, and who pays."""

    def __init__(
        self, ledger_url: str, uploads: Uploads, plans: Plans, done: Releases, receipts: Receipts
    ) -> None:
        self._url, self._uploads, self._plans, self._releases = ledger_url, uploads, plans, done
        self.receipts = receipts
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def ledger(self, who: str) -> CheckedLedger:
        """The ledger, in somebody's name."""
        return CheckedLedger(self._url, self.receipts, who=who)

    def check_ledger(self) -> None:
        """Refuse to start on a ledger that cannot be used; see :meth:`CheckedLedger.check`."""
        self.ledger("the server").check()

    def paying_ledger(self, who: str) -> CheckedLedger:
        """The same, to pay from: refused if it is not the ledger that paid before, or was changed."""
        ledger = self.ledger(who)
        said = ledger.trouble()
        if said is not None:
            raise read_only(said)
        return ledger

    def quote(self, plan_id: str, wanted: models.AskQuote, person: Person) -> dict[str, Any]:
        """What a release would cost and leave; nothing is changed."""
        plan, dataset = self._plans.get(plan_id), wanted.dataset
        count, number = self._releases.count(plan_id, dataset), wanted.number
        _check_number(number, count)
        _check_payer(plan, dataset)
        c = plan["certificate"]
        event = Gaussian(c["mu"], c["n_measurements"])
        with spending():
            ledger = self.paying_ledger(person.name)
            check_dataset(ledger, dataset)
            asked = quote(ledger, dataset, event, self._request(plan, number))
            if asked.known is None:
                asked.before.check_terms(_terms(plan))
            before, after = left(asked.before), left(asked.after)
        made = releases.release_id(plan_id, dataset, number)
        return {
            "fits": asked.fits,
            "next": count + 1,
            "cost": to_spec(event),
            "left_before": {"release": before[0], "selection": before[1]},
            "left_after": {"release": after[0], "selection": after[1]},
            "spent_before": before[2],
            "spent_after": after[2],
            "known": made if asked.known is not None and self._has_file(made) else None,
            "words": quote_words(dataset, asked.fits, asked.known is not None, before, after),
            **told(request_of(plan["settings"])),
        }

    def release(self, plan_id: str, asked: models.AskRelease, person: Person) -> dict[str, Any]:
        """The private step; with the same answer, for nothing, if it was answered before."""
        plan = self._plans.get(plan_id)
        with public_work():  # said here: later it would look like something wrong with the output column
            checks.text(asked.why or "-", "why")
            Labels().changed(**_labels(asked))
        if asked.confirm != asked.dataset:
            raise bad_input(
                "confirm must repeat the data set's name, letter by letter. Nothing was spent, and the "
                "output column was not read."
            )
        _check_payer(plan, asked.dataset)
        with self._one_at_a_time(plan_id), listening(may_leave=False):
            with spending():
                reads = request_of(plan["settings"]).reads
                ledger = self.paying_ledger(person.name).naming(**vars(reads))
                check_dataset(ledger, asked.dataset)
            _check_number(asked.number, self._releases.count(plan_id, asked.dataset))
            record = _record(plan, asked, person, asked.number, self._request(plan, asked.number))
            return self._paid(plan, record, asked, ledger)

    def reconcile(self) -> None:
        """After a start: finish what the ledger says was paid for, and forget what was not."""
        said = self.ledger("the server").trouble()
        if said is not None:  # this ledger does not know what was paid for
            log.error("read-only: %s %s", said, REMEDY)
            return
        for record in self._releases.unfinished():
            try:
                ledger = self.ledger(record["by"])
                there = record["dataset"] in datasets_of(ledger)
                entry = _payment(ledger, record) if there else None
                if entry is not None:
                    self._made(self._plans.get(record["plan"]), record, ledger, entry)
                    log.info("release %s was paid for and is finished now", record["id"])
                elif record["state"] == releases.ASKED:
                    self._releases.forget(record)
                    log.info("release %s was not paid for; nothing got out", record["id"])
                else:
                    log.error("release %s: its file is gone, and the ledger does not know it", record["id"])
            except (LedgerError, OSError, ValueError, Problem) as error:
                log.error("release %s cannot be finished now: %s", record["id"], type(error).__name__)

    def _paid(
        self, plan: dict[str, Any], record: dict[str, Any], asked: models.AskRelease, ledger: CheckedLedger
    ) -> dict[str, Any]:
        with spending():
            entry = _payment(ledger, record)
            if entry is None:  # before the table is read
                ledger.balance(asked.dataset).check_terms(_terms(plan))
        if entry is not None and self._has_file(record["id"]):
            done = self._releases.get(record["id"])
        elif entry is None and self._releases.has_file(record["id"]):
            raise conflict(
                f"{record['id']}.cloak is in the folder of releases, and the ledger does not know it. It is "
                "not overwritten: move it away first. Nothing was spent."
            )
        else:
            if entry is not None:  # it goes on as it was begun, whatever is said of missing outcomes now
                record = self._releases.noted(record["id"]) or record
            check_wanted(current(), may_leave=False)
            self._releases.begin(record)
            try:
                done = self._made(plan, record, ledger, entry)
            except Problem as problem:
                paid = problem.code not in _NOT_PAID or self._is_paid(ledger, record)
                if not paid:
                    self._releases.forget(record)
                elif problem.code == "stopped":
                    raise stopped(_STOPPED) from None
                raise
        with spending():
            balance = left(ledger.balance(asked.dataset))
        receipt = {
            **done["receipt"],
            "spent": ledger.paid,
            "left_release": balance[0],
            "left_selection": balance[1],
        }
        return {"release": releases.shown(done), "receipt": receipt}

    def _made(
        self, plan: dict[str, Any], record: dict[str, Any], ledger: Ledger, entry: Entry | None
    ) -> dict[str, Any]:
        """The release; from the ledger if `entry` paid for it before and all of it was answered."""
        settings = plan["settings"]
        with spending():
            if entry is not None and not ledger.is_unfinished(entry.number):
                return self._releases.finish(record, opening.recover(ledger, entry.number))
        if entry is not None and settings["data"] not in self._uploads.names():
            raise conflict(f"{settings['data']} is not here any more. {_UNFINISHED}")
        with self._uploads.snapshot(settings["data"]) as path:
            account = Account(ledger, record["dataset"], record["why"], record["request"])
            table, paid = (str(path), settings["output"]), (record["missing"], account)
            with public_work():
                tables.check_columns(path, columns_of(settings))
                form = form_of(path, *written_as(settings))
            made = self._plan_again(plan, path, entry, form)
            with spending():
                if isinstance(made, RowsPlan):
                    release = private_step.release_rows(made, *table, settings.get("people"), *paid, form)
                else:
                    release = private_step.release(made, *table, *paid, form)
        return self._releases.finish(record, release)

    def _plan_again(
        self, plan: dict[str, Any], path: Path, entry: Entry | None, form: Format | None
    ) -> AnyPlan:
        """The plan, made from the table as it is now, which must be as it was when it was looked at.

        `path` is a copy of the table that nobody can change meanwhile: outcomes are read from it, so what is
        public in it is compared, too.
        """
        made, settings = self._plans.make_again(plan["id"]), plan["settings"]
        missing, who = settings.get("missing_inputs", "error"), settings.get("people")
        with public_work():
            if isinstance(made, RowsPlan):
                same = bool(who) or n_rows(path) == made.certificate.n_rows
            elif made is not None:
                X = open_inputs(path, settings["inputs"], False, False, made.columns, form, missing)
                ids = settings.get("ids", ALIKE)
                people = None if who is None else tables.read_ids(path, who, form, ids)
                X, people = complete_rows(X, people, missing)
                same = digest_of(X) == plan["inputs_sha256"]
                same = same and (people is None or as_people(people, len(X)).digest == made.partition)
        if made is None or not same:
            after = "Plan again. Nothing private was read, and nothing was spent."
            raise conflict(
                f"{settings['data']} is not as it was when this was planned: its public columns, its number "
                f"of rows, or its people. {after if entry is None else _UNFINISHED}"
            )
        return made

    def _request(self, plan: dict[str, Any], number: int) -> str:
        """The request's name in the ledger: the same question of the same column has the same."""
        settings = plan["settings"]
        asked = {"plan": plan["asked"], "data": settings["data"], "column": settings["output"]}
        return request_name("app release", None if number == 1 else str(number), **asked)

    def _is_paid(self, ledger: Ledger, record: dict[str, Any]) -> bool:
        """Whether something is on record of it; yes if that cannot be known now."""
        try:
            return _payment(ledger, record) is not None
        except LedgerError:
            return record["dataset"] in datasets_of(ledger)

    def _has_file(self, release_id: str) -> bool:
        try:
            return self._releases.path(release_id).exists()
        except Problem:
            return False

    @contextmanager
    def _one_at_a_time(self, plan_id: str) -> Iterator[None]:
        with self._lock:
            if plan_id in self._under_way:
                raise busy(
                    "a release of this plan is under way. Ask again in a moment; nothing is paid twice."
                )
            self._under_way.add(plan_id)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(plan_id)


def _payment(ledger: Ledger, record: dict[str, Any]) -> Entry | None:
    """The entry of the ledger that paid for a release, if there is one."""
    entries = ledger.entries(record["dataset"])
    return next((entry for entry in entries if entry.request == record["request"]), None)


def _terms(plan: dict[str, Any]) -> Protected:
    """What a plan is for, to be compared with a data set's terms."""
    return replace(request_of(plan["settings"]).terms, partition=plan["partition"])


def _check_number(number: int, count: int) -> None:
    """Releases of a plan are made one after another, so that asking twice for one is not asking for two."""
    if number > count + 1:
        raise conflict(
            f"number must be at most {count + 1}: this plan was released {count} time(s) for these people. "
            "Nothing was spent."
        )


def _check_payer(plan: dict[str, Any], dataset: str) -> None:
    """Earlier releases that a plan takes into account are about the people who paid for them."""
    payer = plan.get("payer")
    if payer not in (None, dataset):
        raise conflict(
            f"this plan takes a release into account that was paid from the budget of {payer}; only that can "
            "pay for it. Nothing was spent."
        )


def _labels(asked: models.AskRelease) -> dict[str, str]:
    """Words for pictures and reports, those that were given."""
    return {name: word for name in NAMES if (word := getattr(asked, name).strip())}


def _record(
    plan: dict[str, Any], asked: models.AskRelease, person: Person, number: int, request: str
) -> dict[str, Any]:
    return {
        "id": releases.release_id(plan["id"], asked.dataset, number),
        "plan": plan["id"],
        "name": plan["name"] if number == 1 else f"{plan['name']} ({number})",
        "kind": plan["settings"]["kind"],
        "created": stamp(utc_now()),
        "by": person.name,
        "settings": plan["settings"],
        "dataset": asked.dataset,
        "why": asked.why,
        "labels": _labels(asked),
        "missing": asked.missing,
        "number": number,
        "request": request,
    }
