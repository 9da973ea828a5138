"""Open a release file, whichever plan it holds; and write one."""

from __future__ import annotations

import os
from typing import Any

from cloakgp.errors import ArgumentError
from cloakgp.files.container import Array
from cloakgp.files.reading import read, read_charged
from cloakgp.ledger.charge import Receipt
from cloakgp.ledger.charging import as_ledger
from cloakgp.measurements.lattice import IntArray
from cloakgp.plans import encoding, staged_encoding
from cloakgp.plans.encoding import contents_of
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.predictions import Plan, Release
from cloakgp.plans.staged import StagedPlan, StagedRelease
from cloakgp.plans.whole_rows import RowsPlan, RowsRelease

AnyPlan = Plan | FunctionPlan | StagedPlan
AnyRelease = Release | FunctionRelease | StagedRelease
_PLANS: dict[str, type[Plan | FunctionPlan]] = {kind.kind: kind for kind in (Plan, FunctionPlan)}

Opened = tuple[AnyPlan, IntArray, Receipt | None]
"""What a release file holds: the plan, the noisy measurements, and where they stand in a ledger."""


def plan_of(manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None) -> Opened:
    """What a manifest and arrays that fit the schema describe."""
    release = release_of(manifest, arrays, kernel)
    return release.plan, release.z, release.receipt


def recover(ledger: Any, entry: int) -> AnyRelease:
    """What an entry of the ledger paid for, from the ledger alone, if all or some of it was answered.

    The plan that was charged for lies in the ledger. It was read from there, so it cannot meet y: stages that
    were not answered are left to ``plan.recover``, with a plan that was made from the table.
    """
    kept = as_ledger(ledger).charged_plan(entry)
    if kept is None:
        raise ArgumentError("entry", "must have paid for a release of predictions or of a function")
    return charged_plan(kept).recover(ledger, entry)


def charged_plan(contents: bytes) -> AnyPlan:
    """What ``plan.to_bytes`` wrote, for reading answers by: nothing can be released from it."""
    manifest, arrays = read_charged(contents)
    if manifest["release"] == StagedPlan.kind:
        return (RowsPlan if "grid" in manifest else StagedPlan).from_contents(manifest, arrays)
    found = contents_of(manifest, arrays)
    return _PLANS[found.kind].from_contents(found)


def load(path: str | os.PathLike[str], kernel: Any = None) -> Opened:
    """What is in a release file."""
    manifest, arrays, _ = read(path)
    return plan_of(manifest, arrays, kernel)


def load_release(path: str | os.PathLike[str], kernel: Any = None, mean: Any = None) -> AnyRelease:
    """Read a release file of whatever kind. Nothing in it is executed.

    Parameters
    ----------
    path : path
    kernel : callable, optional
        The kernel, needed for new predictions if the file was made with a custom one, which no file can hold.
    mean : callable, optional
        The prior mean, if that is a function.

    Returns
    -------
    StagedRelease, RowsRelease, Release or FunctionRelease
    """
    manifest, arrays, _ = read(path)
    return release_of(manifest, arrays, kernel, mean)


def release_of(
    manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None, mean: Any = None
) -> AnyRelease:
    """The release that a manifest and arrays describe which fit the schema."""
    if manifest["release"] == StagedPlan.kind:
        return (RowsRelease if "grid" in manifest else StagedRelease).from_contents(manifest, arrays, kernel)
    found = contents_of(manifest, arrays, kernel, mean)
    if found.kind == FunctionPlan.kind:
        return FunctionRelease(FunctionPlan.from_contents(found), found.z, found.receipt, found.labels)
    return Release(Plan.from_contents(found), found.z, found.receipt, found.labels)


def encode_release(release: AnyRelease) -> bytes:
    """The bytes of a release's file, of whatever kind."""
    if isinstance(release, StagedRelease):
        return staged_encoding.encode(release)
    return encoding.encode(release.plan, release.z, release.receipt, labels=release.labels)
