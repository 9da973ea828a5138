"""``cloakgp release``: the private step, after everything public was checked and confirmed; and who pays."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, working
from cloakgp.core import checks
from cloakgp.core.errors import InputError, Refused
from cloakgp.files import atomic
from cloakgp.files.labels import NONE
from cloakgp.ledger import BudgetExceeded, Entry, Ledger
from cloakgp.ledger.balances import rounded_down, terms_of
from cloakgp.ledger.charging import Account
from cloakgp.release import encoding
from cloakgp.release.plan_file import PlanFile
from cloakgp.release.release import Release
from cloakgp.workflow import private_step, releases, tables, words
from cloakgp.workflow.inputs import check_cluster, check_columns, connected, plan_again
from cloakgp.workflow.spending import Request, quote, request_name


@dataclass(frozen=True)
class Payment:
    """Options of commands that spend."""

    ledger: str | None = None
    dataset: str | None = None
    no_ledger: bool = False
    why: str = ""
    who: str | None = None
    again: str | None = None
    yes: bool = False

    def account(self, asked: Request) -> Account:
        """The account that pays; none only if that was said in so many words.

        Refused before anything is read if what is asked is not on the data set's terms: settings may be
        somebody else's.
        """
        if self.no_ledger:
            if self.dataset is not None or self.why or self.again is not None:
                raise InputError(
                    "--no-ledger goes without --dataset, --why and --again, which are the ledger's."
                )
            return Account()
        if self.ledger is None or self.dataset is None:
            raise InputError(
                "who pays? Give --ledger URL and --dataset NAME (cloakgp ledger create makes both), or "
                "--no-ledger to keep count of what was spent yourself."
            )
        # What is wrong with these is said here: later it would look like something wrong with the output
        # column.
        for name, typed in (("dataset", self.dataset), ("why", self.why), ("again", self.again)):
            checks.text(typed or "-", name)
        book = Ledger(self.ledger, who=self.who).naming(**vars(asked.reads))
        book.balance(self.dataset).check_terms(asked.terms)
        return Account(book, self.dataset, self.why)

    def confirm(
        self, account: Account, plan: Any, what: str, asked: Request, new: Path | None = None
    ) -> Entry | None:
        """Show what will be read, spent and left, and ask. The ledger's entry, if it was paid for before.

        If something would be spent, there must be no file `new` yet.
        """
        columns, were = ("input and output columns", "were") if asked.whole_rows else ("output column", "was")
        said = "\n  ".join([f"{what}.", *asked.lines()])
        if account.ledger is None:
            _check_absent(new)
            note(f"{said}\n  no ledger keeps count of what is spent")
        else:
            price = quote(account.ledger, str(account.dataset), plan.cost, str(account.request))
            left, after = price.before, price.after
            if price.known is not None:
                unfinished = account.ledger.is_unfinished(price.known.number)
                note(f"{said if unfinished else what + '.'}\n{_known(price.known, unfinished, columns)}")
                return price.known
            _check_absent(new)
            left.check_terms(terms_of(plan, asked.reads))
            if not price.fits:
                raise BudgetExceeded(
                    f"the request does not fit into what is left of the budget. The {columns} {were} not "
                    f"read, and nothing was spent.\n{what}.\n{left}"
                )
            note(
                f"{said}\n"
                f"  budget of {left.dataset!r}: epsilon {left.budget.epsilon:g} "
                f"at delta {left.budget.delta:g}\n"
                f"  spent so far: epsilon {left.spent:.4g}; with this: {after.spent:.4g}\n"
                f"  left for one more release: epsilon {rounded_down(left.left_for_release())} now, "
                f"{rounded_down(after.left_for_release())} afterwards"
            )
        if not self.yes:  # asked on stderr, since stdout is for the answer; no answer is a no
            print(f"Read the {columns} and spend this? [y/N]", end=" ", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                raise Refused(f"declined. The {columns} {were} not read, and nothing was spent.")
        return None


def for_request(account: Account, request: str) -> Account:
    """The same account, with the request's name."""
    return account if account.ledger is None else replace(account, request=checks.text(request, "request"))


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


