"""Plans that were kept: settings and certificate for people, and the plan itself, to the last bit.

A release is made from the kept plan, after a check that the table's inputs are still those it was made for.
So what was looked at is what is released, and what was paid for can be had again on another machine, or after
the table is gone.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from typing import Any

from cloakgp import checks
from cloakgp.app import folder as stored
from cloakgp.app import models
from cloakgp.app.errors import bad_input, not_found, public_work
from cloakgp.app.folder import Folder
from cloakgp.app.people import Person, stamp, utc_now
from cloakgp.app.planning import Planning
from cloakgp.app.protection import columns_of, private_columns
from cloakgp.app.uploads import Uploads
from cloakgp.files.container import ReleaseFileError
from cloakgp.plans import opening
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import AnyPlan
from cloakgp.plans.predictions import Plan
from cloakgp.workflow import tables, words

_SHOWN = ("id", "name", "settings", "certificate", "summary", "error_summary", "created", "by")


class Plans:
    """The plans in the data folder."""

    def __init__(self, folder: Folder, uploads: Uploads, planning: Planning) -> None:
        self._folder, self._uploads, self._planning = folder, uploads, planning
        self._lock = threading.Lock()
        found = (_read(path) for path in sorted(folder.plans.glob("[0-9a-f]*.json")))
        self._plans: dict[str, dict[str, Any]] = {plan["id"]: plan for plan in found if plan is not None}

    def everything(self) -> list[dict[str, Any]]:
        """What is shown of all plans, the newest first."""
        newest = sorted(self._plans.values(), key=lambda plan: plan["created"], reverse=True)
        return [shown(plan) for plan in newest]

    def get(self, plan_id: str) -> dict[str, Any]:
        """What is known of a plan."""
        if plan_id not in self._plans:
            raise not_found("plan")
        return self._plans[plan_id]

    def check_settings(self, asked: models.Settings) -> None:
        """Refuse settings by which something would be shown that is private, or was planned as private."""
        if not asked.hides_inputs:  # those that are hidden are not looked at
            public = asked.inputs if asked.people is None else [*asked.inputs, asked.people]
            self.check_roles(asked.data, public, asked.output)
        elif asked.output in asked.inputs:
            raise bad_input(f"column {asked.output!r} is the outcome, so it must not be an input.")

    def check_roles(self, data: str, public: list[str], output: str | None = None) -> None:
        """Refuse to show what is, or was planned as, private in the same table."""
        private = set().union(*(private_columns(settings) for settings in self._settings_of(data)))
        for name in public:
            if name == output or name in private:
                raise bad_input(
                    f"column {name!r} is private, so it must not be an input or an id that is published."
                )

    def told(self, table: dict[str, Any]) -> dict[str, Any]:
        """What is told of a table: not how many rows there are, where that was planned as private."""
        hidden = any(settings.get("n_people") for settings in self._settings_of(table["name"]))
        return {**table, "rows": None} if hidden else table

    def _settings_of(self, data: str) -> list[dict[str, Any]]:
        return [plan["settings"] for plan in self._plans.values() if plan["settings"]["data"] == data]

    def make(self, asked: models.Settings, name: str, person: Person) -> tuple[dict[str, Any], bool]:
        """Keep the plan for these settings, and whether it is new: one question, one plan."""
        self.check_settings(asked)
        with public_work():
            checks.text(name, "name")
            tables.check_columns(self._uploads.path(asked.data), columns_of(asked.plain()))
        asked = self._planning.settled(asked)
        settings, asked_of = asked.plain(), self._planning.asked_of(asked)
        plan_id = _digest({"settings": settings, **asked_of})[:16]
        if plan_id in self._plans:
            return self._plans[plan_id], False
        with self._planning.heavy():
            plan, expected = self._planning.plan(asked)
        bounds = asked.bounds[0], asked.bounds[1]
        kept = {
            "id": plan_id,
            "name": name,
            "settings": settings,
            "certificate": plan.certificate.to_dict(),
            "summary": words.noise_summary(expected.noise, bounds),
            "error_summary": words.noise_summary(expected.error, bounds),
            "created": stamp(utc_now()),
            "by": person.name,
            "inputs_sha256": asked_of["inputs"],
            "partition": asked_of.get("people", ""),
            "plan_sha256": plan.digest,
            "payer": self._planning.payer(asked),
        }
        with self._lock:
            if plan_id in self._plans:
                return self._plans[plan_id], False
            stored.write(self._bits(plan_id), opening.encode_plan(plan))
            stored.write_json(self._folder.plan(plan_id), kept)
            self._plans = {**self._plans, plan_id: kept}
        return kept, True

    def load(self, plan_id: str) -> AnyPlan:
        """The plan itself."""
        try:
            return opening.load_plan(self._bits(plan_id))
        except ReleaseFileError:  # kept by an earlier version: as a release of nothing, marked insecure
            plan, _, _ = opening.load(self._bits(plan_id))
            assert isinstance(plan, Plan | FunctionPlan)  # that version knew no other kind
            return replace(plan, certificate=replace(plan.certificate, insecure=False))

    def _bits(self, plan_id: str) -> Any:
        return self._folder.plan(plan_id).with_suffix(".plan")


def shown(plan: dict[str, Any]) -> dict[str, Any]:
    """What people see of a plan."""
    return {name: plan.get(name) for name in _SHOWN}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _read(path: Any) -> dict[str, Any] | None:
    return stored.read_json(path) if path.with_suffix(".plan").exists() else None
