"""The ledger as people use it: data sets with a budget, what was spent of it, and what is left.

Entries are read and checked whole before anything is said or added. All that is answered goes through one
door, :meth:`Ledger._answering`; :mod:`cloakgp.ledger.charging` says what that guarantees.
"""

from __future__ import annotations

import getpass
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from cloakgp.core import checks
from cloakgp.core.accounting import Event, compose, to_spec
from cloakgp.core.budget import Budget
from cloakgp.core.checks import IntArray
from cloakgp.core.errors import ArgumentError, ArgumentTypeError, Message, Phrase
from cloakgp.data.people import ALIKE, as_ids
from cloakgp.ledger.balances import Balance, Names, Reads, Terms, as_names, balance_of, balances_in, terms_of
from cloakgp.ledger.chain import (
    ALLOWED,
    ANSWERED,
    CREATED,
    OPENED,
    SPENT,
    BudgetExceeded,
    DatasetExists,
    Entry,
    LedgerAbsent,
    LedgerError,
    LedgerTampered,
    Receipt,
    check_chain,
    check_claims,
    claims_of,
    releases_of,
    sha256,
    tampered,
)
from cloakgp.measure.unit import OUTCOME, PERSON, PERSON_ROWS, UNITS

if TYPE_CHECKING:
    from cloakgp.ledger.store import Store

Entries = Sequence[Entry]
Held = tuple[bytes | None, bytes | None]
"""The answer that an entry holds, and the plan that it is read by."""
_SEE = "See ledger.entries()."
_EMPTY = Message("ledger: it is empty. ", Phrase.CREATE_LEDGER, " makes a data set.")


