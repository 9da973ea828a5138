"""A script that redoes a release with the library, or reads it and predicts.

Custodians get both parts: planning and releasing anew, with the ledger's name for the request, so that
running it gives the same answer for nothing. Analysts get the part that reads the release file. Paths are
left open.
"""

from __future__ import annotations

import re
from pathlib import Path
from pprint import pformat
from typing import Any

from cloakgp.release.settings import Settings
from cloakgp.workflow.spending import Request

_TEXT = Path(__file__).with_name("script.txt").read_text(encoding="utf-8")
_, _HEAD, _PLAN, _RELEASE, _READ = re.split(r"^# --- \w+\n", _TEXT, flags=re.MULTILINE)


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
