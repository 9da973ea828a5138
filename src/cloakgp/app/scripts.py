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

from cloakgp.app.protection import hides_inputs, request_of

_HEAD = '''"""{title}: {what}

Made by cloakgp {version}. Needs its extras cli and ledger (in a clone: pip install '.[cli,ledger]')
"""
'''
_PLAN = """
# 1. Plan: public, free, and without a look at the private column.
{paths}import cloakgp
{imports}from cloakgp.rows.blas import one_blas_thread_for_good
{tools}

DATA = "PATH/TO/{data}"  # fill in
{columns}OUTPUT = {output!r}  # private: read by the release below, and by nothing else

one_blas_thread_for_good()  # as the app has it
gp = {gp}
{read}{plan}
print(plan.certificate)
"""
_INPUTS = """form = tables.reading(DATA, INPUTS{written})  # by the header and public columns, or as was said
columns = table_cells.find_columns(DATA, INPUTS, OUTPUT, {who}, {categories!r}, form)
X = inputs.open_inputs(Path(DATA), INPUTS, False, False, columns, form, {missing!r})
"""
_PREDICTIONS = """X_star = {where}
plan = gp.plan(X, X_star=X_star, epsilon={epsilon!r}, delta={delta!r}, design={design!r}, **known{people})"""
_LEARNED = """X_star = {where}
plan = gp.plan(X, X_star=X_star, epsilon={epsilon!r}, delta={delta!r}, **known{people}{earlier})"""
_FUNCTION = """plan = gp.plan_function(X, epsilon={epsilon!r}, delta={delta!r}, **known{people})"""
_ROWS = """grid = cloakgp.Grid({box!r}, cells={cells!r})  # all that is public of the inputs
X_star = {where}
plan = gp.plan_rows(
    grid, {size!r}, X_star=X_star, epsilon={epsilon!r}, delta={delta!r}, max_rows={max_rows!r}{ids}
)"""
_RELEASE = """
# 2. Release: the one private step. The ledger knows this request, so it gives the same answer for nothing;
#    with another request name it would be a new spend.
from cloakgp.ledger import Account
from cloakgp.workflow import private_step

LEDGER = "sqlite:///PATH/TO/ledger.db"  # fill in
ledger = cloakgp.Ledger(LEDGER).naming({reads})  # must be on the data set's terms
account = Account(ledger, {dataset!r}, {why!r}, {request!r})
release = {release}, {missing!r}, account{form})
release.save({file!r})
"""
_STEP = "private_step.release(plan, DATA, OUTPUT"
_ROWS_STEP = "private_step.release_rows(plan, DATA, OUTPUT, {who!r}"
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
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": f"# {_plain(record['name'])}\n\nMade by cloakgp {version}.",
        }
    ]
    for part in _parts(record, custodian):
        code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        cells.append({**code, "source": part.strip()})
    for place, cell in enumerate(cells):
        cell["id"] = f"part-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1)


def _plain(name: str) -> str:
    """A name on one line of Markdown that means nothing else there: no link, image, formula or HTML."""
    return re.sub(rf"([{re.escape(string.punctuation)}])", r"\\\1", " ".join(name.split()))


def _parts(record: dict[str, Any], custodian: bool) -> list[str]:
    settings = record["settings"]
    file = f"{record['id']}.cloak"
    read = _READ.format(file=file, names=", ".join(map(ascii, settings["inputs"])))
    if not custodian:
        return [read]
    is_learned, whole = settings.get("model") == "learn", hides_inputs(settings)
    asked = {name: record[name] for name in ("dataset", "why", "request", "missing")}
    who = settings.get("people")
    return [
        _PLAN.format(
            plan=_rows_plan(record) if whole else _plan(settings, is_learned),
            gp=_gp(settings, is_learned),
            imports="" if is_learned else "from cloakgp.kernels import parse\n",
            tools="from cloakgp.workflow import boxes, tables"
            if whole
            else "from cloakgp.workflow import inputs, points, table_cells, tables",
            paths="" if whole else "from pathlib import Path\n\n",
            columns=_columns(settings),
            read=f"form = tables.reading(DATA, []{_written(settings)})\n" if whole else _inputs(settings),
            **settings,
        ),
        _RELEASE.format(
            file=file,
            release=_ROWS_STEP.format(who=who) if whole else _STEP,
            form=", form",
            reads=", ".join(f"{name}={value!r}" for name, value in vars(request_of(settings).reads).items()),
            **asked,
        ),
        read,
    ]


