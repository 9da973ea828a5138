"""Open a release file, whichever plan it holds."""

from __future__ import annotations

import os
from typing import Any

from cloakgp.files.container import Array
from cloakgp.files.reading import read
from cloakgp.files.schema import FUNCTION
from cloakgp.ledger.charge import Receipt
from cloakgp.measurements.lattice import IntArray
from cloakgp.plans.encoding import contents_of, read_plan_contents
from cloakgp.plans.functions import FunctionPlan
from cloakgp.plans.predictions import Plan

Opened = tuple[Plan | FunctionPlan, IntArray, Receipt | None]
"""What a release file holds: the plan, the noisy measurements, and where they stand in a ledger."""


def plan_of(manifest: dict[str, Any], arrays: dict[str, Array], kernel: Any = None) -> Opened:
    """What a manifest and arrays that fit the schema describe."""
    found = contents_of(manifest, arrays, kernel)
    kind = FunctionPlan if found.kind == FUNCTION else Plan
    return kind.from_contents(found), found.z, found.receipt


def load_plan(path: str | os.PathLike[str], kernel: Any = None) -> Plan | FunctionPlan:
    """The plan in a plan's file, of whatever kind."""
    found = read_plan_contents(path, kernel)
    return (FunctionPlan if found.kind == FUNCTION else Plan).from_contents(found)


def load(path: str | os.PathLike[str], kernel: Any = None) -> Opened:
    """What is in a release file."""
    manifest, arrays, _ = read(path)
    return plan_of(manifest, arrays, kernel)
