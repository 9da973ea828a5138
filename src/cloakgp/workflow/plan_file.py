"""The plan file of a table: its settings name columns. See :mod:`cloakgp.plans.plan_file`."""

from __future__ import annotations

import os
from pathlib import Path

from cloakgp.errors import InputError
from cloakgp.plans.plan_file import PlanFile
from cloakgp.plans.predictions import Plan
from cloakgp.plans.staged import StagedPlan
from cloakgp.workflow.learned_settings import AnySettings, settings_from


def plan_file(settings: AnySettings, plan: Plan | StagedPlan) -> PlanFile:
    """The file of a plan that was just made."""
    return PlanFile.of(plan, settings.to_dict())


def read_plan_file(path: str | os.PathLike[str]) -> tuple[PlanFile, AnySettings]:
    """A plan file, and its settings."""
    file = PlanFile.read(path)
    return file, settings_of(file, Path(path).name)


def settings_of(file: PlanFile, name: str = "plan file") -> AnySettings:
    """The settings in a plan file, or an error that says what is wrong with them."""
    if "method" in file.settings:
        raise InputError(
            f"{name}: made by plan.save in Python, and names no columns. Release from it there, with "
            "cloakgp.load_plan, or make a plan file with cloakgp plan."
        )
    try:
        return settings_from(file.settings)
    except (TypeError, InputError) as error:
        raise InputError(f"{name}: {error}") from None
