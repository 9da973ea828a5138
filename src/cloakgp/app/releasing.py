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
from typing import Any

from cloakgp.app import releases
from cloakgp.app.accounts import Person, stamp, utc_now
from cloakgp.app.checked_ledger import CheckedLedger, Left, Receipts, left
from cloakgp.app.errors import REMEDY, Problem, ReadOnly, busy, conflict, public_work, spending, stopped
from cloakgp.app.plans import Plans
from cloakgp.app.releases import Releases
from cloakgp.app.settings import AskQuote, ReleaseAsked
from cloakgp.app.uploads import Uploads
from cloakgp.app.work import current, listening
from cloakgp.core import checks
from cloakgp.core.accounting import Gaussian, to_spec
from cloakgp.core.errors import ArgumentError
from cloakgp.files.labels import NAMES, Labels
from cloakgp.ledger import Entry, LedgerError
from cloakgp.ledger.balances import Terms, rounded_down
from cloakgp.ledger.charging import Account
from cloakgp.release.plan import recover_from
from cloakgp.release.settings import Settings
from cloakgp.workflow import private_step
from cloakgp.workflow.spending import Request, quote, request_name

log = logging.getLogger("cloakgp.app")
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

    def paying_ledger(self, who: str) -> CheckedLedger:
        """The same, to pay from: refused if it is not the ledger that paid before, or was changed."""
        ledger = self.ledger(who)
        if (said := ledger.trouble()) is not None:
            raise ReadOnly(said)
        return ledger

    def quote(self, plan_id: str, asked: AskQuote, person: Person) -> dict[str, Any]:
        """What a release would cost and leave; nothing is changed."""
        plan, dataset, number = self._plans.get(plan_id), asked.dataset, asked.number
        wanted, count = _request_of(plan), self._releases.count(plan_id, dataset)
        _check_number(number, count)
        self._check_payer(plan, dataset)
        c = plan["certificate"]
        event = Gaussian(c["mu"], c["n_measurements"])
        with spending():
            ledger = self.paying_ledger(person.name)
            ledger.check_dataset(dataset)
            found = quote(ledger, dataset, event, _request_name(plan, number))
            if found.known is None:
                found.before.check_terms(_terms(plan))
            before, after = left(found.before), left(found.after)
        made = releases.release_id(plan_id, dataset, number)
        return {
            "fits": found.fits,
            "next": count + 1,
            "cost": to_spec(event),
            "left_before": before,
            "left_after": after,
            "spent_before": before.spent,
            "spent_after": after.spent,
            "known": made if found.known is not None and self._releases.is_there(made) else None,
            "words": _quote_words(dataset, found.fits, found.known is not None, before, after),
            "reads": wanted.reads,
            "unit": wanted.terms.unit,
            "epsilon": wanted.epsilon,
            "delta": wanted.terms.delta,
            "lists": wanted.lists,
        }

    def release(self, plan_id: str, asked: ReleaseAsked, person: Person) -> dict[str, Any]:
        """The private step; with the same answer, for nothing, if it was answered before."""
        plan = self._plans.get(plan_id)
        labels = {name: word for name in NAMES if (word := getattr(asked, name).strip())}
        with public_work():  # said here: later it would look like something wrong with the output column
            checks.text(asked.why or "-", "why")
            Labels().changed(**labels)
            if asked.confirm != asked.dataset:
                expected = "must repeat the data set's name, letter by letter; nothing was spent"
                raise ArgumentError("confirm", expected)
        self._check_payer(plan, asked.dataset)
        with self._one_at_a_time(plan_id), listening(may_leave=False):
            with spending():
                ledger = self.paying_ledger(person.name).naming(**vars(_request_of(plan).reads))
                ledger.check_dataset(asked.dataset)
            _check_number(asked.number, self._releases.count(plan_id, asked.dataset))
            record = {
                "id": releases.release_id(plan_id, asked.dataset, asked.number),
                "plan": plan_id,
                "name": plan["name"] if asked.number == 1 else f"{plan['name']} ({asked.number})",
                "kind": plan["settings"]["kind"],
                "created": stamp(utc_now()),
                "by": person.name,
                "settings": plan["settings"],
                "chosen": plan["chosen"],
                "labels": labels,
                "request": _request_name(plan, asked.number),
                **asked.model_dump(include={"dataset", "why", "missing", "number"}),
            }
            return self._paid(plan, record, ledger)

    def reconcile(self) -> None:
        """After a start: finish what the ledger says was paid for, and forget what was not."""
        said = self.ledger("the server").trouble()
        if said is not None:  # this ledger does not know what was paid for
            log.error("read-only: %s %s", said, REMEDY)
            return
        for record in self._releases.unfinished():
            try:
                ledger = self.ledger(record["by"])
                entry = _payment(ledger, record)
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

    def _paid(self, plan: dict[str, Any], record: dict[str, Any], ledger: CheckedLedger) -> dict[str, Any]:
        dataset, release_id = record["dataset"], record["id"]
        with spending():
            entry = _payment(ledger, record)
            if entry is None:  # before the table is read
                ledger.balance(dataset).check_terms(_terms(plan))
        if entry is not None and self._releases.is_there(release_id):
            done = self._releases.get(release_id)
        elif entry is None and self._releases.has_file(release_id):
            raise conflict(
                f"{release_id}.cloak is in the folder of releases, and the ledger does not know it. It is "
                "not overwritten: move it away first. Nothing was spent."
            )
        else:
            if entry is not None:  # it goes on as it was begun, whatever is said of missing outcomes now
                record = self._releases.noted(release_id) or record
            current().check_wanted(may_leave=False)
            self._releases.begin(record)
            try:
                done = self._made(plan, record, ledger, entry)
            except Problem as problem:
                if not _is_paid(ledger, record):
                    self._releases.forget(record)
                elif problem.code == "stopped":
                    raise stopped(_STOPPED) from None
                elif entry is not None and problem.code in ("conflict", "not_found"):
                    raise conflict(f"{problem.detail} {_UNFINISHED}") from None
                raise
        with spending():
            balance = left(ledger.balance(dataset))
        now = {"spent": ledger.paid, "left_release": balance.release, "left_selection": balance.selection}
        return {"release": done, "receipt": {**done["receipt"], **now}}

    def _made(
        self, plan: dict[str, Any], record: dict[str, Any], ledger: CheckedLedger, entry: Entry | None
    ) -> dict[str, Any]:
        """The release; from the ledger if `entry` paid for it before and all of it was answered."""
        with spending():
            if entry is not None and not ledger.is_unfinished(entry.number):
                return self._releases.finish(record, recover_from(ledger, entry.number))
        data = plan["settings"]["data"]
        # Nobody can put another table in the place of this one meanwhile: all that is public of it is
        # compared with what was planned, and outcomes are read from it.
        with self._uploads.snapshot(data) as path:
            made = self._plans.make_again(plan["id"], path)
            if made is None or made.question is None:
                raise conflict(
                    f"{data} is not as it was when this was planned: its public columns, its number of rows, "
                    "or its people. Plan again. Nothing private was read."
                )
            chosen, missing = made.question, record["missing"]
            account = Account(ledger, record["dataset"], record["why"], record["request"])
            with spending():
                release = private_step.release(
                    made, str(path), chosen.output, missing, account, chosen.reading, chosen.people
                )
        return self._releases.finish(record, release)

    def _check_payer(self, plan: dict[str, Any], dataset: str) -> None:
        """Earlier releases that a plan takes into account are about the people who paid for them."""
        payers = {self._releases.get(given)["dataset"] for given in plan["settings"].get("given", ())}
        for payer in payers - {dataset}:
            raise conflict(
                f"this plan takes a release into account that was paid from the budget of {payer}; only that "
                "can pay for it. Nothing was spent."
            )

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


