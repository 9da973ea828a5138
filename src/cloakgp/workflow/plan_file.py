"""The plan file: settings, the inputs' digest and the certificate, for a release that is made later.

It is JSON for people to read and keep. Beside it lies the plan itself, to the last bit, in a file of the
same name that ends in ``.plan``. A release is made from that, if it is the one that the JSON names. If it is
gone, the release is planned anew from the data and the settings. Digests of the inputs, of the settings and
of the plan say whether anything changed in between.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloakgp.errors import InputError, Refused
from cloakgp.files import atomic
from cloakgp.measurements import certificate, staged_certificate
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.opening import load_plan
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.rows.people import as_people
from cloakgp.workflow.inputs import digest_of
from cloakgp.workflow.learned_settings import AnySettings, settings_from
from cloakgp.workflow.outcomes import bounds_of
from cloakgp.workflow.row_settings import RowSettings

FORMAT, SCHEMA = "cloakgp-plan", 1
_KEYS = {"format", "schema", "settings", "data", "plan", "certificate", "sha256"}
_PROMISE = ("epsilon", "delta", "unit", "neighbours", "spend", "insecure", "calibration")
_SHAPE = ("n_rows", "design", "bound", "y_bits", "unbiased")
_STAGES = ("n_rows", "design", "shares", "n_measurements", "unbiased")
_CLOSE = 0.02  # of the objective: two plans for one question differ by their gap, 1 %, at most


@dataclass(frozen=True)
class PlanFile:
    """What was planned, for which inputs, with which result."""

    settings: AnySettings
    rows: int
    """How many there are; people, where all rows of one are protected."""
    inputs_sha256: str
    """Empty where inputs are private."""
    plan_sha256: str
    certificate: dict[str, Any]
    partition: str = ""
    """Digest of who has which rows, where the promise is to people."""

    @classmethod
    def of(cls, settings: AnySettings, plan: Plan | StagedPlan) -> PlanFile:
        """The file of a plan that was just made."""
        made = plan.digest, plan.certificate.to_dict(), plan.partition
        if isinstance(settings, RowSettings):
            return cls(settings, settings.size, "", *made)
        return cls(settings, len(plan.X), digest_of(plan.X), *made)

    @property
    def question(self) -> str:
        """SHA-256 of what is asked, of whom: the settings, inputs and people. The same on every machine."""
        asked = {"settings": self.settings.to_dict(), "inputs": self.inputs_sha256, **self._people}
        return hashlib.sha256(_json(asked)).hexdigest()

    @property
    def _people(self) -> dict[str, str]:
        return {"people_sha256": self.partition} if self.partition else {}

    def encode(self) -> bytes:
        """The file's bytes."""
        body: dict[str, Any] = {
            "format": FORMAT,
            "schema": SCHEMA,
            "settings": self.settings.to_dict(),
            "data": {"rows": self.rows, "sha256": self.inputs_sha256, **self._people},
            "plan": {"sha256": self.plan_sha256},
            "certificate": self.certificate,
        }
        return _json({**body, "sha256": hashlib.sha256(_json(body)).hexdigest()}) + b"\n"

    def write(self, path: str | os.PathLike[str], plan: Plan | StagedPlan) -> None:
        """Write the file, and the plan itself beside it, each whole or not at all."""
        plan.save(beside(path))
        atomic.write(path, self.encode())

    def kept(
        self, path: str | os.PathLike[str], X: Any = None, people: Any = None
    ) -> Plan | StagedPlan | None:
        """The plan that was kept beside the file, for these inputs; None if it is gone, or another one."""
        whole_rows = isinstance(self.settings, RowSettings)
        try:
            plan = load_plan(beside(path))
            plan = plan if whole_rows else plan.with_inputs(X, people)
        except (OSError, ValueError):
            return None
        if isinstance(plan, FunctionPlan):
            return None
        asked, c = self.settings, plan.certificate
        same = (
            plan.digest == self.plan_sha256
            and c.to_dict() == self.certificate
            and (c.epsilon, c.delta, *bounds_of(plan)) == (asked.epsilon, asked.delta, *asked.bounds)
            and (whole_rows or (len(plan.X), digest_of(plan.X)) == (self.rows, self.inputs_sha256))
            and plan.partition == self.partition
        )
        return plan if same else None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PlanFile:
        """Read a plan file; refuse one that was edited, or that is not one."""
        if not Path(path).is_file():
            raise InputError(f"{path}: there is no such file.")
        return cls.decode(Path(path).read_bytes(), Path(path).name)

    @classmethod
    def decode(cls, contents: bytes, name: str = "plan file") -> PlanFile:
        """What is in a plan file's bytes."""
        try:
            body = json.loads(contents, object_pairs_hook=_unique, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise InputError(
                f"{name}: not a plan file: it is not plain JSON. cloakgp plan makes one."
            ) from None
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise InputError(f"{name}: not a plan file. cloakgp plan makes one.")
        if type(body.get("schema")) is not int or body["schema"] != SCHEMA:
            raise InputError(
                f"{name}: made by another version of cloakgp (schema {body.get('schema')!r:.20})."
            )
        if set(body) != _KEYS:
            raise InputError(
                f"{name}: a key is absent or one too many: {', '.join(sorted(_KEYS ^ set(body)))}."
            )
        digest = body.pop("sha256")
        if digest != hashlib.sha256(_json(body)).hexdigest():
            raise Refused(
                f"{name}: it was changed after it was made. Settings are not edited here: run cloakgp plan "
                "again, look at its noise, and release from the new file. Nothing was spent."
            )
        try:
            settings = settings_from(body["settings"])
            data, plan, promised = body["data"], body["plan"], body["certificate"]
            of_its_kind = staged_certificate if settings.in_stages else certificate
            known = not isinstance(settings, RowSettings) and settings.people is not None
            of_people = {"people_sha256"} if known else set()
            expected = ({"rows", "sha256"} | of_people, {"sha256"})
            if (set(data), set(plan)) != expected or not certificate.has_fields(promised, of_its_kind.FIELDS):
                raise InputError("a key is absent or one too many.")
            partition = data.get("people_sha256", "")
            return cls(settings, data["rows"], data["sha256"], plan["sha256"], promised, partition)
        except (TypeError, InputError) as error:
            raise InputError(f"{name}: {error}") from None

    def check_inputs(self, X: Any, name: str, people: Any = None) -> None:
        """Refuse inputs, and ids, that are not those of the plan."""
        if len(X) != self.rows:
            raise Refused(
                f"{name} has {len(X)} rows and the plan was made for {self.rows}. Plan again. The output "
                "column was not read, and nothing was spent."
            )
        if digest_of(X) != self.inputs_sha256:
            raise Refused(
                f"the input columns of {name} are not those that the plan was made for. Plan again. The "
                "output column was not read, and nothing was spent."
            )

        if self.partition and as_people(people, len(X), self.settings.ids).digest != self.partition:
            raise Refused(
                f"{name} shares out its rows among people in another way than the plan was made for. Plan "
                "again. The output column was not read, and nothing was spent."
            )

    def check_plan(self, plan: Plan | StagedPlan) -> str | None:
        """Compare with what was planned anew: None if it is the same to the last bit, or a warning.

        Other versions of numpy or of its linear algebra round otherwise, so the same settings may give
        a plan that differs in its last digits. Its promise is the same, and its noise as good as the same.
        What differs by more was not planned from these settings, and is refused.
        """
        if plan.digest == self.plan_sha256:
            return None
        fresh = plan.certificate.to_dict()
        exact, about = (_STAGES, "mu") if self.settings.in_stages else (_SHAPE, "objective")
        same = all(fresh.get(name) == self.certificate[name] for name in (*_PROMISE, *exact))
        stored = self.certificate[about]
        near = isinstance(stored, float) and math.isclose(fresh.get(about, 0.0), stored, rel_tol=_CLOSE)
        if not same or not near:
            raise Refused(
                "planned anew, the settings in the plan file give another plan than the one in it. Plan "
                "again, with this version of cloakgp. Nothing was spent."
            )
        return (
            "planned anew, the numbers differ in their last digits from those of the plan file, as they do "
            "between machines. The promise is the same; the release carries the new plan's digest, "
            f"{plan.digest[:12]}..."
        )


def beside(path: str | os.PathLike[str]) -> Path:
    """Where the plan itself lies."""
    return Path(path).with_suffix(".plan") if Path(path).name else Path(path)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()
