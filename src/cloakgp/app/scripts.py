"""A script that redoes a release with the library, or reads it and predicts.

Custodians get both parts: planning and releasing anew, with the ledger's name for the request, so that
running it gives the same answer for nothing. Analysts get the part that reads the release file. Paths are
left open.
"""

from __future__ import annotations

from pprint import pformat
from typing import Any

from cloakgp.release.settings import Settings
from cloakgp.workflow.spending import Request

_HEAD = '''"""{title}: {what}

Made by cloakgp {version}. Needs its extras cli and ledger (in a clone: pip install '.[cli,ledger]')
"""
'''
_PLAN = """
# 1. Plan: public, free, and without a look at {unseen}.
from dataclasses import replace
from pathlib import Path

import cloakgp
from cloakgp.data.blas import one_blas_thread_for_good
from cloakgp.release.settings import Settings
from cloakgp.workflow import inputs

DATA = Path("PATH/TO/{data}")  # fill in
SETTINGS = {settings}

one_blas_thread_for_good()  # as the app has it
settings = Settings.from_words(SETTINGS)
{given}plan = inputs.plan_again(settings, DATA)
print(plan.certificate)
"""
_RELEASE = """
# 2. Release: the one private step. The ledger knows this request, so it gives the same answer for nothing;
#    with another request name it would be a new spend.
from cloakgp.ledger import Account
from cloakgp.workflow import private_step

LEDGER = "sqlite:///PATH/TO/ledger.db"  # fill in
ledger = cloakgp.Ledger(LEDGER).naming({reads})  # must be on the data set's terms
account = Account(ledger, {dataset!r}, {why!r}, {request!r})
column = DATA, settings.output, {missing!r}, account, settings.reading, settings.people
release = private_step.release(plan, *column)
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
    return "".join([head, *_parts(record, custodian)])


def _parts(record: dict[str, Any], custodian: bool) -> list[str]:
    asked, file = record["settings"], f"{record['id']}.cloak"
    read = _READ.format(file=file, names=", ".join(map(ascii, asked["inputs"])))
    if not custodian:
        return [read]
    settings = Settings.from_words(record["chosen"])
    files = ", ".join(f"cloakgp.load('PATH/TO/{name}.cloak')" for name in asked.get("given", ()))
    plan = _PLAN.format(
        unseen="the table" if settings.hides_inputs else "the private column",
        data=asked["data"],
        settings=pformat(record["chosen"], width=100, sort_dicts=False),
        given=f"settings = replace(settings, given=[{files}])\n" if files else "",
    )
    reads = ", ".join(f"{name}={value!r}" for name, value in vars(Request.of(settings).reads).items())
    of = {name: record[name] for name in ("dataset", "why", "request", "missing")}
    return [plan, _RELEASE.format(file=file, reads=reads, **of), read]
