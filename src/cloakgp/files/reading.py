"""Read a release file, refuse what is not in the schema, and name the plan that it is of."""

from __future__ import annotations

import os
import re
from typing import Any

from cloakgp.files import container, schema
from cloakgp.files.container import Array
from cloakgp.files.schema import FACTORED


def plan_digest(manifest: dict[str, Any], arrays: dict[str, Array]) -> str:
    """A plan's digest, from what its file holds, or will hold."""
    not_the_plans = ("ledger", schema.CUSTODIANS_WORDS, "members", "sha256")
    words = {name: value for name, value in manifest.items() if name not in not_the_plans}
    words["format"] = schema.FORMAT
    if manifest["release"] == schema.STAGED:
        return _staged_digest({name: value for name, value in words.items() if name != "learned"}, arrays)
    left_out = {"z"}
    if manifest["measurement"]["kind"] == FACTORED:  # has the inputs' own digest, wherever they are kept
        left_out |= {"X", "people"}
    kept = {name: array for name, array in arrays.items() if name not in left_out}
    sha256: str = container.sealed(words, kept)["sha256"]
    return sha256


def answers_of(manifest: dict[str, Any], arrays: dict[str, Array]) -> list[Array]:
    """The noisy integers of a release: of each of its own stages, if it has stages."""
    if manifest["release"] != schema.STAGED:
        return [arrays["z"]]
    before = sum(given["stages"] for given in manifest["given"])
    return [arrays[f"z_{number}"] for number in range(before, len(manifest["stages"]))]


def _staged_digest(words: dict[str, Any], arrays: dict[str, Array]) -> str:
    """What was given belongs to the plan, and so does its own first stage, but for the answer."""
    before = sum(given["stages"] for given in words["given"])
    later = re.compile(r"[a-z]+_([0-9]+)")
    kept = {}
    for name, array in arrays.items():
        found = later.fullmatch(name)
        if name in ("X", "people") and words["inputs_sha256"] is not None:
            continue  # has a digest of its own, wherever it is kept
        if found is None or (int(found[1]) <= before and name != f"z_{before}"):
            kept[name] = array
    sha256: str = container.sealed({**words, "stages": words["stages"][: before + 1]}, kept)["sha256"]
    return sha256


def read(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """Manifest, arrays and signature of a release file."""
    manifest, arrays, signature = container.read(path)
    return *schema.checked(manifest, arrays), signature


def read_charged(contents: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Manifest and arrays of a plan that a ledger kept with its charge."""
    manifest, arrays, _ = container.unpack(contents)
    return schema.checked(manifest, arrays, schema.PLAN_FORMAT)


def read_bytes(contents: bytes) -> tuple[dict[str, Any], dict[str, Array], dict[str, str] | None]:
    """The same from a release file's bytes."""
    manifest, arrays, signature = container.unpack(contents)
    return *schema.checked(manifest, arrays), signature
