"""Read a release file, refuse what is not in the schema, and name the plan that it is of."""

from __future__ import annotations

import os
import re
from typing import Any

from cloakgp.files import container, schema
from cloakgp.files.container import Array, Contents

_STAGES = re.compile(r"[a-z_]+_([0-9]+)")


def plan_digest(manifest: dict[str, Any], arrays: dict[str, Array]) -> str:
    """A plan's digest, from what its file holds, or will hold.

    What was given belongs to the plan, and so does its own first stage, but for the answer.
    """
    not_the_plans = ("ledger", schema.CUSTODIANS_WORDS, "members", "sha256", "learned")
    words = {name: value for name, value in manifest.items() if name not in not_the_plans}
    before = sum(given["stages"] for given in words["given"])
    words |= {"format": schema.FORMAT, "stages": words["stages"][: before + 1]}
    kept = {}
    for name, array in arrays.items():
        found = _STAGES.fullmatch(name)
        if name in ("X", "people") and words["inputs_sha256"] is not None:
            continue  # has a digest of its own, wherever it is kept
        if found is None or (int(found[1]) <= before and name != f"z_{before}"):
            kept[name] = array
    sha256: str = container.seal(words, kept)["sha256"]
    return sha256


def answers_of(manifest: dict[str, Any], arrays: dict[str, Array]) -> list[Array]:
    """The noisy integers of a release: of each of its own stages."""
    before = sum(given["stages"] for given in manifest["given"])
    return [arrays[f"z_{number}"] for number in range(before, len(manifest["stages"]))]


def read(path: str | os.PathLike[str]) -> Contents:
    """Manifest, arrays and signature of a release file."""
    manifest, arrays, signature = container.read(path)
    return *schema.checked(manifest, arrays), signature


def read_charged(contents: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Manifest and arrays of a plan that a ledger kept with its charge."""
    manifest, arrays, _ = container.unpack(contents)
    return schema.checked(manifest, arrays, schema.PLAN_FORMAT)
