"""Plans that were kept: settings, digests and the certificate that came out; no matrix.

For a release it is planned again, after a check that the table's inputs and the settings are still those that
were looked at. What was paid for lies in the ledger, together with its plan: it can be had again on another
machine, or after the table is gone.
"""

from __future__ import annotations

import hashlib
import json
import threading
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
from cloakgp.plans.opening import AnyPlan
from cloakgp.workflow import tables, words

_SHOWN = ("id", "name", "settings", "certificate", "summary", "error_summary", "created", "by")


class Plans:
    """The plans in the data folder."""

    def __init__(self, folder: Folder, uploads: Uploads, planning: Planning) -> None:
        self._folder, self._uploads, self._planning = folder, uploads, planning
        self._lock = threading.Lock()
        found = (stored.read_json(path) for path in sorted(folder.plans.glob("[0-9a-f]*.json")))
        self._plans: dict[str, dict[str, Any]] = {plan["id"]: plan for plan in found if plan}

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
        asked_of = self._planning.asked_of(asked)
        question = self._question(asked)
        plan_id = question[:16]
        if plan_id in self._plans:
            return self._plans[plan_id], False
        with self._planning.heavy():
            plan, expected = self._planning.plan(asked)
        bounds = asked.bounds[0], asked.bounds[1]
        kept = {
            "id": plan_id,
            "name": name,
            "settings": asked.plain(),
            "certificate": plan.certificate.to_dict(),
            "summary": words.noise_summary(expected.noise, bounds),
            "error_summary": words.noise_summary(expected.error, bounds),
            "created": stamp(utc_now()),
            "by": person.name,
            "inputs_sha256": asked_of["inputs"],
            "partition": asked_of.get("people", ""),
            "question": question,
            "asked": plan.question_digest,  # the same for a kernel that is written in another way
            "payer": self._planning.payer(asked),
        }
        with self._lock:
            if plan_id in self._plans:
                return self._plans[plan_id], False
            stored.write_json(self._folder.plan(plan_id), kept)
            self._plans = {**self._plans, plan_id: kept}
        return kept, True

    def make_again(self, plan_id: str) -> AnyPlan | None:
        """The plan itself, from the table as it is now; None if that, or what was kept, is not as it was."""
        kept = self.get(plan_id)
        with public_work():
            asked = models.Settings.model_validate(kept["settings"])
        if self._question(asked) != kept["question"]:
            return None
        with self._planning.heavy():
            plan, _ = self._planning.plan(asked)
        # Once more: the table may have been replaced while it was planned.
        return plan if self._question(asked) == kept["question"] else None

    def _question(self, asked: models.Settings) -> str:
        """SHA-256 of the settings and of what is public of the table."""
        return _digest({"settings": asked.plain(), **self._planning.asked_of(asked)})


def shown(plan: dict[str, Any]) -> dict[str, Any]:
    """What people see of a plan."""
    return {name: plan.get(name) for name in _SHOWN}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()
