"""A script and a notebook that redo a release with the library, or read it and predict.

Custodians get both parts: planning and releasing anew, with the ledger's name for the request, so that
running it gives the same answer for nothing. Analysts get the part that reads the release file. Paths are
left open.
"""

from __future__ import annotations

import json
import re
import string
from typing import Any

from cloakgp.app.settings import Settings
from cloakgp.data.people import ALIKE
from cloakgp.workflow.spending import Request

_HEAD = '''"""{title}: {what}

Made by cloakgp {version}. Needs its extras cli and ledger (in a clone: pip install '.[cli,ledger]')
"""
'''
_PLAN = """
# 1. Plan: public, free, and without a look at {unseen}.
from pathlib import Path

import cloakgp
{imports}from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.release import points
from cloakgp.workflow import inputs, tables

DATA = Path("PATH/TO/{data}")  # fill in
{public}OUTPUT = {output!r}  # private: read by the release below, and by nothing else

one_blas_thread_for_good()  # as the app has it
gp = {gp}
form = tables.reading(DATA, {known}{written})  # by the header and public columns, or as was said
{plan}
print(plan.certificate)
"""
_COLUMNS = """\
columns = tables.find_columns(DATA, INPUTS, OUTPUT, {who}, {categories!r}, form)
X = inputs.open_inputs(DATA, INPUTS, False, False, columns, form, {missing!r})
"""
_RELEASE = """
# 2. Release: the one private step. The ledger knows this request, so it gives the same answer for nothing;
#    with another request name it would be a new spend.
from cloakgp.ledger import Account
from cloakgp.workflow import private_step

LEDGER = "sqlite:///PATH/TO/ledger.db"  # fill in
ledger = cloakgp.Ledger(LEDGER).naming({reads})  # must be on the data set's terms
account = Account(ledger, {dataset!r}, {why!r}, {request!r})
release = private_step.release(plan, DATA, OUTPUT, {missing!r}, account, form{people})
release.save({file!r})
"""
_READ = """
# Read the release file, check it, and predict anywhere: free, and the same each time.
import cloakgp
from cloakgp.workflow import releases

print(cloakgp.verify({file!r}))
release = releases.load({file!r})
where = releases.default_points(release)  # or any other inputs: {names}
table = releases.predictions(release, where, level=0.95)
print({names}, *table, sep=", ")
for x, *numbers in zip(where.tolist(), *table.values(), strict=True):
    print(*x, *(f"{{number:.6g}}" for number in numbers), sep=", ")
"""


def script(record: dict[str, Any], custodian: bool, version: str) -> str:
    """The .py file."""
    what = "redo the release, and read it" if custodian else "read the release, and predict"
    title = record["name"].replace("\\", "/").replace('"', "'")
    head = _HEAD.format(title=title, what=what, version=version)
    return head + "".join(_parts(record, custodian))


def notebook(record: dict[str, Any], custodian: bool, version: str) -> str:
    """The .ipynb file: the same parts, one to a cell."""
    title = f"# {_plain(record['name'])}\n\nMade by cloakgp {version}."
    parts = [("markdown", title), *(("code", part.strip()) for part in _parts(record, custodian))]
    cells: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"part-{place}", "metadata": {}, "source": text}
        for place, (kind, text) in enumerate(parts)
    ]
    for cell in cells[1:]:
        cell |= {"execution_count": None, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1)


def _plain(name: str) -> str:
    """A name on one line of Markdown that means nothing else there: no link, image, formula or HTML."""
    return re.sub(rf"([{re.escape(string.punctuation)}])", r"\\\1", " ".join(name.split()))


def _parts(record: dict[str, Any], custodian: bool) -> list[str]:
    asked = Settings.model_validate(record["settings"])
    file = f"{record['id']}.cloak"
    read = _READ.format(file=file, names=", ".join(map(ascii, asked.inputs)))
    if not custodian:
        return [read]
    of = {name: record[name] for name in ("dataset", "why", "request", "missing")}
    reads = ", ".join(f"{name}={value!r}" for name, value in vars(Request.of(asked.chosen()).reads).items())
    people = f", {asked.people!r}" if asked.hides_inputs else ""
    return [_planned(asked, record), _RELEASE.format(file=file, people=people, reads=reads, **of), read]


