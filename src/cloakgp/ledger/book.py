"""The ledger as people use it: data sets with a budget, what was spent of it, and what is left."""

from __future__ import annotations

import getpass
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakgp import checks
from cloakgp.accounting import Approximate, Event, Exponential, Gaussian, compose, from_spec, to_spec
from cloakgp.budget import Budget
from cloakgp.errors import ArgumentTypeError, Message, Phrase
from cloakgp.ledger.chain import BEFORE_ALL, CREATED, OPENED, SPENT, Entry, check_chain, sha256
from cloakgp.ledger.charge import Charge, Chargeable, Receipt
from cloakgp.ledger.errors import BudgetExceeded, DatasetExists, LedgerAbsent, LedgerError, LedgerTampered
from cloakgp.ledger.receipts import check_claims, claims_of
from cloakgp.measurements.lattice import IntArray

if TYPE_CHECKING:
    from cloakgp.ledger.store import Store

_EMPTY = Message("ledger: it is empty. ", Phrase.CREATE_LEDGER, " makes a data set.")
_NUMBERS = 1000  # a release of so many numbers stands for any in what is said to be left


@dataclass(frozen=True)
class Balance:
    """What a data set's budget was, what was spent, and what may still be spent."""

    dataset: str
    budget: Budget
    events: tuple[Event, ...]

    def left_for_release(self, delta: float | None = None) -> float:
        """The largest epsilon of one more release planned with `delta` (the budget's, if absent)."""
        delta = self.budget.delta if delta is None else delta
        mu = self.budget.largest(self.events, lambda mu: Gaussian(mu, _NUMBERS))
        return compose([Gaussian(mu, _NUMBERS)]).epsilon(delta) * (1 - 1e-9) if mu > 1e-6 else 0.0

    def left_for_selection(self) -> float:
        """The largest epsilon of one more private selection."""
        return self.budget.largest(self.events, Exponential)

    @property
    def spent(self) -> float:
        """What was spent, as an epsilon at the budget's delta, if sizes were settled beforehand (theorem 9).

        If later requests, or the decision to stop, depended on earlier answers, only the whole budget is
        proven (theorem 10).
        """
        return min(compose(self.events).epsilon(self.budget.delta), self.budget.epsilon)

    def __str__(self) -> str:
        b, n = self.budget, len(self.events)
        aside = f", {b.pure:g} of epsilon set aside for pure mechanisms" if b.pure else ""
        return (
            f"{self.dataset}: ({b.epsilon:g}, {b.delta:g}) in all{aside}\n"
            f"  {n} spend{'' if n == 1 else 's'}; epsilon {self.spent:.4g} at delta {b.delta:g}, if planned "
            "beforehand\n"
            f"  left for one more release: epsilon {_down(self.left_for_release())} at delta {b.delta:g}\n"
            f"  or for a selection: epsilon {_down(self.left_for_selection())}"
        )


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
    of rows, is paid from its one budget.

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
    >>> print(ledger.create("kung", epsilon=1.0, delta=0.01))
    kung: (1, 0.01) in all
      0 spends; epsilon 0 at delta 0.01, if planned beforehand
      left for one more release: epsilon 1 at delta 0.01
      or for a selection: epsilon 1
    """

    def __init__(self, url: str, *, who: str | None = None, timeout: float = 60.0) -> None:
        from cloakgp.ledger.store import Store

        if not isinstance(url, str):
            raise ArgumentTypeError("url", "must be text, such as 'sqlite:///budget.db'", type(url).__name__)
        self._timeout = checks.positive(timeout, "timeout")
        self._who = checks.text(_user() if who is None else who, "who")
        self._store: Store = Store(url, self._timeout)

    @property
    def who(self) -> str:
        """Who is spending."""
        return self._who

    def create(
        self, dataset: str, *, epsilon: float, delta: float, pure: float = 0.0, why: str = ""
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
        """
        budget = Budget(epsilon, delta, pure)
        dataset, why = checks.text(dataset, "dataset", checks.LONGEST_NAME), _reason(why)
        with self._store.writing(create=True) as connection:
            self._store.lock_head(connection)
            entries = self._checked_to_write(connection)
            if not entries:
                self._append(connection, [], OPENED, what={"id": uuid.uuid4().hex})
                self._store.lock_head(connection)
                entries = self._checked_to_write(connection)
            if dataset in _budgets(entries):
                raise DatasetExists(f"dataset {dataset!r} is in this ledger already, and its budget stands.")
            self._append(connection, entries, CREATED, dataset=dataset, why=why, what=asdict(budget))
        return Balance(dataset, budget, ())

    def datasets(self) -> list[str]:
        """The names of the data sets, in the order in which they were created."""
        return list(_budgets(self._read()))

    def balance(self, dataset: str) -> Balance:
        """A data set's budget, what was spent of it, and what is left."""
        return _balance(self._read(), checks.text(dataset, "dataset"))

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one data set, in order."""
        entries = self._read()
        if dataset is not None:
            _balance(entries, dataset)
        return [entry for entry in entries if dataset in (None, entry.dataset)]

    @property
    def head(self) -> str:
        """The last entry's hash. Note it elsewhere: it stands for the whole ledger."""
        return self._read()[-1].hash

    def record(self, dataset: str, event: Event, why: str) -> Receipt:
        """Charge for an answer that was given elsewhere, about the same people.

        Parameters
        ----------
        event : Gaussian, Exponential, Laplace or Approximate
            From :mod:`cloakgp.accounting`.
        why : str
            What it was.
        """
        compose([event])  # refuses what is not an event
        charge = Charge()
        with self._spending(charge, dataset, checks.text(why, "why"), event):
            pass
        assert charge.receipt is not None
        return charge.receipt

    @contextmanager
    def charge(
        self, plan: Chargeable, dataset: str, why: str = "", request: str | None = None
    ) -> Iterator[Charge]:
        """Charge for an answer made inside the block; see :mod:`cloakgp.ledger.charging`."""
        why = _reason(why)
        if request is not None:
            checks.text(request, "request")
        charge = Charge()
        try:
            with self._spending(charge, dataset, why, plan.cost, plan.digest, plan.inputs_digest, request):
                yield charge
                if charge.answer is None:
                    raise LedgerError("ledger: no answer was given to the charge. Nothing was charged.")
        except BaseException:
            charge.answer = None  # not on record, so it must not be had
            raise

    def fetch(self, entry: int, plan: Chargeable) -> Charge:
        """The answer of an earlier entry, for nothing; `plan` must be the plan that it was made from."""
        if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
            raise ArgumentTypeError(
                "entry", "must be the number of an entry", repr(entry), "See ledger.entries()."
            )
        with self._store.reading() as connection:
            entries = self._checked(connection)
            if not 0 <= entry < len(entries) or entries[entry].kind != SPENT:
                raise LedgerError(f"entry: there is no spend number {entry} in this ledger.")
            return self._fetched(connection, entries[entry], plan.digest)

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
                contents = self._store.contents(connection, entry.number)
                if entry.answer != ("" if contents is None else sha256(contents)):
                    raise LedgerTampered(f"ledger: the answer of entry {entry.number} was changed.")
        budgets = _budgets(entries)
        spent: dict[str, list[Event]] = {name: [] for name in budgets}
        for entry in entries:
            if entry.kind != SPENT:
                continue
            event = _event(entry)
            if entry.dataset not in spent or not budgets[entry.dataset].allows(spent[entry.dataset], event):
                raise LedgerTampered(f"ledger: entry {entry.number} is not covered by its budget.")
            spent[entry.dataset].append(event)
        check_claims(claims, entries)
        if head is not None and head not in [entry.hash for entry in entries]:
            raise LedgerTampered(
                "ledger: the head that was noted is not in it: the end was cut off, an old copy was put "
                "in its place, or this is another ledger."
            )
        if not entries:
            raise LedgerAbsent(_EMPTY)
        return Audit(len(entries), entries[-1].hash, tuple(budgets), len(claims))

    @contextmanager
    def _spending(
        self,
        charge: Charge,
        dataset: str,
        why: str,
        event: Event,
        plan: str = "",
        inputs: str = "",
        request: str | None = None,
    ) -> Iterator[None]:
        dataset = checks.text(dataset, "dataset")
        with self._store.writing() as connection:
            self._store.lock_dataset(connection, dataset)
            entries = self._checked_to_write(connection)
            balance = _balance(entries, dataset)
            known = [
                e for e in entries if request is not None and (e.dataset, e.request) == (dataset, request)
            ]
            if known:
                fetched = self._fetched(connection, known[0], plan)
                charge.answer, charge.receipt = fetched.answer, fetched.receipt
                yield
                return
            if not balance.budget.allows(balance.events, event):
                raise BudgetExceeded(_refusal(balance, event))
            yield
            contents = None if charge.answer is None else np.asarray(charge.answer, dtype="<i8").tobytes()
            self._store.lock_head(connection)
            entry = self._append(
                connection,
                self._checked_to_write(connection),
                SPENT,
                dataset=dataset,
                why=why,
                what=to_spec(event),
                plan=plan,
                inputs=inputs,
                request=request,
                contents=contents,
            )
        charge.receipt = Receipt(dataset, entry.number, entry.hash)

    def _fetched(self, connection: Any, entry: Entry, plan: str) -> Charge:
        contents = self._store.contents(connection, entry.number)
        if entry.plan != plan:
            raise LedgerError(
                Message(
                    f"ledger: entry {entry.number} was made from another plan. Use the same inputs and "
                    "settings as then, or ",
                    Phrase.NEW_REQUEST,
                    ". Nothing was spent.",
                )
            )
        if contents is None or sha256(contents) != entry.answer:
            raise LedgerTampered(f"ledger: the answer of entry {entry.number} was changed.")
        answer: IntArray = np.frombuffer(contents, dtype="<i8").astype(np.int64)
        return Charge(answer, Receipt(entry.dataset, entry.number, entry.hash))

    def _append(
        self,
        connection: Any,
        entries: Sequence[Entry],
        kind: str,
        *,
        what: dict[str, Any],
        dataset: str = "",
        why: str = "",
        plan: str = "",
        inputs: str = "",
        request: str | None = None,
        contents: bytes | None = None,
    ) -> Entry:
        entry = Entry(
            number=len(entries),
            kind=kind,
            dataset=dataset,
            who=self.who,
            why=why,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            what=what,
            plan=plan,
            inputs=inputs,
            request=request,
            answer="" if contents is None else sha256(contents),
            previous=entries[-1].hash if entries else BEFORE_ALL,
        ).sealed()
        self._store.append(connection, entry, contents)
        return entry

    def _checked(self, connection: Any) -> list[Entry]:
        entries = self._store.entries(connection)
        check_chain(entries)
        return entries

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
        return _reopened, (self._store.url, self.who, self._timeout)

    def __repr__(self) -> str:
        return f"<Ledger {self._store.shown}, as {self.who}>"