@command
def release(
    plan_file: Path,
    data: Path,
    out: Path,
    *,
    payment: Payment,
    missing: str = "error",
    dask: str | None = None,
    labels: options.Labels,
    overwrite: bool = False,
    as_json: bool = False,
) -> Answer:
    """Release from a plan file: reads the output column, and spends.

    Plans again from the table, by the settings in the plan file, and refuses if the inputs or people are not
    those that it was made for, or another plan comes out. Settings that are not on the data set's terms, such
    as those with another id column, are refused before anything is read. Shows which columns are read, what
    is promised and what will be left of the budget, and asks before the output column is read.

    A command that died can be run again: the ledger knows the request, and gives the same answer for
    nothing; a release in stages goes on where it stopped. So a second, different release from one plan must
    be asked for: --again 2.

    Title, units, source and date are kept in the file, for its pictures and reports; anybody may read them.

    \b
      cloakgp release plan.json data.csv --ledger sqlite:///budget.db --dataset kung -o heights.cloak
      cloakgp release plan.json data.csv --no-ledger --yes -o heights.cloak
      cloakgp release plan.json trips.parquet --dask tcp://10.0.0.5:8786 \\
          --ledger sqlite:///budget.db --dataset riders -o trips.cloak
    """
    NONE.changed(**vars(labels))  # refused before anything is spent
    stored = PlanFile.read(plan_file)
    settings = stored.settings
    _check_columns_named(stored, plan_file.name)
    check_cluster(dask, settings.may_stream and not settings.in_stages)
    check_columns(data, settings.inputs, settings.output, dask is not None, settings.people)
    options.check_writable(out, reads=[data, plan_file, payment.ledger])
    asked = Request.of(settings)
    name = request_name("release", payment.again, question=stored.question, data=data.name)
    account = for_request(payment.account(asked), name)
    with connected(dask):
        working("planning")
        plan = plan_again(settings, data, dask is not None)
        differs = stored.check(plan)
        if differs is not None:
            note(f"warning: {differs}")
        of = (
            f"{', '.join(settings.inputs)} and {settings.output}"
            if asked.whole_rows
            else repr(settings.output)
        )
        what = f"Release {of} of {data.name}: ({settings.epsilon:g}, {settings.delta:g})-DP"
        known = payment.confirm(account, plan, what, asked, new=None if overwrite else out)
        working("releasing")
        # As when it was planned, or as header and public inputs say.
        form = settings.reading or tables.reading(data, [] if asked.whole_rows else settings.inputs)
        column = str(data), settings.output, missing, account, form, settings.people
        made = private_step.release(plan, *column, dask=dask is not None)
    made = made.labelled(**vars(labels))
    _save(made, out, overwrite or known is None)
    return _answer(made, out, account, known is not None)


def _check_columns_named(stored: PlanFile, name: str) -> None:
    """Raise unless a plan that was made in Python says which columns of a table it is about."""
    settings = stored.settings
    there = {
        "inputs": bool(settings.inputs),
        "output": bool(settings.output),
        "people": settings.people is not None or not (stored.people or settings.max_rows),
        "earlier releases": not settings.given,
    }
    for what, named in there.items():
        if not named:
            raise InputError(
                f"{name}: made in Python, and names no {what} that a command could read. Release from it "
                "there, with cloakgp.load_plan; or name its columns: cloakgp.Columns.of(X, response=...)."
            )


def _answer(release: Release, out: Path, account: Account, known: bool) -> Answer:
    fit, receipt = releases.model_check(release), release.receipt
    found = {"release": str(out), "spent": not known, **words.facts(release, fit), "ledger": None}
    text = [f"release file: {out}", *([] if fit is None else [f"model check: {fit}"])]
    if receipt is None:
        text.append("No ledger keeps count: note that this was spent.")
    else:
        balance = account.ledger.balance(account.dataset)
        left = {name: getattr(balance, name)() for name in ("left_for_release", "left_for_selection")}
        found["ledger"] = vars(receipt) | left
        where = f"{words.on_record(release)} entry {receipt.entry} of {receipt.dataset!r}"
        text += [f"{where}; nothing was spent now." if known else f"{where}.", str(balance)]
    return Answer(found, "\n".join([*text, f"Check it with: cloakgp verify {out}"]))


def _check_absent(out: Path | None) -> None:
    if out is not None and out.exists():
        raise Refused(
            f"{out} exists already. A new release is a new spend: name another file, or say --overwrite. "
            "Nothing was spent."
        )


def _save(release: Release, out: Path, replace: bool) -> None:
    """Write the file; one that exists is replaced only by itself, unless that was asked for."""
    if out.exists() and not replace and not releases.holds(out, release):
        raise Refused(
            f"{out} exists and holds something else. The release was made before and is on record; name "
            "another file, or say --overwrite. Nothing was spent."
        )
    try:
        atomic.write(out, encoding.encode(release))
    except OSError as error:
        after = "The release is lost, and was spent."
        if release.receipt is not None:
            after = "The release is on record in the ledger: run the same command again, for nothing."
        raise InputError(f"{out}: could not be written ({error.strerror}). {after}") from None
