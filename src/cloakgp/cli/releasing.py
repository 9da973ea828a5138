"""``cloakgp release``: the one private step, after everything public was checked and confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.cli import options, picture_options
from cloakgp.cli.exits import Answer, command, note, working
from cloakgp.cli.paying import confirm, for_request, open_account
from cloakgp.errors import InputError, Refused
from cloakgp.files import atomic
from cloakgp.files.labels import NONE
from cloakgp.ledger.charge import Account
from cloakgp.plans.opening import AnyRelease, encode_release
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.plans.whole_rows import RowsPlan
from cloakgp.rows.formats import Format, is_parquet
from cloakgp.workflow import private_step, releases, tables, words
from cloakgp.workflow.cluster import check_cluster, connected
from cloakgp.workflow.inputs import check_columns, open_ids, open_inputs
from cloakgp.workflow.learned_settings import AnySettings, PublicSettings
from cloakgp.workflow.outcomes import bounds_of
from cloakgp.workflow.plan_file import read_plan_file
from cloakgp.workflow.row_settings import RowSettings
from cloakgp.workflow.settings import Settings
from cloakgp.workflow.spending import Request, request_name


@command
def release(
    plan_file: Annotated[Path, typer.Argument(help="Made by cloakgp plan (.json).", show_default=False)],
    data: options.Data,
    out: Annotated[Path, typer.Option("-o", "--out", help="Release file (.cloak).", show_default=False)],
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    no_ledger: options.NoLedger = False,
    why: options.Why = "",
    who: options.Who = None,
    missing: options.Missing = options.MissingWord.error,
    again: options.Again = None,
    dask: options.Dask = None,
    title: picture_options.Title = None,
    units: picture_options.Units = None,
    source: picture_options.Source = None,
    date: picture_options.Date = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing release file.")] = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
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
    NONE.changed(title=title, units=units, source=source, date=date)  # refused before anything is spent
    stored, settings = read_plan_file(plan_file)
    check_cluster(dask, isinstance(settings, Settings) and settings.may_stream)
    check_columns(data, settings.inputs, settings.output, dask is not None, settings.people)
    options.check_writable(out, reads=[data, plan_file, *options.ledger_file(ledger)])
    asked = Request.of(settings)
    account = open_account(ledger, dataset, no_ledger, why, who, again, asked)
    account = for_request(account, request_name("release", again, question=stored.question, data=data.name))
    with connected(dask):
        with working("planning"):
            plan = _plan_again(settings, data, dask is not None)
        differs = stored.check(plan)
        if differs is not None:
            note(f"warning: {differs}")
        inputs = f"{', '.join(settings.inputs)} and {settings.output}"
        of = inputs if asked.whole_rows else repr(settings.output)
        known = confirm(
            account,
            plan,
            f"Release {of} of {data.name}: ({settings.epsilon:g}, {settings.delta:g})-DP",
            asked,
            yes,
            before=lambda: None if overwrite else _absent(out),
        )
        column, form = (str(data), settings.output, missing.value, account), _form(settings, data)
        with working("releasing"):
            if isinstance(plan, RowsPlan):
                of_people = (*column[:2], settings.people, *column[2:])
                made = private_step.release_rows(plan, *of_people, form)
            elif dask is None:
                made = private_step.release(plan, *column, form)
            else:
                assert isinstance(plan, Plan)  # checked before: no other kind goes to a cluster
                made = private_step.release_on_cluster(plan, *column)
    made = made.labelled(title=title, units=units, source=source, date=date)
    _save(made, out, overwrite or known is None)
    return _answer(made, out, account, known is not None)


def _plan_again(settings: AnySettings, data: Path, dask: bool) -> Plan | StagedPlan:
    """The plan of the settings, from this table: nothing of it came with the plan file."""
    if isinstance(settings, RowSettings):
        return settings.plan()
    people = open_ids(data, settings.people, settings.reading, settings.ids)
    return settings.plan(_inputs(settings, data, dask), people)


def _inputs(settings: PublicSettings, data: Path, dask: bool) -> Any:
    """The inputs of a table as settings say; with NaN where rows are to be left out."""
    return open_inputs(
        data,
        settings.inputs,
        settings.may_stream,
        dask,
        settings.columns,
        settings.reading,
        settings.missing_inputs,
    )


def _form(settings: AnySettings, data: Path) -> Format | None:
    """How the table is written: as it was when planned; or as its header and public inputs say."""
    if settings.reading is not None or data.is_dir() or is_parquet(data):
        return settings.reading
    return tables.reading(data, [] if isinstance(settings, RowSettings) else settings.inputs)


def _answer(release: AnyRelease, out: Path, account: Account, known: bool) -> Answer:
    fit = releases.model_check(release)
    found = {
        "release": str(out),
        "spent": not known,
        "certificate": release.certificate.to_dict(),
        "noise_std": words.noise_summary(releases.noise_of(release), bounds_of(release.plan)),
        "model_check": None if fit is None else {**vars(fit), "words": fit.words},
        "ledger": None,
    }
    text = [f"release file: {out}"]
    if fit is not None:
        text.append(f"model check: {fit}")
    if release.receipt is not None:
        balance = account.ledger.balance(account.dataset)
        found["ledger"] = {
            "dataset": release.receipt.dataset,
            "entry": release.receipt.entry,
            "head": release.receipt.head,
            "left_for_release": balance.left_for_release(),
            "left_for_selection": balance.left_for_selection(),
        }
        where = (
            f"{words.on_record(release.kind)} entry {release.receipt.entry} of {release.receipt.dataset!r}"
        )
        text.append(f"{where}; nothing was spent now." if known else f"{where}.")
        text.append(str(balance))
    else:
        text.append("No ledger keeps count: note that this was spent.")
    return Answer(found, "\n".join([*text, f"Check it with: cloakgp verify {out}"]))


def _absent(out: Path) -> None:
    if out.exists():
        raise Refused(
            f"{out} exists already. A new release is a new spend: name another file, or say --overwrite. "
            "Nothing was spent."
        )


def _save(release: AnyRelease, out: Path, replace: bool) -> None:
    """Write the file; one that exists is replaced only by itself, unless that was asked for."""
    if out.exists() and not replace and not releases.holds(out, release):
        raise Refused(
            f"{out} exists and holds something else. The release was made before and is on record; name "
            "another file, or say --overwrite. Nothing was spent."
        )
    try:
        atomic.write(out, encode_release(release))
    except OSError as error:
        after = (
            "The release is lost, and was spent."
            if release.receipt is None
            else "The release is on record in the ledger: run the same command again, for nothing."
        )
        raise InputError(f"{out}: could not be written ({error.strerror}). {after}") from None