def _reopened(url: str, who: str, timeout: float) -> Ledger:
    return Ledger(url, who=who, timeout=timeout)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user table
        return f"user {os.getuid()}"


def _budgets(entries: Sequence[Entry]) -> dict[str, Budget]:
    budgets: dict[str, Budget] = {}
    for entry in entries:
        if entry.kind != CREATED:
            continue
        if entry.dataset in budgets:
            raise LedgerTampered(
                f"ledger: entry {entry.number} gives a second budget to data set {entry.dataset!r}, which no "
                "Ledger does."
            )
        try:
            budgets[entry.dataset] = Budget(**entry.what)
        except (TypeError, ValueError):
            raise LedgerTampered(f"ledger: entry {entry.number} holds no budget.") from None
    return budgets


def _event(entry: Entry) -> Event:
    try:
        return from_spec(entry.what)
    except (TypeError, ValueError):
        raise LedgerTampered(f"ledger: entry {entry.number} holds no event.") from None


def _reason(why: Any) -> str:
    return "" if isinstance(why, str) and why == "" else checks.text(why, "why")


def _balance(entries: Sequence[Entry], dataset: str) -> Balance:
    budgets = _budgets(entries)
    if dataset not in budgets:
        known = ", ".join(map(repr, budgets)) or "none yet"
        raise LedgerError(
            Message(
                f"dataset {dataset!r} is not in this ledger (there: {known}). ",
                Phrase.CREATE_LEDGER,
                " makes one. Nothing was spent.",
            )
        )
    spends = (entry for entry in entries if entry.kind == SPENT and entry.dataset == dataset)
    return Balance(dataset, budgets[dataset], tuple(_event(entry) for entry in spends))


def _refusal(balance: Balance, event: Event) -> str:
    if isinstance(event, Gaussian):
        delta = balance.budget.delta
        asked = f"Gaussian noise, epsilon {compose([event]).epsilon(delta):.4g} at delta {delta:g}"
    else:
        asked = f"{type(event).__name__} mechanism, epsilon {event.epsilon:.4g}"
    first = ""
    if isinstance(event, Approximate) and event.delta > 0 and balance.events:
        first = " An approximate mechanism can only be the first: what follows must not choose its delta."
    refused = f"the request ({asked}) does not fit into what is left; "
    return Message(refused, Phrase.NOT_READ, f".{first}\n{balance}")


def _down(value: float) -> str:
    """Four digits, rounded down: what is said to be left must fit (plans calibrate with a margin of 1e-8)."""
    if value < 1e-6:  # no plan is made with less
        return "0"
    unit = 10.0 ** (np.floor(np.log10(value)) - 3)
    return f"{np.floor(value / unit * (1 + 2e-9)) * unit:.4g}"
