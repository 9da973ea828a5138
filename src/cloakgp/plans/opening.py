"""Open a release file, whichever plan it holds."""

from __future__ import annotations

import os
from typing import Any

from cloakgp.files.container import Array
from cloakgp.files.reading import read
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.lattice import IntArray
from cloakgp.plans.encoding import contents_of, read_contents, read_plan_contents
from cloakgp.plans.functions import FunctionPlan, FunctionRelease
from cloakgp.plans.predictions import Plan, Release

AnyPlan = Plan | FunctionPlan
AnyRelease = Release | FunctionRelease
_PLANS: dict[str, type[AnyPlan]] = {kind.kind: kind for kind in (Plan, FunctionPlan)}

Opened = tuple[AnyPlan, IntArray, Receipt | None]
"""What a release file holds: the plan, the noisy measurements, and where they stand in a ledger."""


def plan_of(manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None) -> Opened:
    """What a manifest and arrays that fit the schema describe."""
    found = contents_of(manifest, arrays, kernel)
    return _PLANS[found.kind].from_contents(found), found.z, found.receipt


def load_plan(path: str | os.PathLike[str], kernel: Any = None) -> AnyPlan:
    """The plan in a plan's file, of whatever kind."""
    found = read_plan_contents(path, kernel)
    return _PLANS[found.kind].from_contents(found)


def load(path: str | os.PathLike[str], kernel: Any = None) -> Opened:
    """What is in a release file."""
    manifest, arrays, _ = read(path)
    return plan_of(manifest, arrays, kernel)


def load_release(path: str | os.PathLike[str], kernel: Any = None) -> AnyRelease:
    """The release in a file, of whatever kind."""
    found = read_contents(path, kernel)
    if found.kind == FunctionPlan.kind:
        return FunctionRelease(FunctionPlan.from_contents(found), found.z, found.receipt)
    return Release(Plan.from_contents(found), found.z, found.receipt)