def _planned(asked: Settings, record: dict[str, Any]) -> str:
    """The first part, from the settings."""
    told = {
        "data": asked.data,
        "output": asked.output,
        "gp": _gp(asked),
        "imports": "" if asked.kernel is None else "from cloakgp.kernels import parse\n",
        "written": "".join(
            f", {name}={said!r}" for name in ("decimal", "encoding") if (said := getattr(asked, name))
        ),
    }
    promise = {name: repr(getattr(asked, name)) for name in ("epsilon", "delta")}
    how = {} if asked.ids == ALIKE else {"ids": repr(asked.ids)}
    if asked.grid is not None:
        axes = asked.grid.axes
        box = {axis.name: list(axis.levels) or asked.grid.ends(axis) for axis in axes}
        cells = {axis.name: axis.cells for axis in axes if not axis.levels}
        where = _points(asked, f"points.over(grid, {asked.at!r})")
        size = repr(asked.n_people or record["certificate"]["n_rows"])
        plan = f"grid = cloakgp.Grid({box!r}, cells={cells!r})  # all that is public of the inputs\n"
        plan += _call(
            "gp.plan_rows(", "grid", size, X_star=where, max_rows=repr(asked.max_rows), **promise, **how
        )
        return _PLAN.format(unseen="the table", public="", known="[]", plan=plan, **told)
    missing = repr(asked.missing_inputs)
    known = {"columns": "columns", "missing_inputs": missing}
    public, who = f"INPUTS = {asked.inputs!r}\n", None
    if asked.people is not None:
        public, who = f"{public}PEOPLE = {asked.people!r}  # public: whose each row is\n", "PEOPLE"
    plan = _COLUMNS.format(who=who, categories=asked.categories or [], missing=asked.missing_inputs)
    if who:
        known |= {"people": "people", "within": repr(asked.within)}
        compared = {"how": how["ids"]} if how else {}
        plan += _call("tables.read_ids(", "DATA", who, "form", to="people", **compared) + "\n"
    if asked.is_function:
        plan += _call("gp.plan_function(", "X", **promise, **how, **known)
    else:
        complete = f"inputs.complete_rows(X, None, {missing})[0]"
        known["X_star"] = _points(asked, f"points.grid({asked.at!r}, {complete}, columns)")
        if files := [f"cloakgp.load('PATH/TO/{name}.cloak')" for name in asked.given or ()]:
            known["given"] = f"[{', '.join(files)}]"
        if asked.kernel is not None:
            known["design"] = repr(asked.design)
        plan += _call("gp.plan(", "X", **promise, **how, **known)
    return _PLAN.format(unseen="the private column", public=public, known="INPUTS", plan=plan, **told)


def _call(function: str, *given: str, to: str = "plan", **named: str) -> str:
    """A call on lines of its own, of arguments that are source themselves."""
    lines = [*given, *(f"{name}={value}" for name, value in named.items())]
    return "\n".join([f"{to} = {function}", *(f"    {line}," for line in lines), ")"])


def _points(asked: Settings, grid: str) -> str:
    """Where predictions are wanted; by names, where levels or dates are texts."""
    if isinstance(asked.at, str):
        return grid
    rows = asked.at.points
    if not any(isinstance(cell, str) for row in rows for cell in row):
        return repr(rows)
    return repr(
        {name: list(cells) for name, cells in zip(asked.inputs, zip(*rows, strict=True), strict=True)}
    )


def _gp(asked: Settings) -> str:
    told = "" if asked.outcome == "real" else f", outcome={asked.outcome!r}"
    told += f", classes={tuple(asked.classes)!r}" if asked.classes else ""
    bounds = f"bounds={tuple(asked.bounds or ())!r}"
    if asked.kernel is None:
        return f"cloakgp.AutoGP({bounds}{told})"
    inducing = "" if asked.inducing is None else f", inducing={asked.inducing!r}"
    given = f"noise={asked.noise!r}, {bounds}, mean={asked.mean!r}{inducing}{told}"
    return f"cloakgp.GP(parse({asked.kernel!r}), {given})"
