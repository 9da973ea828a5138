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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloakgp.core.errors import ArgumentError, InputError, Refused
from cloakgp.release.settings import Settings

FORMAT, SCHEMA = "cloakgp-plan", 3
_KEYS = {"format", "schema", "settings", "data", "certificate", "sha256"}
_DIGESTS, _PROMISED = {"inputs_sha256", "people_sha256"}, {"epsilon", "delta", "unit", "n_rows"}
_UNREAD = "Outcomes were not read, and nothing was spent."
_LATE = {"mu", "delta_slack", "n_measurements", "parts"}
"""What of a certificate may differ in late digits, or is looked at by itself; the rest must be the same."""
_CLOSE = 0.02  # of the objective: two plans for one question differ by their gap, 1 %, at most


@dataclass(frozen=True)
class PlanFile:
    """What was planned, for which table, with which result."""

    settings: Settings
    inputs: str
    """SHA-256 of X; empty where inputs are private."""
    people: str
    """SHA-256 of who has which rows; empty unless the promise is to people and ids are public."""
    certificate: dict[str, Any]

    @classmethod
    def of(cls, plan: Any) -> PlanFile:
        """The file of a plan that was just made."""
        return cls(plan.question, plan.inputs_digest, plan.partition, plan.certificate.to_dict())

    @property
    def question(self) -> str:
        """SHA-256 of what is asked, of whom: the plan's ``question_digest``, the same on every machine."""
        return str(self.settings.digest(self.inputs, self.people))

    def encode(self) -> bytes:
        """The file's bytes; raises where settings hold a function."""
        digests = {"inputs_sha256": self.inputs, "people_sha256": self.people}
        body: dict[str, Any] = {
            "format": FORMAT,
            "schema": SCHEMA,
            "settings": self.settings.words(),
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
        if wrong := sorted(_KEYS ^ set(body)):
            raise InputError(f"{name}: a key is absent or one too many: {', '.join(wrong)}.")
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
        fine = all(isinstance(body[key], dict) for key in ("settings", "data", "certificate"))
        if not fine or set(data) - _DIGESTS or _PROMISED - certificate.keys():
            raise InputError(f"{name}: not a plan file: it lacks what every plan says. Plan again.")
        for key, value in data.items():
            if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
                raise InputError(f"{name}: {key} must be a SHA-256 digest. Plan again.")
        try:
            settings = Settings.from_words(body["settings"])
        except ArgumentError as error:
            raise error.inside(name) from None
        return cls(settings, data.get("inputs_sha256", ""), data.get("people_sha256", ""), certificate)

    def check(self, plan: Any) -> str | None:
        """Compare with what was planned again: None if it is the same to the last digit, or what differs.

        Other versions of numpy or of its linear algebra round otherwise, so the same settings may give
        a plan that differs in its last digits. Its promise is the same, and its noise as good as the same.
        What differs by more was not planned from these settings and this table, and is refused.
        """
        fresh, stored = json.loads(_json(plan.certificate.to_dict())), self.certificate
        if stored["n_rows"] != fresh["n_rows"]:
            raise Refused(
                f"this table has {fresh['n_rows']} rows, and the plan was made for "
                f"{stored['n_rows']!s:.20}. Plan again. {_UNREAD}"
            )
        pairs = {"inputs": (self.inputs, plan.inputs_digest), "people": (self.people, plan.partition)}
        for what, (own, found) in pairs.items():
            if own != found:
                said = f"the {what} of this table are not those that the plan was made for. Plan again."
                raise Refused(f"{said} {_UNREAD}")
        if fresh == stored:
            return None
        wrong = _differences(fresh, stored)
        if wrong:
            raise Refused(
                f"planned again, the settings give another plan than the one in the file "
                f"({', '.join(wrong)} differ). Plan again, with this version of cloakgp. Nothing was spent."
            )
        return (
            "planned again, figures differ in late digits from those in the plan file, as they do between "
            "machines. The promise is the same."
        )


def _differences(fresh: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """What differs of two certificates by more than machines do."""
    wrong = sorted(
        name for name in (fresh.keys() | stored.keys()) - _LATE if fresh.get(name) != stored.get(name)
    )
    try:
        pairs = [(fresh["mu"], stored["mu"], "mu")]
        for own, other in zip(fresh["parts"], stored["parts"], strict=True):
            pairs.append((own["objective"], other["objective"], "objective"))
            wrong += [] if own["bound"] == other["bound"] else ["bound"]
        return wrong + [name for *pair, name in pairs if not math.isclose(*pair, rel_tol=_CLOSE)]
    except (KeyError, TypeError, ValueError):  # which no certificate has
        return [*wrong, "parts"]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode()
