"""The plan file: settings, digests of the inputs and of people, and the certificate that came out.

It is JSON for people to read and keep, and all that one person takes from another. Whoever releases plans
again from the own table: no matrix, no list of rows and no partition that somebody else worked out ever meets
y. The digests say whether the table is the one that was planned for, and the certificate whether the same
came out. Where inputs are private there are no digests: one of private values would tell of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloakgp.errors import InputError, Refused
from cloakgp.plans.question import Question, check_own
from cloakgp.rows.people import ALIKE

FORMAT, SCHEMA = "cloakgp-plan", 2
_KEYS = {"format", "schema", "settings", "data", "certificate", "sha256"}
_PROMISE = ("epsilon", "delta", "unit", "neighbours", "spend", "insecure", "calibration", "n_rows", "shares")
_SHAPE = ("design", "bound", "unbiased", "before")
_CLOSE = 0.02  # of the objective: two plans for one question differ by their gap, 1 %, at most


@dataclass(frozen=True)
class PlanFile:
    """What was planned, for which table, with which result."""

    settings: dict[str, Any]
    inputs: str
    """SHA-256 of X; empty where inputs are private."""
    people: str
    """SHA-256 of who has which rows; empty unless the promise is to people and ids are public."""
    certificate: dict[str, Any]

    @classmethod
    def of(cls, plan: Any, settings: dict[str, Any]) -> PlanFile:
        """The file of a plan that was just made."""
        return cls(settings, plan.inputs_digest, plan.partition, plan.certificate.to_dict())

    @property
    def question(self) -> str:
        """SHA-256 of what is asked, of whom. The same on every machine."""
        asked = {"settings": self.settings, "inputs": self.inputs, "people": self.people}
        return hashlib.sha256(_json(asked)).hexdigest()

    def encode(self) -> bytes:
        """The file's bytes."""
        digests = {"inputs_sha256": self.inputs, "people_sha256": self.people}
        body: dict[str, Any] = {
            "format": FORMAT,
            "schema": SCHEMA,
            "settings": self.settings,
            "data": {name: digest for name, digest in digests.items() if digest},
            "certificate": self.certificate,
        }
        return _json({**body, "sha256": hashlib.sha256(_json(body)).hexdigest()}) + b"\n"

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
                f"{name}: not a plan file: it is not plain JSON. Make one by planning."
            ) from None
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise InputError(f"{name}: not a plan file. Make one by planning.")
        if type(body.get("schema")) is not int or body["schema"] != SCHEMA:
            raise InputError(
                f"{name}: made by another version of cloakgp (schema {body.get('schema')!r:.20}). Plan again."
            )
        if set(body) != _KEYS:
            wrong = ", ".join(sorted(_KEYS ^ set(body)))
            raise InputError(f"{name}: a key is absent or one too many: {wrong}.")
        digest = body.pop("sha256")
        try:
            json.dumps(body, ensure_ascii=False).encode()  # which fails for half a character
            same = digest == hashlib.sha256(_json(body)).hexdigest()
        except (ValueError, RecursionError):  # a number beyond all floats
            raise InputError(f"{name}: not a plan file: it holds what no plan does. Plan again.") from None
        if not same:
            raise Refused(
                f"{name}: it was changed after it was made. Settings are not edited here: plan again, look "
                "at the noise, and release from the new file. Nothing was spent."
            )
        data, certificate = body["data"], body["certificate"]
        if not isinstance(data, dict) or not set(data) <= {"inputs_sha256", "people_sha256"}:
            raise InputError(f"{name}: data must hold digests of inputs and of people, and nothing else.")
        for key, value in data.items():
            if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
                raise InputError(f"{name}: {key} must be a SHA-256 digest. Plan again.")
        if not isinstance(certificate, dict) or not isinstance(body["settings"], dict):
            raise InputError(f"{name}: settings and certificate must be objects.")
        if not {"epsilon", "delta", "unit", "n_rows"} <= certificate.keys():
            raise InputError(f"{name}: the certificate does not say what is promised. Plan again.")
        found = data.get("inputs_sha256", ""), data.get("people_sha256", "")
        return cls(body["settings"], *found, certificate)

    def check(self, plan: Any) -> str | None:
        """Compare with what was planned again: None if it is the same to the last digit, or what differs.

        Other versions of numpy or of its linear algebra round otherwise, so the same settings may give
        a plan that differs in its last digits. Its promise is the same, and its noise as good as the same.
        What differs by more was not planned from these settings and this table, and is refused.
        """
        rows, planned = plan.certificate.n_rows, self.certificate.get("n_rows")
        if planned != rows:
            raise Refused(
                f"this table has {rows} rows, and the plan was made for {planned!s:.20}. Plan again. "
                "Outcomes were not read, and nothing was spent."
            )
        for what, stored, own in (
            ("inputs", self.inputs, plan.inputs_digest),
            ("people", self.people, plan.partition),
        ):
            if stored != own:
                raise Refused(
                    f"the {what} of this table are not those that the plan was made for. Plan again. "
                    "Outcomes were not read, and nothing was spent."
                )
        fresh = json.loads(_json(plan.certificate.to_dict()))
        if fresh == self.certificate:
            return None
        same = (*_PROMISE, *_SHAPE)
        wrong = [name for name in same if fresh.get(name) != self.certificate.get(name)]
        wrong += sorted(fresh.keys() ^ self.certificate.keys())
        for name in ("objective", "mu"):
            stored = self.certificate.get(name, 0.0)
            near = isinstance(stored, float) and math.isclose(fresh.get(name, 0.0), stored, rel_tol=_CLOSE)
            wrong += [] if near else [name]
        if wrong:
            raise Refused(
                f"planned again, the settings give another plan than the one in the file "
                f"({', '.join(wrong)} differ). Plan again, with this version of cloakgp. Nothing was spent."
            )
        return (
            "planned again, figures differ in late digits from those in the plan file, as they do between "
            "machines. The promise is the same."
        )


def encode(plan: Any) -> bytes:
    """The file of a plan that was made in Python."""
    check_own(plan)
    return PlanFile.of(plan, plan.question.words()).encode()


def load_plan(
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    people: Any = None,
    given: Sequence[Any] = (),
    ids: str = ALIKE,
) -> Any:
    """Plan again what a plan file asks for, from your own table. Nothing in the file is executed.

    Print ``plan.question`` before you release: it lists all settings, which are all that came from the file.

    Parameters
    ----------
    path : path
        Written by ``plan.save``.
    X : table or (N, D) array
        The public inputs, as they were planned for; left out where whole rows are protected.
    people : (N,) ids, or the name of a column of X, optional
        If the promise is to people.
    given : releases, optional
        If the plan takes earlier ones into account.
    ids : {"alike", "exact"}
        As in the plan: it cannot choose alone to take each way of writing an id for another person.

    Raises
    ------
    Refused
        If the inputs or people are not those that the plan was made for, or another plan comes out.
    """
    name, file = Path(path).name, PlanFile.read(path)
    if "method" not in file.settings:
        raise InputError(f"{name}: made by the command line. Release from it there, or plan again here.")
    question = Question.from_words(file.settings)
    try:
        plan = question.ask(X, people, given, ids)
    except (TypeError, OverflowError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{name}: its settings cannot be planned ({said}).") from None
    differs = file.check(plan)
    if differs is not None:
        warnings.warn(f"{name}: {differs}", stacklevel=2)
    return plan


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()