def _columns(settings: dict[str, Any]) -> str:
    """The public columns; those of private inputs are in the grid."""
    if hides_inputs(settings):
        return ""
    who = settings.get("people")
    public = f"PEOPLE = {who!r}  # public: whose each row is\n" if who else ""
    return f"INPUTS = {settings['inputs']!r}\n{public}"


def _inputs(settings: dict[str, Any]) -> str:
    who, missing = settings.get("people"), settings.get("missing_inputs", "error")
    known = f"known = {{'columns': columns, 'missing_inputs': {missing!r}}}\n"
    people = (
        f"people = tables.read_ids(DATA, PEOPLE, form{_ids(settings).replace('ids=', 'how=')})\n"
        if who
        else ""
    )
    read = _INPUTS.format(
        written=_written(settings),
        who="PEOPLE" if who else None,
        categories=settings.get("categories", []),
        missing=missing,
    )
    return read + known + people


def _ids(settings: dict[str, Any]) -> str:
    """How ids are compared, if that was chosen."""
    return f", ids={settings['ids']!r}" if "ids" in settings else ""


def _written(settings: dict[str, Any]) -> str:
    said = [name for name in ("decimal", "encoding") if settings.get(name)]
    return "".join(f", {name}={settings[name]!r}" for name in said)


def _points(settings: dict[str, Any], grid: str) -> str:
    """Where predictions are wanted; by names, where levels or dates are texts."""
    at = settings["at"]
    if isinstance(at, str):
        return grid
    rows = at["points"]
    if not any(isinstance(cell, str) for row in rows for cell in row):
        return repr(rows)
    columns = zip(settings["inputs"], zip(*rows, strict=True), strict=True)
    return repr({name: list(cells) for name, cells in columns})


def _plan(settings: dict[str, Any], is_learned: bool) -> str:
    people = f", people=people, within={settings.get('within', 1.0)!r}" if settings.get("people") else ""
    people += _ids(settings)
    if settings["kind"] == "function":
        return _FUNCTION.format(people=people, **{name: settings[name] for name in ("epsilon", "delta")})
    complete = f"inputs.complete_rows(X, None, {settings.get('missing_inputs', 'error')!r})[0]"
    where = _points(settings, f"points.grid({settings['at']!r}, {complete}, columns)")
    files = [f"cloakgp.load('PATH/TO/{name}.cloak')" for name in settings.get("given", ())]
    earlier = f", given=[{', '.join(files)}]" if files else ""
    told = {name: settings.get(name) for name in ("epsilon", "delta", "design")}
    return (_LEARNED if is_learned else _PREDICTIONS).format(
        where=where, earlier=earlier, people=people, **told
    )


def _rows_plan(record: dict[str, Any]) -> str:
    settings = record["settings"]
    extents = settings["box"]
    ranges = {name: each for name, each in extents.items() if "levels" not in each}
    return _ROWS.format(
        box={
            name: (extents[name]["low"], extents[name]["high"]) if name in ranges else extents[name]["levels"]
            for name in settings["inputs"]
        },
        cells={name: each["cells"] for name, each in ranges.items()},
        where=_points(settings, f"boxes.over(grid, {settings['at']!r})"),
        size=settings.get("n_people") or record["certificate"]["n_rows"],
        max_rows=settings.get("max_rows"),
        ids=_ids(settings),
        epsilon=settings["epsilon"],
        delta=settings["delta"],
    )


def _gp(settings: dict[str, Any], is_learned: bool) -> str:
    bounds, outcome = tuple(settings["bounds"]), settings.get("outcome", "real")
    told = "" if outcome == "real" else f", outcome={outcome!r}"
    told += f", classes={tuple(settings['classes'])!r}" if settings.get("classes") else ""
    if is_learned:
        return f"cloakgp.AutoGP(bounds={bounds!r}{told})"
    number = settings.get("inducing")
    inducing = "" if number is None else f", inducing={number!r}"
    given = f"noise={settings['noise']!r}, bounds={bounds!r}, mean={settings['mean']!r}{inducing}{told}"
    return f"cloakgp.GP(parse({settings['kernel']!r}), {given})"