def _request_of(plan: dict[str, Any]) -> Request:
    """What a plan's settings ask of the private step."""
    return Request.of(Settings.from_words(plan["chosen"]))


def _request_name(plan: dict[str, Any], number: int) -> str:
    """The request's name in the ledger: the same question of the same column has the same."""
    return request_name("app release", None if number == 1 else str(number), plan=plan["id"])


def _payment(ledger: CheckedLedger, record: dict[str, Any]) -> Entry | None:
    """The entry of the ledger that paid for a release, if there is one."""
    if record["dataset"] not in ledger.known_datasets():
        return None
    entries = ledger.entries(record["dataset"])
    return next((entry for entry in entries if entry.request == record["request"]), None)


def _is_paid(ledger: CheckedLedger, record: dict[str, Any]) -> bool:
    """Whether something is on record of it; yes if that cannot be known now."""
    try:
        return _payment(ledger, record) is not None
    except (LedgerError, ValueError):
        return True


def _terms(plan: dict[str, Any]) -> Terms:
    """What a plan is for, to be compared with a data set's terms."""
    return replace(_request_of(plan).terms, partition=plan["partition"])


def _check_number(number: int, count: int) -> None:
    """Releases of a plan are made one after another, so that asking twice for one is not asking for two."""
    if number > count + 1:
        raise conflict(
            f"number must be at most {count + 1}: this plan was released {count} time(s) for these people. "
            "Nothing was spent."
        )


def _quote_words(dataset: str, fits: bool, known: bool, before: Left, after: Left) -> str:
    """What a quote says to people."""
    left = [rounded_down(each.release) for each in (before, after)]
    if known:
        return f"This was released before from the budget of {dataset}: the same answer again costs nothing."
    if not fits:
        return (
            f"This does not fit: {dataset} has epsilon {left[0]} left for one more release. Plan with a "
            "smaller epsilon."
        )
    return (
        f"{dataset} has epsilon {left[0]} left for one more release now, and {left[1]} after this one. It "
        "cannot be undone."
    )
