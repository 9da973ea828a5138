"""``cloakgp select``: choose among models privately. Reads the output column, and spends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cloakgp.cli import options
from cloakgp.cli.exits import Answer, command, note, table, working
from cloakgp.cli.planning import note_work
from cloakgp.cli.releasing import Payment, for_request
from cloakgp.core.calibration import default_delta
from cloakgp.core.errors import InputError
from cloakgp.data.inputs import as_inputs
from cloakgp.files import atomic, container
from cloakgp.gp import GP
from cloakgp.kernels.specs import parse
from cloakgp.ledger.charging import Account
from cloakgp.release.settings import check_together
from cloakgp.selection import WORKING, Selection, SelectionPlan, plan_selection, working_bytes
from cloakgp.workflow import private_step, tables
from cloakgp.workflow.inputs import check_columns, open_ids, open_inputs, points_of
from cloakgp.workflow.spending import Request, request_name


@command
def select(
    data: Path,
    columns: options.Table,
    bounds: tuple[float, float],
    kernel: list[str],
    noise: list[float],
    epsilon: float,
    *,
    mean: float | None = None,
    folds: int = 5,
    loss: str = "squared",
    loss_clip: float | None = None,
    then_at: str | None = None,
    then_epsilon: float | None = None,
    then_delta: float | None = None,
    then_design: str = "mse",
    payment: Payment,
    missing: str = "error",
    dry_run: bool = False,
    out: Path | None = None,
    as_json: bool = False,
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
    inputs, output, people, ids = options.names(columns.inputs), columns.output, columns.people, columns.ids
    roles = {"inputs": inputs, "output": output, "people": people, "within": columns.within, "bounds": bounds}
    check_together(roles | {"ids": None if ids == "alike" else ids})
    check_columns(data, inputs, output, dask=False, people=people)
    options.check_writable(out, reads=[data, then_at, payment.ledger])
    models = [parse(words) for words in kernel]
    candidates = [GP(model, variance, bounds, mean) for model in models for variance in noise]
    wanted = Request.by_columns(inputs, output, people, epsilon=epsilon, delta=0.0, ids=ids)
    account = Account() if dry_run else payment.account(wanted)
    form = tables.reading(data, inputs, columns.decimal, columns.encoding)
    found = tables.find_columns(data, inputs, output, people, options.names(columns.categories), form)
    X = open_inputs(data, inputs, False, False, found, form, columns.missing_inputs)
    whose = open_ids(data, people, form, ids)
    own = as_inputs(X, whose, missing_inputs=columns.missing_inputs)
    n, size = len(own.X), working_bytes(len(own.X))
    if size <= WORKING:  # else it is refused
        less = "cloakgp plan without --kernel learns the model in the release, and is quicker for many rows."
        what = f"{len(candidates)} models of {n} rows: this takes"
        note_work(what, len(candidates) * 2e-10 * n**3, size, less)
    plan_for = None
    if then_at is None and then_epsilon is None and then_delta is None:
        note("The noise of the release to follow is not counted; --then-at and --then-epsilon count it.")
    elif then_at is None or then_epsilon is None:
        raise InputError("--then-at and --then-epsilon go together; --then-delta may go with them.")
    else:
        if then_delta is None:
            then_delta = default_delta(own.size)
            note(f"The release to follow is taken to have the default delta, {then_delta:g}.")
        plan_for = points_of(then_at, inputs, own.X, found), then_epsilon, then_delta, then_design
    working("planning the selection")
    plan = plan_selection(
        candidates,
        X,
        epsilon=epsilon,
        folds=folds,
        loss=loss,
        loss_clip=loss_clip,
        plan_for=plan_for,
        people=whose,
        within=1.0 if columns.within is None else columns.within,
        ids=ids,
        columns=found,
        missing_inputs=columns.missing_inputs,
    )
    then = None if plan_for is None else [container.digest(plan_for[0]), *plan_for[1:]]
    asked = {"question": plan.question_digest, "then": then, "columns": found.words(), "ids": ids}
    account = for_request(
        account, request_name("select", payment.again, data=data.name, output=output, **asked)
    )
    if dry_run:
        text = f"{plan.certificate}\nNothing was spent, and {output!r} was not read."
        return Answer({"certificate": plan.certificate.to_dict(), "choice": None}, text)
    what = f"Select by {output!r} of {data.name} among {len(candidates)} models: {epsilon:g}-DP"
    known = payment.confirm(account, plan, what, wanted)
    working("selecting")
    chosen = private_step.select(plan, str(data), output, missing, account, form)
    return _answer(plan, chosen, out, spent=known is None)


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
        table([("kernel", repr(gp.kernel)), ("noise", f"{gp.noise:g}")], numbers=False),
        f'for the plan: --kernel "{gp.kernel!r}" --noise {gp.noise!r} --bounds {low!r} {high!r}{centre}',
    ]
    return Answer(found, "\n".join(text))
