"""``cloakgp select``: choose among models privately. Reads the output column, and spends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.calibration import default_delta
from cloakgp.checks import FloatArray
from cloakgp.cli import options, table_options
from cloakgp.cli.exits import Answer, command, note, pairs, working
from cloakgp.cli.paying import confirm, for_request, open_account
from cloakgp.errors import InputError
from cloakgp.files import atomic, container
from cloakgp.kernels.words import parse
from cloakgp.ledger.charge import Account
from cloakgp.ledger.units import Reads
from cloakgp.model.gp import GP
from cloakgp.rows.columns import Columns
from cloakgp.rows.formats import is_parquet
from cloakgp.rows.people import as_ids, as_people
from cloakgp.selection import WORKING, Selection, SelectionPlan, plan_selection, working_bytes
from cloakgp.workflow import points, private_step, tables
from cloakgp.workflow.inputs import check_columns, complete_rows, open_ids, open_inputs, protected
from cloakgp.workflow.settings import check_output
from cloakgp.workflow.spending import Request, request_name
from cloakgp.workflow.table_cells import find_columns, is_coded


@command
def select(
    data: options.Data,
    inputs: options.Inputs,
    output: options.Output,
    bounds: options.Bounds,
    kernel: Annotated[
        list[str], typer.Option(help="A candidate kernel; give several, one by one.", show_default=False)
    ],
    noise: Annotated[
        list[float], typer.Option(help="A candidate variance; may be repeated.", show_default=False)
    ],
    epsilon: options.Epsilon,
    mean: options.Mean = None,
    people: options.People = None,
    within: options.Within = None,
    ids: options.Ids = options.IdsWord.alike,
    folds: Annotated[int, typer.Option(help="Cross-validation folds.")] = 5,
    loss: Annotated[str, typer.Option(help="squared or absolute.")] = "squared",
    loss_clip: Annotated[
        float | None, typer.Option(help="Residuals count as at most this; a quarter of the bounds' width.")
    ] = None,
    then_at: Annotated[
        str | None,
        typer.Option(help="Count the noise of the release to follow: its points, as for plan --at."),
    ] = None,
    then_epsilon: Annotated[float | None, typer.Option(help="Its epsilon.")] = None,
    then_delta: Annotated[float | None, typer.Option(help="Its delta.")] = None,
    then_design: Annotated[str, typer.Option(help="Its design.")] = "mse",
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    no_ledger: options.NoLedger = False,
    why: options.Why = "",
    who: options.Who = None,
    missing: options.Missing = options.MissingWord.error,
    categories: table_options.Categories = None,
    season: table_options.NoSeason = None,
    missing_inputs: table_options.MissingInputs = table_options.MissingInputsWord.error,
    decimal: table_options.Decimal = None,
    encoding: table_options.Encoding = None,
    again: options.Again = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan of the selection; read and spend nothing.")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File for the choice (.json).")] = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> Answer:
    """Choose a kernel and a noise variance privately: reads the output column, and spends.

    Every kernel is combined with every noise variance. Only the choice comes out. Select first and release
    afterwards; then the two together cost least. Texts and dates among the inputs become numbers as for plan.

    \b
      cloakgp select data.csv --inputs age --output height --bounds 58 158 \\
          --kernel "EQ(5, variance=660)" --kernel "EQ(25, variance=660)" --noise 50 --noise 200 \\
          --epsilon 0.3 --then-at grid:50 --then-epsilon 0.9 \\
          --ledger sqlite:///budget.db --dataset kung
    """
    columns = options.names(inputs)
    check_output(columns, output, people)
    if within is not None and people is None:
        raise InputError("--within is how outcomes of one person go together: it needs --people COLUMN.")
    as_ids(ids.value, people is not None)
    check_columns(data, columns, output, dask=False, people=people)
    at = [] if then_at is None else [then_at]
    options.check_writable(out, reads=[data, *at, *options.ledger_file(ledger)])
    if season:
        raise InputError(
            "--season is for a model that is learned, by cloakgp plan. Here kernels are named: give one with "
            'a period as a candidate, such as "Periodic(lengthscale=1, period=7, active_dims=[1])".'
        )
    kernels = [parse(words) for words in kernel]
    candidates = [GP(model, variance, bounds, mean) for model in kernels for variance in noise]
    wanted = Request(Reads((output,), tuple(columns), people), epsilon, 0.0)
    account = Account() if dry_run else open_account(ledger, dataset, no_ledger, why, who, again, wanted)
    form = None if is_parquet(data) else tables.reading(data, columns, decimal, encoding)
    listed = options.optional_names(categories) or []
    found = find_columns(data, columns, output, people, listed, form)
    X = open_inputs(data, columns, False, False, found, form, missing_inputs.value)
    whose = open_ids(data, people, form, ids.value)
    own = complete_rows(X, whose, missing_inputs.value)
    _say_what_it_takes(len(own[0]), len(candidates))
    plan_for = _plan_for(then_at, then_epsilon, then_delta, then_design, found, *own)
    specs = [model.to_spec() for model in kernels]  # however they were written
    asked = [bounds, folds, loss, loss_clip, candidates[0].mean, specs, noise, epsilon]
    counted = None if plan_for is None else [container.digest(plan_for[0]), *plan_for[1:]]
    who_asks: dict[str, Any] = {"data": data.name, "inputs": container.digest(X), "output": output}
    shared: dict[str, Any] = {"people": whose, "within": 1.0 if within is None else within}
    if whose is not None:
        who_asks |= {"people": as_people(whose, len(X)).digest, "within": shared["within"]}
    if is_coded(found):
        who_asks["columns"] = found.words()
    who_asks |= {"ids": ids.value} if ids is options.IdsWord.exact else {}
    shared |= {"ids": ids.value, "columns": found, "missing_inputs": missing_inputs.value}
    request = request_name("select", again, asked=[asked, counted], **who_asks)
    account = for_request(account, request)
    with working("planning the selection"):
        plan = plan_selection(
            candidates,
            X,
            epsilon=epsilon,
            folds=folds,
            loss=loss,
            loss_clip=loss_clip,
            plan_for=plan_for,
            **shared,
        )
    if dry_run:
        text = f"{plan.certificate}\nNothing was spent, and {output!r} was not read."
        return Answer({"certificate": plan.certificate.to_dict(), "choice": None}, text)
    what = f"Select by {output!r} of {data.name} among {len(candidates)} models: {epsilon:g}-DP"
    known = confirm(account, plan, what, wanted, yes)
    with working("selecting"):
        chosen = private_step.select(plan, str(data), output, missing.value, account, form)
    return _answer(plan, chosen, out, spent=known is None)


def _say_what_it_takes(n_rows: int, n_candidates: int) -> None:
    """For many rows, before any work is done; too many are refused by the plan."""
    if n_rows <= MANY or working_bytes(n_rows) > WORKING:
        return
    minutes = n_candidates * _STEPS * n_rows**3 / _SPEED / 60
    note(
        f"{n_candidates} models of {n_rows} rows: this takes {working_bytes(n_rows) / 2**30:.1f} GiB of "
        f"memory or more, and some {math.ceil(minutes)} minute(s) on one core; Ctrl-C stops it, for nothing. "
        "cloakgp plan without --kernel learns the model in the release itself, and is quicker for many rows."
    )


MANY = 3000
_STEPS, _SPEED = 4.0, 2e10  # for the cube of the rows; in a second, roughly


def _plan_for(
    at: str | None,
    epsilon: float | None,
    delta: float | None,
    design: str,
    columns: Columns,
    X: FloatArray,
    people: Any,
) -> tuple[FloatArray, float, float, str] | None:
    if at is None and epsilon is None and delta is None:
        note("The noise of the release to follow is not counted; --then-at and --then-epsilon count it.")
        return None
    if at is None or epsilon is None:
        raise InputError("--then-at and --then-epsilon go together; --then-delta may go with them.")
    if delta is None:
        delta = default_delta(protected(X, people, "error"))
        note(f"The release to follow is taken to have the default delta, {delta:g}.")
    return points.resolve(at, columns.names, X, columns), epsilon, delta, design


def _answer(plan: SelectionPlan, chosen: Selection, out: Path | None, spent: bool) -> Answer:
    gp = chosen.gp
    choice: dict[str, Any] = {
        "index": chosen.index,
        "kernel": repr(gp.kernel),
        "noise": gp.noise,
        "bounds": list(gp.bounds),
        "mean": gp.mean,
    }
    found = {"choice": choice, "spent": spent, "certificate": chosen.certificate.to_dict()}
    if out is not None:
        atomic.write(out, json.dumps(found, indent=1, sort_keys=True).encode() + b"\n")
    low, high = gp.bounds
    centre = "" if gp.mean == GP(gp.kernel, gp.noise, gp.bounds).mean else f" --mean {gp.mean!r}"
    text = [
        f"chosen: candidate {chosen.index + 1} of {len(plan.candidates)}",
        pairs([("kernel", repr(gp.kernel)), ("noise", f"{gp.noise:g}")]),
        f'for the plan: --kernel "{gp.kernel!r}" --noise {gp.noise!r} --bounds {low!r} {high!r}{centre}',
    ]
    return Answer(found, "\n".join(text))