class Chargeable(Protocol):
    """What a ledger needs to know of a plan."""

    @property
    def cost(self) -> Event:
        """The whole promise, of all stages together."""

    @property
    def stages(self) -> int:
        """How many there are at most; the digest covers it."""

    @property
    def digest(self) -> str: ...
    @property
    def inputs_digest(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def partition(self) -> str: ...
    @property
    def delta(self) -> float: ...
    @property
    def question_digest(self) -> str:
        """SHA-256 of what is asked, of whom: the same on every machine, unlike the integers' own digest."""

    def to_bytes(self) -> bytes | None:
        """All that an answer is read by, the first stage's integers among it; None if that is not needed."""


@dataclass
class Charge:
    """A stage of a release: give it the answer, unless it has one."""

    answer: IntArray | None = None
    receipt: Receipt | None = None
    """Once it is on record."""
    plan: bytes | None = None
    """What a recorded answer is read by. Of a first stage, the plan that was charged for, and None if that is
    the caller's own to the last digit; of a later one, the stage's plan."""


@dataclass(frozen=True)
class Audit:
    """What :meth:`Ledger.verify` found to be in order."""

    entries: int
    head: str
    datasets: tuple[str, ...]
    releases: int

    def __str__(self) -> str:
        return (
            f"verified: {self.entries} entries in an unbroken chain\n"
            f"  budgets of {len(self.datasets)} data set(s) kept, {self.releases} release(s) found\n"
            f"  head {self.head}"
        )


class Ledger:
    """A budget for each data set, kept in a database that several processes may share.

    A data set stands for a set of *people*: everything about them, whatever the column or the subset
    of rows, is paid from its one budget. It has one unit of protection, and one partition of the rows into
    people if these are protected; one id column, a list of private columns, and a largest delta: what is for
    another is refused. Columns are compared by name where a request has names.

    Parameters
    ----------
    url : str
        ``"sqlite:///budget.db"`` for a file, ``"postgresql://user:password@host/name"`` for a server.
    who : str, optional
        Who is spending; the name of the user who runs this program, if absent.
    timeout : float
        Seconds to wait for another request to finish.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db", who="an example")
    >>> print(ledger.create("kung", epsilon=1.0, delta=1e-4))
    kung: (1, 0.0001) in all; unit fixed by the first spend
      0 spends; epsilon 0 at delta 0.0001, if planned beforehand
      left for one more release: epsilon 1 at delta 0.0001
      or for a selection: epsilon 1
    """

    def __init__(self, url: str, *, who: str | None = None, timeout: float = 60.0) -> None:
        from cloakgp.ledger.store import Store

        if not isinstance(url, str):
            raise ArgumentTypeError("url", "must be text, such as 'sqlite:///budget.db'", type(url).__name__)
        self._timeout = checks.positive(timeout, "timeout")
        self._who = checks.text(user_name() if who is None else who, "who")
        self._store: Store = Store(url, self._timeout)
        self._reads = Reads()

    @property
    def who(self) -> str:
        """Who is spending."""
        return self._who

    def create(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float,
        pure: float = 0.0,
        why: str = "",
        unit: str | None = None,
        people: str | None = None,
        private: Names = (),
        largest_delta: float | None = None,
        ids: str = ALIKE,
    ) -> Balance:
        """Open a budget for a data set, for good: it cannot be raised later.

        Parameters
        ----------
        dataset : str
            A name for the people that the data are about.
        epsilon, delta : float
            All that may ever be spent on them.
        pure : float
            Part of epsilon set aside for pure mechanisms: selections and Laplace noise. Not needed
            for one selection that comes first. ``docs/ledger.md`` says when it pays.
        why : str
            For the record.
        unit : {"one row", "one person", "one whole row", "one person's whole rows"}, optional
            Whom all that is spent must protect. If absent, the first spend fixes it.
        people : str, optional
            The id column, for a unit of people. If absent, the first spend that names one fixes it.
        private : names of columns, optional
            All that the private step may read: outcomes and, of whole rows, inputs. None of them can be a
            public input. If absent, the first spend that names its columns fixes them. :meth:`allow` adds to
            them.
        largest_delta : float, optional
            Of one release; the budget's delta if absent.
        ids : {"alike", "exact"}
            Whether a release may take each way of writing an id for another person, as ``ids="exact"`` does.
        """
        budget = Budget(epsilon, delta, pure)
        largest = budget.delta if largest_delta is None else largest_delta
        largest = checks.number(largest, "largest_delta", above=0.0, below=1.0)
        of_people = unit in (PERSON.name, PERSON_ROWS.name)
        terms = Terms(people=people, unit=unit, delta=largest, ids=as_ids(ids, of_people))
        if people is not None and not of_people:
            expected = f"must be {PERSON.name!r} or {PERSON_ROWS.name!r} where people names the id column"
            raise ArgumentError("unit", expected, repr(unit))
        terms = terms.allowing(as_names(private, "private"))
        dataset, why = checks.text(dataset, "dataset", checks.LONGEST_NAME), _reason(why)
        with self._store.writing(create=True) as connection:
            entries = self._locked(connection)
            if not entries:
                self._append(connection, [], kind=OPENED, what={"id": uuid.uuid4().hex})
                entries = self._locked(connection)
            if dataset in balances_in(entries):
                raise DatasetExists(f"dataset {dataset!r} is in this ledger already, and its budget stands.")
            what = {**asdict(budget), **terms.words()}
            self._append(connection, entries, kind=CREATED, dataset=dataset, why=why, what=what)
        return Balance(dataset, budget, (), terms)

    def allow(self, dataset: str, private: Names, why: str = "") -> Balance:
        """Let a data set's budget pay for more private columns, too. Costs nothing; for custodians.

        A data set whose columns nothing has fixed yet has these from now on.

        Parameters
        ----------
        private : names of columns
            What was published as an input, or is the id column, is refused.
        why : str
            For the record.
        """
        dataset, why, names = checks.text(dataset, "dataset"), _reason(why), as_names(private, "private")
        with self._store.writing() as connection:
            self._locked(connection, dataset)
            entries = self._locked(connection)
            balance = balance_of(entries, dataset)
            terms = balance.protected.allowing(names)
            if terms != balance.protected:
                what = {"private": list(names)}
                self._append(connection, entries, kind=ALLOWED, dataset=dataset, why=why, what=what)
        return replace(balance, protected=terms)

    def naming(self, private: Names = (), public: Names = (), people: str | None = None) -> Self:
        """The same ledger, for requests that read these columns of a table.

        Columns of files and frames have names by themselves; arrays do not.
        """
        terms = Terms(as_names(private, "private"), as_names(public, "public"), people)  # checked
        named = object.__new__(type(self))  # and not a copy, which is made for other processes
        named.__dict__.update(self.__dict__, _reads=Reads(terms.private, terms.public, terms.people))
        return named

    @property
    def reads(self) -> Reads:
        """The columns that :meth:`naming` named."""
        return self._reads

    def datasets(self) -> list[str]:
        """The names of the data sets, in the order in which they were created."""
        return list(balances_in(self._read()))

    def balance(self, dataset: str) -> Balance:
        """A data set's budget, what was spent of it, and what is left."""
        return balance_of(self._read(), checks.text(dataset, "dataset"))

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one data set, in order."""
        entries = self._read()
        if dataset is not None:
            balance_of(entries, dataset)
        return [entry for entry in entries if dataset in (None, entry.dataset)]

    @property
    def head(self) -> str:
        """The last entry's hash. Note it elsewhere: it stands for the whole ledger."""
        return self._read()[-1].hash

    def record(
        self, dataset: str, event: Event, why: str, unit: str = OUTCOME.name, partition: str = ""
    ) -> Receipt:
        """Charge for an answer that was given elsewhere, about the same people.

        Parameters
        ----------
        event : Gaussian, Exponential, Laplace or Approximate
            From :mod:`cloakgp.core.accounting`.
        why : str
            What it was.
        unit : str
            Whom it protects; must be the data set's unit. Of a plan, ``plan.unit``.
        partition : str, optional
            Of a plan that protects people, ``plan.partition``; if absent, they are the data set's.
        """
        compose([event])  # refuses what is not an event
        terms = Terms(unit=checks.choice(unit, "unit", UNITS), partition=partition)
        why = checks.text(why, "why")

        def words(entries: Entries) -> dict[str, Any]:
            return {"why": why, "what": _paid_for(entries, dataset, event, terms)}

        with self._answering(dataset, lambda _: None, words) as charge:
            pass
        assert charge.receipt is not None
        return charge.receipt

    @contextmanager
    def charge(
        self, plan: Chargeable, dataset: str, why: str = "", request: str | None = None
    ) -> Iterator[Charge]:
        """Charge for a release, whole, and record the first stage's answer, made inside the block.

        With a `request` that was charged for before, the answer is there already and nothing is charged. See
        :mod:`cloakgp.ledger.charging`.
        """
        why = _reason(why)
        if request is not None:
            checks.text(request, "request")
        terms = terms_of(plan, self._reads)

        def find(entries: Entries) -> Entry | None:
            for entry in entries:
                if request is not None and (entry.dataset, entry.request) == (dataset, request):
                    _check_plan(entry, plan)
                    balance_of(entries, dataset).check_terms(terms)  # later stages may still be read
                    return entry
            return None

        def words(entries: Entries) -> dict[str, Any]:
            return {
                "what": {**_paid_for(entries, dataset, plan.cost, terms), "stages": plan.stages},
                "why": why,
                "request": request,
                "plan": plan.digest,
                "inputs": plan.inputs_digest,
                "question": plan.question_digest,
                "kept_plan": plan.to_bytes(),
            }

        with self._answering(dataset, find, words, plan) as charge:
            yield charge

    @contextmanager
    def stage(self, entry: int, number: int, plan: Chargeable, stage_plan: bytes) -> Iterator[Charge]:
        """Record a later stage, and its answer, made inside the block; see :mod:`cloakgp.ledger.charging`.

        Parameters
        ----------
        entry : int
            The number of the entry that paid.
        number : int
            Which stage: the next one, or one that was answered. :meth:`charge` recorded the first, 0.
        plan
            The plan that was paid for.
        stage_plan : bytes
            All that the stage is made from. If it was answered before, ``charge.plan`` is what it was then.
        """
        if not isinstance(stage_plan, bytes):
            raise ArgumentTypeError("stage_plan", "must be bytes", type(stage_plan).__name__)
        with self._store.reading() as connection:
            paid = _release(self._checked(connection), entry, plan)[0]
        stages = paid.what["stages"]
        checks.whole(number, "number", 0, stages - 1)

        def find(entries: Entries) -> Entry | None:
            answered = _release(entries, entry, plan)
            if number > len(answered):
                raise LedgerError(
                    f"ledger: stage {number + 1} of {stages}, paid for in entry {entry}, cannot be measured "
                    "before the one before it. No answer was given out, and nothing was spent."
                )
            return answered[number] if number < len(answered) else None

        words = {
            "kind": ANSWERED,
            "what": {"paid": paid.number, "stage": number},
            "why": f"stage {number + 1} of {stages}, paid for in entry {entry}",
            "plan": paid.plan,
            "kept_plan": stage_plan,
        }
        with self._answering(paid.dataset, find, lambda _: words, plan) as charge:
            yield charge

    def answers(self, entry: int, plan: Chargeable) -> list[Charge]:
        """All stages that were answered of what an entry paid for, in order and for nothing.

        Parameters
        ----------
        entry : int
            The number of the entry that paid.
        plan
            The plan that was paid for, or one for the same question that was made elsewhere.
        """
        with self._store.reading() as connection:
            found = _release(self._checked(connection), entry, plan)
            return [self._recorded(connection, each, plan) for each in found]

    def is_unfinished(self, entry: int) -> bool:
        """Whether an entry paid for a release of which some stages were not answered yet."""
        found = releases_of(self._read()).get(checks.whole(entry, "entry", remedy=_SEE))
        return found is not None and len(found) < found[0].what["stages"]

    def charged_plan(self, entry: int) -> bytes | None:
        """The plan that an entry paid for, as ``plan.to_bytes`` gave it; None if there is none."""
        checks.whole(entry, "entry", remedy=_SEE)
        with self._store.reading() as connection:
            entries = self._checked(connection)
            return self._held(connection, entries[entry])[1] if 0 <= entry < len(entries) else None

    def verify(self, receipts: Any = (), head: str | None = None, *, releases: Any = ()) -> Audit:
        """Check the whole ledger, and that what it paid for is still in it; or raise.

        Parameters
        ----------
        receipts : receipts, releases, or paths of release files
            A ledger whose end was cut off, or that was replaced by an old copy, is a good chain in
            itself. What it paid for and has forgotten shows it. Of releases, plan and answer are
            compared, too. Selections, while you hold them, are as good.
        head : str, optional
            A :attr:`head` that was noted earlier, and must still be in the chain.
        releases
            More of them, under another name.

        Raises
        ------
        LedgerTampered
            If an entry was changed, removed or put in, or the ledger is not the one that paid. All
            receipts that are not in it are listed.
        """
        claims = [*claims_of(receipts, "receipts"), *claims_of(releases, "releases")]
        with self._store.reading() as connection:
            entries = self._checked(connection)
            for entry in entries:
                self._held(connection, entry)  # raises if it was changed
        datasets = tuple(balances_in(entries, whole=True))
        check_claims(claims, entries)
        if head is not None and head not in [entry.hash for entry in entries]:
            raise LedgerTampered(
                "ledger: the head that was noted is not in it: the end was cut off, an old copy was put "
                "in its place, or this is another ledger."
            )
        if not entries:
            raise LedgerAbsent(_EMPTY)
        return Audit(len(entries), entries[-1].hash, datasets, len(claims))

    @contextmanager
    def _answering(
        self,
        dataset: str,
        find: Callable[[Entries], Entry | None],
        words: Callable[[Entries], dict[str, Any]],
        plan: Chargeable | None = None,
    ) -> Iterator[Charge]:
        """One transaction, in which an entry is added together with the answer made inside the block.

        `find` looks for what was answered before; `words` are those of the entry, or it refuses. Without a
        plan there is no answer.
        """
        dataset, charge = checks.text(dataset, "dataset"), Charge()
        try:
            with self._store.writing() as connection:
                entries = self._locked(connection, dataset)
                known = find(entries)
                if known is not None:
                    assert plan is not None
                    charge = self._recorded(connection, known, plan)
                    yield charge
                    return
                new = words(entries)  # all of it before y is read: nothing may fail afterwards
                yield charge
                if plan is not None and charge.answer is None:
                    raise LedgerError("ledger: no answer was given to the charge. Nothing was charged.")
                entries = self._locked(connection)
                if find(entries) is not None:  # if the lock ever fails, the first answer stands
                    raise LedgerError(
                        "ledger: this was answered meanwhile by another request. Ask again for that answer. "
                        "This one was not given out, and nothing was charged."
                    )
                answer = None if plan is None else np.asarray(charge.answer, dtype="<i8").tobytes()
                held = answer, new.pop("kept_plan", None)
                entry = self._append(connection, entries, held, **new, dataset=dataset)
            charge.receipt = entry.receipt
        except BaseException:
            charge.answer = None  # not on record, so it must not be had
            raise

    def _append(self, connection: Any, entries: Entries, held: Held = (None, None), **words: Any) -> Entry:
        """Add an entry that says this, with the answer and the plan that it holds."""
        words = {"number": len(entries), "kind": SPENT, "who": self._who, **words}
        words |= {"when": datetime.now(UTC).isoformat(timespec="seconds")}
        words |= {"answer": sha256(held[0]), "kept": sha256(held[1])}
        entry = Entry(**words, previous=entries[-1].hash if entries else Entry.previous).sealed()
        self._store.append(connection, entry, *held)
        return entry

    def _recorded(self, connection: Any, entry: Entry, plan: Chargeable) -> Charge:
        """The answer that was recorded with an entry, and what it is read by."""
        contents, kept = self._held(connection, entry)
        if contents is None or len(contents) % 8:
            raise tampered(entry, "was changed: its answer")
        answer = np.frombuffer(contents, dtype="<i8").astype(np.int64)
        own = entry.kind == SPENT and entry.plan == plan.digest
        return Charge(answer, entry.receipt, None if own else kept)

    def _held(self, connection: Any, entry: Entry) -> Held:
        """An entry's answer, and what it is read by, as they were recorded."""
        held = self._store.held(connection, entry.number)
        for what, data, digest in zip(("answer", "plan"), held, (entry.answer, entry.kept), strict=True):
            if digest != sha256(data):
                raise tampered(entry, f"was changed: its {what}")
        return held

    def _checked(self, connection: Any) -> list[Entry]:
        entries = self._store.entries(connection)
        check_chain(entries)
        return entries

    def _locked(self, connection: Any, dataset: str | None = None) -> list[Entry]:
        """All entries, once no other request is appending; or with a data set, spending from that."""
        self._store.lock(connection, dataset)
        return self._checked_to_write(connection)

    def _checked_to_write(self, connection: Any) -> list[Entry]:
        """All entries, before one is added: a subclass may ask for more than an unbroken chain."""
        return self._checked(connection)

    def _read(self) -> list[Entry]:
        with self._store.reading() as connection:
            entries = self._checked(connection)
        if not entries:
            raise LedgerAbsent(_EMPTY)
        return entries

    def __reduce__(self) -> Any:  # copied and sent to other processes without its connections
        return _reopened, (self._store.url, self.who, self._timeout, self._reads)

    def __repr__(self) -> str:
        return f"<Ledger {self._store.shown}, as {self.who}>"


def _reopened(url: str, who: str, timeout: float, reads: Reads) -> Ledger:
    return Ledger(url, who=who, timeout=timeout).naming(**vars(reads))


def _reason(why: Any) -> str:
    return "" if isinstance(why, str) and why == "" else checks.text(why, "why")


def _paid_for(entries: Entries, dataset: str, event: Event, terms: Terms) -> dict[str, Any]:
    """What an entry says that it pays for; raises unless terms and budget allow it."""
    balance = balance_of(entries, dataset)
    balance.check_terms(terms)
    if not balance.budget.allows(balance.events, event):
        raise BudgetExceeded(balance.refusal(event))
    return {**to_spec(event), **terms.words()}


def _release(entries: Entries, entry: Any, plan: Chargeable) -> list[Entry]:
    """The answered stages of what an entry paid for, if that was this plan."""
    found = releases_of(entries).get(checks.whole(entry, "entry", remedy=_SEE))
    if found is None:
        raise LedgerError(f"entry: there is no release of number {entry} in this ledger. Nothing was spent.")
    _check_plan(found[0], plan)
    return found


def _check_plan(entry: Entry, plan: Chargeable) -> None:
    """Raise unless the entry paid for this plan, or for the same question planned on another machine."""
    if entry.plan != plan.digest and entry.question != plan.question_digest:
        said = f"ledger: entry {entry.number} was made from another plan. Use the same inputs and settings "
        raise LedgerError(Message(said, "as then, or ", Phrase.NEW_REQUEST, ". Nothing was spent."))


def user_name() -> str:
    """Of whoever runs this program."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user table
        return f"user {os.getuid()}"
