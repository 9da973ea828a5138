"""Plans that were kept: settings, digests and the certificate that came out; no matrix.

For a release it is planned again, after a check that the table's inputs and the settings are still those that
were looked at. What was paid for lies in the ledger, together with its plan: it can be had again on another
machine, or after the table is gone.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from cloakgp.app import folder as stored
from cloakgp.app.accounts import Person, stamp, utc_now
from cloakgp.app.errors import bad_input, not_found, public_work
from cloakgp.app.folder import Folder
from cloakgp.app.planning import Planning
from cloakgp.app.settings import Settings
from cloakgp.core import checks
from cloakgp.release.plan import Plan
from cloakgp.workflow import words


class Plans:
    """The plans in the data folder."""

    def __init__(self, folder: Folder, planning: Planning) -> None:
        self._folder, self._planning = folder, planning
        self._lock = threading.Lock()
        found = (stored.read_json(path) for path in sorted(folder.plans.glob("[0-9a-f]*.json")))
        self._plans: dict[str, dict[str, Any]] = {plan["id"]: plan for plan in found if plan}

    def everything(self) -> list[dict[str, Any]]:
        """All plans, the newest first."""
        return sorted(self._plans.values(), key=lambda plan: str(plan["created"]), reverse=True)

    def get(self, plan_id: str) -> dict[str, Any]:
        """What is known of a plan."""
        if plan_id not in self._plans:
            raise not_found("plan")
        return self._plans[plan_id]

    def check_settings(self, asked: Settings) -> None:
        """Refuse settings by which something would be shown that is private, or was planned as private."""
        if not asked.hides_inputs:  # those that are hidden are not looked at
            public = asked.inputs if asked.people is None else [*asked.inputs, asked.people]
            self.check_roles(asked.data, public, asked.output)

    def check_roles(self, data: str, public: list[str], output: str | None = None) -> None:
        """Refuse to show what is, or was planned as, private in the same table."""
        private = {name for plan in self._of(data) for name in plan["private"]}
        for name in public:
            if name == output or name in private:
                raise bad_input(
                    f"column {name!r} is private, so it must not be an input or an id that is published."
                )

    def told(self, table: dict[str, Any]) -> dict[str, Any]:
        """What is told of a table: not how many rows there are, where that was planned as private."""
        hidden = any(plan["settings"].get("n_people") for plan in self._of(table["name"]))
        return {**table, "rows": None} if hidden else table

    def _of(self, data: str) -> list[dict[str, Any]]:
        return [plan for plan in self._plans.values() if plan["settings"]["data"] == data]

    def make(self, asked: Settings, name: str, person: Person) -> tuple[dict[str, Any], bool]:
        """Keep the plan for these settings, and whether it is new: one question, one plan."""
        self.check_settings(asked)
        with public_work():
            checks.text(name, "name")
        question = self._planning.question(asked)
        plan_id = question.id
        if plan_id in self._plans:
            return self._plans[plan_id], False
        with self._planning.heavy():
            expected = self._planning.plan(question)
        kept = {
            "id": plan_id,
            "name": name,
            "settings": asked.model_copy(update={"delta": question.chosen.delta}).model_dump(
                exclude_none=True
            ),
            "chosen": question.chosen.words(),
            "certificate": expected.plan.certificate.to_dict(),
            "summary": words.noise_summary(expected.noise_std, question.chosen.bounds),
            "error_summary": words.noise_summary(expected.expected_error, question.chosen.bounds),
            "created": stamp(utc_now()),
            "by": person.name,
            "private": sorted(asked.private),
            "partition": question.people.digest if question.people else "",
        }
        with self._lock:
            if plan_id in self._plans:
                return self._plans[plan_id], False
            stored.write_json(self._folder.plan(plan_id), kept)
            self._plans = {**self._plans, plan_id: kept}
        return kept, True

    def make_again(self, plan_id: str, path: Path | None = None) -> Plan | None:
        """The plan itself, from the table as it is now, or lies at `path`; None if that, or what was kept, is
        not as it was."""
        with public_work():
            asked = Settings.model_validate(self.get(plan_id)["settings"])
        question = self._planning.question(asked, path)
        if question.id != plan_id:
            return None
        with self._planning.heavy():
            return self._planning.plan(question).plan
