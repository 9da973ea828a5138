"""The ledger as people use it: data sets with a budget, what was spent of it, and what is left."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from cloakgp import checks
from cloakgp.accounting import Event, compose, to_spec
from cloakgp.budget import Budget
from cloakgp.ledger.balances import Balance, balance_of, budgets_of, event_of, refusal
from cloakgp.ledger.chain import ALLOWED, CREATED, OPENED, SPENT, Entry, sha256
from cloakgp.ledger.charge import Charge, Chargeable, ChargeableInStages, Receipt
from cloakgp.ledger.errors import BudgetExceeded, DatasetExists, LedgerAbsent, LedgerError, LedgerTampered
from cloakgp.ledger.receipts import check_claims, claims_of
from cloakgp.ledger.records import EMPTY, as_contents, check_number, check_plan, receipt_of
from cloakgp.ledger.stage_order import pays_for_stages
from cloakgp.ledger.stages import Staged, n_stages
from cloakgp.ledger.units import (
    Names,
    Protected,
    Reads,
    as_names,
    as_protected,
    as_terms,
    protected_by,
    protected_in,
)
from cloakgp.measurements.unit import OUTCOME
from cloakgp.rows.people import ALIKE


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


class Ledger(Staged):
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
        protected = as_terms(unit, people, private, largest, ids)
        dataset, why = checks.text(dataset, "dataset", checks.LONGEST_NAME), _reason(why)
        with self._store.writing(create=True) as connection:
            self._store.lock_head(connection)
            entries = self._checked_to_write(connection)
            if not entries:
                self._append(connection, [], OPENED, what={"id": uuid.uuid4().hex})
                self._store.lock_head(connection)
                entries = self._checked_to_write(connection)
            if dataset in budgets_of(entries):
                raise DatasetExists(f"dataset {dataset!r} is in this ledger already, and its budget stands.")
            what = {**asdict(budget), **protected.words()}
            self._append(connection, entries, CREATED, dataset=dataset, why=why, what=what)
        return Balance(dataset, budget, (), protected)

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
            self._store.lock_dataset(connection, dataset)
            self._store.lock_head(connection)
            entries = self._checked_to_write(connection)
            balance = balance_of(entries, dataset)
            protected = balance.protected.allowing(names)
            if protected == balance.protected:
                return balance
            what = {"private": list(names)}
            self._append(connection, entries, ALLOWED, dataset=dataset, why=why, what=what)
        return replace(balance, protected=protected)

    def naming(self, private: Names = (), public: Names = (), people: str | None = None) -> Self:
        """The same ledger, for requests that read these columns of a table.

        Columns of files and frames have names by themselves; arrays do not.
        """
        as_names(() if people is None else [people], "people")
        named = object.__new__(type(self))  # and not a copy, which is made for other processes
        reads = Reads(as_names(private, "private"), as_names(public, "public"), people)
        named.__dict__.update(self.__dict__, _reads=reads)
        return named

    @property
    def reads(self) -> Reads:
        """The columns that :meth:`naming` named."""
        return self._reads

    def datasets(self) -> list[str]:
        """The names of the data sets, in the order in which they were created."""
        return list(budgets_of(self._read()))

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
            From :mod:`cloakgp.accounting`.
        why : str
            What it was.
        unit : str
            Whom it protects; must be the data set's unit. Of a plan, ``plan.unit``.
        partition : str, optional
            Of a plan that protects people, ``plan.partition``; if absent, they are the data set's.
        """
        compose([event])  # refuses what is not an event
        protected = as_protected(unit, partition)
        charge = Charge()
        with self._spending(charge, dataset, checks.text(why, "why"), event, protected):
            pass
        assert charge.receipt is not None
        return charge.receipt

    @contextmanager
    def charge(
        self, plan: Chargeable, dataset: str, why: str = "", request: str | None = None
    ) -> Iterator[Charge]:
        """Charge for an answer made inside the block; see :mod:`cloakgp.ledger.charging`."""
        charge = Charge()
        try:
            with self._spending_on(plan, charge, dataset, why, request):
                if charge.receipt is not None and charge.answer is None:
                    raise LedgerError(_in_stages(charge.receipt.entry))
                yield charge
                if charge.answer is None:
                    raise LedgerError("ledger: no answer was given to the charge. Nothing was charged.")
        except BaseException:
            charge.answer = None  # not on record, so it must not be had
            raise

    def pay(
        self,
        plan: ChargeableInStages,
        dataset: str,
        why: str = "",
        request: str | None = None,
        ready: Callable[[], None] | None = None,
    ) -> Receipt:
        """Charge for a release in stages, before the first; see :mod:`cloakgp.ledger.charging`.

        The whole of ``plan.cost`` is on record when this returns, and :meth:`stage` records the answers. With
        a `request` that was paid for already, nothing is paid again. `ready` is called once the budget is
        found to allow it; if it raises, nothing is paid.
        """
        n_stages(plan)
        charge = Charge()
        with self._spending_on(plan, charge, dataset, why, request):
            if charge.answer is not None:
                raise LedgerError(
                    "ledger: this request was answered at once and not in stages. Recover it with its plan "
                    "or name another request. Nothing was spent."
                )
            if ready is not None and charge.receipt is None:
                ready()
        assert charge.receipt is not None
        return charge.receipt

    def fetch(self, entry: int, plan: Chargeable) -> Charge:
        """The answer of an earlier entry, for nothing; `plan` must be the plan that it was made from."""
        check_number(entry)
        with self._store.reading() as connection:
            entries = self._checked(connection)
            if not 0 <= entry < len(entries) or entries[entry].kind != SPENT:
                raise LedgerError(f"entry: there is no spend number {entry} in this ledger.")
            found = entries[entry]
            check_plan(found, plan)
            if pays_for_stages(found):
                raise LedgerError(_in_stages(found.number))
            kept = None if found.plan == plan.digest else self._kept_plan(connection, found)
            return Charge(self._answer(connection, found), receipt_of(found), kept)

    def charged_plan(self, entry: int) -> bytes | None:
        """The plan that an entry paid for, as ``plan.to_bytes`` gave it; None if there is none."""
        check_number(entry)
        with self._store.reading() as connection:
            entries = self._checked(connection)
            return self._kept_plan(connection, entries[entry]) if 0 <= entry < len(entries) else None

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
                self._kept_plan(connection, entry)  # raises if it was changed
        budgets = budgets_of(entries)
        for name in budgets:
            protected_in(entries, name)
        strays = [e for e in entries if e.kind == ALLOWED and e.dataset not in budgets]
        if strays:
            raise LedgerTampered(f"ledger: entry {strays[0].number} is about a data set that is not there.")
        spent: dict[str, list[Event]] = {name: [] for name in budgets}
        for entry in entries:
            if entry.kind != SPENT:
                continue
            event = event_of(entry)
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
            raise LedgerAbsent(EMPTY)
        return Audit(len(entries), entries[-1].hash, tuple(budgets), len(claims))

    @contextmanager
    def _spending_on(
        self, plan: Chargeable, charge: Charge, dataset: str, why: str, request: str | None
    ) -> Iterator[None]:
        why = _reason(why)
        if request is not None:
            checks.text(request, "request")
        protected = protected_by(plan, self._reads)
        with self._spending(charge, dataset, why, plan.cost, protected, plan, request):
            yield

    @contextmanager
    def _spending(
        self,
        charge: Charge,
        dataset: str,
        why: str,
        event: Event,
        protected: Protected,
        plan: Chargeable | None = None,
        request: str | None = None,
    ) -> Iterator[None]:
        dataset = checks.text(dataset, "dataset")
        with self._store.writing() as connection:
            self._store.lock_dataset(connection, dataset)
            entries = self._checked_to_write(connection)
            balance = balance_of(entries, dataset)
            known = [
                e for e in entries if request is not None and (e.dataset, e.request) == (dataset, request)
            ]
            if known:
                assert plan is not None  # only who has one names requests
                check_plan(known[0], plan)
                balance.check_terms(protected)  # what is left of it may still be read
                charge.receipt = receipt_of(known[0])
                if not pays_for_stages(known[0]):
                    charge.answer = self._answer(connection, known[0])
                if known[0].plan != plan.digest:
                    charge.plan = self._kept_plan(connection, known[0])
                yield
                return
            balance.check_terms(protected)
            if not balance.budget.allows(balance.events, event):
                raise BudgetExceeded(refusal(balance, event))
            kept = None if plan is None else plan.to_bytes()  # before y is read: nothing may fail afterwards
            yield
            self._store.lock_head(connection)
            entry = self._append(
                connection,
                self._checked_to_write(connection),
                SPENT,
                dataset=dataset,
                why=why,
                what={**to_spec(event), **protected.words()},
                plan="" if plan is None else plan.digest,
                inputs="" if plan is None else plan.inputs_digest,
                request=request,
                contents=None if charge.answer is None else as_contents(charge.answer),
                question="" if plan is None else plan.question_digest,
                kept_plan=kept,
            )
        charge.receipt = receipt_of(entry)

    def __reduce__(self) -> Any:  # copied and sent to other processes without its connections
        return _reopened, (self._store.url, self.who, self._timeout, self._reads)

    def __repr__(self) -> str:
        return f"<Ledger {self._store.shown}, as {self.who}>"


def _reopened(url: str, who: str, timeout: float, reads: Reads) -> Ledger:
    return Ledger(url, who=who, timeout=timeout).naming(**vars(reads))


def _reason(why: Any) -> str:
    return "" if isinstance(why, str) and why == "" else checks.text(why, "why")


def _in_stages(entry: int) -> str:
    return (
        f"ledger: entry {entry} pays for a release in stages and has no answer of its own: its stages have. "
        "Recover it with the plan that it was made from. Nothing was spent."
    )
